"""/class/N/M: one sheet of an activity, as a student fills it in, checks it and hands it in."""

from __future__ import annotations

import threading
from dataclasses import replace

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.classes import sheet_actions
from app.classes.sheet_actions import Action
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import StudentAccessDep
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import SavedFragment, saved_json
from app.web.shared.sheet_view import first_to_fix
from app.web.shared.templating import is_htmx, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.student.class_sheet_view import (
    as_it_counts,
    drawn_sheet,
    hint_on_last,
    make_class_sheet_page,
    page_after,
    raise_refusal,
    render_class_sheet,
)
from app.web.student.sheet_request import not_open, opened_class_sheet, posted_class_sheet, require_open

router = APIRouter(include_in_schema=False)

MAX_BUSY_WHEN_DRAWN = 2  # busy class threads, including the save's own; with more, nothing is drawn
# held by the one save in this process that is drawn: two at once would take twice as long each
_drawing_save = threading.Lock()


@router.get("/class/{activity_id:int}/{number:int}")
@in_threads("class")
def show_class_sheet(
    services: ServicesDep, access: StudentAccessDep, number: int, scale: str = "root", result: str = "", hint: str = ""
) -> Response:
    """The sheet as last saved on any device; the student counts as present from now on."""
    activity = access.activity
    requested = opened_class_sheet(services, access, number, scale)
    if access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    requested = as_it_counts(requested)
    if not requested.work.progress.has_arrived:
        services.store.classwork.arrive(activity.id, access.student.id)
    hinted = hint_on_last(services, requested, hint) if hint and requested.rules.is_writable else None
    page = make_class_sheet_page(services, requested, hinted)
    page = replace(page, focused=first_to_fix(page.rows) if hinted else "")
    if requested.rules.is_writable:
        page = page_after(requested, page, result)
    return render("student/class_sheet.html", page)


@router.post("/class/{activity_id:int}/{number:int}/save")
@in_threads("class")
def save_class_sheet(request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int) -> Response:
    """Merge what was typed into the stored draft, and return the draft and its drawing; nothing is marked."""
    is_calm = services.threads["class"].working <= MAX_BUSY_WHEN_DRAWN
    may_draw = is_calm and _drawing_save.acquire(blocking=False)
    try:
        requested = posted_class_sheet(request, services, form, activity_id, number)
        outcome, requested = requested.done(sheet_actions.save)
        if outcome.is_refused:
            raise not_open(requested.access)
        drawing = drawn_sheet(requested, requested.variant) if may_draw else None
    finally:
        if may_draw:
            _drawing_save.release()
    response = render("shared/_saved.html", SavedFragment(drawing, saved_json(requested.work.draft, requested.edits)))
    if not may_draw:
        response.headers.update({"HX-Reswap": "none", "X-Drawing": "later"})
    return response


@router.post("/class/{activity_id:int}/{number:int}/take")
@in_threads("class")
def take_class_product(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Response:
    """Save the boxes of a result worked out in an exhibit, and redirect (303) to the sheet."""
    requested = posted_class_sheet(request, services, form, activity_id, number)
    require_open(requested.access)
    if requested.rules.attempts_left(requested.work.attempts) != 0:
        requested.done(sheet_actions.save)
    return RedirectResponse(requested.access.links.sheet(number), 303)


@router.post("/class/{activity_id:int}/{number:int}/check")
@in_threads("class")
def check_class_sheet(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Response:
    """Mark the sheet: see sheet_actions.check. 409 unless work is accepted and feedback is immediate."""
    return _act(sheet_actions.check, request, services, form, activity_id, number)


@router.post("/class/{activity_id:int}/{number:int}/hint")
@in_threads("class")
def show_class_sheet_hint(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Response:
    """Show a hint of the level that the form asks for: see sheet_actions.hint. 409 without one."""
    return _act(sheet_actions.hint, request, services, form, activity_id, number)


@router.post("/class/{activity_id:int}/{number:int}/hand-in")
@in_threads("class")
def hand_in_class_sheet(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Response:
    """Hand the sheet in: see sheet_actions.hand_in. 409 unless the activity accepts work."""
    return _act(sheet_actions.hand_in, request, services, form, activity_id, number)


def _act(
    action: Action, request: Request, services: Services, form: FormReader, activity_id: int, number: int
) -> Response:
    requested = posted_class_sheet(request, services, form, activity_id, number)
    outcome, requested = requested.done(action)
    if outcome.is_refused:
        return raise_refusal(request, services, requested, outcome)
    hinted = hint_on_last(services, requested, form.raw("hint")) if outcome.result == "hint" else None
    if not is_htmx(request):
        result = "" if hinted else outcome.result
        shown = {"result": result, "hint": hinted.level if hinted else "", "scale": requested.scale.replace("root", "")}
        query = {name: value for name, value in shown.items() if value}
        return RedirectResponse(url_for("show_class_sheet", activity_id=activity_id, number=number, **query), 303)
    page = make_class_sheet_page(services, requested, hinted)
    return render_class_sheet(request, page_after(requested, page, outcome.result))
