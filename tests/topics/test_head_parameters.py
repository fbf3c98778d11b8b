"""The parameters of one head are the layer's, cut into heads: the same products, and ranks as small as a head."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch

from app.models.read_config import build_architecture
from app.topics.registry import refusal, sizes_for, topic_for

TOPIC = "head-parameters"
LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 99}
TOKENS = 7


def shapes_and_ranks(**sizes: int) -> tuple[Mapping[str, tuple[int, ...]], Mapping[str, int]]:
    """The shapes of the topic's matrices and its ranks, for a small LLaMA."""
    architecture = build_architecture({**LLAMA, **sizes}, "The model")
    table, by_symbol = topic_for(TOPIC, architecture, TOKENS), sizes_for(TOPIC, architecture, TOKENS, TOKENS)
    return table.shapes(by_symbol), {count.key: count.size("count", by_symbol) for count in table.counts}


def random(*shape: int) -> torch.Tensor:
    """A matrix of this shape, exact enough to compare products and ranks."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.manual_seed(sum(shape)))


SIZES = [
    {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 6},
    {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2},
    {"hidden_size": 40, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16},
    {"hidden_size": 12, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 20},  # a head wider than d
]


@pytest.mark.parametrize("sizes", SIZES)
def test_all_heads_together_compute_what_the_layer_does(sizes: dict[str, int]) -> None:
    shapes, _ = shapes_and_ranks(**sizes)
    for key in ("W_Q", "W_K"):
        x, layer = random(TOKENS, shapes[key][0]), random(*shapes[f"layer_{key}"])
        heads = torch.split(layer, shapes[key][1], dim=1)
        assert {tuple(head.shape) for head in heads} == {shapes[key]}
        assert torch.allclose(torch.cat([x @ head for head in heads], dim=1), x @ layer)
    layer, context = random(*shapes["layer_W_O"]), random(TOKENS, shapes["layer_W_O"][0])
    heads, contexts = torch.split(layer, shapes["W_O"][0]), torch.split(context, shapes["W_O"][0], dim=1)
    assert {tuple(head.shape) for head in heads} == {shapes["W_O"]}
    outputs = torch.stack([c @ head for c, head in zip(contexts, heads, strict=True)])
    assert torch.allclose(outputs.sum(0), context @ layer)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_ranks_are_those_of_random_products(sizes: dict[str, int]) -> None:
    shapes, ranks = shapes_and_ranks(**sizes)
    query_key = random(*shapes["W_Q"]) @ random(*shapes["W_K"]).T
    value_output = random(*shapes["W_V"]) @ random(*shapes["W_O"])
    assert (tuple(query_key.shape), tuple(value_output.shape)) == (shapes["W_QK"], shapes["W_VO"])
    assert int(torch.linalg.matrix_rank(query_key)) == ranks["rank_W_QK"]
    assert int(torch.linalg.matrix_rank(value_output)) == ranks["rank_W_VO"]


def test_a_head_without_matrices_of_its_own_is_refused() -> None:
    latent = {"kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "q_lora_rank": None}
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "first_k_dense_replace": 9}
    config = {**LLAMA, **latent, **sizes, "model_type": "deepseek_v2", "n_routed_experts": None}
    assert "latent attention" in (refusal(TOPIC, build_architecture(config, "The model"), TOKENS) or "")
