"""Which sheet of an activity a request is about, and what was typed into it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from fastapi import HTTPException, Request

from app.activities.activity import Activity
from app.activities.rules import Rules
from app.activities.work import ActivityProgress, Answers, Attempt, Edit
from app.classes.promises import sheet_promise
from app.classes.sheet_actions import Action, Outcome, SentSheet, SheetWork, perform
from app.classes.sheet_work import ClassWork
from app.classes.student_sheet import StudentSheet, sheet_key_of, sheet_with_sizes
from app.figures.scale import ScaleName
from app.grading.grade import Report
from app.sheets.variant import Variant, box_texts
from app.translation import gettext as _
from app.web.shared.forms import FormReader
from app.web.shared.permissions import StudentAccess, student_access
from app.web.shared.rate_limits import BYTES_OF_ATTEMPT, bytes_of
from app.web.shared.services import Services
from app.web.shared.sheet_form import read_answers, read_edits, read_scale


class ActivityWork(SheetWork, Protocol):
    """A student's (or a preview's) work on a sheet of an activity."""

    @property
    def report(self) -> Report | None: ...
    @property
    def progress(self) -> ActivityProgress: ...
    @property
    def newest_attempts(self) -> Sequence[Attempt]: ...
    def answers_other_numbers(self, attempt: Attempt) -> bool: ...


@dataclass(frozen=True)
class ClassSheetRequest:
    """One sheet of an activity as a student has it, their work on it, and the sent form, if any."""

    access: StudentAccess
    number: int  # the sheet's number in the activity, from 1
    sheet: StudentSheet
    work: ActivityWork
    typed: Answers
    scale: ScaleName
    sent: SentSheet | None = None

    @property
    def activity(self) -> Activity:
        """The activity, with the student's extra time."""
        return self.access.activity

    @property
    def rules(self) -> Rules:
        """What may be shown and done on this sheet now."""
        return self.access.rules

    @property
    def variant(self) -> Variant:
        return self.sheet.variant

    @property
    def answers(self) -> Mapping[str, str]:
        """Only the texts of the boxes, for grading; `typed` also has the answers to open questions."""
        return box_texts(self.variant, self.typed)

    @property
    def edits(self) -> Mapping[str, Edit] | None:
        """Which boxes the form says are new in its tab; None without a form or without script."""
        return self.sent.edits if self.sent else None

    def done(self, action: Action) -> tuple[Outcome, Self]:
        """Do an action with the sent form, and store it."""
        assert self.sent is not None  # noqa: S101 - only a posted form leads here
        outcome, work = perform(action, self.variant, self.work, self.rules, self.sent)
        typed = work.draft.answers if work.draft and outcome.result == "saved" else outcome.answers
        return outcome, replace(self, work=work, typed=typed)


def opened_class_sheet(services: Services, access: StudentAccess, number: int, scale: str) -> ClassSheetRequest:
    """Sheet `number`, from 1, as last saved or empty; 404 if the activity has fewer sheets."""
    work = class_work(services, access, number)
    typed = work.draft.answers if work.draft else {}
    return ClassSheetRequest(access, number, work.sheet, work, typed, read_scale(scale))


def posted_class_sheet(
    request: Request, services: Services, form: FormReader, activity_id: int, number: int
) -> ClassSheetRequest:
    """The sheet that a student's form was sent from, with the form."""
    access = student_access(request, services, activity_id, form.single_line("sheet"))
    work = class_work(services, access, number)
    return sent_class_sheet(access, form, number, work.sheet, work)


def sent_class_sheet(
    access: StudentAccess, form: FormReader, number: int, sheet: StudentSheet, work: ActivityWork
) -> ClassSheetRequest:
    """The sheet with a sent form: texts, edits, request id, whether its promised rules have changed, and the scale."""
    answers = read_answers(form, sheet.variant)
    promise = sheet_promise(access.activity, number)
    sent = SentSheet(
        answers,
        read_edits(form, sheet.variant),
        request_id=request_id(form, answers),
        rules_changed=promised_otherwise(form, promise),
        asks_about_empty=form.raw("empty") == "ask",
    )
    return ClassSheetRequest(access, number, sheet, work, answers, read_scale(form.raw("scale")), sent)


def class_work(services: Services, access: StudentAccess, number: int) -> ClassWork:
    """A student's work on sheet `number`, from 1; 404 if the activity has no such sheet."""
    if not 1 <= number <= len(access.activity.content.items):
        raise HTTPException(404)
    key = sheet_key_of(access.activity, access.student, number)
    known_key, done = access.work or ("", None)
    if done is None or known_key != key.sheet_key:  # the form belongs to another version of the sheet, or names none
        done = services.store.classwork.work(key)
    saved = done.draft.variant if done.draft else None
    sheet = sheet_with_sizes(services.library, services.store, access.activity, access.student, number, saved)
    charge = _charge_once(services, access.student.id)
    return ClassWork(services.store, key, sheet.sizes, done, services.library, access.activity, sheet, charge)


def require_open(access: StudentAccess) -> None:
    """Raise `not_open`'s 409 if the activity accepts nothing: before opening, and after closing and grace."""
    if not access.rules.accepts:
        raise not_open(access)


def not_open(access: StudentAccess) -> HTTPException:
    reason = {"X-Refused": "closed"} if access.phase in ("closing", "closed") else None
    return HTTPException(
        409,
        _("This activity isn’t open right now, so nothing can be checked or handed in. Your answers are still here."),
        reason,
    )


def promised_otherwise(form: FormReader, promise: str) -> bool:
    """Whether the form's page promised something other than `promise`; False if it promised nothing."""
    return form.optional("promise") not in (None, promise)


def read_form_id(form: FormReader) -> str:
    """The field `form_id`, different on each loaded page; a random id if it is missing or malformed."""
    text = form.raw("form_id")
    return text if re.fullmatch(r"[\w-]{8,40}", text, re.ASCII) else secrets.token_urlsafe(16)


def request_id(form: FormReader, answers: Answers) -> str:
    """The form's id and a hash of the answers: the same for a form sent twice with the same answers."""
    text = json.dumps(answers, sort_keys=True)
    return f"{read_form_id(form)}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _charge_once(services: Services, student_id: int) -> Callable[[Answers], None]:
    is_charged = False

    def charge(answers: Answers) -> None:
        nonlocal is_charged
        if not is_charged:
            services.storage.charge_student(student_id, max(BYTES_OF_ATTEMPT, bytes_of(answers)))
        is_charged = True

    return charge
