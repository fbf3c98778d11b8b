"""The sample course, made with one press and removed with another."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import RedirectResponse

from app.classes.sample_course import add_sample_course
from app.store import AuditAction
from app.web.shared.permissions import InstructorCourse, SignedIn
from app.web.shared.services import ServicesDep

router = APIRouter(include_in_schema=False)


@router.post("/courses/sample")
def add_sample(services: ServicesDep, teacher: SignedIn) -> Response:
    """A course of simulated students, for whoever wants to look around; the one they have if there is one."""
    course = add_sample_course(services.library, services.tickets, services.store, teacher)
    services.store.audit_log.record(teacher, AuditAction.SAMPLE_COURSE_CREATED, course)
    return RedirectResponse(f"/courses/{course.id}", 303)


@router.post("/courses/{course_id:int}/remove-sample")
def remove_sample(services: ServicesDep, access: InstructorCourse) -> Response:
    """Delete it; raises 404 for a course with real students."""
    if not access.course.sample:
        raise HTTPException(404)
    services.store.courses.delete(access.course)
    services.store.audit_log.record(access.teacher, AuditAction.SAMPLE_COURSE_DELETED, access.course)
    return RedirectResponse("/courses", 303)
