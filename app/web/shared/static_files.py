"""Stylesheets, scripts and fonts: cached by browsers for a year, because a changed file has a changed address.
`static_url("css/all.css")` is '/static/css/all.css?v=1f0c9a7be2d4', where v is a hash of the file's content.
Files in vendor/ carry their version in their name instead, so that a stylesheet and a preload link can name a
font alike. Pages load one stylesheet and one script, each served as one file made of the small ones in BUNDLES.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache
from mimetypes import guess_type
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from app.settings import PROJECT

STATIC = PROJECT / "static"
IMMUTABLE = "public, max-age=31536000, immutable"  # a year, and not even asked for again on reload
REVALIDATE = "no-cache"  # kept, but asked for again each time
BUNDLES = {  # what is served as one file, in this order
    "css/all.css": ("page", "sheet", "drawing", "landing", "class"),
    "css/teaching.css": ("models", "handout", "live", "materials"),
    "js/all.js": (  # an ES module, as unsaved.js is
        *("fonts", "unsaved", "save", "focus", "scrolls", "keys", "next_box", "success", "copy", "address", "see"),
        "live",
    ),
}


@cache
def _contents() -> dict[str, bytes]:
    files = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in STATIC.rglob("*") if path.is_file()}
    for bundle, parts in BUNDLES.items():
        folder, kind = bundle.partition("/")[0], bundle.rpartition(".")[2]
        files[bundle] = _without_comments(b"\n".join(files[f"{folder}/{part}.{kind}"] for part in parts))
    return files


def _without_comments(source: bytes) -> bytes:
    lines = re.sub(rb"^\s*(/\*.*?\*/|//[^\n]*)$", b"", source, flags=re.DOTALL | re.MULTILINE).splitlines()
    return b"\n".join(filter(None, map(bytes.strip, lines))) + b"\n"


@cache
def _compressed(path: str) -> bytes:
    return gzip.compress(_contents()[path], 9, mtime=0)


@cache
def content_hash(path: str) -> str:
    """The first 12 hex digits of the SHA-256 of a file under static/."""
    return hashlib.sha256(_contents()[path]).hexdigest()[:12]


@cache
def static_url(path: str) -> str:
    """The address of a file under static/; raises KeyError where there is none."""
    return f"/static/{path}" if path.startswith("vendor/") else f"/static/{path}?v={content_hash(path)}"


class HashedStaticFiles(StaticFiles):
    """Serves static/: immutable where the address holds the present hash, revalidated on every other address. It
    does so even while every thread of the app waits for the database.
    """

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self.config_checked = True  # the folder was read: checking it at the first request would take a thread

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file or bundle with an ETag, gzipped if the browser accepts that and it is shorter."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405)
        if path not in _contents():
            raise HTTPException(404)
        caching = IMMUTABLE if _is_current(path, scope) else REVALIDATE
        headers, content = {"ETag": f'"{content_hash(path)}"', "Cache-Control": caching}, _contents()[path]
        if "gzip" in Headers(scope=scope).get("accept-encoding", "") and len(_compressed(path)) < len(content):
            content = _compressed(path)
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        response = Response(content, media_type=guess_type(path, strict=False)[0], headers=headers)
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response


def _is_current(path: str, scope: Scope) -> bool:
    version = parse_qs(scope["query_string"].decode("latin-1")).get("v", [""])[0]
    return path.startswith("vendor/") or version == content_hash(path)
