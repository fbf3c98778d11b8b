"""Run this head: start a real forward pass, leave the page free, and show its shapes beside the answers."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from PIL import Image

from app.forward.head_run import HeadNotRun, run_sheet
from app.grading.grade import grade
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets.worksheet import Row, Typed, Variant, Wording
from app.store import Answers, Run
from app.web.practice.sheet_request import Posted, keep_try, sheet_key, sheet_link, variant_at
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import url_for
from app.web.shared.visitor import OwnerDep, remember_visitor
from app.web.student import sheet_request

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")

LOST_AFTER_S = 900  # longer than the longest queue of runs: whoever ran it is gone


@dataclass(frozen=True)
class Compared:
    """One side of one matrix: what was typed, and whether torch reports the same."""

    typed: str
    same: bool


@dataclass(frozen=True)
class ComparedRow:
    """One row of the sheet, its rows and columns compared with the shape as torch reported it."""

    row: Row
    sides: tuple[Compared, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RunPage:
    """Everything that templates/runs/run.html and its partial show."""

    run: Annotated[Run, Doc("The run, with its result once there is one.")]
    variant: Annotated[Variant, Doc("The sheet it was started from.")]
    rows: Annotated[tuple[ComparedRow, ...], Doc("Typed and observed shapes, row by row.")]
    result: Annotated[dict[str, Any] | None, Doc("What the forward pass reported, none while it runs.")]
    problem: Annotated[str, Doc("Why there will be no result, or nothing.")]
    link: Annotated[str, Doc("The address of the sheet.")]
    origin: Annotated[str, Doc("What its own address ends in where it was started in a class.")]
    title: Annotated[str, Doc("The heading.")]
    waiting: Annotated[str, Doc("What is said while it runs.")]
    summary: Annotated[str, Doc("Which numbers are real and which random.")] = ""
    agreement: Annotated[str, Doc("Whether torch and the table agree.")] = ""
    facts: Annotated[tuple[tuple[str, str], ...], Doc("Device, number format, time and memory, by name.")] = ()
    remarks: Annotated[tuple[str, ...], Doc("What else a reader should know about this run.")] = ()
    picture_text: Annotated[str, Doc("What the picture of the weights shows.")] = ""


@dataclass(frozen=True)
class NoRunPage:
    """Everything that templates/runs/no_run.html and its partial show."""

    sentence: Annotated[str, Doc("Why nothing was run, and what to do.")]
    link: Annotated[str, Doc("The address of the sheet.")]


def options_of(device: Annotated[str, Form()] = "", dtype: Annotated[str, Form()] = "",
               head: Annotated[str, Form()] = "") -> dict[str, Any]:  # fmt: skip
    """How to run, as far as the form says; what cannot be used is refused by the forward pass, with a sentence."""
    number = int(head) if head.isascii() and head.isdigit() and len(head) < 10 else -1
    return {"device": device or None, "dtype": dtype or "float32", "head": number if head else 0}


RunOptions = Annotated[dict[str, Any], Depends(options_of)]


@dataclass(frozen=True)
class Origin:
    """Where a run was started: the sheet of an activity, or practice where both are 0."""

    activity: int = 0
    number: int = 0

    @property
    def query(self) -> str:
        return f"?activity={self.activity}&number={self.number}" if self.activity > 0 and self.number > 0 else ""

    def link(self, variant: Variant) -> str:
        """The address of the sheet."""
        return (
            url_for("show_class_sheet", activity_id=self.activity, number=self.number)
            if self.query
            else sheet_link(variant)
        )


From = Annotated[Origin, Depends(Origin)]


@router.post("/runs")
def start_run(request: Request, services: ServicesDep, owner: OwnerDep, asked: Posted, options: RunOptions) -> Response:
    """Keep the answers as a try, and start a run beside them; a sheet never tried is not given away."""
    report = grade(asked.variant, asked.answers)
    keep_try(services, owner, asked, report)
    tried = report.tried or services.store.last_attempt(owner, sheet_key(asked.variant)) is not None
    run = _start(services, asked.variant, asked.answers, options) if tried else None
    response = _answer(request, services, asked.variant, run, Origin())
    remember_visitor(request, response, owner)
    return response


@router.post("/class/{activity_id:int}/{number:int}/run")
def start_class_run(
    request: Request, services: ServicesDep, sheet: sheet_request.Posted, options: RunOptions
) -> Response:
    """The same from a sheet of an activity, as its rules say: what was typed is a draft there, and no practice."""
    activity, variant = sheet.access.activity, sheet.assigned.variant
    last, phase = services.store.classwork.last_attempt(sheet.assigned.key), activity.phase()
    if phase == "waiting" or (activity.policies.run == "after" and last is None):
        raise HTTPException(409, services.library.wording.say("class", "no-run-yet"))
    if phase == "open":
        services.store.classwork.save(sheet.assigned.key, sheet.sent)
    tried = last is not None or grade(variant, sheet.sent.answers).tried
    run = _start(services, variant, sheet.sent.answers, options) if tried else None
    return _answer(request, services, variant, run, Origin(activity.id, sheet.number + 1))


@router.post("/runs/{run_id}/again")
def run_again(request: Request, services: ServicesDep, run_id: str, options: RunOptions, origin: From) -> Response:
    """Another run beside the same answers: they are no new try."""
    run = _find(services, run_id)
    variant = variant_at(services, run.sheet)
    return _answer(request, services, variant, _start(services, variant, run.answers, options), origin)


@router.get("/runs/{run_id}")
def show_run(request: Request, services: ServicesDep, run_id: str, origin: From) -> Response:
    """The run as it stands: whoever has its address may look, come back later, or pass it on."""
    run = _find(services, run_id)
    template = "runs/_run.html" if "hx-request" in request.headers else "runs/run.html"
    return render(template, run_page(services, run, variant_at(services, run.sheet), origin))


@router.get("/runs/{run_id}/weights.png")
def show_attention_weights(services: ServicesDep, run_id: str) -> Response:
    """The attention weights as a picture: the stronger the tone, the larger its share of a row's largest weight."""
    result = _find(services, run_id).result
    if not result or not result["picture"]:
        raise HTTPException(404, "This run has no picture of weights.")
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(_png(result["picture"]["cells"]), media_type="image/png", headers=headers)


def run_page(services: Services, run: Run, variant: Variant, origin: Origin) -> RunPage:
    """The page of a run in whatever state it is."""
    words = services.library.wording
    lost = not run.finished and run.seconds_waiting > LOST_AFTER_S
    page = RunPage(
        run=run,
        variant=variant,
        rows=(),
        result=run.result,
        problem=words.say("page", "lost") if lost else run.problem or "",
        link=origin.link(variant),
        origin=origin.query,
        title=words.say("run-titles", variant.worksheet.topic),
        waiting=words.say("run", "waiting"),
    )
    return _with_result(page, words, run.result) if run.result else page


def _with_result(page: RunPage, words: Wording, result: dict[str, Any]) -> RunPage:
    differ = ", ".join(result["disagreements"])
    return replace(
        page,
        rows=_compared(page.variant, page.run.answers, result["shapes"]),
        summary=words.say("run", "random", seed=result["seed"]),
        agreement=words.say("run", "agree") if result["agrees"] else words.say("run", "differ", keys=differ),
        facts=tuple(_facts(words, result)),
        remarks=(*_turned(words, page.variant), *_remarks(words, result)),
        picture_text=_picture_text(words, result, page.variant),
    )


def _facts(words: Wording, result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield words.say("run-facts", "device"), f"{result['device_name']} ({result['device']})"
    yield words.say("run-facts", "dtype"), result["dtype"]
    if result["milliseconds"] is not None:
        yield words.say("run-facts", "time"), f"{result['milliseconds']:.3g} ms"
    if result["peak_bytes"] is not None:
        yield words.say("run-facts", "peak"), _bytes(result["peak_bytes"])
    yield words.say("run-facts", "needed"), _bytes(result["needed_bytes"])
    if result["row_sums"]:
        least, most = (f"{end:.6f}" for end in result["row_sums"])
        yield words.say("run-facts", "sums"), f"{least} – {most}"


def _turned(words: Wording, variant: Variant) -> Iterator[str]:
    if variant.with_tokens_as_rows is not variant:
        yield words.say("run", "turned")


def _remarks(words: Wording, result: dict[str, Any]) -> Iterator[str]:
    if result["head"] is not None:
        yield words.say("run", "heads", head=result["head"], kv_head=result["kv_head"])
    if result["device"] == "meta":
        yield words.say("run", "meta")
    for note in result["notes"]:
        key, _, detail = note.partition(":")
        yield words.say("run-notes", key, detail=detail)


def _picture_text(words: Wording, result: dict[str, Any], variant: Variant) -> str:
    if not result["picture"]:
        return ""
    side = result["picture"]["side"]
    return " ".join(
        [
            words.say("run", "picture"),
            *([words.say("run", "picture-head", head=result["picture"]["head"])] if result["head"] is None else []),
            *([words.say("run", "picture-causal")] if variant.architecture.causal else []),
            *([words.say("run", "picture-cell", side=side)] if side > 1 else []),
        ]
    )


def _bytes(count: int) -> str:
    """Bytes as people read them: 5.6 MB of 10^6 bytes."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def _start(services: Services, variant: Variant, answers: Answers, options: dict[str, Any]) -> Run:
    """A run that goes on in a thread of its own."""
    run = services.store.add_run(sheet_key(variant), answers)
    threading.Thread(target=_finish, args=(services, run, variant, options), daemon=True).start()
    return run


def _answer(request: Request, services: Services, variant: Variant, run: Run | None, origin: Origin) -> Response:
    if run is None:
        page = NoRunPage(services.library.wording.say("page", "fill-first"), origin.link(variant))
        return render("runs/_no_run.html" if "hx-request" in request.headers else "runs/no_run.html", page)
    if "hx-request" in request.headers:
        return render("runs/_run.html", run_page(services, run, variant, origin))
    return RedirectResponse(url_for("show_run", run_id=run.id) + origin.query, 303)


def _finish(services: Services, run: Run, variant: Variant, options: dict[str, Any]) -> None:
    try:
        result = run_sheet(services.runner, services.library.wording, variant, **options)
    except HeadNotRun as problem:
        services.store.finish_run(run.id, None, str(problem))
    except Exception:  # nobody stands behind this thread to hear of it, and someone waits for the page
        log.exception("a run failed")
        services.store.finish_run(run.id, None, services.library.wording.say("page", "stopped"))
    else:
        services.store.finish_run(run.id, result)


def _find(services: Services, run_id: str) -> Run:
    run = services.store.find_run(run_id)
    if run is None:
        raise HTTPException(404, "There is no such run here; run the head again from its sheet.")
    return run


def _compared(variant: Variant, answers: Answers, shapes: dict[str, list[int]]) -> tuple[ComparedRow, ...]:
    return tuple(
        ComparedRow(row, tuple(_side(variant, answers, p, shapes) for p in row.blanks), tuple(shapes[row.key]))
        for row in variant.rows
    )


def _side(variant: Variant, answers: Answers, blank: Blank, shapes: dict[str, list[int]]) -> Compared:
    typed, upright = answers.get(str(blank), ""), variant.in_table_orientation(blank)
    observed = shapes[upright.tensor][MATRIX_FIELDS.index(upright.field)]
    read = variant.read(typed)
    return Compared(typed, isinstance(read, Typed) and read.value == observed)


def _png(cells: list[list[float]]) -> bytes:
    """Grey of one tone, opaque by weight, so that it stands on light and dark paper; each row by its own largest."""
    image = Image.new("LA", (len(cells[0]), len(cells)))
    opacity = (round(255 * (cell / (max(row) or 1)) ** 0.5) for row in cells for cell in row)
    image.putdata([(128, alpha) for alpha in opacity])
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
