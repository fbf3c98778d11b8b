"""Middleware around every request: limits on its size, a check that forms come from our pages, security headers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.translation import gettext as _
from app.translation import preferred_language, speak
from app.web.shared.cookies import note_request

# Bytes.
MAX_TARGET = MAX_HEADERS = 16_000  # the address with its query, and all headers
MAX_LANGUAGES = 500  # the header with the browser's preferred languages
MAX_PATH = 2_000  # Python refuses to read a number of more than 4,300 digits
MAX_BODY = 2_000_000  # the largest legitimate request is a config.json of a megabyte
MAX_WORK = 256_000  # a sheet with the longest answers to ten open questions, in any script
MAX_FORM = 64_000
MAX_PAPER = 32_000  # answers of some 400 students, typed in from paper: marking them takes a tenth of a second

# The first match limits a path; other paths may send MAX_FORM.
_BODY_LIMITS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), most)
    for pattern, most in {
        r"/(api/v1/)?models": MAX_BODY,  # a config.json
        r"/api/v1/forward": MAX_BODY,
        r"/handout/class": MAX_BODY,  # a class list
        r"/courses/\d+/students(/preview)?": MAX_BODY,
        r"/courses/\d+/activities": MAX_BODY,  # any number of worksheets, twice: as they were, and as they are
        r"/activities/\d+": MAX_BODY,
        r"/activities/\d+/preview/\d+/\w+": MAX_BODY,  # carries its attempts along
        r"/(worksheets|tickets)(/\w+)?": MAX_BODY,  # an author's longest texts, or a file
        r"/(sheet|class)/.*": MAX_WORK,
        r"/activities/\d+/paper": MAX_WORK,  # a line per student of a large class
        r"/runs": MAX_WORK,
        r"/marking(\.csv)?": MAX_PAPER,
        r"/api/v1/grade": MAX_WORK,
        r"/activities/\d+/preview/ticket": MAX_WORK,
    }.items()
)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # pages are private; responses that may be cached say so
}

# A page that teachers may embed in their own pages, such as those of a learning management system.
EMBEDDED_HEADERS = {
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("frame-ancestors 'none'", "frame-ancestors *")
}

# A learning platform sends its users here from its own pages, by forms, and may show these pages in a frame of its own.
# They do nothing by a cookie that other sites' requests carry.
SENT_BY_PLATFORMS = ("/lti/login", "/lti/launch")
SHOWN_BY_PLATFORMS = (
    *SENT_BY_PLATFORMS,
    "/lti/open",
    "/lti/connect",
    "/lti/connect/invitation",
    "/lti/link",
    "/lti/choose",
)

# What browsers may cache: pages that are the same for everybody except for this browser's practice. Other pages may
# show names, answers or marks, and Back after signing out must not show them.
KEPT_PATHS = (
    *("/", "/teach", "/about", "/sheet", "/sheets", "/practice", "/glossary", "/models", "/see", "/handout"),
    "/openapi.json",
    *("/v/", "/models/", "/see/", "/handout/pages/", "/api/", "/static/"),  # and everything below
)
_KEPT_FOLDERS = tuple(path for path in KEPT_PATHS if len(path) > 1 and path.endswith("/"))


def body_limit(path: str) -> int:
    """How many bytes a request's body may have on a path."""
    return next((most for pattern, most in _BODY_LIMITS if pattern.fullmatch(path)), MAX_FORM)


class Guard:
    """ASGI middleware: HEAD as GET, 431 for long headers, 403 for other sites' forms, HEADERS and a language on every
    response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(
            send, scope["path"], may_keep=scope["method"] in ("GET", "HEAD") and _is_kept(scope["path"])
        )
        speak(preferred_language(Headers(scope=scope).get("accept-language", "")[:MAX_LANGUAGES]))
        if _is_too_long(scope):
            sentence = _("The address or the headers of this request are too long.")
            await _refusal_response(scope, sentence, 431)(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; the server leaves out the body
            scope = {**scope, "method": "GET"}
        scope = _without_escaped_cookies(scope)
        note_request(scope)
        is_safe = scope["method"] in ("GET", "OPTIONS") or scope["path"] in SENT_BY_PLATFORMS
        if not is_safe and _is_cross_site(Headers(scope=scope)):
            sentence = _("This form was sent from another site: open the page here and try again.")
            await _refusal_response(scope, sentence, 403)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_too_long(scope: Scope) -> bool:
    path = len(scope.get("raw_path") or scope["path"])
    is_long = path > MAX_PATH or path + len(scope["query_string"]) > MAX_TARGET
    return is_long or sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS


def _without_escaped_cookies(scope: Scope) -> Scope:
    if not any(name == b"cookie" and b"\\" in value for name, value in scope["headers"]):
        return scope
    headers = [
        (name, b";".join(each for each in value.split(b";") if b"\\" not in each) if name == b"cookie" else value)
        for name, value in scope["headers"]
    ]
    return {**scope, "headers": headers}


def _refusal_response(scope: Scope, sentence: str, status: int) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse({"detail": sentence}, status)
    return PlainTextResponse(sentence, status)


def _is_cross_site(headers: Headers) -> bool:
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _is_kept(path: str) -> bool:
    return path in KEPT_PATHS or path.startswith(_KEPT_FOLDERS)


def _with_headers(send: Send, path: str, *, may_keep: bool) -> Send:
    is_shown = path in SHOWN_BY_PLATFORMS or path.startswith("/lti/register/")
    usual = {**HEADERS, **EMBEDDED_HEADERS} if is_shown else HEADERS

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if not may_keep:
                headers.setdefault("Cache-Control", "no-store")
            for name, value in usual.items():
                headers.setdefault(name, value)
            if not headers["Cache-Control"].startswith("public"):
                headers.add_vary_header("Accept-Language")
        await send(message)

    return send_with_headers
