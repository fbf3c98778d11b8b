"""What attempts are marked by: a worksheet as students had it, or as the library has corrected it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.classes.frozen.definitions import corrected_definition, defined_variant, frozen_definition
from app.classes.student_sheet import worksheet_sizes
from app.sheets.library import Library
from app.store import Policies, Store
from tests.helpers.running_activity import RunningActivity

CONTENT_KEYS = ("llama-7b", "loss-gpt2")


def with_sheet(library: Library, **changes: object) -> Library:
    """The library with a changed worksheet llama-7b, or without it if there are no changes."""
    others = {key: sheet for key, sheet in library.worksheets.items() if key != "llama-7b"}
    changed = {"llama-7b": replace(library.worksheets["llama-7b"], **changes)} if changes else {}  # type: ignore[arg-type]
    return replace(library, worksheets={**others, **changed})


@pytest.mark.parametrize(
    ("changes", "is_corrected"),
    [
        ({"title": "Heads"}, False),
        ({"row_points": {"queries": 3}}, True),
        ({"answers": "letters"}, True),
        ({}, False),  # the library has it no longer
        ({"topic": "costs"}, False),
        ({"rows": ()}, False),  # no row is left that students were asked
    ],
)
def test_a_correction_is_whatever_changes_right_answers_or_marks(
    library: Library, store: Store, changes: dict[str, object], *, is_corrected: bool
) -> None:
    activity = RunningActivity(library, store, CONTENT_KEYS).activity
    content, item = activity.content, activity.content.items[0]
    frozen = frozen_definition(content, item)
    corrected = corrected_definition(with_sheet(library, **changes), store, activity, content, item)
    assert (frozen.items, frozen.ticket) == ((item,), None)
    assert (corrected != frozen) == is_corrected
    assert (corrected.items[0].sheet_key != item.sheet_key) == is_corrected
    if is_corrected:
        assert corrected.models.keys() >= content.models.keys() & {item.worksheet["model"]}


def test_only_rows_that_both_ask_are_marked(library: Library, store: Store) -> None:
    activity = RunningActivity(library, store, CONTENT_KEYS, Policies(marking="rows")).activity
    content = activity.content
    sheet = library.worksheets["llama-7b"]
    fewer = with_sheet(library, rows=sheet.rows[1:])
    definition = corrected_definition(fewer, store, activity, content, content.items[0])
    sizes = replace(worksheet_sizes(sheet), tokens=7)
    variant = defined_variant(fewer, store, activity, definition, sizes)
    assert variant.worksheet.rows == sheet.rows[1:]
    assert (variant.tokens, variant.worksheet.marking) == (7, "rows")
