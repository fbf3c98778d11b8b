"""Changing the signed-in teacher's password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response

from app.store import AuditAction, Teacher
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.passwords import MAX_PASSWORD, MIN_PASSWORD, password_problem
from app.web.shared.permissions import SignedIn
from app.web.shared.services import ServicesDep
from app.web.shared.teacher_session import start_session
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class PasswordPage:
    """Everything that templates/account/password.html shows."""

    teacher: Annotated[Teacher, Doc("The teacher who is signed in.")]
    shortest: Annotated[int, Doc("How many characters a password has at least.")] = MIN_PASSWORD
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""


@router.get("/password")
def show_password_form(teacher: SignedIn) -> Response:
    """The form, which also asks for the old password."""
    return render("account/password.html", PasswordPage(teacher))


@router.post("/password")
@in_threads("password")
def change_password(request: Request, services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Set a new password, with an audit entry; other sessions end, and reset links become void.

    Raises PasswordsBusyError if too many wait.
    """
    guesses = f"password of {teacher.id}"
    services.limits.check("known", guesses)
    old, new = (form.raw(name, MAX_PASSWORD + 1) for name in ("old", "new"))
    if not old or not services.passwords.verify(old, teacher.password_hash):
        services.limits.record_failure("known", guesses)
        problem = _("That isn’t your password. If you have forgotten it, sign out and ask for a link to set a new one.")
        return render("account/password.html", PasswordPage(teacher, problem=problem), 422)
    if problem := password_problem(new):
        return render("account/password.html", PasswordPage(teacher, problem=problem), 422)
    store, password_hash = services.store, services.passwords.hash(new)
    with store.transaction():
        store.people.change_password(teacher, password_hash)
        store.audit_log.record(teacher, AuditAction.PASSWORD_SET, teacher)
        return start_session(request, store, teacher, url_for("list_courses", done="password"))
