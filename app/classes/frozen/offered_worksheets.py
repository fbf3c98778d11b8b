"""What an activity's form offers: the current worksheets and exit tickets, and those that the activity has.

Students of an open activity keep what they have, whatever happened to the files: worksheets with their models, and the
exit ticket. Only new worksheets are frozen as they are now, unless the teacher asks for corrected
ones. A draft, which nobody has seen, is frozen as the files are now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.classes.frozen.frozen_library import frozen_ticket, library_of, worksheet_of
from app.classes.frozen.given_sheets import given_variant, variant_of
from app.classes.student_sheet import ChosenWorksheet, choice_of, freeze, item_sizes, models_of
from app.sheets.exit_tickets import Ticket
from app.sheets.frozen_sheet import asked_data
from app.sheets.library import Library
from app.sheets.worksheet import Worksheet
from app.store import Activity, Content, FrozenWorksheet, Store
from app.topics.registry import NO_TOPIC

Models = Mapping[str, Mapping[str, str]]  # each model's texts, by its key


@dataclass(frozen=True)
class Offer:
    """The library and the exit tickets that an activity's content is frozen from.

    `activity` is None for a new one.
    """

    library: Library
    tickets: Mapping[str, Ticket]
    activity: Activity | None = None
    corrected: tuple[Worksheet, ...] = ()
    topic_editions: Mapping[str, str] = field(default_factory=dict)
    ticket_corrected: bool = False

    def freeze(self, worksheets: Sequence[ChosenWorksheet | str], ticket: str) -> Content:
        """The activity's content with these worksheets, and the exit ticket with key `ticket`, if it exists."""
        content = freeze(self.library, worksheets, self.tickets.get(ticket))
        if self.activity is None:
            return content
        before = self.activity.content
        return replace(content, items=tuple(self._as_stored(item, content, before) for item in content.items))

    def _as_stored(self, item: FrozenWorksheet, content: Content, before: Content) -> FrozenWorksheet:
        stored = next((each for each in before.items if each.key == item.key), None)
        if stored is None:
            return item
        sheet = worksheet_of(item)
        models = {key: content.models[key] for key in models_of(item) if key in content.models}
        edition = edition_of(models, before.models) + self.topic_editions.get(item.key, "")
        if not edition and worksheet_of(stored) == sheet and stored.chosen == item.chosen:
            return stored
        edition = edition or str(stored.worksheet.get("edition", ""))
        return FrozenWorksheet({**item.worksheet, "edition": edition}) if edition else item


def offer_of(
    library: Library,
    tickets: Mapping[str, Ticket],
    store: Store,
    activity: Activity | None,
    *,
    corrections: Collection[str] = (),
    new_ticket: bool = False,
) -> Offer:
    """What can be chosen for an activity (None: a new one) from the current `library` and `tickets`."""
    if activity is None:
        return Offer(library, tickets)
    frozen, ticket = library_of(library, activity.content), frozen_ticket(activity.content)
    sheets = {item.key: worksheet_of(item) for item in activity.content.items}
    editions = {item.key: topic_edition(library, store, activity, item) for item in activity.content.items}
    corrected = tuple(
        sheets[item.key]
        for item in activity.content.items
        if editions[item.key] or _is_corrected(library, frozen, item)
    )
    stored_tickets = {ticket.key: ticket} if ticket else {}
    ticket_corrected = any(tickets.get(key, each) != each for key, each in stored_tickets.items())
    is_draft = activity.state == "draft"
    taken = {sheet.key for sheet in corrected if is_draft or sheet.key in corrections}
    current = {key: library.worksheet(key) for key in taken}
    newer = {  # models that a corrected worksheet may have, as frozen and as they are now
        key
        for item in activity.content.items
        if item.key in taken
        for key in (*models_of(item), current[item.key].model, *current[item.key].models)
    }
    merged = Library(
        {**library.worksheets, **sheets, **current},
        {
            **library.models,
            **frozen.models,
            **{key: model for key, model in library.models.items() if is_draft or key in newer},
        },
        library.wording,
    )
    offered = {**tickets, **stored_tickets, **(tickets if is_draft or new_ticket else {})}
    taken_editions = {key: editions[key] for key in taken}
    return Offer(merged, offered, activity, corrected, taken_editions, ticket_corrected)


def content_to_open(library: Library, tickets: Mapping[str, Ticket], store: Store, activity: Activity) -> Content:
    """The sheets and ticket that students get when this activity opens.

    A draft gets them as they are defined now; otherwise they are those already stored.

    Raises what `Offer.freeze` raises.
    """
    content = activity.content
    if activity.state != "draft":
        return content
    choices = [choice_of(item) for item in content.items]
    offer = offer_of(library, tickets, store, activity)
    return offer.freeze(choices, content.ticket.key if content.ticket else "")


def _is_corrected(library: Library, frozen_library: Library, item: FrozenWorksheet) -> bool:
    current = library.find_worksheet(item.key)
    if current is None:
        return False
    models = [key for key in models_of(item) if key in library.models]
    return current != worksheet_of(item) or any(library.models[key] != frozen_library.models.get(key) for key in models)


def edition_of(models: Models, before: Models) -> str:
    """A hash of these models, by key, if any of them differs in `before`; otherwise ""."""
    changed = any(before.get(key, model) != model for key, model in models.items())
    return hashlib.sha256(json.dumps(models, sort_keys=True).encode()).hexdigest()[:12] if changed else ""


def topic_edition(
    library: Library, store: Store, activity: Activity, item: FrozenWorksheet, content: Content | None = None
) -> str:
    """A hash of what the topic asks today if it has changed since students got the worksheet, or ""."""
    content, sizes = content or activity.content, item_sizes(item)
    is_known = library.find_worksheet(item.key) is not None and worksheet_of(item).topic != NO_TOPIC
    if not is_known or given_variant(library, store, activity, content, item, sizes, gives=False).has_topic:
        return ""
    today = variant_of(library_of(library, content), store, worksheet_of(item), sizes)
    return hashlib.sha256(json.dumps(asked_data(today.problem)).encode()).hexdigest()[:12]
