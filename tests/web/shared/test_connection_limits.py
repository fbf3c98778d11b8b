"""A connection that sends an endless head, half a request or nothing is closed, and none of them fills the log."""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.web.shared import connection_limits
from app.web.shared.connection_limits import MAX_BESIDE_BODY, LimitedProtocol, OncePerInterval, listeners

Address = tuple[str, int]


async def count_body(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with the number of bytes that were sent, and of headers."""
    size, more = 0, scope["type"] == "http"
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        spaces = b" " * int(scope["query_string"] or 0)
        await send({"type": "http.response.body", "body": f"{size} {len(scope['headers'])}".encode() + spaces})


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    """Where a server with the limits answers; a request has half a second."""
    monkeypatch.setattr(connection_limits, "REQUEST_DEADLINE_S", 0.5)
    monkeypatch.setattr(connection_limits, "BODY_RATE", 500)
    config = uvicorn.Config(count_body, http=LimitedProtocol, lifespan="off", log_level="warning", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()
        server.should_exit = True
        thread.join()


def answer(address: Address, *pieces: bytes) -> bytes:
    """What comes back until the server closes the connection, for these pieces sent one after the other."""
    with socket.create_connection(address, timeout=120) as connection:
        received = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
            while data := connection.recv(65536):
                received += data
        except ConnectionError:  # it was closed while something was being sent
            pass
        return received


def test_a_request_that_comes_whole_is_answered_on_a_connection_that_stays(address: Address) -> None:
    connection = http.client.HTTPConnection(*address, timeout=120)
    for body in (None, b"x" * 500_000, iter([b"x" * 1000] * 300)):
        connection.request("POST", "/", body, {"X-Long": "h" * 10_000}, encode_chunked=True)
        size, _space, headers = connection.getresponse().read().partition(b" ")
        assert int(size) == (0 if body is None else 500_000 if isinstance(body, bytes) else 300_000)
        assert int(headers) <= 5
    connection.close()
    chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert b"2 2" in answer(address, chunked, b"2\r\nab\r\n0\r\nCookie: late\r\n\r\n")


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\nX-Endless: ",
        b"GET /?",
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Late: ",
    ],
)
def test_an_endless_head_is_refused(address: Address, begin: bytes) -> None:
    more = b"a" * 8_000 if not begin.endswith(b"1.1\r\n") else b"X-Many: a\r\n" * 800
    received = answer(address, begin, *[more] * (MAX_BESIDE_BODY // 8_000 + 2))
    assert received == b"" or received.startswith((b"HTTP/1.1 431", b"HTTP/1.1 200"))
    assert len(received) < 1000


@pytest.mark.parametrize("piece", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"])
def test_half_a_request_is_given_up(address: Address, piece: bytes) -> None:
    before = time.monotonic()
    answer(address, piece)
    assert 0.3 < time.monotonic() - before < 60


def test_a_body_has_longer_the_more_of_it_has_come(address: Address) -> None:
    begin = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n"
    before = time.monotonic()
    assert answer(address, begin, *[b"x" * 250] * 20).count(b"5000 2") == 1
    assert time.monotonic() - before > 0.6
    assert answer(address, begin, *[b"x"] * 40) == b""


def test_a_head_of_many_headers_is_refused(address: Address) -> None:
    assert answer(address, b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 1_000).startswith(b"HTTP/1.1 431")


def test_a_request_before_the_last_answer_ends_the_connection(address: Address) -> None:
    assert answer(address, b"GET / HTTP/1.1\r\n\r\n" * 1_000).count(b"HTTP/1.1 200") <= 1


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
@pytest.mark.parametrize(("most", "seconds", "comes_whole"), [(9_000_000, 1.2, False), (600_000, 0.1, True)])
def test_an_answer_that_nobody_reads_is_given_up(
    address: Address, most: int, seconds: float, comes_whole: bool
) -> None:
    size, data = 0, b"some"
    with socket.socket() as reading, suppress(ConnectionError):
        reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000)
        reading.connect(address)
        reading.sendall(b"GET /?%d HTTP/1.1\r\nConnection: close\r\n\r\n" % most)
        while data:
            time.sleep(seconds)
            data = reading.recv(most // 3, socket.MSG_WAITALL)
            size += len(data)
    assert (size > most) == comes_whole


def test_a_flood_of_malformed_requests_is_one_line_in_the_log(
    address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    connection_limits._log.filters[:] = [OncePerInterval()]
    with caplog.at_level(logging.WARNING, "uvicorn.error"):
        for _ in range(20):
            assert answer(address, b"\x00\x01\x02 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert len(caplog.records) == 1
        connection_limits._log.error("an error")
        connection_limits._log.error("an error")
        assert len(caplog.records) == 3


def test_several_connections_are_accepted_in_a_pass_of_the_loop() -> None:
    uvloop, accepted, many = pytest.importorskip("uvloop"), list[asyncio.Protocol](), 160

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(self)

    async def passes() -> int:
        with ExitStack() as held, socket.create_server(("127.0.0.1", 0), backlog=many) as listening:
            loop, passed = asyncio.get_running_loop(), 0
            servers = [await loop.create_server(Protocol, sock=each, backlog=many) for each in listeners(listening)]
            for _ in range(many):
                held.enter_context(socket.create_connection(listening.getsockname()))
            while len(accepted) < many:
                await asyncio.sleep(0)
                passed += 1
            for server in servers:
                server.close()
            return passed

    with ThreadPoolExecutor(1) as thread:  # in ours, a browser of another test may have left a loop running
        assert thread.submit(uvloop.run, passes()).result() < many / 4
