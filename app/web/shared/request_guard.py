"""What stands before every request: a limit on size, a check of where a form came from, and security headers."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 2_000_000  # bytes; the largest honest request is a config.json of a megabyte

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # a page is somebody's; what may be kept says so itself
}


class _TooLargeError(Exception):
    pass


class Guard:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send)
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and _from_elsewhere(Headers(scope=scope)):
            await _refusal(scope, "This form was sent from another site.", 403)(scope, receive, send)
            return
        await self._limited(scope, receive, send)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a body that is too long: by its stated length at once, otherwise as soon as too much has come."""
        refusal = _refusal(scope, f"A request may be at most {MAX_BODY:,} bytes long.", 413)
        stated = Headers(scope=scope).get("content-length", "")
        if stated.isdigit() and int(stated) > MAX_BODY:
            await refusal(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise _TooLargeError
            return message

        async def checked(message: Message) -> None:
            if seen > MAX_BODY and message["type"] == "http.response.start":  # the app took it for a broken body
                raise _TooLargeError
            await send(message)

        try:
            await self.app(scope, counted, checked)
        except _TooLargeError:
            await refusal(scope, receive, send)


def _refusal(scope: Scope, sentence: str, status: int) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse({"detail": sentence}, status)
    return PlainTextResponse(sentence, status)


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that another site sent this; programs that are no browsers say nothing of the kind."""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
