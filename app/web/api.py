"""The API, version 1: models, imports, worksheets, grading and the forward pass, for programs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from app.exchange.imported_models import import_config, import_from_hub, library_with_model, variant_from_code
from app.forward.lines import ForwardError
from app.forward.process import not_run
from app.forward.program import RUNNABLE_TOPICS
from app.forward.real_head import RealHead
from app.grading.grade import grade
from app.grading.hints import write_hint
from app.machine.work_queue import Client, QueueFullError
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import cannot_tell_apart
from app.models.architecture import SizeSource
from app.models.parameter_count import parameters_json
from app.shapes.table import Joint, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.code_text import code_shown, option_text
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import MAX_SENTENCE, Model
from app.store.jobs import JobKind, JobRefusedError
from app.topics.registry import TOPICS
from app.topics.shapes_json import shapes
from app.translation import gettext as _
from app.web.shared.head_request import HeadChoice, find_checkpoint, offered_checkpoints
from app.web.shared.permissions import QueueClient, require_practice
from app.web.shared.rate_limits import BYTES_OF_MODEL, BYTES_OF_RUN
from app.web.shared.run_jobs import check_asked, part_of_run, why_not_queued
from app.web.shared.services import Services, ServicesDep
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network

router = APIRouter(prefix="/api/v1", tags=["v1"], dependencies=[Depends(require_practice)])
# The HTTP status by the reason why a job wasn't done; otherwise 503, since a later request may succeed.
STATUS_OF_REASON: Mapping[str, int] = {"refused": 422, "too-long": 504, "error": 500}
API_WAIT_LIMIT_S = 120  # for a request waiting for its job, which takes a minute at most


class ModelEntry(BaseModel):
    """A model that worksheets can be made from."""

    key: str
    name: str
    about: str
    card: str = Field(description="Address of the model's card; empty where it was imported.")
    family: str = Field(description="model_type of its config.json.")
    sizes: dict[str, int | None] = Field(description="d, H, G, d_h, d_v, d_ff, V, L and C (null where none is stated).")


class ReadingEntry(BaseModel):
    """Where one size came from."""

    symbol: str
    value: int
    field: str | None = Field(description="The field of the config.json that states it, null where none does.")
    rule: str = Field(description="stated, or what stands in its place: a number, another size, a product or quotient.")


class ModelDetail(ModelEntry):
    """A model with everything read from its config.json."""

    readings: list[ReadingEntry] = Field(description="Every size, and where it came from.")
    notes: list[str] = Field(description="What was left out or taken as something else.")


class ImportRequest(BaseModel):
    """A model to import: a config.json as an object, or a name on the Hugging Face Hub."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any] | None = Field(None, description="A config.json.")
    hub: str | None = Field(None, description="A name on the Hub, such as org/name, in place of a config.")
    name: str = Field("", description="What sheets call it; by default the name on the Hub or in the config.")


class WorksheetEntry(BaseModel):
    """A worksheet in the list."""

    key: str
    title: str
    model: str
    topic: str
    tokens: int


class RowEntry(BaseModel):
    """One row to fill in."""

    key: str
    letter: str
    name: str
    note: str
    boxes: list[str] = Field(
        description="What answers are given by: {key}.rows, {key}.columns, {key}.dim0 to .dim3, {key}.count, "
        "{key}.choice, {key}.part1 to .part6."
    )
    points: int = Field(description="What each box is worth, or all boxes that are marked together; 1 by default.")
    options: dict[str, str] = Field(description="What is chosen from, by the number that is the answer.")
    between: list[str] = Field(description="The text around boxes that are marked together, if it is a line of code.")
    words: dict[str, list[str]] = Field(
        description="The words that a box takes, by its name, where it takes no number."
    )


class WitnessEntry(BaseModel):
    """What a program that runs to its end shows: numbers, or which cells are filled."""

    caption: str
    cells: list[list[str | bool]]


class ProgramEntry(BaseModel):
    """The program that a sheet is about."""

    lines: list[str]
    given: dict[str, str] = Field(description="The shape of each input and parameter, by its name.")
    stops: int = Field(description="The line that stopped the program, from 1; 0 if it ran to its end.")
    error: str = Field(description="What PyTorch said then; empty if it ran.")
    witness: WitnessEntry | None = Field(description="What its numbers show, if it ran to its end.")


class WorksheetDetail(WorksheetEntry):
    """A worksheet as students see it, without answers."""

    description: str
    task: str
    program: ProgramEntry | None = Field(description="The program with its bug, on a sheet about one.")
    assumptions: list[str]
    footnote: str | None
    introduction: str = Field(description="The author's own words above the description, in Markdown.")
    own_footnote: str = Field(description="The author's own words below the boxes, in Markdown.")
    questions: list[str] = Field(description="Questions to answer in words, which are not graded.")
    rows: list[RowEntry]
    cannot_tell_apart: list[tuple[str, str]] = Field(description="Misconceptions that look alike here, or like right.")


class VariantRequest(BaseModel):
    """A worksheet and the seed that draws its sizes."""

    model_config = ConfigDict(extra="forbid")

    worksheet: str
    seed: StrictInt = Field(description="The same seed always draws the same sheet, on screen, on paper and here.")
    model: str | None = Field(None, description="Draw for this model only.")


class VariantEntry(BaseModel):
    """A sheet without its answers."""

    code: str = Field(description="The sheet's code, which opens it at /v/{code} and names it in POST /grade.")
    worksheet: str
    seed: int
    model: str
    topic: str
    tokens: int
    decoder_tokens: int | None = Field(description="Number of decoder tokens; null on a sheet without a decoder.")
    title: str
    description: str
    task: str
    program: ProgramEntry | None = Field(description="The program with its bug, on a sheet about one.")
    assumptions: list[str]
    footnote: str | None
    introduction: str = Field(description="The author's own words above the description, in Markdown.")
    own_footnote: str = Field(description="The author's own words below the boxes, in Markdown.")
    rows: list[RowEntry]
    cannot_tell_apart: list[tuple[str, str]] = Field(description="Misconceptions that look alike here, or like right.")


class GradeRequest(BaseModel):
    """Texts by box, such as {"queries.rows": "100"}; a missing box is empty. The sheet is a worksheet or a code."""

    model_config = ConfigDict(extra="forbid")

    worksheet: str | None = None
    code: str | None = Field(None, description="The code of a sheet, in place of a worksheet.")
    seed: StrictInt | None = Field(None, description="The seed that drew the worksheet's sizes.")
    answers: dict[str, str]
    model: str | None = Field(None, description="Another model than the worksheet's own.")
    tokens: StrictInt | None = Field(None, description="Another number of tokens than the worksheet's own.")
    hint: Literal[1, 2, 3] | None = Field(None, description="Ask for a hint; a higher level goes further.")


class MarkEntry(BaseModel):
    """The mark of one box."""

    mark: str = Field(description="right, follows (consistent with an earlier mistake), wrong, unreadable or empty.")
    read_as: int | None = Field(description="The number the text was read as.")
    message: str
    repeats: str | None = Field(description="The box that the mistake costs, if this one is not worked out from it.")


class CauseEntry(BaseModel):
    """A cause of wrong boxes: one of them is lost, and the others follow."""

    costs: str
    others: list[str]
    misconception: str | None = Field(description="The key of a misconception, if the cause is one.")


class MismatchEntry(BaseModel):
    """The first two blanks, in order of computation, that should be equal but were typed differently."""

    at: str = Field(description="Key of the matrix whose equation makes them equal.")
    left: str
    right: str
    message: str


class DiagnosisEntry(BaseModel):
    """The misconception that explains the whole sheet's mistakes."""

    key: str
    message: str
    explains: list[str] = Field(description="The boxes it explains.")
    also: list[str] = Field(description="Further misconceptions held at the same time.")


class HintEntry(BaseModel):
    """A hint on what to look at; it never contains a right number of the sheet."""

    level: int
    message: str
    boxes: list[str] = Field(description="The boxes it points to, if it points to some.")


class MisconceptionEntry(BaseModel):
    """A misconception of the catalogue or of a worksheet, and the topics where it can show."""

    key: str
    topics: list[str]
    nudge: str


class GradeReport(BaseModel):
    """The marks of a sheet."""

    score: int = Field(description="The points of boxes that are right or consistent with an earlier mistake.")
    out_of: int
    marks: dict[str, MarkEntry]
    causes: list[CauseEntry]
    first_mismatch: MismatchEntry | None
    diagnosis: DiagnosisEntry | None
    opened: list[RowEntry] = Field([], description="Rows that open with the first check, such as that for a repair.")
    hint: HintEntry | None = Field(None, description="If asked for; null if all is right or no box holds a number.")


class ForwardRequest(BaseModel):
    """A head or layer to run: a model's key, or a config.json as an object."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(None, description="Key of a model, of the library or imported.")
    config: dict[str, Any] | None = Field(None, description="A config.json, in place of a model.")
    tokens: StrictInt = Field(100, description="Length of the input.")
    topic: str = Field(RUNNABLE_TOPICS[0], description=f"One of {', '.join(RUNNABLE_TOPICS)}.")
    decoder_tokens: StrictInt | None = Field(None, description="Of cross-attention; else as many as `tokens`.")
    head: StrictInt = Field(0, description="Which query head, counted from 0; of a layer, the one pictured.")
    device: str | None = Field(None, description="cpu, cuda, mps or meta; else the best there is.")
    dtype: str = Field("float32", description="float32, bfloat16 or float16.")
    seed: StrictInt = Field(0, description="Seed of the random input and weights.")


class CheckpointEntry(BaseModel):
    """Real weights whose heads can be run."""

    key: str
    name: str
    is_quantized: bool = Field(description="Whether the file holds fewer bits than the run computes with.")
    layers: int
    heads: int = Field(description="Query heads of a layer.")


class RealHeadRequest(BaseModel):
    """A head of real weights, and the text to run it over."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    checkpoint: str = Field(description="Key of the weights, as GET /api/v1/heads lists them.")
    text: str = Field(min_length=1, max_length=MAX_SENTENCE, description="What its tokens are made from.")
    layer: StrictInt = Field(0, ge=0, description="Which layer, counted from 0.")
    head: StrictInt = Field(0, ge=0, description="Which query head, counted from 0.")


@router.get("/models", name="api_list_models")
def list_models(services: ServicesDep) -> list[ModelEntry]:
    """Every model of the library, without imported ones, which are only found by key."""
    return [ModelEntry(**_model_entry(model)) for model in services.library.models.values()]


@router.post("/models", name="api_import_model")
@in_threads("hub")
def import_model(request: Request, services: ServicesDep, client: QueueClient, body: ImportRequest) -> ModelDetail:
    """Import a config.json, or a model of the Hub by its name."""
    services.storage.charge(client_network(request), BYTES_OF_MODEL)
    if body.hub is not None and body.config is None:
        return _model_detail(import_from_hub(services.store, services.settings, body.hub, body.name, client))
    if body.config is not None and body.hub is None:
        return _model_detail(import_config(services.store, body.config, "pasted", body.name))
    raise HTTPException(422, _("Give either “config” (the object of a config.json) or “hub” (such as org/name)."))


@router.get("/models/{key}", name="api_show_model")
def show_model(services: ServicesDep, key: str) -> ModelDetail:
    """One model, of the library or imported, with where each of its sizes came from."""
    return _model_detail(library_with_model(services.library, services.store, key).model(key))


@router.get("/models/{key}/parameters")
def count_parameters(services: ServicesDep, key: str) -> dict[str, Any]:
    """Every parameter tensor of a model, library or imported, and the sums, as `parameters --json` prints them."""
    return parameters_json(library_with_model(services.library, services.store, key).model(key).architecture)


@router.get("/models/{key}/shapes")
def show_shapes(
    services: ServicesDep, key: str, tokens: int = 100, decoder_tokens: int | None = None
) -> dict[str, Any]:
    """Every shape of a model for `tokens` and `decoder_tokens`, as `shapes --json` prints them."""
    model = library_with_model(services.library, services.store, key).model(key)
    return shapes(model.architecture, tokens, decoder_tokens)


@router.get("/worksheets")
def list_worksheets(services: ServicesDep) -> list[WorksheetEntry]:
    """Every worksheet of the library, in order: key, title, topic, default model (its key) and default number of
    tokens.
    """
    variants = {key: services.library.variant(key) for key in services.library.worksheets}
    return [
        WorksheetEntry(key=key, title=each.title, model=each.model.key, topic=each.worksheet.topic, tokens=each.tokens)
        for key, each in variants.items()
    ]


@router.get("/worksheets/{key}")
def show_worksheet(
    services: ServicesDep, key: str, model: str | None = None, tokens: int | None = None
) -> WorksheetDetail:
    """One worksheet without answers, with another model or number of tokens if given."""
    variant = library_with_model(services.library, services.store, model).variant(key, model, tokens)
    return WorksheetDetail(key=variant.worksheet.key, **variant_json(variant))


@router.post("/variants")
def draw_variant(services: ServicesDep, body: VariantRequest) -> VariantEntry:
    """The sheet, without answers, that `seed` draws from a worksheet, for `model` or a model chosen by the seed."""
    library = library_with_model(services.library, services.store, body.model)
    variant = library.seeded(body.worksheet, body.seed, body.model)
    return VariantEntry(seed=body.seed, **variant_json(variant))


@router.get("/misconceptions")
def list_misconceptions(services: ServicesDep) -> list[MisconceptionEntry]:
    """Every misconception that sheets are diagnosed by: its key, its topics and its first hint (`nudge`)."""
    say = services.library.wording.misconception
    entries = {
        each.key: MisconceptionEntry(key=each.key, topics=list(each.topics), nudge=say(each.key, "nudge"))
        for each in MISCONCEPTIONS
    }
    for sheet in services.library.worksheets.values():
        for each in sheet.misconceptions:
            entry = entries.setdefault(each.key, MisconceptionEntry(key=each.key, topics=[], nudge=each.question))
            entry.topics = [*dict.fromkeys((*entry.topics, sheet.topic))]
    return [*entries.values()]


@router.post("/grade", response_model_exclude_unset=True)
def grade_answers(services: ServicesDep, body: GradeRequest) -> GradeReport:
    """Grade answers, by blank, on the sheet of a worksheet or a code; nothing is stored.

    Raises AnswersError for an unknown box name, and what `_requested_variant` raises.
    """
    variant = _requested_variant(services, body)
    report = grade(variant, body.answers)
    fields = report.as_json()
    late_rows = [_row_json(variant, row) for row in variant.rows if row.opens_late]
    if report.has_readable_answer and late_rows:
        fields["opened"] = late_rows
    if body.hint is not None:
        hinted = write_hint(variant, report, body.hint)
        fields["hint"] = hinted and hinted.as_json()
    return GradeReport.model_validate(fields)


def _requested_variant(services: Services, body: GradeRequest) -> Variant:
    if (body.worksheet is None) == (body.code is None):
        raise HTTPException(422, _("Give either “worksheet” (its key) or “code” (of a sheet)."))
    if body.code is not None:
        if (body.seed, body.model, body.tokens) != (None, None, None):
            raise HTTPException(422, _("A code fixes all sizes of its sheet: leave out seed, model and tokens."))
        return variant_from_code(services.library, services.store, body.code)
    worksheet, library = body.worksheet or "", library_with_model(services.library, services.store, body.model)
    if body.seed is None:
        return library.variant(worksheet, body.model, body.tokens)
    if body.tokens is not None:
        raise HTTPException(422, _("A seed chooses the number of tokens: give either “seed” or “tokens”."))
    return library.seeded(worksheet, body.seed, body.model)


@router.post("/forward")
@in_threads("forward")
def run_forward(request: Request, services: ServicesDep, client: QueueClient, body: ForwardRequest) -> dict[str, Any]:
    """Run one head or layer in torch and report the shapes, time and memory observed; weights and input are random."""
    if (body.model is None) == (body.config is None):
        raise HTTPException(422, _("Give either “model” (its key) or “config” (the object of a config.json)."))
    try:
        services.storage.charge(client_network(request), BYTES_OF_RUN)
        asked = body.model_dump(exclude={"config"})
        asked["config"] = None if body.config is None else json.dumps(body.config)  # PostgreSQL's JSON has no Infinity
        check_asked(services, asked)
        result: dict[str, Any] = json.loads(_answer(services, "run", client, asked, part_of_run(services, asked)))
    except ForwardError as problem:
        raise HTTPException(STATUS_OF_REASON.get(problem.reason, 503), str(problem)) from None
    return result


@router.get("/heads", name="api_list_checkpoints")
def list_checkpoints(services: ServicesDep) -> list[CheckpointEntry]:
    """The weights that this server offers for running heads over a text."""
    offered = offered_checkpoints(services)
    return [CheckpointEntry.model_validate(listed, from_attributes=True) for listed in offered]


@router.post("/heads", name="api_run_real_head")
@in_threads("forward")
def run_head_of_checkpoint(
    request: Request, services: ServicesDep, client: QueueClient, body: RealHeadRequest
) -> dict[str, Any]:
    """Run one head of real weights over a text, and report its tokens, shapes, stored tensors and attention weights."""
    services.storage.charge(client_network(request), BYTES_OF_RUN)
    try:
        choice = HeadChoice(body.checkpoint, body.text, body.layer, body.head)
        key = find_checkpoint(services, body.checkpoint).key
        real_head = RealHead.from_bytes(_answer(services, "head", client, asdict(choice), key))
    except ForwardError as problem:
        raise HTTPException(STATUS_OF_REASON.get(problem.reason, 503), str(problem)) from None
    return real_head.as_dict() | {"weights": real_head.arrays["weights"].tolist()}


def _answer(services: Services, kind: JobKind, client: Client, arguments: Mapping[str, Any], part: str) -> bytes:
    try:
        with services.programs.taken(client):
            job = services.jobs.submit(kind, client, secrets.token_urlsafe(18), {}, arguments, part=part)
            try:
                job = services.jobs.wait(job, API_WAIT_LIMIT_S) or job
                if job.ending == "ready":
                    return services.jobs.rows.result(job)
            finally:
                services.jobs.rows.delete(job)
    except QueueFullError:
        raise HTTPException(503, str(not_run("busy"))) from None
    except JobRefusedError as refusal:
        raise HTTPException(503, why_not_queued(refusal)) from None
    problem = job.problem or services.jobs.why_it_waits(job) or str(not_run("busy"))
    raise HTTPException(STATUS_OF_REASON.get(job.reason, 503), problem)


def _model_entry(model: Model) -> dict[str, Any]:
    architecture = model.architecture
    return {"key": model.key, "name": model.name, "about": model.about, "card": model.card,
            "family": architecture.family, "sizes": architecture.sizes}  # fmt: skip


def _model_detail(model: Model) -> ModelDetail:
    readings = [
        ReadingEntry(symbol=r.symbol, value=r.value, field=r.field, rule=_rule(r, model.architecture.family))
        for r in model.architecture.size_sources
    ]
    return ModelDetail(**_model_entry(model), readings=readings, notes=list(map(str, model.architecture.notes)))


def _rule(source: SizeSource, family: str) -> str:
    if source.is_default:
        return f"default of {family}"
    return f"null: {source.rule}" if source.is_null else source.rule or "stated"


# A sheet as JSON


def variant_json(variant: Variant) -> dict[str, Any]:
    """A sheet without its answers: code, keys, tokens, prose, rows, and misconceptions that it can't distinguish."""
    sheet = variant.worksheet
    return {
        "code": variant.code,
        "worksheet": sheet.key,
        "model": variant.model.key,
        "topic": sheet.topic,
        "tokens": variant.tokens,
        "decoder_tokens": variant.sizes["M"] if TOPICS[sheet.topic].reads_two_texts else None,
        "title": variant.title,
        "description": prose.description(variant),
        "task": prose.task(variant),
        "program": _program_json(variant),
        "assumptions": list(prose.assumptions(variant)),
        "footnote": prose.footnote(variant),
        "introduction": sheet.introduction,
        "own_footnote": sheet.footnote,
        "rows": [_row_json(variant, row) for row in variant.rows if not row.opens_late],
        "questions": [question.text for question in sheet.questions],
        "cannot_tell_apart": [[key, other or "right"] for key, other in cannot_tell_apart(variant.problem)],
    }


def _row_json(variant: Variant, row: Row) -> dict[str, Any]:
    asked = row.asked
    options = asked.options if isinstance(asked, OneOf) and not isinstance(asked, WrittenPattern) else ()
    boxes = list(map(str, row.blanks))
    parts = zip(boxes, asked.parts, strict=True) if isinstance(asked, Joint) else ()
    points = 1 if row.points is None else row.points
    return {
        "key": row.key, "letter": row.letter, "name": row.name, "note": row.note, "code": row.code,
        "boxes": boxes, "points": points,
        "options": {str(number): option_text(variant, row.key, number) for number in options},
        "between": asked.between if isinstance(asked, Joint) else (),
        "words": {box: part.words for box, part in parts if part.words},
    }  # fmt: skip


def _program_json(variant: Variant) -> dict[str, Any] | None:
    if (code := code_shown(variant)) is None:
        return None
    witness = code.witness and {"caption": code.witness.caption, "cells": code.witness.cells}
    given = dict(code.given)
    return {"lines": code.lines, "given": given, "stops": code.stops, "error": code.error,
            "witness": witness}  # fmt: skip
