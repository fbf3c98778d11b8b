"""Middleware around every request: a limit on its size, a check that forms come from our pages, security headers."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.translation import gettext as _
from app.web.shared.cookies import note_request

MAX_BODY = 2_000_000  # bytes; the largest legitimate request is a config.json of a megabyte

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # a page belongs to one person; responses that may be cached say so
}

# A page that teachers may put into their own pages, such as those of a learning management system.
EMBEDDED_HEADERS = {
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("frame-ancestors 'none'", "frame-ancestors *")
}

# What browsers may keep: pages that are the same for everybody, but for what this browser typed into practice. Every
# other page may show names, answers or marks, and Back after signing out must show nothing of these.
KEPT_PATHS = (
    *("/", "/sheet", "/practice", "/practice/map", "/glossary", "/models", "/see", "/handout", "/openapi.json"),
    *("/v/", "/models/", "/see/", "/handout/pages/", "/api/", "/static/"),  # and everything below
)
_KEPT_FOLDERS = tuple(path for path in KEPT_PATHS if len(path) > 1 and path.endswith("/"))


class _TooLargeError(Exception):
    """More bytes have come than MAX_BODY."""


class Guard:
    """ASGI middleware: HEAD as GET, 403 for forms of other sites, 413 over MAX_BODY, HEADERS on every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        note_request(scope)
        send = _with_headers(send, may_keep=scope["method"] in ("GET", "HEAD") and _is_kept(scope["path"]))
        if scope["method"] == "HEAD":  # as GET; the server leaves the body out
            scope = {**scope, "method": "GET"}
        if scope["method"] not in ("GET", "OPTIONS") and _is_cross_site(Headers(scope=scope)):
            sentence = _("This form was sent from another site: open the page here and try again.")
            await _refusal_response(scope, sentence, 403)(scope, receive, send)
            return
        await self._with_size_limit(scope, receive, send)

    async def _with_size_limit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app; 413 for a body over MAX_BODY: without running it where the stated length is over it already,
        else as soon as too much has come.
        """
        refusal = _refusal_response(
            scope, _("A request may have at most {most:,} bytes: send less at once.").format(most=MAX_BODY), 413
        )
        length = Headers(scope=scope).get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY:
            await refusal(scope, receive, send)
            return
        received = 0  # bytes

        async def count_received() -> Message:
            """The next message of the request; raises _TooLargeError once more than MAX_BODY bytes have come."""
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY:
                raise _TooLargeError
            return message

        async def refuse_truncated(message: Message) -> None:
            """Send a message of the app; raise _TooLargeError where it begins to answer a body that is too large."""
            if received > MAX_BODY and message["type"] == "http.response.start":  # the app took it for a broken body
                raise _TooLargeError
            await send(message)

        try:
            await self.app(scope, count_received, refuse_truncated)
        except _TooLargeError:
            await refusal(scope, receive, send)


def _refusal_response(scope: Scope, sentence: str, status: int) -> Response:
    """A response with one sentence: JSON below /api/, plain text everywhere else."""
    if scope["path"].startswith("/api/"):
        return JSONResponse({"detail": sentence}, status)
    return PlainTextResponse(sentence, status)


def _is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that another site sent this; a sister subdomain is another.

    Sec-Fetch-Site decides where it is there: a proxy may change Host, but not this. Otherwise Origin must be this host.
    False without either header, because only browsers send them.
    """
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _is_kept(path: str) -> bool:
    """Whether browsers may keep what is at this path."""
    return path in KEPT_PATHS or path.startswith(_KEPT_FOLDERS)


def _with_headers(send: Send, *, may_keep: bool) -> Send:
    """A `send` that adds HEADERS to a response, except those that the response has set itself. Unless the browser
    `may_keep` it, it stores nothing of it.
    """

    async def send_with_headers(message: Message) -> None:
        """Send a message, with HEADERS where it is the start of a response."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if not may_keep:
                headers.setdefault("Cache-Control", "no-store")
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
