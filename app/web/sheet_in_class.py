"""A sheet of an activity as a student has it, and as a preview shows it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

from fastapi import HTTPException, Request

from app.activities.activity import Activity
from app.activities.work import ActivityProgress, Answers, Attempt
from app.classes.activity_results import report_as_stored
from app.classes.promises import (
    counted_in_words,
    counting_in_words,
    marking_in_words,
    rules_in_words,
    sheet_promise,
)
from app.classes.sheet_actions import attempt_visible, empty_boxes, may_see_example
from app.classes.sheet_work import ClassWork
from app.classes.student_sheet import StudentSheet, models_of, sheet_key_of, sheet_with_sizes
from app.grading.grade import Report
from app.sheets.variant import Variant
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.activity_steps import activity_steps, closing_notice, next_step
from app.web.shared.example_view import ExampleRequest
from app.web.shared.forms import FormDep
from app.web.shared.permissions import StudentAccess, student_access
from app.web.shared.rate_limits import BYTES_OF_ATTEMPT, bytes_of
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import read_sheet
from app.web.shared.urls import url_for
from app.web.sheet import SheetContext, WorkShown

Primary = Literal["check", "hand-in", "anyway", "next", ""]  # "anyway": hand in with empty boxes, after being asked


class ActivityWork(WorkShown, Protocol):
    """A student's (or a preview's) work on a sheet of an activity."""

    @property
    def report(self) -> Report | None: ...
    @property
    def progress(self) -> ActivityProgress: ...


@dataclass(frozen=True, kw_only=True)
class ClassSheet(SheetContext):
    """Sheet `number`, from 1, of an activity as this student has it; `access` is whose it is."""

    work: ActivityWork
    access: StudentAccess
    number: int
    sheet: StudentSheet

    page: ClassVar[str] = "student/class_sheet.html"
    form: ClassVar[str] = "student/_class_sheet_form.html"

    @property
    def activity(self) -> Activity:
        """The activity, with the student's extra time."""
        return self.access.activity

    @property
    def links(self) -> Mapping[str, Any]:
        links, number, activity = self.access.links, self.number, self.activity
        return {
            "action": links.press(number, "hand-in"),
            "save_action": links.press(number, "save"),
            "run_action": links.press(number, "run"),
            "example": links.sheet_like(number, "worked"),
            "another": links.sheet_like(number, "another"),
            "autosave_key": f"{links.sheet(number)} {self.access.student.id} {self.sheet.key.sheet_key}",
            "slide_query": {"activity": activity.id, "number": number},
        }

    def address(self, result: str, level: object) -> str:
        shown = {"result": "" if level else result, "hint": level}
        query = {name: value for name, value in shown.items() if value}
        return url_for("show_class_sheet", activity_id=self.activity.id, number=self.number, **query)

    def report_of(self, attempt: Attempt) -> tuple[Variant, Report]:
        """The stored marks: they belong to a version of the sheet, which a regrade may have corrected."""
        if attempt is self.work.last and self.work.report:  # just graded
            return self.variant, self.work.report
        item = self.activity.content.items[self.number - 1]
        return report_as_stored(self.services.library, self.services.store, self.activity, item, self.variant, attempt)

    def attempts_to_explain(self) -> Sequence[Attempt]:
        return [each for each in super().attempts_to_explain() if not self.work.answers_other_numbers(each)]

    def names(self, result: str = "", level: str = "") -> dict[str, Any]:
        access, rules, last = self.access, self.rules, self.work.last
        names = self.form_names(result, level)
        report = names["report"]
        steps = activity_steps(access, self.work.progress.sheets, self.number)
        names |= {
            "access": access,
            "closing": closing_notice(self.services.store, access),
            "writable": rules.is_writable,
            "steps": steps,
            "ticket_in": self.work.progress.ticket_in,
            "number": self.number,
            "hidden_fields": {
                "form_id": secrets.token_urlsafe(16),
                "promise": sheet_promise(self.activity, self.number),
                "sheet": self.sheet.key.sheet_key,
            },
            "last": last,
            "rule": self._rule(report),
            "attempts_left": rules.attempts_left(self.work.attempts),
            "next": next_step(access, steps, self.work.progress.ticket_in, self.number),
            "primary": self._primary(report, can_hand_in=names["can_hand_in"]) if rules.is_writable else "",
            "notice": self._other_version(names["marked"]),
            "misconceptions": {},  # of a preview
            "held": "",
        }
        if last and last.handed_in and not report and not names["notice"]:
            names["remark"] = _("Auto-submitted at closing.") if last.auto_submitted else _("Handed in.")
        if notice := self._said_after(result):
            names |= {"notice": notice, "remark": ""}
        if notice and result == "empty":
            names |= {"primary": "anyway", "shows_score": False}
        return names

    def _rule(self, report: Report | None) -> str:
        """What a mistake costs and which attempt counts; before there are marks, only if it isn't the last."""
        policies, counted, shown = self.rules.policies, self.work.counted, self.attempt_shown
        sentences = [marking_in_words(policies)] if report else []
        is_other = counted is not None and shown is not None and counted.id != shown.id
        if counted and is_other and attempt_visible(counted, self.work, self.rules):
            sentences.append(counted_in_words(policies, counted))
        elif report or (self.rules.is_writable and policies.counting != "last"):
            sentences.append(counting_in_words(policies))
        return " ".join(sentences)

    def _primary(self, report: Report | None, *, can_hand_in: bool) -> Primary:
        last = self.work.last
        if last is not None and last.handed_in:
            return "next"
        if self.rules.can_check and not self.is_locked and not (report and report.complete):
            return "check"
        return "hand-in" if can_hand_in else ""

    def _other_version(self, marked: Variant) -> str:
        shown = self.attempt_shown
        if shown and self.work.answers_other_numbers(shown):
            return _("Your attempt was on paper, with different numbers. Your teacher has its marks.")
        if marked is not self.variant:
            return _("Your marks are for another version of this sheet; they are the ones that count.")
        return ""

    def _said_after(self, result: str) -> str:
        last = self.work.last  # asked, because a result may come from a typed address
        if result == "empty" and (empty := empty_boxes(self.variant, self.answers)):
            question = ngettext(
                "{count} box is empty. Hand in anyway?", "{count} boxes are empty. Hand in anyway?", empty
            )
            return question.format(count=empty)
        if result == "new-rules":
            changed = _("Your teacher has changed this activity, so nothing was handed in or marked.")
            kept = _("Your answers are still in the boxes.")
            return " ".join((changed, *rules_in_words(self.activity), kept))
        if result == "handed-in" and last and last.handed_in:
            later = self.activity.policies.feedback == "after_close"
            return _("Handed in. Marks and answers are shown after the activity closes.") if later else _("Handed in.")
        if result == "nothing-read":
            return _("There is nothing to grade yet: fill in a box.")
        if result == "no-attempts-left":
            return " ".join((_("You have no attempts left."), counting_in_words(self.activity.policies)))
        return ""

    def refusal(self, result: str) -> HTTPException:
        if result == "marks-later":
            return HTTPException(409, _("In this activity, marks are shown after you hand in."))
        if result == "no-hint":
            sentence = _(
                "There is no hint for this: hints are about answers you have checked, in activities that allow them."
            )
            return HTTPException(409, sentence)
        return not_open(self.access)


def opened_class_sheet(services: Services, access: StudentAccess, number: int) -> ClassSheet:
    """Sheet `number` (from 1) as last saved or, once the activity has closed, the attempt that counts."""
    work = _class_work(services, access, number)
    typed = work.draft.answers if work.draft else {}
    if access.rules.shows_answers and work.counted and not work.answers_other_numbers(work.counted):
        typed = work.counted.answers
    return ClassSheet(
        services=services,
        variant=work.sheet.variant,
        work=work,
        rules=access.rules,
        typed=typed,
        access=access,
        number=number,
        sheet=work.sheet,
    )


def posted_class_sheet(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> ClassSheet:
    """The sheet that a student's form was sent from, with the form."""
    access = student_access(request, services, activity_id, form.single_line("sheet"))
    context = opened_class_sheet(services, access, number)
    sent = read_sheet(form, context.variant, sheet_promise(access.activity, number))
    return replace(context, typed=sent.answers, sent=sent)


def class_example(context: ClassSheet, kind: str, seed: str) -> ExampleRequest:
    """An example like a student's sheet, with models that the activity doesn't ask about."""
    access, number = context.access, context.number
    if access.phase == "waiting" or not may_see_example(context.variant, access.rules):
        raise HTTPException(404)
    # Another sheet of the activity may ask the same about another model.
    asked = {key for item in access.activity.content.items for key in models_of(item)}
    models = {key: model for key, model in context.services.library.models.items() if key not in asked}
    library, links = replace(context.services.library, models=models), access.links
    return ExampleRequest(
        context.variant,
        library,
        kind,
        seed,
        links.sheet(number),
        lambda kind, seed: links.sheet_like(number, kind, seed=seed),
    )


def require_sheet(access: StudentAccess, number: int) -> None:
    """Raise 404 if the activity has no sheet `number`, from 1."""
    if not 1 <= number <= len(access.activity.content.items):
        raise HTTPException(404)


def require_open(access: StudentAccess) -> None:
    """Raise 409 if the activity accepts nothing: before opening, and after closing and grace."""
    if not access.rules.accepts:
        raise not_open(access)


def not_open(access: StudentAccess) -> HTTPException:
    reason = {"X-Refused": "closed"} if access.phase in ("closing", "closed") else None
    return HTTPException(
        409,
        _("This activity isn’t open right now, so nothing can be checked or handed in. Your answers are still here."),
        reason,
    )


def _class_work(services: Services, access: StudentAccess, number: int) -> ClassWork:
    require_sheet(access, number)
    key = sheet_key_of(access.activity, access.student, number)
    known_key, done = access.work or ("", None)
    if done is None or known_key != key.sheet_key:  # the form belongs to another version of the sheet, or names none
        done = services.store.classwork.work(key)
    saved = done.draft.variant if done.draft else None
    sheet = sheet_with_sizes(services.library, services.store, access.activity, access.student, number, saved)
    charge = _charge_once(services, access.student.id)
    return ClassWork(services.store, key, sheet.sizes, done, services.library, access.activity, sheet, charge)


def _charge_once(services: Services, student_id: int) -> Callable[[Answers], None]:
    is_charged = False

    def charge(answers: Answers) -> None:
        nonlocal is_charged
        if not is_charged:
            services.storage.charge_student(student_id, max(BYTES_OF_ATTEMPT, bytes_of(answers)))
        is_charged = True

    return charge
