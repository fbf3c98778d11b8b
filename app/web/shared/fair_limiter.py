"""Limits under which one network's requests wait for one another, and nobody else waits for them."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections import OrderedDict, deque
from contextvars import ContextVar
from dataclasses import dataclass

from anyio import CapacityLimiter
from fastapi import HTTPException, Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.translation import gettext as _
from app.web.shared.urls import client_network

MAX_WAITING_OF_NETWORK = 5_000  # more than have a connection, since sent work is stored even after it has closed
ENTERING = 16  # requests that start in one pass of the event loop


@dataclass
class _Sender:
    """Whose request is being answered.

    `lost` is done once the client is gone; None for a request that is finished anyway.
    """

    network: str = ""
    lost: Future[None] | None = None


_sender: ContextVar[_Sender] = ContextVar("sender", default=_Sender())  # noqa: B039 - never changed outside a request


# A middleware that admits a number of requests at a time isn't enough: a request that waits for its body, for torch or
# for a slow browser would hold a place there without holding a thread.
class FairLimiter(CapacityLimiter):
    """For `run_sync(…, limiter=…)`: at most `most` calls work at a time, and waiting networks take turns."""

    def __new__(cls, most: int) -> FairLimiter:
        return object.__new__(cls)  # CapacityLimiter's own __new__ makes an object of another class

    def __init__(self, most: int) -> None:
        self._most, self.working = most, 0
        self._waiting = OrderedDict[str, deque[Future[None]]]()  # by network, the next one first

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def __aenter__(self) -> None:
        if self.working < self._most:  # then nobody waits
            self.working += 1
            return
        sender = _sender.get()
        turns = self._waiting.setdefault(sender.network, deque())
        if len(turns) >= MAX_WAITING_OF_NETWORK:
            raise HTTPException(503, _("Too much is being sent at once: try again in a moment."))
        turn: Future[None] = get_running_loop().create_future()
        turns.append(turn)

        def give_up(_lost: Future[None]) -> None:
            if not turn.done():
                turn.set_exception(ClientDisconnect())

        if lost := sender.lost:
            lost.add_done_callback(give_up)
        try:
            await turn
        except BaseException:
            if turn in turns:
                turns.remove(turn)
            elif not (turn.cancelled() or turn.exception()):
                self.pass_on()
            raise
        finally:
            if lost:
                lost.remove_done_callback(give_up)

    async def __aexit__(self, *_error: object) -> None:
        self.pass_on()

    def pass_on(self) -> None:
        """Pass the place on to the next network's request."""
        while self._waiting:
            network, turns = self._waiting.popitem(last=False)
            while turns:
                turn = turns.popleft()
                if not turn.done():
                    turn.set_result(None)
                    if turns:
                        self._waiting[network] = turns
                    return
        self.working -= 1


class Entrance:
    """Outermost ASGI middleware: a thousand requests of one network, waiting for threads, delay nobody else's."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self._places = app, FairLimiter(ENTERING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            sender = _Sender(client_network(Request(scope)), scope.get("state", {}).get("lost"))
            _sender.set(sender)
            try:
                await self._places.__aenter__()
            except ClientDisconnect:
                return
            get_running_loop().call_soon(self._places.pass_on)
            if scope["method"] not in ("GET", "HEAD"):  # what a page sends when it is left is stored
                sender.lost = None
        await self.app(scope, receive, send)
