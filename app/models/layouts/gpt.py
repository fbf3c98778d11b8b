"""Layouts of decoders with the tensor names of the GPT line (wte, h, ln_f), and of OPT and XGLM."""

from __future__ import annotations

from app.models.layouts.blocks import PRE_NORMS, SELF, causal_heads, fused_qkv, mlp, norms, projections
from app.models.parameter_specs import (
    ALWAYS,
    Layout,
    ModelPart,
    ParameterSpecs,
    concat,
    embedding_table,
    layers,
    linear,
    norm,
)


def gpt_like(layer_name: str, outside: ParameterSpecs, *blocks: ParameterSpecs, prefix: str = "transformer.") -> Layout:
    """A causal decoder's layout: L layers with the given blocks, and the tensors `outside` the layers."""
    return Layout(outside, layers(layer_name, *blocks), causal_heads(prefix, "lm_head_bias"))


_WTE = embedding_table("wte", "V", "d")
_WPE = embedding_table("wpe", "P", "d", ModelPart.POSITION_TABLE)
_LN_F = norm("ln_f", "d", ModelPart.FINAL_NORM, bias=ALWAYS)
_TWO_LN = norms("ln_1 ln_2", bias=ALWAYS)

GPT1 = gpt_like(
    "h.{i}.",
    concat(
        embedding_table("tokens_embed", "V", "d"),
        embedding_table("positions_embed", "P", "d", ModelPart.POSITION_TABLE),
    ),
    fused_qkv("attn.", "c_attn c_proj", conv1d=True),
    mlp("mlp.c_fc mlp.c_proj", conv1d=True),
    _TWO_LN,
)
GPT2 = gpt_like(
    "h.{i}.",
    concat(_WTE, _WPE, _LN_F),
    fused_qkv("attn.", "c_attn c_proj", conv1d=True),
    mlp("mlp.c_fc mlp.c_proj", conv1d=True),
    _TWO_LN,
)
GPT_BIGCODE = gpt_like(
    "h.{i}.",
    concat(_WTE, _WPE, _LN_F),
    fused_qkv("attn.", "c_attn c_proj", "by-head"),
    mlp("mlp.c_fc mlp.c_proj"),
    _TWO_LN,
)
GPT_NEO = gpt_like(
    "h.{i}.",
    concat(_WTE, _WPE, _LN_F),
    projections("attn.attention.", "q_proj k_proj v_proj out_proj"),
    mlp("mlp.c_fc mlp.c_proj"),
    _TWO_LN,
)
GPTJ = gpt_like(
    "h.{i}.",
    concat(_WTE, _LN_F),
    projections("attn.", "q_proj k_proj v_proj out_proj"),
    mlp("mlp.fc_in mlp.fc_out"),
    norms("ln_1", bias=ALWAYS),
)
CODEGEN = gpt_like(
    "h.{i}.",
    concat(_WTE, _LN_F),
    fused_qkv("attn.", "qkv_proj out_proj", "in-parts"),
    mlp("mlp.fc_in mlp.fc_out"),
    norms("ln_1", bias=ALWAYS),
)
GPT_NEOX = gpt_like(
    "layers.{i}.",
    concat(embedding_table("embed_in", "V", "d"), norm("final_layer_norm", "d", ModelPart.FINAL_NORM, bias=ALWAYS)),
    fused_qkv("attention.", "query_key_value dense", "by-head"),
    mlp("mlp.dense_h_to_4h mlp.dense_4h_to_h"),
    norms(PRE_NORMS, bias=ALWAYS),
    prefix="gpt_neox.",
)
BLOOM = gpt_like(
    "h.{i}.",
    concat(
        embedding_table("word_embeddings", "V", "d"),
        norm("word_embeddings_layernorm", "d", ModelPart.EMBEDDING_NORM, bias=ALWAYS),
        _LN_F,
    ),
    fused_qkv("self_attention.", "query_key_value dense", "by-head"),
    mlp("mlp.dense_h_to_4h mlp.dense_4h_to_h"),
    norms(PRE_NORMS, bias=ALWAYS),
)
FALCON = gpt_like(
    "h.{i}.",
    concat(embedding_table("word_embeddings", "V", "d"), _LN_F),
    fused_qkv("self_attention.", "query_key_value dense", "by-head"),
    mlp("mlp.dense_h_to_4h mlp.dense_4h_to_h"),
    norms("ln_attn ln_mlp", bias=ALWAYS, when="parallel two_norms"),
    norms("input_layernorm", bias=ALWAYS, when="!parallel"),
    norms("post_attention_layernorm", bias=ALWAYS, when="!parallel"),
    norms("input_layernorm", bias=ALWAYS, when="parallel !two_norms"),
)
MPT = gpt_like(
    "blocks.{i}.",
    concat(_WTE, norm("norm_f", "d", ModelPart.FINAL_NORM)),
    fused_qkv("attn.", "Wqkv out_proj"),
    mlp("ffn.up_proj ffn.down_proj"),
    norms("norm_1 norm_2"),
)
OPT = Layout(
    concat(
        embedding_table("decoder.embed_tokens", "V", "d_emb"),
        embedding_table("decoder.embed_positions", "P", "d", ModelPart.POSITION_TABLE),
        linear("decoder.project_in", "d_emb", "d", ModelPart.EMBEDDING_PROJECTION, when="narrow_embedding"),
        linear("decoder.project_out", "d", "d_emb", ModelPart.EMBEDDING_PROJECTION, when="narrow_embedding"),
        norm(
            "decoder.final_layer_norm",
            "d",
            ModelPart.FINAL_NORM,
            bias=ALWAYS,
            when="norm_parameters norm_first !no_final_norm",
        ),
    ),
    layers(
        "decoder.layers.{i}.",
        projections(SELF, "q_proj k_proj v_proj out_proj"),
        mlp("fc1 fc2"),
        norms("self_attn_layer_norm final_layer_norm", bias=ALWAYS, when="norm_parameters"),
    ),
    causal_heads("model.", width="d_emb"),
)
XGLM = Layout(
    concat(embedding_table("embed_tokens", "V", "d"), norm("layer_norm", "d", ModelPart.FINAL_NORM, bias=ALWAYS)),
    layers(
        "layers.{i}.",
        projections(SELF, "q_proj k_proj v_proj out_proj"),
        mlp("fc1 fc2"),
        norms("self_attn_layer_norm final_layer_norm", bias=ALWAYS),
    ),
    causal_heads("model."),
)
