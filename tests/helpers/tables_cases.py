"""Small models of types that a table of data/families describes, one of each kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from app.models.architecture import Architecture
from app.models.read_config import build_architecture

LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 5,
    "linear_value_head_dim": 7,
}
SIZES: dict[str, Any] = {
    "hidden_size": 60,
    "intermediate_size": 77,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "vocab_size": 101,
}
EXPERTS = {"moe_intermediate_size": 9, "num_experts_per_tok": 2}
CONFIGS: dict[str, dict[str, Any]] = {
    "attention and experts": {
        "model_type": "glm4_moe", **SIZES, **EXPERTS, "num_hidden_layers": 3, "n_routed_experts": 4,
    },
    "attention in one of four layers": {
        "model_type": "qwen3_next", **SIZES, **EXPERTS, **LINEAR, "num_hidden_layers": 8, "num_experts": 4,
        "shared_expert_intermediate_size": 11,
    },
    "attention beside a state space": {
        "model_type": "falcon_h1", **SIZES, "num_hidden_layers": 3, "mamba_d_ssm": 12, "mamba_n_heads": 3,
    },
}  # fmt: skip


@cache
def of_tables() -> tuple[Architecture, ...]:
    """One model of each kind, read by its table."""
    return tuple(build_architecture(config, f"The model with {kind}") for kind, config in CONFIGS.items())
