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
from app.sheets import prose
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library

ADDRESS = "https://shapes.example.org"
MANY = HandoutOptions(worksheet="softmax-of-a-model", variants=True, sheets=200, layout="full", key="with")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def report() -> Iterator[str]:
    """Our times and memory, each in a process of its own; then pdflatex and Chromium if installed, and the ratios."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        one_s = pool.apply(_one_sheet_s)
        seconds, pages, size, memory = pool.apply(_many_versions)
        roster = pool.apply(_class_list)
    yield f"one sheet, warm: {1000 * one_s:.0f} ms (median of 20)"
    yield f"200 versions with keys: {seconds:.2f} s, {pages} pages, {size / 1e6:.1f} MB, {memory:.0f} MB of memory"
    yield f"a class of 2,000 with backs: {roster[0]:.1f} s, {roster[1] / 1e6:.1f} MB, {roster[2]:.0f} MB of memory"
    yield from _others(one_s, seconds)


def _peak_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _make_pdf(renderer: TypstRenderer, options: HandoutOptions, names: tuple[str, ...] = ()) -> bytes:
    library, tickets = load_library(PROJECT / "worksheets"), load_tickets(PROJECT / "worksheets")
    return renderer.render_handout(handout_documents(options, plan_sheets(library, options, names), tickets, ADDRESS))


def _one_sheet_s() -> float:
    library, renderer = load_library(PROJECT / "worksheets"), TypstRenderer()
    times = []
    for tokens in range(20, 41):  # another sheet each time, so that nothing is taken from the last
        start = time.perf_counter()
        options = HandoutOptions(tokens=tokens, sheets=1)
        renderer.render_handout(handout_documents(options, plan_sheets(library, options), {}, ADDRESS))
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[10]


def _many_versions() -> tuple[float, int, int, float]:
    from pikepdf import Pdf

    renderer = TypstRenderer()
    _make_pdf(renderer, HandoutOptions(sheets=1))
    start = time.perf_counter()
    pdf = _make_pdf(renderer, MANY)
    seconds, memory = time.perf_counter() - start, _peak_memory_mb()
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        Path(file.name).write_bytes(pdf)
        with Pdf.open(file.name) as opened:
            return seconds, len(opened.pages), len(pdf), memory


def _class_list() -> tuple[float, int, float]:
    start = time.perf_counter()
    names = tuple(f"Student {at}" for at in range(2000))
    options = HandoutOptions(worksheet="softmax-of-a-model", variants=True, back="classic")
    pdf = _make_pdf(TypstRenderer(), options, names)
    return time.perf_counter() - start, len(pdf), _peak_memory_mb()


def _others(one: float, many: float) -> Iterator[str]:
    library = load_library(PROJECT / "worksheets")
    sheets = plan_sheets(library, MANY)
    programs: dict[str, Callable[[Path, list[HandoutSheet]], list[str]] | None] = {
        "pdflatex": _write_latex if shutil.which("pdflatex") else None,
        "headless Chromium": _write_web_page if any(map(shutil.which, BROWSERS)) else None,
    }
    for name, command in programs.items():
        if command is None:
            yield f"{name}: not installed, not measured"
            continue
        one_sheet, all_sheets = (_seconds(command, list(sheets[:n])) for n in (1, 200))
        yield (
            f"{name}: one sheet {one_sheet:.2f} s ({one_sheet / one:.0f} times ours, cold), "
            f"200 with keys {all_sheets:.2f} s ({all_sheets / many:.1f} times)"
        )


def _seconds(command: Callable[[Path, list[HandoutSheet]], list[str]], sheets: list[HandoutSheet]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        arguments = command(Path(folder), sheets)
        start = time.perf_counter()
        subprocess.run(arguments, cwd=folder, check=True, capture_output=True, timeout=300)
        return time.perf_counter() - start


def _rows(sheet: HandoutSheet, filled: bool) -> list[tuple[str, ...]]:
    variant = sheet.variant
    return [(row.name, *(str(variant.answer(p)) if filled else "" for p in row.blanks)) for row in variant.rows]


def _write_latex(folder: Path, sheets: list[HandoutSheet]) -> list[str]:
    pages = []
    for filled in (False, True):
        for sheet in sheets:
            rows = r"\\ \hline ".join(" & ".join(row) for row in _rows(sheet, filled))
            text = f"{prose.description(sheet.variant)} {prose.task(sheet.variant)}".replace("_", r"\_").replace(
                "’", "'"
            )
            table = rf"\begin{{tabular}}{{|l|p{{3cm}}|p{{3cm}}|}}\hline {rows}\\ \hline\end{{tabular}}"
            pages.append(rf"\section*{{{sheet.variant.title}}} {text}\par {table}\newpage")
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\begin{document}"
    (folder / "sheet.tex").write_text("\n".join([head, *pages, r"\end{document}"]), encoding="utf-8")
    return ["pdflatex", "-interaction=batchmode", "sheet.tex"]


def _write_web_page(folder: Path, sheets: list[HandoutSheet]) -> list[str]:
    pages = []
    for filled in (False, True):
        for sheet in sheets:
            rows = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in _rows(sheet, filled))
            text = f"<p>{prose.description(sheet.variant)} {prose.task(sheet.variant)}"
            pages.append(f"<section><h1>{sheet.variant.title}</h1>{text}<table border>{rows}</table></section>")
    style = "<meta charset=utf-8><style>section{break-after:page}td{width:8em;height:2em}</style>"
    (folder / "sheet.html").write_text(style + "".join(pages), encoding="utf-8")
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    quiet = ["--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-sync"]
    output = ["--no-pdf-header-footer", "--print-to-pdf=sheet.pdf", "sheet.html"]
    return [browser, "--headless", "--no-sandbox", "--disable-quic", *quiet, *output]
