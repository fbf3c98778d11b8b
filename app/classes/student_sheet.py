"""The sheets of an activity: frozen from the library, and made again for one student."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from app.exchange.imported_models import library_with_model
from app.grading.grade import Report
from app.sheets.exit_tickets import Ticket as TicketFile
from app.sheets.library import Library
from app.sheets.worksheet import Variant, Wording, Worksheet
from app.store import Activity, Content, Fixed, Graded, Item, Policies, Spot, Student, Ticket
from app.store.classwork import Draft
from app.web.shared.services import Services

_FIELDS = frozenset(field.name for field in fields(Worksheet))


@dataclass(frozen=True)
class Assigned:
    """One sheet of an activity for one student: where their work is kept, and the sizes that are theirs."""

    spot: Spot
    fixed: Fixed
    variant: Variant
    draft: Draft | None  # what stands in the boxes, None before the first save


def freeze(library: Library, worksheets: Sequence[str], ticket: TicketFile | None) -> Content:
    """What students will see: the worksheets as they are defined now, and the exit ticket's questions.

    Raises WorksheetError for a key that is not there.
    """
    items = tuple(Item(_as_json(library.worksheet(key))) for key in worksheets)
    frozen = Ticket(ticket.key, ticket.title, ticket.instruction, ticket.questions) if ticket else None
    return Content(items, frozen, _wording_version(library.wording))


def assigned(services: Services, activity: Activity, student: Student, number: int) -> Assigned:
    """The sheet of that number, from 0, as this student has it: the sizes of their first save, else of the policy."""
    item = activity.content.items[number]
    spot = Spot(student.id, activity.id, activity.revision, number, item.sheet)
    draft = services.store.classwork.draft(spot)
    worksheet = worksheet_of(item, activity.policies)
    fixed = draft.variant if draft else _fixed(services, activity, student, worksheet)
    return Assigned(spot, fixed, fix(services, worksheet, fixed), draft)


def fix(services: Services, worksheet: Worksheet, fixed: Fixed) -> Variant:
    """A worksheet with the sizes that were kept of it."""
    decoded = fixed.decoder_tokens if fixed.decoder_tokens != worksheet.decoder_tokens else None
    library = library_with_model(services.library, services.store, fixed.model)
    return library.fixed(worksheet, fixed.model, fixed.tokens, decoded)


def graded(report: Report) -> Graded:
    """What of a report is kept with a try."""
    marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
    found = report.diagnosis
    return Graded(marks, (found.key, *found.also) if found else (), report.score, report.out_of)


def boxes(services: Services, content: Content) -> tuple[int, ...]:
    """How many boxes each worksheet of an activity has, with the sizes it is defined with."""
    sheets = [_worksheet(item.worksheet) for item in content.items]
    usual = [Fixed(sheet.model, sheet.tokens, sheet.decoder_tokens) for sheet in sheets]
    return tuple(len(fix(services, sheet, sizes).blanks) for sheet, sizes in zip(sheets, usual, strict=True))


def worksheet_of(item: Item, policies: Policies) -> Worksheet:
    """A frozen worksheet, with what the activity says a box is worth that follows."""
    return replace(_worksheet(item.worksheet), follow_share=policies.follow_share)


def frozen_variant(services: Services, activity: Activity, number: int) -> Variant:
    """The sheet of that number, from 0, with the worksheet's own model and lengths: what its rows are called."""
    worksheet = worksheet_of(activity.content.items[number], activity.policies)
    return fix(services, worksheet, Fixed(worksheet.model, worksheet.tokens, worksheet.decoder_tokens))


def titles(services: Services, content: Content) -> tuple[str, ...]:
    """What the worksheets of an activity are called."""
    return tuple(str(item.worksheet["title"]) for item in content.items)


def seed(activity: Activity, student: Student) -> int:
    """The number that a student's variant is made from: always the same, and nobody's guess at another's."""
    text = f"activity {activity.id} student {student.id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def _fixed(services: Services, activity: Activity, student: Student, worksheet: Worksheet) -> Fixed:
    if activity.policies.variants == "per_student" and worksheet.key in services.library.worksheets:
        made = services.library.seeded(worksheet.key, seed(activity, student))
        return Fixed(made.model.key, made.tokens, made.decoder_tokens or worksheet.decoder_tokens)
    return Fixed(worksheet.model, worksheet.tokens, worksheet.decoder_tokens)


def _as_json(worksheet: Worksheet) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(worksheet).items()}


def _worksheet(kept: Mapping[str, Any]) -> Worksheet:
    known: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in kept.items()}
    return Worksheet(**{name: value for name, value in known.items() if name in _FIELDS})


def _wording_version(wording: Wording) -> str:
    text = json.dumps(wording.sections, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
