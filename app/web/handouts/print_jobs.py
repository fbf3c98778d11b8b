"""What the handout pages share: options as typed, previews, and large handouts that are made while a person waits."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

from fastapi import Request

from app.handout.content import parts, trial
from app.handout.options import MOST_SHEETS, HandoutError, Options, one_line
from app.handout.sheets import Sheet, plan
from app.handout.typesetting import Press
from app.settings import PROJECT
from app.sheets.exit_tickets import Ticket, load_tickets
from app.sheets.library import Library

SHOWN = 6  # pages of a preview
AT_ONCE = 100  # sheets that a download makes while the browser waits
MOST_JOBS = 8
KEPT_SECONDS = 3600
LOST_SECONDS = 300  # without progress; a part takes seconds
MOST_WAITING = 12  # requests that wait for a compiler at once; other pages need threads too
LOCAL = ("localhost", "127.0.0.1", "::1", "testserver")
_KEY = re.compile(r"[\w-]{24}", re.ASCII)
_HOST = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


@dataclass(frozen=True)
class Wish:
    """The form as typed, which is also the address: every field a text."""

    worksheet: str = "llama-7b"
    model: str = ""
    tokens: str = ""
    decoded: str = ""
    course: str = ""
    date: str = ""
    each: str = "same"
    number: str = "2"
    seed: str = "0"
    layout: str = "half"
    paper: str = "letter"
    back: str = "none"
    key: str = "none"
    large: str = ""
    figures: str = "none"

    @staticmethod
    def read(form: Mapping[str, object]) -> Wish:
        """What a query or form says, and the usual where it says nothing."""
        found = {f.name: form[f.name] for f in fields(Wish) if isinstance(form.get(f.name), str)}
        return Wish(**{name: str(value)[:500] for name, value in found.items()})

    @property
    def query(self) -> str:
        """The same as an address, without what is as usual."""
        usual = Wish()
        changed = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != getattr(usual, f.name)}
        return urlencode({"worksheet": self.worksheet, **changed})

    def options(self, tickets: Mapping[str, Ticket]) -> Options:
        """The handout that is asked for; raises HandoutError about the first field that cannot be used."""
        if self.each not in ("same", "versions"):
            raise HandoutError("Everyone gets the same sheet, or a version of their own: choose one.")
        versions = self.each == "versions"
        number = _whole(self.number, "number of sheets", 1, MOST_SHEETS)
        chosen = {name: getattr(self, name) for name in ("worksheet", "model", "course", "date", "layout", "paper")}
        return Options(
            **chosen,
            tokens=None if versions else _length(self.tokens, "number of tokens"),
            decoder_tokens=None if versions else _length(self.decoded, "number of decoder tokens"),
            copies=1 if versions else number,
            variants=number if versions else 0,
            seed=_whole(self.seed or "0", "seed"),
            same=not versions,
            back=self.back,
            key=self.key,
            large=bool(self.large),
            figures=self.figures,
        ).checked(tickets)


def _length(text: str, what: str) -> int | None:
    return _whole(text, what) if text.strip() else None


def _whole(text: str, what: str, least: int = 0, most: int = 10**9) -> int:
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and len(digits) < 12 and least <= int(digits) <= most:
        return int(digits)
    raise HandoutError(f"The {what} must be a whole number from {least:,} to {most:,}, not “{digits[:30]}”.")


class PrintingBusy(HandoutError):
    """Too many handouts are being made just now; one sentence that says when to try again."""

    def __init__(self) -> None:
        super().__init__("Many handouts are being made just now: try again in a minute.")


@dataclass
class Job:
    """One large handout in the making: how far it is, and in the end the PDF or the sentence about what stopped it.

    `teacher` is the number of the one person who may see it; without, it is for everybody who has its key.
    """

    title: str
    sheets: int
    teacher: int | None = None
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    done: int = 0
    of: int = 1
    problem: str = ""
    pdf: bytes | None = None

    @property
    def percent(self) -> int:
        return 100 * self.done // self.of


class Jobs:
    """A folder of jobs, so that any process on this machine can say how far one is; each is gone after an hour."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, job: Job) -> None:
        """Write down how far it is, and its PDF if that is there; only their owner may read the files."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if job.pdf is not None:
            self._write(f"{job.key}.pdf", job.pdf)
        state = {f.name: getattr(job, f.name) for f in fields(job) if f.name != "pdf"}
        self._write(f"{job.key}.json", json.dumps({**state, "made": job.pdf is not None}).encode())

    def find(self, key: str) -> Job | None:
        """The job of that key, as it was last written down."""
        if not _KEY.fullmatch(key):
            return None
        path = self._folder / f"{key}.json"
        try:
            state, quiet = json.loads(path.read_bytes()), time.time() - path.stat().st_mtime
            pdf = path.with_suffix(".pdf").read_bytes() if state.pop("made") else None
        except FileNotFoundError:
            return None
        job = Job(**state, pdf=pdf)
        if not (job.pdf or job.problem) and quiet > LOST_SECONDS:
            job.problem = "This handout was lost when the server stopped: make it again."
        return job

    def clear(self) -> None:
        """Delete what is older than an hour."""
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process clears too
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()

    def _write(self, name: str, content: bytes) -> None:
        written = self._folder / f"{name}.{secrets.token_hex(4)}.part"
        written.touch(mode=0o600)
        written.write_bytes(content)
        written.replace(self._folder / name)


class Printing:
    """Previews, and jobs with their PDFs, which hold names of students and are deleted within the hour."""

    def __init__(self, data: Path) -> None:
        fonts = data / "fonts"
        self.tickets: Mapping[str, Ticket] = load_tickets(PROJECT / "worksheets")
        self._preview, self._press = Press(fonts), Press(fonts)
        self._jobs, self._making = Jobs(data / "handouts"), 0
        self._jobs.clear()
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(MOST_WAITING)
        self._shown = lru_cache(maxsize=12)(self._set_preview)

    def preview(self, library: Library, options: Options, address: str) -> tuple[bytes, ...]:
        """The first pages as pictures; raises HandoutError and what Library raises."""
        few = replace(options, copies=min(options.copies, 4), variants=min(options.variants, 4))
        return self._shown(_Shelf(library, options.model), few, address)

    def _set_preview(self, shelf: _Shelf, options: Options, address: str) -> tuple[bytes, ...]:
        made = parts(options, plan(shelf.library, options), self.tickets, address)
        pages = list[bytes]()
        with self._turn():
            for part in made:
                if len(pages) < SHOWN:
                    pages += self._preview.pages(part())
        return tuple(pages[:SHOWN])

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(blocking=False):
            raise PrintingBusy
        try:
            yield
        finally:
            self._turns.release()

    def pdf_now(self, library: Library, options: Options, address: str) -> bytes:
        """The whole of a small handout while the browser waits; raises HandoutError and what Library raises."""
        with self._turn():
            return self.pdf(plan(library, options), options, address)

    def pdf(self, sheets: Sequence[Sheet], options: Options, address: str, job: Job | None = None) -> bytes:
        """The whole handout; raises HandoutError."""
        return self._press.pdf(parts(options, sheets, self.tickets, address), partial(self._tell, job) if job else None)

    def _tell(self, job: Job, done: int, of: int) -> None:
        job.done, job.of = done, of
        self._jobs.keep(job)

    def start(self, library: Library, options: Options, names: Sequence[str], address: str) -> Job:
        """Begin a large handout and give back its job; raises HandoutError for letters without a font."""
        title = library.worksheet(options.worksheet).title
        return self.begin(title, options, names, address, partial(plan, library, options, names))

    def begin(
        self,
        title: str,
        options: Options,
        names: Sequence[str],
        address: str,
        plan: Callable[[], Sequence[Sheet]],
        teacher: int | None = None,
    ) -> Job:
        """The same for sheets that are planned elsewhere, and for the eyes of one teacher alone if one is given."""
        self._preview.tagged(partial(trial, names, one_line(options.course)))
        job = Job(title, len(names) or options.variants or options.copies, teacher)
        with self._lock:
            if self._making >= MOST_JOBS:
                raise PrintingBusy
            self._making += 1
        self._jobs.clear()
        self._jobs.keep(job)
        threading.Thread(target=self._work, args=(job, plan, options, address), daemon=True).start()
        return job

    def _work(self, job: Job, plan: Callable[[], Sequence[Sheet]], options: Options, address: str) -> None:
        try:
            job.pdf = self.pdf(plan(), options, address, job)
        except ValueError as error:  # every error of ours is one
            job.problem = str(error)
        except BaseException:
            job.problem = "Something went wrong on our side. Try again."
            raise
        finally:
            with self._lock:
                self._making -= 1
            self._jobs.keep(job)

    def job(self, key: str, teacher: int | None) -> Job | None:
        """The job of that key, if whoever asks may see it: the teacher of this number, or nobody who is signed in."""
        job = self._jobs.find(key)
        return job if job and job.teacher in (None, teacher) else None


@dataclass(frozen=True)
class _Shelf:
    """A library by the one model that may have been added to it, so that a preview can be kept."""

    library: Library
    model: str

    def __hash__(self) -> int:
        return hash(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shelf) and other.model == self.model


def printing_of(request: Request) -> Printing:
    return cast(Printing, request.app.state.printing)


def address_of(request: Request, stated: str) -> str:
    """Where students reach the app: as set, else where this page was asked for, unless that is this machine alone."""
    if stated:
        return stated
    served = f"{request.url.scheme}://{request.url.netloc}"
    return "" if (request.url.hostname or "") in LOCAL or not _HOST.fullmatch(served) else served
