"""Links that work once: to create the first account, accept an invitation, or set a new password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.store import AccountLink, AuditAction, Store, Teacher
from app.store.people import parse_email
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.passwords import MAX_PASSWORD, password_problem
from app.web.shared.permissions import MaybeTeacher
from app.web.shared.services import Services, ServicesDep
from app.web.shared.teacher_session import MAX_EMAIL_INPUT, start_session
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

MAX_TEACHER_NAME = 100  # characters


@dataclass(frozen=True)
class AccountLinkPage:
    """Everything that templates/account/account_link.html shows."""

    link: Annotated[AccountLink, Doc("The link that was followed.")]
    token: Annotated[str, Doc("The secret in its address.")]
    course: Annotated[str, Doc("The title of the course that the invitation is for, empty for other links.")]
    teacher: Annotated[Teacher | None, Doc("The teacher signed in in this browser, if any.")]
    has_account: Annotated[bool, Doc("Whether the invited e-mail address can sign in already.")]
    email: Annotated[str, Doc("The e-mail address as typed, where one may be chosen.")] = ""
    name: Annotated[str, Doc("The name as typed.")] = ""
    problem: Annotated[str, Doc("The sentence about what cannot be used, empty where there is none.")] = ""


@dataclass(frozen=True)
class _NewAccount:
    """What somebody types to get an account by a link, or a new password."""

    email: str  # the link's own if it has one
    name: str
    password: str


@router.get("/links/{token}")
def show_account_link(services: ServicesDep, teacher: MaybeTeacher, token: str) -> Response:
    """The link's purpose and form, without using it; 404 for a used or expired link."""
    page = _account_link_page(services.store, teacher, _find_link(services, token), token)
    return render("account/account_link.html", page)


@router.post("/links/{token}")
@in_threads("password")
def follow_account_link(
    request: Request, services: ServicesDep, teacher: MaybeTeacher, form: FormDep, token: str
) -> Response:
    """Use the link: set a password, create an account or accept an invitation, then sign the teacher in."""
    store, link = services.store, _find_link(services, token)
    path = url_for("show_course", course_id=link.course_id) if link.course_id else url_for("list_courses")
    if link.kind == "invite" and teacher:
        if store.people.follow_link(link, teacher.email) is None:
            raise _void_link()
        return RedirectResponse(path, 303)
    email = link.email or form.single_line("email", MAX_EMAIL_INPUT)
    typed = _NewAccount(email, form.single_line("name", MAX_TEACHER_NAME), form.raw("password", MAX_PASSWORD + 1))
    if problem := _account_problem(services, link, typed):
        page = _account_link_page(store, teacher, link, token, typed, problem)
        return render("account/account_link.html", page, 422)
    password_hash = services.passwords.hash(typed.password)
    with store.transaction():
        account = store.people.follow_link(link, typed.email, typed.name, password_hash)
        if account is None:  # somebody else was faster
            raise _void_link()
        if link.kind == "reset":
            store.audit_log.record(account, AuditAction.PASSWORD_SET, account)
        return start_session(request, store, account, path)


def _account_problem(services: Services, link: AccountLink, typed: _NewAccount) -> str:
    if not parse_email(typed.email):
        return _("Enter an e-mail address, such as ada@example.org.")
    if link.kind != "reset" and not typed.name:
        return _("Enter a name.")
    if _has_account(services.store, link, typed.email):
        return _("That address already has an account. Sign in, then open this link again.")
    return password_problem(typed.password)


def _has_account(store: Store, link: AccountLink, email: str) -> bool:
    account = store.people.find_teacher(email) if link.kind != "reset" and parse_email(email) else None
    return account is not None and (link.kind == "invite" or account.password_hash is not None)


def _account_link_page(
    store: Store,
    teacher: Teacher | None,
    link: AccountLink,
    token: str,
    typed: _NewAccount | None = None,
    problem: str = "",
) -> AccountLinkPage:
    course = store.courses.find(link.course_id) if link.course_id else None
    has_account = _has_account(store, link, link.email)
    email, name = (typed.email, typed.name) if typed else ("", "")
    return AccountLinkPage(link, token, course.title if course else "", teacher, has_account, email, name, problem)


def _find_link(services: Services, token: str) -> AccountLink:
    link = services.store.people.find_link(token)
    if link is None:
        raise _void_link()
    return link


def _void_link() -> HTTPException:
    return HTTPException(
        404, _("This link has been used, has expired, or was replaced by a newer one. Ask for a new link.")
    )
