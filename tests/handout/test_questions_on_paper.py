"""Open questions on handouts: whole, as they are typed, each with room to write in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.handout.document import handout_documents
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import plan_sheets
from app.handout.typst_renderer import TypstRenderer
from app.sheets.library import Library
from app.sheets.worksheet import OpenQuestion
from app.web.api import variant_json
from tests.helpers.open_questions import HEADS, WHY, asking
from tests.helpers.printed import Printed, read_pdf

MARKUP = OpenQuestion('#pagebreak() *K* $x^2$ #read("/etc/passwd") <b>&amp; ' + "and why? " * 14, key="markup")
ROOM = 60  # points below a question in which nothing is printed, about two lines


def free_below(page: Printed, words: str) -> float:
    """How far it is from a question down to the next character in its column; a panel ends with its sheet's code."""
    left, top = page.where(words)
    return min(glyph.top for glyph in page.glyphs if glyph.top > top + 20 and glyph.right > left) - top


@pytest.mark.parametrize("changed", [{}, {"layout": "full"}, {"layout": "pair"}, {"large": True}, {"figures": "blank"}])
def test_questions_are_printed_with_room_to_write(library: Library, changed: dict[str, object]) -> None:
    asked = asking(library, WHY, HEADS, MARKUP)
    options = HandoutOptions(worksheet="llama-7b", sheets=1, **changed).check_back({})  # type: ignore[arg-type]
    pages = read_pdf(
        TypstRenderer().render_handout(handout_documents(options, plan_sheets(asked, options, ()), {}, ""))
    )
    text = "".join("".join(page.text.split()) for page in pages)
    for question in (WHY, HEADS, MARKUP):
        assert text.count("".join(question.text.split())) == 1, question
    # including those in a drawing
    assert sum(len(page.boxes) for page in pages) >= len(library.variant("llama-7b").blanks)
    for question in (WHY, HEADS):
        [page] = [page for page in pages if "".join(question.text.split()) in "".join(page.text.split())]
        assert free_below(page, question.text) > ROOM
    assert all(0 <= glyph.left <= glyph.right <= page.width for page in pages for glyph in page.glyphs)


def test_a_sheet_without_questions_is_printed_as_before(library: Library) -> None:
    options = HandoutOptions(worksheet="llama-7b", sheets=1).check_back({})
    [page] = read_pdf(
        TypstRenderer().render_handout(handout_documents(options, plan_sheets(library, options, ()), {}, ""))
    )
    assert "own words" not in page.text


def test_model_answers_are_on_the_key_alone(library: Library) -> None:
    answered = replace(WHY, model_answer="Its *columns* are $d_h$ wide.")
    asked = asking(library, answered, HEADS)
    for key in ("none", "with", "only"):
        options = HandoutOptions(worksheet="llama-7b", sheets=1, key=key).check_back({})
        pages = read_pdf(
            TypstRenderer().render_handout(handout_documents(options, plan_sheets(asked, options, ()), {}, ""))
        )
        has_answer = ["Its columns are dh wide" in " ".join(page.text.split()) for page in pages]
        assert has_answer == {"none": [False], "with": [False, True], "only": [True]}[key]
    assert "columns are" not in repr(variant_json(asked.variant("llama-7b")))
    assert all(question.model_answer for sheet in library.worksheets.values() for question in sheet.questions)
