"""/mine/STUDENT/leave: a student signs out on this device, with the resume code in hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.store import Enrolment
from app.web.shared.cookies import CLASS_COOKIE, VISITOR_COOKIE
from app.web.shared.forms import FormDep
from app.web.shared.permissions import OwnEnrolment
from app.web.shared.services import StoreDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class LeavePage:
    """Everything that templates/student/leave.html shows."""

    enrolment: Annotated[Enrolment, Doc("The student who is about to sign out, and the course.")]
    code: Annotated[str, Doc("A new resume code, shown this once; empty while the old one is good.")] = ""


@router.get("/mine/{student_id:int}/leave")
def show_leave_form(access: OwnEnrolment) -> Response:
    """Ask whether to sign out, and whether the student has the resume code that is needed to come back."""
    return render("student/leave.html", LeavePage(access.enrolment))


@router.post("/mine/{student_id:int}/leave")
def leave_course(store: StoreDep, access: OwnEnrolment, form: FormDep) -> Response:
    """End this browser's enrolment, so that somebody else can join in it; the student's work stays.

    The browser's drafts and what it keeps of pages are cleared, and with its last enrolment it is forgotten as a
    visitor. Asked for a new code, show the form again with one in two halves, 'ABCDE-FGHJK'; the old one is void.
    """
    if form.raw("wants") == "code":
        code = store.roster.renew_code(access.enrolment.student)
        return render("student/leave.html", LeavePage(access.enrolment, f"{code[:5]}-{code[5:]}"))
    store.roster.leave(access.enrolment.student, access.visitor.id)
    response = RedirectResponse(url_for("show_my_work", signed_out="yes"), 303)
    response.headers["Clear-Site-Data"] = '"cache"'
    if not store.roster.enrolments(access.visitor.id):
        response.delete_cookie(VISITOR_COOKIE)
        response.delete_cookie(CLASS_COOKIE)
    return response
