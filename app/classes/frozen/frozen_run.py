"""What a run keeps of its sheet, so that it stays the same whatever happens to the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.classes.frozen.frozen_library import frozen_form, library_of, make_library, model_snapshot, worksheet_of
from app.classes.student_sheet import variant_of
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Activity, Content, Run, Snapshot, Store, VariantSizes


@dataclass(frozen=True)
class FrozenRun:
    """The sheet of a new run: the JSON stored with it, and the model's snapshot. `sheet_number` is 0 in practice."""

    activity_id: int | None
    values: Mapping[str, Any]
    snapshot: Snapshot


def freeze_run(variant: Variant, activity: Activity | None = None, sheet_number: int = 0) -> FrozenRun:
    """What is stored with a run: its worksheet, sizes, model and sheet number, and an activity's wording and models."""
    model, earlier = model_snapshot(variant.model), activity.content if activity else Content((), None, "")
    models = {**earlier.models, variant.model.key: model.hash}
    content = Content((frozen_form(variant.worksheet),), None, earlier.wording, models)
    sizes = VariantSizes(variant.model.key, variant.tokens, variant.decoder_tokens or variant.worksheet.decoder_tokens)
    values = {"content": content.as_json(), "sizes": asdict(sizes), "sheet": sheet_number}
    return FrozenRun(activity.id if activity else None, values, model)


def sheet_of_run(library: Library, store: Store, run: Run) -> Variant:
    """A run's sheet as it was then; in practice with the current wording.

    Raises WorksheetError if its imported model no longer exists.
    """
    content, sizes = Content.from_json(run.frozen["content"]), VariantSizes(**run.frozen["sizes"])
    # Practice runs are always about new sheets: cached, they would displace the libraries of activities.
    frozen_library = (make_library if run.activity_id is None else library_of)(library, store, content)
    return variant_of(frozen_library, store, worksheet_of(content.items[0]), sizes)
