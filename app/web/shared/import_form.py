"""The form that imports a model from the Hub, a file or a text, on the models page and in the worksheet editor."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from app.exchange.imported_models import import_from_hub, import_text, model_name_from_path
from app.machine.work_queue import Client
from app.models.config_fields import ConfigError
from app.sheets.worksheet import Model
from app.translation import gettext as _
from app.web.shared.forms import FormReader
from app.web.shared.rate_limits import BYTES_OF_MODEL
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services
from app.web.shared.urls import client_network

IMPORT_WAYS = ("hub", "file", "text")


@dataclass(frozen=True)
class ImportForm:
    """The import form as sent; `way` is the pressed button's, one of IMPORT_WAYS, and "hub" if none was."""

    way: str = "hub"
    hub: str = ""
    text: str = ""
    name: str = ""
    file: bytes = b""
    file_name: str = ""

    def is_filled(self, way: str) -> bool:
        return bool({"hub": self.hub.strip(), "file": self.file_name, "text": self.text.strip()}[way])


def read_import_form(form: FormReader, way: str, prefix: str = "") -> ImportForm:
    """The import form as sent; a pasted config may be as long as the whole request (MAX_BODY)."""
    hub, text, name = (form.raw(f"{prefix}{field}", MAX_BODY) for field in ("hub", "text", "name"))
    return ImportForm(way if way in IMPORT_WAYS else "hub", hub, text, name, form.file, form.file_name)


def import_model_by(request: Request, services: Services, typed: ImportForm, client: Client) -> Model:
    """Import and store the form's model by its way.

    Raises HubError or ConfigError.
    """
    if not typed.is_filled(typed.way):
        raise ConfigError(_empty_field(typed.way))
    services.storage.charge(client_network(request), BYTES_OF_MODEL)
    if typed.way == "hub":
        return import_from_hub(services.store, services.settings, typed.hub, typed.name, client)
    if typed.way == "file":
        name = typed.name or model_name_from_path(typed.file_name)
        return import_text(services.store, typed.file, "file", name)
    return import_text(services.store, typed.text.strip(), "pasted", typed.name)


def _empty_field(way: str) -> str:
    if way == "hub":
        return _("Type the name of a model first, such as org/name.")
    return _("Choose a config.json first.") if way == "file" else _("Paste a config.json first.")
