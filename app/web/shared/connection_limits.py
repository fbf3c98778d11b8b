"""What one connection may keep the server waiting for, or make it keep or log; uvicorn itself has no such limits."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.web.shared.request_guard import MAX_HEADERS, MAX_TARGET

REQUEST_DEADLINE_S = 60.0  # from the first byte of a request, or from the connection, to the last byte of the body
MAX_BESIDE_BODY = MAX_TARGET + MAX_HEADERS  # bytes of a request that has not come whole
REPEAT_INTERVAL_S = 60.0

_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class OncePerInterval(logging.Filter):
    """Lets a warning pass if the same one has not passed in the last REPEAT_INTERVAL_S; errors always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at = dict[str, float]()  # by the text before anything is put into it, so it stays small

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes: one above WARNING always does, any other unless one with its text passed less than
        REPEAT_INTERVAL_S ago. A record that is dropped does not start the interval again; an error does.

        The text is that before arguments are put into it.
        """
        now, text = time.monotonic(), str(record.msg)
        if record.levelno > logging.WARNING or now - self._passed_at.get(text, -REPEAT_INTERVAL_S) >= REPEAT_INTERVAL_S:
            self._passed_at[text] = now
            return True
        return False


_log = logging.getLogger("uvicorn.error.connections")
_log.setLevel(logging.WARNING)
_log.addFilter(OncePerInterval())


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, for requests that come whole before REQUEST_DEADLINE_S and whose head is not too long.

    Else the connection is closed. What is kept of a request that has not come whole, beside its body, are at most
    MAX_BESIDE_BODY bytes and what came with the last of them; `Guard` limits what has come whole, and bodies. A request
    that cannot be parsed is logged at most once in REPEAT_INTERVAL_S.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Begin between requests, without a deadline, and log to `_log` in place of uvicorn's logger."""
        super().__init__(*arguments, **options)
        self.logger = _log
        self._deadline: asyncio.TimerHandle | None = None
        self._is_between_requests = True
        self._is_first_of_chunk = True
        self._beside_body = 0  # bytes of the request that is coming

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; then, if a request is unfinished and more than MAX_BESIDE_BODY of its bytes are no part of
        its body, log a warning, answer 431 and close the connection, unless that is closing already.
        """
        self._is_first_of_chunk = self._is_between_requests
        self._beside_body = len(data) + (0 if self._is_between_requests else self._beside_body)
        super().data_received(data)
        if self._beside_body > MAX_BESIDE_BODY and not self._is_between_requests and not self.transport.is_closing():
            _log.warning("A request had too long a head.")
            self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request and its deadline. If the chunk that is being parsed has bytes of an earlier request, too,
        none of the chunk's bytes count for this one.
        """
        if not self._is_first_of_chunk:  # where it begins in the chunk is not known
            self._beside_body = 0
        self._is_first_of_chunk = self._is_between_requests = False
        self._set_deadline()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        head_has_come = self.cycle is not None and self.cycle.scope is self.scope
        if not head_has_come:  # else it is a trailer, after the body: nothing here reads one
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._beside_body -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_between_requests = True
        self._cancel_deadline()
        super().on_message_complete()

    def _set_deadline(self) -> None:
        """Close the connection in REQUEST_DEADLINE_S from now, unless `_cancel_deadline` is called before."""
        self._cancel_deadline()
        self._deadline = self.loop.call_later(REQUEST_DEADLINE_S, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None
