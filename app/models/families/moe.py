"""The families of mixtures of experts: a layer has E feed-forward blocks, and each token uses k (arXiv:1701.06538)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.models.families.family import (
    ATTENTION_BIAS,
    CLIPPED,
    MLP_BIAS,
    WITH_QK_NORM,
    YES,
    CausalDecoder,
    Family,
    Flag,
    RotaryRule,
    default_sizes,
    is_positive,
    is_set,
)
from app.models.layer_patterns import (
    WindowRule,
    all_after,
    all_but_every,
    every_layer,
    every_other_before,
    interleaved_experts,
    sparse_steps,
    with_rotary,
)
from app.models.layouts import llama
from app.models.parameter_specs import ALWAYS
from app.models.score_scale import by_multiplier, by_yarn
from app.models.size_specs import SizeSpecs

_MIXED: SizeSpecs = {
    "d_ff": ("first_moe? = d_exp", "= d_dense"),
    "d_dense": "intermediate_size = none",
    "E": "num_experts num_local_experts",
    "k": "num_experts_per_tok",
}
_DEEPSEEK_SIZES: SizeSpecs = {
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
_DEEPSEEK_V2 = CausalDecoder(
    llama.DEEPSEEK,
    "DeepseekV2ForCausalLM",
    {**_DEEPSEEK_SIZES, "n_sh": "shared? n_shared_experts = 2"},
    flags={
        "o": Flag("attention_bias"),
        **MLP_BIAS,
        "adjacent_pairs": YES,
        "latent_queries": Flag("q_lora_rank", True, is_set, null=False),
        "shared": Flag("n_shared_experts", True, is_positive, null=False),
    },
    rotary=RotaryRule("d_rope", adjacent="adjacent_pairs"),
    expert_layers=all_after("first_k_dense_replace", 0),
    scale=by_yarn,
)
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V2,
    model_class="DeepseekV3ForCausalLM",
    sizes={**_DEEPSEEK_V2.sizes, "n_sh": "shared? n_shared_experts = 1", "k": "num_experts_per_tok = 8"},
    flags={
        **{name: test for name, test in _DEEPSEEK_V2.flags.items() if name not in ("mlp_bias", "adjacent_pairs")},
        "adjacent_pairs": Flag("rope_interleave", True),
    },
    expert_layers=all_after("first_k_dense_replace", 3),
)

MOE_FAMILIES: Mapping[str, Family] = {
    "llama4_text": CausalDecoder(
        llama.LLAMA4,
        "Llama4ForCausalLM",
        {
            "G": "num_key_value_heads = 8, null H",
            "d_h": "head_dim = 128, null d/H",
            "d_ff": ("first_moe? = d_exp", "= d_dense"),
            "d_dense": "intermediate_size_mlp = 16384",
            "d_exp": "intermediate_size = 8192",
            "E": "num_local_experts = 16",
            "k": "num_experts_per_tok = 1",
        },
        flags={
            **ATTENTION_BIAS,
            "qk_norm": Flag("use_qk_norm", True),
            "temperature": Flag("attn_temperature_tuning", True),
        },
        qk_norm="after-rope",
        rotary=RotaryRule(default_theta=5e5, adjacent=ALWAYS, layers=with_rotary),
        windows=WindowRule(with_rotary, "attention_chunk_size", 8192, chunked=True),
        expert_layers=interleaved_experts,
        text_part_defaults=default_sizes(5120, 40, 16384, 202048, 48),
    ),
    "mixtral": CausalDecoder(
        llama.MIXTRAL,
        "MixtralForCausalLM",
        {
            "G": "num_key_value_heads = 8, null H",
            "E": "num_local_experts num_experts = 8",
            "k": "num_experts_per_tok = 2",
        },
        rotary=RotaryRule(default_theta=1e6),
        windows=WindowRule(),
        expert_layers=every_layer,
        text_part_defaults=default_sizes(4096, 32, 14336, 32000, 32),
    ),
    "qwen2_moe": CausalDecoder(
        llama.QWEN_MOE,
        "Qwen2MoeForCausalLM",
        {
            **_MIXED,
            "G": "num_key_value_heads = 16, null H",
            "E": "num_experts num_local_experts = 60",
            "k": "num_experts_per_tok = 4",
            "d_exp": "moe_intermediate_size = 1408",
            "d_sh": "shared_expert_intermediate_size = 5632",
        },
        flags={"q k v": Flag("qkv_bias", True), "shared": YES},
        windows=WindowRule(every_other_before("max_window_layers", 28), missing=4096, switch="use_sliding_window"),
        expert_layers=sparse_steps,
    ),
    "qwen3_moe": CausalDecoder(
        llama.QWEN_MOE,
        "Qwen3MoeForCausalLM",
        {
            **_MIXED,
            "G": "num_key_value_heads = 4, null H",
            "E": "num_experts num_local_experts = 128",
            "k": "num_experts_per_tok = 8",
            "d_exp": "moe_intermediate_size = 768",
        },
        flags={**ATTENTION_BIAS, **WITH_QK_NORM},
        qk_norm="per-head",
        windows=WindowRule(missing=4096, switch="use_sliding_window"),
        expert_layers=sparse_steps,
    ),
    "phimoe": CausalDecoder(
        llama.PHIMOE,
        "PhimoeForCausalLM",
        {
            "G": "num_key_value_heads = 8, null H",
            "E": "num_local_experts num_experts = 16",
            "k": "num_experts_per_tok = 2",
        },
        flags={**ATTENTION_BIAS, "lm_head_bias": Flag("lm_head_bias")},
        rotary=RotaryRule(default_theta=1e6),
        windows=WindowRule(),
        expert_layers=every_layer,
        norm="LayerNorm",
    ),
    "olmoe": CausalDecoder(
        llama.OLMOE,
        "OlmoeForCausalLM",
        {"E": "num_experts num_local_experts = 64", "k": "num_experts_per_tok = 8"},
        flags={**ATTENTION_BIAS, **WITH_QK_NORM, "clipped": Flag("clip_qkv", test=is_set)},
        qk_norm="all-heads",
        expert_layers=every_layer,
        not_modelled=CLIPPED,
    ),
    "granitemoe": CausalDecoder(
        llama.GRANITEMOE,
        "GraniteMoeForCausalLM",
        {"E": "num_local_experts = 8", "k": "num_experts_per_tok = 2"},
        flags=ATTENTION_BIAS,
        expert_layers=every_layer,
        scale=by_multiplier,
        embedding_scale="stated",
        scales_residuals=True,
    ),
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "gpt_oss": CausalDecoder(
        llama.GPT_OSS,
        "GptOssForCausalLM",
        {
            "G": "num_key_value_heads = 8, null H",
            "d_h": "head_dim = 64, null d/H",
            "E": "num_local_experts num_experts = 128",
            "k": "num_experts_per_tok experts_per_token = 4",
        },
        flags={"q k v o": Flag("attention_bias", True)},
        rotary=RotaryRule(default_theta=150_000.0),
        windows=WindowRule(all_but_every(2), missing=128),
        expert_layers=every_layer,
    ),
}
