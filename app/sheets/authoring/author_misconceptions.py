"""Findings about an author's misconceptions: meaningless formulas, and sheets that don't show them.

A misconception shows on a sheet if the sheet, filled in as it says, is attributed to it. That is tried out here with
the diagnosis that students get.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.algebra.expression import Expression, Formula
from app.algebra.parser import Unreadable
from app.misconceptions.diagnosis import diagnose
from app.misconceptions.predictions import expectations, number_written
from app.misconceptions.slips import is_single_slip
from app.shapes.table import Blank, symbol_fields
from app.sheets import prose
from app.sheets.answers import parse_formula
from app.sheets.variant import Variant
from app.sheets.worksheet import MAX_REPEATED, AuthorMisconception, WorksheetError
from app.topics.problem import Problem
from app.translation import gettext as _

AuthorFindingKind = Literal["formula", "right", "slip", "same", "hidden"]


@dataclass(frozen=True)
class AuthorFinding:
    """One finding about one author's misconception on one sheet."""

    key: str
    kind: AuthorFindingKind
    message: str
    box: str = ""
    other: str = ""

    @property
    def shows(self) -> bool:
        """Whether the sheet, filled in as the misconception says, is attributed to it."""
        return self.kind == "same"


def read_formula(variant: Variant, formula: str) -> Expression:
    """What a formula means in the symbols that may be typed on a sheet: H*d, or h·d on a sheet with h heads.

    Raises WorksheetError with the reason if it can't be read.
    """
    meaning = parse_formula(variant.symbols, formula)
    if isinstance(meaning, Expression):
        return meaning
    if isinstance(meaning, Unreadable) and meaning.reason == "unknown-letter":
        raise WorksheetError(variant.wording.unreadable(meaning))
    problem = _("“{formula}” is not a formula in the symbols of this sheet: use {symbols}, + − * / and brackets.")
    words = {"formula": formula[:MAX_REPEATED], "symbols": ", ".join(variant.symbols.written)}
    raise WorksheetError(problem.format(**words))


def box_problem(variant: Variant, box: str, formula: str) -> str:
    """Why a misconception can't write this formula into this box of the sheet, as a sentence; "" if it can."""
    if box not in variant.blanks_by_name:
        problem = _("This sheet has no box “{box}”: use one of {boxes}.")
        return problem.format(box=box[:MAX_REPEATED], boxes=", ".join(variant.blanks_by_name))
    blank = variant.blanks_by_name[box]
    if blank.field not in symbol_fields(variant.table.askable[blank.tensor]):
        return _("“{box}” is chosen, or takes no size: a misconception writes into other boxes.").format(box=box)
    try:
        meaning = read_formula(variant, formula)
    except WorksheetError as error:
        return str(error)
    if number_written(variant.problem, variant.blanks_by_name[box], Formula(meaning)) is None:
        return variant.wording.unreadable(Unreadable("no-length"))
    return ""


def author_findings(variant: Variant) -> tuple[AuthorFinding, ...]:
    """Everything about the author's misconceptions on this sheet, in order."""
    return tuple(finding for each in variant.worksheet.misconceptions for finding in _findings_about(variant, each))


def _findings_about(variant: Variant, misconception: AuthorMisconception) -> Iterator[AuthorFinding]:
    known = variant.blanks_by_name
    unusable = [(box, box_problem(variant, box, text)) for box, text in misconception.boxes.items() if box in known]
    if any(reason for _box, reason in unusable):
        yield from (AuthorFinding(misconception.key, "formula", reason, box) for box, reason in unusable if reason)
        return
    key = variant.problem_for_marking.answers
    written = _wrong_answers(variant.problem_for_marking, misconception.key)
    if not written:
        message = _("“{name}” changes nothing on this sheet: every box keeps a number that counts as correct.")
        yield AuthorFinding(misconception.key, "right", message.format(name=misconception.name))
    elif is_single_slip(key, written):
        message = _("“{name}” changes one number by one digit here, which counts as a slip and not as a misconception.")
        yield AuthorFinding(misconception.key, "slip", message.format(name=misconception.name))
    else:
        questions = {blank for row in variant.rows if row.is_question for blank in row.blanks}
        filled_in = {blank: number for blank, number in {**key, **written}.items() if blank not in questions}
        diagnosis = diagnose(variant.problem_for_marking, filled_in)
        held = diagnosis.key if diagnosis and not diagnosis.also else ""
        if held == misconception.key:
            yield from _alike(variant, misconception)
        elif held:
            message = _("On this sheet “{name}” is taken for “{other}”.")
            words = {"name": misconception.name, "other": prose.misconception_name(variant, held)}
            yield AuthorFinding(misconception.key, "hidden", message.format(**words), other=held)
        else:
            message = _("On this sheet “{name}” is not recognised: too few of its boxes count as wrong.")
            yield AuthorFinding(misconception.key, "hidden", message.format(name=misconception.name))


def _wrong_answers(problem: Problem, key: str) -> Mapping[Blank, int]:
    return next((each.wrong_answers for each in expectations(problem) if each.misconception == key), {})


def _alike(variant: Variant, misconception: AuthorMisconception) -> Iterator[AuthorFinding]:
    problem = variant.problem_for_marking
    wrong = _wrong_answers(problem, misconception.key)
    alike = (each.misconception for each in expectations(problem) if each.wrong_answers == wrong)
    for other in dict.fromkeys(alike):
        if other != misconception.key:
            message = _("“{name}” fills in this sheet like “{other}”: students who do so are counted under “{name}”.")
            words = {"name": misconception.name, "other": prose.misconception_name(variant, other)}
            yield AuthorFinding(misconception.key, "same", message.format(**words), other=other)
