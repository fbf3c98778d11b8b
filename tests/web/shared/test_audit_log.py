"""What teachers change and its entry in the audit log are stored together, or neither is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.classes.materials import settings_to_copy
from app.store import Store
from app.store.audit import AuditLog
from app.store.tables import audit_log, metadata
from tests.helpers.activity_form import FORM
from tests.helpers.permission_table import TwoCourses
from tests.helpers.sent_form import SentForm
from tests.helpers.versioned_form import version_in

Form = Mapping[str, Any]


def changes(two: TwoCourses) -> Iterator[tuple[str, Form]]:
    """Every kind of change by an instructor, as address and form, in an order in which each finds what it changes."""
    store, kim, ada = two.school.store, two.kim, two.people["instructor"]["teacher"]
    path, browser = two.path, two.school.browser(teacher=ada)
    course = store.courses.find(kim.course_id)
    assert course
    lee, _ = two.school.student(course, "Lee")
    in_course, student = path("/courses/{course_id:int}"), path("/courses/{course_id:int}/students/{student_id:int}")
    activity, sheet = path("/activities/{activity_id:int}"), path("/worksheets/{material_id:int}")
    own = store.materials.add("worksheet", ada, ada, settings_to_copy(two.school.library, "llama-7b"))

    yield f"{in_course}/students", {"roster": "Ann, 1\nBob, 2"}
    imported = store.roster.last_import(course)
    assert imported
    yield f"{in_course}/students/undo-import", {"import": imported.key}
    for number in ("", "7"):
        yield student, {"name": "Kimi", "number": number, "version": version_in(browser, student)}
    yield f"{student}/extra-time", {"activity": str(two.activity.id), "minutes": "5"}
    yield f"{activity}/extra-time", {"student": str(kim.id), "minutes": "6"}
    yield f"{student}/free", {}
    yield f"{in_course}/students/remove-idle", {"newest": str(lee.id)}
    ann = two.school.student(course, "Ann")[0]
    yield f"{student}/merge", {"into": str(ann.id)}
    yield f"{in_course}/students/{ann.id}/remove", {}
    yield f"{in_course}/staff", {"email": "cy@example.org"}
    yield path("/courses/{course_id:int}/staff/{teacher_id:int}/remove"), {}
    yield (
        f"{in_course}/practice",
        {
            "topic": next(iter(two.school.library.topics)),
            "version": version_in(browser, f"{in_course}/practice"),
        },
    )
    yield f"{in_course}/practice", {"end": "1"}

    yield f"{sheet}/share", {}
    yield f"{sheet}/stop-sharing", {}
    form = {**SentForm(browser.get(f"{sheet}/edit").text).values, "title": "Another title"}
    yield sheet, form
    yield f"{sheet}/restore", {"version": "1"}
    yield f"{sheet}/copy", {"title": "A copy"}
    yield f"{sheet}/remove", {}
    yield f"{sheet}/put-back", {}
    yield f"/worksheets/{own.id}/move", {"course": str(course.id)}
    yield "/worksheets/import", {"text": browser.get(f"{sheet}/file.toml").text}

    yield f"{in_course}/activities", FORM
    yield activity, {**SentForm(browser.get(f"{activity}/edit").text).values, "title": "Week 4"}
    yield f"{activity}/close", {}
    yield f"{activity}/undo-close", {}
    store.activities.set_state(two.activity, "draft")
    yield f"{activity}/open", {}
    yield f"{activity}/duplicate", {}
    yield f"{activity}/delete", {"title": "Week 4"}

    yield f"{in_course}/copy", {"title": "Next year"}
    yield f"{in_course}/archive", {}
    yield f"{in_course}/bring-back", {}
    yield f"{in_course}/delete", {"title": "Transformers"}
    yield "/courses/sample", {}
    yield "/sign-out", {}


def rows(store: Store) -> dict[str, list[Any]]:
    """What every table holds."""
    with store.engine.connect() as connection:
        return {table.name: list(connection.execute(sa.select(table)).all()) for table in metadata.sorted_tables}


@pytest.mark.slow
def test_a_change_is_stored_with_its_entry_or_not_at_all(
    app_on_each_database: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = TwoCourses(app_on_each_database)
    store, browser = two.school.store, two.school.browser(teacher=two.people["instructor"]["teacher"])
    for address, form in changes(two):
        before = rows(store)
        with monkeypatch.context() as patch:
            patch.setattr(AuditLog, "record", lambda *_: 1 / 0)
            assert browser.post(address, data=form).status_code == 500, address
        assert rows(store) == before, address
        answer = browser.post(address, data=form)
        assert answer.status_code == 303, (address, answer.text)
        after = rows(store)
        assert len(after[audit_log.name]) == len(before[audit_log.name]) + 1, address
        assert {name for name, held in after.items() if held != before[name]} > {audit_log.name}, address
