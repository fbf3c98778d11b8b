"""/class/N/M: one sheet of an activity, as a student fills it in, checks it and hands it in."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import cast, get_args

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.classes.promises import sheet_promise
from app.classes.student_sheet import stored_marks
from app.grading.grade import Report, grade
from app.grading.hints import Hint
from app.sheets.variant import box_texts
from app.store import ClassAttempt, NoAttemptsLeftError, Store
from app.translation import gettext as _
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.permissions import student_access
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import SavedFragment, kept_json
from app.web.shared.sheet_view import first_to_mend, question_views
from app.web.shared.templating import is_htmx, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.student.class_sheet_view import (
    Said,
    after_press,
    as_it_counts,
    drawn_sheet,
    empty_boxes,
    hint_on_last,
    hinted_attempt,
    make_class_sheet_page,
    render_class_sheet,
)
from app.web.student.sheet_request import (
    ClassSheetRequest,
    PostedClassSheet,
    SavedClassSheet,
    charge_attempt,
    posted_class_sheet,
    promised_otherwise,
    request_id,
    require_open,
)

router = APIRouter(include_in_schema=False)

MAX_BUSY_WHEN_DRAWN = 2  # threads for classes, that of the save included; with more at work, nothing is drawn
_drawing_save = threading.Lock()  # of the one save in this process that is drawn: two at once would take as long


@router.get("/class/{activity_id:int}/{number:int}")
@in_threads("class")
def show_class_sheet(services: ServicesDep, asked: SavedClassSheet, said: str = "", hint: str = "") -> Response:
    """The sheet as it was last saved, on whatever device; the student counts as present from now on.

    `said` and `hint` are what a button has done: a form sent without script leads here. Before the activity opens, a
    redirect to the activity's own page.
    """
    activity = asked.activity
    if asked.access.phase == "waiting":
        return RedirectResponse(url_for("show_class_activity", activity_id=activity.id), 303)
    asked = as_it_counts(services, asked)
    ticket_in = services.store.classwork.arrive(activity.id, asked.access.student.id)
    hinted = hint_on_last(services, asked, hint) if hint and asked.is_writable else None
    page = make_class_sheet_page(services, asked, ticket_in, hinted)
    page = replace(page, focused=first_to_mend(page.rows) if hinted else "")
    if said in get_args(Said) and asked.is_writable:
        page = after_press(asked, page, cast(Said, said))
    return render("student/class_sheet.html", page)


@router.post("/class/{activity_id:int}/{number:int}/save")
@in_threads("class")
def save_class_sheet(request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int) -> Response:
    """Merge what was typed into the stored draft, and answer with what is stored and its drawing; nothing is marked.

    Under exam conditions the answer holds no drawing, and neither while several others are written down or one is
    drawn: then the page asks for it a little later, so that answers come first. 409 unless the activity accepts work.
    """
    is_calm = services.threads["class"].borrowed_tokens <= MAX_BUSY_WHEN_DRAWN
    may_draw = is_calm and _drawing_save.acquire(blocking=False)
    try:
        asked = _posted(request, services, form, activity_id, number)
        require_open(asked.access)
        stored = services.store.classwork.save(asked.sheet.key, asked.draft, asked.sheet.draft)
        if _has_used_all_attempts(asked):
            _add_to_last(services.store, asked)
        drawing = drawn_sheet(replace(asked, draft=stored), asked.variant) if may_draw else None
    finally:
        if may_draw:
            _drawing_save.release()
    response = render("shared/_saved.html", SavedFragment(drawing, kept_json(stored, asked.draft.changed)))
    if not may_draw and asked.variant.worksheet.show_drawing:
        response.headers.update({"HX-Reswap": "none", "X-Drawing": "later"})
    return response


@router.post("/class/{activity_id:int}/{number:int}/take")
@in_threads("class")
def take_class_product(services: ServicesDep, asked: PostedClassSheet) -> Response:
    """Put the shape of a result, worked out in an exhibit, into its boxes, and go back to the sheet.

    Once no attempt is left, its boxes stay as they are. 409 unless the activity accepts work.
    """
    require_open(asked.access)
    allowed = asked.activity.policies.max_attempts
    if not 0 < allowed <= len(asked.work.attempts(asked.sheet.key)):
        services.store.classwork.save(asked.sheet.key, asked.draft, asked.sheet.draft)
    return RedirectResponse(asked.access.links.sheet(asked.number), 303)


@router.post("/class/{activity_id:int}/{number:int}/check")
@in_threads("class")
def check_class_sheet(request: Request, services: ServicesDep, asked: PostedClassSheet, form: FormDep) -> Response:
    """Mark the sheet and store an attempt; what holds no readable answer is only saved, and costs no attempt.

    With no attempt left, nothing is stored and the page says so. If the rules have changed since the page was made, it
    comes back with the new ones. 409 unless the activity is open and its feedback is immediate.
    """
    activity = asked.activity
    if turned_back := _turn_back(request, services, asked, form):
        return turned_back
    if activity.policies.feedback != "immediate":
        raise HTTPException(409, _("In this activity, marks are shown after you hand in."))
    report = grade(asked.variant, asked.answers)
    if not report.has_readable_answer:
        services.store.classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "nothing-read")
    try:
        _store_attempt(services, asked, report, request_id(form, asked.variant), handed_in=False)
    except NoAttemptsLeftError:
        return _respond(request, services, asked, "no-attempts-left")
    return _respond(request, services, asked, "checked")


@router.post("/class/{activity_id:int}/{number:int}/hint")
@in_threads("class")
def show_class_sheet_hint(request: Request, services: ServicesDep, asked: PostedClassSheet, form: FormDep) -> Response:
    """Save what was typed, and show a hint on the last attempt, of the level that the form asks for.

    It costs no attempt. 409 unless the activity is open and gives hints, under exam conditions, and where the last
    attempt has no marks that this page may show.
    """
    require_open(asked.access)
    if hinted_attempt(services, asked) is None:
        raise HTTPException(
            409,
            _("There is no hint for this: hints are about answers you have checked, in activities that allow them."),
        )
    services.store.classwork.save(asked.sheet.key, asked.draft)
    return _respond(request, services, asked, hinted=hint_on_last(services, asked, form.raw("hint")))


@router.post("/class/{activity_id:int}/{number:int}/hand-in")
@in_threads("class")
def hand_in_class_sheet(
    request: Request, services: ServicesDep, form: FormDep, activity_id: int, number: int
) -> Response:
    """Hand the sheet in; the button that asks about empty boxes only saves it where there are any, and asks.

    Where the last attempt has these very boxes and was not handed in, that attempt is handed in, with what is now
    written to open questions; otherwise a new one is made. With no attempt left, the last one is handed in. If the
    rules have changed since the page was made, it comes back with the new ones. 409 unless the activity is open.
    """
    asked, classwork = _posted(request, services, form, activity_id, number), services.store.classwork
    if turned_back := _turn_back(request, services, asked, form):
        return turned_back
    if form.raw("empty") == "ask" and empty_boxes(asked):
        classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "empty")
    last = classwork.last_attempt(asked.sheet.key)
    if last and not last.handed_in and box_texts(asked.variant, last.answers) == asked.answers:
        _add_to_last(services.store, asked)
        classwork.hand_in_last(asked.sheet.key)
    else:
        report = grade(asked.variant, asked.answers)
        try:
            attempt = _store_attempt(services, asked, report, request_id(form, asked.variant), handed_in=True)
            if not attempt.handed_in:  # a check of this very form has made it, which was still under way above
                classwork.hand_in_last(asked.sheet.key)
        except NoAttemptsLeftError:
            _add_to_last(services.store, asked)
            classwork.hand_in_last(asked.sheet.key)
            return _respond(request, services, asked, "no-attempts-left")
    return _respond(request, services, asked, "handed-in")


def _posted(request: Request, services: Services, form: FormReader, activity_id: int, number: int) -> ClassSheetRequest:
    """The sheet that a student's form was sent from, for what a whole class sends at once.

    FastAPI would run each of these two dependencies in a thread of its own, one after the other; called directly, a
    request takes one thread, once.
    """
    access = student_access(request, services, activity_id, form.single_line("sheet"))
    return posted_class_sheet(services, access, form, number)


def _store_attempt(
    services: Services, asked: ClassSheetRequest, report: Report, client_id: str, *, handed_in: bool
) -> ClassAttempt:
    """Store the draft, and its answers with their marks as one more attempt; return that.

    For a client_id that was stored before, nothing is stored, and the attempt that has it is returned. Raises
    NoAttemptsLeftError where the activity allows no more attempts, and BudgetSpentError; then no attempt is stored.
    """
    charge_attempt(services, asked)
    allowed, late = asked.activity.policies.max_attempts, asked.activity.is_late(asked.access.now)
    return services.store.classwork.record(
        asked.sheet.key,
        client_id,
        asked.draft,
        stored_marks(asked.variant, report),
        seen=asked.sheet.draft,
        handed_in=handed_in,
        allowed=allowed,
        late=late,
    )


def _add_to_last(store: Store, asked: ClassSheetRequest) -> None:
    """Save the answers to open questions, and keep them with the last attempt unless it is handed in."""
    names, draft = {view.name for view in question_views(asked.variant, {})}, asked.draft
    if not names:
        return
    written = {name: draft.answers.get(name, "") for name in names}
    changed = None if draft.changed is None else {name: draft.changed[name] for name in names & draft.changed.keys()}
    stored = store.classwork.save(asked.sheet.key, replace(draft, answers=written, changed=changed))
    store.classwork.add_to_last(asked.sheet.key, {name: stored.answers.get(name, "") for name in names})


def _has_used_all_attempts(asked: ClassSheetRequest) -> bool:
    """Whether a sheet with open questions has no attempt left, so that an answer to one goes to the last attempt."""
    allowed = asked.activity.policies.max_attempts
    return 0 < allowed <= len(asked.work.attempts(asked.sheet.key)) if asked.variant.worksheet.questions else False


def _respond(
    request: Request, services: Services, asked: ClassSheetRequest, said: Said = "", hinted: Hint | None = None
) -> Response:
    """The sheet after a button was pressed: its form for htmx, else a redirect to the page.

    The address it leads to has what was pressed, so that a reload shows the same and sends nothing again.
    """
    if not is_htmx(request):
        shown = {"said": said, "hint": hinted.level if hinted else "", "scale": asked.scale.replace("root", "")}
        query = {name: value for name, value in shown.items() if value}
        return RedirectResponse(
            url_for("show_class_sheet", activity_id=asked.activity.id, number=asked.number, **query), 303
        )
    page = make_class_sheet_page(services, asked, _ticket_in(services, asked), hinted)
    return render_class_sheet(request, after_press(asked, page, said))


def _ticket_in(services: Services, asked: ClassSheetRequest) -> bool:
    return services.store.exit_tickets.is_handed_in(asked.activity.id, asked.access.student.id)


def _turn_back(request: Request, services: Services, asked: ClassSheetRequest, form: FormReader) -> Response | None:
    """The sheet as typed with the reason why a press does nothing: the activity has closed, or its rules have changed.

    None where neither is so. For a script, and before the activity opens, the 409 of a closed one is raised instead:
    the page that the script is on has what was typed.
    """
    try:
        require_open(asked.access)
    except HTTPException as refused:
        if is_htmx(request) or asked.access.phase == "waiting":
            raise
        page = make_class_sheet_page(services, asked, _ticket_in(services, asked))
        return render_class_sheet(request, replace(page, notice=refused.detail), refused.status_code)
    if promised_otherwise(form, sheet_promise(asked.activity, asked.number)):
        services.store.classwork.save(asked.sheet.key, asked.draft)
        return _respond(request, services, asked, "new-rules")
    return None
