"""What the key of a sheet says, typed back exactly as it is printed, is all correct: on screen and out of the PDF."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from itertools import product
from typing import get_args

import pypdfium2 as pdfium
import pypdfium2.raw as raw
import pytest

from app.grading.grade import grade
from app.handout.document import handout_documents
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import HandoutSheet
from app.handout.typst_renderer import TypstRenderer
from app.sheets.notation import NOTATIONS, NotationKey
from app.sheets.variant import Variant
from app.sheets.worksheet import Answers
from app.topics.find_the_bug import NO_WORD
from app.web.shared.sheet_view import RowView, row_views
from tests.helpers.shipped import LIBRARY, UNLIKE_MODELS
from tests.helpers.slow import one_in

FORMS = tuple(product(NOTATIONS, get_args(Answers)))
PRINTED_PER_FORM = 8  # sheets in each notation and kind of answers
WORKSHEETS_BY_ROWS = sorted(LIBRARY.worksheets.values(), key=lambda worksheet: len(worksheet.rows))
LONGEST = {worksheet.topic: worksheet.key for worksheet in WORKSHEETS_BY_ROWS}  # for each topic


def sheets(worksheet: str) -> list[Variant]:
    """A worksheet with every model that it suits, except those that differ from another only in their numbers."""
    return [LIBRARY.variant(worksheet, model) for model in UNLIKE_MODELS if LIBRARY.refusal(worksheet, model) is None]


def in_form(variant: Variant, notation: NotationKey, answers: Answers) -> Variant | None:
    """The same sheet in another notation, answered in numbers or letters; None where that is refused."""
    worksheet = replace(variant.worksheet, notation=notation, answers=answers)
    changed = replace(LIBRARY, worksheets={worksheet.key: worksheet})
    return None if changed.refusal(worksheet.key, variant.model.key) else replace(variant, worksheet=worksheet)


def shown(variant: Variant) -> dict[str, str]:
    """What "Show the answers" says of each box: its number, or on a sheet in letters its symbols."""
    at = 0 if variant.worksheet.answers == "numbers" else 1
    return {
        box.name: text
        for view in row_views(variant, {}, None, truth=variant)
        if view.answer
        for box, text in zip(
            view.boxes,
            said_of_code(view, view.answer.text) if view.answer.text else [each[at] for each in view.answer.fields],
            strict=True,
        )
    }


def said_of_code(view: RowView, text: str) -> list[str]:
    """What the answer to a question about code has in each box: an option, the blanks of a line, or two sizes."""
    if view.options:
        return [str(each.number) for each in view.options if text in (each.text, f"{each.number}: {each.text}")]
    if not any(view.between):
        return [text] if view.row.code else text.split(", ")  # a pattern has commas
    line = re.fullmatch("(.*?)".join(map(re.escape, view.between)), text)
    assert line
    return [filled or NO_WORD for filled in line.groups()]


@pytest.mark.parametrize("worksheet", one_in(4, LONGEST.values()), ids=LONGEST)
def test_the_answers_shown_on_screen_are_correct_when_typed(worksheet: str) -> None:
    for variant in sheets(worksheet):
        for form in FORMS:
            sheet = in_form(variant, *form)
            if sheet is None:
                continue
            report = grade(sheet, answers := shown(sheet))
            wrong = [(answers[str(blank)], mark) for blank, mark in report.marks.items() if mark.kind != "right"]
            assert not wrong, (variant.model.key, form, wrong[0])


def bold_texts(page: pdfium.PdfPage) -> list[str]:
    """What is printed in bold on a page, box by box: a gap wider than a letter, or a line below, begins another."""
    textpage, texts = page.get_textpage(), list[str]()
    end, base = 0.0, 0.0
    for at in range(textpage.count_chars()):
        char = chr(raw.FPDFText_GetUnicode(textpage, at))
        if char.isspace() or not char.isprintable() or not _is_bold(textpage, at):
            continue
        left, _, right, _ = textpage.get_charbox(at)
        x, baseline = ctypes.c_double(), ctypes.c_double()
        raw.FPDFText_GetCharOrigin(textpage, at, x, baseline)
        same_line = abs(baseline.value - base) < 6 and -9 < left - end < 2  # the letters of a ligature share one place
        if texts and (same_line or texts[-1][-1] in "+−·_/" or char in "+−·/"):  # a long sum goes on in the next line
            texts[-1] += char
        else:
            texts.append(char)
        end, base = right, base if same_line else baseline.value
    return texts


def _is_bold(textpage: pdfium.PdfTextPage, at: int) -> bool:
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetFontInfo(textpage, at, name, 100, flags)
    return b"Bold" in name.value


@pytest.mark.slow
def test_the_answers_printed_in_the_key_are_correct_when_typed() -> None:
    renderer, options = TypstRenderer(), HandoutOptions(worksheet="llama-7b", key="only", figures="none")
    everything = [variant for key, sheet in LIBRARY.worksheets.items() if not sheet.bug for variant in sheets(key)]
    for at, form in enumerate(FORMS):
        formed = [in_form(variant, *form) for variant in everything[at :: len(everything) // PRINTED_PER_FORM]]
        variants = list(filter(None, formed))
        planned = [HandoutSheet(variant) for variant in variants]
        pdf = renderer.render_handout(handout_documents(options, planned, {}))
        texts = list[str]()
        for page in list(pdfium.PdfDocument(pdf)):
            on_page = bold_texts(page)
            if texts and on_page and texts[-1][-1] in "+−·_/":  # a long sum goes on in the next page
                texts[-1] += on_page.pop(0)
            texts += on_page
        for variant in variants:
            answers = {str(blank): texts.pop(0) for blank in variant.blanks}
            marks = grade(variant, answers).marks
            wrong = [(answers[str(blank)], mark) for blank, mark in marks.items() if mark.kind != "right"]
            assert not wrong, (variant.worksheet.key, variant.model.key, form, wrong[0])
        assert texts == []
