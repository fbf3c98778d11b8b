"""Fetch a model's config.json from the Hugging Face Hub by the model's name.

Only the name leaves this machine. No token is sent, so visitors can't read what only the operator may. HF_ENDPOINT
names another hub, such as a mirror. Files are cached with their ETag: an unchanged file isn't downloaded again, and the
copy is used while the hub is down.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.machine.work_queue import THE_APP, Client, Places, QueueFullError
from app.models.read_config import MAX_CONFIG_BYTES
from app.refusal import Refusal
from app.translation import N_
from app.translation import gettext as _

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("attention_shapes")

DEFAULT_ENDPOINT = "https://huggingface.co"
# Domains that the Hub may redirect to for large files, besides its own address.
HUB_DOMAINS = ("huggingface.co", "hf.co")
ANSWER_TIMEOUT_S = 5  # for connecting, and for each further piece of the answer
FETCH_TIMEOUT_S = 20  # for the whole file, so that a hub sending byte by byte holds nobody longer
MAX_FETCHES = 4  # at the same time; visitors leave one of them to members, and one network has two
MAX_REDIRECTS = 5
COPY_RETENTION_S = 42 * 24 * 3600  # as long as an imported model that nobody opens
MAX_COPIES_BYTES = 20_000_000  # for all copies; each has at most a megabyte, most a few kilobytes

# The Hub's rules: no part begins or ends with a dot or a hyphen, and a model's name doesn't end with .git.
_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}\w)?"
_REPOSITORY = re.compile(rf"(?!.*(?:--|\.\.|\.git$)){_PART}/{_PART}", re.ASCII)
_fetches = Places(MAX_FETCHES, reserved=1, of_visitor=2)

# What can go wrong: the HTTP status, and the sentence to show.
PROBLEMS: Mapping[str, tuple[int, str]] = {
    "off": (403, N_("Fetching from the Hub is switched off on this server. Import the model’s config.json instead.")),
    "name": (422, N_("“{name}” is not a name on the Hub. Enter organisation and model, such as org/name.")),
    "missing": (404, N_("There is no model “{name}” on the Hub, or it is private. Check the name.")),
    "gated": (403, N_("“{name}” is gated. Sign in to the Hub, download its config.json and import that file.")),
    "no-config": (404, N_("“{name}” has no config.json on the Hub, so its sizes can’t be read.")),
    "too-large": (422, N_("The config.json of “{name}” is larger than {limit:,} bytes, so it was not read.")),
    "not-json": (422, N_("The config.json of “{name}” is not valid JSON.")),
    "unreachable": (503, N_("Could not reach the Hub at {host}. Try again in a moment, or import the config.json.")),
    "failed": (502, N_("The Hub at {host} returned an error ({status}). Try again in a moment.")),
    "busy": (503, N_("Many models are being fetched right now. Try again in a moment.")),
    "no-room": (503, N_("Could not save the config.json of “{name}” in the data folder: {reason}.")),
}


class HubError(Refusal):
    """A config that couldn't be fetched: the reason as a sentence and as a key of PROBLEMS, and an HTTP status."""

    def __init__(self, problem: str, **values: object) -> None:
        self.problem = problem
        self.status, sentence = PROBLEMS[problem]
        super().__init__(_(sentence).format(host=hub_host(), limit=MAX_CONFIG_BYTES, **values))


def hub_host() -> str:
    """The host that models are fetched from, without its scheme: "huggingface.co"."""
    return _endpoint().partition("://")[2] or _endpoint()


def repository_name(text: str) -> str | None:
    """The org/name in a name or URL; None if there isn't one.

    Example:
        repository_name("https://huggingface.co/org/name/tree/main")  # "org/name"
    """
    name = text.strip()
    for start in (f"{_endpoint()}/", f"{DEFAULT_ENDPOINT}/"):
        if name.startswith(start):
            name = "/".join(re.split("[?#]", name.removeprefix(start))[0].split("/")[:2])
    return name if _REPOSITORY.fullmatch(name) and not name.startswith(("datasets/", "spaces/")) else None


def fetch_config(name_or_url: str, cache_dir: Path, *, allowed: bool, client: Client = THE_APP) -> object:
    """Return a model's parsed config.json from the Hub."""
    if not allowed:
        raise HubError("off")
    name = repository_name(name_or_url)
    if name is None:
        raise HubError("name", name=name_or_url.strip()[:60])
    try:
        with _fetches.taken(client):
            text = _fetch_or_cached(name, cache_dir / f"{name.replace('/', '--')}.config")
    except QueueFullError:
        raise HubError("busy") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HubError("not-json", name=name) from None


@dataclass(frozen=True)
class _CachedFile:
    """A file as the hub last sent it; on disk, its first line is the ETag, if any."""

    etag: str
    content: bytes

    @staticmethod
    def read(path: Path) -> _CachedFile | None:
        """The cached file at `path`; None if it can't be read."""
        try:
            etag, _, content = path.read_bytes().partition(b"\n")
            return _CachedFile(etag.decode("ascii"), content)
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, path: Path) -> None:
        """Write the file to `path` atomically. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        unfinished.write_bytes(self.etag.encode("ascii", errors="ignore") + b"\n" + self.content)
        unfinished.replace(path)


def delete_old_copies(cache_dir: Path) -> None:
    """Delete copies that nobody has fetched for COPY_RETENTION_S, and the oldest beyond MAX_COPIES_BYTES."""
    copies = list[tuple[float, int, Path]]()
    for path in cache_dir.glob("*"):
        with suppress(OSError):  # another process deletes too
            copies.append((path.stat().st_mtime, path.stat().st_size, path))
    room = MAX_COPIES_BYTES
    for fetched_at, size, path in sorted(copies, reverse=True):
        room -= size
        if room < 0 or time.time() - fetched_at > COPY_RETENTION_S:
            with suppress(OSError):
                path.unlink()


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def _fetch_or_cached(name: str, path: Path) -> bytes:
    import httpx  # not at the top of the file, so that the app and the other commands start without it

    cached = _CachedFile.read(path)
    if cached:
        with suppress(OSError):
            path.touch()
    try:
        fetched = _run_in_thread(asyncio.wait_for(_fetch(name, cached), FETCH_TIMEOUT_S))
    except HubError as error:
        if cached and error.problem == "failed":
            return cached.content
        raise
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # a TimeoutError is an OSError
        log.warning("hub: %s", type(error).__name__)
        if cached:
            return cached.content
        raise HubError("unreachable") from None
    if fetched is not cached:
        try:
            fetched.write(path)
            delete_old_copies(path.parent)
        except OSError as error:
            raise HubError("no-room", name=name, reason=error.strerror) from None
    return fetched.content


def _run_in_thread(fetching: Coroutine[None, None, _CachedFile]) -> _CachedFile:
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(copy_context().run, asyncio.run, fetching).result()


async def _fetch(name: str, cached: _CachedFile | None) -> _CachedFile:
    import httpx

    # Bytes are counted as they arrive, and nothing is decompressed. The hub needn't know which software or version this
    # is.
    headers = {"Accept-Encoding": "identity", "User-Agent": "attention-shapes"}
    if cached and cached.etag:
        headers["If-None-Match"] = cached.etag
    async with httpx.AsyncClient(headers=headers, timeout=ANSWER_TIMEOUT_S) as client:
        url = httpx.URL(f"{_endpoint()}/{name}/resolve/main/config.json")
        for _ in range(MAX_REDIRECTS):
            async with client.stream("GET", url) as response:
                if not response.has_redirect_location:
                    if response.status_code == httpx.codes.NOT_MODIFIED and cached:
                        return cached
                    return _CachedFile(response.headers.get("ETag", ""), await _read_bounded(response, name))
            url = url.join(response.headers["Location"])
            if not _is_hub_url(url):
                break
    raise HubError("failed", status=response.status_code)


def _is_hub_url(url: httpx.URL) -> bool:
    import httpx

    hub = httpx.URL(_endpoint())
    if (url.scheme, url.host, url.port) == (hub.scheme, hub.host, hub.port):
        return True
    return url.scheme == "https" and any(url.host == name or url.host.endswith(f".{name}") for name in HUB_DOMAINS)


async def _read_bounded(response: httpx.Response, name: str) -> bytes:
    if response.status_code != 200:
        raise _refusal_error(response, name)
    stated = response.headers.get("Content-Length", "")
    body = bytearray()
    if not (stated.isdigit() and int(stated) > MAX_CONFIG_BYTES):
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_CONFIG_BYTES:
                break
        else:
            return bytes(body)
    raise HubError("too-large", name=name)


def _refusal_error(response: httpx.Response, name: str) -> HubError:
    status, code = response.status_code, response.headers.get("X-Error-Code", "")
    if code == "EntryNotFound":
        return HubError("no-config", name=name)
    if code == "GatedRepo":
        return HubError("gated", name=name)
    if code == "RepoNotFound" or status in (401, 404):
        return HubError("missing", name=name)
    return HubError("gated", name=name) if status == 403 else HubError("failed", status=status)
