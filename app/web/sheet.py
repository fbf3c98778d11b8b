"""One sheet as somebody has it, in practice, in a class or in a preview: what its form shows, and what its buttons do.

A router makes the SheetContext of a request (see sheet_in_practice.py, sheet_in_class.py and preview.py), and calls
`save` or `press`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from fastapi import HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.rules import Rules
from app.activities.work import Answers, Attempt
from app.classes import sheet_actions
from app.classes.sheet_actions import Action, Outcome, SentSheet, SheetWork, attempt_visible, can_hint, perform
from app.grading.explain import MAX_ATTEMPTS_EXPLAINED, Explanation, explain_diagnosis
from app.grading.grade import Report, without_help
from app.grading.hints import next_hint_level, write_hint
from app.sheets.variant import Variant, box_texts
from app.web.shared.services import Services
from app.web.shared.sheet_form import Drawing, draw_typed, read_hint_level, saved_json
from app.web.shared.sheet_view import (
    all_boxes_right,
    changed_since_check,
    first_to_fix,
    progress,
    question_views,
    row_views,
    run_button,
    sheet_notes,
    step_asked,
)
from app.web.shared.templating import is_htmx, render


class WorkShown(SheetWork, Protocol):
    """The work on a sheet, with earlier attempts."""

    @property
    def counted(self) -> Attempt | None: ...
    @property
    def newest_attempts(self) -> Sequence[Attempt]: ...


@dataclass(frozen=True, kw_only=True)
class SheetContext(ABC):
    """A sheet, the work on it, the rules in force, what is typed, and the form if one was sent."""

    services: Services
    variant: Variant
    work: WorkShown
    rules: Rules
    typed: Answers  # in the boxes and under the open questions
    sent: SentSheet | None = None
    report: Report | None = None  # of an action just done

    page: ClassVar[str]  # the template of the whole page
    form: ClassVar[str]  # the template of its form

    @property
    @abstractmethod
    def links(self) -> Mapping[str, Any]:
        """The addresses in the form, by their names in templates/shared/_sheet.html."""

    @abstractmethod
    def address(self, result: str, level: object) -> str:
        """The page's address for a browser without script, after a button with this result or hint."""

    @abstractmethod
    def report_of(self, attempt: Attempt) -> tuple[Variant, Report]:
        """An attempt's marks, with the version of the sheet that they belong to."""

    @abstractmethod
    def names(self, result: str = "", level: str = "") -> dict[str, Any]:
        """Everything that the templates show after an action with this result, or a hint of this level."""

    @property
    def answers(self) -> Answers:
        """The texts of the boxes only, for grading."""
        return box_texts(self.variant, self.typed)

    @property
    def saved_state(self) -> str:
        return saved_json(self.work.draft, self.sent.edits if self.sent else None)

    @property
    def is_locked(self) -> bool:
        return self.rules.is_locked(self.work.attempts)

    @property
    def is_one_at_a_time(self) -> bool:
        """Whether a sheet in steps shows one step after another.

        With few attempts, or marks that come later, nobody could go from one step to the next.
        """
        return self.rules.policies.checks_freely and not self.is_locked

    @property
    def attempt_shown(self) -> Attempt | None:
        """The attempt whose marks are shown: the last, and once the answers are shown the one that counts."""
        return self.work.counted if self.rules.shows_answers else self.work.last

    def marked(self, result: str) -> tuple[Variant, Report | None]:
        """The marks to show after an action, with the version of the sheet that they belong to."""
        shown = self.attempt_shown
        if shown is None or not attempt_visible(shown, self.work, self.rules):
            return self.variant, None
        variant, report = self.report_of(shown)
        return variant, report if self.rules.gives_help else without_help(report)

    def refusal(self, result: str) -> HTTPException:
        """Why a button did nothing."""
        return HTTPException(409)

    def shows_answers(self, result: str) -> bool:
        return self.rules.shows_answers

    def gives_hint(self) -> bool:
        return can_hint(self.variant, self.work, self.rules)

    def attempts_to_explain(self) -> Sequence[Attempt]:
        return self.work.newest_attempts[:MAX_ATTEMPTS_EXPLAINED]

    def done(self, action: Action) -> tuple[Outcome, Self]:
        """Do an action with the sent form, and store it."""
        assert self.sent is not None  # noqa: S101 - only a posted form leads here
        outcome, work = perform(action, self.variant, self.work, self.rules, self.sent)
        typed = work.draft.answers if work.draft and outcome.result == "saved" else outcome.answers
        return outcome, replace(self, work=work, typed=typed, report=outcome.report)

    def drawn(self, variant: Variant) -> Drawing | None:
        """A drawing of what was typed, with the shapes of this version of the sheet."""
        rules, last = self.rules, self.work.last
        if not rules.gives_help:
            return None
        return draw_typed(
            variant,
            self.answers,
            explains=rules.shows_marks_of_checks and last is not None,
            names_sizes=rules.shows_marks_of_checks,
            shows_mismatches=rules.shows_mismatches,
            step=step_asked(variant, self.answers, last.answers if last else None) if self.is_one_at_a_time else "",
        )

    def respond(self, request: Request, result: str, level: str) -> Response:
        """The form after an action; a browser without script is sent to the sheet's page (303)."""
        if is_htmx(request):
            return render(self.form, **self.names(result, level) | {"focused": ""})  # a script moves the focus
        return RedirectResponse(self.address(result, level), 303)

    def remember(self, request: Request, response: Response, outcome: Outcome) -> None:  # noqa: B027 - only in practice
        """Keep what an action means beyond the sheet, such as a visitor's progress."""

    def form_names(self, result: str, level: str) -> dict[str, Any]:
        """What templates/shared/_sheet.html shows; `names` adds what is around it."""
        variant, rules, answers = self.variant, self.rules, self.answers
        marked, report = self.marked(result)
        is_locked, has_example = self.is_locked, sheet_actions.may_see_example(variant, rules)
        hint = write_hint(marked, report, read_hint_level(level)) if level and report and self.gives_hint() else None
        truth = marked if self.shows_answers(result) else None
        drawing = self.drawn(marked if is_locked else variant)
        # What doesn't fit is said once: in the drawing, if there is one.
        notes = sheet_notes(variant, answers, report, hint, mismatch=rules.in_practice and drawing is None)
        # Next to a right answer, a row's reason may give away another answer, as hints do.
        explains = rules.gives_hints or (rules.gives_help and report is not None and report.complete)
        rows = row_views(
            variant,
            answers,
            report,
            truth=truth,
            pointed_at=hint.blanks if hint else (),
            notes=notes,
            explains=explains,
            one_at_a_time=self.is_one_at_a_time,
        )
        so_far = progress(variant, answers, report) if self.is_one_at_a_time else None
        all_right = all_boxes_right(rows)
        is_explained = rules.gives_help and (all_right or (truth and report))
        may_hint = rules.gives_hints and not is_locked and not truth
        last, links = self.work.last, self.links
        can_hand_in = rules.can_hand_in(self.work.attempts, handed_in=last is not None and last.handed_in)
        return {
            **links,
            "variant": variant,
            "rows": rows,
            "progress": so_far,
            "questions": question_views(variant, self.typed, locked=not can_hand_in),
            "can_hand_in": can_hand_in,
            "locked": is_locked,
            "drawing": drawing,
            "marked": marked,
            "report": report,
            "all_right": all_right,
            "stale": report is not None and not is_locked and changed_since_check(rows),
            "notes": notes,
            "hint": hint,
            "next_hint": next_hint_level(variant, report, hint) if may_hint else None,
            "explanation": self._explanation() if is_explained else None,
            "example": links["example"] if has_example else "",
            "another": links["another"] if has_example and (all_right or truth) else "",
            "notice": "",
            "shows_score": report is not None,
            "remark": "",
            "run_button": run_button(variant) if sheet_actions.may_run(self.work, rules) else "",
            "autosaves": not is_locked or (can_hand_in and bool(variant.worksheet.questions)),
            "saved": self.work.draft is not None,
            "saved_state": self.saved_state,
            "focused": first_to_fix(rows) or "next" if hint or result == "checked" else "",
            # An exhibit shows mismatches and names sizes, as hints do.
            "sees": rules.gives_hints and rules.shows_marks_of_checks and not is_locked and (all_right or not so_far),
            "in_class": not rules.in_practice,
        }

    def _explanation(self) -> Explanation | None:
        # It shows answers: only for a sheet that is all right, or whose answers are shown.
        for attempt in self.attempts_to_explain():
            if explanation := explain_diagnosis(*self.report_of(attempt)):
                return explanation
        return None


def save(request: Request, context: SheetContext, *, is_drawn: bool = True) -> Response:
    """Save what was typed; the answer has what is stored now, and its drawing unless that comes later."""
    outcome, context = context.done(sheet_actions.save)
    if outcome.is_refused:
        raise context.refusal(outcome.result)
    drawing = context.drawn(context.variant) if is_drawn else None
    response = render("shared/_saved.html", drawing=drawing, saved_state=context.saved_state)
    context.remember(request, response, outcome)
    return response


def press(request: Request, context: SheetContext, action: Action, level: str = "") -> Response:
    """Do what a button asks for, and show the sheet after it; `level` is that of a hint."""
    outcome, context = context.done(action)
    if not outcome.is_refused:
        shown = str(read_hint_level(level)) if outcome.result == "hint" else ""
        response = context.respond(request, outcome.result, shown)
        context.remember(request, response, outcome)
        return response
    refusal = context.refusal(outcome.result)
    if outcome.result != "not-open" or is_htmx(request) or context.rules.phase == "waiting":
        raise refusal
    names = context.names() | {"notice": refusal.detail, "remark": ""}
    return render(context.page, status=refusal.status_code, **names)
