"""The cookies: who works in this browser, which teacher is or was signed in, and the record of practice."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import unquote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.types import Scope

VISITOR_COOKIE = "attention_shapes"
TEACHER_COOKIE = "attention_shapes_teacher"
TEACHER_NAME_COOKIE = "attention_shapes_teacher_name"  # quoted; only for the header
KNOWN_COOKIE = "attention_shapes_known"
DEMONSTRATION_COOKIE = "attention_shapes_demonstration"  # this browser is looking at the public demonstration
PRACTICE_COOKIE = "attention_shapes_practice"
CLASS_COOKIE = "attention_shapes_class"  # this browser has joined a class; only for the header
SECRET_COOKIE = "attention_shapes_secret"  # noqa: S105 - its name

SHOWN_FOR_S = 600
YEAR_S = 365 * 24 * 3600


def set_private_cookie(
    request: Request, response: Response, name: str, value: str, max_age_s: int = YEAR_S, path: str = "/"
) -> None:
    """Set a cookie that scripts can't read and other sites can't send; on TLS pages it is only sent over TLS."""
    secure = request.url.scheme == "https"
    response.set_cookie(name, value, max_age=max_age_s, path=path, httponly=True, samesite="lax", secure=secure)


def redirect_with_secret(request: Request, address: str, secret: str, shown_below: str) -> Response:
    """Redirect (303) to a page that shows a secret, such as a resume code; the server keeps only its hash."""
    response = RedirectResponse(address, 303)
    set_private_cookie(request, response, SECRET_COOKIE, secret, SHOWN_FOR_S, shown_below)
    return response


# The parts of the site, with the first segments of their addresses.
_PARTS = {
    "learn": ("practice", "sheets", "sheet", "v", "runs"),
    "see": ("see", "heads"),
    "models": ("models",),
    "handouts": ("handout", "marking"),
    "join": ("join", "resume"),
    "class": ("mine", "class"),
    "worksheets": ("worksheets", "tickets"),
    "courses": ("courses", "activities", "machines", "platforms", "password"),
    "teach": ("teach", "sign-in", "forgotten-password", "links"),
}
# The first segments of the addresses in the public demonstration.
_DEMONSTRATED = {"courses", "activities", "worksheets", "tickets"}


def is_in_demonstration(request: Request) -> bool:
    """Whether this browser is looking at the public demonstration."""
    cookies = request.cookies
    if DEMONSTRATION_COOKIE not in cookies or TEACHER_COOKIE in cookies:
        return False
    return bool(request.app.state.services.settings.practice)


def asks_for_demonstration(request: Request) -> bool:
    """Whether this request is for a demonstration page, from a browser in the demonstration."""
    return request.url.path.split("/")[1] in _DEMONSTRATED and is_in_demonstration(request)


@dataclass(frozen=True)
class PageRequest:
    """The request for a page, as far as the page's header needs it: only address and cookies, without a query.

    The cookies may be outdated; permissions.py decides what somebody may see.
    """

    path: str = "/"
    is_teacher: bool = False
    is_student: bool = False
    may_practise: bool = True
    is_in_demonstration: bool = False  # and so sees a teacher's header
    is_arriving: bool = False  # from another site or a typed address, so the typefaces may not be cached
    teacher_name: str = ""

    @property
    def part(self) -> str:
        """The page's part of the site: 'learn', 'class', ...; empty for other pages."""
        first = self.path.split("/")[1]
        return next((part for part, segments in _PARTS.items() if first in segments), "")

    @property
    def is_in_class(self) -> bool:
        """Whether it is a student's page of a class, with no way to handouts, models or practice."""
        return self.part == "class" and self.is_student and not self.is_teacher

    @property
    def is_teaching(self) -> bool:
        """Whether a teacher works on it; otherwise it has the pages of learners."""
        return self.is_teacher and self.part not in ("learn", "see", "models")


_scope: ContextVar[Scope | None] = ContextVar("scope", default=None)


def note_request(scope: Scope) -> None:
    """Note the request about to be answered, for `current_page_request`."""
    _scope.set(scope)


def current_page_request() -> PageRequest:
    """The request for the page being rendered."""
    scope = _scope.get()
    if scope is None:
        return PageRequest()
    request = Request(scope)
    demonstration = is_in_demonstration(request)
    is_teacher = TEACHER_COOKIE in request.cookies or demonstration
    open_to_all = bool(request.app.state.services.settings.practice)
    is_arriving = request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
    return PageRequest(
        request.url.path,
        is_teacher,
        is_student=CLASS_COOKIE in request.cookies,
        may_practise=open_to_all or is_teacher,
        is_in_demonstration=demonstration,
        is_arriving=is_arriving,
        teacher_name=unquote(request.cookies.get(TEACHER_NAME_COOKIE, "")),
    )
