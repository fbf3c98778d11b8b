"""Which sheet of an activity a request is about, and what was typed into it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

from fastapi import Depends, HTTPException

from app.activities.work import ClassDraft, MergedBoxes, merge_boxes
from app.classes.frozen.frozen_library import library_of
from app.classes.student_sheet import StudentSheet, sheet_key_of, sheet_with_draft, variant_of
from app.figures.scale import ScaleName
from app.sheets.variant import Variant, box_texts
from app.store import Activity, ClassAttempt, ClassSheetKey, SheetProgress
from app.translation import gettext as _
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import StudentAccess, StudentAccessDep
from app.web.shared.rate_limits import BYTES_OF_ATTEMPT, BudgetSpentError, bytes_of
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import read_answers, read_changed, read_scale
from app.web.shared.threads import in_threads


class SheetWork(Protocol):
    """What a student has done in an activity: what the database has, or what the form of a preview carries."""

    def draft(self, key: ClassSheetKey) -> ClassDraft | None: ...
    def progress(self, activity_id: int, student_id: int) -> Mapping[str, SheetProgress]: ...
    def last_attempt(self, key: ClassSheetKey) -> ClassAttempt | None: ...
    def attempts(self, key: ClassSheetKey) -> Sequence[ClassAttempt]: ...


@dataclass(frozen=True)
class ClassSheetRequest:
    """One sheet of an activity as a student has it, and what stands in its boxes.

    The texts are those of the form that was posted, but for boxes that another device has changed since; for a page
    that is only looked at, those of the last save.
    """

    access: StudentAccess
    number: int  # of the sheet in the activity, from 1
    sheet: StudentSheet
    draft: ClassDraft
    scale: ScaleName
    work: SheetWork

    @property
    def activity(self) -> Activity:
        """The activity, with the student's extra time."""
        return self.access.activity

    @property
    def is_writable(self) -> bool:
        """Whether the page of this request can be typed in."""
        return self.activity.is_writable(self.access.now)

    @property
    def variant(self) -> Variant:
        """The sheet with this student's sizes."""
        return self.sheet.variant

    @property
    def answers(self) -> Mapping[str, str]:
        """The texts of the boxes, by blank, which are graded; the draft also has the answers to open questions."""
        return box_texts(self.variant, self.draft.answers)


def saved_class_sheet(
    services: ServicesDep, access: StudentAccessDep, number: int, scale: str = "root"
) -> ClassSheetRequest:
    """The sheet of that number, from 1, as it was last saved; raises 404 where the activity has fewer sheets."""
    sheet = _student_sheet(services, access, number)
    draft = sheet.draft or ClassDraft({}, 0, sheet.sizes)
    return ClassSheetRequest(access, number, sheet, draft, read_scale(scale), services.store.classwork)


def posted_class_sheet(
    services: ServicesDep, access: StudentAccessDep, form: FormDep, number: int
) -> ClassSheetRequest:
    """The sheet that a form was sent from, with its boxes as typed; raises 404 where the activity has fewer sheets."""
    sheet = _student_sheet(services, access, number)
    typed = ClassDraft(read_answers(form, sheet.variant), 0, sheet.sizes, read_changed(form, sheet.variant))
    draft, scale = _merged_with(sheet.draft, typed), read_scale(form.raw("scale"))
    return ClassSheetRequest(access, number, sheet, draft, scale, services.store.classwork)


SavedClassSheet = Annotated[ClassSheetRequest, Depends(in_threads("class")(saved_class_sheet))]
PostedClassSheet = Annotated[ClassSheetRequest, Depends(in_threads("class")(posted_class_sheet))]


def require_open(access: StudentAccess) -> None:
    """Raise 409 with a sentence where the activity takes nothing in: before it opens, and once the grace is over.

    `X-Refused: closed` tells the script of the page that nothing will be saved any more.
    """
    if not access.activity.accepts(access.now):
        reason = {"X-Refused": "closed"} if access.phase in ("closing", "closed") else None
        raise HTTPException(
            409,
            _("This activity isn’t open right now, so nothing was handed in. Your answers are still in the boxes."),
            reason,
        )


def charge_attempt(services: Services, asked: ClassSheetRequest) -> None:
    """Charge one more attempt to what the student may store; nothing if the activity limits attempts.

    Raises BudgetSpentError after hundreds within an hour, and saves the draft first, so that it is taken in at closing.
    """
    if asked.activity.policies.max_attempts:
        return
    try:
        size = max(BYTES_OF_ATTEMPT, bytes_of(asked.draft.answers))
        services.storage.charge_student(asked.access.student.id, size)
    except BudgetSpentError:
        services.store.classwork.save(asked.sheet.key, asked.draft)
        raise


def marks_visible(services: Services, asked: ClassSheetRequest, last: ClassAttempt) -> bool:
    """Whether the policies show the marks of this attempt now, and the boxes on this page are those it answered."""
    shown = asked.activity.policies.marks_visible(asked.access.phase, last.handed_in)
    return shown and not has_other_numbers(services, asked, last)


def has_other_numbers(services: Services, asked: ClassSheetRequest, last: ClassAttempt) -> bool:
    """Whether an attempt answers a sheet with other sizes, as one on paper may, so that its marks are not for this one.

    Stored sizes that are equal mean no; for others, the codes of the two sheets are compared.
    """
    if last.variant == asked.sheet.sizes:
        return False
    library = library_of(services.library, services.store, asked.activity.content)
    variant = variant_of(library, services.store, asked.variant.worksheet, last.variant)
    return variant.code != asked.variant.code


def may_run(services: Services, asked: ClassSheetRequest, last: ClassAttempt | None) -> bool:
    """Whether the policies let a student run the head now; `last` is their last attempt on the sheet.

    A run shows the answers. So it needs an attempt whose marks may be seen, unless the activity allows it before.
    """
    policies, phase = asked.activity.policies, asked.access.phase
    if phase == "waiting" or not policies.gives_help(phase):
        return False
    return policies.run == "before" or (last is not None and marks_visible(services, asked, last))


def promised_otherwise(form: FormReader, promise: str) -> bool:
    """Whether a form was sent from a page that promised something else; one without a promise was promised nothing."""
    return form.optional("promise") not in (None, promise)


def read_form_id(form: FormReader) -> str:
    """The id of the form that was sent, which the page was given; a new one where it is missing or malformed."""
    text = form.raw("form_id")
    return text if re.fullmatch(r"[\w-]{8,40}", text, re.ASCII) else secrets.token_urlsafe(16)


def request_id(form: FormReader, variant: Variant) -> str:
    """An id by which the database knows a request that is sent again.

    The same form with the same answers has the same id, and another one once anything in the boxes has changed.
    """
    text = json.dumps(read_answers(form, variant), sort_keys=True)
    return f"{read_form_id(form)}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _merged_with(stored: ClassDraft | None, typed: ClassDraft) -> ClassDraft:
    """What a form sent, with every box that its page has not changed as it is stored: another device may have."""
    if stored is None or typed.changed is None:
        return typed
    merged = merge_boxes(MergedBoxes(stored.answers, stored.pages), typed.answers, typed.changed)
    return replace(typed, answers={**typed.answers, **(merged or stored).answers})


def _student_sheet(services: Services, access: StudentAccess, number: int) -> StudentSheet:
    """The sheet of that number, from 1; raises 404 where the activity has fewer."""
    if not 1 <= number <= len(access.activity.content.items):
        raise HTTPException(404)
    key = sheet_key_of(access.activity, access.student, number)
    known, draft = access.draft or ("", None)
    if known != key.sheet_key:  # the form was sent from another version of the sheet, or says nothing of it
        draft = services.store.classwork.draft(key)
    return sheet_with_draft(services.library, services.store, access.activity, access.student, number, draft)
