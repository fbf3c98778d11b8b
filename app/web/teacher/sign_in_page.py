"""Signing in and out, and the links that set up, invite and reset."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from urllib.parse import quote

from annotated_doc import Doc
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.exchange.mail import Mail, MailError
from app.store import AccountLink, AuditAction, Teacher
from app.store.people import as_email
from app.web.shared.cookies import TEACHER_COOKIE
from app.web.shared.forms import FormDep, FormReader
from app.web.shared.passwords import MAX_PASSWORD, MIN_PASSWORD
from app.web.shared.permissions import MaybeTeacher, SignedIn, remember_teacher
from app.web.shared.rate_limits import TooManyGuessesError
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import client_network

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")


@dataclass(frozen=True)
class SignInPage:
    """Everything that templates/teacher/sign_in.html shows."""

    email: Annotated[str, Doc("The address as typed.")] = ""
    next: Annotated[str, Doc("Where to go afterwards, on this site.")] = ""
    problem: Annotated[str, Doc("Why nobody is signed in yet, or nothing.")] = ""


@dataclass(frozen=True)
class LinkPage:
    """Everything that templates/teacher/account_link.html shows."""

    link: Annotated[AccountLink, Doc("The link that was followed.")]
    action: Annotated[str, Doc("Where its form goes.")]
    course: Annotated[str, Doc("The course one is invited to, or nothing.")]
    teacher: Annotated[Teacher | None, Doc("Whoever is signed in in this browser.")]
    has_account: Annotated[bool, Doc("Whether the invited address can sign in already.")]
    email: Annotated[str, Doc("The address as typed, where one may be chosen.")] = ""
    name: Annotated[str, Doc("The name as typed.")] = ""
    problem: Annotated[str, Doc("What cannot be used, or nothing.")] = ""


@dataclass(frozen=True)
class ForgottenPage:
    """Everything that templates/teacher/forgotten_password.html shows."""

    mails: Annotated[bool, Doc("Whether a link can be mailed from here.")]
    email: Annotated[str, Doc("The address as typed.")] = ""
    problem: Annotated[str, Doc("Why nothing was asked for yet, or nothing.")] = ""
    asked: Annotated[
        bool, Doc("Whether a link was just asked for; it is not said whether there is anybody to get it.")
    ] = False


@router.get("/sign-in")
def show_sign_in(services: ServicesDep, teacher: MaybeTeacher, next: str = "") -> Response:  # noqa: A002 - the word in the address
    """The form, or the courses of whoever is signed in already."""
    if teacher:
        return RedirectResponse(_local(next), 303)
    return render("teacher/sign_in.html", SignInPage(next=_local(next)))


@router.post("/sign-in")
def sign_in(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Start a session; the same answer for an unknown address as for a wrong password, after the same work."""
    email, after = form.single_line("email", 300), _local(form.raw("next"))
    guesses = (("account", email.lower()), ("sign-in", client_network(request)))
    for kind, key in guesses:
        services.limits.check(kind, key)  # type: ignore[arg-type]  # a tuple's texts are taken for any text
    teacher = services.store.people.find_teacher(email) if as_email(email) else None
    right = services.passwords.verify(form.raw("password"), teacher.password_hash if teacher else None)
    if teacher is None or not right:
        for kind, key in guesses:
            services.limits.record_failure(kind, key)  # type: ignore[arg-type]  # as above
        services.store.audit_log.record("nobody", AuditAction.SIGN_IN_REFUSED)
        problem = services.library.wording.say("class", "sign-in-wrong")
        return render("teacher/sign_in.html", SignInPage(email, after, problem), 422)
    return _welcome(request, services, teacher, after)


@router.post("/sign-out")
def sign_out(request: Request, services: ServicesDep, form: FormDep, teacher: SignedIn) -> Response:
    """End the session of this browser, or every session of this teacher."""
    if form.raw("everywhere"):
        services.store.people.end_sessions(teacher)
    else:
        services.store.people.end_session(request.cookies.get(TEACHER_COOKIE, ""))
    services.store.audit_log.record(teacher, AuditAction.SIGNED_OUT)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(TEACHER_COOKIE)
    return response


@router.get("/forgotten-password")
def show_forgotten(services: ServicesDep) -> Response:
    """The form that asks for a link by mail; where none can be form, whom to ask."""
    return render("teacher/forgotten_password.html", ForgottenPage(services.mail is not None))


@router.post("/forgotten-password")
def ask_for_link(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Have a link mailed. Nobody is looked up until the answer is given: it tells nothing of who teaches here."""
    typed, mail, here = form.single_line("email", 300), services.mail, client_network(request)
    if mail is None:
        return render("teacher/forgotten_password.html", ForgottenPage(mails=False), 404)
    email = as_email(typed)
    if email is None:
        return _not_asked(services, typed, "no-email", 422)
    try:
        services.limits.check("mail", here)
    except TooManyGuessesError as error:
        return _not_asked(services, typed, "too-many-links", 429, seconds=error.seconds)
    services.limits.record_failure("mail", here)
    if not mail.outbox.put(partial(_mail_link, services, mail, email)):
        return _not_asked(services, typed, "mail-busy", 503)
    return render("teacher/forgotten_password.html", ForgottenPage(mails=True, email=email, asked=True))


def _not_asked(services: Services, typed: str, key: str, status: int, **numbers: int) -> Response:
    problem = services.library.wording.say("class", key, **numbers)
    return render("teacher/forgotten_password.html", ForgottenPage(mails=True, email=typed, problem=problem), status)


def _mail_link(services: Services, mail: Mail, email: str) -> None:
    """Send a link for a new password to the teacher of that address, if there is one."""
    people, words = services.store.people, services.library.wording
    teacher = people.find_teacher(email)
    token = people.add_mailed_link(teacher) if teacher else None
    if teacher is None or token is None:
        return
    link = f"{services.settings.address}/links/{token}"  # never the host that a request names: it would get the token
    try:
        mail.send(teacher.email, words.say("mail", "reset-subject"), words.say("mail", "reset", link=link))
    except MailError as error:
        log.error("mail: a link was not sent: %s", error)
        people.drop_link(token)
        services.store.audit_log.record("nobody", AuditAction.PASSWORD_LINK_NOT_MAILED, teacher)
    else:
        services.store.audit_log.record("nobody", AuditAction.PASSWORD_LINK_MAILED, teacher)


@router.get("/links/{token}")
def show_link(request: Request, services: ServicesDep, teacher: MaybeTeacher, token: str) -> Response:
    """What the link is for; looking does not use it up."""
    return render("teacher/account_link.html", _link_page(request, services, teacher, _find(services, token)))


@router.post("/links/{token}")
def follow_link(request: Request, services: ServicesDep, teacher: MaybeTeacher, form: FormDep, token: str) -> Response:
    """Set a password or accept an invitation, and be signed in."""
    link = _find(services, token)
    if link.kind == "invite" and teacher:
        followed = services.store.people.follow_link(link, teacher.email)
        return RedirectResponse(_after(link), 303) if followed else _void(services)
    email = link.email or form.single_line("email", 300)
    if problem := _problem(services, link, email, form):
        page = _link_page(request, services, teacher, link, email, form.single_line("name", 100), problem)
        return render("teacher/account_link.html", page, 422)
    password_hash = services.passwords.hash(form.raw("password"))
    followed = services.store.people.follow_link(link, email, form.single_line("name", 100), password_hash)
    if followed is None:
        return _void(services)
    if link.kind == "reset":
        services.store.audit_log.record(followed, AuditAction.PASSWORD_SET, followed)
    return _welcome(request, services, followed, _after(link))


def _problem(services: Services, link: AccountLink, email: str, form: FormReader) -> str:
    """What of the form cannot be used, as a sentence."""
    words, password = services.library.wording, form.raw("password")
    if not as_email(email):
        return words.say("class", "no-email")
    if link.kind != "reset" and not form.single_line("name", 100):
        return words.say("class", "no-name")
    if _has_account(services, link, email):
        return words.say("class", "sign-in-first")
    if len(password) < MIN_PASSWORD:
        return words.say("class", "password-short", least=MIN_PASSWORD)
    return words.say("class", "password-long", most=MAX_PASSWORD) if len(password) > MAX_PASSWORD else ""


def _has_account(services: Services, link: AccountLink, email: str) -> bool:
    """Whether that address has a password which this link may not replace."""
    found = services.store.people.find_teacher(email) if link.kind != "reset" and as_email(email) else None
    return found is not None and found.password_hash is not None


def _link_page(
    request: Request,
    services: Services,
    teacher: Teacher | None,
    link: AccountLink,
    email: str = "",
    name: str = "",
    problem: str = "",
) -> LinkPage:
    course = services.store.courses.find(link.course_id) if link.course_id else None
    has_account = _has_account(services, link, link.email)
    title = course.title if course else ""
    return LinkPage(link, request.url.path, title, teacher, has_account, email, name, problem)


def _find(services: Services, token: str) -> AccountLink:
    link = services.store.people.find_link(token)
    if link is None:
        raise HTTPException(404, services.library.wording.say("class", "link-void"))
    return link


def _void(services: Services) -> Response:
    raise HTTPException(404, services.library.wording.say("class", "link-void"))


def _after(link: AccountLink) -> str:
    return f"/courses/{link.course_id}" if link.course_id else "/courses"


def _welcome(request: Request, services: Services, teacher: Teacher, after: str) -> Response:
    if old := request.cookies.get(TEACHER_COOKIE):
        services.store.people.end_session(old)
    response = RedirectResponse(after, 303)
    remember_teacher(request, response, services.store.people.open_session(teacher))
    services.store.audit_log.record(teacher, AuditAction.SIGNED_IN)
    return response


def _local(path: str) -> str:
    """A path of this site; anything else becomes the courses."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return quote(path, safe="/?&=%-_.~") if fine else "/courses"
