"""/models: the list of models, and the form that imports one more from the Hub, a file or text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData, UploadFile

from app.algebra.number_text import format_number
from app.exchange import hub
from app.exchange.imported_models import import_from_hub, import_text, model_name_from_path
from app.models.config_fields import ConfigError
from app.models.parameter_count import parameter_counts
from app.sheets.worksheet import Model
from app.web.shared.rate_limits import BYTES_OF_MODEL
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render
from app.web.shared.urls import client_network, url_for

router = APIRouter(include_in_schema=False)

WAYS = ("hub", "file", "text")


@dataclass(frozen=True)
class ImportForm:
    """The import form as sent: the button that was pressed, the texts of its fields, and the file that came along."""

    way: str = ""
    hub: str = ""
    text: str = ""
    name: str = ""
    file: bytes = b""
    file_name: str = ""


@dataclass(frozen=True)
class ModelLine:
    """One model in the list: its d, H, G, d_h and L, and how many parameters it has."""

    model: Model
    sizes: tuple[str, ...]
    total: str


@dataclass(frozen=True)
class ModelsPage:
    """Everything that templates/models/model_list.html shows."""

    lines: Annotated[tuple[ModelLine, ...], Doc("The models of the library.")]
    typed: Annotated[ImportForm, Doc("What stands in the import form.")]
    problems: Annotated[Mapping[str, str], Doc("Why nothing was imported, beside the field that it is about.")]
    hub_host: Annotated[str, Doc("Where models are fetched from; empty where that is switched off.")]
    hub_off: Annotated[str, Doc("The sentence that stands there instead.")]


async def read_import_form(request: Request) -> ImportForm:
    """The import form as sent, with name and content of its file; a field that was not sent is empty.

    A pasted config may be as long as the whole request (MAX_BODY).
    """
    async with request.form(max_part_size=MAX_BODY) as form:
        upload = form.get("file")
        chosen = upload if isinstance(upload, UploadFile) and upload.filename else None
        return ImportForm(
            _text(form, "way"),
            _text(form, "hub"),
            _text(form, "text"),
            _text(form, "name"),
            file=await chosen.read() if chosen else b"",
            file_name=(chosen.filename or "") if chosen else "",
        )


@router.get("/models")
def list_models(services: ServicesDep) -> Response:
    """The models of the library, and the form to import one more."""
    return render("models/model_list.html", _models_page(services, ImportForm(), {}))


@router.post("/models")
def import_model(
    request: Request, services: ServicesDep, typed: Annotated[ImportForm, Depends(read_import_form)]
) -> Response:
    """Import one model and redirect to its page; where that fails, show the form again with a sentence by the field.

    Everything typed is still there, but for the file. 422 for an empty field or an unreadable config, else the status
    of the HubError.
    """
    way = _import_way(typed)
    problem, status = services.library.wording.say("import", f"{way}-empty"), 422
    if _is_filled(typed, way):
        services.storage.charge(client_network(request), BYTES_OF_MODEL)
        try:
            return RedirectResponse(url_for("show_model", key=_import_model(services, typed, way).key), 303)
        except hub.HubError as error:
            problem, status = str(error), error.status
        except ConfigError as error:
            problem = str(error)
    problems = {way: problem.encode(errors="replace").decode()}  # half a character from JSON cannot be shown
    return render("models/model_list.html", _models_page(services, typed, problems), status)


def _text(form: FormData, field: str) -> str:
    """A field as it was sent; empty where it was not, or where it is a file."""
    value = form.get(field)
    return value if isinstance(value, str) else ""


def _is_filled(typed: ImportForm, way: str) -> bool:
    """Whether the field of a way to import, 'hub', 'file' or 'text', holds anything."""
    return bool(typed.file_name if way == "file" else getattr(typed, way).strip())


def _import_way(typed: ImportForm) -> str:
    """The way to import: 'file' or 'text' where that button was pressed; else that of the one field that is filled.

    'hub' where no field or several are filled. Its button says little, because Enter in any field presses it too.
    """
    if typed.way in WAYS[1:]:
        return typed.way
    filled = [way for way in WAYS if _is_filled(typed, way)]
    return filled[0] if len(filled) == 1 else WAYS[0]


def _import_model(services: Services, typed: ImportForm, way: str) -> Model:
    """Import the model of the form by that way: 'hub', 'file', or else the pasted text.

    It is called by the name that was typed, else by that of the file, the Hub or the config. Raises HubError or
    ConfigError with a sentence for people.
    """
    if way == "hub":
        return import_from_hub(services.store, services.library.wording, services.settings, typed.hub, typed.name)
    if way == "file":
        return import_text(
            services.store,
            services.library.wording,
            typed.file,
            "file",
            typed.name or model_name_from_path(typed.file_name),
        )
    return import_text(services.store, services.library.wording, typed.text.strip(), "pasted", typed.name)


def _models_page(services: Services, typed: ImportForm, problems: Mapping[str, str]) -> ModelsPage:
    """The page with every model of the library and the form as typed, without its file.

    `problems` holds sentences by way of import, 'hub', 'file' or 'text'; the others have none.
    """
    return ModelsPage(
        lines=tuple(_model_line(model) for model in services.library.models.values()),
        typed=replace(typed, file=b""),
        problems={way: problems.get(way, "") for way in WAYS},
        hub_host=hub.hub_host() if services.settings.hub else "",
        hub_off=str(hub.HubError("off")),
    )


def _model_line(model: Model) -> ModelLine:
    """The line of a model; a size that it does not have is a dash, and L is a sum where there are two stacks."""
    sizes = model.architecture.sizes
    shown = [_size_text(sizes[symbol]) for symbol in ("d", "H", "G", "d_h")]
    shown.append(" + ".join(format_number(model.architecture.all_sizes[symbol]) for symbol in _layer_symbols(model)))
    return ModelLine(model, tuple(shown), f"{parameter_counts(model.architecture).total:,}")


def _layer_symbols(model: Model) -> tuple[str, ...]:
    """The symbols that count layers: L, and L_dec beside it for the decoder of an encoder-decoder."""
    return ("L", "L_dec") if model.architecture.encoder_decoder else ("L",)


def _size_text(size: int | None) -> str:
    return "–" if size is None else format_number(size)
