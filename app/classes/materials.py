"""Worksheets and exit tickets that teachers wrote, read from the database like the library's own, with models."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count
from typing import Any

from app.exchange.imported_models import library_with_model
from app.models.config_fields import ConfigError
from app.sheets.authoring.worksheet_settings import SettingError, read_settings
from app.sheets.exit_tickets import Ticket, ticket_of_settings
from app.sheets.library import Library
from app.sheets.worksheet import (
    MAX_NAMES,
    MAX_SHORT_TEXT,
    Model,
    Worksheet,
    WorksheetError,
    is_in_symbols,
    stored_fields,
)
from app.store import (
    AuditAction,
    Content,
    Course,
    FrozenTicket,
    FrozenWorksheet,
    Material,
    MaterialKind,
    MaterialSave,
    Store,
    Teacher,
)
from app.store.materials import models_named
from app.translation import gettext as _

READ_WORKSHEETS_REMEMBERED = 1000


@dataclass(frozen=True)
class OwnMaterials:
    """The library and the exit tickets, with what teachers wrote.

    `by_key` has the usable materials, by their keys in the library or the tickets.
    """

    library: Library
    tickets: Mapping[str, Ticket]
    by_key: Mapping[str, Material]
    unusable: Mapping[int, str]


def materials_for_course(
    library: Library, tickets: Mapping[str, Ticket], store: Store, course: Course, teacher: Teacher
) -> OwnMaterials:
    """The library and tickets with the usable materials of the course and the teacher, and why others aren't usable."""
    return with_materials(library, tickets, store, store.materials.usable_in(course, teacher))


def library_with_materials(library: Library, store: Store, materials: Iterable[Material]) -> Library:
    """The library with the worksheets among `materials` and their models; unusable ones and tickets are left out."""
    return with_materials(library, {}, store, materials).library


def with_materials(
    library: Library, tickets: Mapping[str, Ticket], store: Store, materials: Iterable[Material]
) -> OwnMaterials:
    """The library and the tickets with these worksheets and exit tickets, and the imported models that they name."""
    by_key, unusable, all_tickets = dict[str, Material](), dict[int, str](), dict(tickets)
    sheets, models = list[Worksheet](), dict[str, Model]()
    for material in materials:
        try:
            if material.kind == "ticket":
                all_tickets[material.key] = ticket_of_material(material)
            else:
                with_models = library_with_models_of(library, store, material.content)
                sheets.append(worksheet_of_material(with_models, material))
                models |= with_models.models
        except (WorksheetError, ConfigError) as error:
            unusable[material.id] = str(error)
        else:
            by_key[material.key] = material
    return OwnMaterials(library.with_added(sheets, models.values()), all_tickets, by_key, unusable)


def worksheet_of_material(library: Library, material: Material) -> Worksheet:
    """The worksheet in a material, under the material's key; raises WorksheetError for invalid settings."""
    models = tuple(library.models[key].config for key in models_named(material.content) if key in library.models)
    try:
        return _read(_Reading(material.key, json.dumps(material.content), models, id(library.wording), library))
    except SettingError as error:
        if error.setting == "model":  # its sentence lists every model
            raise WorksheetError(_("Its model is no longer here. Edit it to choose another one.")) from None
        raise


@dataclass(frozen=True)
class _Reading:
    """A worksheet's key, its settings as JSON, and its models' configs; equal ones are read once."""

    key: str
    content: str
    models: tuple[str, ...]
    wording_id: int
    library: Library = field(compare=False)


@lru_cache(READ_WORKSHEETS_REMEMBERED)
def _read(reading: _Reading) -> Worksheet:
    settings = stored_fields(json.loads(reading.content))
    return read_settings(reading.key, settings, reading.library.models, reading.library.wording)


def library_with_models_of(library: Library, store: Store, content: Mapping[str, Any]) -> Library:
    """The library with the imported models in a worksheet's settings, at most MAX_NAMES."""
    for key in models_named(content)[:MAX_NAMES]:
        library = library_with_model(library, store, key)
    return library


def ticket_of_material(material: Material) -> Ticket:
    """The exit ticket in a material, under the material's key; raises SettingError for invalid settings."""
    return ticket_of_settings(material.key, material.content)


def add_material(
    store: Store, kind: MaterialKind, owner: Course | Teacher, teacher: Teacher, settings: Mapping[str, Any]
) -> Material:
    """Add a material of a course or a teacher, in one transaction with an entry in the audit log."""
    with store.transaction():
        material = store.materials.add(kind, owner, teacher, settings)
        store.audit_log.record(teacher, AuditAction.MATERIAL_CREATED, material)
    return material


def save_material(
    store: Store, material: Material, based_on: int, settings: Mapping[str, Any], teacher: Teacher
) -> MaterialSave:
    """Save a material as `Materials.save` does; a new version gets an entry in the audit log in the same
    transaction.
    """
    with store.transaction():
        save = store.materials.save(material, based_on, settings, teacher)
        if save.has_new_version:
            store.audit_log.record(teacher, AuditAction.MATERIAL_SAVED, material, str(save.material.version))
    return save


def settings_to_copy(
    library: Library, worksheet: str, model: str = "", tokens: int | None = None, decoder_tokens: int | None = None
) -> dict[str, Any]:
    """The settings of a library worksheet with this model and these lengths.

    Raises WorksheetError, TokensError and TopicError as `Library.variant` does.
    """
    variant = library.variant(worksheet, model or None, tokens, decoder_tokens)
    sheet = variant.worksheet
    shown = replace(sheet, tokens=variant.tokens, decoder_tokens=variant.decoder_tokens or sheet.decoder_tokens)
    # The worksheet's other models needn't have symbols, or show a dealt bug.
    if variant.model.key == sheet.model and not (is_in_symbols(worksheet) or sheet.dealt_bug):
        return shown.settings
    rows = sheet.rows_asked(variant.table)
    return replace(shown, title=variant.title, model=variant.model.key, models=(), rows=rows).settings


def title_of_copy(title: str, taken: Collection[str]) -> str:
    """A title for a copy: `title`, numbered from 2 if it is in `taken`.

    Example: title_of_copy("One head", {"One head", "One head 2"}) == "One head 3"
    """
    titles = chain([title], (f"{title[: MAX_SHORT_TEXT - 4]} {number}" for number in count(2)))
    return next(each for each in titles if each not in taken)


def copy_materials(store: Store, course: Course, copy: Course, teacher: Teacher) -> dict[str, str]:
    """Copy the newest version of every worksheet and exit ticket of a course, except removed ones, into
    another course.
    """
    return {
        material.key: store.materials.add(material.kind, copy, teacher, material.content).key
        for material in store.materials.of_course(course)
    }


def with_new_keys(content: Content, keys: Mapping[str, str]) -> Content:
    """An activity's content with new keys, from `keys`, for its worksheets and ticket."""
    items = tuple(
        FrozenWorksheet({**item.worksheet, "key": keys[item.key]}) if item.key in keys else item
        for item in content.items
    )
    ticket = content.ticket
    if ticket and ticket.key in keys:
        ticket = FrozenTicket({**ticket.ticket, "key": keys[ticket.key]})
    return replace(content, items=items, ticket=ticket)
