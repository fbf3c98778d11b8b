"""Log lines: a time, the request's id, and tracebacks that quote nothing of what people typed."""

from __future__ import annotations

import logging
import logging.config
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

# The id of the current request, or "-". Threads of the pool have their request's.
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="-")


def request_thread(work: Callable[..., object], *arguments: object, name: str | None = None) -> threading.Thread:
    """A daemon thread, not started yet, that calls `work(*arguments)` and may outlive its request."""
    return threading.Thread(target=copy_context().run, args=(work, *arguments), name=name, daemon=True)


class LogFormatter(logging.Formatter):
    """One line: time in UTC, level, request id, message; below it the traceback, if any.

    Example: "2026-11-23T09:30:05Z WARNING 5f0c2a9b71d4 slow: POST /class/12/1/check 200 2,310 ms".
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(request_id)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        """A record's line, with the id of this thread's or task's request, or "-"."""
        record.request_id, record.exc_text = REQUEST_ID.get(), None
        record.msg = record.msg.rstrip() if isinstance(record.msg, str) else record.msg
        return super().format(record)

    def formatException(self, ei: Any) -> str:
        """The traceback without the exceptions' messages, which may quote answers and names."""
        return trace_of(ei[1])


def trace_of(error: BaseException) -> str:
    """The traceback of an exception, ending in its class and `_facts` instead of its message."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = f"{trace_of(cause)}\n\nwhich led to\n\n" if cause else ""
    if isinstance(error, BaseExceptionGroup):
        before += "".join(f"{trace_of(each)}\n\nwhich is one of several in\n\n" for each in error.exceptions)
    frames = "".join(traceback.format_tb(error.__traceback__))
    name = f"{type(error).__module__}.{type(error).__qualname__}{_facts(error)}"
    return f"{before}Traceback (most recent call last):\n{frames}{name}"


def _facts(error: BaseException) -> str:
    diagnosis = getattr(error, "diag", None)
    facts = (
        getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None),
        getattr(diagnosis, "constraint_name", None),
        getattr(error, "statement", None),  # with :names or placeholders in place of the values
        getattr(error, "strerror", None),
    )
    known = [str(fact) for fact in facts if fact]
    return f": {'; '.join(known)}" if known else ""


# What the app and its child processes log, and how; library warnings are also logged.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "app.logs.LogFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"level": "WARNING", "handlers": ["stderr"]},
    "loggers": {"attention_shapes": {"level": "INFO"}},
}


def configure_logging() -> None:
    """Log to standard error in this format, in a process that uvicorn doesn't configure."""
    logging.config.dictConfig(LOGGING)
