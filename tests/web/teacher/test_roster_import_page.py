"""A class list is looked at before it is added, added once, and taken back."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI

from app.store import AuditAction, Policies
from app.web.roster import MAX_ROSTER_STUDENTS
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom
from tests.helpers.versioned_form import save

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
    [ada, kim] = choices(page, "add")
    assert "Ada Fox" in ada["odd-1"]
    assert "1017 Kim" in kim["odd-2"]
    assert [attrs["value"] for attrs, _ in page.find("input", type="radio") if "checked" in attrs] == ["", ""]
    new = text.partition('<textarea name="roster" hidden>\n')[2].partition("</textarea>")[0].replace("\n", "\r\n")
    assert "2 students added." in added(classroom, {"roster": new, **ada})
    assert names_of(classroom) == [("Ada Fox", None), ("Ada Fox", "1019"), ("Kim Lee", "1017"), ("Lou Ray", "1018")]


def preview(classroom: Classroom, roster: str, **columns: str) -> Page:
    """The page that shows what a list would add."""
    path = f"/courses/{classroom.course.id}/students/preview"
    return Page(classroom.instructor.post(path, data={"roster": roster, **columns}).text)


def choices(page: Page, kind: Literal["add", "same"]) -> list[dict[str, str]]:
    """The form fields that choose this for one odd row each, of the rows that offer it."""
    offered = [attrs for attrs, _ in page.find("input", type="radio") if attrs["value"]]
    return [{a["name"]: a["value"]} for a in offered if a["value"].startswith("add\n") == (kind == "add")]


def test_somebody_who_joined_by_typing_gets_the_number_of_the_list(classroom: Classroom) -> None:
    ann, _ = classroom.join("ann lee")
    page = preview(classroom, "Ann Lee, 1018")
    assert "0 students added." in added(classroom, {"roster": "", "odd-1": ""})  # the row is left out
    assert names_of(classroom) == [("ann lee", None)]
    [same] = choices(page, "same")
    assert "0 students added, 1 name changed, 1 number added." in added(classroom, {"roster": "", **same})
    assert names_of(classroom) == [("Ann Lee", "1018")]
    [again] = choices(preview(classroom, "Ann Lee, 1020"), "same")
    foreign = again["odd-1"].replace(f"{ann.id}\n", "999\n")
    added(classroom, {"roster": "", "odd-1": foreign, "odd-2": "x", "odd-3": ""})
    assert names_of(classroom) == [("Ann Lee", "1018")]
    added(classroom, {"roster": "", **again})
    assert names_of(classroom) == [("Ann Lee", "1020")]
    log, since = classroom.store.audit_log, classroom.course.created_at
    logged = [entry.action for entry in log.entries({"student": [ann.id]}, since, 99)]
    assert logged.count(AuditAction.STUDENT_NUMBER_CHANGED) == 2
    assert logged.count(AuditAction.STUDENT_RENAMED) == 1


def test_a_number_under_another_name_is_a_question(classroom: Classroom) -> None:
    added(classroom, {"roster": "Kim Lee, 1017"})
    page = preview(classroom, "Kim Fox, 1017")
    assert [words.endswith("to check") for _, words in page.find("tr")] == [False, True]
    assert not choices(page, "add")
    [same] = choices(page, "same")
    added(classroom, {"roster": "", **same})
    assert names_of(classroom) == [("Kim Fox", "1017")]


def test_the_columns_of_a_list_can_be_chosen(classroom: Classroom) -> None:
    page = preview(classroom, CANVAS)
    chosen = [attrs["value"] for attrs, _ in page.find("option") if "selected" in attrs]
    assert chosen == ["1", "0"]  # the number and the name
    assert "open" not in page.find("details", class_="more")[0][0]
    [roster] = [attrs["value"] for attrs, _ in page.find("input", name="roster")]
    again = preview(classroom, roster, number="2", first="0", last="")
    assert "Lou Ray A to check" in [words for _, words in again.find("tr")]  # the second with the number A
    for text in ("Name,Room\nKim,12 B", "Imię;Nazwisko;Numer\nKim;Lee;017"):
        assert "open" in preview(classroom, text).find("details", class_="more")[0][0]
    for text, number in (("Kim Lee, 17", "1"), ("Name,Number\nKim,17", "999")):  # there is no such column
        assert preview(classroom, text, number=number, first="0").find("table", class_="roster")


def test_nothing_unsure_is_added_by_itself(classroom: Classroom) -> None:
    page = preview(classroom, "Imię;Nazwisko;Numer\nKim;Lee;017\nLou;Ray;018\nŚrednia;;")
    titles, _average = choices(page, "add")
    new = next("".join(texts) for tag, _attrs, texts in page.elements if tag == "textarea")
    added(classroom, {"roster": new})
    assert names_of(classroom) == [("Kim Lee", "017"), ("Lou Ray", "018")]
    added(classroom, {"roster": "", **titles})
    assert ("Imię Nazwisko", "Numer") in names_of(classroom)


def test_whoever_a_preview_shows_is_added(classroom: Classroom) -> None:
    path = f"/courses/{classroom.course.id}/students/preview"
    for roster, number in (("Test Student", ""), ("Kim Lee\nTest Student, 17", "17")):
        text = classroom.instructor.post(path, data={"roster": roster}).text
        new = text.partition('<textarea name="roster" hidden>\n')[2].partition("</textarea>")[0]
        chosen = dict(pair for choice in choices(Page(text), "add") for pair in choice.items())
        added(classroom, {"roster": new, **chosen})
        assert ("Test Student", number or None) in names_of(classroom)


def test_students_are_added_once(classroom: Classroom) -> None:
    """A longer list adds the new students; an unreadable one comes back with a sentence, and adds nobody."""
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
    added(classroom, {"roster": "Old Kim"})
    log, since = classroom.store.audit_log, classroom.course.created_at
    entries = log.entries({"course": [classroom.course.id]}, since, 99)
    logged = [(entry.action, entry.detail) for entry in entries]
    assert [detail for action, detail in logged if action == AuditAction.IMPORT_UNDONE] == ["1"]
    assert [detail for action, detail in logged if action == AuditAction.STUDENTS_ADDED] == ["3", "1"]


def test_students_who_joined_with_the_code_and_did_nothing_are_removed_at_once(app_on_each_database: FastAPI) -> None:
    classroom = Classroom(app_on_each_database, Policies(ticket_anonymous=True, feedback="immediate"))
    store, roster = classroom.store, classroom.store.roster
    added(classroom, {"roster": "Kim Lee"})
    page = Page(added(classroom, {"roster": "Ada Fox\nLou Ray, 1018"}))
    path, join = f"/courses/{classroom.course.id}/students", f"/join/{classroom.activity.join_code}"

    def enter(name: str) -> Browser:
        browser = classroom.school.browser()
        assert browser.post(join, data={"name": name, "new": "yes"}).status_code == 303
        return browser

    def id_of(name: str) -> int:
        return next(student.id for student in roster.students(classroom.course) if student.name == name)

    for name in ("Ada Fox", "Lou Ray", "Zz One", "Zz Two"):
        enter(name)
    classroom.instructor.post(f"{path}/undo-import", data={"import": page.find("button", name="import")[0][0]["value"]})
    enter("Typed").post(f"{classroom.sheet_path}/save", data={**KEY, "form_id": "form-0001"})
    enter("Ticket").post(f"/class/{classroom.activity.id}/ticket", data={"answer-muddiest": "Softmax"})
    enter("Practised")
    roster.keep_practice_record(classroom.store.roster.find_student(id_of("Practised")), "{}")  # type: ignore[arg-type]
    for name in ("Renamed", "Given time", "Freed"):
        enter(name)
    save(classroom.instructor, f"{path}/{id_of('Renamed')}", {"name": "Renamed", "number": "7"})
    time = {"activity": str(classroom.activity.id), "minutes": "5"}
    classroom.instructor.post(f"{path}/{id_of('Given time')}/extra-time", data=time)
    classroom.instructor.post(f"{path}/{id_of('Freed')}/free")
    [(newest, words)] = Page(classroom.get(f"/courses/{classroom.course.id}")).find("button", name="newest")
    assert words == "Remove 2 students"
    enter("Zz Three")
    busy = enter("Zz Four")  # who begins before the press
    before = {name for name, _ in names_of(classroom)}
    everybody = {"newest": str(id_of("Zz Four"))}
    busy.post(f"{classroom.sheet_path}/save", data={**KEY, "form_id": "form-0002"})
    answer = classroom.instructor.post(f"{path}/remove-idle", data={"newest": newest["value"]})
    assert "Removed: 2." in classroom.get(answer.headers["location"])
    assert {name for name, _ in names_of(classroom)} == before - {"Zz One", "Zz Two"}
    classroom.instructor.post(f"{path}/remove-idle", data=everybody)
    assert {name for name, _ in names_of(classroom)} == before - {"Zz One", "Zz Two", "Zz Three"}
    assert not Page(classroom.get(f"/courses/{classroom.course.id}")).find("button", name="newest")
    removed = store.audit_log.entries({"course": [classroom.course.id]}, classroom.course.created_at, 9)
    assert [entry.detail for entry in removed if entry.action == AuditAction.NEWCOMERS_REMOVED] == ["1", "2"]
    for form in ({}, {"newest": "x"}, {"newest": "9" * 30}):
        assert "Removed: 0." in classroom.get(
            classroom.instructor.post(f"{path}/remove-idle", data=form).headers["location"]
        )
