"""What a run keeps of its sheet, so that it stays the same whatever happens to the library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.classes.frozen.frozen_library import frozen_form, library_of, make_library, model_data, worksheet_of
from app.classes.frozen.given_sheets import frozen_sheet, sheet_data, variant_of
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Activity, Content, Run, Store, VariantSizes


@dataclass(frozen=True)
class FrozenRun:
    """The sheet of a new run: the JSON stored with it. `sheet_number` is 0 in practice."""

    activity_id: int | None
    values: Mapping[str, Any]


def freeze_run(variant: Variant, activity: Activity | None = None, sheet_number: int = 0) -> FrozenRun:
    """What is stored with a run: its worksheet, model, sizes, the sheet as data, and its number."""
    content = Content((frozen_form(variant.worksheet),), None, {variant.model.key: model_data(variant.model)})
    sizes = VariantSizes(variant.model.key, variant.tokens, variant.decoder_tokens or variant.worksheet.decoder_tokens)
    said = variant.frozen.values if variant.frozen else sheet_data(variant)
    values = {"content": content.as_json(), "sizes": asdict(sizes), "given": said, "sheet": sheet_number}
    return FrozenRun(activity.id if activity else None, values)


def sheet_of_run(library: Library, store: Store, run: Run) -> Variant:
    """A run's sheet as it was then.

    Raises WorksheetError if its imported model no longer exists.
    """
    content, sizes = Content.from_json(run.frozen["content"]), VariantSizes(**run.frozen["sizes"])
    worksheet, frozen = worksheet_of(content.items[0]), frozen_sheet(json.dumps(run.frozen["given"]))
    # Practice runs are always about new sheets: cached, they would displace the libraries of activities.
    of_run = make_library(library, content) if run.activity_id is None else library_of(library, content)
    return variant_of(of_run, store, worksheet, sizes, frozen)
