"""The public demonstration: a browser without an account enters and leaves the sample course of the day."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.web.shared.cookies import DEMONSTRATION_COOKIE, TEACHER_COOKIE, set_private_cookie
from app.web.shared.permissions import MaybeTeacher, require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

COOKIE_MAX_AGE_S = 24 * 3600


@router.get("/demonstration", dependencies=[Depends(require_practice)])
def show_demonstration(request: Request, services: ServicesDep, teacher: MaybeTeacher) -> Response:
    """Let this browser see the sample course as its teacher for a day, by a cookie, and redirect to it (303)."""
    if teacher:
        return RedirectResponse(url_for("list_courses"), 303)
    store = services.demonstration.begin()
    demonstrator = store.people.only_teacher()
    assert demonstrator is not None  # noqa: S101 - it was made with the course
    course = store.courses.taught_by(demonstrator)[0].course
    response = RedirectResponse(url_for("show_course", course_id=course.id), 303)
    set_private_cookie(request, response, DEMONSTRATION_COOKIE, "yes", COOKIE_MAX_AGE_S)
    response.delete_cookie(TEACHER_COOKIE)  # an expired session's
    return response


@router.post("/demonstration/leave")
async def leave_demonstration() -> Response:
    """Take this browser out of the demonstration, and go to the start page."""
    response = RedirectResponse(url_for("home"), 303)
    response.delete_cookie(DEMONSTRATION_COOKIE)
    return response
