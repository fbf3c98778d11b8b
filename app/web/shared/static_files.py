"""Stylesheets, scripts and fonts: cached by browsers for a year, because a changed file has a changed address.

`static_url("css/page.css")` is '/static/css/page.css?v=1f0c9a7be2d4', where v is a hash of the file's content. Files in
vendor/ carry their version in their name instead, so that a stylesheet and a preload link can name a font alike.
"""

from __future__ import annotations

import hashlib
from functools import cache
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.settings import PROJECT

STATIC = PROJECT / "static"
IMMUTABLE = "public, max-age=31536000, immutable"  # a year, and not even asked for again on reload
REVALIDATE = "no-cache"  # kept, but asked for again each time


@cache
def content_hash(path: str) -> str:
    """The first 12 hex digits of the SHA-256 of a file under static/, read once in the life of the process."""
    return hashlib.sha256((STATIC / path).read_bytes()).hexdigest()[:12]


@cache
def static_url(path: str) -> str:
    """The address of a file under static/; raises FileNotFoundError where there is none."""
    return f"/static/{path}" if _has_version_in_name(path) else f"/static/{path}?v={content_hash(path)}"


class HashedStaticFiles(StaticFiles):
    """Serves static/: immutable where the address holds the present hash, revalidated on every other address."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, with how long it may be cached; an outdated hash gets the present file, to be revalidated."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = IMMUTABLE if _is_current(path, scope) else REVALIDATE
        return response


def _is_current(path: str, scope: Scope) -> bool:
    """Whether what stands at this address can never change: a file in vendor/, or one asked for by its present hash.

    False without a hash in the query, with an outdated one, and for a file that does not exist.
    """
    if _has_version_in_name(path):
        return True
    version = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
    return bool(version) and (STATIC / path).is_file() and version == content_hash(path)


def _has_version_in_name(path: str) -> bool:
    return path.startswith("vendor/")
