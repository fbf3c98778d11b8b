"""What teachers wrote beside the library: usable in it, or left out with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.classes.materials import (
    library_with_materials,
    materials_for_course,
    save_material,
    settings_to_copy,
    ticket_of_material,
)
from app.sheets.library import Library
from app.sheets.worksheet import WORKSHEETS
from app.store import Store
from tests.helpers.stored_class import teacher

SHEET = {"title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 12, "rows": ["input", "queries"]}
TICKET = {"title": "Go", "instruction": "Pick.", "questions": [{"key": "why", "text": "Why?"}]}
CONFIG = {"model_type": "llama", "hidden_size": 96, "num_attention_heads": 6, "num_hidden_layers": 2,
          "intermediate_size": 256, "vocab_size": 500}  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    """A store on SQLite."""
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite3'}", tmp_path)
    yield store
    store.close()


def test_own_worksheets_stand_beside_the_librarys(kept: Store, library: Library) -> None:
    ada = teacher(kept)
    model = kept.keep_model("Small", CONFIG, "pasted").key
    own = kept.materials.add("worksheet", ada, ada, {**SHEET, "model": model})
    variant = library_with_materials(library, kept, [own]).variant(own.key)
    assert (variant.title, variant.worksheet.rows) == ("One head", ("input", "queries"))
    assert dict(variant.key) == {
        "input.rows": 12, "input.columns": 96, "queries.rows": 12, "queries.columns": 16,
    }  # fmt: skip
    assert own.key not in library.worksheets


@pytest.mark.parametrize(
    "content",
    [{**SHEET, "model": "cfg-" + "0" * 20}, {**SHEET, "topic": "alchemy"}, {**SHEET, "rows": ["philosophy"]}, {}],
    ids=["no model", "no topic", "no row", "nothing"],
)
def test_what_cannot_be_read_is_left_out_with_a_reason(kept: Store, library: Library, content: dict[str, Any]) -> None:
    ada = teacher(kept)
    course = kept.courses.add("C", "UTC", ada)
    broken = [kept.materials.add(kind, ada, ada, content) for kind in ("worksheet", "ticket")]
    fine, ticket = kept.materials.add("worksheet", course, ada, SHEET), kept.materials.add("ticket", ada, ada, TICKET)
    usable = materials_for_course(library, {}, kept, course, ada)
    assert set(usable.unusable) == {material.id for material in broken}
    assert all(reason.endswith(".") for reason in usable.unusable.values())
    assert set(usable.library.worksheets) == {*library.worksheets, fine.key}
    assert usable.tickets == {ticket.key: ticket_of_material(ticket)}
    assert usable.by_key == {fine.key: fine, ticket.key: ticket}


def test_a_library_with_the_same_worksheets_keeps_its_sheets(library: Library) -> None:
    [own] = [replace(library.worksheets["llama-7b"], key="own-1")]
    [model] = [replace(library.models["llama-7b"], key="cfg-1")]
    added = library.with_added([own], [model])
    assert added.variant("own-1", "cfg-1") is library.with_added([own], [replace(model)]).variant("own-1", "cfg-1")
    assert library.with_added([own], [replace(model, name="Another")]) is not added
    assert library.with_added(models=[library.models["llama-7b"]]) is library


def test_a_save_that_two_requests_send_is_recorded_once(kept: Store) -> None:
    ada, ben = teacher(kept), teacher(kept, "ben@example.org")
    material = kept.materials.add("worksheet", ada, ada, SHEET)
    saves = [save_material(kept, material, 1, {**SHEET, "title": "Two heads"}, each) for each in (ada, ben)]
    assert [(save.is_stored, save.material.version) for save in saves] == [(True, 2), (True, 2)]
    entries = kept.audit_log.entries({"material": [material.id]}, kept.now() - timedelta(hours=1), 9)
    assert [entry.actor_id for entry in entries] == [ada.id]


@pytest.mark.parametrize("key", ["bug-layer", "bug-layer~keys-tiled", "llama-7b~symbols"])
def test_every_model_of_a_copy_can_show_it(library: Library, key: str) -> None:
    sheet = WORKSHEETS.validate_python({"key": "own-copy", **settings_to_copy(library, key)})
    with_copy = library.with_added([sheet])
    assert [with_copy.refusal("own-copy", model) for model in (sheet.model, *sheet.models)] == [None] * (
        1 + len(sheet.models)
    )
