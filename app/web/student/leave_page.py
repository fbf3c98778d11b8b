"""/mine/STUDENT/leave: a student signs out on this device, with the resume code at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.store import Enrolment
from app.web.shared.cookies import CLASS_COOKIE, SECRET_COOKIE, VISITOR_COOKIE, redirect_with_secret
from app.web.shared.forms import FormDep
from app.web.shared.permissions import BrowserEnrolment
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for
from app.web.shared.visitor import new_resume_code

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class LeavePage:
    """Everything that templates/student/leave.html shows."""

    enrolment: Annotated[Enrolment, Doc("The student who is about to sign out, and the course.")]
    code: Annotated[str, Doc("A new resume code, shown for some minutes; empty while the old one is good.")] = ""


@router.get("/mine/{student_id:int}/leave")
@in_threads("class")
def show_leave_form(request: Request, store: StoreDep, access: BrowserEnrolment) -> Response:
    """Ask whether to sign out, and whether the student has the resume code for coming back."""
    code = new_resume_code(request, store, access.enrolment.student)
    return render("student/leave.html", LeavePage(access.enrolment, code))


@router.post("/mine/{student_id:int}/leave")
@in_threads("class")
def leave_course(request: Request, store: StoreDep, access: BrowserEnrolment, form: FormDep) -> Response:
    """End this browser's enrolment, so that somebody else can join in it, and redirect to its courses; the
    work stays.
    """
    if form.raw("wants") == "code":
        student, mine = access.enrolment.student, url_for("show_my_work")
        page = url_for("show_leave_form", student_id=student.id)
        return redirect_with_secret(request, page, store.roster.renew_code(student), mine)
    store.roster.leave(access.enrolment.student, access.visitor.id)
    response = RedirectResponse(url_for("show_my_work", signed_out="yes"), 303)
    response.headers["Clear-Site-Data"] = '"cache"'
    response.delete_cookie(SECRET_COOKIE, url_for("show_my_work"))
    if not store.roster.enrolments(access.visitor.id):
        response.delete_cookie(VISITOR_COOKIE)
        response.delete_cookie(CLASS_COOKIE)
    return response
