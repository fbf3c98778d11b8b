"""A run keeps the sheet that it was started on."""

from __future__ import annotations

import json
from dataclasses import replace

from app.classes.frozen.frozen_run import freeze_run, sheet_of_run
from app.classes.student_sheet import activity_variant
from app.sheets.library import Library
from app.store import Content, Store
from tests.helpers.changed_library import with_everything_changed
from tests.helpers.running_activity import RunningActivity


def test_a_run_stores_its_sheet_and_sizes_as_json(library: Library) -> None:
    variant = library.variant("llama-7b", "llama-13b", 7)
    run = freeze_run(variant)
    values = json.loads(json.dumps(run.values, default=list))
    content = Content.from_json(values["content"])
    assert (values["sizes"], values["sheet"]) == (
        {"model": "llama-13b", "tokens": 7, "decoder_tokens": None, "bug": ""},
        0,
    )
    assert [item.key for item in content.items] == ["llama-7b"]
    assert content.models["llama-13b"]["config"] == library.models["llama-13b"].config
    assert run.activity_id is None


def test_a_run_of_a_class_has_the_sheet_of_its_activity(library: Library, store: Store) -> None:
    activity = RunningActivity(library, store).activity
    variant = activity_variant(library, store, activity, 1)
    frozen = freeze_run(variant, activity, 2)
    assert (frozen.activity_id, frozen.values["sheet"]) == (activity.id, 2)
    run = store.new_run({}, json.loads(json.dumps(frozen.values)), activity.id)
    again = sheet_of_run(with_everything_changed(library), store, replace(run))
    assert (again.title, again.rows, again.key) == (variant.title, variant.rows, variant.key)
    assert again.architecture == variant.architecture
