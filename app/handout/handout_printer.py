"""Prints handouts in child processes: previews and small PDFs while a browser waits, large ones as jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from app.handout.document import font_check_document
from app.handout.options import HandoutError, HandoutOptions, printable_line
from app.handout.print_child import (
    MakeSheets,
    PrintTask,
    find_letters_without_font,
    pdf_task,
    preview_data,
    render_preview,
    serve_print_tasks,
)
from app.handout.sheet_plan import check_version_count, plan_sheets
from app.handout.typst_renderer import missing_letters_note
from app.machine.child import START_LIMIT_S, ChildLost, ChildTooLarge, ChildTooSlow, Message, WarmChild
from app.machine.memory import available_memory
from app.machine.turn import MachineTurn
from app.machine.work_queue import THE_APP, Client, QueueFullError, WorkQueue
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.translation import gettext as _

PREVIEW_SHEETS = 4
CACHED_PREVIEWS = 12
MAX_DOWNLOAD_SHEETS = 100  # sheets that a visitor may have, typeset while the browser waits
MAX_WAITING_REQUESTS = 12  # waiting for the child; the rest of the thread pool stays free for other pages
MAX_VISITOR_REQUESTS = 3  # from one network
FOR_MEMBERS = 4  # kept free for teachers and enrolled students
MAX_REQUEST_WAIT_S, REQUEST_LIMIT_S = 20, 60
JOB_LIMIT_S = 900
MAX_PRINT_MEMORY = 3_000_000_000  # bytes, for a child at work; 2,000 sheets with names take 800 MB
SHARE_OF_FREE_MEMORY = 0.7  # a child may take this much of the free memory if less is free
KEPT_MEMORY = 300_000_000  # bytes, for a child waiting for more work
PRINTER_IDLE_LIMIT_S = 120


class PrinterBusyError(HandoutError):
    """Too many handouts are being made."""

    status = 503

    def __init__(self, sentence: str = "", reason: str = "busy") -> None:
        sentence = sentence or _("The server is creating many handouts right now: try again in a minute.")
        super().__init__(sentence, reason=reason)


@dataclass(frozen=True)
class _Preview:
    """Everything on the pages of a preview, and who asks for it; equal data gives equal pages."""

    data: str
    client: Client = field(compare=False)


class HandoutPrinter:
    """Makes previews, small PDFs and large handouts; `data_dir` holds the operator's fonts."""

    def __init__(
        self,
        data_dir: Path,
        tickets: Mapping[str, Ticket],
        *,
        request_limit_s: float = REQUEST_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
        idle_time_only: bool = True,
    ) -> None:
        child = partial(WarmChild, serve=partial(serve_print_tasks, data_dir / "fonts"))
        self._tickets = tickets
        self._quick_child = child(
            "printer", idle_limit_s=PRINTER_IDLE_LIMIT_S, start_limit_s=start_limit_s, kept_memory=KEPT_MEMORY
        )
        self._new_job_child = partial(
            child,
            "print-job",
            idle_limit_s=0,
            start_limit_s=JOB_LIMIT_S,  # the child may start slowly on a busy machine
            idle_time_only=idle_time_only,
        )
        self._job_children = set[WarmChild]()  # children at work
        self._request_limit_s = request_limit_s
        self._quick_turn = MachineTurn(data_dir / "turns" / "previews")
        self._requests = WorkQueue(MAX_WAITING_REQUESTS, reserved=FOR_MEMBERS, of_visitor=MAX_VISITOR_REQUESTS)
        self._cached_preview = lru_cache(CACHED_PREVIEWS)(self._render_preview)

    def preview(
        self, library: Library, options: HandoutOptions, base_url: str, client: Client = THE_APP
    ) -> tuple[bytes, ...]:
        """The first PREVIEW_PAGES pages of at most PREVIEW_SHEETS sheets without names, as SVG."""
        check_version_count(library, options)
        few_sheets = replace(options, sheets=min(options.sheets, PREVIEW_SHEETS))
        data = preview_data(library, few_sheets, self._tickets, base_url)
        return self._cached_preview(_Preview(data, client))

    def render_small(self, library: Library, options: HandoutOptions, base_url: str, client: Client = THE_APP) -> bytes:
        """The PDF of a handout without names, made while the browser waits."""
        if options.sheets > MAX_DOWNLOAD_SHEETS:
            problem = _("A direct download has at most {most} sheets: press “Create” on the handout’s page instead.")
            raise HandoutError(problem.format(most=MAX_DOWNLOAD_SHEETS))
        check_version_count(library, options)
        task = pdf_task(options, partial(plan_sheets, library, options), self._tickets, base_url)
        return bytes(self._ask_while_browser_waits(task, client))

    def missing_letters(self, options: HandoutOptions, names: Sequence[str], client: Client = THE_APP) -> str:
        """A note about letters of the names and the course that no font has, or "".

        Raises HandoutError and PrinterBusyError.
        """
        document = font_check_document(names, printable_line(options.course))
        missing = self._ask_while_browser_waits(partial(find_letters_without_font, document), client)
        return missing_letters_note(missing) if missing else ""

    def print_large(
        self,
        options: HandoutOptions,
        make_sheets: MakeSheets,
        base_url: str,
        tickets: Mapping[str, Ticket] | None = None,
        on_progress: Callable[[int, int], object] = lambda _done, _total: None,
        check: Callable[[], object] = lambda: None,
    ) -> bytes:
        """The PDF of a large handout, made at once in a child process of its own."""
        task = pdf_task(options, make_sheets, tickets or self._tickets, base_url)
        with _sentences_for_failures():
            child = self._new_job_child(memory_limit=_memory_limit())
            self._job_children.add(child)
            try:
                answer = child.ask(task, JOB_LIMIT_S, lambda progress: on_progress(*progress), check)
            finally:
                self._job_children.discard(child)
            return bytes(_result(answer))

    def close(self) -> None:
        """End the children and what they are making."""
        for child in (self._quick_child, *self._job_children):
            child.close()

    def _render_preview(self, preview: _Preview) -> tuple[bytes, ...]:
        task = partial(render_preview, preview.data)
        pages: tuple[bytes, ...] = self._ask_while_browser_waits(task, preview.client)
        return pages

    def _ask_while_browser_waits(self, task: PrintTask, client: Client) -> Any:
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


def _memory_limit() -> int:
    return min(MAX_PRINT_MEMORY, int(SHARE_OF_FREE_MEMORY * available_memory()))


def _result(answer: Message) -> Any:
    kind, content = answer
    if kind == "refused":
        raise content
    if kind == "failed":
        raise ChildLost
    return content


@contextmanager
def _sentences_for_failures() -> Iterator[None]:
    try:
        yield
    except ChildTooLarge:
        sentence = _("This handout needs more memory than the server has: print fewer sheets.")
        raise HandoutError(sentence, reason="no-memory") from None
    except ChildTooSlow:
        sentence = _("This handout took too long: print fewer sheets.")
        raise HandoutError(sentence, reason="too-long") from None
    except ChildLost:
        raise PrinterBusyError(_("The handout could not be created. Try again in a minute."), "stopped") from None
