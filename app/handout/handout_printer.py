"""Print handouts in child processes: previews and small PDFs at once, large ones as jobs in one queue per machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from app.handout.document import font_check_document
from app.handout.options import HandoutError, HandoutOptions, printable_line
from app.handout.print_child import (
    MakeSheets,
    PrintTask,
    check_task,
    pdf_task,
    preview_data,
    preview_task,
    serve_print_tasks,
)
from app.handout.print_jobs import HEARTBEAT_S, PrintJob, PrintJobFolder
from app.handout.sheet_plan import check_version_count, plan_sheets
from app.handout.typst_renderer import missing_letters_note
from app.logs import request_thread
from app.machine.child import START_LIMIT_S, ChildLost, ChildTooLarge, ChildTooSlow, Message, WarmChild
from app.machine.memory import available_memory
from app.machine.turn import MachineTurn
from app.machine.work_queue import THE_APP, Client, QueueFullError, WorkQueue
from app.metrics import timed_job
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.translation import gettext as _

PREVIEW_SHEETS = 4
CACHED_PREVIEWS = 12
MAX_DOWNLOAD_SHEETS = 100  # that are typeset while the browser waits, and that a visitor may have at all
MAX_WAITING_REQUESTS = 12  # for the child; the others of the thread pool stay free for other pages
MAX_VISITOR_REQUESTS = 3  # of these, of one network
FOR_MEMBERS = 4  # of these: visitors leave them to teachers and enrolled students
MAX_REQUEST_WAIT_S, REQUEST_LIMIT_S = 20, 60
MAX_QUEUED_JOBS = 20  # on this machine, with the one that is made
MAX_QUEUED_VISITOR_JOBS = 12  # of these
MAX_VISITOR_JOBS, MAX_TEACHER_JOBS = 3, 6  # of one client, queued
MAX_VISITOR_JOBS_PER_HOUR, MAX_TEACHER_JOBS_PER_HOUR = 30, 120
JOB_LIMIT_S = 900
VISITOR_GONE_AFTER_S, TEACHER_GONE_AFTER_S = 90, 900  # a browser asks a hidden page's questions once a minute
MAX_PRINT_MEMORY = 3_000_000_000  # bytes, of a child at work; 2,000 sheets with names take 800 MB
SHARE_OF_FREE_MEMORY = 0.7  # that it may take where less is free
KEPT_MEMORY = 300_000_000  # bytes, of a child that waits for more work
PRINTER_IDLE_LIMIT_S = 120

log = logging.getLogger("attention_shapes")


class PrinterBusyError(HandoutError):
    """Too many handouts are being made at the moment; one sentence that says when to try again."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or _("The server is creating many handouts right now: try again in a minute."))


@dataclass(frozen=True)
class _Preview:
    """Everything that is printed on the pages of a preview, and who asks for it; equal data gives equal pages."""

    data: str
    client: Client = field(compare=False)


class _JobEndedError(Exception):
    """A job that somebody cancelled, or that nobody waits for; the sentence that its page shows."""


class HandoutPrinter:
    """Makes previews, small PDFs and print jobs. `data_dir` holds the operator's fonts and the files of the jobs.

    One child of this process serves previews and small PDFs; each job has a child of its own. On a machine with several
    workers, one of all these children is at work for previews and one for jobs.
    """

    def __init__(
        self,
        data_dir: Path,
        tickets: Mapping[str, Ticket],
        *,
        request_limit_s: float = REQUEST_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        idle_time_only: bool = True,
    ) -> None:
        """Delete expired jobs of earlier processes; `tickets` are the exit tickets for the backs, by key.

        A preview or small PDF is given up after `request_limit_s`, its child if it is not ready after `start_limit_s`.
        With `idle_time_only`, jobs run when nothing else has to.
        """
        child = partial(WarmChild, serve=partial(serve_print_tasks, data_dir / "fonts"))
        self._tickets = tickets
        self._quick_child = child(
            "printer", idle_limit_s=PRINTER_IDLE_LIMIT_S, start_limit_s=start_limit_s, kept_memory=KEPT_MEMORY
        )
        self._job_child = child(
            "print-job",
            idle_limit_s=0,
            start_limit_s=JOB_LIMIT_S,  # a busy machine leaves it no time
            idle_time_only=idle_time_only,
        )
        self._request_limit_s = request_limit_s
        turns = data_dir / "turns"
        self._quick_turn, self._job_turn = MachineTurn(turns / "previews"), MachineTurn(turns / "print-jobs")
        self._accept_turn = MachineTurn(turns / "accepting-print-jobs")
        self._folder = PrintJobFolder(data_dir / "handouts")
        self.delete_expired()
        self._requests = WorkQueue(MAX_WAITING_REQUESTS, reserved=FOR_MEMBERS, of_visitor=MAX_VISITOR_REQUESTS)
        self._cached_preview = lru_cache(CACHED_PREVIEWS)(self._render_preview)

    def preview(
        self, library: Library, options: HandoutOptions, base_url: str, client: Client = THE_APP
    ) -> tuple[bytes, ...]:
        """The first PREVIEW_PAGES pages of at most PREVIEW_SHEETS sheets without names, as SVG.

        The pages of the last CACHED_PREVIEWS previews are kept, by everything that is printed on them. Raises
        HandoutError, PrinterBusyError and what Library raises.
        """
        check_version_count(library, options)
        few_sheets = replace(options, sheets=min(options.sheets, PREVIEW_SHEETS))
        data = preview_data(library, few_sheets, self._tickets, base_url)
        return self._cached_preview(_Preview(data, client))

    def render_small(self, library: Library, options: HandoutOptions, base_url: str, client: Client = THE_APP) -> bytes:
        """The PDF of a handout without names, made while the browser waits.

        Raises HandoutError for more than MAX_DOWNLOAD_SHEETS, PrinterBusyError, and what Library raises.
        """
        if options.sheets > MAX_DOWNLOAD_SHEETS:
            problem = _("A direct download has at most {most} sheets: press “Create” on the handout’s page instead.")
            raise HandoutError(problem.format(most=MAX_DOWNLOAD_SHEETS))
        check_version_count(library, options)
        task = pdf_task(options, partial(plan_sheets, library, options), self._tickets, base_url, None)
        return bytes(self._ask_while_browser_waits(task, client))

    def start_job(
        self,
        title: str,
        options: HandoutOptions,
        names: Sequence[str],
        base_url: str,
        prepare: Callable[[], MakeSheets],
        teacher_id: int | None = None,
        back: str = "",
        client: Client = THE_APP,
        tickets: Mapping[str, Ticket] | None = None,
    ) -> PrintJob:
        """Queue a print job, with a note about letters that no font has, and return it without waiting for it.

        `prepare` is called in a thread when the job's turn has come, and what it returns in the child. `title`,
        `teacher_id` and `back` are those of PrintJob, whose `client` is that of a visitor. `names` are those that the
        sheets will carry, `tickets` the exit tickets to choose from, if not those of the files.

        Raises HandoutError for more sheets than a visitor may have; PrinterBusyError for more jobs than this
        machine, or this client, may have in the queue, and where the job cannot be stored.
        """
        job = PrintJob(title, len(names) or options.sheets, teacher_id, back, client.key if teacher_id is None else "")
        if teacher_id is None and job.sheets > MAX_DOWNLOAD_SHEETS:
            problem = _("More than {most} sheets at a time are for teachers: sign in first, or print fewer sheets.")
            raise HandoutError(problem.format(most=MAX_DOWNLOAD_SHEETS))
        check = check_task(font_check_document(names, printable_line(options.course)))
        if missing := self._ask_while_browser_waits(check, client):
            job.note = missing_letters_note(missing)
        self._enqueue(job)
        path = self._folder.unfinished_pdf(job)

        def make_task() -> PrintTask:
            return pdf_task(options, prepare(), tickets or self._tickets, base_url, path)

        request_thread(self._run_job, job, make_task).start()
        return job

    def find_job(self, key: str, teacher_id: int | None) -> PrintJob | None:
        """A job that belongs to nobody or to this teacher; None for an unknown key or another teacher's job.

        `teacher_id` is None for a visitor. Whoever asks is waiting for it, which keeps it going.
        """
        job = self._folder.find(key)
        if job is None or job.teacher_id not in (None, teacher_id):
            return None
        if not job.is_finished:
            self._folder.note_look(job)
        return job

    def jobs_before(self, job: PrintJob) -> int:
        """How many jobs are made before this one; 0 once it has been started."""
        return 0 if job.has_started or job.is_finished else self._folder.jobs_before(job)

    def cancel_job(self, job: PrintJob) -> None:
        """End a job that waits or is made; nothing happens to one that is finished."""
        if not job.is_finished:
            with _disk_sentence():
                self._folder.cancel(job)

    def find_pdf(self, job: PrintJob) -> Path | None:
        """The PDF of a job, None if there is none yet or none any more."""
        return self._folder.find_pdf(job)

    def delete_expired(self) -> None:
        """Delete the jobs and PDFs that are older than an hour."""
        with suppress(OSError):  # a disk that is read-only
            self._folder.delete_expired()

    def close(self) -> None:
        """End the children, and with them the jobs of this process."""
        self._quick_child.close()
        self._job_child.close()

    def _render_preview(self, preview: _Preview) -> tuple[bytes, ...]:
        """Typeset the pages of `preview` without looking into the cache."""
        pages: tuple[bytes, ...] = self._ask_while_browser_waits(preview_task(preview.data), preview.client)
        return pages

    def _ask_while_browser_waits(self, task: PrintTask, client: Client) -> Any:
        """The result of a task of the child for previews; raises what the task raises, PrinterBusyError, HandoutError.

        It is busy where as many wait as may, of everybody or of this client, where its turn does not come within
        MAX_REQUEST_WAIT_S, and where it is a visitor's and a member waits for it too long.
        """
        give_up_at = time.monotonic() + MAX_REQUEST_WAIT_S

        def check_patience() -> None:
            if time.monotonic() > give_up_at:
                raise PrinterBusyError

        try:
            with (
                self._requests.turn(client, check_patience),
                self._quick_turn.taken(check_patience),
                _sentences_for_failures(),
            ):
                self._quick_child.memory_limit = _memory_limit()
                give_way = partial(self._requests.check_patience, client)
                return _result(self._quick_child.ask(task, self._request_limit_s, on_tick=give_way))
        except QueueFullError:
            raise PrinterBusyError from None

    def _enqueue(self, job: PrintJob) -> None:
        """Store a new job; raises PrinterBusyError where the machine, or this client, has as many as it may have."""
        teacher = job.teacher_id is not None
        give_up_at = time.monotonic() + MAX_REQUEST_WAIT_S

        def check_patience() -> None:
            if time.monotonic() > give_up_at:
                raise PrinterBusyError

        with self._accept_turn.taken(check_patience), _disk_sentence():
            jobs = list(self._folder.jobs())
            queued = [other for other in jobs if not other.is_finished]
            visitors = sum(other.teacher_id is None for other in queued)
            if len(queued) >= MAX_QUEUED_JOBS or (not teacher and visitors >= MAX_QUEUED_VISITOR_JOBS):
                raise PrinterBusyError
            own = [other for other in jobs if (other.teacher_id, other.client) == (job.teacher_id, job.client)]
            if sum(not other.is_finished for other in own) >= (MAX_TEACHER_JOBS if teacher else MAX_VISITOR_JOBS):
                raise PrinterBusyError(_("Several of your handouts are being made: wait for one, or cancel one."))
            if len(own) >= (MAX_TEACHER_JOBS_PER_HOUR if teacher else MAX_VISITOR_JOBS_PER_HOUR):
                raise PrinterBusyError(_("You have created many handouts within an hour: try again in an hour."))
            self._folder.save(job)

    def _run_job(self, job: PrintJob, make_task: Callable[[], PrintTask]) -> None:
        """Wait for the job's turn, make its PDF, and store what came of it; nothing is raised.

        A ValueError, as all errors of ours are, becomes the job's problem; any other leaves a general sentence.
        """
        try:
            with timed_job("print"):
                self._make_pdf(job, make_task)
        except (_JobEndedError, ValueError) as end:
            job.problem = str(end)
        except BaseException:  # nothing above this thread would report it, and a page waits for the result
            log.exception("a print job failed")
            job.problem = _("Something went wrong on the server. Try again.")
        if job.problem:
            job.is_ready = False
            with suppress(OSError):
                self._folder.unfinished_pdf(job).unlink(missing_ok=True)
        with suppress(OSError):  # a job whose end cannot be stored is taken for lost after ABANDONED_AFTER_S
            self._folder.save(job)

    def _make_pdf(self, job: PrintJob, make_task: Callable[[], PrintTask]) -> None:
        """Make the PDF of a job when its turn comes; raises ValueError, or _JobEndedError when nobody wants it."""
        check = self._still_wanted(job)
        while self._folder.jobs_before(job):
            check()
            time.sleep(0.2)
        with self._job_turn.taken(check), _sentences_for_failures(), _disk_sentence():
            job.has_started = True
            self._folder.save(job)
            self._job_child.memory_limit = _memory_limit()
            _result(self._job_child.ask(make_task(), JOB_LIMIT_S, partial(self._save_progress, job), check))
            self._folder.keep_pdf(job)

    def _save_progress(self, job: PrintJob, progress: tuple[int, int]) -> None:
        job.documents_done, job.documents = progress
        self._folder.save(job)

    def _still_wanted(self, job: PrintJob) -> Callable[[], None]:
        """A check that gives a sign of life, and raises _JobEndedError once the job is cancelled or forgotten.

        A teacher may leave the page of a class's handout for a while.
        """
        gone_after_s = VISITOR_GONE_AFTER_S if job.teacher_id is None else TEACHER_GONE_AFTER_S
        next_sign = 0.0

        def check() -> None:
            nonlocal next_sign
            if self._folder.is_cancelled(job):
                raise _JobEndedError(_("This handout was cancelled."))
            if time.monotonic() < next_sign:
                return
            next_sign = time.monotonic() + HEARTBEAT_S
            self._folder.touch(job)
            if self._folder.seconds_unseen(job) > gone_after_s:
                raise _JobEndedError(_("This handout was stopped because its page was closed: create it again."))

        return check


def _memory_limit() -> int:
    """The bytes that a child may take: MAX_PRINT_MEMORY, or a share of what is free where that is less."""
    return min(MAX_PRINT_MEMORY, int(SHARE_OF_FREE_MEMORY * available_memory()))


def _result(answer: Message) -> Any:
    """The result of a task; raises the error that it was refused with, ChildLost where it failed."""
    kind, content = answer
    if kind == "refused":
        raise content
    if kind == "failed":
        raise ChildLost
    return content


@contextmanager
def _sentences_for_failures() -> Iterator[None]:
    """Raise HandoutError with a sentence where the child was killed or failed."""
    try:
        yield
    except ChildTooLarge:
        raise HandoutError(_("This handout needs more memory than the server has: print fewer sheets.")) from None
    except ChildTooSlow:
        raise HandoutError(_("This handout took too long: print fewer sheets.")) from None
    except ChildLost:
        raise PrinterBusyError(_("The handout could not be created. Try again in a minute.")) from None


@contextmanager
def _disk_sentence() -> Iterator[None]:
    """Raise PrinterBusyError with a sentence where a file of a job cannot be written."""
    try:
        yield
    except OSError as error:
        log.error("a handout cannot be stored: %s", error.strerror)
        raise PrinterBusyError(
            _("The server cannot store this handout: its disk may be full. Tell whoever runs it.")
        ) from None
