"""Adding a sample course with simulated students, and deleting it again."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.sample_course import add_sample_course
from app.store import AuditAction
from app.web.shared.permissions import InstructorCourse, SignedIn
from app.web.shared.services import ServicesDep, StoreDep
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@router.post("/courses/sample")
def add_sample(services: ServicesDep, teacher: SignedIn) -> Response:
    """Add a sample course, or find the teacher's existing one, and go to it."""
    course = add_sample_course(services.library, services.tickets, services.store, teacher)
    return RedirectResponse(url_for("show_course", course_id=course.id), 303)


@router.post("/courses/{course_id:int}/remove-sample")
def delete_sample(store: StoreDep, access: InstructorCourse) -> Response:
    """Delete a sample course with everything in it and an audit entry, and redirect to the list of courses."""
    if not access.course.sample:
        raise HTTPException(404)
    with store.audit_log.recording(access.teacher, AuditAction.SAMPLE_COURSE_DELETED, access.course):
        store.courses.delete(access.course)
    return RedirectResponse(url_for("list_courses"), 303)
