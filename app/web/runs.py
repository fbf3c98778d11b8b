"""/runs: run a sheet's head for real, and show its shapes beside the answers once it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.algebra.number_text import format_measured
from app.classes import sheet_actions
from app.classes.frozen.frozen_run import FrozenRun, freeze_run, sheet_of_run
from app.classes.sheet_actions import may_run
from app.forward.lines import ForwardError
from app.forward.notebook import NOTEBOOK_TYPE, run_notebook
from app.forward.run import HEAD_RUNS, HeadRun
from app.machine.work_queue import Client
from app.shapes.table import Blank
from app.sheets.answers import Answer
from app.sheets.variant import Row, Variant
from app.store import Answers, Run
from app.store.jobs import Job, JobRefusedError
from app.translation import gettext as _
from app.translation import ngettext
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.head_request import HeadChoice, choice_of_sheet, start_head
from app.web.shared.permissions import PracticeOpen, QueueClient, require_practice, require_run
from app.web.shared.rate_limits import BYTES_OF_RUN, bytes_of
from app.web.shared.run_jobs import differing_shapes, queue_run, shape_text, why_not_queued
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_address import sheet_link
from app.web.shared.sheet_view import readable_answers
from app.web.shared.stage_view import ALL_STAGES
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import remember_visitor
from app.web.sheet import SheetContext
from app.web.sheet_in_class import posted_class_sheet
from app.web.sheet_in_practice import posted_practice_sheet

router = APIRouter(include_in_schema=False)
MAX_RUNS_BEFORE_BACKGROUND = 10  # with more waiting, runs that nobody asked for are skipped
# How long a page waits before asking again. With others ahead it waits longer, and a class whose pages all wait must
# not slow down everything else: 200 such pages ask 70 times per second together.
FIRST_LOOK_MS, LOOK_MS, LOOK_MS_FOR_EACH_AHEAD, MOST_LOOK_MS = 150, 500, 50, 5000
MAX_HEAD = 10**9 - 1
SHARE_OF_BACKGROUND = 0.5  # the other half of the storage limit is for what people type and ask for


@dataclass(frozen=True)
class ComparedField:
    """One blank: what was typed, compared with the number that torch reports."""

    typed: str
    result: Literal["same", "differs", "unreadable", "empty"]


@dataclass(frozen=True)
class ComparedRow:
    """One row of the sheet, its blanks compared with the shape that torch reported."""

    row: Row
    fields: tuple[ComparedField, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RunOptions:
    """How to run a head: a device, a number format, and a query head counted from 0."""

    device: str | None  # None means the best one
    dtype: str
    head: int  # -1, which the forward pass refuses with a sentence, for text that isn't a number
    in_background: bool = False  # nobody asked for it: it gives way, and only its agreement is shown


async def read_run_options(form: FormDep) -> RunOptions:
    """The options of a form; by default the best device, float32 and head 0."""
    device, dtype, head, background = map(form.raw, ("device", "dtype", "head", "background"))
    number = whole_number(head, MAX_HEAD) if head else 0
    return RunOptions(device or None, dtype or "float32", -1 if number is None else number, bool(background))


RunOptionsDep = Annotated[RunOptions, Depends(read_run_options)]


@router.post("/runs", dependencies=[Depends(require_practice)])
@in_threads("run")
def start_run(
    request: Request, services: ServicesDep, form: FormDep, client: QueueClient, options: RunOptionsDep
) -> Response:
    """Store the answers as an attempt, if they are new and readable, and queue a run with them."""
    if options.in_background and _is_busy(services):
        return Response(status_code=204)
    _outcome, context = posted_practice_sheet(request, services, form).done(sheet_actions.check_if_new)
    response = _run_sheet(
        request,
        services,
        context,
        options,
        client,
        has_answers=context.work.last is not None,
        charge=partial(services.storage.charge, client_network(request)),
        frozen=freeze_run(context.variant),
        link=sheet_link(context.variant),
        visitor_id=context.work.owner.id,
    )
    remember_visitor(request, response, context.work.owner)
    return response


@router.post("/class/{activity_id:int}/{number:int}/run")
@in_threads("run")
def run_class_sheet(
    request: Request,
    services: ServicesDep,
    form: FormDep,
    options: RunOptionsDep,
    open_to_practice: PracticeOpen,
    activity_id: int,
    number: int,
) -> Response:
    """Queue a run with the answers on an activity's sheet, even after closing; it costs no attempt."""
    if options.in_background and _is_busy(services):
        return Response(status_code=204)
    context = posted_class_sheet(request, services, form, activity_id, number)
    if not may_run(context.work, context.rules):
        raise HTTPException(409, _("In this activity, you can run the head once you can see the marks of an attempt."))
    _outcome, context = context.done(sheet_actions.save)
    student_id = context.access.student.id
    return _run_sheet(
        request,
        services,
        context,
        options,
        Client(f"student {student_id}"),
        has_answers=bool(context.work.last or readable_answers(context.variant, context.answers)),
        charge=partial(services.storage.charge_student, student_id),
        frozen=freeze_run(context.variant, context.activity, number),
        link=context.access.links.sheet(number),
        may_be_real=open_to_practice,
        student_id=student_id,
    )


@router.post("/runs/{run_id}/again", dependencies=[Depends(require_run)])
@in_threads("run")
def run_again(
    request: Request, services: ServicesDep, client: QueueClient, run_id: str, options: RunOptionsDep
) -> Response:
    """Queue another run of a run's sheet, as it was then, with the same answers and without a new attempt."""
    first, _job = _find_run(services, run_id)
    variant = sheet_of_run(services.library, services.store, first)
    size = BYTES_OF_RUN + bytes_of(first.answers)
    token, find = request.cookies.get(VISITOR_COOKIE), services.store.activities.of_visitor
    if token and first.activity_id and (enrolled := find(token, first.activity_id)):
        services.storage.charge_student(enrolled.student.id, size)
    else:
        services.storage.charge(client_network(request), size)
    frozen = FrozenRun(first.activity_id, first.frozen)
    run, job = _queue(services, client, first.answers, options, frozen)
    return _respond(request, services, variant, run, job, options)


@router.get("/runs/{run_id}", dependencies=[Depends(require_run)])
@in_threads("run")
def show_run(request: Request, services: ServicesDep, run_id: str) -> Response:
    """The run, finished or not, next to its sheet as it was then; 404 for an unknown run."""
    run, job = _find_run(services, run_id)
    names = _run_names(services, run, sheet_of_run(services.library, services.store, run), job)
    return render_page_or_fragment(request, "runs/run.html", "runs/_run.html", **names)


@router.get("/runs/{run_id}/agreement", dependencies=[Depends(require_run)])
@in_threads("run")
def show_agreement(services: ServicesDep, run_id: str) -> Response:
    """What a run says about its sheet in one line, for the sheet's page."""
    run, job = _find_run(services, run_id)
    variant = sheet_of_run(services.library, services.store, run)
    return render("runs/_agreement.html", **_agreement(run, variant, job))


@router.post("/runs/{run_id}/cancel", dependencies=[Depends(require_run)])
def cancel_run(services: ServicesDep, run_id: str) -> Response:
    """Cancel an unfinished run, and redirect (303) to its page."""
    _run, job = _find_run(services, run_id)
    if job:
        services.jobs.rows.cancel(job)
    return RedirectResponse(url_for("show_run", run_id=run_id), 303)


@router.get("/runs/{run_id}/notebook.ipynb", dependencies=[Depends(require_run)])
def download_notebook(services: ServicesDep, run_id: str) -> Response:
    """A run's program as a Jupyter notebook, with the shapes that its sheet asks for left blank."""
    run, _job = _find_run(services, run_id)
    result = _result(run)
    if not result:
        raise HTTPException(404, _("There is a notebook once the run has finished."))
    variant = sheet_of_run(services.library, services.store, run)
    headers = {"Content-Disposition": f'attachment; filename="{variant.code}.ipynb"', "Cache-Control": "no-store"}
    return Response(run_notebook(result, variant.problem.asked), media_type=NOTEBOOK_TYPE, headers=headers)


def _to_real_head(request: Request, services: Services, client: Client, choice: HeadChoice, **options: Any) -> Response:
    try:
        job = start_head(services, client, choice, **options)
    except ForwardError as refusal:
        raise HTTPException(503, str(refusal)) from None
    address = url_for("show_head", key=job.key, skip=ALL_STAGES)
    if is_htmx(request):
        return Response(headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


def _sheet_address(run: Run, variant: Variant) -> str:
    if run.activity_id is None:
        return sheet_link(variant)
    return url_for("show_class_sheet", activity_id=run.activity_id, number=run.frozen["sheet"])


def _run_names(
    services: Services, run: Run, variant: Variant, job: Job | None, *, is_new: bool = False
) -> dict[str, Any]:
    """What templates/runs/run.html and _run.html show."""
    result = _result(run)
    look_ms = min(LOOK_MS + LOOK_MS_FOR_EACH_AHEAD * (job.before if job else 0), MOST_LOOK_MS)
    names = {
        "run": run,
        "variant": variant,
        "result": result,
        "problem": run.problem or "",
        "link": _sheet_address(run, variant),
        "title": variant.topic_wording.run_title,
        "waiting": (job and services.jobs.why_it_waits(job)) or _waiting_sentence(job),
        "asks": f"load delay:{FIRST_LOOK_MS}ms, every {look_ms}ms" if is_new else f"every {look_ms}ms",
    }
    if result is None:
        return names
    rows = _compared_rows(variant, run.answers, result.shapes)
    # The lines before the first timed one's heading only prepare the run, and are folded.
    first = next((at for at, line in enumerate(result.lines) if line.timed), 0)
    heading = next((at for at in range(first, 0, -1) if not result.lines[at].code), first)
    return names | {
        "rows": rows,
        "verdict": " ".join(_verdict(rows)),
        "key_problem": "" if result.agrees else _difference(result),
        "prepared": result.lines[:heading],
        "computed": result.lines[heading:],
        "facts": tuple(_fact_lines(result)),
        "remarks": (*_sheet_notes(variant), *_remark_sentences(result)),
    }


def _waiting_sentence(job: Job | None) -> str:
    if job is None or not job.before:
        return _("Running. The first run loads PyTorch, which takes a few seconds.")
    sentence = ngettext("Waiting: one run is ahead of yours.", "Waiting: {count} runs are ahead of yours.", job.before)
    return sentence.format(count=job.before)


def _result(run: Run) -> HeadRun | None:
    return HEAD_RUNS.validate_python(run.result) if run.result else None


def _agreement(run: Run, variant: Variant, job: Job | None) -> dict[str, Any]:
    """What templates/runs/_agreement.html says about a completed sheet after a run in the background."""
    result, row = _result(run), next((row for row in variant.rows if row.key == "output"), variant.rows[-1])
    names = {"run_id": run.id, "waiting": job is not None, "sentence": "", "letters": (row.letter,)}
    names["agrees"] = bool(result and result.agrees)
    if not result:
        return names
    if not result.agrees:
        return names | {"sentence": _difference(result)}
    rows = _compared_rows(variant, run.answers, result.shapes)
    if any(field.result != "same" for line in rows for field in line.fields):
        return names
    output = _("{name} is {shape}.").format(name=row.letter or row.name, shape=shape_text(result.shapes[row.key]))
    return names | {"sentence": " ".join([*_verdict(rows), output])}


def _verdict(rows: tuple[ComparedRow, ...]) -> Iterator[str]:
    results = [field.result for line in rows for field in line.fields]
    differing, compared = results.count("differs"), results.count("differs") + results.count("same")
    if not compared:
        yield _("There is no answer to compare.")
    elif not differing:
        agrees = ngettext(
            "PyTorch agrees with your answer.", "PyTorch agrees with all {count} of your answers.", compared
        )
        yield agrees.format(count=compared)
    else:
        disagrees = ngettext(
            "PyTorch disagrees with your answer: see {rows}.",
            "PyTorch disagrees with {count} of your {total} answers: see {rows}.",
            compared,
        )
        named = [line.row.name for line in rows if any(field.result == "differs" for field in line.fields)]
        yield disagrees.format(count=differing, total=compared, rows=", ".join(dict.fromkeys(named)))
    if unreadable := results.count("unreadable"):
        sentence = ngettext("{count} answer could not be read.", "{count} answers could not be read.", unreadable)
        yield sentence.format(count=unreadable)
    if empty := results.count("empty"):
        yield ngettext("{count} box is empty.", "{count} boxes are empty.", empty).format(count=empty)


def _difference(result: HeadRun) -> str:
    return _("PyTorch disagrees with the answer key: {keys}. Please report this.").format(keys=differing_shapes(result))


def _fact_lines(result: HeadRun) -> Iterator[tuple[str, str]]:
    yield _("Device"), f"{result.device_name} ({result.device})"
    yield _("Number format"), result.dtype
    if result.milliseconds is not None:
        yield _("Time from input to output"), f"{format_measured(result.milliseconds)} ms"
    if result.peak_bytes is not None:
        yield _("Peak memory (measured)"), _bytes_text(result.peak_bytes)
    yield _("Memory needed (computed)"), _bytes_text(result.needed_bytes)
    if result.row_sums:
        least, most = (f"{end:.6f}" for end in result.row_sums)
        yield _("Row sums of A"), least if least == most else f"{least} – {most}"


def _sheet_notes(variant: Variant) -> Iterator[str]:
    if variant.worksheet.sentence:
        yield _(
            "The worksheet names a sentence for a real head; this run drew random numbers instead. The shapes are the "
            "same."
        )
    if variant.worksheet.in_letters:
        yield _(
            "PyTorch has only numbers, so your formulas are compared by the numbers that they come to. Check tells you "
            "whether a formula itself is right."
        )


def _remark_sentences(result: HeadRun) -> Iterator[str]:
    if result.head is not None:
        heads = _("Query head {head} uses key/value head {kv_head}, both counted from 0.")
        yield heads.format(head=result.head, kv_head=result.kv_head)
    if result.device == "meta":
        yield _(
            "PyTorch’s meta device works out shapes without computing numbers: nothing was measured, and there are no "
            "attention weights to draw."
        )
    sentences = note_sentences()
    for note in result.notes:
        key, _colon, detail = note.partition(":")
        yield sentences[key].format(detail=detail)


def note_sentences() -> dict[str, str]:
    """By the key of a run's note, one sentence on what is special about the model's attention or the run."""
    return {
        "keys-shared": _("Grouped-query attention: several query heads share one head’s keys and values."),
        "window": _(
            "Sliding-window attention: a token attends to at most {detail} tokens, itself included, so the mask hides "
            "the others too."
        ),
        "chunk": _("Chunked attention: a token attends only to tokens of its own chunk of {detail} tokens."),
        "unscaled": _("This model doesn’t divide the scores by √d_h."),
        "scale": _("This model multiplies the scores by {detail} instead of dividing them by √d_h."),
        "scale-root": _("This model divides the scores by √{detail}, not by √d_h."),
        "scale-yarn": _(
            "This model divides the scores by √d_h and multiplies them by {detail}, YaRN’s constant for long inputs."
        ),
        "relative-bias": _(
            "Relative position bias: a learned number for the distance between query and key is added to each score."
        ),
        "alibi": _("ALiBi: a number that grows with the key’s position is added to each score; it changes no shape."),
        "softcap": _(
            "Each score s is capped: {detail} · tanh(s / {detail}), which stays between −{detail} and {detail}."
        ),
        "sinks": _(
            "Attention sink: a learned score without a key takes part in each softmax, so the row sums of A are below "
            "1."
        ),
        "rope-scaling": _("RoPE’s frequencies are scaled for long inputs ({detail})."),
        "output-bias": _(
            "The output projection has a bias. The layer adds it once, after summing its heads, so one head’s program "
            "leaves it out."
        ),
        "first-layer": _("This is the model’s first layer; other layers have another window or other positions."),
        "not-finite": _("Some numbers overflowed this number format, so there are no attention weights to draw."),
    }


def _bytes_text(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def _is_busy(services: Services) -> bool:
    return services.jobs.rows.count("run") > MAX_RUNS_BEFORE_BACKGROUND


def _run_sheet(
    request: Request,
    services: Services,
    context: SheetContext,
    options: RunOptions,
    client: Client,
    *,
    has_answers: bool,
    charge: Callable[[int, float], None],
    frozen: FrozenRun,
    link: str,
    may_be_real: bool = True,
    **owner: int,
) -> Response:
    """Queue a run of a sheet with the answers on it, or the real head that its worksheet names."""
    if not has_answers:
        return render_page_or_fragment(request, "runs/no_run.html", "runs/_no_run.html", link=link)
    charge(BYTES_OF_RUN + bytes_of(context.answers), SHARE_OF_BACKGROUND if options.in_background else 1)
    is_real = may_be_real and not options.in_background
    if is_real and (choice := choice_of_sheet(services, context.variant)):
        return _to_real_head(request, services, client, choice, back=link, **owner)
    run, job = _queue(services, client, context.answers, options, frozen)
    return _respond(request, services, context.variant, run, job, options)


def _queue(
    services: Services, client: Client, answers: Answers, options: RunOptions, frozen: FrozenRun
) -> tuple[Run, Job | None]:
    """Store a new run and queue its job, in one transaction."""
    run = services.store.new_run(answers, frozen.values, frozen.activity_id)
    settings = {"device": options.device, "dtype": options.dtype, "head": options.head}
    store_run = partial(services.store.add_run, run)
    try:
        return run, queue_run(services, client, run.id, settings, store_run)
    except JobRefusedError as refusal:
        refused = replace(run, problem=why_not_queued(refusal))
        return services.store.add_run(refused), None


def _respond(
    request: Request, services: Services, variant: Variant, run: Run, job: Job | None, options: RunOptions
) -> Response:
    if not is_htmx(request):
        return RedirectResponse(url_for("show_run", run_id=run.id), 303)
    if options.in_background:
        return render("runs/_agreement.html", **_agreement(run, variant, job))
    return render("runs/_run.html", **_run_names(services, run, variant, job, is_new=True))


def _find_run(services: Services, run_id: str) -> tuple[Run, Job | None]:
    run, job = services.store.find_run(run_id), None
    if run and not run.finished:
        job = services.jobs.find(run_id)
        if job and not job.ending:
            return run, job
        run = services.store.find_run(run_id)  # it may have finished meanwhile
    if run is None:
        raise HTTPException(404, _("There is no such run here: start it again from its sheet."))
    if run.finished:
        return run, None
    lost = _("This run was lost because the process running it stopped. Start it again.")
    cancelled = job is not None and job.ending == "cancelled"
    return replace(run, problem=_("This run was cancelled.") if cancelled else (job and job.problem) or lost), None


def _compared_rows(variant: Variant, answers: Answers, shapes: dict[str, list[int]]) -> tuple[ComparedRow, ...]:
    return tuple(
        ComparedRow(
            row, tuple(_compare_field(variant, answers, blank, shapes) for blank in row.blanks), tuple(shapes[row.key])
        )
        for row in variant.rows
    )


def _compare_field(variant: Variant, answers: Answers, blank: Blank, shapes: dict[str, list[int]]) -> ComparedField:
    typed = answers.get(str(blank), "")
    observed = dict(zip(variant.table[blank.tensor].sides, shapes[blank.tensor], strict=True))[blank]
    read = variant.read(blank, typed)
    if isinstance(read, Answer):
        return ComparedField(typed, "same" if read.value == observed else "differs")
    return ComparedField(typed, "unreadable" if read else "empty")
