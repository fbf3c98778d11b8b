"""Which threads a handler or dependency runs in, so that waiting for something slow holds no thread of a class.

Without one of these, FastAPI runs a `def` in the 40 threads that all other pages share.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from anyio.to_thread import run_sync

from app.web.shared.services import Services, ServicesDep, ThreadKind


def in_threads(kind: ThreadKind) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]:
    """A decorator, below the route's: run a plain `def` handler or dependency in the limited threads of that kind.

    Example: @router.get("/class/{activity_id:int}") above @in_threads("class") above the handler.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        signature = inspect.signature(function)

        @wraps(function)
        async def run(*, thread_services: Services, **values: Any) -> Any:
            return await run_sync(partial(function, **values), limiter=thread_services.threads[kind])

        services = inspect.Parameter("thread_services", inspect.Parameter.KEYWORD_ONLY, annotation=ServicesDep)
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), services])  # type: ignore[attr-defined]
        return run

    return decorate
