"""Small models of types that a table of data/families describes, one of each kind."""

from __future__ import annotations

from functools import cache
from typing import Any

from app.models.architecture import Architecture
from app.models.read_config import build_architecture

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
    "attention in every fourth layer": {
        "model_type": "jamba", **SIZES, "hidden_size": 96, "head_dim": 16, "num_hidden_layers": 8, "num_experts": 4,
        "attn_layer_period": 4, "attn_layer_offset": 2, "mamba_dt_rank": 6,
    },
    "gates": {
        "model_type": "afmoe", **SIZES, **EXPERTS, "num_hidden_layers": 4, "num_experts": 4, "num_dense_layers": 1,
    },
    "state spaces only": {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 101},
    "attention beside a state space": {
        "model_type": "falcon_h1", **SIZES, "num_hidden_layers": 3, "mamba_d_ssm": 12, "mamba_n_heads": 3,
    },
}  # fmt: skip


@cache
def of_tables() -> tuple[Architecture, ...]:
    """One model of each kind, read by its table."""
    return tuple(build_architecture(config, f"The model with {kind}") for kind, config in CONFIGS.items())
