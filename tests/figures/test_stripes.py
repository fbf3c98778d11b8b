"""One head as a stripe of its layer, at true scale."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest

from app.figures.geometry import Rect
from app.figures.parts import Box, Figure
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from app.shapes.table import Blank
from app.sheets.variant import Variant
from tests.helpers.shipped import LIBRARY

LLAMA = LIBRARY.variant("llama-7b")


def stripes(variant: Variant, answers: Mapping[Blank, int]) -> Figure | None:
    return next((each for each in draw_figures(variant, answers) if each.key == "stripes"), None)


def right_stripes(variant: Variant, **columns: int) -> dict[str, Box]:
    """The first box of each matrix as drawn for the key, with other columns of some rows."""
    wrong = {Blank(key, "columns"): number for key, number in columns.items()}
    figure = stripes(variant, {**variant.problem.answers, **wrong})
    assert figure
    return {box.tensor: box for box in reversed(figure.boxes)}


def width_of(part: Rect | None) -> float:
    assert part
    return part.width


def test_a_head_is_one_of_32_stripes_and_looks_it() -> None:
    boxes = right_stripes(LLAMA)
    width, height = boxes["input"].rect[2:]
    assert width / height == pytest.approx(4096 / 100)
    for key in ("W_Q", "W_K", "W_V", "queries", "keys", "values"):
        assert width / width_of(boxes[key].part) == pytest.approx(32)
        assert boxes[key].rect.width == pytest.approx(width)
    assert len(boxes["W_Q"].rules) == 31
    assert boxes["W_Q"].rect.height == pytest.approx(width)


@pytest.mark.parametrize(
    ("worksheet", "model", "heads"),
    [("qwen2.5-0.5b", None, (14, 2)), ("llama-7b", "qwen3-0.6b", (16, 8)), ("llama-7b", "mistral-7b", (32, 8))],
)
def test_grouped_heads_share_the_stripes_of_keys_and_values(
    worksheet: str, model: str | None, heads: tuple[int, int]
) -> None:
    variant = LIBRARY.variant(worksheet, model)
    boxes = right_stripes(variant)
    for key, count in zip(("W_Q", "W_K"), heads, strict=True):
        assert boxes[key].rect.width / width_of(boxes[key].part) == pytest.approx(count)
    sizes = variant.sizes
    ratio = boxes["W_Q"].rect.width / boxes["input"].rect.width
    assert ratio == pytest.approx(heads[0] * sizes["d_h"] / sizes["d"])


def test_as_wide_as_the_model_is_all_stripes_at_once() -> None:
    everything = right_stripes(LLAMA, queries=4096)
    assert everything["W_Q"].part == everything["W_Q"].rect
    assert everything["W_K"].part != everything["W_K"].rect
    wider = right_stripes(LLAMA, queries=8192)
    assert wider["W_Q"].rect.width / wider["input"].rect.width == pytest.approx(64)


def test_where_heads_together_are_not_as_wide_as_the_model_its_width_is_one_stripe() -> None:
    boxes = right_stripes(LIBRARY.variant("llama-7b", "qwen3-0.6b"), queries=1024)
    assert boxes["W_Q"].part != boxes["W_Q"].rect


def test_an_enlarged_head_is_named_so_and_only_true_numbers_are_written() -> None:
    variant = LIBRARY.variant("llama-7b", "llama-3.2-1b", 60)
    figure = stripes(variant, variant.problem.answers)
    assert figure
    stripe, head = (box for box in figure.boxes if box.tensor == "queries")
    assert head.rect.width > width_of(stripe.part)
    assert head.rect.width / head.rect.height == pytest.approx(64 / 60)
    texts = list(ElementTree.fromstring(figure_svg(figure)).itertext())  # noqa: S314 - made here
    assert texts.count("enlarged") == 3
    numbers = {int(number.replace(",", "")) for text in texts for number in re.findall(r"\d[\d,]*", text)}
    assert numbers == {60, 2048, 64, 32, 8}
    assert not any("×" in text for text in texts)


def test_there_are_none_before_a_width_is_typed() -> None:
    right = LLAMA.problem.answers
    source, head = Blank("input", "columns"), Blank("queries", "columns")
    assert stripes(LLAMA, {source: right[source]}) is None
    assert stripes(LLAMA, {head: right[head]}) is None
    assert stripes(LLAMA, {source: right[source], head: right[head]})


def test_a_drawing_that_may_not_compare_draws_each_width_as_one_stripe() -> None:
    answers = {**LLAMA.problem.answers, Blank("queries", "columns"): 4096}
    figures = draw_figures(LLAMA, answers, shows_mismatches=False)
    [box] = [box for figure in figures if figure.key == "stripes" for box in figure.boxes if box.tensor == "W_Q"]
    assert box.part != box.rect


@pytest.mark.parametrize(("model", "heads"), [("t5-small", 8), ("bart-base", 12)])
def test_cross_attention_has_stripes_in_both_texts(model: str, heads: int) -> None:
    variant = LIBRARY.variant("cross-bart-base", model)
    figures = [each for each in draw_figures(variant, variant.problem.answers) if each.key == "stripes"]
    assert [{box.tensor for box in figure.boxes} for figure in figures] == [
        {"input", "W_Q", "queries"},
        {"encoded", "W_K", "W_V", "keys", "values"},
    ]
    for figure in figures:
        for box in figure.boxes:
            if box.tensor.startswith("W_"):
                assert box.rect.width / width_of(box.part) == pytest.approx(heads)
