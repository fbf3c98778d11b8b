"""A practice sheet as this browser has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from fastapi import Depends, Request, Response

from app.activities.rules import PRACTICE_RULES
from app.activities.work import Attempt, PracticeSheetKey, WorkDone
from app.classes.sheet_actions import Outcome
from app.classes.sheet_work import PracticeWork, practice_sheet_key
from app.classes.student_sheet import sizes_of
from app.exchange.imported_models import library_with_model
from app.grading.grade import Report, grade
from app.practice.catalogue import short_name
from app.practice.lessons import LESSONS, worksheet_after
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import key_in, library_key
from app.store import Visitor
from app.translation import gettext as _
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep
from app.web.shared.practice_place import practice_place
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import FIRST_WORKSHEET, find_variant, library_for, sheet_link
from app.web.shared.sheet_form import read_sheet
from app.web.shared.sheet_view import in_steps
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, remember_visitor
from app.web.sheet import SheetContext

_NOBODY = Visitor(0, "")  # whose browser has stored nothing yet


@dataclass(frozen=True)
class Suggestion:
    """A sheet or page to go to: the link's text and address."""

    text: str
    link: str


@dataclass(frozen=True, kw_only=True)
class PracticeSheet(SheetContext):
    """A practice sheet in its library, with this browser's work on it."""

    work: PracticeWork
    library: Library

    page: ClassVar[str] = "practice/sheet.html"
    form: ClassVar[str] = "practice/_sheet_form.html"

    @property
    def visitor(self) -> Visitor | None:
        return None if self.work.owner is _NOBODY else self.work.owner

    @property
    def links(self) -> Mapping[str, Any]:
        return {
            "action": url_for("check_sheet"),
            "save_action": url_for("save_sheet"),
            "run_action": url_for("start_run"),
            "example": sheet_link(self.variant, "show_example"),
            "another": sheet_link(self.variant, "show_another"),
            "autosave_key": sheet_link(self.variant),
            "slide_query": {},
        }

    def address(self, result: str, level: object) -> str:
        shown: dict[str, object] = {"checked": 1}
        if result in ("answers", "try-first"):
            shown = {"answers": 1}
        elif level:
            shown = {"hint": level}
        return sheet_link(self.variant, "show_sheet", **shown)

    def report_of(self, attempt: Attempt) -> tuple[Variant, Report]:
        return self.variant, grade(self.variant, attempt.answers)

    def marked(self, result: str) -> tuple[Variant, Report | None]:
        # A check or a hint marks what is typed, even if nothing in it could be read, so that it isn't an attempt.
        if self.report:
            return self.variant, self.report
        if result in ("checked", "hint") and self.work.draft:
            return self.variant, grade(self.variant, self.answers)
        return super().marked(result)

    def shows_answers(self, result: str) -> bool:
        return result == "answers" and self.work.last is not None

    def gives_hint(self) -> bool:
        return True

    def names(self, result: str = "", level: str = "") -> dict[str, Any]:
        names, variant = self.form_names(result, level), self.variant
        sheet = self.library.worksheets.get(library_key(variant.worksheet.key))
        deals_bugs = sheet is not None and sheet.bugs != "one"
        names |= {
            "answers_shown": self.shows_answers(result),
            "link": sheet_link(variant),
            "print_link": sheet_link(variant, "show_handout"),
            "bug_link": sheet_link(variant, "show_another") if deals_bugs else "",
            "ends_lesson": any(library_key(variant.worksheet.key) == lesson.sheets[-1] for lesson in LESSONS),
            "next": _next_worksheet(self.library, variant) if names["all_right"] else None,
            "hidden_fields": {} if self.visitor else {"form_secret": FormSecret.new().secret},
        }
        if result in ("answers", "try-first") and self.work.last is None:
            notice = _("Try it first: check your answers once. Then you can see the right ones.")
            names |= {"notice": notice, "shows_score": False}
        return names

    def remember(self, request: Request, response: Response, outcome: Outcome) -> None:
        """Set the visitor's cookie, and record a check in the visitor's progress."""
        if self.visitor:
            remember_visitor(request, response, self.visitor)
        if outcome.attempt is None or outcome.report is None:
            return
        place = practice_place(request, self.services, self.visitor)
        attempts = self.work.newest_attempts if outcome.report.complete else ()
        right = [attempt for attempt in attempts if grade(self.variant, attempt.answers).complete]
        record = place.record.after_check(self.variant, outcome.report, first_time_right=len(right) == 1)
        place.keep(request, response, self.services.store, record)


def opened_practice_sheet(request: Request, services: Services, library: Library, variant: Variant) -> PracticeSheet:
    """A sheet with this browser's last saved texts and work, if any."""
    token = request.cookies.get(VISITOR_COOKIE)
    work = PracticeWork.find(services.store, token, variant) if token else None
    if work is None:
        key = PracticeSheetKey(_NOBODY.id, practice_sheet_key(variant))
        work = PracticeWork(services.store, key, sizes_of(variant), WorkDone(), _NOBODY)
    return PracticeSheet(
        services=services,
        variant=variant,
        work=work,
        rules=PRACTICE_RULES,
        typed=work.draft.answers if work.draft else {},
        library=library,
    )


def posted_practice_sheet(request: Request, services: ServicesDep, form: FormDep) -> PracticeSheet:
    """The sheet that a form was sent from, with the form; a browser without a visitor gets one.

    Raises BudgetSpentError, and what `find_variant` raises for an unknown sheet.
    """
    store, model = services.store, form.raw("model")
    worksheet = form.optional("worksheet") or FIRST_WORKSHEET
    library = library_with_model(library_for(request, services, worksheet), store, model)
    variant = find_variant(library, worksheet, model, form.optional("tokens"), form.raw("decoded"))
    sent, token = read_sheet(form, variant), request.cookies.get(VISITOR_COOKIE, "")
    network, again = client_network(request), request.url.path != url_for("save_sheet")
    services.storage.charge_sheet(network, token, practice_sheet_key(variant), sent.answers, again=again)
    context = opened_practice_sheet(request, services, library, variant)
    if context.visitor is None:
        work = PracticeWork.find(store, store.add_visitor(FormSecret.of(form).token).token, variant)
        assert work is not None  # noqa: S101 - the visitor was just stored
        context = replace(context, work=work)
    return replace(context, typed=sent.answers, sent=sent)


PostedPracticeSheet = Annotated[PracticeSheet, Depends(posted_practice_sheet)]


def _next_worksheet(library: Library, variant: Variant) -> Suggestion:
    if in_steps(variant):
        whole = library.variant(FIRST_WORKSHEET, variant.model.key, variant.tokens)
        return Suggestion(_("Now the whole sheet"), sheet_link(whole))
    if following := worksheet_after(library, key_in(variant.worksheet.key, "numbers")):
        sheet = library.variant(following)
        return Suggestion(_("Next: {title}").format(title=short_name(sheet)), sheet_link(sheet))
    return Suggestion(_("Back to the lessons"), url_for("show_lessons"))
