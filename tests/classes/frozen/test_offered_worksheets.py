"""What the form of an activity offers: worksheets as they were frozen, or as the library has corrected them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.classes.frozen.offered_worksheets import offer_of
from app.classes.student_sheet import student_sheet
from app.sheets.library import Library
from app.store import Activity, Store
from tests.helpers.changed_library import Change, with_everything_changed, without_anything
from tests.helpers.running_activity import RunningActivity


def refrozen(library: Library, store: Store, activity: Activity, *, corrections: tuple[str, ...] = ()) -> Activity:
    """The activity, after it was saved in an app with this library, with the same worksheets."""
    offer = offer_of(library, {}, store, activity, corrections=corrections)
    keys = [str(item.worksheet["key"]) for item in activity.content.items]
    store.activities.revise(activity, offer.freeze(keys, ""))
    saved = store.activities.find(activity.id)
    assert saved
    return saved


@pytest.mark.parametrize("change", [without_anything, with_everything_changed])
def test_saving_an_open_activity_changes_no_worksheet(library: Library, store: Store, change: Change) -> None:
    activity = RunningActivity(library, store).activity
    assert refrozen(change(library), store, activity) == activity
    corrected = refrozen(change(library), store, activity, corrections=("llama-7b",))
    if change is without_anything:
        assert corrected == activity
    else:
        assert [sheet.key for sheet in offer_of(change(library), {}, store, activity).corrected] == ["llama-7b"]
        assert corrected.revision == activity.revision + 1
        assert corrected.content.items[0].sheet_key != activity.content.items[0].sheet_key


def test_a_model_with_another_config_makes_another_sheet(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    before = running.activity
    larger = library.models["llama-13b"]
    model = replace(library.models["llama-7b"], config=larger.config, architecture=larger.architecture)
    other = replace(library, models={**library.models, "llama-7b": model})
    after = refrozen(other, store, before, corrections=("llama-7b",))
    assert after.content.items[0].sheet_key != before.content.items[0].sheet_key
    assert student_sheet(other, store, after, running.student(), 1).variant.sizes["d"] == 5120
    assert (
        refrozen(other, store, after, corrections=("llama-7b",)) == after
    )  # the edition stays as long as the model does
