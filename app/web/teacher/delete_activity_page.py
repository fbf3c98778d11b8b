"""Deleting an activity for good, after saying what goes with it; and duplicating one, also into another course."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.course_settings import duplicate_activity
from app.store import AuditAction, Store
from app.translation import gettext as _
from app.web.shared import permissions
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.permissions import LARGEST_ID, EditableActivity, InstructorActivity, require_editable_course
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class DeleteActivityPage:
    """Everything that templates/teacher/delete_activity.html shows."""

    access: Annotated[permissions.ActivityAccess, Doc("The activity, its course, and the teacher's role in it.")]
    students: Annotated[int, Doc("How many students came to it.")]
    attempts: Annotated[int, Doc("How many attempts they made.")]
    tickets: Annotated[int, Doc("How many exit tickets they handed in.")]
    typed: Annotated[str, Doc("The title as typed.")] = ""
    problem: Annotated[str, Doc("The sentence about why nothing was deleted, empty where there is none.")] = ""


@router.get("/activities/{activity_id:int}/delete")
def show_delete_activity(store: StoreDep, access: EditableActivity) -> Response:
    """What would go with the activity, and the form that asks for its title."""
    return render("teacher/delete_activity.html", _delete_activity_page(store, access))


@router.post("/activities/{activity_id:int}/delete")
def delete_activity(store: StoreDep, access: EditableActivity, form: FormDep) -> Response:
    """Delete the activity for good, with all work in it and an audit entry with its title, and redirect to its
    course.
    """
    title = " ".join(access.activity.plan.title.split())
    typed = form.single_line("title")
    if typed != title:
        problem = _("That isn’t the title of this activity, so nothing was deleted. Type it exactly as shown above.")
        return render("teacher/delete_activity.html", _delete_activity_page(store, access, typed, problem), 422)
    with store.audit_log.recording(access.teacher, AuditAction.ACTIVITY_DELETED, access.course, title):
        store.activities.delete(access.activity)
    return RedirectResponse(url_for("show_course", course_id=access.course.id, done="activity-deleted"), 303)


@router.post("/activities/{activity_id:int}/duplicate")
def duplicate(services: ServicesDep, access: InstructorActivity, form: FormDep) -> Response:
    """Add a draft with the same content and rules, without times, to a course, and redirect to its form."""
    store, typed = services.store, form.raw("course")
    course_id = (whole_number(typed, LARGEST_ID) or 0) if typed else access.course.id
    course = require_editable_course(services, access.teacher, course_id).course
    title = access.activity.plan.title
    if course.id == access.course.id:
        title = _("{title} (copy)").format(title=title)
    with store.transaction():
        copy = duplicate_activity(store, access.activity, course, title)
        store.audit_log.record(access.teacher, AuditAction.ACTIVITY_CREATED, copy)
    return RedirectResponse(url_for("show_activity_form", activity_id=copy.id), 303)


def _delete_activity_page(
    store: Store, access: permissions.ActivityAccess, typed: str = "", problem: str = ""
) -> DeleteActivityPage:
    came = store.classwork.attendance(access.activity.id)
    attempts = store.grades.count_attempts(access.activity.id)
    return DeleteActivityPage(access, len(came), attempts, sum(each.ticket_in for each in came), typed, problem)
