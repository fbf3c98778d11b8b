"""Heads of real weights: choosing one, its page with stages that open one by one, its picture, and its files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from app.activities.rules import PRACTICE_RULES
from app.algebra.number_text import format_measured
from app.checkpoints.files import ListedCheckpoint
from app.classes import sheet_actions
from app.classes.sheet_actions import SentSheet, perform
from app.classes.sheet_work import PracticeWork, practice_sheet_key
from app.figures.kept_head import kept_head
from app.forward.lines import ForwardError
from app.forward.notebook import NOTEBOOK_TYPE, head_notebook
from app.forward.real_head import RealHead, save_npz
from app.grading.hints import HINT_LEVELS, HintLevel
from app.sheets.head_stages import HeadStage, head_stages
from app.sheets.worksheet import MAX_SENTENCE, Model
from app.store import Visitor
from app.store.jobs import no_worker
from app.translation import N_
from app.translation import gettext as _
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.head_request import (
    EXAMPLES,
    HeadChoice,
    find_choice,
    find_head,
    find_head_job,
    head_deleted,
    offered_checkpoints,
    start_head,
)
from app.web.shared.permissions import QueueClient, require_practice
from app.web.shared.picture_view import picture_file, picture_row, picture_view
from app.web.shared.rate_limits import BYTES_OF_RUN, bytes_of
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import read_answers
from app.web.shared.stage_view import coincidences, part_lines, stage_views
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, remember_visitor

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

# Sentences to begin with: each has a pronoun, whose row is the first to be read.
READY = (
    N_("The cat sat on the mat because it was tired."),
    N_("The dog chased the squirrel until it climbed a tree."),
    N_("The trophy didn’t fit into the suitcase because it was too big."),
)
MAX_PLACE = 9999  # for a typed layer or head
# polling for progress: at first, more per head ahead, and at most
ASKS_MS, ASKS_LATER_MS, ASKS_AT_MOST_MS = 400, 50, 5000
MAX_SKIPPED = 200  # characters of the list of skipped stages


# Choosing a head


@router.get("/heads")
def show_head_form(
    request: Request, services: ServicesDep, checkpoint: str = "", layer: str = "", head: str = ""
) -> Response:
    """The form with an example sentence, and `checkpoint`, `layer` and `head` as given or by default."""
    sentence = _(READY[0])
    if earlier := find_choice(services, request.query_params.get("from", "")):
        sentence, checkpoint = earlier.sentence, checkpoint or earlier.checkpoint
        layer, head = layer or str(earlier.layer), head or str(earlier.head)
    return render("heads/head_form.html", **_form(services, checkpoint, sentence, layer, head))


@router.post("/heads")
@in_threads("run")
def post_head_form(request: Request, services: ServicesDep, form: FormDep, client: QueueClient) -> Response:
    """Queue the head, and redirect to its page (303); a new browser becomes a visitor."""
    ready = whole_number(form.raw("ready", 2), len(READY) - 1)
    sentence = form.typed_lines("sentence", MAX_SENTENCE + 1).strip() if ready is None else _(READY[ready])
    page = _form(services, form.raw("checkpoint"), sentence, form.raw("layer", 9), form.raw("head", 9))
    page["form_secret"] = FormSecret.of(form).secret
    chosen: ListedCheckpoint | None = page["chosen"]
    if chosen is None:
        return render("heads/head_form.html", status=422, **page)
    layer, head = (whole_number(page[name], MAX_PLACE) for name in ("layer", "head"))
    if chosen.key != form.raw("checkpoint"):
        page |= {"wrong": "checkpoint", "problem": _("This server no longer offers these weights: choose others.")}
    elif problem := _problem(chosen, sentence, layer, head):
        page["wrong"], page["problem"] = problem
    if page["problem"] or layer is None or head is None:
        return render("heads/head_form.html", status=422, **page)
    services.storage.charge(client_network(request), BYTES_OF_RUN + bytes_of({"sentence": sentence}))
    token = request.cookies.get(VISITOR_COOKIE, "")
    visitor = services.store.find_visitor(token) if token else None
    visitor = visitor or services.store.add_visitor(FormSecret.of(form).token)
    try:
        choice = HeadChoice(chosen.key, sentence, layer, head)
        job = start_head(services, client, choice, visitor_id=visitor.id)
    except ForwardError as refusal:
        response: Response = render("heads/head_form.html", status=503, **page | {"problem": str(refusal)})
    else:
        response = RedirectResponse(url_for("show_head", key=job.key), 303)
    remember_visitor(request, response, visitor)
    return response


def _form(services: Services, checkpoint: str, sentence: str, layer: str, head: str) -> dict[str, Any]:
    listed = offered_checkpoints(services)
    chosen = next((each for each in listed if each.key == checkpoint), listed[0] if listed else None)
    example = EXAMPLES.get(chosen.key, (0, 0)) if chosen else (0, 0)
    none_runs = services.jobs.has_workers and not services.jobs.workers()
    picture = kept_head()
    return {
        "checkpoints": listed,
        "chosen": chosen,
        "sentence": sentence,
        "layer": layer or str(example[0]),
        "head": head or str(example[1]),
        "no_worker": no_worker() if none_runs else "",
        "ready": [_(text) for text in READY],
        "picture": picture,
        "small_head": Markup(picture.small_heads[picture.head]),  # noqa: S704 - of numbers alone
        "most": MAX_SENTENCE,
        "problem": "",
        "wrong": "",
        "form_secret": "",
    }


def _problem(chosen: ListedCheckpoint, sentence: str, layer: int | None, head: int | None) -> tuple[str, str] | None:
    if not sentence:
        return "sentence", _("Type a sentence: its tokens are the rows of every matrix.")
    if len(sentence) > MAX_SENTENCE:
        return "sentence", _("A sentence has at most {most} characters: leave some out.").format(most=MAX_SENTENCE)
    numbers = (
        ("layer", layer, chosen.layers, _("{model} has {count} layers: choose one from 0 to {last}.")),
        ("head", head, chosen.heads, _("A layer of {model} has {count} query heads: choose one from 0 to {last}.")),
    )
    for name, number, count, sentence_about in numbers:
        if number is None or number >= count:
            return name, sentence_about.format(model=chosen.name, count=count, last=count - 1)
    return None


# A head that waits, runs, or has run


@router.get("/heads/{key}")
@in_threads("run")
def show_head(request: Request, services: ServicesDep, key: str, skip: str = "", hint: str = "") -> Response:
    """A head with its progress, or with its stages; to htmx, which polls, only that part of the page."""
    job, skipped, token = find_head_job(services, key), _skipped(skip), request.cookies.get(VISITOR_COOKIE, "")
    if job.ending == "ready":
        level = _hint_level(hint)
        page = _page(services, key, token, skipped, query=request.query_params, hint=level, is_checked=bool(level))
        page["form_secret"] = "" if token else FormSecret.new().secret
    else:
        page = {
            "job": job,
            "real_head": None,
            "problem": _("This run was cancelled.") if job.ending == "cancelled" else job.problem,
            "why_it_waits": services.jobs.why_it_waits(job),
            "skipped": ",".join(skipped),
            "asks_ms": min(ASKS_MS + ASKS_LATER_MS * job.before, ASKS_AT_MOST_MS),
        }
    return render_page_or_fragment(request, "heads/head.html", "heads/_head.html", **page)


@router.post("/heads/{key}/stages/{stage}")
def press_in_stage(request: Request, services: ServicesDep, form: FormDep, key: str, stage: str) -> Response:
    """Mark what was typed in a stage, or skip the stage if `press` is "skip"."""
    _job, real_head = find_head(services, key)
    of_stage = next((each for each in _stages(services, real_head) if each.key == stage and each.variant), None)
    if of_stage is None or of_stage.variant is None:
        raise HTTPException(404)
    token, skipped, press = request.cookies.get(VISITOR_COOKIE, ""), _skipped(form.raw("skip")), form.raw("press")
    visitor, level = None, None
    if press == "skip":
        skipped = [*skipped, stage]
    else:
        visitor = _store_answers(request, services, form, of_stage, token)
        token, level = visitor.token, _hint_level(press)
    if is_htmx(request):
        page = _page(services, key, token, skipped, query=request.query_params, hint=level, is_checked=True)
        response: Response = render("heads/_stages.html", **page)
    else:
        query = {"skip": ",".join(skipped)} if skipped else {}
        query |= {"hint": str(level)} if level else {}
        response = RedirectResponse(f"{url_for('show_head', key=key, **query)}#stages", 303)
    if visitor:
        remember_visitor(request, response, visitor)
    return response


@router.post("/heads/{key}/cancel")
def cancel_head(services: ServicesDep, key: str) -> Response:
    """Cancel an unfinished head, and show its page."""
    services.jobs.rows.cancel(find_head_job(services, key))
    return RedirectResponse(url_for("show_head", key=key), 303)


@router.post("/heads/{key}/delete")
def delete_head(services: ServicesDep, key: str) -> Response:
    """Delete a head with its sentence now, even if it waits or runs, and lead to the form; 404 for an unknown key."""
    services.jobs.rows.delete(find_head_job(services, key))
    return RedirectResponse(url_for("show_head_form"), 303)


def _store_answers(request: Request, services: Services, form: FormDep, stage: HeadStage, token: str) -> Visitor:
    variant = stage.variant
    assert variant is not None  # noqa: S101 - a stage without boxes has no form
    sent = SentSheet(read_answers(form, variant))
    services.storage.charge_sheet(client_network(request), token, practice_sheet_key(variant), sent.answers, again=True)
    work = PracticeWork.find(services.store, token, variant) if token else None
    if work is None:
        visitor = services.store.add_visitor(FormSecret.of(form).token)
        work = PracticeWork.find(services.store, visitor.token, variant)
        assert work is not None  # noqa: S101 - the visitor has just been added
    perform(sheet_actions.check_if_new, variant, work, PRACTICE_RULES, sent)
    return work.owner


def _page(
    services: Services,
    key: str,
    token: str,
    skipped: Collection[str],
    *,
    query: Mapping[str, str],
    hint: HintLevel | None = None,
    is_checked: bool = False,
) -> dict[str, Any]:
    job, real_head = find_head(services, key)
    stages, wording = _stages(services, real_head), services.library.wording
    views = stage_views(real_head, stages, services.store, token, skipped, hint=hint, is_checked=is_checked)
    first = next(stage.variant for stage in stages if stage.variant)
    asked = next((view for view in views if view.state == "asked"), None)
    return {
        "job": job,
        "problem": "",
        "real_head": real_head,
        "stages": views,
        "variant": asked.variant if asked else None,
        "rows": asked.rows if asked else (),
        "focused": asked.focused if asked else "",
        "locked": False,
        "parts": part_lines(real_head),
        "coincidences": coincidences(_model_of(real_head), wording, first),
        "scale_sentence": _scale_sentence(real_head),
        "quantized": _quantized_sentence(real_head) if real_head.is_quantized else "",
        "facts": (
            (_("Device"), f"{real_head.device_name} ({real_head.device})"),
            (_("Number format"), real_head.dtype),
            (_("Time from input to output"), f"{format_measured(real_head.milliseconds)} ms"),
        ),
        "picture": picture_view(real_head, key, query),
        "skipped": ",".join(skipped),
        "form_secret": "",
        "notice": "",
    }


def _stages(services: Services, real_head: RealHead) -> tuple[HeadStage, ...]:
    wording, tokens = services.library.wording, len(real_head.tokens)
    return head_stages(_model_of(real_head), wording, tokens, real_head.head)


def _model_of(real_head: RealHead) -> Model:
    architecture = real_head.architecture
    config = json.dumps(dict(real_head.config), sort_keys=True, default=str)
    return Model(f"checkpoint-{real_head.checkpoint}"[:80], architecture.name, "", "", architecture, config)


def _quantized_sentence(real_head: RealHead) -> str:
    dtypes = {part.stored.dtype for part in real_head.parts}
    bits = sorted({dtype[1] for dtype in dtypes if re.match(r"Q\d", dtype)})
    sentence = _("quantized weights, run in {dtype}")
    if bits:
        sentence = _("{bits}-bit weights, run in {dtype}")
    return sentence.format(bits="/".join(bits), dtype=real_head.dtype)


def _scale_sentence(real_head: RealHead) -> str:
    architecture = real_head.architecture
    scale, d_h = architecture.score_scale, architecture.d_h
    if scale.kind == "inverse-sqrt":
        sentence = _(
            "Each query meets each key in a dot product, divided here by √{d_h} = {root}. Dividing changes no shape."
        )
        return sentence.format(d_h=d_h, root=f"{d_h**0.5:.4g}")
    if scale.kind == "none":
        return _("Each query meets each key in a dot product. This model doesn’t scale it.")
    sentence = _("Each query meets each key in a dot product, multiplied here by {scale}. That changes no shape.")
    return sentence.format(scale=f"{scale.factor:.4g}")


def _skipped(text: str) -> list[str]:
    return [key for key in text[:MAX_SKIPPED].split(",") if key]


def _hint_level(text: str) -> HintLevel | None:
    return next((level for level in HINT_LEVELS if str(level) == text), None)


# Its picture and files


@router.get("/heads/{key}/picture")
def show_picture(request: Request, services: ServicesDep, key: str) -> Response:
    """The picture of a head that has run, alone on its page; see `picture_view` for the query."""
    _job, real_head = find_head(services, key)
    return render("heads/picture.html", picture=picture_view(real_head, key, request.query_params))


@router.get("/heads/{key}/picture/rows/{row:int}")
def show_picture_row(request: Request, services: ServicesDep, key: str, row: int) -> Response:
    """What one query attends to, for a page that shows the picture; for an unknown row, a telling one."""
    _job, real_head = find_head(services, key)
    query = {**request.query_params, "row": str(row)}
    return render("heads/_picture_row.html", picture=picture_row(real_head, key, query))


@router.get("/heads/{key}/numbers.npz")
def download_head_numbers(services: ServicesDep, key: str) -> Response:
    """The head's arrays and token ids, as `save_npz` writes them, to download; 404 for a head without a result."""
    _job, real_head = find_head(services, key)
    file = io.BytesIO()
    save_npz(real_head, file)
    name = f"layer-{real_head.layer}-head-{real_head.head}.npz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(file.getvalue(), media_type="application/octet-stream", headers=headers)


@router.get("/heads/{key}/picture/{stage}.{kind}")
def download_picture(request: Request, services: ServicesDep, key: str, stage: str, kind: str) -> Response:
    """A stage of the picture as PNG or SVG, or the numbers as CSV; only the last row with `show_decode`."""
    _job, real_head = find_head(services, key)
    return picture_file(real_head, kind, stage, is_decode="show_decode" in request.query_params)


@router.get("/heads/{key}/notebook.ipynb")
def download_head_notebook(services: ServicesDep, key: str) -> Response:
    _job, head = find_head(services, key)
    choice = find_choice(services, key)
    if choice is None:  # it has been deleted meanwhile
        raise head_deleted()
    try:
        notebook = head_notebook(head, choice.sentence)
    except ForwardError as refusal:
        raise HTTPException(409, str(refusal)) from None
    name = f"layer-{head.layer}-head-{head.head}.ipynb"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(notebook, media_type=NOTEBOOK_TYPE, headers=headers)
