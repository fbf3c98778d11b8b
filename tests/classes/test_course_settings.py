"""The settings of a course, and its copy for the next year."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.classes.course_settings import CoursePractice, copy_course, practice_of
from app.classes.materials import (
    materials_for_course,
)
from app.classes.student_sheet import freeze
from app.sheets.library import Library
from app.store import Plan, Store
from tests.helpers.stored_class import teacher

SHEET = {"title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 12, "rows": ["input", "queries"]}
TICKET = {"title": "Go", "instruction": "Pick.", "questions": [{"key": "why", "text": "Why?"}]}


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    """A store on SQLite."""
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite3'}", tmp_path)
    yield store
    store.close()


def test_the_copy_of_a_course_has_copies_of_its_materials(kept: Store, library: Library) -> None:
    ada = teacher(kept)
    course = kept.courses.add("C", "UTC", ada)
    sheet, ticket = (
        kept.materials.add("worksheet", course, ada, SHEET),
        kept.materials.add("ticket", course, ada, TICKET),
    )
    usable = materials_for_course(library, {}, kept, course, ada)
    content = freeze(usable.library, [sheet.key, "llama-7b"], usable.tickets[ticket.key])
    kept.activities.add(course, Plan("Week 1"), content)
    kept.courses.set_practice(course, CoursePractice((sheet.key, "own-99999")).as_json)
    copy = copy_course(kept, course, "Next year", ada)
    [activity] = kept.activities.of_course(copy)
    copied = {material.kind: material for material in kept.materials.of_course(copy)}
    assert [item.key for item in activity.content.items] == [copied["worksheet"].key, "llama-7b"]
    assert activity.content.ticket
    assert activity.content.ticket.key == copied["ticket"].key
    assert copied["worksheet"].content == SHEET
    assert copied["worksheet"].id != sheet.id
    assert practice_of(kept, copy) == CoursePractice((copied["worksheet"].key,))
