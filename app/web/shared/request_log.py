"""Middleware that gives every request an id, and logs slow requests, bugs and, if configured, every request."""

from __future__ import annotations

import logging
import re
import secrets
from time import perf_counter

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.logs import REQUEST_ID
from app.metrics import count_failure, meters

_SAVES = {"/class/{activity_id}/{number}/save": "class", "/sheet/save": "practice"}
SLOW_AFTER_S = 2.0
MAX_SLOW_PER_MINUTE = 60  # log lines of slow requests, which anybody can send in any number

log = logging.getLogger("attention_shapes")


class RequestLog:
    """ASGI middleware: X-Request-ID on every response, and a line in the log for some requests."""

    def __init__(self, app: ASGIApp, *, log_all: bool = False) -> None:
        self.app, self._log_all = app, log_all
        self._minute_ends, self._said_slow = 0.0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, status, began = secrets.token_hex(6), 500, perf_counter()
        REQUEST_ID.set(request_id)  # never reset: the task ends with the request, after the server has logged its error

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            self._note(scope, status, perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        if kept := meters():
            route = route_of(scope)
            kept.requests.labels(scope["method"], route, status).inc()
            kept.request_seconds.labels(route).observe(seconds)
            if status < 300 and (place := _SAVES.get(route)):
                kept.saves.labels(place).inc()
            if status == 500:
                count_failure("bug")
        if status == 500:
            log.error("bug: %s", _line(scope, status, seconds))
        elif seconds >= SLOW_AFTER_S and self._may_say_slow():
            log.warning("slow: %s", _line(scope, status, seconds))
        elif self._log_all:
            log.info("%s", _line(scope, status, seconds))

    def _may_say_slow(self) -> bool:
        if (now := perf_counter()) >= self._minute_ends:
            self._minute_ends, self._said_slow = now + 60, 0
        self._said_slow += 1
        return self._said_slow <= MAX_SLOW_PER_MINUTE


def route_of(scope: Scope) -> str:
    """The address of the answering route, such as "/class/{activity_id}/{number}/save"; "-" if none."""
    route = scope.get("route")
    return getattr(route, "path_format", None) or getattr(route, "path", None) or "-"


def _line(scope: Scope, status: int, seconds: float) -> str:
    values = scope.get("path_params") or {}
    numbers = {name: str(value) for name, value in values.items() if str(value).isdecimal()}
    address = re.sub(r"\{(\w+)\}", lambda part: numbers.get(part[1], part[0]), route_of(scope))
    return f"{scope['method']} {address} {status} {1000 * seconds:,.0f} ms"
