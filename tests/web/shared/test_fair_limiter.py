"""A network that sends a thousand requests waits for itself, and a request that nobody waits for is not worked on."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.settings import Settings
from app.web import accounts, join
from app.web.shared import fair_limiter
from app.web.shared.fair_limiter import Entrance, FairLimiter
from app.web.shared.services import Services, ThreadKind
from tests.helpers.running_app import make_app, served

MANY, GONE, PATIENCE_S = 320, 120, 60
PAGES = [("other", "/sign-in", accounts), ("class", "/join", join)]


class Asked:
    """Requests to an app of one handler, which notes whose they are when their turn has come."""

    def __init__(self, most: int) -> None:
        self.begun, self.done = list[str](), list[str]()
        self._limiter, self._app, self.may_end = FairLimiter(most), Entrance(self._answer), asyncio.Event()

    def ask(self, network: str, method: str = "GET", lost: asyncio.Future[None] | None = None) -> asyncio.Task[None]:
        scope = {"type": "http", "method": method, "client": (network, 1), "headers": [], "state": {"lost": lost}}
        return asyncio.ensure_future(self._app(scope, self._nothing, self._nothing))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        network = scope["client"][0]
        self.begun.append(network)
        async with self._limiter:
            await self.may_end.wait()
            await asyncio.sleep(0)
            self.done.append(network)

    async def _nothing(self, *_: Any) -> Any:
        raise AssertionError


def run(test: Callable[[Asked], Awaitable[None]], most: int = 1) -> Asked:
    """What was asked once `test` has asked it and all of it has ended."""

    async def ask() -> Asked:
        asked = Asked(most)
        await test(asked)
        asked.may_end.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        assert (asked._limiter.working, asked._limiter.waiting) == (0, 0)
        return asked

    with ThreadPoolExecutor(1) as thread:  # in ours, a browser of another test may have left a loop running
        return thread.submit(asyncio.run, ask()).result()


async def pause() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


def test_networks_take_turns() -> None:
    async def test(asked: Asked) -> None:
        for network in ("a",) * 9 + ("b",) * 3 + ("c",):
            asked.ask(network)
        await pause()

    assert "".join(run(test).done) == "aabcabab" + "a" * 5


def test_as_many_work_at_a_time_as_may() -> None:
    async def test(asked: Asked) -> None:
        for _ in range(9):
            asked.ask("a")
        await pause()
        assert (asked._limiter.working, asked._limiter.waiting) == (4, 5)

    assert len(run(test, most=4).done) == 9


def test_a_request_enters_after_a_few_of_another_network() -> None:
    async def test(asked: Asked) -> None:
        for network in ["a"] * 1000 + ["b"]:
            asked.ask(network)
        await pause()

    assert run(test).begun.index("b") < 100


def test_a_page_that_nobody_waits_for_is_not_made_but_what_was_sent_is_stored() -> None:
    async def test(asked: Asked) -> None:
        asked.ask("working")
        await pause()
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asked.ask("page", "GET", lost)
        asked.ask("save", "POST", lost)
        await pause()
        lost.set_result(None)

    assert run(test).done == ["working", "save"]


def test_a_request_that_is_given_up_when_its_turn_has_come_passes_it_on() -> None:
    async def test(asked: Asked) -> None:
        asked.ask("a")
        second = asked.ask("b")
        asked.ask("c")
        await pause()
        asked._limiter.pass_on()
        second.cancel()
        asked._limiter.working += 1  # for the turn of the first, which was taken from it
        await pause()

    assert run(test).done == ["a", "c"]


def test_requests_of_clients_that_have_gone_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_limiter, "MAX_WAITING_OF_NETWORK", 20)

    async def test(asked: Asked) -> None:
        for _ in range(50):
            asked.ask("a", "POST")
            await pause()
        asked.ask("b")
        await pause()

    done = run(test).done
    assert (done.count("a"), done.count("b")) == (21, 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[uvicorn.Server, Services]]:
    app = make_app(Settings(data_dir=tmp_path))
    with served(app, lifespan="on") as server:
        yield server, app.state.services


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(("kind", "path", "module"), PAGES)
def test_another_network_waits_neither_for_hundreds_of_requests_nor_for_those_given_up(
    server: tuple[uvicorn.Server, Services],
    monkeypatch: pytest.MonkeyPatch,
    kind: ThreadKind,
    path: str,
    module: Any,
) -> None:
    address, threads = server[0].servers[0].sockets[0].getsockname(), server[1].threads[kind]
    render, may_end, made = module.render, threading.Semaphore(0), list[str]()

    def wait_and_render(*arguments: Any, **names: Any) -> Any:
        assert may_end.acquire(timeout=PATIENCE_S)
        made.append(path)
        return render(*arguments, **names)

    monkeypatch.setattr(module, "render", wait_and_render)
    most = threads._most
    with ExitStack() as held:
        flood = [socket.create_connection(address, PATIENCE_S, ("127.0.0.2", 0)) for _ in range(MANY)]
        for each in flood:
            held.enter_context(each)
            each.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_until(lambda: threads.waiting == MANY - most)
        for each in flood[-GONE:]:
            each.close()
        wait_until(lambda: threads.waiting == MANY - most - GONE)
        with closing(http.client.HTTPConnection(address[0], address[1], timeout=PATIENCE_S)) as asking:
            asking.request("GET", path)
            wait_until(lambda: threads.waiting == MANY - most - GONE + 1)
            may_end.release(4 * most)  # fewer than there are of the flood
            assert asking.getresponse().status == 200
        may_end.release(MANY)
        for each in flood[:-GONE]:
            assert each.recv(12) == b"HTTP/1.1 200"
    assert len(made) == MANY - GONE + 1
