"""What grows with what, against sums of products done by hand and over every family."""

from __future__ import annotations

from fractions import Fraction

import pytest

from app.topics.problem import problem_for
from app.topics.registry import refusal, sizes_for, topic_for
from app.topics.requirements import TopicError
from tests.helpers.shipped import MODELS

GROWING = [key for key, architecture in MODELS.items() if refusal("growth", architecture, 10) is None]


def answers(model: str, tokens: int) -> dict[str, int]:
    """Every answer of a model's sheet, by the keys of its rows."""
    rows = tuple(topic_for("growth", MODELS[model], tokens).askable)
    return {blank.tensor: n for blank, n in problem_for("growth", MODELS[model], rows, tokens).answers.items()}


@pytest.mark.parametrize(
    ("model", "crossing", "of_layer"),
    [
        ("llama-7b", 2 * 4096, 2 * 4096 + 3 * 11008 // 2),  # d = H·d_h and G = H: 2·d
        ("llama-3.2-1b", 2048 * (32 + 8) // 32, 2560 + 3 * 8192 // 2),
        ("gpt2", 2 * 768, 2 * 768 + 3072),  # two matrices of 4·d
    ],
)
def test_products_meet_where_they_were_worked_out_by_hand(model: str, crossing: int, of_layer: int) -> None:
    found = answers(model, 100)
    assert (found["crossing"], found["crossing_of_layer"]) == (crossing, of_layer)


@pytest.mark.parametrize("model", GROWING)
def test_the_counts_grow_as_the_sheet_says(model: str) -> None:
    architecture, now, doubled = MODELS[model], answers(model, 40), answers(model, 80)
    assert doubled["projections_flops"] == now["projections_doubled"] * now["projections_flops"]
    assert doubled["pairwise_flops"] == now["pairwise_doubled"] * now["pairwise_flops"]
    per_token = Fraction(now["projections_flops"], 40)
    per_pair = Fraction(now["pairwise_flops"], 40**2)
    assert now.get("crossing", per_token / per_pair) == per_token / per_pair
    feed_forward = topic_for("costs", architecture, 40).askable["feed_forward_flops"].expression("count")
    block = Fraction(feed_forward.size(sizes_for("costs", architecture, 40, 40)), 40)
    assert now.get("crossing_of_layer", (per_token + block) / per_pair) == (per_token + block) / per_pair
    if "decode_flops" in now:
        assert now["decode_flops"] == per_token + 41 * per_pair


@pytest.mark.parametrize(("model", "reason"), [("mistral-7b", "window"), ("mixtral-8x7b", "mixture")])
def test_a_window_does_not_grow_with_the_square(model: str, reason: str) -> None:
    with pytest.raises(TopicError, match=reason):
        topic_for("growth", MODELS[model], 100)
