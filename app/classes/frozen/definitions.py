"""What attempts are marked by: a worksheet as students had it, or as a regrade corrected it.

A definition is a content of one worksheet, with its models and wording; attempts' `marked_by` is its sheet key.
Regrades store their corrected definitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from app.classes.frozen.frozen_library import chosen_form, frozen_worksheet, library_of, model_snapshot, worksheet_of
from app.classes.frozen.offered_worksheets import edition_of
from app.classes.student_sheet import models_of, variant_of
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.store import Content, FrozenWorksheet, Policies, Store, VariantSizes

_MARKED_BY = ("misconceptions", "row_points")  # fields that affect marks and diagnoses, but no question


def frozen_definition(content: Content, item: FrozenWorksheet) -> Content:
    """A worksheet of a revision as students had it."""
    return replace(content, items=(item,), ticket=None)


def corrected_definition(
    library: Library, store: Store, content: Content, item: FrozenWorksheet, models: Iterable[str] = ()
) -> Content:
    """A worksheet of a revision as the library defines it now, without the ticket, and with its models' snapshots."""
    frozen, frozen_library = worksheet_of(item), library_of(library, store, content)
    current = library.find_worksheet(item.key)
    rows = tuple(row for row in frozen.rows if current and row in current.rows)
    if current is None or current.topic != frozen.topic or not rows:
        return frozen_definition(content, item)
    keys = {*content.models, *models_of(item), current.model, *current.models, *models}
    snapshots = {
        key: model_snapshot(source.models[key])
        for key in sorted(keys)
        if (source := library if key in library.models else frozen_library) and key in source.models
    }
    named = {key: snapshot.hash for key, snapshot in snapshots.items()}
    corrected = chosen_form(replace(current, rows=rows), item.chosen)
    if edition := edition_of(named, content.models) + _marks_edition(current, frozen):
        corrected = FrozenWorksheet({**corrected.worksheet, "edition": edition})
    if corrected.sheet_key == item.sheet_key:
        return frozen_definition(content, item)
    return Content((corrected,), None, content.wording, named, tuple(snapshots.values()))


def _marks_edition(current: Worksheet, frozen: Worksheet) -> str:
    now, before = ([getattr(sheet, name) for name in _MARKED_BY] for sheet in (current, frozen))
    return "" if now == before else hashlib.sha256(repr(now).encode()).hexdigest()[:12]


def defined_variant(
    library: Library, store: Store, definition: Content, policies: Policies, sizes: VariantSizes
) -> Variant:
    """The sheet of a definition with these sizes, and the marking in `policies`."""
    frozen_library = library_of(library, store, definition)
    return variant_of(frozen_library, store, frozen_worksheet(definition.items[0], policies), sizes)
