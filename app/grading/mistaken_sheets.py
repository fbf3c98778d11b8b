"""A sheet as a student with a misconception fills it in, so that teachers see the feedback."""

from __future__ import annotations

import re

from app.grading.explanations import mistaken_expression
from app.misconceptions.predictions import Expectation, expectations
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.variant import Variant


def right_texts(variant: Variant) -> dict[str, str]:
    """The right answer to every box, by box name, as a student would type it: numbers without commas."""
    written = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
    # keeps the commas of a line of code
    return {box: re.sub(r"(?<=\d),(?=\d)", "", text) for box, text in written.items()}


def mistaken_texts(variant: Variant) -> dict[str, dict[str, str]]:
    """For each misconception that shows on the sheet, by key, the text of every box."""
    typed_by_author = {each.key: each.boxes for each in variant.worksheet.misconceptions}
    right, sheets = right_texts(variant), dict[str, dict[str, str]]()
    for expected in expectations(variant.problem):
        key = expected.misconception
        own = typed_by_author.get(key, {}) if variant.worksheet.answers == "letters" else {}
        boxes = {str(blank): blank for blank in expected.wrong_answers}
        texts = {box: own.get(box) or _wrong_text(variant, expected, blank) for box, blank in boxes.items()}
        if key not in sheets and all(texts.values()):
            sheets[key] = {**right, **texts}
    return sheets


def misconception_names(variant: Variant) -> dict[str, str]:
    """The names of the misconceptions in `mistaken_texts`, by key."""
    return {key: prose.misconception_name(variant, key) for key in mistaken_texts(variant)}


def _wrong_text(variant: Variant, expected: Expectation, blank: Blank) -> str:
    if variant.worksheet.answers != "letters" or blank.field == "choice":
        return variant.typed(blank, expected.wrong_answers[blank])
    meaning = mistaken_expression(variant, expected, blank)
    return variant.notation.write(meaning) if meaning else ""
