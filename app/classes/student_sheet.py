"""The worksheets of an activity: frozen from the library, and made again for one student."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.classes.frozen.frozen_library import (
    frozen_form,
    frozen_worksheet,
    library_of,
    model_snapshot,
    wording_snapshot,
    worksheet_of,
)
from app.exchange.imported_models import library_with_model
from app.grading.grade import Report
from app.sheets.exit_tickets import Ticket as TicketFile
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.store import (
    Activity,
    ClassSheetKey,
    Content,
    FrozenTicket,
    Graded,
    Store,
    Student,
    VariantSizes,
)
from app.store.classwork import ClassDraft


@dataclass(frozen=True)
class StudentSheet:
    """One worksheet of an activity as one student has it."""

    key: ClassSheetKey  # what their draft and attempts are stored under
    sizes: VariantSizes
    variant: Variant
    draft: ClassDraft | None  # None before the first save


def freeze(library: Library, worksheets: Sequence[str], ticket: TicketFile | None) -> Content:
    """What students will see: these worksheets, by key, as they are defined now, and the exit ticket's questions.

    It brings with it the snapshots of the wording and of every model that a student may be given. Raises
    WorksheetError for a key that the library lacks.
    """
    sheets = [library.worksheet(key) for key in worksheets]
    frozen = FrozenTicket(ticket.key, ticket.title, ticket.instruction, ticket.questions) if ticket else None
    return with_snapshots(library, Content(tuple(map(frozen_form, sheets)), frozen, ""))


def with_snapshots(library: Library, content: Content) -> Content:
    """A content that names, and brings with it, snapshots of the library's wording and of the models it needs.

    Models that the library lacks, which may be in a revision of an earlier version, are left out.
    """
    sheets = [worksheet_of(item) for item in content.items]
    keys = dict.fromkeys(key for sheet in sheets for key in (sheet.model, *sheet.models) if key in library.models)
    models, wording = {key: model_snapshot(library.models[key]) for key in keys}, wording_snapshot(library.wording)
    named = {key: snapshot.hash for key, snapshot in models.items()}
    return replace(content, wording=wording.hash, models=named, snapshots=(wording, *models.values()))


def student_sheet(
    library: Library, store: Store, activity: Activity, student: Student, sheet_number: int
) -> StudentSheet:
    """The worksheet of that number, from 1, in the newest revision, as this student has it, with their draft.

    Its sizes are those of the student's first save. Before one, the activity's policy decides: the worksheet's own
    sizes, or those of the student's own variant.
    """
    draft = store.classwork.draft(sheet_key_of(activity, student, sheet_number))
    return sheet_with_draft(library, store, activity, student, sheet_number, draft)


def sheet_key_of(activity: Activity, student: Student, sheet_number: int) -> ClassSheetKey:
    """What a student's work on the sheet of that number, from 1, in the newest revision is stored under."""
    sheet_key = activity.content.items[sheet_number - 1].sheet_key
    return ClassSheetKey(student.id, activity.id, activity.revision, sheet_number, sheet_key)


def sheet_with_draft(
    library: Library, store: Store, activity: Activity, student: Student, sheet_number: int, draft: ClassDraft | None
) -> StudentSheet:
    """The same as `student_sheet`, where the student's draft, or that there is none, is known already."""
    library = library_of(library, store, activity.content)
    worksheet = frozen_worksheet(activity.content.items[sheet_number - 1], activity.policies)
    sizes = draft.variant if draft else _first_sizes(library, activity, student, worksheet)
    key = sheet_key_of(activity, student, sheet_number)
    return StudentSheet(key, sizes, variant_of(library, store, worksheet, sizes), draft)


def variant_of(library: Library, store: Store, worksheet: Worksheet, sizes: VariantSizes) -> Variant:
    """A frozen worksheet with stored sizes, in the library of its activity (see `library_of`).

    Its model may be an imported one, which is looked up in the database. Raises WorksheetError where the model is no
    longer there.
    """
    own = sizes.decoder_tokens == worksheet.decoder_tokens
    models = library_with_model(library, store, sizes.model)
    return models.variant_with_sizes(worksheet, sizes.model, sizes.tokens, None if own else sizes.decoder_tokens)


def own_variant(library: Library, store: Store, activity: Activity, sheet_number: int) -> Variant:
    """The worksheet of that number, from 1, with the model and lengths it is defined with, whatever students have."""
    worksheet = frozen_worksheet(activity.content.items[sheet_number - 1], activity.policies)
    return variant_of(library_of(library, store, activity.content), store, worksheet, own_sizes(worksheet))


def own_sizes(worksheet: Worksheet) -> VariantSizes:
    """The model and lengths that a worksheet is defined with."""
    return VariantSizes(worksheet.model, worksheet.tokens, worksheet.decoder_tokens)


def stored_marks(report: Report) -> Graded:
    """What of a report is stored with an attempt: mark kinds by blank, misconceptions, the score and its maximum.

    The misconceptions begin with the diagnosis; there are none without one.

    Example: Graded({'keys.rows': 'right'}, ('head-as-wide-as-model',), 1, 1)
    """
    marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
    diagnosis = report.diagnosis
    misconceptions = (diagnosis.key, *diagnosis.also) if diagnosis else ()
    return Graded(marks, misconceptions, report.score, report.out_of)


def blank_counts(library: Library, store: Store, content: Content) -> tuple[int, ...]:
    """How many blanks each worksheet of an activity has, in order, with the sizes it is defined with."""
    library, worksheets = library_of(library, store, content), [worksheet_of(item) for item in content.items]
    return tuple(len(variant_of(library, store, sheet, own_sizes(sheet)).blanks) for sheet in worksheets)


def worksheet_titles(content: Content) -> tuple[str, ...]:
    """The titles of an activity's worksheets, in order, as they were frozen."""
    return tuple(str(item.worksheet["title"]) for item in content.items)


def variant_seed(activity: Activity, student: Student) -> int:
    """The number that a student's own variant is drawn from.

    It is the same every time, and one student's tells nothing about another's: a 48-bit hash of both ids.
    """
    text = f"activity {activity.id} student {student.id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def _first_sizes(library: Library, activity: Activity, student: Student, worksheet: Worksheet) -> VariantSizes:
    """The sizes a student begins with: drawn for this student under the policy `per_student`, else the worksheet's own.

    They are drawn from the library of the activity, so that newcomers get numbers, and everybody the same ones each
    time, whatever has become of the worksheet.
    """
    if activity.policies.variants == "per_student":
        drawn = library.seeded(worksheet.key, variant_seed(activity, student))
        return VariantSizes(drawn.model.key, drawn.tokens, drawn.decoder_tokens or worksheet.decoder_tokens)
    return own_sizes(worksheet)
