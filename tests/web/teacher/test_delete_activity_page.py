"""Deleting an activity says what goes and asks for its title; a duplicate is a draft with the same content."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi import FastAPI

from app.store.tables import activities, attempts
from tests.helpers.activity_form import FORM
from tests.helpers.marked_classroom import MarkedClassroom, classroom_with_tickets
from tests.helpers.school import Classroom
from tests.helpers.versioned_form import change_activity


def test_an_activity_goes_with_its_work_once_its_title_is_typed(app_on_each_database: FastAPI) -> None:
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
        assert connection.scalar(sa.select(sa.func.count()).select_from(attempts)) == 0


def test_a_duplicate_is_a_draft_with_another_code(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    classroom.hand_in(classroom.student("Kim"), {"input.rows": "100"})
    with classroom.instructor as browser:
        made = browser.post(f"{classroom.path}/duplicate")
    copy, original = classroom.store.activities.of_course(classroom.course)
    assert made.headers["location"] == f"/activities/{copy.id}/edit"
    assert (copy.state, copy.content, copy.policies) == ("draft", original.content, original.policies)
    assert copy.join_code != original.join_code
    assert classroom.store.classwork.attempts_of_activity(copy.id) == ()


def test_a_duplicate_in_another_course_needs_nothing_of_the_first(app: FastAPI) -> None:
    classroom = Classroom(app, sheets=None)
    school, ada = classroom.school, classroom.teacher
    sheet = {"title": "A head of ours", "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries"]}
    own = classroom.store.materials.add("worksheet", classroom.course, ada, sheet)
    other = school.course("Next term", ada)
    form = {**FORM, "worksheet": [own.key, "llama-7b"], "model.llama-7b": "llama-13b", "tokens.llama-7b": "7"}
    classroom.instructor.post(f"/courses/{classroom.course.id}/activities", data=form)
    [activity] = classroom.store.activities.of_course(classroom.course)
    classroom.instructor.post(f"/courses/{classroom.course.id}/archive")
    assert school.course("Third", ada).title in classroom.get(f"/activities/{activity.id}")
    classroom.instructor.post(f"/activities/{activity.id}/duplicate", data={"course": other.id})
    [copy] = classroom.store.activities.of_course(other)
    assert (copy.plan.title, copy.plan.policies) == ("Week 3", activity.plan.policies)
    classroom.store.courses.delete(classroom.course)
    assert change_activity(classroom.instructor, f"/activities/{copy.id}", form).status_code == 303
    classroom.instructor.post(f"/activities/{copy.id}/open")
    opened = school.reload(copy)
    assert opened.content.items == activity.content.items
    assert (opened.state, opened.content.items[0].title) == ("open", "A head of ours")


def test_a_duplicate_goes_only_where_the_teacher_may_add_activities(classroom: Classroom) -> None:
    school, activity = classroom.school, classroom.open()
    strange, archived = school.course("Strange", school.teacher()), school.course("Archived", classroom.teacher)
    school.store.courses.archive(archived)
    for course, status in ((strange.id, 404), ("x", 404), (archived.id, 409)):
        answer = classroom.instructor.post(f"/activities/{activity.id}/duplicate", data={"course": course})
        assert answer.status_code == status
    assert [classroom.store.activities.of_course(course) for course in (strange, archived)] == [(), ()]
