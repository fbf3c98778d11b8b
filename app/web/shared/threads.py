"""Which threads a handler or dependency runs in, so that those who wait for something slow hold no thread of a class.

Without one of these, FastAPI runs a `def` in the 40 threads that all other pages share.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from anyio.to_thread import run_sync
from fastapi import HTTPException

from app.web.shared.services import Services, ServicesDep, ThreadKind


def in_threads(
    kind: ThreadKind, busy: Callable[[], str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]:
    """A decorator, below that of the route: run a plain `def` handler or dependency in the threads of that kind, which
    are limited in number.

    While none of them is free, a call waits for one; with `busy`, it raises a 503 with that sentence instead.

    Example: @router.get("/class/{activity_id:int}") above @in_threads("class") above the handler.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """The function as an `async def` that runs it in a thread of the kind and returns its result; while none is
        free it waits, or raises a 503 with `busy`. Its signature also asks FastAPI for the services, as
        `thread_services`, which the function does not get.
        """
        signature = inspect.signature(function)

        @wraps(function)
        async def run(*, thread_services: Services, **values: Any) -> Any:
            """Call the function with `values` in a thread of the kind, and return its result. While none is free, wait
            for one, or with `busy` raise a 503 at once.
            """
            threads = thread_services.threads[kind]
            if busy and threads.available_tokens < 1:
                raise HTTPException(503, busy())
            return await run_sync(partial(function, **values), limiter=threads)

        services = inspect.Parameter("thread_services", inspect.Parameter.KEYWORD_ONLY, annotation=ServicesDep)
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), services])  # type: ignore[attr-defined]
        return run

    return decorate
