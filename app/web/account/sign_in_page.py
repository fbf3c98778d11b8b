"""Signing in to teach, and out again."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.addresses import url_here
from app.machine.work_queue import Client
from app.store.people import parse_email
from app.translation import gettext as _
from app.web.shared.cookies import TEACHER_COOKIE
from app.web.shared.forms import MAX_TEXT, FormDep, FormReader
from app.web.shared.passwords import MAX_PASSWORD
from app.web.shared.permissions import MaybeTeacher
from app.web.shared.rate_limits import Limit, TooManyGuessesError
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.teacher_session import MAX_EMAIL_INPUT, end_session, known_browser, path_on_this_site, start_session
from app.web.shared.templating import render
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")


@dataclass(frozen=True)
class SignInPage:
    """Everything that templates/account/sign_in.html shows."""

    email: Annotated[str, Doc("The e-mail address as typed.")] = ""
    next: Annotated[str, Doc("The path on this site to go to afterwards.")] = ""
    problem: Annotated[str, Doc("The sentence that refuses the last attempt, empty before one.")] = ""
    nobody_can: Annotated[bool, Doc("Whether there is no account yet.")] = False
    printed: Annotated[bool, Doc("Whether a link to create the first account was just printed.")] = False


@router.get("/sign-in")
def show_sign_in(
    store: StoreDep,
    teacher: MaybeTeacher,
    next: str = "",  # noqa: A002 - the word in the address
    printed: str = "",
) -> Response:
    """The sign-in form or, without any account, how to find the link for creating one."""
    if teacher:
        return RedirectResponse(path_on_this_site(next), 303)
    page = SignInPage(next=path_on_this_site(next), nobody_can=not store.people.has_teacher(), printed=printed == "yes")
    return render("account/sign_in.html", page)


@router.post("/sign-in/first-link")
def print_first_link(request: Request, services: ServicesDep) -> Response:
    """While there is no account, print a new link for creating one in the server's log, which only its
    operator reads.
    """
    if services.store.people.has_teacher():
        return RedirectResponse(url_for("show_sign_in"), 303)
    network = client_network(request)
    services.limits.check("mail", network)
    services.limits.record_failure("mail", network)
    # Never the host in the request, which would then get the token.
    settings = services.settings
    _host, port = request.scope.get("server") or ("", None)
    served_at = settings.public_url(url_here(settings.host, port or settings.port))
    path = url_for("show_account_link", token=services.store.people.add_link("setup"))
    log.info("Create the first teacher’s account with this one-time link: %s", served_at + path)
    return RedirectResponse(url_for("show_sign_in", printed="yes"), 303)


@router.post("/sign-in")
async def sign_in(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Check e-mail and password, start a session, and redirect (303) to the form's `next`, if it is on this site.

    Raises PasswordsBusyError if too many wait.
    """
    email = form.single_line("email", MAX_EMAIL_INPUT)
    guesses = _counted_as(request, services, email)
    if refusal := _first_refusal(services, guesses):
        await services.passwords.wait_for_slow_turn(client_network(request), guesses[0][1])
    threads = services.threads["password"]
    return await run_sync(_verify_and_sign_in, request, services, form, guesses, refusal, limiter=threads)


def _verify_and_sign_in(
    request: Request,
    services: Services,
    form: FormReader,
    guesses: tuple[tuple[Limit, str], ...],
    refusal: TooManyGuessesError | None,
) -> Response:
    email, path = form.single_line("email", MAX_EMAIL_INPUT), path_on_this_site(form.raw("next", MAX_TEXT))
    teacher = services.store.people.find_teacher(email) if parse_email(email) else None
    password, stored = form.raw("password", MAX_PASSWORD + 1), teacher.password_hash if teacher else None
    is_known = guesses[0][0] == "known"
    client = Client(guesses[0][1] if is_known else client_network(request), is_member=is_known)
    verified = services.passwords.verify(password, stored, client)
    if teacher is None or not verified:
        for limit, key in guesses:
            services.limits.record_failure(limit, key)
        services.store.audit_log.record_refused_sign_in()
        if refusal:
            raise refusal
        problem = _("Incorrect e-mail address or password.")
        return render("account/sign_in.html", SignInPage(email, path, problem), 422)
    return start_session(request, services.store, teacher, path)


def _counted_as(request: Request, services: Services, email: str) -> tuple[tuple[Limit, str], ...]:
    account, network = email.lower(), client_network(request)
    if browser := known_browser(request, services.store, account):
        return (("known", browser),)
    return ("guess", f"{account} {network}"), ("account", account), ("sign-in", network)


def _first_refusal(services: Services, guesses: tuple[tuple[Limit, str], ...]) -> TooManyGuessesError | None:
    try:
        for limit, key in guesses:
            services.limits.check(limit, key)
    except TooManyGuessesError as refusal:
        return refusal
    return None


@router.post("/sign-out")
def sign_out(request: Request, store: StoreDep, form: FormDep, teacher: MaybeTeacher) -> Response:
    """End this browser's session or, with the form's `everywhere`, all sessions of its teacher."""
    if teacher is None:
        response = RedirectResponse(url_for("show_sign_in"), 303)
        response.delete_cookie(TEACHER_COOKIE)
        return response
    return end_session(request, store, teacher, everywhere=bool(form.raw("everywhere")))
