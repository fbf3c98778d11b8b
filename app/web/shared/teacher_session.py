"""Signing a teacher in and out in one browser: the session in the database and the cookie that names it."""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from app.store import AuditAction, Store, Teacher
from app.web.shared.cookies import KNOWN_COOKIE, TEACHER_COOKIE, TEACHER_NAME_COOKIE, set_private_cookie
from app.web.shared.lti_launch import STATE_COOKIE
from app.web.shared.urls import url_for

MAX_EMAIL_INPUT = 300  # characters of a typed e-mail address
SESSION_COOKIE_MAX_AGE_S = 30 * 24 * 3600


def start_session(request: Request, store: Store, teacher: Teacher, path: str) -> Response:
    """Sign the teacher in, end the browser's earlier session, and redirect (303) to `path`."""
    response = RedirectResponse(path, 303)
    with store.audit_log.recording(teacher, AuditAction.SIGNED_IN):
        if earlier := request.cookies.get(TEACHER_COOKIE):
            store.people.end_session(earlier)
        token = store.people.open_session(teacher)
    set_private_cookie(request, response, TEACHER_COOKIE, token, SESSION_COOKIE_MAX_AGE_S)
    shown = quote(teacher.name or teacher.email)
    set_private_cookie(request, response, TEACHER_NAME_COOKIE, shown, SESSION_COOKIE_MAX_AGE_S)
    nonce = secrets.token_urlsafe(12)
    known = f"{nonce}.{_browser_signature(store, nonce, teacher.email)}"
    set_private_cookie(request, response, KNOWN_COOKIE, known)
    return response


def known_browser(request: Request, store: Store, email: str) -> str:
    """The browser's random name, if it has been signed in to that e-mail address's account before."""
    nonce, _dot, signature = request.cookies.get(KNOWN_COOKIE, "").partition(".")
    expected = _browser_signature(store, nonce, email)
    return nonce if hmac.compare_digest(signature.encode(), expected.encode()) else ""


def _browser_signature(store: Store, nonce: str, email: str) -> str:
    return store.key.signature(f"browser {nonce} of {email.lower()}")


def end_session(request: Request, store: Store, teacher: Teacher, *, everywhere: bool) -> Response:
    """Sign the teacher out here or, if `everywhere`, in every browser; redirect (303) to the sign-in page."""
    with store.audit_log.recording(teacher, AuditAction.SIGNED_OUT):
        if everywhere:
            store.people.end_sessions(teacher)
        else:
            store.people.end_session(request.cookies.get(TEACHER_COOKIE, ""))
    response = signed_out()
    # The browser's cached pages go as well. Its other cookies and its storage aren't the teacher's: a student may have
    # worked in the same browser.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


def signed_out() -> Response:
    """Redirect (303) to the sign-in page, without the cookies of a signed-in teacher."""
    response = RedirectResponse(url_for("show_sign_in"), 303)
    response.delete_cookie(TEACHER_COOKIE)
    response.delete_cookie(TEACHER_NAME_COOKIE)
    response.delete_cookie(STATE_COOKIE, path="/lti")  # an unfinished launch would sign them in again
    return response


def path_on_this_site(path: str) -> str:
    """The path, quoted, if it is on this site and so safe to redirect to; otherwise the list of courses.

    Example: '/activities/3?sheet=2' stays; '//evil.example', 'https://evil.example' and '' become '/courses', as does a
    path with an unprintable character.
    """
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return quote(path, safe="/?&=+%-_.~") if is_local else url_for("list_courses")
