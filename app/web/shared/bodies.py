"""Middleware that limits request bodies, each one and all that a process holds at a time.

Visitors share their limit by network, so that one can’t keep others from sending, and leave a part of it to teachers
and students.
"""

from __future__ import annotations

from dataclasses import dataclass

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.machine.work_queue import Client, Places, QueueFullError
from app.store.limits import tolerated_failure
from app.translation import gettext as _
from app.web.shared.permissions import practice_closed, queue_client
from app.web.shared.request_guard import MAX_FORM, body_limit
from app.web.shared.services import services_of
from app.web.shared.urls import client_network

# Bytes of bodies over MAX_FORM in one process. Shorter ones, such as most saves, are limited by the number of
# connections.
MAX_BODIES, BODIES_OF_MEMBERS, BODIES_OF_NETWORK = 64_000_000, 16_000_000, 16_000_000


@dataclass(eq=False)
class _LargeBody:
    """A body that has exceeded MAX_FORM bytes."""

    client: Client
    size: int = 0  # bytes that count for the client
    coming: CancelScope | None = None  # while more of it is awaited

    async def next(self, receive: Receive) -> Message:
        """Await more; raises HTTPException if another client needs the room meanwhile."""
        message: Message | None = None
        with CancelScope() as self.coming:
            message = await receive()
        self.coming = None
        if message is None:
            raise _too_much()
        return message


class BodyLimits:
    """ASGI middleware: reading a body raises HTTPException, 413 for one over its path’s `body_limit`, 503 for lack of
    room.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._room = Places(MAX_BODIES, reserved=BODIES_OF_MEMBERS, of_visitor=BODIES_OF_NETWORK)
        self._bodies = set[_LargeBody]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, most = Request(scope), body_limit(scope["path"])
        length = request.headers.get("content-length", "")
        is_announced_too_long = length.isdigit() and (len(length) > len(str(most)) or int(length) > most)
        received, body = 0, None

        async def receive_counted() -> Message:
            nonlocal received, body
            if is_announced_too_long:
                raise _too_long(most)
            message = await (body.next(receive) if body else receive())
            received += len(message.get("body", b""))
            if received > most:
                raise _too_long(most)
            if received > MAX_FORM:
                if body is None:
                    body = _LargeBody(await _sender(request))
                    self._bodies.add(body)
                self._make_room(body, received)
            return message

        try:
            await self.app(scope, receive_counted, send)
        finally:
            if body:
                self._bodies.discard(body)
                self._room.give_back(body.client, body.size)

    def _make_room(self, body: _LargeBody, size: int) -> None:
        while True:
            try:
                self._room.take(body.client, size - body.size)
            except QueueFullError as full:
                held = self._room.held
                coming = [each for each in self._bodies if each is body or (each.coming and each.size)]
                largest = max(coming, key=lambda each: (not each.client.is_member, held[each.client], each.size))
                if full.is_own or largest is body or largest.coming is None:
                    raise _too_much() from None
                largest.coming.cancel()
                self._room.give_back(largest.client, largest.size)
                largest.size = 0
            else:
                body.size = size
                return


async def _sender(request: Request) -> Client:
    services = services_of(request)
    client = Client(client_network(request), is_member=False)
    with tolerated_failure():
        client = await run_sync(queue_client, request, services, limiter=services.threads["class"])
    if not (client.is_member or services.settings.practice):
        raise practice_closed()
    return client


def _too_long(most: int) -> HTTPException:
    sentence = _("This request may have at most {most:,} bytes: send less at once.").format(most=most)
    return HTTPException(413, sentence, {"Connection": "close"})  # more may be on its way


def _too_much() -> HTTPException:
    sentence = _("Too much is being sent at once: try again in a moment.")
    return HTTPException(503, sentence, {"Connection": "close"})
