"""Errors become a status and one sentence, on a page or as JSON; nobody is shown a traceback."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from app.logs import REQUEST_ID
from app.metrics import count_failure
from app.refusal import Refusal
from app.store.limits import Failure, failure_of, is_orphan
from app.translation import gettext as _
from app.web.shared.cookies import asks_for_demonstration, is_in_demonstration
from app.web.shared.permissions import NotSignedInError
from app.web.shared.request_guard import HEADERS
from app.web.shared.teacher_session import path_on_this_site
from app.web.shared.templating import is_htmx, render
from app.web.shared.urls import page_above, url_for

log = logging.getLogger("attention_shapes")
LOG_INTERVAL_S = 60
_last_logged = dict[Failure, float]()  # when each kind of database failure was last logged


def register_exception_handlers(app: FastAPI) -> None:
    """Answer every error with its status and one sentence: JSON below /api/, a page everywhere else."""
    app.exception_handler(Refusal)(_refused)
    app.exception_handler(NotSignedInError)(_not_signed_in)
    app.exception_handler(HTTPException)(_http_exception)
    app.exception_handler(RequestValidationError)(_invalid_request)
    app.exception_handler(SQLAlchemyError)(_storage_error)
    app.exception_handler(OSError)(_storage_error)
    app.exception_handler(ClientDisconnect)(_client_disconnected)
    app.exception_handler(Exception)(_unexpected_error)


def _error_response(request: Request, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    sentence = sentence.encode(errors="replace").decode()  # half of a surrogate pair from a JSON escape can't be sent
    if request.url.path.startswith("/api/"):
        return JSONResponse({"detail": sentence}, status, headers)
    is_form = request.method not in ("GET", "HEAD")
    again = str(request.url.replace(scheme="", netloc="")) if status >= 429 and not is_form else ""
    reference = REQUEST_ID.get() if status == 500 else ""
    typed = is_form and not is_htmx(request)
    response = render(
        "shared/error.html",
        status=status,
        sentence=sentence,
        back=_came_from(request),
        again=again,
        typed=typed,
        reference=reference,
    )
    response.headers.update(headers or {})
    return response


def _came_from(request: Request) -> str:
    referer = urlsplit(request.headers.get("referer", ""))
    if referer.netloc != request.headers.get("host") or referer.path == request.url.path:
        return ""
    return path_on_this_site(urlunsplit(("", "", referer.path, referer.query, "")))


async def _refused(request: Request, refusal: Refusal) -> Response:
    headers = {"Retry-After": str(refusal.seconds)} if refusal.seconds else None
    return _error_response(request, refusal.status, str(refusal), headers)


async def _http_exception(request: Request, error: HTTPException) -> Response:
    path = request.url.path
    if error.status_code == 400 and isinstance(error.__cause__, ValueError | RecursionError):  # FastAPI’s parser
        sentence = _(
            "The body of this request can’t be read: send JSON in UTF-8, without numbers of thousands of digits and "
            "without deep nesting."
        )
        return _error_response(request, 422, sentence)
    if error.status_code == 405 and request.method == "GET" and not (is_htmx(request) or path.startswith("/api/")):
        return RedirectResponse(page_above(path), 303)
    sentences = {404: _("There is no page at this address."), 405: _wrong_method(request)}
    plain = isinstance(error.detail, str) and error.detail not in ("Not Found", "Method Not Allowed")
    sentence = error.detail if plain else sentences.get(error.status_code, error.detail)
    return _error_response(request, error.status_code, sentence, dict(error.headers or {}))


def _wrong_method(request: Request) -> str:
    if not request.url.path.startswith("/api/"):
        problem = _("This address doesn’t accept {method} requests: go back, and use the form on the page.")
        return problem.format(method=request.method)
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = sorted({method for route in here for method in route.methods or ()})
    problem = _("This address doesn’t accept {method} requests. It accepts: {methods}.")
    return problem.format(method=request.method, methods=", ".join(methods))


async def _not_signed_in(request: Request, error: Exception) -> Response:
    if is_in_demonstration(request):
        return RedirectResponse(url_for("show_demonstration"), 303)
    if request.method in ("GET", "HEAD") and not is_htmx(request):
        address = urlunsplit(("", "", request.url.path, request.url.query, ""))
        return RedirectResponse(url_for("show_sign_in", next=address), 303)
    sentence = _(
        "You have been signed out, so nothing was changed. Sign in again in another tab, then come back here and "
        "resubmit."
    )
    return _error_response(request, 401, sentence)


async def _invalid_request(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _error_response(request, 422, _("The body of this request is not JSON."))
    # FastAPI leaves a body of another content type as it is.
    if first["loc"] == ("body",) and isinstance(first["input"], bytes):
        return _error_response(request, 422, _("Send the body of this request with content-type: application/json."))
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    return _error_response(request, 422, f"{where or _('The body of this request')} {problem_in_words(first)}.")


def problem_in_words(error: Mapping[str, Any]) -> str:
    """What is wrong with a value that pydantic refuses, to follow the value's name: "must be a whole number"."""
    sentences = {
        "missing": _("is missing"),
        "extra_forbidden": _("is not a field of this request"),
        "int": _("must be a whole number"),
        "float": _("must be a number"),
        "bool": _("must be true or false"),
        "string": _("must be a text"),
        "dict": _("must be an object"),
        "model": _("must be an object"),
        "list": _("must be a list"),
        "greater_than_equal": _("must be at least {ge}"),
        "less_than_equal": _("must be at most {le}"),
        "string_too_long": _("must have at most {max_length} characters"),
        "literal_error": _("must be {expected}"),
        "value_error": "{error}",
    }
    kind = re.sub(r"_(type|parsing|from_float|parsing_size|attributes_type)$", "", error["type"])
    return sentences[kind].format(**error.get("ctx", {})) if kind in sentences else error["msg"]


async def _storage_error(request: Request, error: Exception) -> Response:
    if is_orphan(error):
        return _error_response(request, 404, _("This has been deleted in the meantime, so nothing can be added to it."))
    failure = failure_of(error)
    if failure is None:
        raise error
    is_of_database = isinstance(error, SQLAlchemyError)
    if failure is Failure.READ_ONLY and is_of_database and asks_for_demonstration(request):
        sentence = _(
            "This is the public demonstration, in which nothing can be changed, stored or exported. With an "
            "account of your own, it would be done now."
        )
        return _error_response(request, 403, sentence)
    at = time.monotonic()
    if at - _last_logged.get(failure, -LOG_INTERVAL_S) >= LOG_INTERVAL_S:
        _last_logged[failure] = at
        log.error("%s (%s)", failure.value, type(error).__name__)  # not the error's text, which contains people's data
    count_failure("database")
    if failure in (Failure.FULL, Failure.READ_ONLY):
        sentence = _("The server can’t save anything right now. Keep this page open and tell the server’s operator.")
        return _error_response(request, 503, sentence, {"Retry-After": "30"})
    sentence = _("The database isn’t responding right now. Nothing you typed is lost: try again in a moment.")
    return _error_response(request, 503, sentence, {"Retry-After": "2"})


async def _client_disconnected(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it: the connection ended during a form


async def _unexpected_error(request: Request, error: Exception) -> Response:
    # Starlette answers this outside of all middleware, and uvicorn closes the connection afterwards.
    sentence = _("Something went wrong on the server. Nothing you typed is lost: try again.")
    headers = {**HEADERS, "X-Request-ID": REQUEST_ID.get(), "Connection": "close"}
    return _error_response(request, 500, sentence, headers)
