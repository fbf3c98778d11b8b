"""The sheets of an activity as students have them: each is stored as data when it is first given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from app.classes.frozen.frozen_library import frozen_worksheet, library_of, worksheet_with_bug
from app.exchange.imported_models import library_with_model
from app.shapes.table import OTHER_PATTERN, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.code_text import code_shown, option_text
from app.sheets.frozen_sheet import FrozenSheet, asked_data, key_data, program_data
from app.sheets.library import Library
from app.sheets.prose import step_of
from app.sheets.variant import Row, Variant
from app.sheets.worksheet import WITHOUT_TOPIC, Worksheet
from app.store import Activity, Content, FrozenWorksheet, Store, Student, VariantSizes

SHEETS_REMEMBERED = 1024


def given_variant(
    library: Library,
    store: Store,
    activity: Activity,
    content: Content,
    item: FrozenWorksheet,
    sizes: VariantSizes,
    *,
    gives: bool = True,
) -> Variant:
    """A worksheet of an activity in a student's sizes, as it was when students were first given it.

    A draft's sheet may still change, and so may one that is only looked at (`gives=False`).
    """
    library, worksheet = library_of(library, content), frozen_worksheet(item, activity.policies)
    if activity.state == "draft":
        return variant_of(library, store, worksheet, sizes)
    key = f"{item.fingerprint} {json.dumps(asdict(sizes))}"

    def make() -> dict[str, Any]:
        return sheet_data(variant_of(library, store, worksheet, sizes))

    text = _kept(store, activity, key, make) if gives else _found(store, activity, key)
    return variant_of(library, store, worksheet, sizes, frozen_sheet(text) if text else None)


def drawn_sizes(
    store: Store, activity: Activity, item: FrozenWorksheet, student: Student, draw: Callable[[], VariantSizes]
) -> VariantSizes:
    """The sizes drawn for a student on a worksheet."""
    text = _kept(store, activity, f"{item.fingerprint} student {student.id}", lambda: asdict(draw()))
    return VariantSizes(**json.loads(text))


def variant_of(
    library: Library, store: Store, worksheet: Worksheet, sizes: VariantSizes, frozen: FrozenSheet | None = None
) -> Variant:
    """A worksheet with stored sizes, which says and asks what is `frozen`, in its activity's library.

    Raises WorksheetError if the model no longer exists.
    """
    is_default = sizes.decoder_tokens == worksheet.decoder_tokens
    if sizes.bug and worksheet.bug:
        worksheet = worksheet_with_bug(worksheet, sizes.bug)
    library = library_with_model(library, store, sizes.model)
    lengths = sizes.model, sizes.tokens, None if is_default else sizes.decoder_tokens
    variant = library.variant_with_sizes(worksheet, *lengths, frozen)
    if variant.asks_as_frozen:
        return variant
    return library.variant_with_sizes(replace(worksheet, **WITHOUT_TOPIC), *lengths, frozen)


def _kept(store: Store, activity: Activity, key: str, make: Callable[[], object]) -> str:
    text = _found(store, activity, key)
    if text is None:
        store.activities.give_sheet(activity.id, _name(key), json.dumps(make()))
        text = _stored(store, activity.id, _name(key))
    return text


def _found(store: Store, activity: Activity, key: str) -> str | None:
    try:
        return _stored(store, activity.id, _name(key))
    except LookupError:
        return None


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@lru_cache(SHEETS_REMEMBERED)
def _stored(store: Store, activity_id: int, key: str) -> str:
    text = store.activities.given_sheet(activity_id, key)
    if text is None:
        raise LookupError  # which isn't cached
    return text


@lru_cache(SHEETS_REMEMBERED)
def frozen_sheet(text: str) -> FrozenSheet:
    """The sheet of a stored text; the same object each time, since sheets are cached by it."""
    return FrozenSheet(json.loads(text))


def sheet_data(variant: Variant) -> dict[str, Any]:
    """What a sheet says and asks, and its key, as JSON values for a `FrozenSheet`."""
    code = code_shown(variant)
    return {
        "texts": {
            "title": variant.title,
            "description": prose.description(variant),
            "asides": prose.asides(variant),
            "task": prose.what_to_write(variant),
            "how": prose.how_to_write(variant),
            "assumptions": prose.assumptions(variant),
            "footnote": prose.footnote(variant),
        },
        "rows": {row.key: _row_data(variant, row) for row in variant.rows},
        "boxes": {
            name: {"axis": variant.axis(blank), "nudge": prose.nudge(variant, blank)}
            for name, blank in variant.blanks_by_name.items()
        },
        "code": asdict(code) if code else None,
        "sizes": dict(variant.sizes),
        "asked": asked_data(variant.problem),
        "key": key_data(variant.problem),
        "program": program_data(variant.problem),
    }


def _row_data(variant: Variant, row: Row) -> dict[str, Any]:
    asked, step = row.asked, step_of(variant, row.key)
    options = asked.options if isinstance(asked, OneOf) else ()
    if isinstance(asked, WrittenPattern):
        options = (*options, OTHER_PATTERN)
    return {
        "letter": row.letter,
        "name": row.name,
        "note": row.note,
        "code": row.code,
        "points": row.points,
        "step": asdict(step) if step else None,
        "options": {str(option): option_text(variant, row.key, option) for option in options},
    }
