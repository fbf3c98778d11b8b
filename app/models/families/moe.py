"""The mixtures of experts: E feed-forward blocks in a layer, of which a token meets k (arXiv:1701.06538)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.models.families.family import (
    ATTENTION_BIAS,
    MLP_BIAS,
    PER_HEAD_RMS,
    QK_NORM,
    YES,
    Family,
    Flag,
    Rope,
    Specs,
    decoder,
    parts,
    positive,
)
from app.models.layer_patterns import (
    Windows,
    after_first,
    all_but_every,
    every_layer,
    interleaved_experts,
    odd_before,
    sparse_steps,
    with_rotary,
)
from app.models.layouts import llama

_MIXED: Specs = {
    "d_ff": ("first_moe? = d_exp", "= d_dense"),
    "d_dense": "intermediate_size = none",
    "E": "num_experts num_local_experts",
    "k": "num_experts_per_tok",
}
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
_DEEPSEEK_V2 = decoder(
    llama.DEEPSEEK,
    "DeepseekV2",
    {**_DEEPSEEK_SIZES, "n_sh": "shared? n_shared_experts = 2"},
    flags={
        "o": Flag("attention_bias"),
        **MLP_BIAS,
        "mla": YES,
        "latent_queries": Flag("q_lora_rank", True, positive, null=False),
        "shared": Flag("n_shared_experts", True, positive, null=False),
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

FAMILIES: Mapping[str, Family] = {
    "llama4_text": decoder(
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
        flags=ATTENTION_BIAS,
        rotary=Rope(default_theta=5e5),
        windows=Windows(with_rotary, "attention_chunk_size", 8192),
        experts=interleaved_experts,
        part_defaults=parts(5120, 40, 16384, 202048, 48),
    ),
    "mixtral": decoder(
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
        part_defaults=parts(4096, 32, 14336, 32000, 32),
    ),
    "qwen2_moe": decoder(
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
    "qwen3_moe": decoder(
        llama.QWEN_MOE,
        "Qwen3Moe",
        {
            **_MIXED,
            "G": "num_key_value_heads = 4, null H",
            "E": "num_experts num_local_experts = 128",
            "k": "num_experts_per_tok = 8",
            "d_exp": "moe_intermediate_size = 768",
        },
        flags={**ATTENTION_BIAS, **PER_HEAD_RMS},
        windows=Windows(missing=4096, switch="use_sliding_window"),
        experts=sparse_steps,
    ),
    "phimoe": decoder(
        llama.PHIMOE,
        "Phimoe",
        {
            "G": "num_key_value_heads = 8, null H",
            "E": "num_local_experts num_experts = 16",
            "k": "num_experts_per_tok = 2",
        },
        flags={**ATTENTION_BIAS, "lm_head_bias": Flag("lm_head_bias")},
        rotary=Rope(default_theta=1e6),
        windows=Windows(),
        experts=every_layer,
    ),
    "olmoe": decoder(
        llama.OLMOE,
        "Olmoe",
        {"E": "num_experts num_local_experts = 64", "k": "num_experts_per_tok = 8"},
        flags={**ATTENTION_BIAS, **QK_NORM},
        experts=every_layer,
    ),
    "granitemoe": decoder(
        llama.GRANITEMOE,
        "GraniteMoe",
        {"E": "num_local_experts = 8", "k": "num_experts_per_tok = 2"},
        flags=ATTENTION_BIAS,
        experts=every_layer,
    ),
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "gpt_oss": decoder(
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
        windows=Windows(all_but_every(2), missing=128),
        experts=every_layer,
    ),
}
