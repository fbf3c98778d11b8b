"""Stylesheets, scripts, fonts and pictures.

Their addresses start with a hash of them all, so that browsers cache them for a year and refetch after any change. The
files refer to one another by relative addresses, which have the same hash.

Example: static_url("css/base.css") == "/static/1f0c9a7be2d4/css/base.css"
"""

from __future__ import annotations

import hashlib
from functools import cache
from mimetypes import guess_type

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.settings import PROJECT

STATIC = PROJECT / "static"
IMMUTABLE = "public, max-age=31536000, immutable"  # a year, without revalidation on reload
REVALIDATE = "no-cache"  # the address of another version: two may serve while one is replaced


@cache
def _contents() -> dict[str, bytes]:
    return {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in STATIC.rglob("*") if path.is_file()}


@cache
def _version() -> str:
    digest = hashlib.sha256()
    for path, content in sorted(_contents().items()):
        digest.update(f"{path} {len(content)} ".encode() + content)
    return digest.hexdigest()[:12]


@cache
def static_url(path: str) -> str:
    """The address of a file under static/; raises KeyError for an unknown file."""
    if path not in _contents():
        raise KeyError(path)
    return f"/static/{_version()}/{path}"


class VersionedStaticFiles(StaticFiles):
    """Serves static/ from memory: reading files would wait for a thread, and pages may hold all of them while a
    database hangs.
    """

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self.config_checked = True  # checking the folder at the first request would wait for a thread as well

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, cacheable if the address has the current version."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405)
        version, _slash, file = path.partition("/")
        if file not in _contents():
            raise HTTPException(404)
        caching = IMMUTABLE if version == _version() else REVALIDATE
        return Response(_contents()[file], media_type=guess_type(file)[0], headers={"Cache-Control": caching})
