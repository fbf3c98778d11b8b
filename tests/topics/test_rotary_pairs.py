"""What RoPE rotates, against the functions that transformers rotates queries and keys with."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.models.read_config import build_architecture
from app.topics.problem import problem_for
from app.topics.registry import topic_for
from app.topics.requirements import TopicError
from tests.helpers.reference import running
from tests.helpers.shipped import MODELS

TOKENS, HEADS, WIDTH, LAYERS = 7, 3, 24, 1
COMMON = {"vocab_size": 50, "max_position_embeddings": 32}
CASES: dict[
    str, tuple[str, dict[str, Any]]
] = {  # by family: how the config says that 16 of 24 dimensions are rotated, or all
    "gpt_neox": ("GPTNeoXForCausalLM", {"rotary_pct": 2 / 3, "intermediate_size": 8}),
    "llama": ("LlamaForCausalLM", {"intermediate_size": 8, "num_key_value_heads": 1}),
    "cohere": ("CohereForCausalLM", {"intermediate_size": 8, "num_key_value_heads": 1}),
}


def rotation(model: Any) -> Any:
    """By how much each dimension of a rotated query changes if one dimension before it does, at the last position."""
    module = __import__(type(model).__module__, fromlist=["apply_rotary_pos_emb"])
    cos, sin = next(m for m in model.modules() if "RotaryEmbedding" in type(m).__name__)(
        torch.zeros(1, TOKENS, 1), torch.arange(TOKENS)[None]
    )
    unit = torch.eye(WIDTH)[:, None, None].expand(WIDTH, 1, TOKENS, WIDTH)  # as queries of one head, one a dimension
    rotated = module.apply_rotary_pos_emb(unit, unit, cos, sin)[0]
    return rotated[:, 0, -1] - torch.eye(WIDTH)


@pytest.mark.parametrize("family", CASES)
def test_partner_and_unrotated_dimensions_are_those_of_transformers(family: str) -> None:
    name, own = CASES[family]
    config = {"model_type": family, "hidden_size": HEADS * WIDTH, "num_attention_heads": HEADS,
              "num_hidden_layers": LAYERS, **COMMON, **own}  # fmt: skip
    change = rotation(running(config, name))
    changed = [dimension for dimension in range(WIDTH) if change[dimension].abs().max() > 0]
    (partner,) = [dimension for dimension in range(WIDTH) if dimension != 2 and change[2, dimension].abs() > 1e-6]
    model = build_architecture({**config, "architectures": [name]}, "tiny")
    rows = ("angles", "partner", "unrotated", "layer_rotated")
    key = {str(blank): number for blank, number in problem_for("rotary-pairs", model, rows, TOKENS).answers.items()}
    assert changed == list(range(2 * key["angles.columns"]))
    assert key["partner.count"] == partner
    assert key.get("unrotated.count", 0) == WIDTH - len(changed)
    assert key["layer_rotated.count"] == TOKENS * len(changed) * (HEADS + own.get("num_key_value_heads", HEADS))


@pytest.mark.parametrize(
    ("model", "reason"), [("gpt2", "no rotary"), ("deepseek-v2-lite", "latent"), ("t5-small", "encoder layers")]
)
def test_a_model_that_rotates_nothing_or_a_part_of_its_own_is_refused(model: str, reason: str) -> None:
    with pytest.raises(TopicError, match=reason):
        topic_for("rotary-pairs", MODELS[model], TOKENS)
