"""A student on the roster: renamed, merged into another, released, removed; each leaves a line in the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.store import Student
from tests.helpers.class_sheet import HALF, press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.versioned_form import save


def path_of(classroom: Classroom, student: Student) -> str:
    """The address of a student's page."""
    return f"/courses/{classroom.course.id}/students/{student.id}"


def log_of(classroom: Classroom) -> str:
    """The text of the page with the course's log."""
    return classroom.get(f"/courses/{classroom.course.id}/exports")


def test_a_student_is_renamed(classroom: Classroom) -> None:
    """Name and number; nobody takes another's number, or loses their name, and what was typed comes back."""
    classroom.store.roster.add_students(classroom.course, [("Kim Lee", "1017"), ("Lou Ray", None)])
    _kim, lou = classroom.store.roster.students(classroom.course)
    for data in ({"name": " ", "number": "1018"}, {"name": "Lou Roy", "number": "1017"}):
        refused = save(classroom.instructor, path_of(classroom, lou), data)
        assert refused.status_code == 422
        assert Page(refused.text).find("input", name="number")[0][0]["value"] == data["number"]
    answer = save(classroom.instructor, path_of(classroom, lou), {"name": "Lou  Ray-Fox", "number": "1018"})
    assert answer.headers["location"].endswith("#roster")
    renamed = classroom.store.roster.students(classroom.course)
    assert [(student.name, student.roster_key) for student in renamed] == [("Kim Lee", "1017"), ("Lou Ray-Fox", "1018")]
    assert "student renamed" in log_of(classroom)


def test_two_entries_of_one_person_are_merged(classroom: Classroom) -> None:
    names = [("Ada Fox", None), ("Zoë “Z” O'Brien", "1017")]
    classroom.store.roster.add_students(classroom.course, names)
    activity = classroom.open()
    typed, browser = classroom.join("Zoe O’Brien")
    press(browser, activity, "check", HALF)
    page = Page(classroom.get(path_of(classroom, typed)))
    [listed, _] = [attrs["value"] for attrs, text in page.find("option") if text != activity.plan.title]
    preview = classroom.get(f"{path_of(classroom, typed)}?merge={listed}")
    assert "1 attempt," in preview
    assert len(classroom.store.roster.students(classroom.course)) == 3
    assert classroom.instructor.post(f"{path_of(classroom, typed)}/merge", data={"into": listed}).status_code == 303
    _, zoe = classroom.store.roster.students(classroom.course)
    assert (str(zoe.id), zoe.name, zoe.roster_key) == (listed, "Zoë “Z” O'Brien", "1017")
    assert Page(browser.get(f"/class/{activity.id}/1").text).boxes()["queries.columns"] == "4096"
    assert "1017" not in browser.get("/mine").text
    assert "students merged" in log_of(classroom)


def test_the_log_means_nobody_who_joined_later(classroom: Classroom) -> None:
    classroom.open()
    old = classroom.join("Xaver")[0]
    form = {"activity": str(classroom.store.activities.of_course(classroom.course)[0].id), "minutes": "30"}
    classroom.instructor.post(f"{path_of(classroom, old)}/extra-time", data=form)
    assert "Xaver" in log_of(classroom)
    classroom.instructor.post(f"{path_of(classroom, old)}/remove")
    classroom.join("Yolanda")
    assert "Yolanda" not in log_of(classroom)


def test_nobody_is_merged_with_whoever_is_not_there(classroom: Classroom) -> None:
    kim, _ = classroom.join()
    other = classroom.school.student(classroom.school.course("Other", classroom.teacher), "Kim")[0]
    for into in (str(kim.id), str(other.id), "0", "x", ""):
        assert classroom.instructor.post(f"{path_of(classroom, kim)}/merge", data={"into": into}).status_code == 404
        assert "Merge into" not in classroom.get(f"{path_of(classroom, kim)}?merge={into}")


def test_a_student_gets_extra_time(classroom: Classroom) -> None:
    activity = classroom.open()
    (kim, kims), (_, lous) = classroom.join("Kim"), classroom.join("Lou")
    path = f"{path_of(classroom, kim)}/extra-time"
    for minutes in ("", "-1", "x", "99999"):
        refused = classroom.instructor.post(path, data={"activity": str(activity.id), "minutes": minutes})
        assert refused.status_code == 422
        page = Page(refused.text)
        assert page.find("p", id="time-problem")
        assert page.find("input", name="minutes")[0][0]["value"] == minutes
        assert [attrs["value"] for attrs, _ in page.find("option") if "selected" in attrs] == [str(activity.id)]
    assert classroom.instructor.post(path, data={"activity": "0", "minutes": "10"}).status_code == 404
    assert classroom.instructor.post(path, data={"activity": str(activity.id), "minutes": "10"}).status_code == 303
    assert "10 minutes" in classroom.get(path_of(classroom, kim))
    classroom.store.activities.close(activity, datetime.now(UTC) - timedelta(minutes=5))
    assert press(kims, activity, "save", HALF).status_code == 200
    assert press(lous, activity, "save", HALF).status_code == 409
    classroom.instructor.post(path, data={"activity": str(activity.id), "minutes": "0"})
    assert press(kims, activity, "save", HALF).status_code == 409


def test_students_of_one_name_are_shown_with_their_numbers(classroom: Classroom) -> None:
    classroom.store.roster.add_students(classroom.course, [("Alex Smith", "1020"), ("Alex Smith", "1044")])
    alex, other = classroom.store.roster.students(classroom.course)
    assert Page(classroom.get(path_of(classroom, alex))).text("h1") == "Alex Smith (1020)"
    merge = Page(classroom.get(f"{path_of(classroom, alex)}?merge={other.id}"))
    assert "Alex Smith (1044)" in merge.text("button", name="into")
    assert "Alex Smith (1020)" in merge.text("section", aria_labelledby="merge")


def test_a_student_is_released_and_removed(classroom: Classroom) -> None:
    (kim, _), (lou, _) = classroom.join("Kim"), classroom.join("Lou")
    assert classroom.instructor.post(f"{path_of(classroom, kim)}/free").headers["location"].endswith("#roster")
    assert classroom.instructor.post(f"{path_of(classroom, lou)}/remove").status_code == 303
    [student] = classroom.store.roster.students(classroom.course)
    assert (student.id, student.joined_at) == (kim.id, None)
    log = log_of(classroom)
    assert "student removed" in log
    assert f"student {lou.id}" in log
