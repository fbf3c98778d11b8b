"""What the live view asks of the store."""

from __future__ import annotations

from dataclasses import replace

from app.activities.work import Draft
from app.store import Spotlight, Store
from tests.helpers.stored_class import HALF, LLAMA, key, opened, record, save


def test_the_room_is_asked_alike_on_both_databases(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    save(store, here, {"queries.rows": "1"})
    whose = (kim.id, here.sheet_key)
    assert store.live.draft_versions(activity.id) == {whose: 1}
    assert store.live.draft_texts(activity.id, [kim.id])[whose] == Draft({"queries.rows": "1"}, 1, LLAMA)
    assert store.live.draft_texts(activity.id, []) == {}
    assert store.live.last_attempts(activity.id) == {}
    record(store, here, {})
    newest = record(store, here, {}, replace(HALF, misconceptions=()), handed_in=False)
    [last] = store.live.last_attempts(activity.id).values()
    assert (last.id, last.handed_in) == (newest.id, True)
    assert store.live.stored_marks([last.id])[last.id].misconceptions == ()
    assert store.live.stored_marks(range(1, 2000)).keys() == {newest.id - 1, newest.id}
    for light in (Spotlight(1, "one", False), Spotlight(2, "two", True), None):
        store.live.show(activity.id, light)
        assert store.live.spotlight(activity.id) == light
