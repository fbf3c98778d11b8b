"""A small HTTP client that behaves like a browser: one kept connection, cookies, forms.

It is written by hand so that a thousand of them on one core measure the server, not themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

RESPONSE_TIMEOUT_S = 30


@dataclass(frozen=True)
class HttpResponse:
    """What a server sent back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> bytes:
        """The body, unzipped if necessary."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    @property
    def text(self) -> str:
        return self.content.decode()


class HttpClient:
    """One connection to one server, opened by the first request, and its cookies.

    Every request raises OSError (TimeoutError after RESPONSE_TIMEOUT_S) if no complete response comes.
    """

    def __init__(self, url: str, cookies: Mapping[str, str] | None = None, own_address: str = "") -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self.cookies = dict(cookies or {})
        self._own = (own_address, 0) if own_address else None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, *, script: bool = False) -> HttpResponse:
        """Request a path; with `script`, as a page's script does, which gets a fragment instead of a page."""
        return await self._request(self._head("GET", path, script) + b"\r\n")

    async def post(self, path: str, form: Mapping[str, str], *, script: bool = False) -> HttpResponse:
        """Send a form to a path; `script` as for `get`."""
        body = urlencode(form).encode()
        head = f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n\r\n"
        return await self._request(self._head("POST", path, script) + head.encode() + body)

    def close(self) -> None:
        """Close the connection without waiting; the next request opens a new one."""
        if self._streams:
            self._streams[1].close()
            self._streams = None

    async def wait_closed(self) -> None:
        """Close the connection, and wait until it is closed."""
        if self._streams:
            writer = self._streams[1]
            self.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _head(self, method: str, path: str, script: bool) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}", "accept-encoding: gzip"]
        if script:
            lines.append("hx-request: true")
        if self.cookies:
            lines.append("cookie: " + "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        return ("\r\n".join(lines) + "\r\n").encode()

    async def _request(self, request: bytes) -> HttpResponse:
        try:
            async with asyncio.timeout(RESPONSE_TIMEOUT_S):
                return await self._send_and_read(request)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError) as error:
            self.close()
            if isinstance(error, asyncio.IncompleteReadError):
                raise ConnectionResetError from None
            raise

    async def _send_and_read(self, request: bytes) -> HttpResponse:
        head = await self._send_and_read_head(request)
        assert self._streams is not None
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = dict[str, str]()
        for line in filter(None, lines):
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
            if name.lower() == "set-cookie":
                key, _, cookie = value.partition(";")[0].partition("=")
                self.cookies[key] = cookie.strip('"')
        body = await self._streams[0].readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return HttpResponse(int(status_line.split(" ")[1]), headers, body)

    async def _send_and_read_head(self, request: bytes) -> bytes:
        streams = self._streams
        if streams and not streams[0].at_eof():
            try:
                streams[1].write(request)
                return await streams[0].readuntil(b"\r\n\r\n")
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                    raise
        self.close()
        self._streams = reader, writer = await asyncio.open_connection(self._host, self._port, local_addr=self._own)
        writer.write(request)
        return await reader.readuntil(b"\r\n\r\n")
