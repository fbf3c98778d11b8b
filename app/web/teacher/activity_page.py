"""An activity's overview: how students join it, its content, its rules, and opening and closing it."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Annotated

import segno
from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.activity import MAX_MINUTES
from app.classes.closing_menu import ClosingMenu, close_undoably, closing_menu, undo_last_close
from app.classes.frozen.frozen_library import worksheet_of
from app.classes.frozen.offered_worksheets import content_to_open
from app.classes.materials import materials_for_course
from app.classes.student_sheet import worksheet_titles
from app.sheets.code_text import gives_line_away
from app.store import AuditAction, Course, Phase, Student
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep, FormReader, whole_number
from app.web.shared.permissions import EditableActivity, StaffActivity
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import PublicAddress, public_address, url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ActivityPage:
    """Everything that templates/teacher/activity.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    phase: Annotated[Phase, Doc("Whether it is a draft, waiting, open or closed now.")]
    address: Annotated[PublicAddress, Doc("Where students reach the app.")]
    sheets: Annotated[tuple[str, ...], Doc("The titles of its worksheets, in order.")]
    telling: Annotated[tuple[str, ...], Doc("Those of them whose repair tells, before any marks, which line is wrong.")]
    arrived: Annotated[int, Doc("How many students have come in.")]
    students: Annotated[tuple[Student, ...], Doc("The students on the roster, by name.")]
    extra_time: Annotated[tuple[tuple[Student, int], ...], Doc("Who has extra time, with the minutes.")]
    courses: Annotated[tuple[Course, ...], Doc("Where it can be duplicated to: its own course first.")]
    closing: Annotated[ClosingMenu, Doc("Whether it can be closed, or that undone.")]
    problem: Annotated[str, Doc("Why no extra time was given, empty for none.")] = ""
    student: Annotated[str, Doc("The id of the student who was chosen for it, as sent.")] = ""
    minutes: Annotated[str, Doc("The minutes as typed, to be corrected.")] = ""
    notice: Annotated[str, Doc("The sentence about what was just done, empty for none.")] = ""


@router.get("/activities/{activity_id:int}")
def show_activity(request: Request, services: ServicesDep, access: StaffActivity, done: str = "") -> Response:
    """The overview, with a sentence for `done`: 'saved', 'revised', or 'too-late' to undo Close."""
    page = _activity_page(request, services, access)
    notices = {
        "saved": _("Saved."),
        "revised": _("Saved. Students see the new version from now on; earlier answers stay as they are."),
        "too-late": _("It was too late to undo that: the activity has closed, or its times were changed."),
    }
    return render("teacher/activity.html", replace(page, notice=notices.get(done, "")))


def _activity_page(request: Request, services: Services, access: permissions.ActivityAccess) -> ActivityPage:
    activity, store = access.activity, services.store
    working = store.classwork.count_working(activity.id, [item.sheet_key for item in activity.content.items])
    students = store.roster.students(access.course) if access.can_edit else ()
    extra = store.activities.extra_times(activity.id) if access.can_edit else {}
    courses = permissions.editable_courses(services, access.teacher) if access.role == "instructor" else ()
    # If students can check freely, the marks of a check also reveal which line is wrong.
    items = () if activity.policies.checks_freely else activity.content.items
    telling = (item for item in items if gives_line_away(worksheet_of(item)))
    return ActivityPage(
        access,
        access.phase,
        public_address(request, services.settings),
        worksheet_titles(activity.content),
        tuple(item.title for item in telling),
        len(store.classwork.attendance(activity.id)),
        students,
        tuple((student, extra[student.id]) for student in students if student.id in extra),
        tuple(sorted(courses, key=lambda course: course.id != access.course.id)),
        closing_menu(store, activity, access.now, working),
    )


@router.post("/activities/{activity_id:int}/open")
def open_activity(services: ServicesDep, access: EditableActivity) -> Response:
    """Open the activity from any state, and redirect to its overview; students come in from its opening time on."""
    store = services.store
    materials = materials_for_course(services.library, services.tickets, store, access.course, access.teacher)
    with store.audit_log.recording(access.teacher, AuditAction.ACTIVITY_OPENED, access.activity):
        activity, now = store.activities.locked(access.activity), store.now()
        if activity is None:
            raise HTTPException(404)
        store.activities.revise(activity, content_to_open(materials.library, materials.tickets, store, activity))
        if activity.plan.closes_at and replace(activity, state="open").phase(now) in ("closing", "closed"):
            store.activities.change(activity, replace(activity.plan, closes_at=None))
        store.activities.set_state(activity, "open")
    return RedirectResponse(url_for("show_activity", activity_id=activity.id), 303)


@router.post("/activities/{activity_id:int}/close")
def close_activity(store: StoreDep, access: EditableActivity, form: FormDep) -> Response:
    """Set the closing time to `minutes` from now or, if that is 0 or empty, a few seconds (UNDO_TIME)."""
    typed = form.raw("minutes")
    minutes = whole_number(typed, MAX_MINUTES) if typed else 0
    if minutes is None:
        problem = _(
            "The activity was not closed. Go back and choose when to close it, at most {most:,} minutes from now."
        )
        raise HTTPException(422, problem.format(most=MAX_MINUTES))
    with store.transaction():
        if close_undoably(store, access.activity, minutes):
            store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CLOSED, access.activity)
    return _back_to_where_it_was_pressed(access, form)


@router.post("/activities/{activity_id:int}/undo-close")
def undo_close(store: StoreDep, access: EditableActivity, form: FormDep) -> Response:
    """Restore the times from before Close was pressed (once or repeatedly), with an audit entry."""
    with store.transaction():
        undone = undo_last_close(store, access.activity)
        if undone:
            store.audit_log.record(access.teacher, AuditAction.CLOSE_UNDONE, access.activity)
    return _back_to_where_it_was_pressed(access, form, done="" if undone else "too-late")


def _back_to_where_it_was_pressed(access: permissions.ActivityAccess, form: FormReader, done: str = "") -> Response:
    view = form.raw("back")
    if view in ("code", "progress"):
        return RedirectResponse(url_for("show_presenter", activity_id=access.activity.id, view=view), 303)
    query = {"done": done} if done else {}
    return RedirectResponse(url_for("show_activity", activity_id=access.activity.id, **query), 303)


@router.post("/activities/{activity_id:int}/extra-time")
def give_extra_time(request: Request, services: ServicesDep, access: EditableActivity, form: FormDep) -> Response:
    """Set how many minutes longer the activity is open for a student, 0 for none, with an audit entry."""
    typed, chosen = form.single_line("minutes"), form.single_line("student")
    minutes = whole_number(typed, MAX_MINUTES)
    students = {str(student.id): student for student in services.store.roster.students(access.course)}
    student = students.get(chosen)
    if minutes is None or student is None:
        problem = _("Choose a student, and enter a whole number of minutes up to {most}; 0 takes extra time away.")
        page = replace(_activity_page(request, services, access), student=chosen, minutes=typed)
        return render("teacher/activity.html", replace(page, problem=problem.format(most=MAX_MINUTES)), 422)
    detail = f"activity {access.activity.id}: {minutes} min"
    with services.store.audit_log.recording(access.teacher, AuditAction.EXTRA_TIME_SET, student, detail):
        services.store.activities.set_extra_time(access.activity, student.id, minutes)
    return RedirectResponse(url_for("show_activity", activity_id=access.activity.id) + "#extra-time", 303)


@router.get("/activities/{activity_id:int}/qr.svg")
def draw_qr_code(request: Request, services: ServicesDep, access: StaffActivity) -> Response:
    """The QR code of the activity's join address; 404 for an address that students' phones couldn't open."""
    address = public_address(request, services.settings)
    if address.is_local:
        raise HTTPException(404)
    svg, path = io.BytesIO(), url_for("show_name_form", code=access.activity.join_code)
    code = segno.make(address.url + path, error="m", micro=False)
    code.save(svg, kind="svg", border=2, dark="#000", light="#fff", omitsize=True)
    return Response(svg.getvalue(), media_type="image/svg+xml")
