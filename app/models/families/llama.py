"""The families of decoders with LLaMA's tensor names: rotary positions, one feed-forward block in each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.models.families.family import (
    ALL_BIASES,
    ATTENTION_BIAS,
    CLIPPED,
    MLP_BIAS,
    MULTI_HEAD,
    OUTPUT_NORM,
    PARALLEL_NORM,
    PARALLEL_OR_PRE_NORM,
    QKV_BIAS,
    SANDWICH_NORM,
    WITH_QK_NORM,
    YES,
    CausalDecoder,
    Family,
    Flag,
    RotaryRule,
    default_sizes,
    is_set,
)
from app.models.layer_patterns import (
    WindowRule,
    all_after,
    all_but_every,
    listed_cross_layers,
    with_rotary,
    without_rotary,
)
from app.models.layouts import llama
from app.models.parameter_specs import ALWAYS
from app.models.score_scale import by_multiplier, by_query_scalar
from app.models.width_rules import META_RULES
from app.translation import N_

_QWEN_WINDOWS = WindowRule(all_after("max_window_layers", 28), missing=4096, switch="use_sliding_window")
_ALTERNATE = all_but_every(2)
_MISTRAL = CausalDecoder(
    llama.LLAMA,
    "MistralForCausalLM",
    {"G": "num_key_value_heads = 8, null H"},
    windows=WindowRule(missing=4096),
    text_part_defaults=default_sizes(4096, 32, 14336, 32000, 32),
)
_LLAMA = CausalDecoder(
    llama.LLAMA,
    "LlamaForCausalLM",
    flags={**ATTENTION_BIAS, **MLP_BIAS},
    text_part_defaults=default_sizes(4096, 32, 11008, 32000, 32),
    width_rules=META_RULES,
)
_QWEN2 = CausalDecoder(
    llama.LLAMA,
    "Qwen2ForCausalLM",
    {"G": "num_key_value_heads = 32, null H"},
    flags=QKV_BIAS,
    windows=_QWEN_WINDOWS,
    text_part_defaults=default_sizes(4096, 32, 22016, 151936, 32),
)
_QWEN2_VL = replace(
    _QWEN2,
    sizes={**_QWEN2.sizes, "G": "num_key_value_heads = 8, null H"},
    rotary=RotaryRule(default_theta=1e6),
    windows=WindowRule(all_after("max_window_layers", 80), missing=4096, switch="use_sliding_window"),
    text_part_defaults=default_sizes(8192, 64, 29568, 152064, 80),
)
_QWEN3 = CausalDecoder(
    llama.QK_NORM,
    "Qwen3ForCausalLM",
    {"G": "num_key_value_heads = 32, null H", "d_h": "head_dim = 128, null d/H"},
    flags={**ATTENTION_BIAS, **WITH_QK_NORM},
    qk_norm="per-head",
    windows=_QWEN_WINDOWS,
    text_part_defaults=default_sizes(4096, 32, 22016, 151936, 32),
)
_GEMMA = CausalDecoder(
    llama.LLAMA,
    "GemmaForCausalLM",
    {"G": "num_key_value_heads = 16, null H", "d_h": "head_dim = 256, null d/H"},
    flags={**ATTENTION_BIAS, "bidirectional": Flag("use_bidirectional_attention")},
    tied=True,
    text_part_defaults=default_sizes(3072, 16, 24576, 256000, 28),
    embedding_scale="root-d",
)
_GEMMA2 = replace(
    _GEMMA,
    layout=llama.GEMMA2,
    model_class="Gemma2ForCausalLM",
    sizes={**_GEMMA.sizes, "G": "num_key_value_heads = 4, null H"},
    windows=WindowRule(_ALTERNATE, missing=4096),
    text_part_defaults=default_sizes(2304, 8, 9216, 256000, 26),
    scale=by_query_scalar,
    softcap=50.0,
    norm_placement=SANDWICH_NORM,
)
_GEMMA3 = replace(
    _GEMMA2,
    model_class="Gemma3ForCausalLM",
    flags={**_GEMMA.flags, **WITH_QK_NORM},
    qk_norm="per-head",
    rotary=RotaryRule(default_theta=1e6, local_theta="rope_local_base_freq", default_local_theta=10_000.0),
    windows=WindowRule(all_but_every(6, "sliding_window_pattern"), missing=4096),
    text_part_defaults=default_sizes(2304, 8, 9216, 262208, 26),
    softcap=None,
)

LLAMA_FAMILIES: Mapping[str, Family] = {
    "llama": _LLAMA,
    "mllama_text_model": CausalDecoder(
        llama.MLLAMA,
        "MllamaForCausalLM",
        {"G": "num_key_value_heads = 8, null H", "d_h": "= d/H"},
        tied="never",
        rotary=RotaryRule(default_theta=5e5),
        cross_layers=listed_cross_layers,
        text_part_defaults=default_sizes(4096, 32, 14336, 128256, 40),
    ),
    "mistral": _MISTRAL,
    "ministral": replace(_MISTRAL, model_class="MinistralForCausalLM"),
    "ministral3": replace(
        _MISTRAL,
        model_class="Ministral3ForCausalLM",
        sizes={**_MISTRAL.sizes, "d_h": "head_dim = 128, null d/H"},
        rotary=RotaryRule(default_theta=1e6),
        windows=WindowRule(),
        not_modelled={"": N_("queries scaled up with their position")},
        text_part_defaults=default_sizes(4096, 32, 14336, 131072, 34),
    ),
    "qwen2": _QWEN2,
    # Only the language model, Qwen 2 or 3, is counted, not the parts that read images.
    "qwen2_vl": _QWEN2_VL,
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen3": _QWEN3,
    "qwen3_vl_text": replace(_QWEN3, windows=None, rotary=RotaryRule(default_theta=5e5)),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "phi": CausalDecoder(
        llama.PHI,
        "PhiForCausalLM",
        flags={**ALL_BIASES, "lm_head_bias": YES, "qk_norm": Flag("qk_layernorm")},
        rotary=RotaryRule(default_share=0.5),
        norm="LayerNorm",
        norm_placement=PARALLEL_NORM,
    ),
    "phi3": CausalDecoder(
        llama.PHI3, "Phi3ForCausalLM", windows=WindowRule(), text_part_defaults=default_sizes(3072, 32, 8192, 32064, 32)
    ),
    "starcoder2": CausalDecoder(
        llama.STARCODER2,
        "Starcoder2ForCausalLM",
        {"G": "num_key_value_heads = 2, null H"},
        flags={"q k v o mlp_bias": Flag("use_bias", True)},
        tied=True,
        windows=WindowRule(),
        norm="LayerNorm",
    ),
    "stablelm": CausalDecoder(
        llama.STABLELM,
        "StableLmForCausalLM",
        {"G": "num_key_value_heads = 32, null H", "d_h": "= d/H"},
        flags={
            "q k v": Flag("use_qkv_bias"),
            "qk_norm": Flag("qk_layernorm"),
            "parallel": Flag("use_parallel_residual"),
        },
        rotary=RotaryRule(default_share=0.25),
        norm="LayerNorm",
        norm_placement=PARALLEL_OR_PRE_NORM,
    ),
    "olmo": CausalDecoder(
        llama.OLMO,
        "OlmoForCausalLM",
        flags={**ATTENTION_BIAS, "clipped": Flag("clip_qkv", test=is_set)},
        norm="LayerNorm",
        not_modelled=CLIPPED,
    ),
    "olmo2": CausalDecoder(
        llama.OLMO2,
        "Olmo2ForCausalLM",
        flags={**ATTENTION_BIAS, **WITH_QK_NORM},
        qk_norm="all-heads",
        norm_placement=OUTPUT_NORM,
    ),
    "olmo3": CausalDecoder(
        llama.OLMO2,
        "Olmo3ForCausalLM",
        flags={**ATTENTION_BIAS, **WITH_QK_NORM},
        qk_norm="all-heads",
        # Scaling applies only to the layers without a window.
        rotary=RotaryRule(default_theta=5e5, local_theta="rope_theta", default_local_theta=5e5),
        windows=WindowRule(all_but_every(4), missing=4096),
        norm_placement=OUTPUT_NORM,
    ),
    "cohere": CausalDecoder(
        llama.COHERE,
        "CohereForCausalLM",
        flags={**ATTENTION_BIAS, "qk_norm": Flag("use_qk_norm")},
        tied=True,
        rotary=RotaryRule(default_theta=5e5, adjacent=ALWAYS),
        norm="LayerNorm",
        norm_placement=PARALLEL_NORM,
    ),
    "cohere2": CausalDecoder(
        llama.COHERE,
        "Cohere2ForCausalLM",
        flags=ATTENTION_BIAS,
        tied=True,
        # Layers without a window have no rotary positions.
        rotary=RotaryRule(adjacent=ALWAYS, windowed_only=True),
        windows=WindowRule(all_but_every(4, "sliding_window_pattern"), missing=4096),
        norm="LayerNorm",
        norm_placement=PARALLEL_NORM,
    ),
    "granite": CausalDecoder(
        llama.LLAMA,
        "GraniteForCausalLM",
        flags={**ATTENTION_BIAS, **MLP_BIAS},
        scale=by_multiplier,
        embedding_scale="stated",
        scales_residuals=True,
    ),
    "nemotron": CausalDecoder(
        llama.NEMOTRON,
        "NemotronForCausalLM",
        flags={**ATTENTION_BIAS, **MLP_BIAS},
        rotary=RotaryRule(default_share=0.5),
        norm="LayerNorm",
    ),
    "glm": CausalDecoder(
        llama.GLM,
        "GlmForCausalLM",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v": Flag("attention_bias", True)},
        rotary=RotaryRule(default_share=0.5, adjacent=ALWAYS),
    ),
    "glm4": CausalDecoder(
        llama.GLM,
        "Glm4ForCausalLM",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v": Flag("attention_bias", True), "sandwich": YES},
        rotary=RotaryRule(default_share=0.5, adjacent=ALWAYS),
        norm_placement=SANDWICH_NORM,
    ),
    "internlm3": CausalDecoder(
        llama.LLAMA,
        "InternLM3ForCausalLM",
        {"G": "num_key_value_heads = 2, null H", "d_h": "head_dim = 128, null d/H"},
        flags={"q k v o": Flag("qkv_bias attention_bias"), "mlp_bias": Flag("bias mlp_bias")},
        reads_is_causal=False,
    ),
    "exaone4": CausalDecoder(
        llama.EXAONE4,
        "Exaone4ForCausalLM",
        {"G": "num_key_value_heads = 32, null H"},
        flags=WITH_QK_NORM,
        qk_norm="per-head",
        # If there are windows, layers without one have no rotary positions.
        rotary=RotaryRule(windowed_only=True),
        windows=WindowRule(all_but_every(4, "sliding_window_pattern"), missing=4096),
        norm_placement=OUTPUT_NORM,
    ),
    "smollm3": CausalDecoder(
        llama.LLAMA,
        "SmolLM3ForCausalLM",
        {"G": "num_key_value_heads = 4, null H"},
        flags={**ATTENTION_BIAS, **MLP_BIAS},
        tied=True,
        rotary=RotaryRule(default_theta=2e6, layers=with_rotary),
        windows=WindowRule(without_rotary, switch="use_sliding_window"),
    ),
    "persimmon": CausalDecoder(
        llama.PERSIMMON,
        "PersimmonForCausalLM",
        MULTI_HEAD,
        flags={**ALL_BIASES, "qk_norm": Flag("qk_layernorm", True)},
        rotary=RotaryRule(default_share=0.5),
        norm="LayerNorm",
    ),
}
