"""The form that imports a model from the Hub, a file or a text, on the models page and in the worksheet editor."""

from __future__ import annotations

from dataclasses import dataclass

from app.exchange.imported_models import import_from_hub, import_text, model_name_from_path
from app.machine.work_queue import Client
from app.sheets.worksheet import Model
from app.translation import gettext as _
from app.web.shared.forms import FormReader
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.services import Services

IMPORT_WAYS = ("hub", "file", "text")


@dataclass(frozen=True)
class ImportForm:
    """The import form as sent: the pressed button, the texts of its fields, and its file."""

    way: str = ""
    hub: str = ""
    text: str = ""
    name: str = ""
    file: bytes = b""
    file_name: str = ""


def read_import_form(form: FormReader) -> ImportForm:
    """The import form as sent; a pasted config may be as long as the whole request (MAX_BODY)."""
    way, hub, text, name = (form.raw(field, MAX_BODY) for field in ("way", "hub", "text", "name"))
    return ImportForm(way, hub, text, name, form.file, form.file_name)


def is_filled(typed: ImportForm, way: str) -> bool:
    """Whether the field for `way` is filled: 'hub' or 'text' with more than spaces, 'file' with any file."""
    return bool(typed.file_name if way == "file" else getattr(typed, way).strip())


def empty_field(way: str) -> str:
    """The sentence that asks to fill in the field for `way`."""
    fields = {"hub": _("Type the name of a model first, such as org/name."), "file": _("Choose a config.json first.")}
    return fields.get(way) or _("Paste a config.json first.")


def import_way(typed: ImportForm) -> str:
    """The way to import: the pressed button's, or the only filled field's."""
    if typed.way in IMPORT_WAYS[1:]:
        return typed.way
    filled = [way for way in IMPORT_WAYS if is_filled(typed, way)]
    return filled[0] if len(filled) == 1 else IMPORT_WAYS[0]


def import_model_by(services: Services, typed: ImportForm, way: str, client: Client) -> Model:
    """Import and store the form's model by `way`: 'hub', 'file', or the pasted text.

    Raises HubError or ConfigError.
    """
    if way == "hub":
        return import_from_hub(services.store, services.settings, typed.hub, typed.name, client)
    if way == "file":
        name = typed.name or model_name_from_path(typed.file_name)
        return import_text(services.store, typed.file, "file", name)
    return import_text(services.store, typed.text.strip(), "pasted", typed.name)
