"""The families: one row each, with the names of its config fields and how it differs from the others.

A row states sizes in the form `size_spec` reads ("num_key_value_heads = H": the field, and what its absence means),
flags (a name that conditions in the layouts ask for, and the config field that sets it), and a layout. What an absent
field means follows the family's config class in transformers 5; sizes that every published config states have no
default, so that a config without them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .config_fields import ConfigError, shown
from .layouts import encoders, gpt, llama, seq2seq
from .patterns import (
    Pattern,
    Windows,
    after_first,
    all_but_every,
    every_layer,
    interleaved_experts,
    listed_cross_layers,
    odd_before,
    sparse_steps,
    with_rotary,
    without_rotary,
)
from .weights import Layout

Specs = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Flag:
    """A yes or no: the fields that may state it, and what absence and null mean.

    `default` may name another flag of the row; null means the same unless `null` says otherwise. Without `test`, which
    gets the value and the name of its field, the field must hold true or false.
    """

    fields: str = ""
    default: bool | str = False
    test: Callable[[object, str], bool] | None = None
    null: bool | None = None


YES = Flag(default=True)
Flags = Mapping[str, Flag]


@dataclass(frozen=True)
class Rope:
    """Rotary positions: which width turns, and the fields for its share and its base with their defaults."""

    width: str = "d_h"
    share: str = "partial_rotary_factor"
    default_share: float = 1.0
    theta: str = "rope_theta"
    default_theta: float = 10_000.0
    when: str = ""


@dataclass(frozen=True)
class Family:
    """What one model_type does differently.

    `flags` may set several at once ("q k v": the three biases). `tied`: what an absent tie_word_embeddings means, or
    "always" or "never". `positions`: the size that counts the positions a table holds, None where there is no table,
    as where the flags of `positions_when` do not hold; `unused_positions`: how many of them no token takes.
    `part_defaults`: sizes that multimodal files of this family leave out of their text part, and only there.
    """

    layout: Layout
    model_class: str
    sizes: Specs = field(default_factory=dict)
    flags: Mapping[str, Flag] = field(default_factory=dict)
    tied: bool | str = False
    causal: bool = True
    cache: bool = True
    positions: str | None = None
    positions_when: str = ""
    unused_positions: int = 0
    rotary: Rope | None = None
    windows: Windows | None = None
    experts: Pattern | None = None
    cross_layers: Pattern | None = None
    part_defaults: Mapping[str, int] = field(default_factory=dict)


SIZES: Specs = {
    "d": "hidden_size",
    "H": "num_attention_heads",
    "G": "num_key_value_heads = H",
    "d_h": "head_dim = d/H",
    "d_v": "= d_h",
    "d_ff": "intermediate_size",
    "V": "vocab_size",
    "L": "num_hidden_layers",
    "C": "max_position_embeddings = none",
    "labels": "id2label num_labels = 2",
}
_ROPE = Rope()


def _decoder(layout: Layout, name: str, sizes: Specs | None = None, **more: object) -> Family:
    """A decoder with rotary positions, the most frequent kind of row."""
    family = Family(layout, f"{name}ForCausalLM", {**SIZES, **(sizes or {})}, rotary=_ROPE)
    return replace(family, **more)  # type: ignore[arg-type]  # the rows below are checked by the tests that build them


def _parts(d: int, H: int, d_ff: int, V: int, L: int) -> Mapping[str, int]:
    return {"d": d, "H": H, "d_ff": d_ff, "V": V, "L": L}


_ATTENTION_BIAS: Flags = {"q k v o": Flag("attention_bias")}
_MLP_BIAS: Flags = {"mlp_bias": Flag("mlp_bias")}
_QKV = {"q k v": YES}
_ALL_BIASES: Flags = {"q k v o mlp_bias": YES}
_QK_NORM = {"qk_norm": YES}
_PER_HEAD_RMS = {"qk_norm rms_per_head": YES}
_QWEN_WINDOWS = Windows(after_first("max_window_layers", 28), missing=4096, switch="use_sliding_window")
_ALTERNATE = all_but_every(2)

_MISTRAL = _decoder(
    llama.LLAMA,
    "Mistral",
    {"G": "num_key_value_heads = 8, null H"},
    windows=Windows(missing=4096),
    part_defaults=_parts(4096, 32, 14336, 32000, 32),
)
_LLAMA = _decoder(
    llama.LLAMA, "Llama", flags={**_ATTENTION_BIAS, **_MLP_BIAS}, part_defaults=_parts(4096, 32, 11008, 32000, 32)
)
_QWEN2 = _decoder(
    llama.LLAMA,
    "Qwen2",
    {"G": "num_key_value_heads = 32, null H"},
    flags=_QKV,
    windows=_QWEN_WINDOWS,
    part_defaults=_parts(4096, 32, 22016, 151936, 32),
)
_QWEN2_VL = replace(
    _QWEN2,
    model_class="Qwen2VLForConditionalGeneration",
    sizes={**_QWEN2.sizes, "G": "num_key_value_heads = 8, null H"},
    rotary=Rope(default_theta=1e6),
    windows=Windows(after_first("max_window_layers", 80), missing=4096, switch="use_sliding_window"),
    part_defaults=_parts(8192, 64, 29568, 152064, 80),
)
_QWEN3 = _decoder(
    llama.QK_NORM,
    "Qwen3",
    {"G": "num_key_value_heads = 32, null H", "d_h": "head_dim = 128, null d/H"},
    flags={**_ATTENTION_BIAS, **_PER_HEAD_RMS},
    windows=_QWEN_WINDOWS,
    part_defaults=_parts(4096, 32, 22016, 151936, 32),
)
_MIXED: Specs = {
    "d_ff": ("first_moe? = d_exp", "= d_dense"),
    "d_dense": "intermediate_size = none",
    "E": "num_experts num_local_experts",
    "k": "num_experts_per_tok",
}
_GEMMA = _decoder(
    llama.LLAMA,
    "Gemma",
    {"G": "num_key_value_heads = 16, null H", "d_h": "head_dim = 256, null d/H"},
    flags={**_ATTENTION_BIAS, "bidirectional": Flag("use_bidirectional_attention")},
    tied=True,
    part_defaults=_parts(3072, 16, 24576, 256000, 28),
)
_GEMMA2 = replace(
    _GEMMA,
    layout=llama.GEMMA2,
    model_class="Gemma2ForCausalLM",
    sizes={**_GEMMA.sizes, "G": "num_key_value_heads = 4, null H"},
    windows=Windows(_ALTERNATE, missing=4096),
    part_defaults=_parts(2304, 8, 9216, 256000, 26),
)
_GEMMA3 = replace(
    _GEMMA2,
    model_class="Gemma3ForCausalLM",
    flags={**_GEMMA.flags, **_PER_HEAD_RMS},
    rotary=Rope(default_theta=1e6),
    windows=Windows(all_but_every(6, "sliding_window_pattern"), missing=4096),
    part_defaults=_parts(2304, 8, 9216, 262208, 26),
)
_DEEPSEEK_SIZES: Specs = {
    **_MIXED,
    "G": "= H",
    "d_h": "= d_nope + d_rope",
    "d_v": "v_head_dim = 128",
    "d_nope": "qk_nope_head_dim = 128",
    "d_rope": "qk_rope_head_dim = 64",
    "r_q": "latent_queries? q_lora_rank = 1536",
    "r_kv": "kv_lora_rank = 512",
    "E": "n_routed_experts num_experts num_local_experts",
    "d_exp": "moe_intermediate_size",
}


def _positive(value: object, name: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f'"{name}" must be a whole number, and it is {shown(value)}.')
    return value > 0


def _two(value: object, name: str) -> bool:
    return _positive(value, name) and value == 2


def _says(word: str) -> Callable[[object, str], bool]:
    """Whether a list, or a text with parts set apart by |, has this part."""

    def test(value: object, name: str) -> bool:
        parts = value.lower().split("|") if isinstance(value, str) else value
        if not isinstance(parts, list):
            raise ConfigError(f'"{name}" must be a list of words, and it is {shown(value)}.')
        return word in [part.strip() for part in parts if isinstance(part, str)]

    return test


def _gated(value: object, name: str) -> bool:
    if not isinstance(value, str):
        raise ConfigError(f'"{name}" must name an activation, and it is {shown(value)}.')
    return value.startswith("gated-")


_DEEPSEEK_V2 = _decoder(
    llama.DEEPSEEK,
    "DeepseekV2",
    {**_DEEPSEEK_SIZES, "n_sh": "shared? n_shared_experts = 2"},
    flags={
        "o": Flag("attention_bias"),
        **_MLP_BIAS,
        "mla": YES,
        "latent_queries": Flag("q_lora_rank", True, _positive, null=False),
        "shared": Flag("n_shared_experts", True, _positive, null=False),
    },
    rotary=Rope("d_rope"),
    experts=after_first("first_k_dense_replace", 0),
)
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V2,
    model_class="DeepseekV3ForCausalLM",
    sizes={**_DEEPSEEK_V2.sizes, "n_sh": "shared? n_shared_experts = 1", "k": "num_experts_per_tok = 8"},
    flags={name: test for name, test in _DEEPSEEK_V2.flags.items() if name != "mlp_bias"},
    experts=after_first("first_k_dense_replace", 3),
)
_GPT_SIZES: Specs = {
    **SIZES,
    "d": "n_embd hidden_size",
    "H": "n_head num_attention_heads",
    "L": "n_layer num_hidden_layers",
    "G": "= H",
    "d_h": "= d/H",
    "d_ff": "n_inner = 4*d",
}
_GPT2_SIZES: Specs = {**_GPT_SIZES, "C": "n_positions max_position_embeddings = 1024", "P": "= C"}
_GPTJ = Family(
    gpt.GPTJ,
    "GPTJForCausalLM",
    {**_GPT_SIZES, "C": "n_positions max_position_embeddings = none", "d_rot": "rotary_dim = 64, null d"},
    {"mlp_bias lm_head_bias": YES},
    rotary=Rope("d_rot"),
)
_FALCON = Family(
    gpt.FALCON,
    "FalconForCausalLM",
    {
        **SIZES,
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
        "two_norms": Flag("num_ln_in_parallel_attn", "new_decoder", _two),
        "alibi": Flag("alibi"),
    },
    tied=True,
    rotary=Rope(when="!alibi"),
)
_BERT = Family(
    encoders.BERT,
    "BertForMaskedLM",
    {
        **SIZES,
        "G": "= H",
        "d_h": "= d/H",
        "C": "max_position_embeddings = 512",
        "P": "= C",
        "T": "type_vocab_size = 2",
    },
    _ALL_BIASES,
    tied=True,
    causal=False,
    cache=False,
    positions="C",
)
# RoBERTa numbers its positions from the padding token's number + 1: two rows of the table are never used.
_ROBERTA = replace(_BERT, layout=encoders.ROBERTA, model_class="RobertaForMaskedLM", unused_positions=2)
_NARROW: Specs = {**_BERT.sizes, "d_emb": "embedding_size = 128"}
_DEBERTA = replace(
    _BERT,
    layout=encoders.DEBERTA,
    model_class="DebertaForMaskedLM",
    sizes={
        **_BERT.sizes,
        "T": "types? type_vocab_size",
        "R": ("buckets? position_buckets", "spans? max_relative_positions", "= C"),
    },
    flags={
        "q v o mlp_bias": YES,
        "relative": Flag("relative_attention"),
        "positions": Flag("position_biased_input", True),
        "types": Flag("type_vocab_size", False, _positive),
        "spans": Flag("max_relative_positions", False, _positive),
        "c2p": Flag("pos_att_type", False, _says("c2p")),
        "p2c": Flag("pos_att_type", False, _says("p2c")),
        "legacy": Flag("legacy", True),
    },
    positions_when="positions",
)
_BART = Family(
    seq2seq.BART,
    "BartForConditionalGeneration",
    {
        "d": "d_model hidden_size",
        "H": "encoder_attention_heads num_attention_heads",
        "G": "= H",
        "d_h": "= d/H",
        "d_v": "= d_h",
        "d_ff": "encoder_ffn_dim",
        "V": "vocab_size",
        "L": "encoder_layers num_hidden_layers",
        "C": "max_position_embeddings = 1024",
        "P": "= C + 2",
        "P_dec": "= C",
        "H_dec": "decoder_attention_heads",
        "d_h_dec": "= d/H_dec",
        "d_ff_dec": "decoder_ffn_dim",
        "L_dec": "decoder_layers",
    },
    _ALL_BIASES,
    tied=True,
    causal=False,
    positions="C",
)
_T5 = Family(
    seq2seq.T5,
    "T5ForConditionalGeneration",
    {
        "d": "d_model hidden_size",
        "H": "num_heads num_attention_heads",
        "G": "= H",
        "d_h": "d_kv head_dim = 64",
        "d_v": "= d_h",
        "d_ff": "d_ff",
        "V": "vocab_size",
        "L": "num_layers num_hidden_layers",
        "C": "n_positions = none",
        "H_dec": "= H",
        "d_h_dec": "= d_h",
        "L_dec": "num_decoder_layers = L",
        "B": "relative_attention_num_buckets = 32",
    },
    {"gated": Flag("feed_forward_proj", False, _gated)},
    tied="always",
    causal=False,
)
_MT5_FLAGS = {"gated": Flag("feed_forward_proj", True, _gated)}

FAMILIES: Mapping[str, Family] = {
    "llama": _LLAMA,
    "llama4_text": _decoder(
        llama.LLAMA4,
        "Llama4",
        {
            "G": "num_key_value_heads = 8, null H",
            "d_h": "head_dim = 128, null d/H",
            "d_ff": ("first_moe? = d_exp", "= d_dense"),
            "d_dense": "intermediate_size_mlp = 16384",
            "d_exp": "intermediate_size = 8192",
            "E": "num_local_experts = 16",
            "k": "num_experts_per_tok = 1",
        },
        flags=_ATTENTION_BIAS,
        rotary=Rope(default_theta=5e5),
        windows=Windows(with_rotary, "attention_chunk_size", 8192),
        experts=interleaved_experts,
        part_defaults=_parts(5120, 40, 16384, 202048, 48),
    ),
    "mllama_text_model": _decoder(
        llama.MLLAMA,
        "Mllama",
        {"G": "num_key_value_heads = 8, null H", "d_h": "= d/H"},
        tied="never",
        rotary=Rope(default_theta=5e5),
        cross_layers=listed_cross_layers,
        part_defaults=_parts(4096, 32, 14336, 128256, 40),
    ),
    "mistral": _MISTRAL,
    "ministral": replace(_MISTRAL, model_class="MinistralForCausalLM"),
    "ministral3": replace(
        _MISTRAL,
        model_class="Ministral3ForCausalLM",
        sizes={**_MISTRAL.sizes, "d_h": "head_dim = 128, null d/H"},
        windows=Windows(),
        part_defaults=_parts(4096, 32, 14336, 131072, 34),
    ),
    "mixtral": _decoder(
        llama.MIXTRAL,
        "Mixtral",
        {
            "G": "num_key_value_heads = 8, null H",
            "E": "num_local_experts num_experts = 8",
            "k": "num_experts_per_tok = 2",
        },
        rotary=Rope(default_theta=1e6),
        windows=Windows(),
        experts=every_layer,
        part_defaults=_parts(4096, 32, 14336, 32000, 32),
    ),
    "qwen2": _QWEN2,
    "qwen2_vl": _QWEN2_VL,
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl": replace(_QWEN2_VL, model_class="Qwen2_5_VLForConditionalGeneration"),
    "qwen2_5_vl_text": replace(_QWEN2_VL, model_class="Qwen2_5_VLForConditionalGeneration"),
    "qwen2_moe": _decoder(
        llama.QWEN_MOE,
        "Qwen2Moe",
        {
            **_MIXED,
            "G": "num_key_value_heads = 16, null H",
            "E": "num_experts num_local_experts = 60",
            "k": "num_experts_per_tok = 4",
            "d_exp": "moe_intermediate_size = 1408",
            "d_sh": "shared_expert_intermediate_size = 5632",
        },
        flags={"q k v": Flag("qkv_bias", True), "shared": YES},
        windows=Windows(odd_before("max_window_layers", 28), missing=4096, switch="use_sliding_window"),
        experts=sparse_steps,
    ),
    "qwen3": _QWEN3,
    "qwen3_vl_text": replace(_QWEN3, model_class="Qwen3VLForConditionalGeneration", windows=None),
    "qwen3_moe": _decoder(
        llama.QWEN_MOE,
        "Qwen3Moe",
        {
            **_MIXED,
            "G": "num_key_value_heads = 4, null H",
            "E": "num_experts num_local_experts = 128",
            "k": "num_experts_per_tok = 8",
            "d_exp": "moe_intermediate_size = 768",
        },
        flags={**_ATTENTION_BIAS, **_PER_HEAD_RMS},
        windows=Windows(missing=4096, switch="use_sliding_window"),
        experts=sparse_steps,
    ),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "phi": _decoder(
        llama.PHI,
        "Phi",
        flags={**_ALL_BIASES, "lm_head_bias": YES, "qk_norm": Flag("qk_layernorm")},
        rotary=Rope(default_share=0.5),
    ),
    "phi3": _decoder(llama.PHI3, "Phi3", windows=Windows(), part_defaults=_parts(3072, 32, 8192, 32064, 32)),
    "phimoe": _decoder(
        llama.PHIMOE,
        "Phimoe",
        {
            "G": "num_key_value_heads = 8, null H",
            "E": "num_local_experts num_experts = 16",
            "k": "num_experts_per_tok = 2",
        },
        flags={**_ATTENTION_BIAS, "lm_head_bias": Flag("lm_head_bias")},
        rotary=Rope(default_theta=1e6),
        windows=Windows(),
        experts=every_layer,
    ),
    "openai-gpt": Family(
        gpt.GPT1,
        "OpenAIGPTLMHeadModel",
        {**_GPT2_SIZES, "C": "n_positions max_position_embeddings = 512", "d_ff": "= 4*d"},
        _ALL_BIASES,
        tied=True,
        cache=False,
        positions="C",
    ),
    "gpt2": Family(gpt.GPT2, "GPT2LMHeadModel", _GPT2_SIZES, _ALL_BIASES, tied=True, positions="C"),
    "gpt_neo": Family(
        gpt.GPT_NEO,
        "GPTNeoForCausalLM",
        {
            **SIZES,
            "H": "num_heads num_attention_heads",
            "L": "num_layers num_hidden_layers",
            "G": "= H",
            "d_h": "= d/H",
            "d_ff": "intermediate_size = 4*d",
            "C": "max_position_embeddings = 2048",
            "P": "= C",
        },
        {"o mlp_bias": YES},
        tied=True,
        positions="C",
    ),
    "gpt_neox": _decoder(
        gpt.GPT_NEOX,
        "GPTNeoX",
        {"G": "= H", "d_h": "= d/H"},
        flags={"q k v o": Flag("attention_bias", True), "mlp_bias": YES},
        rotary=Rope(share="rotary_pct", default_share=0.25, theta="rotary_emb_base"),
    ),
    "gptj": _GPTJ,
    "codegen": replace(_GPTJ, layout=gpt.CODEGEN, model_class="CodeGenForCausalLM"),
    "gpt_bigcode": Family(
        gpt.GPT_BIGCODE,
        "GPTBigCodeForCausalLM",
        {**_GPT2_SIZES, "G": ("multi_query? = 1", "= H")},
        {**_ALL_BIASES, "multi_query": Flag("multi_query", True)},
        tied=True,
        positions="C",
    ),
    "starcoder2": _decoder(
        llama.STARCODER2,
        "Starcoder2",
        {"G": "num_key_value_heads = 2, null H"},
        flags={"q k v o mlp_bias": Flag("use_bias", True)},
        tied=True,
        windows=Windows(),
    ),
    "falcon": _FALCON,
    "RefinedWebModel": _FALCON,
    # The first files of Falcon 40B have this name, two norms a layer, and no field that says so.
    "RefinedWeb": replace(_FALCON, flags={**_FALCON.flags, "new_decoder": Flag("new_decoder_architecture", True)}),
    "bloom": Family(
        gpt.BLOOM,
        "BloomForCausalLM",
        {
            **_GPT_SIZES,
            "d": "n_embed hidden_size",
            "d_ff": "= 4*d",
            "C": "seq_length = none",
        },
        _ALL_BIASES,
        tied=True,
    ),
    # transformers builds every MPT with keys for each head and a feed-forward width of 4d, whatever "kv_n_heads" and
    # "expansion_ratio" say; no published file says otherwise.
    "mpt": Family(
        gpt.MPT,
        "MptForCausalLM",
        {
            **SIZES,
            "d": "d_model hidden_size",
            "H": "n_heads num_attention_heads",
            "L": "n_layers num_hidden_layers",
            "G": "= H",
            "d_h": "= d/H",
            "d_ff": "= 4*d",
            "C": "max_seq_len = none",
        },
        tied=True,
    ),
    "opt": Family(
        gpt.OPT,
        "OPTForCausalLM",
        {
            **SIZES,
            "G": "= H",
            "d_h": "= d/H",
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
        positions="C",
    ),
    # XGLM computes its positions with sines, for any length: its table holds no parameters and does not end.
    "xglm": Family(
        gpt.XGLM,
        "XGLMForCausalLM",
        {
            **SIZES,
            "d": "d_model hidden_size",
            "H": "attention_heads num_attention_heads",
            "L": "num_layers num_hidden_layers",
            "G": "= H",
            "d_h": "= d/H",
            "d_ff": "ffn_dim",
        },
        _ALL_BIASES,
        tied=True,
    ),
    "stablelm": _decoder(
        llama.STABLELM,
        "StableLm",
        {"G": "num_key_value_heads = 32, null H", "d_h": "= d/H"},
        flags={
            "q k v": Flag("use_qkv_bias"),
            "qk_norm": Flag("qk_layernorm"),
            "parallel": Flag("use_parallel_residual"),
        },
        rotary=Rope(default_share=0.25),
    ),
    "olmo": _decoder(llama.OLMO, "Olmo", flags=_ATTENTION_BIAS),
    "olmo2": _decoder(llama.OLMO2, "Olmo2", flags={**_ATTENTION_BIAS, **_QK_NORM}),
    "olmo3": _decoder(
        llama.OLMO2,
        "Olmo3",
        flags={**_ATTENTION_BIAS, **_QK_NORM},
        rotary=Rope(default_theta=5e5),
        windows=Windows(all_but_every(4), missing=4096),
    ),
    "olmoe": _decoder(
        llama.OLMOE,
        "Olmoe",
        {"E": "num_experts num_local_experts = 64", "k": "num_experts_per_tok = 8"},
        flags={**_ATTENTION_BIAS, **_QK_NORM},
        experts=every_layer,
    ),
    "cohere": _decoder(
        llama.COHERE,
        "Cohere",
        flags={**_ATTENTION_BIAS, "qk_norm": Flag("use_qk_norm")},
        tied=True,
        rotary=Rope(default_theta=5e5),
    ),
    "cohere2": _decoder(
        llama.COHERE,
        "Cohere2",
        {"d_h": "= d/H"},
        flags=_ATTENTION_BIAS,
        tied=True,
        windows=Windows(all_but_every(4, "sliding_window_pattern"), missing=4096),
    ),
    "granite": _decoder(llama.LLAMA, "Granite", flags={**_ATTENTION_BIAS, **_MLP_BIAS}),
    "granitemoe": _decoder(
        llama.GRANITEMOE,
        "GraniteMoe",
        {"E": "num_local_experts = 8", "k": "num_experts_per_tok = 2"},
        flags=_ATTENTION_BIAS,
        experts=every_layer,
    ),
    "nemotron": _decoder(
        llama.NEMOTRON, "Nemotron", flags={**_ATTENTION_BIAS, **_MLP_BIAS}, rotary=Rope(default_share=0.5)
    ),
    "glm": _decoder(
        llama.GLM,
        "Glm",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v": Flag("attention_bias", True)},
        rotary=Rope(default_share=0.5),
    ),
    "glm4": _decoder(
        llama.GLM,
        "Glm4",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v": Flag("attention_bias", True), "sandwich": YES},
        rotary=Rope(default_share=0.5),
    ),
    "internlm3": _decoder(
        llama.LLAMA,
        "InternLM3",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v o": Flag("qkv_bias attention_bias"), "mlp_bias": Flag("bias mlp_bias")},
    ),
    "exaone4": _decoder(
        llama.EXAONE4,
        "Exaone4",
        {"G": "num_key_value_heads = 32, null H"},
        flags=_PER_HEAD_RMS,
        windows=Windows(all_but_every(4, "sliding_window_pattern"), missing=4096),
    ),
    "smollm3": _decoder(
        llama.LLAMA,
        "SmolLM3",
        {"G": "num_key_value_heads = 4, null H"},
        flags={**_ATTENTION_BIAS, **_MLP_BIAS},
        tied=True,
        rotary=Rope(default_theta=2e6),
        windows=Windows(without_rotary, switch="use_sliding_window"),
    ),
    "persimmon": _decoder(
        llama.PERSIMMON,
        "Persimmon",
        {"G": "= H", "d_h": "= d/H"},
        flags={**_ALL_BIASES, "qk_norm": Flag("qk_layernorm", True)},
        rotary=Rope(default_share=0.5),
    ),
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "gpt_oss": _decoder(
        llama.GPT_OSS,
        "GptOss",
        {
            "G": "num_key_value_heads = 8, null H",
            "d_h": "head_dim = 64, null d/H",
            "E": "num_local_experts num_experts = 128",
            "k": "num_experts_per_tok experts_per_token = 4",
        },
        flags={"q k v o": Flag("attention_bias", True), "sinks": YES},
        rotary=Rope(default_theta=150_000.0),
        windows=Windows(_ALTERNATE, missing=128),
        experts=every_layer,
    ),
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, model_class="XLMRobertaForMaskedLM"),
    "camembert": replace(_ROBERTA, model_class="CamembertForMaskedLM"),
    "distilbert": replace(
        _BERT,
        layout=encoders.DISTILBERT,
        model_class="DistilBertForMaskedLM",
        sizes={
            **_BERT.sizes,
            "d": "dim hidden_size",
            "H": "n_heads num_attention_heads",
            "L": "n_layers num_hidden_layers",
            "d_ff": "hidden_dim",
        },
    ),
    "albert": replace(
        _BERT,
        layout=encoders.ALBERT,
        model_class="AlbertForMaskedLM",
        sizes={**_NARROW, "L_stored": "num_hidden_groups = 1"},
    ),
    "electra": replace(
        _BERT,
        layout=encoders.ELECTRA,
        model_class="ElectraForPreTraining",
        sizes=_NARROW,
    ),
    "modernbert": Family(
        encoders.MODERNBERT,
        "ModernBertForMaskedLM",
        {**SIZES, "G": "= H", "d_h": "= d/H"},
        {
            "q k v o": Flag("attention_bias"),
            "mlp_bias": Flag("mlp_bias"),
            "norm_bias": Flag("norm_bias"),
            "decoder_bias": Flag("decoder_bias", True),
            "classifier_bias": Flag("classifier_bias"),
        },
        tied=True,
        causal=False,
        cache=False,
        rotary=Rope(theta="global_rope_theta", default_theta=160_000.0),
    ),
    "deberta": _DEBERTA,
    "deberta-v2": replace(
        _DEBERTA,
        layout=encoders.DEBERTA_V2,
        model_class="DebertaV2ForMaskedLM",
        sizes={**_DEBERTA.sizes, "K": "convolution? conv_kernel_size"},
        flags={
            **_DEBERTA.flags,
            "q k v o mlp_bias": YES,
            "buckets": Flag("position_buckets", False, _positive),
            "shared_key": Flag("share_att_key"),
            "relative_norm": Flag("norm_rel_ebd", False, _says("layer_norm")),
            "convolution": Flag("conv_kernel_size", False, _positive),
        },
    ),
    "vit": Family(
        encoders.VIT,
        "ViTForImageClassification",
        {
            **SIZES,
            "G": "= H",
            "d_h": "= d/H",
            "V": "= none",
            "I": "image_size = 224",
            "p": "patch_size = 16",
            "c": "num_channels = 3",
            "n_side": "= I//p",
            "P": "= n_side*n_side + 1",
            "C": "= P",
            "d_pool": "pooler_output_size = d",
        },
        {"q k v": Flag("qkv_bias", True), "o mlp_bias": YES},
        causal=False,
        cache=False,
        positions="P",
    ),
    "clip_text_model": Family(
        encoders.CLIP_TEXT,
        "CLIPTextModel",
        {
            **SIZES,
            "G": "= H",
            "d_h": "= d/H",
            "C": "max_position_embeddings = 77",
            "P": "= C",
            "d_proj": "projection_dim = 512",
        },
        _ALL_BIASES,
        tied=True,
        cache=False,
        positions="C",
        part_defaults=_parts(512, 8, 2048, 49408, 12),
    ),
    "t5": _T5,
    "mt5": replace(_T5, model_class="MT5ForConditionalGeneration", flags=_MT5_FLAGS),
    "umt5": replace(_T5, model_class="UMT5ForConditionalGeneration", flags={**_MT5_FLAGS, "every_relative": YES}),
    "bart": _BART,
    "mbart": replace(_BART, model_class="MBartForConditionalGeneration", flags={**_ALL_BIASES, "final_norms": YES}),
    "whisper": replace(
        _BART,
        layout=seq2seq.WHISPER,
        model_class="WhisperForConditionalGeneration",
        sizes={
            **_BART.sizes,
            "C": "max_source_positions = 1500",
            "P": "= C",
            "P_dec": "max_target_positions = 448",
            "bands": "num_mel_bins = 80",
        },
        flags={"q v o mlp_bias": YES},
    ),
}

_STATE_SPACE = "state-space layers"
_RECURRENT = "recurrent layers"
_LINEAR = "linear attention"
_SPARSE = "attention to a part of the tokens"
# Families whose layers, or some of them, have no N×N scores: named and refused.
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "codestral_mamba", "hyena", "s4"), _STATE_SPACE),
    **dict.fromkeys(
        ("jamba", "zamba", "zamba2", "bamba", "falcon_h1", "nemotron_h", "granitemoehybrid", "hymba", "phi4flash"),
        _STATE_SPACE,
    ),
    **dict.fromkeys(("rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "recurrent_gemma"), _RECURRENT),
    **dict.fromkeys(("retnet", "minimax", "kimi_linear", "olmo_hybrid", "bailing_hybrid"), _LINEAR),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _LINEAR),
    **dict.fromkeys(("lfm2", "lfm2_moe", "lfm2-vl", "lfm2_vl"), "convolutions"),
    **dict.fromkeys(("longformer", "led", "big_bird", "bigbird_pegasus", "longt5", "reformer"), _SPARSE),
    **dict.fromkeys(("fnet", "nystromformer", "yoso", "mra", "perceiver", "funnel"), "another mixing of tokens"),
}
# In which part of a multimodal file the language model stands, and of which family it is where the part does not say.
TEXT_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
PART_FAMILIES: Mapping[str, str] = {
    "clip": "clip_text_model",
    "gemma3": "gemma3_text",
    "idefics2": "mistral",
    "idefics3": "llama",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "paligemma": "gemma",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "smolvlm": "llama",
    "video_llava": "llama",
    "vipllava": "llama",
}
