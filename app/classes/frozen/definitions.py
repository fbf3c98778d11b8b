"""What attempts are marked by: a worksheet as students had it, or as a regrade corrected it.

A definition is a content of one worksheet, with its models; attempts' `marked_by` is its sheet key.
Regrades store their corrected definitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from app.classes.frozen.frozen_library import chosen_form, library_of, model_data, worksheet_of
from app.classes.frozen.given_sheets import given_variant
from app.classes.frozen.offered_worksheets import edition_of, topic_edition
from app.classes.student_sheet import models_of
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.store import Activity, Content, FrozenWorksheet, Store, VariantSizes

_MARKED_BY = ("misconceptions", "row_points")  # fields that affect marks and diagnoses, but no question


def frozen_definition(content: Content, item: FrozenWorksheet) -> Content:
    """A worksheet of a revision as students had it."""
    return replace(content, items=(item,), ticket=None)


def corrected_definition(
    library: Library,
    store: Store,
    activity: Activity,
    content: Content,
    item: FrozenWorksheet,
    models: Iterable[str] = (),
) -> Content:
    """A worksheet of a revision as the library defines it now, without the ticket, and with its models."""
    frozen, frozen_library = worksheet_of(item), library_of(library, content)
    current = library.find_worksheet(item.key)
    rows = tuple(row for row in frozen.rows if current and row in current.rows)
    if current is None or current.topic != frozen.topic or not rows:
        return frozen_definition(content, item)
    keys = {*content.models, *models_of(item), current.model, *current.models, *models}
    both = {**frozen_library.models, **library.models}
    named = {key: model_data(both[key]) for key in sorted(keys) if key in both}
    corrected = chosen_form(replace(current, rows=rows), item.chosen)
    of_topic = topic_edition(library, store, activity, item, content)
    if edition := edition_of(named, content.models) + _marks_edition(current, frozen) + of_topic:
        corrected = FrozenWorksheet({**corrected.worksheet, "edition": edition})
    if corrected.sheet_key == item.sheet_key:
        return frozen_definition(content, item)
    return Content((corrected,), None, named)


def _marks_edition(current: Worksheet, frozen: Worksheet) -> str:
    now, before = ([getattr(sheet, name) for name in _MARKED_BY] for sheet in (current, frozen))
    return "" if now == before else hashlib.sha256(repr(now).encode()).hexdigest()[:12]


def defined_variant(
    library: Library, store: Store, activity: Activity, definition: Content, sizes: VariantSizes, *, gives: bool = True
) -> Variant:
    """The sheet of a definition with these sizes; unless it `gives` the sheet, it isn't kept."""
    return given_variant(library, store, activity, definition, definition.items[0], sizes, gives=gives)
