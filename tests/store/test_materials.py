"""Worksheets and exit tickets that teachers write, asked of SQLite and of a real PostgreSQL alike."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from app.store import Course, Material, Store, Teacher
from app.store.housekeeping import MODEL_RETENTION, REMOVED_RETENTION, delete_expired
from app.store.queries import utc_now
from app.store.tables import material_versions, materials, models
from tests.helpers.stored_class import teacher

SHEET = {"title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100, "rows": ["input", "queries"]}


def changed(**settings: Any) -> dict[str, Any]:
    return {**SHEET, **settings}


@pytest.fixture
def ada(store: Store) -> Teacher:
    return teacher(store)


@pytest.fixture
def course(store: Store, ada: Teacher) -> Course:
    return store.courses.add("Transformers", "UTC", ada)


def test_every_save_is_a_version(store: Store, ada: Teacher, course: Course) -> None:
    material = store.materials.add("worksheet", course, ada, SHEET)
    assert (material.key, material.version, material.saved_by) == (f"own-{material.id}", 1, "Ada")
    save = store.materials.save(material, 1, changed(title="Another", model="gpt2"), ada)
    assert save.is_stored
    assert (save.material.title, save.material.model, save.material.version) == ("Another", "gpt2", 2)
    assert store.materials.save(material, 2, changed(title="Another", model="gpt2"), ada).material.version == 2
    restored = store.materials.restore(save.material, 1, ada)
    assert restored
    assert (restored.material.content, restored.material.version) == (SHEET, 3)
    assert store.materials.restore(save.material, 9, ada) is None
    assert [version.number for version in store.materials.versions(material)] == [3, 2, 1]
    assert store.materials.find(material.id) == restored.material


def test_a_save_of_an_older_version_changes_nothing(store: Store, ada: Teacher, course: Course) -> None:
    material = store.materials.add("worksheet", course, ada, SHEET)
    first = store.materials.save(material, 1, changed(title="First"), ada)
    late = store.materials.save(material, 1, changed(title="Late"), ada)
    assert (late.is_stored, late.material) == (False, first.material)
    assert len(store.materials.versions(material)) == 2


def test_of_two_who_save_at_once_one_wins(store: Store, database_url: str, tmp_path: Any, ada: Teacher) -> None:
    other = Store(database_url, tmp_path)
    material = store.materials.add("worksheet", ada, ada, SHEET)
    for based_on in range(1, 6):
        barrier, saves = threading.Barrier(2), list[bool]()

        def save(server: Store, title: str, based_on: int, barrier: threading.Barrier, saves: list[bool]) -> None:
            barrier.wait()
            saves.append(server.materials.save(material, based_on, changed(title=title), ada).is_stored)

        threads = [
            threading.Thread(target=save, args=(server, f"{based_on} {name}", based_on, barrier, saves))
            for server, name in ((store, "here"), (other, "there"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(saves) == [False, True]
    assert [version.number for version in store.materials.versions(material)] == [6, 5, 4, 3, 2, 1]
    other.close()


def keys(found: tuple[Material, ...]) -> list[str]:
    return [material.key for material in found]


def test_lists_have_what_a_teacher_may_see(store: Store, ada: Teacher, course: Course) -> None:
    eve = teacher(store, "eve@example.org")
    mine = store.materials.add("worksheet", ada, ada, changed(title="émile"))
    ours = store.materials.add("ticket", course, eve, {"title": "Before you go", "instruction": "", "questions": []})
    hers = store.materials.add("worksheet", eve, eve, SHEET)
    assert (
        keys(store.materials.readable_by(ada)) == keys(store.materials.usable_in(course, ada)) == [ours.key, mine.key]
    )
    assert keys(store.materials.of_course(course)) == [ours.key]
    assert keys(store.materials.readable_by(eve)) == [hers.key]
    store.materials.remove(ours)
    assert store.materials.find(ours.id) is None
    assert store.materials.of_course(course) == store.materials.removed(eve) == ()
    assert keys(store.materials.removed(ada)) == [ours.key]
    store.courses.archive(course)
    assert store.materials.removed(ada) == ()
    store.courses.archive(course, archived=False)
    assert store.materials.titles(course) == {ours.id: "Before you go"}
    store.materials.remove(ours, removed=False)
    assert store.materials.find(ours.id) == ours
    assert store.materials.move(mine, course)
    assert keys(store.materials.of_course(course)) == [ours.key, mine.key]


def test_of_two_who_move_at_once_one_wins(store: Store, ada: Teacher, course: Course) -> None:
    mine, other = store.materials.add("worksheet", ada, ada, SHEET), store.courses.add("Another", "UTC", ada)
    assert [store.materials.move(mine, each) for each in (course, other)] == [True, False]
    moved = store.materials.find(mine.id)
    assert moved
    assert moved.course_id == course.id


def test_a_link_opens_a_material_until_it_is_withdrawn(store: Store, ada: Teacher) -> None:
    material = store.materials.add("worksheet", ada, ada, SHEET)
    first, second = store.materials.share(material), store.materials.share(material)
    assert store.materials.find_shared(first) is None
    shared = store.materials.find_shared(second)
    assert shared
    assert (shared.id, shared.is_shared) == (material.id, True)
    with store.engine.connect() as connection:
        assert second not in str(connection.execute(sa.select(materials)).all())
    store.materials.stop_sharing(material)
    assert store.materials.find_shared(second) is None


def test_what_nobody_owns_any_more_goes(store: Store, ada: Teacher, course: Course) -> None:
    model = store.keep_model("M", {"n": 1}, "pasted").key
    kept, ours = (store.materials.add("worksheet", owner, ada, changed(model=model)) for owner in (ada, course))
    store.courses.delete(course)
    assert store.materials.find(ours.id) is None
    old = utc_now() - MODEL_RETENTION - timedelta(days=1)
    with store.engine.begin() as connection:
        connection.execute(sa.update(models).values(created_at=old, used_at=old))
    assert delete_expired(store.engine, store.now()) == 0
    store.materials.remove(kept)
    assert delete_expired(store.engine, store.now()) == 0
    with store.engine.begin() as connection:
        connection.execute(sa.update(materials).values(removed_at=utc_now() - REMOVED_RETENTION - timedelta(days=1)))
    assert delete_expired(store.engine, store.now()) == 2  # the material, and then its model
    with store.engine.connect() as connection:
        assert connection.execute(sa.select(material_versions)).all() == []
