"""Print handouts: previews and small PDFs at once, large ones as jobs whose progress any process can read."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.translation import gettext as _

from .document import font_check_document, handout_documents
from .options import HandoutError, HandoutOptions, printable_line
from .sheet_plan import HandoutSheet, plan_sheets
from .typst_renderer import TypstRenderer

PREVIEW_PAGES = 6
PREVIEW_SHEETS = 4
CACHED_PREVIEWS = 12
MAX_DOWNLOAD_SHEETS = 100  # that are typeset while the browser waits
MAX_PRINT_JOBS = 8  # that run at the same time in this process
PRINT_JOB_TTL_S = 3600  # a PDF holds names of students, so it is deleted within the hour
ABANDONED_AFTER_S = 300  # without progress; one document takes seconds
MAX_WAITING_REQUESTS = 12  # for a compiler; the others of the thread pool stay free for other pages
_JOB_KEY = re.compile(r"[\w-]{24}", re.ASCII)

MakeSheets = Callable[[], Sequence[HandoutSheet]]


class PrinterBusyError(HandoutError):
    """Too many handouts are being made at the moment; one sentence that says when to try again."""

    def __init__(self) -> None:
        super().__init__(_("The server is creating many handouts right now: try again in a minute."))


@dataclass
class PrintJob:
    """One large handout while it is made, and after: ready for download, or with the sentence about what stopped it.

    `teacher_id` is the one teacher who may see it; with None everybody who has the key may. `back` is the address of
    the page it was started from, "" for the page of handouts.
    """

    title: str
    sheets: int
    teacher_id: int | None = None
    back: str = ""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    documents_done: int = 0
    documents: int = 1
    problem: str = ""
    is_ready: bool = False

    @property
    def percent(self) -> int:
        """How much of it is typeset, from 0 to 100, rounded down."""
        return 100 * self.documents_done // self.documents


class PrintJobFolder:
    """Print jobs as files, so that every process on this machine finds them. Only the files' owner may read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, job: PrintJob) -> None:
        """Write down the state of a job, in place of what was written before."""
        self._write_file(f"{job.key}.json", json.dumps(asdict(job)).encode())

    def save_pdf(self, job: PrintJob, pdf: bytes) -> None:
        """Keep the PDF of a job, and mark the job as ready."""
        self._write_file(f"{job.key}.pdf", pdf)
        job.is_ready = True
        self.save(job)

    def find(self, key: str) -> PrintJob | None:
        """Return the job as it was last saved; None for an unknown or malformed key or a job of another app version.

        A job that is neither ready nor failed and was not saved for ABANDONED_AFTER_S gets a problem in what is
        returned, not in its file: its process is gone.
        """
        if not _JOB_KEY.fullmatch(key):
            return None
        path = self._folder / f"{key}.json"
        try:
            job, quiet_s = PrintJob(**json.loads(path.read_bytes())), time.time() - path.stat().st_mtime
        except (FileNotFoundError, TypeError):  # a TypeError is for a job of another version of the app
            return None
        if not (job.is_ready or job.problem) and quiet_s > ABANDONED_AFTER_S:
            job.problem = _("This handout was lost when the server stopped: create it again.")
        return job

    def read_pdf(self, job: PrintJob) -> bytes | None:
        """Return the PDF of a job; None while `job` is not ready, and once the file is deleted."""
        try:
            return (self._folder / f"{job.key}.pdf").read_bytes() if job.is_ready else None
        except FileNotFoundError:
            return None

    def delete_expired(self) -> None:
        """Delete every file in the folder, job or PDF, that was not written to for PRINT_JOB_TTL_S."""
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process deletes too
                if time.time() - path.stat().st_mtime > PRINT_JOB_TTL_S:
                    path.unlink()

    def _write_file(self, name: str, content: bytes) -> None:
        """Write or replace a file as a whole, so that no other process reads half of it; only its owner may read it."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = self._folder / f"{name}.{secrets.token_hex(4)}.part"
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(content)
        unfinished.replace(self._folder / name)


class HandoutPrinter:
    """Makes previews, small PDFs and print jobs. `data_dir` holds the operator's fonts and the files of the jobs."""

    def __init__(self, data_dir: Path, tickets: Mapping[str, Ticket]) -> None:
        """Delete expired jobs of earlier processes; `tickets` are the exit tickets for the backs, by key."""
        fonts = data_dir / "fonts"
        self._tickets = tickets
        self._preview_renderer, self._renderer = TypstRenderer(fonts), TypstRenderer(fonts)
        self._folder = PrintJobFolder(data_dir / "handouts")
        self._folder.delete_expired()
        self._running_jobs, self._lock = 0, threading.Lock()
        self._waiting_slots = threading.BoundedSemaphore(MAX_WAITING_REQUESTS)
        self._cached_preview = lru_cache(CACHED_PREVIEWS)(self._render_preview)

    def preview(self, library: Library, options: HandoutOptions, base_url: str) -> tuple[bytes, ...]:
        """Return the first PREVIEW_PAGES pages of at most PREVIEW_SHEETS sheets without names, as SVG.

        The last CACHED_PREVIEWS previews are kept. Raises HandoutError, PrinterBusyError and what Library raises.
        """
        few_sheets = replace(options, sheets=min(options.sheets, PREVIEW_SHEETS))
        return self._cached_preview(_PreviewCacheKey(library, options.model), few_sheets, base_url)

    def render_small(self, library: Library, options: HandoutOptions, base_url: str) -> bytes:
        """Return the PDF of a handout without names, made while the browser waits.

        Raises HandoutError for more than MAX_DOWNLOAD_SHEETS, PrinterBusyError, and what Library raises.
        """
        if options.sheets > MAX_DOWNLOAD_SHEETS:
            problem = _("A direct download has at most {most} sheets: press “Create” on the handout’s page instead.")
            raise HandoutError(problem.format(most=MAX_DOWNLOAD_SHEETS))
        with self._waiting_slot():
            documents = handout_documents(options, plan_sheets(library, options), self._tickets, base_url)
            return self._renderer.render_handout(documents)

    def start_job(
        self,
        title: str,
        options: HandoutOptions,
        names: Sequence[str],
        base_url: str,
        make_sheets: MakeSheets,
        teacher_id: int | None = None,
        back: str = "",
    ) -> PrintJob:
        """Check that fonts have all letters, start a print job in a thread, and return it without waiting for it.

        `make_sheets` is called in that thread. `title`, `teacher_id` and `back` are those of PrintJob. Expired jobs are
        deleted. `names` are those that the sheets will carry. Raises HandoutError for a name or course with letters
        that no font has, PrinterBusyError beyond MAX_PRINT_JOBS.
        """
        font_check = partial(font_check_document, names, printable_line(options.course))
        self._preview_renderer.render_pdf(font_check)
        job = PrintJob(title, len(names) or options.sheets, teacher_id, back)
        with self._lock:
            if self._running_jobs >= MAX_PRINT_JOBS:
                raise PrinterBusyError
            self._running_jobs += 1
        self._folder.delete_expired()
        self._folder.save(job)
        threading.Thread(target=self._run_job, args=(job, options, base_url, make_sheets), daemon=True).start()
        return job

    def find_job(self, key: str, teacher_id: int | None) -> PrintJob | None:
        """Return a job that belongs to nobody or to this teacher; None for an unknown key or another teacher's job.

        `teacher_id` is None for a visitor.
        """
        job = self._folder.find(key)
        return job if job and job.teacher_id in (None, teacher_id) else None

    def read_pdf(self, job: PrintJob) -> bytes | None:
        """Return the PDF of a job, None if there is none yet or none any more."""
        return self._folder.read_pdf(job)

    def _render_preview(self, key: _PreviewCacheKey, options: HandoutOptions, base_url: str) -> tuple[bytes, ...]:
        """Typeset documents until there are PREVIEW_PAGES pages, and return no more; SVG, one picture a page.

        Raises PrinterBusyError where too many requests wait.
        """
        documents = handout_documents(options, plan_sheets(key.library, options), self._tickets, base_url)
        pages = list[bytes]()
        with self._waiting_slot():
            for document in documents:
                if len(pages) < PREVIEW_PAGES:
                    pages += self._preview_renderer.render_svg_pages(document())
        return tuple(pages[:PREVIEW_PAGES])

    @contextmanager
    def _waiting_slot(self) -> Iterator[None]:
        """Hold one of MAX_WAITING_REQUESTS places for this `with`; raises PrinterBusyError at once if all are taken."""
        if not self._waiting_slots.acquire(blocking=False):
            raise PrinterBusyError
        try:
            yield
        finally:
            self._waiting_slots.release()

    def _run_job(self, job: PrintJob, options: HandoutOptions, base_url: str, make_sheets: MakeSheets) -> None:
        """Make the PDF of a job, saving the job after each document, and count the job as no longer running.

        A ValueError, as all errors of ours are, becomes the job's problem. Any other is raised again and leaves a
        general sentence.
        """

        def save_progress(done: int, total: int) -> None:
            """Save the job after each document."""
            job.documents_done, job.documents = done, total
            self._folder.save(job)

        try:
            documents = handout_documents(options, make_sheets(), self._tickets, base_url)
            self._folder.save_pdf(job, self._renderer.render_handout(documents, save_progress))
        except ValueError as error:  # every error of ours is one
            job.problem = str(error)
            self._folder.save(job)
        except BaseException:
            job.problem = _("Something went wrong on the server. Try again.")
            self._folder.save(job)
            raise
        finally:
            with self._lock:
                self._running_jobs -= 1


@dataclass(frozen=True)
class _PreviewCacheKey:
    """The library of a preview. Two are equal for one model, the only part in which libraries of requests differ.

    A library is the app's own, or that with one imported model, whose key is a hash of its config.
    """

    library: Library
    model: str

    def __hash__(self) -> int:
        return hash(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PreviewCacheKey) and other.model == self.model
