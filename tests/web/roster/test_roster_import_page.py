"""A class list is looked at before it is added, added once, and taken back."""

from __future__ import annotations

from app.web.roster.roster_import_page import MAX_ROSTER_STUDENTS
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom

CANVAS = """Student,ID,Section
    Points Possible,,
"Lee, Kim",1017,A
"Ray, Lou",1018,A
"Fox, Ada",1019,A
1017 Kim,1020,A
"Student, Test",9,A
"""


def names_of(classroom: Classroom) -> list[tuple[str, str | None]]:
    """Names and numbers on the roster."""
    return [(student.name, student.roster_key) for student in classroom.store.roster.students(classroom.course)]


def added(classroom: Classroom, data: dict[str, str | list[str]]) -> str:
    """Add students by a form, and return the text of the page that it leads to."""
    answer = classroom.instructor.post(f"/courses/{classroom.course.id}/students", data=data)
    assert answer.status_code == 303
    return classroom.get(answer.headers["location"])


def test_a_preview_shows_what_would_be_added(classroom: Classroom) -> None:
    """New, known and odd rows, and those that are no students; nothing is stored until it is sent, with ticked rows."""
    classroom.join("Ada Fox")
    added(classroom, {"roster": "Kim Lee, 1017"})
    before = names_of(classroom)
    files = {"file": ("canvas.csv", CANVAS.encode(), "text/csv")}
    text = classroom.instructor.post(f"/courses/{classroom.course.id}/students/preview", files=files).text
    assert names_of(classroom) == before
    page = Page(text)
    assert "“Points Possible”, “Test Student”" in text
    rows = [words for _, words in page.find("tr")][1:]
    ends = ("to check", "to check", "new", "already there")
    assert [row.endswith(end) for row, end in zip(rows, ends, strict=True)] == [True] * 4
    ada, kim = [attrs["value"] for attrs, _ in page.find("input", name="anyway")]
    assert "Ada Fox" in ada
    assert "1017 Kim" in kim
    new = text.partition('<textarea name="roster" hidden>\n')[2].partition("</textarea>")[0].replace("\n", "\r\n")
    assert "Added: 2." in added(classroom, {"roster": new, "anyway": [ada]})
    assert names_of(classroom) == [("Ada Fox", None), ("Ada Fox", "1019"), ("Kim Lee", "1017"), ("Lou Ray", "1018")]


def test_students_are_added_once(classroom: Classroom) -> None:
    """A longer list adds those who are new; what cannot be read comes back with a sentence, and adds nobody."""
    added(classroom, {"roster": "Kim Lee, 1017"})
    assert "Already on the roster: 1." in added(classroom, {"roster": "Kim Lee, 1017\nLou Ray"})
    assert names_of(classroom) == [("Kim Lee", "1017"), ("Lou Ray", None)]
    for below in ("", "/preview"):
        for roster in (" ", "x\n" * (MAX_ROSTER_STUDENTS + 1)):
            refused = classroom.instructor.post(
                f"/courses/{classroom.course.id}/students{below}", data={"roster": roster}
            )
            assert refused.status_code == 422
            assert Page(refused.text).find("p", id="roster-problem")
    assert len(names_of(classroom)) == 2


def test_an_import_is_undone_but_for_those_who_have_come(classroom: Classroom) -> None:
    """The page says how many were kept; earlier students stay, and so do those of another course."""
    added(classroom, {"roster": "Old Kim"})
    page = Page(added(classroom, {"roster": "Kim Lee\nLou Ray\nAda Fox"}))
    activity = classroom.open()
    classroom.school.browser().post(f"/join/{activity.join_code}", data={"name": "Ada Fox"})
    [lou] = [student for student in classroom.store.roster.students(classroom.course) if student.name == "Lou Ray"]
    classroom.store.classwork.arrive(activity.id, lou.id)  # a paper was entered
    [(attrs, _)] = page.find("button", name="import")
    path = f"/courses/{classroom.course.id}/students/undo-import"
    answer = classroom.instructor.post(path, data={"import": attrs["value"]})
    assert "Removed: 1. Kept, because they have joined or have work: 2." in classroom.get(answer.headers["location"])
    assert [name for name, _ in names_of(classroom)] == ["Ada Fox", "Lou Ray", "Old Kim"]
    again = classroom.instructor.post(path, data={"import": attrs["value"]})
    assert "Removed: 0." in classroom.get(again.headers["location"])
