"""Requests to platforms: which addresses are asked at all, and how long an answer may be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from app.lti import outside
from app.lti.outside import MAX_BYTES, OutsideError, ask


@contextmanager
def server(answer: bytes, status: int = 200, location: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server on this machine with one answer, its address, and the headers of the requests it got."""
    got = list[dict[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{running.server_port}", got
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.9", "169.254.169.254", "100.64.0.1", "224.0.0.1", "::1",
     "fd00::1", "fe80::1%1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1",
     "64:ff9b:1::a00:1", "fec0::1", "::10.0.0.1"],
)  # fmt: skip
def test_a_name_with_a_private_address_is_not_asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (each, 443)) for each in ("93.184.215.14", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)
    with pytest.raises(OutsideError, match="private"):
        ask("GET", "https://lms.example.org/keys", allow_private=False)


@pytest.mark.parametrize(
    "url",
    ["http://lms.example.org/", "file:///etc/passwd", "https://", "https://user@lms.example.org/", "https://[::1",
     "https://lms.example.org:99999/", "ftp://lms.example.org/", "", "javascript:alert(1)", "https://no-such.invalid/", "https://a\0b/"],
)  # fmt: skip
def test_only_https_is_asked(url: str) -> None:
    with pytest.raises(OutsideError):
        ask("GET", url, allow_private=False)


def test_an_answer_comes_with_status_and_headers_and_no_redirect_is_followed() -> None:
    with server(b'{"a": 1}') as (url, got):
        answer = ask("GET", f"{url}/x?y=1", allow_private=True)
        assert (answer.status, answer.json()) == (200, {"a": 1})
        assert got[0]["host"] == url.removeprefix("http://")
        assert got[0]["user-agent"].startswith("attention-shapes/")
        with server(b"", 302, url) as (moved, _got):
            assert ask("GET", moved, allow_private=True).status == 302
        assert len(got) == 1
    with server(b"[" * 100_000) as (url, _got), pytest.raises(OutsideError):
        ask("GET", url, allow_private=True).json()


def test_too_much_is_not_read() -> None:
    with server(b"x" * (MAX_BYTES + 1)) as (url, _got), pytest.raises(OutsideError):
        ask("GET", url, allow_private=True)


def test_a_slow_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OutsideError):
        ask("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/", allow_private=True)
