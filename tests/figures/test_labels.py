"""Labels of figures stay free whatever is typed: for every table, with tokens as rows or columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.figures.geometry import Rect
from app.figures.parts import Figure
from app.figures.sheet_figures import draw_figures
from app.shapes.table import Blank
from app.sheets.variant import Variant
from tests.helpers.shipped import LIBRARY

VARIANTS = [LIBRARY.variant(key) for key in LIBRARY.worksheets]
LENGTHS = st.one_of(st.integers(1, 1_000_000), st.integers(1, 5000), st.sampled_from([1, 2, 64, 128, 4096, 1_000_000]))


def typed(data: st.DataObject, variant: Variant) -> dict[Blank, int]:
    """A sheet somewhere between empty and right, with any lengths in some of its boxes."""
    values = {blank: variant.answer(blank) for blank in variant.blanks if data.draw(st.booleans())}
    if not data.draw(st.booleans()):
        values = {}
    return values | data.draw(st.dictionaries(st.sampled_from(variant.blanks), LENGTHS, max_size=6))


def texts(figure: Figure) -> Iterator[tuple[str, Rect]]:
    """What is written in a figure outside of its matrices."""
    yield from ((f"{e.letter} {e.label} {e.name} {e.side}", e.text_box) for e in figure.edges if e.text_height)
    yield from ((each.text, each.text_box) for each in figure.brackets)
    yield from ((sign.text, sign.text_box) for sign in figure.signs)


def problems(figure: Figure) -> Iterator[str]:
    """Every text on another one or on a matrix, or outside the figure."""
    written = list(texts(figure))
    for (first, a), (second, b) in combinations(written, 2):
        if a.overlapping([b]):
            yield f"{figure.key}: {first} on {second}"
    for text, rect in written:
        for box in figure.boxes:
            if rect.overlapping(box.card_rects):
                yield f"{figure.key}: {text} on {box.tensor}"
        for arc in figure.arcs:
            if rect.overlapping([Rect(x, y, 0.1, 0.1) for x, y in arc.points]):
                yield f"{figure.key}: {text} on an arc"
        if not figure.frame.holds(rect):
            yield f"{figure.key}: {text} outside"


@pytest.mark.slow
@given(st.data(), st.sampled_from(VARIANTS))
def test_no_label_lies_on_another_or_leaves_its_figure(data: st.DataObject, variant: Variant) -> None:
    for figure in draw_figures(variant, typed(data, variant)):
        assert list(problems(figure)) == []


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_a_line_to_write_on_has_no_letter_before_it(key: str) -> None:
    """A style sheet that hides the letter would also take away the line's place."""
    for figure in draw_figures(LIBRARY.variant(key), {}, names_sizes=False, in_place_of_numbers="___"):
        assert not any(edge.letter for edge in figure.edges)
