"""The one drawing of a head: whatever is typed into it, everything that is written can be read."""

from __future__ import annotations

from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from app.figures.geometry import Rect
from app.figures.sheet_figures import draw_figures
from app.sheets.variant import Variant
from tests.helpers.rectangles import touch
from tests.helpers.shipped import LIBRARY

SHEETS = [
    *map(LIBRARY.variant, ("llama-7b", "qwen2.5-0.5b", "decode-gpt2", "cross-bart-base")),
    LIBRARY.variant("llama-7b", "llama-3.2-1b"),
]


@given(st.integers(0, 2**32), st.sampled_from(SHEETS), st.booleans())
def test_nothing_that_is_written_is_covered(seed: int, sheet: Variant, filled: bool) -> None:
    chance = Random(seed)  # noqa: S311 - so that it can be repeated
    answers = {blank: sheet.answer(blank) for blank in sheet.blanks} if filled else {}
    count = chance.randrange(6 if filled else 2 * len(sheet.blanks))
    sizes = (1, 2, 7, 64, 128, 4096, 99_999, 1_000_000, *(chance.randint(1, 1_000_000) for _ in range(8)))
    answers |= {chance.choice(sheet.blanks): chance.choice(sizes) for _ in range(count)}
    for figure in draw_figures(sheet, answers):
        texts = [edge.text_box for edge in figure.edges if edge.text_height]
        texts += [each.text_box for each in figure.brackets]
        texts += [sign.text_box for sign in figure.signs]
        lines = [each.bracket_box for each in figure.brackets]
        lines += [Rect(x - 0.6, y - 0.6, 1.2, 1.2) for arc in figure.arcs for x, y in arc.points]
        boxes = [box.rect for box in figure.boxes]
        assert not any(touch(a, b) for a, b in combinations(texts, 2))
        assert not any(touch(a, b) for a, b in combinations(boxes, 2))
        assert not any(touch(text, other) for text in texts for other in (*boxes, *lines))
        assert all(map(figure.frame.holds, (*texts, *boxes, *lines)))
