"""Handouts: one sheet warm (target 50 ms), and 200 versions with keys (target 2 s, 5 MB, 500 MB of memory)."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from app.handout.document import handout_documents
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import HandoutSheet, plan_sheets
from app.handout.typst_renderer import TypstRenderer
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library

ADDRESS = "https://shapes.example.org"
MANY = HandoutOptions(worksheet="head-of-a-model", variants=True, sheets=200, layout="full", key="with")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def report() -> Iterator[str]:
    """Ours first, each in a process of its own; then the same sheets through what else is installed, and the ratios."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        one = pool.apply(_one)
        seconds, pages, size, memory = pool.apply(_many)
        roster = pool.apply(_roster)
    yield f"one sheet, warm: {1000 * one:.0f} ms (median of 20)"
    yield f"200 versions with keys: {seconds:.2f} s, {pages} pages, {size / 1e6:.1f} MB, {memory:.0f} MB of memory"
    yield f"a class of 2,000 with backs: {roster[0]:.1f} s, {roster[1] / 1e6:.1f} MB, {roster[2]:.0f} MB of memory"
    yield from _others(one, seconds)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _made(renderer: TypstRenderer, options: HandoutOptions, names: tuple[str, ...] = ()) -> bytes:
    library, tickets = load_library(PROJECT / "worksheets"), load_tickets(PROJECT / "worksheets")
    return renderer.render_handout(handout_documents(options, plan_sheets(library, options, names), tickets, ADDRESS))


def _one() -> float:
    library, renderer = load_library(PROJECT / "worksheets"), TypstRenderer()
    times = []
    for tokens in range(20, 41):  # another sheet each time, so that nothing is taken from the last
        start = time.perf_counter()
        options = HandoutOptions(tokens=tokens, sheets=1)
        renderer.render_handout(handout_documents(options, plan_sheets(library, options), {}, ADDRESS))
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[10]


def _many() -> tuple[float, int, int, float]:
    from pikepdf import Pdf

    renderer = TypstRenderer()
    _made(renderer, HandoutOptions(sheets=1))
    start = time.perf_counter()
    made = _made(renderer, MANY)
    seconds, memory = time.perf_counter() - start, _peak()
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        Path(file.name).write_bytes(made)
        with Pdf.open(file.name) as opened:
            return seconds, len(opened.pages), len(made), memory


def _roster() -> tuple[float, int, float]:
    start = time.perf_counter()
    names = tuple(f"Student {at}" for at in range(2000))
    made = _made(TypstRenderer(), HandoutOptions(worksheet="head-of-a-model", variants=True, back="classic"), names)
    return time.perf_counter() - start, len(made), _peak()


def _others(one: float, many: float) -> Iterator[str]:
    """The same sheets, without tags, keys' misconceptions and codes, as LaTeX and as a web page."""
    library = load_library(PROJECT / "worksheets")
    sheets = plan_sheets(library, MANY)
    programs: dict[str, Callable[[Path, list[HandoutSheet]], list[str]] | None] = {
        "pdflatex": _latex if shutil.which("pdflatex") else None,
        "headless Chromium": _page if any(map(shutil.which, BROWSERS)) else None,
    }
    for name, command in programs.items():
        if command is None:
            yield f"{name}: not installed, not measured"
            continue
        few, all_ = (_timed(command, list(sheets[:n])) for n in (1, 200))
        yield (
            f"{name}: one sheet {few:.2f} s ({few / one:.0f} times ours, cold), "
            f"200 with keys {all_:.2f} s ({all_ / many:.1f} times)"
        )


def _timed(command: Callable[[Path, list[HandoutSheet]], list[str]], sheets: list[HandoutSheet]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        asked = command(Path(folder), sheets)
        start = time.perf_counter()
        subprocess.run(asked, cwd=folder, check=True, capture_output=True, timeout=300)
        return time.perf_counter() - start


def _rows(sheet: HandoutSheet, filled: bool) -> list[tuple[str, ...]]:
    variant = sheet.variant
    return [(row.name, *(str(variant.key[p]) if filled else "" for p in row.blanks)) for row in variant.rows]


def _latex(folder: Path, sheets: list[HandoutSheet]) -> list[str]:
    pages = []
    for filled in (False, True):
        for sheet in sheets:
            rows = r"\\ \hline ".join(" & ".join(row) for row in _rows(sheet, filled))
            text = f"{sheet.variant.description} {sheet.variant.task}".replace("_", r"\_").replace("’", "'")
            table = rf"\begin{{tabular}}{{|l|p{{3cm}}|p{{3cm}}|}}\hline {rows}\\ \hline\end{{tabular}}"
            pages.append(rf"\section*{{{sheet.variant.title}}} {text}\par {table}\newpage")
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\begin{document}"
    (folder / "sheet.tex").write_text("\n".join([head, *pages, r"\end{document}"]), encoding="utf-8")
    return ["pdflatex", "-interaction=batchmode", "sheet.tex"]


def _page(folder: Path, sheets: list[HandoutSheet]) -> list[str]:
    pages = []
    for filled in (False, True):
        for sheet in sheets:
            rows = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in _rows(sheet, filled))
            text = f"<p>{sheet.variant.description} {sheet.variant.task}"
            pages.append(f"<section><h1>{sheet.variant.title}</h1>{text}<table border>{rows}</table></section>")
    style = "<meta charset=utf-8><style>section{break-after:page}td{width:8em;height:2em}</style>"
    (folder / "sheet.html").write_text(style + "".join(pages), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    quiet = ["--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync"]
    output = ["--no-pdf-header-footer", "--print-to-pdf=sheet.pdf", "sheet.html"]
    return [browser, "--headless", "--no-sandbox", "--disable-quic", *quiet, *output]
