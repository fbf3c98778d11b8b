"""A sheet like another one, with other numbers: worked out, with its first rows given, or to be filled in.

It is made only from its address and its form: nothing is stored, and nothing counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from fastapi import HTTPException

from app.grading.grade import grade
from app.sheets.library import Library
from app.sheets.siblings import rows_to_tell, sibling
from app.sheets.variant import Variant, box_texts
from app.sheets.worksheet import Answers as SheetAnswers
from app.translation import gettext as _
from app.web.shared.forms import FormReader, clamped_number
from app.web.shared.sheet_form import read_answers
from app.web.shared.sheet_view import reason_note, row_views, sheet_notes

ExampleKind = Literal["worked", "faded", "another"]
MAX_EXAMPLE_SEED = 999


@dataclass(frozen=True)
class ExampleRequest:
    """The requested example: its kind and seed from the address, and the addresses around it.

    `address` is the one of a kind with a seed.
    """

    variant: Variant
    library: Library
    kind: str
    seed: str
    back: str
    address: Callable[[ExampleKind, int], str]


def find_sibling(requested: ExampleRequest, seed: int, answers: SheetAnswers) -> Variant:
    """The sheet like the requested one that a seed draws; 404 if there is none."""
    if other := sibling(requested.variant, requested.library.models, seed, answers):
        return other
    raise HTTPException(404, _("No other sheet of the library has the rows of this one with other numbers."))


def example_names(requested: ExampleRequest, form: FormReader | None = None) -> dict[str, Any]:
    """What templates/shared/example.html shows, with the marks of a sent form; 404 if no other sheet has its rows."""
    variant = requested.variant
    known: ExampleKind = next((each for each in get_args(ExampleKind) if each == requested.kind), "worked")
    number = clamped_number(requested.seed, MAX_EXAMPLE_SEED)
    other = find_sibling(requested, number, variant.worksheet.answers if known == "another" else "numbers")
    told = rows_to_tell(variant, other)
    given = {"worked": told, "faded": told[: (len(told) + 1) // 2], "another": ()}[known]
    right = {str(blank): other.written_answer(blank) for blank in other.blanks if blank.tensor in given}
    filled = {**(box_texts(other, read_answers(form, other)) if form else {}), **right}
    report = grade(other, filled) if form else None
    notes = sheet_notes(other, filled, report, mismatch=True)
    if report:  # only what was asked is marked
        report = replace(report, marks={blank: m for blank, m in report.marks.items() if blank.tensor not in given})
    rows = tuple(
        replace(view, given=True, reason=reason_note(other, view.row, works_out=len(told) == len(other.rows)))
        if view.row.key in given
        else view
        for view in row_views(other, filled, report, notes=notes, explains=True)
    )
    return {
        "kind": known,
        "variant": other,
        "rows": rows,
        "report": report,
        "asks": len(given) < len(rows),
        "back": requested.back,
        "action": requested.address(known, number),
        "faded": requested.address("faded", number),
        "next": requested.address(known, number % MAX_EXAMPLE_SEED + 1),
        "locked": False,
        "focused": "",
    }
