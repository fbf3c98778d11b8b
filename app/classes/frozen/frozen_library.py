"""The library as an activity has it: its frozen worksheets, models and wording, whatever happened to them since.

A revision names snapshots of its wording and of every model that its sheets may have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from app.bugs.bank import BUGS, freeze_bug, frozen_bug
from app.models.read_config import read_config
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.sheets.worksheet import WORKSHEETS, Model, Worksheet, stored_fields
from app.store import Activity, Content, FrozenTicket, FrozenWorksheet, Policies, Snapshot, Store

# a few of each are in use at a time; a library caches each of its sheets
LIBRARIES_REMEMBERED, WORDINGS_REMEMBERED = 32, 8


@dataclass(frozen=True)
class _Source:
    """What a library is made of; equal ones make equal libraries in the same process."""

    library_id: int
    store_id: int
    fingerprint: str
    library: Library = field(compare=False)  # a cache that holds these objects keeps their ids from being reused
    store: Store = field(compare=False)
    content: Content = field(compare=False)


@dataclass(frozen=True)
class _WordingSource:
    """A frozen wording, and the current one for sentences that it lacks."""

    today_id: int
    hash: str
    today: Wording = field(compare=False)
    text: str = field(compare=False)


def library_of(library: Library, store: Store, content: Content) -> Library:
    """The library of an activity with this content: its frozen worksheets, models and wording."""
    return _library_of(_Source(id(library), id(store), content.fingerprint, library, store, content))


@lru_cache(LIBRARIES_REMEMBERED)
def _library_of(source: _Source) -> Library:
    return make_library(source.library, source.store, source.content)


def make_library(library: Library, store: Store, content: Content) -> Library:
    """Like `library_of`, but without a cache.

    Raises ConfigError for a frozen config that can no longer be read.
    """
    texts = store.activities.snapshots((content.wording, *content.models.values()))
    models = {key: _frozen_model(library, key, texts[hash_]) for key, hash_ in content.models.items() if hash_ in texts}
    worksheets = {sheet.key: sheet for sheet in map(worksheet_of, content.items)}
    wording = _frozen_wording(library.wording, content.wording, texts.get(content.wording))
    is_as_today = (
        wording is library.wording
        and all(library.models.get(key) is model for key, model in models.items())
        and all(library.find_worksheet(key) == sheet for key, sheet in worksheets.items())
    )
    return library if is_as_today else Library(worksheets, {**library.models, **models}, wording)


def worksheet_of(item: FrozenWorksheet, **changed: Any) -> Worksheet:
    """A worksheet as it was frozen, except for the `changed` fields."""
    values = {**item.worksheet, **changed}
    if values.get("bug") in BUGS and values.get("frozen_bug") == freeze_bug(BUGS[values["bug"]]):
        del values["frozen_bug"]
    return WORKSHEETS.validate_python(stored_fields(values), extra="ignore")


def frozen_form(worksheet: Worksheet) -> FrozenWorksheet:
    """A worksheet as it is stored: its fields as JSON values, tuples as lists, and its current bug."""
    bug = freeze_bug(worksheet.bug_row) if worksheet.bug_row else ""
    return FrozenWorksheet(WORKSHEETS.dump_python(worksheet, mode="json") | {"frozen_bug": bug})


def worksheet_with_bug(worksheet: Worksheet, frozen: str) -> Worksheet:
    """A worksheet about the bug that was dealt to a student, as it was then."""
    bug = frozen_bug(frozen).key
    is_as_today = bug in BUGS and frozen == freeze_bug(BUGS[bug])
    return worksheet.with_bug(bug, "" if is_as_today else frozen)


def chosen_form(worksheet: Worksheet, chosen: Mapping[str, Any]) -> FrozenWorksheet:
    """A worksheet as it is stored, with the chosen model and number of tokens, if any."""
    frozen = frozen_form(worksheet)
    return FrozenWorksheet({**frozen.worksheet, "chosen": dict(chosen)}) if chosen else frozen


def frozen_worksheet(item: FrozenWorksheet, policies: Policies) -> Worksheet:
    """A worksheet as it was frozen, with the marking in `policies`."""
    return worksheet_of(item, marking=policies.marking)


def frozen_ticket(content: Content) -> Ticket | None:
    """The exit ticket of a content, as tickets' files would give it, or None."""
    return Ticket.model_validate(content.ticket.ticket, extra="ignore") if content.ticket else None


def freeze_ticket(ticket: Ticket) -> FrozenTicket:
    """An exit ticket as it is stored; `frozen_ticket` reads it back."""
    return FrozenTicket({"key": ticket.key, **ticket.settings})


def model_snapshot(model: Model) -> Snapshot:
    """Everything that a sheet needs of a model."""
    values = {"key": model.key, "name": model.name, "about": model.about, "card": model.card, "config": model.config}
    return Snapshot("model", json.dumps(values | ({"report": model.report} if model.report else {})))


def freeze_model(library: Library, store: Store, activity: Activity, key: str) -> None:
    """Add a model to the activity's stored revision, because a sheet code has given it to somebody."""
    if key in activity.content.models or key not in library.models:
        return
    snapshot = model_snapshot(library.models[key])
    with store.transaction():
        content = store.activities.content(activity.id, activity.revision)
        if content and key not in content.models:
            completed = replace(content, models={**content.models, key: snapshot.hash}, snapshots=(snapshot,))
            store.activities.complete(activity.id, activity.revision, completed)


def _frozen_model(library: Library, key: str, content: str) -> Model:
    today = library.models.get(key)
    if today and model_snapshot(today).content == content:
        return today
    values: Mapping[str, str] = json.loads(content)
    architecture = read_config(values["config"], values["name"])
    texts = (values["key"], values["name"], values["about"], values["card"])
    return Model(*texts, architecture, values["config"], values.get("report", ""))


def _frozen_wording(today: Wording, wording_hash: str, text: str | None) -> Wording:
    if text is None or text == today.text:
        return today
    return _wording_of(_WordingSource(id(today), wording_hash, today, text))


@lru_cache(WORDINGS_REMEMBERED)
def _wording_of(source: _WordingSource) -> Wording:
    return Wording.frozen(source.text, source.today)
