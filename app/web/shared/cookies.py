"""The cookies: who works in this browser, which teacher is signed in or was before, and the record of practice."""

from __future__ import annotations

from fastapi import Request, Response

VISITOR_COOKIE = "attention_shapes"
TEACHER_COOKIE = "attention_shapes_teacher"
KNOWN_COOKIE = "attention_shapes_known"
PRACTICE_COOKIE = "attention_shapes_practice"

YEAR_S = 365 * 24 * 3600


def set_private_cookie(request: Request, response: Response, name: str, value: str, max_age_s: int = YEAR_S) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send along; over TLS it is sent over TLS alone."""
    secure = request.url.scheme == "https"
    response.set_cookie(name, value, max_age=max_age_s, httponly=True, samesite="lax", secure=secure)
