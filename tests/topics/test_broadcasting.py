"""Broadcasting, against numpy's rule and torch: what fits, what is refused, and what silently grows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from app.figures.sheet_figures import draw_figures
from app.grading.grade import grade
from app.sheets.variant import Variant
from app.topics.registry import sizes_for, topic_for
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.own_sheets import own_sheet
from tests.helpers.shipped import LIBRARY, MODELS

GPT2, LLAMA = (LIBRARY.variant("broadcasting-gpt2", model) for model in ("gpt2", "llama-3.2-1b"))


def test_operands_have_the_fewest_numbers_that_numpy_broadcasts_to_the_result() -> None:
    for a in possible("broadcasting"):
        table = topic_for("broadcasting", a, TOKENS)
        shapes = table.shapes(sizes_for("broadcasting", a, TOKENS, TOKENS))
        for made in table.tensors:
            if made.made_by and made.made_by.broadcasts:
                first, second = (shapes[key] for key in made.made_by.operands)
                assert np.broadcast_shapes(first, second) == shapes[made.key]
                assert len(first) == len(second) == len(shapes[made.key])


@pytest.mark.parametrize(
    ("model", "has", "lacks"),
    [
        ("gpt2", "causal_mask positioned scaled", "cosines grouped_keys"),
        ("bert-base", "padding_mask positioned", "causal_mask both_masks cosines"),
        ("llama-3.2-1b", "causal_mask scaled cosines grouped_keys", "positioned"),
        ("vit-base", "positioned scaled", "padding_mask scores cosines"),
        ("t5-small", "padding_mask scaled", "causal_mask positioned cosines"),
    ],
)
def test_a_sheet_shows_only_what_its_model_has(model: str, has: str, lacks: str) -> None:
    keys = topic_for("broadcasting", MODELS[model], 197).by_key.keys()
    assert keys >= set(has.split())
    assert not keys & set(lacks.split())


def test_torch_does_what_the_sheet_says() -> None:
    B, H, G, T, width = 3, 8, 2, 5, 4
    scores, padding = torch.randn(B, H, T, T), torch.zeros(B, T)
    padding[1, 3:] = -torch.inf
    weights = (scores + padding.view(B, 1, 1, T)).softmax(-1)
    assert bool((weights[1, :, :, 3:] == 0).all())
    assert torch.allclose(weights.sum(-1), torch.ones(B, H, T))
    assert bool((scores + padding.view(B, 1, T, 1)).softmax(-1).isnan().any())
    queries, cosines = torch.randn(B, T, H, width), torch.randn(T, width)
    turned = queries * cosines.view(1, T, 1, width)
    assert torch.equal(turned[2, 4, 7], queries[2, 4, 7] * cosines[4])
    refused: list[tuple[Callable[..., object], torch.Tensor, torch.Tensor]] = [
        (torch.add, scores, padding), (torch.add, scores, padding.view(B, T, 1, 1)), (torch.mul, queries, cosines),
        (torch.matmul, torch.randn(H, T, width), torch.randn(G, width, T)),
    ]  # fmt: skip
    for operation, left, right in refused:
        with pytest.raises(RuntimeError, match="must match the size"):
            operation(left, right)
    assert (torch.ones(T) * torch.ones(T, 1)).shape == (T, T)
    keys = torch.randn(G, T, width)
    heads = queries[0].transpose(0, 1)
    grouped = heads.reshape(G, H // G, T, width) @ keys.view(G, 1, T, width).mT
    assert torch.allclose(grouped.flatten(0, 1), heads @ keys.repeat_interleave(H // G, dim=0).mT, atol=1e-5)


def first_mismatch(variant: Variant, **wrong: str) -> str:
    """The message on the first sides that don't fit, with these texts in place of right ones; "" if all fit."""
    texts = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
    mismatch = grade(
        variant, {**texts, **{name.replace("__", "."): text for name, text in wrong.items()}}
    ).first_mismatch
    return mismatch.message if mismatch else ""


def test_sides_that_meet_are_compared_unless_one_is_1() -> None:
    left = {"padding_mask__dim1": "50", "padding_mask__dim2": "1", "padding_mask__dim3": "1"}
    with_scores = own_sheet(LIBRARY, "broadcasting-gpt2", rows=("scores", "padding_mask", "masked_scores"))
    assert "12 in dim 1" in (message := first_mismatch(with_scores, **left))
    assert "50 in dim 1" in message
    assert first_mismatch(with_scores, padding_mask__dim3="1") == ""
    assert first_mismatch(with_scores, masked_scores__dim1="1") != ""


def test_in_symbols_1_still_meets_every_length() -> None:
    sheet = LIBRARY.variant("broadcasting-gpt2~symbols")
    figures = draw_figures(sheet, sheet.problem.answers)
    assert figures
    assert not [mismatch for figure in figures for mismatch in figure.mismatches]


@pytest.mark.parametrize("variant", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_the_operand_that_is_repeated_is_drawn_between_the_others(variant: Variant) -> None:
    drawn = {figure.key: figure for figure in draw_figures(variant, variant.problem.answers)}
    figure = drawn["both-masks"]
    assert [box.tensor for box in figure.boxes] == ["padding_mask", "causal_mask", "both_masks"]
    assert [sign.text for sign in figure.signs] == ["+", "="]
    places = [box.rect.x for box in figure.boxes]
    assert places == sorted(places)
