"""/heads/KEY: a head that waits, runs or has run; its stages open one by one as their shapes are answered."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.activities.rules import PRACTICE_RULES
from app.algebra.number_text import format_measured
from app.classes import sheet_actions
from app.classes.sheet_actions import SentSheet, perform
from app.classes.sheet_work import PracticeWork, practice_sheet_key
from app.forward.real_head import RealHead
from app.grading.hints import HINT_LEVELS, HintLevel
from app.sheets.head_stages import HeadStage, StageKey, head_stages
from app.sheets.variant import Variant
from app.sheets.worksheet import Model
from app.store import Visitor
from app.store.jobs import Job
from app.translation import gettext as _
from app.web.heads.head_request import find_head, find_head_job
from app.web.heads.picture_view import PictureView, picture_view
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep
from app.web.shared.permissions import require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_form import read_answers
from app.web.shared.sheet_view import RowView
from app.web.shared.stage_view import (
    Coincidences,
    PartLine,
    StageView,
    coincidences,
    part_lines,
    stage_views,
)
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, remember_visitor

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

# What the picture may show once each stage is open.
STEPS_OF_PICTURE: Mapping[StageKey, tuple[str, ...]] = {"scores": ("scores", "scale"), "softmax": ("mask", "softmax")}
# polling for progress: at first, more per head ahead, and at most
ASKS_MS, ASKS_LATER_MS, ASKS_AT_MOST_MS = 400, 50, 5000
MAX_SKIPPED = 200  # characters of the list of skipped stages


@dataclass(frozen=True)
class HeadPage:
    """Everything that templates/heads/head.html, _head.html and _stages.html show."""

    job: Annotated[Job, Doc("The head that waits, runs, or has run.")]
    problem: Annotated[str, Doc("Why there will be no result; empty if there is one or it is waited for.")] = ""
    why_it_waits: Annotated[str, Doc("That no worker is there to begin it; empty if one is.")] = ""
    real_head: Annotated[RealHead | None, Doc("What ran; None while there is no result.")] = None
    stages: Annotated[tuple[StageView, ...], Doc("The stages in order.")] = ()
    variant: Annotated[Variant | None, Doc("The sheet of the stage that is asked.")] = None
    rows: Annotated[tuple[RowView, ...], Doc("Its rows of boxes.")] = ()
    focused: Annotated[str, Doc("The name of the box that has the focus.")] = ""
    locked: Annotated[bool, Doc("Whether nothing can be typed there: never.")] = False
    parts: Annotated[tuple[PartLine, ...], Doc("What the file holds of each parameter.")] = ()
    coincidences: Annotated[Coincidences | None, Doc("What this number of tokens can't show.")] = None
    scale_sentence: Annotated[str, Doc("How the scores of this model are scaled.")] = ""
    quantized: Annotated[
        str, Doc("What the file holds in place of float32; empty for weights that are not quantized.")
    ] = ""
    facts: Annotated[tuple[tuple[str, str], ...], Doc("Device, number format and time, by name.")] = ()
    picture: Annotated[PictureView | None, Doc("As much of the picture as may be seen yet; None for nothing.")] = None
    picture_after: Annotated[str, Doc("The key of the stage below which the picture is.")] = ""
    skipped: Annotated[str, Doc("The stages that were skipped, for the next form.")] = ""
    asks_ms: Annotated[int, Doc("After how many milliseconds the page asks whether it has run.")] = ASKS_MS
    form_secret: Annotated[str, Doc("What makes the visitor of a browser without a cookie.")] = ""
    notice: Annotated[str, Doc("What came of the button that was pressed.")] = ""


@router.get("/heads/{key}")
@in_threads("run")
def show_head(request: Request, services: ServicesDep, key: str, skip: str = "", hint: str = "") -> Response:
    """A head with its progress, or with its stages; to htmx, which polls, only that part of the page."""
    job, skipped, token = find_head_job(services, key), _skipped(skip), request.cookies.get(VISITOR_COOKIE, "")
    if job.ending == "ready":
        level = _hint_level(hint)
        query = request.query_params
        page = _page(services, key, token, skipped, query=query, hint=level, is_checked=bool(level))
        if not token:
            page = replace(page, form_secret=FormSecret.new().secret)
    else:
        asks_ms = min(ASKS_MS + ASKS_LATER_MS * job.before, ASKS_AT_MOST_MS)
        problem = _("This run was cancelled.") if job.ending == "cancelled" else job.problem
        page = HeadPage(job, problem, services.jobs.why_it_waits(job), skipped=",".join(skipped), asks_ms=asks_ms)
    return render_page_or_fragment(request, "heads/head.html", "heads/_head.html", page)


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
        response: Response = render("heads/_stages.html", page)
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
) -> HeadPage:
    job, real_head = find_head(services, key)
    stages, wording = _stages(services, real_head), services.library.wording
    views = stage_views(real_head, stages, services.store, token, skipped, hint=hint, is_checked=is_checked)
    first = next(stage.variant for stage in stages if stage.variant)
    opened = [view.key for view in views if view.state == "open" and view.key in STEPS_OF_PICTURE]
    steps = [step for stage in opened for step in STEPS_OF_PICTURE[stage]]
    asked = next((view for view in views if view.state == "asked"), None)
    return HeadPage(
        job,
        real_head=real_head,
        stages=views,
        variant=asked.variant if asked else None,
        rows=asked.rows if asked else (),
        focused=asked.focused if asked else "",
        parts=part_lines(real_head),
        coincidences=coincidences(_model_of(real_head), wording, first),
        scale_sentence=_scale_sentence(real_head),
        quantized=_quantized_sentence(real_head) if real_head.is_quantized else "",
        facts=(
            (_("Device"), f"{real_head.device_name} ({real_head.device})"),
            (_("Number format"), real_head.dtype),
            (_("Time from input to output"), f"{format_measured(real_head.milliseconds)} ms"),
        ),
        picture=picture_view(real_head, key, query, steps) if steps else None,
        picture_after=opened[-1] if opened else "",
        skipped=",".join(skipped),
    )


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
    sentence = _("the file holds quantized weights, which are turned back into {dtype} for the run")
    if bits:
        sentence = _("the file holds {bits}-bit weights, which are turned back into {dtype} for the run")
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
