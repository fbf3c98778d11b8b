"""/models: the list of models, and the form that imports one from the Hub, a file or text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.algebra.number_text import format_number
from app.exchange import hub
from app.models.config_fields import ConfigError
from app.models.parameter_count import parameter_counts
from app.sheets.worksheet import Model
from app.web.shared.forms import FormDep
from app.web.shared.import_form import (
    IMPORT_WAYS,
    ImportForm,
    empty_field,
    import_model_by,
    import_way,
    is_filled,
    read_import_form,
)
from app.web.shared.permissions import QueueClient, require_practice
from app.web.shared.rate_limits import BYTES_OF_MODEL
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class ModelLine:
    """One model in the list: its d, H, G, d_h and L, and its number of parameters.

    `numbers` are the values to sort by, by the name of a sort.
    """

    model: Model
    sizes: tuple[str, ...]
    total: str
    numbers: Mapping[str, int]
    share: float = 0


@dataclass(frozen=True)
class ModelsPage:
    """Everything that templates/models/model_list.html shows."""

    lines: Annotated[tuple[ModelLine, ...], Doc("The models of the library, sorted.")]
    sort: Annotated[str, Doc("What they are sorted by, the largest first; empty for their names.")]
    typed: Annotated[ImportForm, Doc("What stands in the import form.")]
    problems: Annotated[Mapping[str, str], Doc("Why nothing was imported, beside the field that it is about.")]
    hub_host: Annotated[str, Doc("Where models are fetched from; empty where that is switched off.")]
    hub_off: Annotated[str, Doc("The sentence that stands there instead.")]


@router.get("/models")
def list_models(services: ServicesDep, sort: str = "") -> Response:
    """The models of the library, and the form to import one more."""
    return render("models/model_list.html", _models_page(services, ImportForm(), {}, sort))


@router.post("/models")
@in_threads("hub")
def import_model(request: Request, services: ServicesDep, client: QueueClient, form: FormDep) -> Response:
    """Import one model and redirect (303) to its page; on failure, show the form with the reason by the field."""
    typed = read_import_form(form)
    way = import_way(typed)
    problem, status = empty_field(way), 422
    if is_filled(typed, way):
        services.storage.charge(client_network(request), BYTES_OF_MODEL)
        try:
            return RedirectResponse(url_for("show_model", key=import_model_by(services, typed, way, client).key), 303)
        except hub.HubError as error:
            problem, status = str(error), error.status
        except ConfigError as error:
            problem = str(error)
    problems = {way: problem.encode(errors="replace").decode()}  # half of a surrogate pair from JSON can't be shown
    return render("models/model_list.html", _models_page(services, typed, problems), status)


def _models_page(services: Services, typed: ImportForm, problems: Mapping[str, str], sort: str = "") -> ModelsPage:
    lines = [_model_line(model) for model in services.library.models.values()]
    sort = sort if sort in lines[0].numbers else ""
    if sort:
        lines.sort(key=lambda line: -line.numbers[sort])
    totals = [line.numbers["parameters"] for line in lines]
    longest = math.log(2 * max(totals) / min(totals))
    return ModelsPage(
        lines=tuple(
            replace(line, share=100 * math.log(2 * total / min(totals)) / longest)
            for line, total in zip(lines, totals, strict=True)
        ),
        sort=sort,
        typed=replace(typed, file=b""),
        problems={way: problems.get(way, "") for way in IMPORT_WAYS},
        hub_host=hub.hub_host() if services.settings.hub else "",
        hub_off=str(hub.HubError("off")),
    )


def _model_line(model: Model) -> ModelLine:
    architecture = model.architecture
    sizes = {symbol: architecture.sizes[symbol] for symbol in ("d", "H", "G", "d_h")}
    stacks = ("L", "L_dec") if architecture.encoder_decoder else ("L",)
    layers = [architecture.all_sizes[symbol] for symbol in stacks]
    total = parameter_counts(architecture).total
    shown = ["–" if size is None else format_number(size) for size in sizes.values()]
    numbers = {symbol: size or 0 for symbol, size in sizes.items()} | {"L": sum(layers), "parameters": total}
    return ModelLine(model, (*shown, " + ".join(map(format_number, layers))), f"{total:,}", numbers)
