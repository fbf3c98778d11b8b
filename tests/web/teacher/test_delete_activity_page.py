"""Deleting an activity says what goes and asks for its title; a duplicate is a draft with the same content."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import FastAPI

from app.store.tables import activities, class_attempts
from tests.helpers.marked_classroom import MarkedClassroom, classroom_with_tickets


def test_an_activity_goes_with_its_work_once_its_title_is_typed(app_on_each_database: FastAPI) -> None:
    """The page counts what goes; another title deletes nothing; the course's log still says what went."""
    classroom = classroom_with_tickets(app_on_each_database, anonymous=False)
    kim = classroom.student("Kim the Second")
    classroom.hand_in(kim, {"input.rows": "100"})
    other = classroom.open()
    listed = [text for _, text in classroom.page("/delete").find("li")]
    assert any("4 students" in text for text in listed)
    assert any("1 attempt," in text for text in listed)
    assert any("3 exit tickets" in text for text in listed)
    with classroom.instructor as browser:
        assert browser.post(f"{classroom.path}/delete", data={"title": "Week 4"}).status_code == 422
        assert classroom.store.activities.find(classroom.activity.id)
        gone = browser.post(f"{classroom.path}/delete", data={"title": " Week  3 "})
        assert (gone.status_code, gone.headers["location"]) == (
            303,
            f"/courses/{classroom.course.id}?done=activity-deleted",
        )
        assert browser.get(classroom.path).status_code == 404
        assert "activity deleted Week 3" in browser.get(f"/courses/{classroom.course.id}/exports").text
    with classroom.store.engine.connect() as connection:
        assert list(connection.scalars(sa.select(activities.c.id))) == [other.id]
        assert connection.scalar(sa.select(sa.func.count()).select_from(class_attempts)) == 0


def test_a_duplicate_is_a_draft_with_another_code(app: FastAPI) -> None:
    """Content and rules are those of the original, whose students have no work in it."""
    classroom = MarkedClassroom(app)
    classroom.hand_in(classroom.student("Kim"), {"input.rows": "100"})
    with classroom.instructor as browser:
        made = browser.post(f"{classroom.path}/duplicate")
    copy, original = classroom.store.activities.of_course(classroom.course)
    assert made.headers["location"] == f"/activities/{copy.id}/edit"
    assert (copy.state, copy.content, copy.policies) == ("draft", original.content, original.policies)
    assert copy.join_code != original.join_code
    assert classroom.store.classwork.attempts_of_activity(copy.id) == ()
