"""Limits on how long one connection may keep the server waiting, and on what it may make it keep or log; uvicorn has
none.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from contextlib import suppress
from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.web.shared.request_guard import MAX_HEADERS, MAX_TARGET
from app.web.shared.urls import network_of

# How long a whole request may take, from its first byte or from the connection. Its body has a second more per
# BODY_RATE bytes received, so that the longest has a minute.
REQUEST_DEADLINE_S, BODY_RATE = 20.0, 50_000
MAX_OPEN_CONNECTIONS = 4_000  # per process: 500 students whose browsers open their maximum of six
ACCEPTED_AT_ONCE = 16
MAX_BESIDE_BODY = MAX_TARGET + MAX_HEADERS  # bytes of a request that isn't complete
MAX_FIELDS = 200  # headers per request; a short one takes over ten times what is sent
REPEAT_INTERVAL_S = 60.0

_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class OncePerInterval(logging.Filter):
    """A log filter that drops a warning repeated within REPEAT_INTERVAL_S; errors always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at = dict[str, float]()  # by the message before formatting, so it stays small

    def filter(self, record: logging.LogRecord) -> bool:
        now, text = time.monotonic(), str(record.msg)
        if record.levelno > logging.WARNING or now - self._passed_at.get(text, -REPEAT_INTERVAL_S) >= REPEAT_INTERVAL_S:
            self._passed_at[text] = now
            return True
        return False


_log = logging.getLogger("uvicorn.error.connections")
_log.setLevel(logging.WARNING)
_log.addFilter(OncePerInterval())


def most_connections() -> int:
    """How many connections may be open: MAX_OPEN_CONNECTIONS, or half of this process's limit on open files."""
    with suppress(ImportError):  # Windows has no such limit
        import resource

        files, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            return min(MAX_OPEN_CONNECTIONS, files // 2)
    return MAX_OPEN_CONNECTIONS


def listeners(listening: socket.socket) -> list[socket.socket]:
    """The server's socket and copies of it, so that thousands of new connections don't keep others waiting.

    uvloop accepts one connection per socket in a pass of its loop, which takes longer the busier the threads are.
    """
    return [listening, *(listening.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


def _give_up_unread(connected: socket.socket) -> None:
    with suppress(AttributeError, OSError):  # only on Linux
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * REQUEST_DEADLINE_S))


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits: requests must arrive in time, heads must be short, and answers must be read.

    Other connections are closed. With too many, the oldest connections of the network that has most are closed.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = _log
        self._deadline: asyncio.TimerHandle | None = None
        # done when the connection is lost: see FairLimiter
        self._lost: asyncio.Future[None] = self.loop.create_future()
        self._due_at = self._since = 0.0  # by the loop's clock; since the last request began or ended
        self._is_between_requests = True
        self._is_first_of_chunk = True
        self._beside_body = 0  # bytes of the request being received

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if connected := transport.get_extra_info("socket"):
            _give_up_unread(connected)
        self._set_deadline()
        if len(self.connections) > (most := most_connections()):
            self._make_room(most)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._lost.set_result(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, and refuse a request with too many bytes beside its body."""
        self._is_first_of_chunk = self._is_between_requests
        self._beside_body = len(data) + (0 if self._is_between_requests else self._beside_body)
        super().data_received(data)
        if self._beside_body > MAX_BESIDE_BODY and not self._is_between_requests and not self.transport.is_closing():
            self._refuse_head()

    def _refuse_head(self) -> None:
        _log.warning("A request had too long a head.")
        self.transport.write(_REFUSAL)
        self.transport.close()

    def on_message_begin(self) -> None:
        if self.cycle and not self.cycle.response_complete:
            self.transport.abort()
            raise HttpParserError
        if not self._is_first_of_chunk:  # where it begins in the chunk isn't known
            self._beside_body = 0
        self._is_first_of_chunk = self._is_between_requests = False
        self._set_deadline()
        super().on_message_begin()
        self.scope["state"]["lost"] = self._lost

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def on_header(self, name: bytes, value: bytes) -> None:
        head_has_come = self.cycle is not None and self.cycle.scope is self.scope
        if not head_has_come:  # otherwise it is a trailer, after the body, which nothing reads
            super().on_header(name, value)
            if len(self.headers) > MAX_FIELDS:
                self._refuse_head()
                raise HttpParserError

    def on_body(self, body: bytes) -> None:
        self._beside_body -= len(body)
        if not self.cycle.response_complete:
            self._due_at += len(body) / BODY_RATE
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_between_requests = True
        self._cancel_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def _make_room(self, most: int) -> None:
        networks = dict[str, list[LimitedProtocol]]()
        for each in self.connections:
            if isinstance(each, LimitedProtocol) and not each.transport.is_closing():
                networks.setdefault(network_of(each.client[0] if each.client else ""), []).append(each)
        if sum(map(len, networks.values())) > most:
            crowd = max(networks.values(), key=len)
            for each in sorted(crowd, key=lambda each: each._since)[: max(most // 16, 1)]:
                each.transport.abort()

    def _set_deadline(self) -> None:
        self._cancel_deadline()
        self._since = self.loop.time()
        self._due_at = self._since + REQUEST_DEADLINE_S
        self._deadline = self.loop.call_at(self._due_at, self._close_late)

    def _close_late(self) -> None:
        if self.flow.read_paused:  # the app has yet to read the received data
            self._due_at = self.loop.time() + REQUEST_DEADLINE_S
        if self._due_at > self.loop.time():
            self._deadline = self.loop.call_at(self._due_at, self._close_late)
        else:
            self.transport.close()

    def _cancel_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None
