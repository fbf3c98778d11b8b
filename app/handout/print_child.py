"""What the child process typesets for the web app: previews, small PDFs and print jobs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from app.handout.document import TypstData, handout_documents
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import HandoutSheet, ReportProgress, plan_sheets
from app.handout.typst_renderer import TypstRenderer
from app.machine.child import Message, enter_child
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.translation import in_language, language

PREVIEW_PAGES = 6
MakeSheets = Callable[[], Sequence[HandoutSheet]]  # sent to the child, so it must be a partial of a module's function
PrintTask = Callable[[TypstRenderer, ReportProgress], Any]


def serve_print_tasks(fonts: Path, pipe: Connection) -> None:
    """The child's main loop: send "ready", then answer one task after another until the app closes the pipe."""
    os.environ.setdefault("RAYON_NUM_THREADS", str(enter_child()))
    renderer = TypstRenderer(fonts)
    pipe.send(("ready", None))
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(_answer(task, renderer, lambda done, total: pipe.send(("progress", (done, total)))))


def _answer(task: PrintTask, renderer: TypstRenderer, report: ReportProgress) -> Message:
    try:
        return "done", task(renderer, report)
    except ValueError as error:  # all our errors are ValueErrors
        return "refused", error
    except Exception:
        logging.getLogger("attention_shapes").exception("a handout failed")
        return "failed", None


def preview_data(library: Library, options: HandoutOptions, tickets: Mapping[str, Ticket], base_url: str) -> str:
    """Everything printed on the sheets of a preview, as JSON: equal data gives equal pages."""
    documents = handout_documents(options, plan_sheets(library, options), tickets, base_url)
    return json.dumps([document() for document in documents], ensure_ascii=False)


def render_preview(data: str, renderer: TypstRenderer, _report: ReportProgress) -> tuple[bytes, ...]:
    """The first PREVIEW_PAGES pages, each as SVG, of the documents in `data`, the JSON from `preview_data`."""
    pages = list[bytes]()
    for document in json.loads(data):
        if len(pages) < PREVIEW_PAGES:
            pages += renderer.render_svg_pages(document)
    return tuple(pages[:PREVIEW_PAGES])


def find_letters_without_font(data: TypstData, renderer: TypstRenderer, _report: ReportProgress) -> str:
    """Typeset one document and return the letters that no font has."""
    return renderer.find_missing_letters(data)


def pdf_task(
    options: HandoutOptions, make_sheets: MakeSheets, tickets: Mapping[str, Ticket], base_url: str
) -> PrintTask:
    """A task that makes a PDF; the child plans the sheets, in the current language."""
    render = partial(_render_handout, options, make_sheets, tickets, base_url)
    return partial(in_language, language(), render)


def _render_handout(
    options: HandoutOptions,
    make_sheets: MakeSheets,
    tickets: Mapping[str, Ticket],
    base_url: str,
    renderer: TypstRenderer,
    report: ReportProgress,
) -> bytes:
    return renderer.render_handout(handout_documents(options, make_sheets(), tickets, base_url), report)
