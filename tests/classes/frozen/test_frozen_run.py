"""A run keeps the sheet that it was started on."""

from __future__ import annotations

import json
from dataclasses import replace

from app.classes.frozen.frozen_run import freeze_run
from app.sheets.library import Library
from app.store import Content, Store
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
    assert ([item.key for item in content.items], content.wording) == (["llama-7b"], "")
    assert content.models == {"llama-13b": run.snapshot.hash}
    assert run.activity_id is None


def test_a_run_of_a_class_has_the_wording_and_the_models_of_its_activity(library: Library, store: Store) -> None:
    activity = RunningActivity(library, store).activity
    variant = library.variant("llama-7b")
    other = replace(variant, model=replace(library.models["llama-13b"], key="llama-7b"))
    run = freeze_run(other, activity, 2)
    content = Content.from_json(run.values["content"])
    assert (run.activity_id, run.values["sheet"], content.wording) == (activity.id, 2, activity.content.wording)
    assert content.models == {**activity.content.models, "llama-7b": run.snapshot.hash}
    assert run.snapshot.hash != activity.content.models["llama-7b"]
