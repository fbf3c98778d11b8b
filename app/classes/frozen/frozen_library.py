"""The worksheets and models of an activity as they were frozen, whatever happened to the library since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from app.bugs.bank import BUGS, freeze_bug, frozen_bug
from app.models.read_config import read_config
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.worksheet import WITHOUT_TOPIC, WORKSHEETS, Model, Worksheet, WorksheetError, stored_fields
from app.store import Activity, Content, FrozenTicket, FrozenWorksheet, Policies, Store
from app.topics.registry import TOPICS
from app.translation import gettext as _

LIBRARIES_REMEMBERED = 32  # a few are in use at a time; a library caches each of its sheets


@dataclass(frozen=True)
class _Source:
    """What a library is made of; equal ones make equal libraries in the same process."""

    library_id: int
    fingerprint: str
    library: Library = field(compare=False)  # a cache that holds the object keeps its id from being reused
    content: Content = field(compare=False)


def library_of(library: Library, content: Content) -> Library:
    """The worksheets and models of an activity with this content, and the library's other models and wording."""
    return _library_of(_Source(id(library), content.fingerprint, library, content))


@lru_cache(LIBRARIES_REMEMBERED)
def _library_of(source: _Source) -> Library:
    return make_library(source.library, source.content)


def make_library(library: Library, content: Content) -> Library:
    """Like `library_of`, but without a cache.

    Raises ConfigError for a frozen config that can no longer be read.
    """
    models = {key: _frozen_model(library, key, values) for key, values in content.models.items()}
    worksheets = {sheet.key: sheet for sheet in map(worksheet_of, content.items)}
    is_as_today = all(library.models.get(key) is model for key, model in models.items()) and all(
        library.find_worksheet(key) == sheet for key, sheet in worksheets.items()
    )
    return library if is_as_today else Library(worksheets, {**library.models, **models}, library.wording)


def worksheet_of(item: FrozenWorksheet, **changed: Any) -> Worksheet:
    """A worksheet as it was frozen, except for the `changed` fields."""
    values = {**item.worksheet, **changed}
    if values["topic"] not in TOPICS:
        values |= WITHOUT_TOPIC
    if values.get("bug") in BUGS and values.get("frozen_bug") == freeze_bug(BUGS[values["bug"]]):
        del values["frozen_bug"]
    try:
        return WORKSHEETS.validate_python(stored_fields(values), extra="ignore")
    except ValidationError:
        problem = _("The worksheet “{title}” was stored by another version of this app and can’t be read by this one.")
        raise WorksheetError(problem.format(title=item.title)) from None


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


def model_data(model: Model) -> dict[str, str]:
    """Everything that a sheet needs of a model besides its key."""
    names = ("name", "about", "card", "config", "report")
    return {name: getattr(model, name) for name in names}


def freeze_model(library: Library, store: Store, activity: Activity, key: str) -> None:
    """Add a model to the activity's stored revision, because a sheet code has given it to somebody."""
    if key in activity.content.models or key not in library.models:
        return
    with store.transaction():
        content = store.activities.content(activity.id, activity.revision)
        if content and key not in content.models:
            models = {**content.models, key: model_data(library.models[key])}
            store.activities.complete(activity.id, activity.revision, replace(content, models=models))


def _frozen_model(library: Library, key: str, values: Mapping[str, str]) -> Model:
    today = library.models.get(key)
    if today and model_data(today) == values:
        return today
    return Model(key=key, architecture=read_config(values["config"], values["name"]), **values)
