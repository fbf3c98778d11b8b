"""A browser as far as a server can tell: one kept connection, cookies, forms; small, so that it is no bottleneck."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

PATIENCE = 30  # seconds for one answer


@dataclass(frozen=True)
class Answer:
    """What a server sent back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        packed = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.body) if packed else self.body).decode()


class Browser:
    """One connection to one server, opened when it is needed, and the cookies that came over it."""

    def __init__(self, url: str, cookies: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self.cookies = dict(cookies or {})
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, *, script: bool = False) -> Answer:
        return await self._ask(self._head("GET", path, script) + b"\r\n")

    async def post(self, path: str, form: Mapping[str, str], *, script: bool = False) -> Answer:
        body = urlencode(form).encode()
        kind = f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n\r\n"
        return await self._ask(self._head("POST", path, script) + kind.encode() + body)

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
            self._streams = None

    async def leave(self) -> None:
        """Close the connection, and wait until it is."""
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

    async def _ask(self, request: bytes) -> Answer:
        """Raises OSError where no whole answer comes."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._exchange(request)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError) as error:
            self.close()
            if isinstance(error, asyncio.IncompleteReadError):
                raise ConnectionResetError from None
            raise

    async def _exchange(self, request: bytes) -> Answer:
        head = await self._sent(request)
        assert self._streams is not None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict[str, str]()
        for line in filter(None, lines):
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
            if name.lower() == "set-cookie":
                key, _, kept = value.partition(";")[0].partition("=")
                self.cookies[key] = kept.strip('"')
        body = await self._streams[0].readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(first.split(" ")[1]), headers, body)

    async def _sent(self, request: bytes) -> bytes:
        """The head of the answer. A kept connection that the server has just closed is opened anew, as browsers do."""
        kept = self._streams
        if kept and not kept[0].at_eof():
            try:
                kept[1].write(request)
                return await kept[0].readuntil(b"\r\n\r\n")
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                    raise
        self.close()
        self._streams = reader, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(request)
        return await reader.readuntil(b"\r\n\r\n")
