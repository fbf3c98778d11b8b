"""The worksheets of an activity: frozen from the library, and made for one student."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.bugs.bank import freeze_bug
from app.classes.frozen.frozen_library import (
    chosen_form,
    freeze_ticket,
    library_of,
    model_data,
    worksheet_of,
)
from app.classes.frozen.given_sheets import drawn_sizes, given_variant
from app.grading.grade import Report
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.store import (
    Activity,
    ClassSheetKey,
    Content,
    FrozenWorksheet,
    Graded,
    Store,
    Student,
    VariantSizes,
)


@dataclass(frozen=True)
class StudentSheet:
    """One worksheet of an activity as one student has it."""

    key: ClassSheetKey  # for their draft and attempts
    sizes: VariantSizes
    variant: Variant


@dataclass(frozen=True)
class ChosenWorksheet:
    """A worksheet for an activity, by key, with the model and the number of tokens that students get.

    '' and None mean the worksheet's own; for another model, the number of tokens that it can take.
    """

    key: str
    model: str = ""
    tokens: int | None = None


def choice_of(item: FrozenWorksheet) -> ChosenWorksheet:
    """What was chosen when a worksheet was frozen."""
    return ChosenWorksheet(item.key, item.chosen.get("model", ""), item.chosen.get("tokens"))


def freeze(library: Library, worksheets: Sequence[ChosenWorksheet | str], ticket: Ticket | None) -> Content:
    """What students will see: these worksheets as they are defined now, and the exit ticket's questions."""
    choices = [each if isinstance(each, ChosenWorksheet) else ChosenWorksheet(each) for each in worksheets]
    items = tuple(_freeze_choice(library, choice) for choice in choices)
    models = {key: model_data(library.models[key]) for item in items for key in models_of(item)}
    return Content(items, freeze_ticket(ticket) if ticket else None, models)


def _freeze_choice(library: Library, choice: ChosenWorksheet) -> FrozenWorksheet:
    sheet, chosen = library.worksheet(choice.key), dict[str, Any]()
    if choice.tokens is not None or choice.model not in ("", sheet.model):
        variant = library.variant(choice.key, choice.model or None, choice.tokens)
        library.max_versions(choice.key, variant.model.key)  # raises for such a model
        chosen = {"model": variant.model.key, "title": variant.title} if variant.model.key != sheet.model else {}
        chosen |= {"tokens": variant.tokens} if variant.tokens != sheet.tokens else {}
    return chosen_form(sheet, chosen)


def models_of(item: FrozenWorksheet) -> tuple[str, ...]:
    """The keys of the models that a student may get: the chosen one, or the default and those to draw from."""
    if chosen := item.chosen.get("model"):
        return (str(chosen),)
    sheet = worksheet_of(item)
    return (sheet.model, *sheet.models)


def student_sheet(
    library: Library, store: Store, activity: Activity, student: Student, sheet_number: int
) -> StudentSheet:
    """Sheet `sheet_number`, from 1, in the newest revision, as this student has it."""
    draft = store.classwork.draft(sheet_key_of(activity, student, sheet_number))
    return sheet_with_sizes(library, store, activity, student, sheet_number, draft.variant if draft else None)


def sheet_key_of(activity: Activity, student: Student, sheet_number: int) -> ClassSheetKey:
    """The key for a student's work on sheet `sheet_number`, from 1, in the newest revision."""
    sheet_key = activity.content.items[sheet_number - 1].sheet_key
    return ClassSheetKey(student.id, activity.id, activity.revision, sheet_number, sheet_key)


def sheet_with_sizes(
    library: Library,
    store: Store,
    activity: Activity,
    student: Student,
    sheet_number: int,
    saved: VariantSizes | None,
    *,
    gives: bool = True,
) -> StudentSheet:
    """Sheet `sheet_number`, from 1, in the newest revision, as this student has it, with their draft's sizes
    `saved`.

    Unless it `gives` the sheet, as a preview doesn't, it may still change.
    """
    content, item = activity.content, activity.content.items[sheet_number - 1]
    sizes = saved or _first_sizes(library, store, activity, student, item, gives=gives)
    variant = given_variant(library, store, activity, content, item, sizes, gives=gives)
    return StudentSheet(sheet_key_of(activity, student, sheet_number), sizes, variant)


def activity_variant(library: Library, store: Store, activity: Activity, sheet_number: int) -> Variant:
    """Worksheet `sheet_number`, from 1, with the activity's model and lengths, not a student's."""
    item = activity.content.items[sheet_number - 1]
    return given_variant(library, store, activity, activity.content, item, item_sizes(item))


def give_sheets(library: Library, store: Store, activity: Activity) -> None:
    """Keep the sheets of an activity as they are now, with the activity's models and lengths."""
    for number in range(1, len(activity.content.items) + 1):
        activity_variant(library, store, activity, number)


def item_sizes(item: FrozenWorksheet) -> VariantSizes:
    """The model and lengths of a worksheet in an activity: the chosen ones, or the worksheet's defaults."""
    default, chosen = worksheet_sizes(worksheet_of(item)), item.chosen
    return replace(default, model=chosen.get("model", default.model), tokens=chosen.get("tokens", default.tokens))


def sizes_of(variant: Variant) -> VariantSizes:
    """What is stored of a sheet that a seed drew, or that a code names."""
    sheet = variant.worksheet
    bug = freeze_bug(sheet.bug_row) if sheet.dealt_bug and sheet.bug_row else ""
    return VariantSizes(variant.model.key, variant.tokens, variant.decoder_tokens or sheet.decoder_tokens, bug)


def worksheet_sizes(worksheet: Worksheet) -> VariantSizes:
    """The default model and lengths of a worksheet."""
    return VariantSizes(worksheet.model, worksheet.tokens, worksheet.decoder_tokens)


def stored_marks(variant: Variant, report: Report) -> Graded:
    """What is stored of a report with an attempt: mark kinds by box, misconceptions, the score and its maximum.

    Example: Graded({'keys.rows': 'right'}, ('head-as-wide-as-model',), 1, 1)
    """
    marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
    diagnosis = report.diagnosis
    misconceptions = (diagnosis.key, *diagnosis.also) if diagnosis else ()
    return Graded(marks, misconceptions, report.score, report.out_of)


def best_scores(library: Library, store: Store, activity: Activity) -> tuple[int, ...]:
    """The most points on each worksheet of an activity, in order, with the activity's sizes."""
    numbers = range(1, len(activity.content.items) + 1)
    return tuple(activity_variant(library, store, activity, number).best_score for number in numbers)


def worksheet_titles(content: Content) -> tuple[str, ...]:
    return tuple(item.title for item in content.items)


def variant_seed(activity: Activity, student: Student) -> int:
    """The seed of a student's variant: a 48-bit hash of the ids of activity and student."""
    text = f"activity {activity.id} student {student.id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def _first_sizes(
    library: Library, store: Store, activity: Activity, student: Student, item: FrozenWorksheet, *, gives: bool
) -> VariantSizes:
    if activity.policies.variants != "per_student":
        return item_sizes(item)

    def draw() -> VariantSizes:
        frozen, seed = library_of(library, activity.content), variant_seed(activity, student)
        return sizes_of(frozen.seeded(item.key, seed, item.chosen.get("model")))

    return drawn_sizes(store, activity, item, student, draw) if gives and activity.state != "draft" else draw()
