"""Asking for a link by e-mail that sets a new password."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.exchange.mail import Mail, MailError
from app.store import AuditAction, Store
from app.store.people import parse_email
from app.translation import gettext as _
from app.web.shared.forms import FormDep
from app.web.shared.rate_limits import TooManyGuessesError
from app.web.shared.services import ServicesDep
from app.web.shared.teacher_session import MAX_EMAIL_INPUT, known_browser
from app.web.shared.templating import render
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")


@dataclass(frozen=True)
class ForgottenPasswordPage:
    """Everything that templates/account/forgotten_password.html shows."""

    sends_mail: Annotated[bool, Doc("Whether this server can send a link by e-mail.")]
    email: Annotated[str, Doc("The e-mail address as typed.")] = ""
    problem: Annotated[str, Doc("The sentence about why no link was asked for, empty where there is none.")] = ""
    requested: Annotated[bool, Doc("Whether a link was just asked for, whether or not the account exists.")] = False


@router.get("/forgotten-password")
def show_forgotten_password(services: ServicesDep, requested: str = "") -> Response:
    page = ForgottenPasswordPage(services.mail is not None, requested=requested == "yes")
    return render("account/forgotten_password.html", page)


@router.post("/forgotten-password")
def mail_password_link(request: Request, services: ServicesDep, form: FormDep) -> Response:
    """Queue a link to the account with that e-mail address, if it exists, and redirect (303) to the form."""
    typed, mail, network = form.single_line("email", MAX_EMAIL_INPUT), services.mail, client_network(request)
    if mail is None:
        return render("account/forgotten_password.html", ForgottenPasswordPage(sends_mail=False), 404)
    email = parse_email(typed)
    if email is None:
        return _refuse_form(typed, _("Enter an e-mail address, such as ada@example.org."), 422)
    asker = known_browser(request, services.store, email) or network  # or a browser known to the account
    try:
        services.limits.check("mail", asker)
    except TooManyGuessesError as error:
        problem = _("Too many links requested. Try again in {seconds} s.").format(seconds=error.seconds)
        return _refuse_form(typed, problem, 429)
    services.limits.record_failure("mail", asker)  # every request counts, right or wrong
    # Never the host in the request, which would then get the token.
    prefix = services.settings.address or ""
    if not mail.outbox.put(partial(_mail_link, services.store, mail, prefix, email)):
        return _refuse_form(typed, _("Many people are requesting a link right now. Try again in a minute."), 503)
    return RedirectResponse(url_for("show_forgotten_password", requested="yes"), 303)


def _refuse_form(typed: str, problem: str, status: int) -> Response:
    page = ForgottenPasswordPage(sends_mail=True, email=typed, problem=problem)
    return render("account/forgotten_password.html", page, status)


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
