"""Teachers' accounts: signing in and out, passwords, one-time links, and the public demonstration."""

from __future__ import annotations

import logging
from functools import partial

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.addresses import url_here
from app.exchange.mail import Mail, MailError
from app.machine.work_queue import Client
from app.store import AccountLink, AuditAction, Store, Teacher
from app.store.people import parse_email
from app.translation import gettext as _
from app.web.shared.cookies import DEMONSTRATION_COOKIE, TEACHER_COOKIE, set_private_cookie
from app.web.shared.forms import MAX_TEXT, FormDep, FormReader
from app.web.shared.passwords import MAX_PASSWORD, MIN_PASSWORD, password_problem
from app.web.shared.permissions import MaybeTeacher, SignedIn, require_practice
from app.web.shared.rate_limits import Limit, TooManyGuessesError
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.teacher_session import (
    MAX_EMAIL_INPUT,
    end_session,
    known_browser,
    path_on_this_site,
    signed_out,
    start_session,
)
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")

MAX_TEACHER_NAME = 100  # characters
DEMONSTRATION_MAX_AGE_S = 24 * 3600


# Signing in and out


@router.get("/sign-in")
def show_sign_in(
    store: StoreDep,
    teacher: MaybeTeacher,
    next: str = "",  # noqa: A002 - the word in the address
    printed: str = "",
) -> Response:
    """The sign-in form or, without any account, how to find the link for creating one."""
    path = path_on_this_site(next)
    if teacher:
        return RedirectResponse(path, 303)
    nobody_can = not store.people.has_teacher()
    return render(
        "account/sign_in.html", next=path, nobody_can=nobody_can, printed=printed == "yes", email="", problem=""
    )


@router.post("/sign-in/first-link")
def print_first_link(request: Request, services: ServicesDep) -> Response:
    """Print a link for creating the first account in the server's log, which only its operator reads."""
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
    """Check e-mail and password, and start a session; after many wrong ones, only slowly."""
    email = form.single_line("email", MAX_EMAIL_INPUT)
    guesses = _counted_as(request, services, email)
    refusal = _first_refusal(services, guesses)
    if refusal:
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
    limit, key = guesses[0]
    client = Client(key) if limit == "known" else Client(client_network(request), is_member=False)
    # Without an account it takes as long, so that nobody learns which addresses have one.
    verified = services.passwords.verify(password, stored, client)
    if teacher and verified:
        return start_session(request, services.store, teacher, path)
    for limit, key in guesses:
        services.limits.record_failure(limit, key)
    services.store.audit_log.record_refused_sign_in()
    if refusal:
        raise refusal
    problem = _("Incorrect e-mail address or password.")
    return render(
        "account/sign_in.html", status=422, email=email, next=path, problem=problem, nobody_can=False, printed=False
    )


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
        return signed_out()
    return end_session(request, store, teacher, everywhere=bool(form.raw("everywhere")))


# Passwords


@router.get("/password")
def show_password_form(teacher: SignedIn) -> Response:
    return render("account/password.html", teacher=teacher, shortest=MIN_PASSWORD, problem="")


@router.post("/password")
@in_threads("password")
def change_password(request: Request, services: ServicesDep, teacher: SignedIn, form: FormDep) -> Response:
    """Set a new password; the teacher's other sessions end, and links to reset it stop working."""
    guesses = f"password of {teacher.id}"
    services.limits.check("known", guesses)
    old, new = (form.raw(name, MAX_PASSWORD + 1) for name in ("old", "new"))
    problem = password_problem(new)
    if not old or not services.passwords.verify(old, teacher.password_hash):
        services.limits.record_failure("known", guesses)
        problem = _("That isn’t your password. If you have forgotten it, sign out and ask for a link to set a new one.")
    if problem:
        return render("account/password.html", status=422, teacher=teacher, shortest=MIN_PASSWORD, problem=problem)
    store, password_hash = services.store, services.passwords.hash(new)
    with store.transaction():
        store.people.change_password(teacher, password_hash)
        store.audit_log.record(teacher, AuditAction.PASSWORD_SET, teacher)
        return start_session(request, store, teacher, url_for("list_courses", done="password"))


@router.get("/forgotten-password")
def show_forgotten_password(services: ServicesDep, requested: str = "") -> Response:
    return _forgotten_password(services, requested=requested == "yes")


def _forgotten_password(
    services: Services, status: int = 200, *, email: str = "", problem: str = "", requested: bool = False
) -> Response:
    return render(
        "account/forgotten_password.html",
        status=status,
        sends_mail=services.mail is not None,
        email=email,
        problem=problem,
        requested=requested,
    )


@router.post("/forgotten-password")
def mail_password_link(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Queue a link to the account with that e-mail address; the answer doesn't tell whether there is one."""
    typed, mail, network = form.single_line("email", MAX_EMAIL_INPUT), services.mail, client_network(request)
    if mail is None:
        return _forgotten_password(services, 404)
    email = parse_email(typed)
    if email is None:
        problem = _("Enter an e-mail address, such as ada@example.org.")
        return _forgotten_password(services, 422, email=typed, problem=problem)
    asker = known_browser(request, services.store, email) or network
    try:
        services.limits.check("mail", asker)
    except TooManyGuessesError as error:
        problem = _("Too many links requested. Try again in {seconds} s.").format(seconds=error.seconds)
        return _forgotten_password(services, 429, email=typed, problem=problem)
    services.limits.record_failure("mail", asker)  # every request counts, right or wrong
    # Never the host in the request, which would then get the token.
    prefix = services.settings.address or ""
    if not mail.outbox.put(partial(_mail_link, services.store, mail, prefix, email)):
        problem = _("Many people are requesting a link right now. Try again in a minute.")
        return _forgotten_password(services, 503, email=typed, problem=problem)
    return RedirectResponse(url_for("show_forgotten_password", requested="yes"), 303)


def _mail_link(store: Store, mail: Mail, public_url: str, email: str) -> None:
    teacher = store.people.find_teacher(email)
    token = store.people.add_mailed_link(teacher) if teacher else None
    if teacher is None or token is None:
        return
    link = public_url + url_for("show_account_link", token=token)
    try:
        mail.send(
            teacher.email,
            _("Reset your Attention Shapes password"),
            _(
                "Someone, probably you, asked to reset the Attention Shapes password for\n"
                "this e-mail address. Open this link to choose a new one. It works once\n"
                "and expires after an hour:\n\n"
                "{link}\n\n"
                "Setting a new password signs your account out everywhere. If you didn't\n"
                "ask for this, ignore this e-mail; your password stays the same."
            ).format(link=link)
            + "\n",
        )
    except MailError as error:
        log.error("mail: a link was not sent: %s", error)
        with store.audit_log.recording("nobody", AuditAction.PASSWORD_LINK_NOT_MAILED, teacher):
            store.people.drop_link(token)
    else:
        store.audit_log.record("nobody", AuditAction.PASSWORD_LINK_MAILED, teacher)


# Links that work once: to create the first account, accept an invitation, or set a new password


@router.get("/links/{token}")
def show_account_link(services: ServicesDep, teacher: MaybeTeacher, token: str) -> Response:
    """The link's purpose and form, without using it; 404 for a used or expired link."""
    return _account_link(services.store, teacher, _find_link(services, token), token)


@router.post("/links/{token}")
@in_threads("password")
def follow_account_link(
    request: Request, services: ServicesDep, teacher: MaybeTeacher, form: FormDep, token: str
) -> Response:
    """Use the link: set a password, create an account or accept an invitation, then sign the teacher in."""
    store, link = services.store, _find_link(services, token)
    if link.course_id:
        path = url_for("show_course", course_id=link.course_id)
    else:
        path = url_for("show_connect_code" if link.kind == "invite" else "list_courses")
    if link.kind == "invite" and teacher:
        if store.people.follow_link(link, teacher.email) is None:
            raise _void_link()
        return RedirectResponse(path, 303)
    email = link.email or form.single_line("email", MAX_EMAIL_INPUT)
    name, password = form.single_line("name", MAX_TEACHER_NAME), form.raw("password", MAX_PASSWORD + 1)
    if problem := _account_problem(store, link, email, name, password):
        return _account_link(store, teacher, link, token, 422, email=email, name=name, problem=problem)
    password_hash = services.passwords.hash(password)
    with store.transaction():
        account = store.people.follow_link(link, email, name, password_hash)
        if account is None:  # somebody else was faster
            raise _void_link()
        if link.kind == "reset":
            store.audit_log.record(account, AuditAction.PASSWORD_SET, account)
        return start_session(request, store, account, path)


def _account_link(
    store: Store,
    teacher: Teacher | None,
    link: AccountLink,
    token: str,
    status: int = 200,
    *,
    email: str = "",
    name: str = "",
    problem: str = "",
) -> Response:
    course = store.courses.find(link.course_id) if link.course_id else None
    return render(
        "account/account_link.html",
        status=status,
        link=link,
        token=token,
        course=course.title if course else "",
        teacher=teacher,
        has_account=_has_account(store, link, link.email),
        email=email,
        name=name,
        problem=problem,
    )


def _account_problem(store: Store, link: AccountLink, email: str, name: str, password: str) -> str:
    if not parse_email(email):
        return _("Enter an e-mail address, such as ada@example.org.")
    if link.kind != "reset" and not name:
        return _("Enter a name.")
    if _has_account(store, link, email):
        return _("That address already has an account. Sign in, then open this link again.")
    return password_problem(password)


def _has_account(store: Store, link: AccountLink, email: str) -> bool:
    account = store.people.find_teacher(email) if link.kind != "reset" and parse_email(email) else None
    return account is not None and (link.kind == "invite" or account.password_hash is not None)


def _find_link(services: Services, token: str) -> AccountLink:
    link = services.store.people.find_link(token)
    if link is None:
        raise _void_link()
    return link


def _void_link() -> HTTPException:
    sentence = _("This link has been used, has expired, or was replaced by a newer one. Ask for a new link.")
    return HTTPException(404, sentence)


# The public demonstration


@router.get("/demonstration", dependencies=[Depends(require_practice)])
def show_demonstration(request: Request, services: ServicesDep, teacher: MaybeTeacher) -> Response:
    """Let a browser without an account see the class of the day as its teacher, while it works."""
    if teacher:
        return RedirectResponse(url_for("list_courses"), 303)
    store = services.demonstration.begin()
    demonstrator = store.people.only_teacher()
    assert demonstrator is not None  # noqa: S101 - it was made with the course
    course = store.courses.taught_by(demonstrator)[0].course
    now = store.now()
    running = next(each for each in store.activities.of_course(course) if each.phase(now) == "open")
    response = RedirectResponse(url_for("show_activity", activity_id=running.id), 303)
    set_private_cookie(request, response, DEMONSTRATION_COOKIE, "yes", DEMONSTRATION_MAX_AGE_S)
    response.delete_cookie(TEACHER_COOKIE)  # an expired session's
    return response


@router.post("/demonstration/leave")
async def leave_demonstration() -> Response:
    response = RedirectResponse(url_for("home"), 303)
    response.delete_cookie(DEMONSTRATION_COOKIE)
    return response
