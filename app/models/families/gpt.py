"""The families of decoders with the tensor names of the GPT line, and Falcon, BLOOM, MPT, OPT and XGLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.models.alibi import slopes_of_larger_power
from app.models.families.family import (
    ALL_BIASES,
    CLIPPED,
    MULTI_HEAD,
    PARALLEL_NORM,
    PARALLEL_OR_PRE_NORM,
    POST_NORM,
    YES,
    CausalDecoder,
    Family,
    Flag,
    RotaryRule,
    clips_projections,
    is_two,
)
from app.models.layer_patterns import WindowRule, local_attention_types
from app.models.layouts import gpt
from app.models.parameter_specs import ALWAYS
from app.models.score_scale import by_softmax_scale, unless_switched_off, unscaled
from app.models.size_specs import SizeSpecs
from app.translation import N_

_GPT_SIZES: SizeSpecs = {
    "d": "n_embd hidden_size",
    "H": "n_head num_attention_heads",
    "L": "n_layer num_hidden_layers",
    **MULTI_HEAD,
    "d_ff": "n_inner = 4*d",
}
_GPT2_SIZES: SizeSpecs = {**_GPT_SIZES, "C": "n_positions max_position_embeddings = 1024", "P": "= C"}
_GPTJ = Family(
    gpt.GPTJ,
    "GPTJForCausalLM",
    {**_GPT_SIZES, "C": "n_positions max_position_embeddings = none", "d_rot": "rotary_dim = 64, null d"},
    {"mlp_bias lm_head_bias": YES},
    rotary=RotaryRule("d_rot", adjacent=ALWAYS),
    norm_placement=PARALLEL_NORM,
)
_FALCON = Family(
    gpt.FALCON,
    "FalconForCausalLM",
    {
        "d": "n_embed hidden_size",
        "H": "num_attention_heads n_head",
        "L": "num_hidden_layers n_layer",
        "G": ("new_decoder? num_kv_heads n_head_kv = H", "multi_query? = 1", "= H"),
        "d_h": "= d/H",
        "d_ff": "ffn_hidden_size = 4*d",
    },
    {
        "q k v o mlp_bias": Flag("bias"),
        "multi_query": Flag("multi_query", True),
        "new_decoder": Flag("new_decoder_architecture"),
        "parallel": Flag("parallel_attn", True),
        "two_norms": Flag("num_ln_in_parallel_attn", "new_decoder", is_two),
        "alibi": Flag("alibi"),
    },
    tied=True,
    rotary=RotaryRule(when="!alibi"),
    position_bias={"alibi": "alibi"},
    not_modelled={"alibi": N_("ALiBi scaled by 1/√d_h")},
    norm_placement={"new_decoder": "parallel", **PARALLEL_OR_PRE_NORM},
)

GPT_FAMILIES: Mapping[str, Family] = {
    "openai-gpt": Family(
        gpt.GPT1,
        "OpenAIGPTLMHeadModel",
        {**_GPT2_SIZES, "C": "n_positions max_position_embeddings = 512", "d_ff": "= 4*d"},
        ALL_BIASES,
        tied=True,
        reads_is_causal=False,
        kv_cache=False,
        position_rows="C",
        norm_placement=POST_NORM,
    ),
    "gpt2": Family(
        gpt.GPT2,
        "GPT2LMHeadModel",
        _GPT2_SIZES,
        {**ALL_BIASES, "by_layer": Flag("scale_attn_by_inverse_layer_idx")},
        tied=True,
        position_rows="C",
        scale=unless_switched_off,
        not_modelled={"by_layer": N_("scores divided by the number of the layer")},
    ),
    "gpt_neo": Family(
        gpt.GPT_NEO,
        "GPTNeoForCausalLM",
        {
            "H": "num_heads num_attention_heads",
            "L": "num_layers num_hidden_layers",
            **MULTI_HEAD,
            "d_ff": "intermediate_size = 4*d",
            "C": "max_position_embeddings = 2048",
            "P": "= C",
        },
        {"o mlp_bias": YES},
        tied=True,
        position_rows="C",
        windows=WindowRule(local_attention_types, "window_size", 256),
        scale=unscaled,
    ),
    "gpt_neox": CausalDecoder(
        gpt.GPT_NEOX,
        "GPTNeoXForCausalLM",
        MULTI_HEAD,
        flags={
            "q k v o": Flag("attention_bias", True),
            "mlp_bias": YES,
            "parallel": Flag("use_parallel_residual", True),
        },
        rotary=RotaryRule(share="rotary_pct", default_share=0.25, theta="rotary_emb_base"),
        norm="LayerNorm",
        norm_placement=PARALLEL_OR_PRE_NORM,
    ),
    "gptj": _GPTJ,
    "codegen": replace(_GPTJ, layout=gpt.CODEGEN, model_class="CodeGenForCausalLM"),
    "gpt_bigcode": Family(
        gpt.GPT_BIGCODE,
        "GPTBigCodeForCausalLM",
        {**_GPT2_SIZES, "G": ("multi_query? = 1", "= H")},
        {**ALL_BIASES, "multi_query": Flag("multi_query", True)},
        tied=True,
        position_rows="C",
        scale=unless_switched_off,
    ),
    "falcon": _FALCON,
    "RefinedWebModel": _FALCON,
    # The first configs of Falcon 40B have this model_type; their layers have two norms, which no field states.
    "RefinedWeb": replace(_FALCON, flags={**_FALCON.flags, "new_decoder": Flag("new_decoder_architecture", True)}),
    "bloom": Family(
        gpt.BLOOM,
        "BloomForCausalLM",
        {**_GPT_SIZES, "d": "n_embed hidden_size", "d_ff": "= 4*d", "C": "seq_length = none"},
        ALL_BIASES,
        tied=True,
        position_bias={"": "alibi"},
    ),
    # transformers builds every MPT with keys for each head and a feed-forward width of 4d, whatever "kv_n_heads" and
    # "expansion_ratio" say; no published file says otherwise.
    "mpt": Family(
        gpt.MPT,
        "MptForCausalLM",
        {
            "d": "d_model hidden_size",
            "H": "n_heads num_attention_heads",
            "L": "n_layers num_hidden_layers",
            **MULTI_HEAD,
            "d_ff": "= 4*d",
            "C": "max_seq_len = none",
        },
        {"clipped": Flag("attn_config", False, clips_projections)},
        tied=True,
        not_modelled=CLIPPED,
        position_bias={"": "alibi"},
        alibi_slopes=slopes_of_larger_power,
        scale=by_softmax_scale,
    ),
    "opt": Family(
        gpt.OPT,
        "OPTForCausalLM",
        {
            **MULTI_HEAD,
            "d_ff": "ffn_dim",
            "C": "max_position_embeddings = 2048",
            "P": "= C + 2",
            "d_emb": "word_embed_proj_dim = d",
        },
        {
            "q k v o mlp_bias": Flag("enable_bias", True),
            "norm_first": Flag("do_layer_norm_before", True),
            "norm_parameters": Flag("layer_norm_elementwise_affine", True),
            "no_final_norm": Flag("_remove_final_layer_norm"),
        },
        tied=True,
        position_rows="C",
        norm_placement={"norm_first": "pre", "": "post"},
    ),
    # XGLM computes its positions with sines, for any length, so it has no position table.
    "xglm": Family(
        gpt.XGLM,
        "XGLMForCausalLM",
        {
            "d": "d_model hidden_size",
            "H": "attention_heads num_attention_heads",
            "L": "num_layers num_hidden_layers",
            **MULTI_HEAD,
            "d_ff": "ffn_dim",
        },
        ALL_BIASES,
        tied=True,
        embedding_scale="stated",
    ),
}
