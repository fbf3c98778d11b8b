"""The config.json of a model on the Hugging Face Hub, fetched by its name through huggingface_hub and kept in a cache.

Nothing is sent along but the name: no token, so that what a server's owner may read is not shown to its visitors.
HF_ENDPOINT names another hub. The library is imported when a model is first fetched.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from app.models.architecture import MAX_CONFIG_BYTES

log = logging.getLogger("attention_shapes")

FILE = "config.json"
DEFAULT_ENDPOINT = "https://huggingface.co"
ANSWER_SECONDS = 5  # until the hub answers at all
WHOLE_SECONDS = 20  # until the file is there
AT_ONCE = 4

_NAME = re.compile(r"(?!.*(?:--|\.\.))[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_turns = threading.BoundedSemaphore(AT_ONCE)

# What can go wrong: the HTTP status that fits, and the sentence to show.
PROBLEMS: Mapping[str, tuple[int, str]] = {
    "off": (403, "Fetching from the Hub is switched off here: take the model’s own config.json instead."),
    "name": (422, "“{name}” is no name on the Hub: write the organisation and the model, such as org/name."),
    "missing": (404, "There is no model “{name}” on the Hub, or it is private: check the name."),
    "gated": (403, "“{name}” is gated: sign in at the Hub, download its config.json there, and import that file."),
    "no-config": (404, "“{name}” has no config.json on the Hub, so there are no sizes to read."),
    "too-large": (422, f"The config.json of “{{name}}” is longer than {MAX_CONFIG_BYTES:,} bytes, so it was not read."),
    "not-json": (422, "The config.json of “{name}” is not JSON, so it could not be read."),
    "unreachable": (503, "The Hub at {host} could not be reached: try again in a moment, or import the config.json."),
    "failed": (502, "The Hub at {host} answered with an error ({status}): try again in a moment."),
    "busy": (503, "Many models are being fetched just now: try again in a moment."),
    "no-room": (503, "The config.json of “{name}” could not be kept in the data folder: {reason}."),
}


class HubError(ValueError):
    """A config that did not come; one sentence that says why, and the HTTP status that fits."""

    def __init__(self, problem: str, **words: object) -> None:
        self.problem = problem
        self.status, sentence = PROBLEMS[problem]
        super().__init__(sentence.format(host=host(), **words))


def host() -> str:
    """Where models are fetched from, as people read it: huggingface.co."""
    return _endpoint().partition("://")[2] or _endpoint()


def repository(text: str) -> str | None:
    """The org/name in what was typed, also where it was typed as the address of the model's page; None if none is."""
    name = text.strip()
    for start in (f"{_endpoint()}/", f"{DEFAULT_ENDPOINT}/"):
        if name.startswith(start):
            name = "/".join(name.removeprefix(start).split("/")[:2])
    return name if _NAME.fullmatch(name) else None


def fetch_config(typed: str, cache: Path, *, allowed: bool) -> object:
    """The parsed config.json of a model, from the cache where the hub says that it has not changed; raises HubError."""
    if not allowed:
        raise HubError("off")
    name = repository(typed)
    if name is None:
        raise HubError("name", name=typed.strip()[:60])
    text = _in_time(lambda: _fetch(name, cache))
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HubError("not-json", name=name) from None


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def _in_time(work: Callable[[], bytes]) -> bytes:
    """What the work gives, if it gives it soon: a hub that sends byte by byte holds nobody longer than that."""
    if not _turns.acquire(blocking=False):
        raise HubError("busy")
    answers: SimpleQueue[bytes | Exception] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(work())
        except Exception as error:  # handed to the thread that waits
            answers.put(error)
        finally:
            _turns.release()

    threading.Thread(target=run, daemon=True).start()
    try:
        answer = answers.get(timeout=WHOLE_SECONDS)
    except Empty:
        raise HubError("unreachable") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _fetch(name: str, cache: Path) -> bytes:
    """The file's bytes; where the hub cannot be asked, those fetched before, if any."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    try:
        _check_size(name)
        path = hf_hub_download(
            name,
            FILE,
            cache_dir=cache,
            endpoint=_endpoint(),
            etag_timeout=ANSWER_SECONDS,
            token=False,
            tqdm_class=_bounded(name),
        )
    except Exception as error:  # the library passes on what its HTTP client and the file system raise
        problem = _problem(error, name)
        kept = try_to_load_from_cache(name, FILE, cache_dir=cache)
        if problem.problem not in ("unreachable", "failed") or not isinstance(kept, str):
            raise problem from None
        path = kept
    with open(path, "rb") as file:
        return file.read(MAX_CONFIG_BYTES + 1)


def _check_size(name: str) -> None:
    """Ask the hub about the file first, once and without patience, and refuse one that is too long."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(name, FILE, endpoint=_endpoint())
    found = get_hf_file_metadata(url, token=False, timeout=ANSWER_SECONDS, endpoint=_endpoint())
    if (found.size or 0) > MAX_CONFIG_BYTES:
        raise HubError("too-large", name=name)


def _bounded(name: str) -> type[Any]:
    """A progress bar that shows nothing and stops a file that goes on after its stated length."""
    from tqdm.auto import tqdm  # a dependency of huggingface_hub

    class Bounded(tqdm):  # type: ignore[misc]  # tqdm comes without types
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})
            self.seen = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.seen += int(n or 0)
            if self.seen > MAX_CONFIG_BYTES:
                raise HubError("too-large", name=name)
            return None

    return Bounded


def _problem(error: Exception, name: str) -> HubError:
    """What the library's error means for the person who asked."""
    from huggingface_hub import errors

    if isinstance(error, HubError):
        return error
    if isinstance(error, errors.HFValidationError):
        return HubError("name", name=name)
    if isinstance(error, errors.GatedRepoError):
        return HubError("gated", name=name)
    if isinstance(error, errors.HfHubHTTPError):
        return _refused(error, name)
    log.warning("hub: %s", type(error).__name__)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ConnectionError | TimeoutError):
        return HubError("no-room", name=name, reason=error.strerror)
    return HubError("unreachable")


def _refused(error: Any, name: str) -> HubError:
    """A hub's answer by its status: 401 stands for what is not there as for what is private."""
    from huggingface_hub import errors

    if isinstance(error, errors.EntryNotFoundError):
        return HubError("no-config", name=name)
    status = error.response.status_code
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 404):
        return HubError("missing", name=name)
    return HubError("gated", name=name) if status == 403 else HubError("failed", status=status)
