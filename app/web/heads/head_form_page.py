"""/heads: choose weights, a sentence, a layer and a head, and run that head for real."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.checkpoints.sources import ListedCheckpoint
from app.forward.head_run import HeadNotRun
from app.sheets.worksheet import MAX_SENTENCE
from app.store.jobs import no_worker
from app.translation import gettext as _
from app.web.heads.head_request import EXAMPLES, HeadChoice, find_choice, offered_checkpoints, start_head
from app.web.shared.cookies import VISITOR_COOKIE
from app.web.shared.forms import FormDep, whole_number
from app.web.shared.permissions import QueueClient, require_practice
from app.web.shared.rate_limits import BYTES_OF_RUN, bytes_of
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for
from app.web.shared.visitor import FormSecret, remember_visitor

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

MAX_PLACE = 9999  # for a typed layer or head


@dataclass(frozen=True)
class HeadFormPage:
    """Everything that templates/heads/head_form.html shows."""

    checkpoints: Annotated[tuple[ListedCheckpoint, ...], Doc("The weights that this server offers.")]
    chosen: Annotated[ListedCheckpoint | None, Doc("Those that are chosen; None if the server offers none.")]
    sentence: Annotated[str, Doc("What is in the field for the sentence.")]
    layer: Annotated[str, Doc("What is in the field for the layer.")]
    head: Annotated[str, Doc("What is in the field for the head.")]
    no_worker: Annotated[str, Doc("That no worker runs; empty if one does, or none is needed.")]
    most: Annotated[int, Doc("The most characters of a sentence.")] = MAX_SENTENCE
    problem: Annotated[str, Doc("Why nothing was run; empty before the form is sent.")] = ""
    wrong: Annotated[str, Doc("The name of the field that it is due to; empty if it is due to none.")] = ""
    form_secret: Annotated[str, Doc("What makes the visitor of a browser without a cookie.")] = ""


@router.get("/heads")
def show_head_form(
    request: Request, services: ServicesDep, checkpoint: str = "", layer: str = "", head: str = ""
) -> Response:
    """The form with an example sentence, and `checkpoint`, `layer` and `head` as given or by default."""
    sentence = _("The cat sat on the mat because it was tired.")
    if earlier := find_choice(services, request.query_params.get("from", "")):
        sentence, checkpoint = earlier.sentence, checkpoint or earlier.checkpoint
        layer, head = layer or str(earlier.layer), head or str(earlier.head)
    return render("heads/head_form.html", _form(services, checkpoint, sentence, layer, head))


@router.post("/heads")
@in_threads("run")
def post_head_form(request: Request, services: ServicesDep, form: FormDep, client: QueueClient) -> Response:
    """Queue the head, and redirect to its page (303); a new browser becomes a visitor."""
    sentence = form.typed_lines("sentence", MAX_SENTENCE + 1).strip()
    page = _form(services, form.raw("checkpoint"), sentence, form.raw("layer", 9), form.raw("head", 9))
    page = replace(page, form_secret=FormSecret.of(form).secret)
    if page.chosen is None:
        return render("heads/head_form.html", page, 422)
    if page.chosen.key != form.raw("checkpoint"):
        gone = _("This server no longer offers these weights: choose others.")
        return render("heads/head_form.html", replace(page, problem=gone, wrong="checkpoint"), 422)
    layer, head = (whole_number(text, MAX_PLACE) for text in (page.layer, page.head))
    if (problem := _problem(page.chosen, sentence, layer, head)) or layer is None or head is None:
        wrong, text = problem or ("layer", "")
        return render("heads/head_form.html", replace(page, problem=text, wrong=wrong), 422)
    services.storage.charge(client_network(request), BYTES_OF_RUN + bytes_of({"sentence": sentence}))
    token = request.cookies.get(VISITOR_COOKIE, "")
    visitor = services.store.find_visitor(token) if token else None
    visitor = visitor or services.store.add_visitor(FormSecret.of(form).token)
    try:
        choice = HeadChoice(page.chosen.key, sentence, layer, head)
        job = start_head(services, client, choice, visitor_id=visitor.id)
    except HeadNotRun as refusal:
        response: Response = render("heads/head_form.html", replace(page, problem=str(refusal)), 503)
    else:
        response = RedirectResponse(url_for("show_head", key=job.key), 303)
    remember_visitor(request, response, visitor)
    return response


def _form(services: Services, checkpoint: str, sentence: str, layer: str, head: str) -> HeadFormPage:
    listed = offered_checkpoints(services)
    chosen = next((each for each in listed if each.key == checkpoint), listed[0] if listed else None)
    example = EXAMPLES.get(chosen.key, (0, 0)) if chosen else (0, 0)
    none_runs = services.jobs.has_workers and not services.jobs.workers()
    return HeadFormPage(
        listed, chosen, sentence, layer or str(example[0]), head or str(example[1]), no_worker() if none_runs else ""
    )


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
