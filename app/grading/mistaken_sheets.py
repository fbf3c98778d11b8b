"""Sheets as students with mistakes fill them in, so that teachers see the feedback and what each marking gives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from app.grading.explain import mistaken_expression
from app.grading.grade import grade
from app.misconceptions.predictions import Expectation, expectations
from app.models.architecture import TokensError
from app.shapes.table import Blank, Count, Tensor
from app.sheets import prose
from app.sheets.variant import Variant
from app.sheets.worksheet import Marking
from app.topics.requirements import TopicError

ExampleKind = Literal["right", "slip", "followed", "misconception", "two"]


@dataclass(frozen=True)
class ExampleSheet:
    """A filled-in sheet: how many boxes aren't right, and its score in each marking."""

    kind: ExampleKind
    wrong: int
    scores: Mapping[Marking, int]
    misconception: str = ""  # the name of the one that filled it in


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
        own = typed_by_author.get(key, {}) if variant.worksheet.in_letters else {}
        boxes = {str(blank): blank for blank in expected.wrong_answers}
        texts = {box: own.get(box) or _wrong_text(variant, expected, blank) for box, blank in boxes.items()}
        if key not in sheets and all(texts.values()):
            sheets[key] = {**right, **texts}
    return sheets


def misconception_names(variant: Variant) -> dict[str, str]:
    """The names of the misconceptions in `mistaken_texts`, by key."""
    return {key: prose.misconception_name(variant, key) for key in mistaken_texts(variant)}


def _wrong_text(variant: Variant, expected: Expectation, blank: Blank) -> str:
    if not variant.worksheet.in_letters or blank.field == "choice":
        return variant.typed(blank, expected.wrong_answers[blank])
    meaning = mistaken_expression(variant, expected, blank)
    return variant.notation.write(meaning) if meaning else ""


def example_sheets(variant: Variant) -> list[ExampleSheet]:
    """All right; a slip; a wrong number with all that follows; a misconception in several boxes; two mistakes.

    A kind that this sheet has no room for is left out.
    """
    right = right_texts(variant)
    slips = [slip for box in right if (slip := _slip(variant, right, [box]))]
    followed = _wrong_number_with_all_that_follows(variant, right)
    held, misconception = _widest_misconception(variant, right)
    wide = followed or misconception
    second = next((slip for slip in slips if wide and slip.keys().isdisjoint(wide)), None)
    changes: dict[ExampleKind, Mapping[str, str]] = {
        "slip": slips[0] if slips else {},
        "followed": followed,
        "misconception": misconception,
        "two": {**wide, **second} if second else {},
    }
    mistaken = [_example(variant, kind, {**right, **changed}, held) for kind, changed in changes.items() if changed]
    return [_example(variant, "right", right, ""), *mistaken]


def _example(variant: Variant, kind: ExampleKind, texts: Mapping[str, str], held: str) -> ExampleSheet:
    report = grade(variant, texts)
    scores: dict[Marking, int] = {each: replace(report, marking=each).score for each in get_args(Marking)}
    name = prose.misconception_name(variant, held) if kind == "misconception" else ""
    return ExampleSheet(kind, report.boxes - report.right, scores, name)


def _slip(variant: Variant, right: Mapping[str, str], boxes: Iterable[str]) -> dict[str, str]:
    asked = {box: variant.table.askable[variant.blanks_by_name[box].tensor] for box in boxes}
    written = {box: right[box] for box, row in asked.items() if isinstance(row, Tensor | Count)}
    return {box: str(int(text) + 1) if text.isdecimal() else f"2*({text})" for box, text in written.items()}


def _wrong_number_with_all_that_follows(variant: Variant, right: Mapping[str, str]) -> dict[str, str]:
    text, times = Counter(right.values()).most_common(1)[0]
    repeated = _slip(variant, right, [box for box in right if right[box] == text]) if times > 1 else {}
    for changed in (_with_fewer_tokens(variant, right), repeated):
        report = grade(variant, {**right, **changed})
        if report.follows:
            return changed
    return {}


def _with_fewer_tokens(variant: Variant, right: Mapping[str, str]) -> dict[str, str]:
    fewer = variant.tokens - max(variant.tokens // 10, 1)
    if not fewer or not variant.has_topic:
        return {}
    try:
        texts = right_texts(replace(variant, tokens=fewer, frozen=None))
    except (TopicError, TokensError):
        return {}
    return _changes(right, texts) if texts.keys() == right.keys() else {}


def _widest_misconception(variant: Variant, right: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    changes = {key: _changes(right, texts) for key, texts in mistaken_texts(variant).items()}
    widest = max(changes, key=lambda key: len(changes[key]), default="")
    return widest, changes.get(widest, {})


def _changes(right: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    return {box: text for box, text in texts.items() if text != right[box]}
