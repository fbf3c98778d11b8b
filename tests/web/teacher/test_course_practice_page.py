"""Practice for a course: students get its sheets and are told who sees how far they are; its staff sees that."""

from __future__ import annotations

from app.classes.course_files import course_files
from app.classes.materials import library_with_materials
from app.sheets.variant import Variant
from app.store import Material, Student
from app.web.shared.cookies import PRACTICE_COOKIE
from simulation.misconception_students import right_sheet
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom
from tests.helpers.versioned_form import save

OWN = {"title": "Queries by hand", "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries"]}


def own_worksheet(classroom: Classroom) -> Material:
    """A worksheet of the course, on the queries of one head of LLaMA 7B."""
    return classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, OWN)


def start(classroom: Classroom, *worksheets: str, topics: tuple[str, ...] = ()) -> int:
    """Have the course practise these, as its page does."""
    form = {"topic": list(topics), "worksheet": list(worksheets)}
    return int(save(classroom.instructor, f"/courses/{classroom.course.id}/practice", form).status_code)


def next_sheet_for(browser: Browser) -> tuple[Page, dict[str, str]]:
    """The page of the sheet that practice opens with, and what its form names."""
    page = Page(browser.get("/practice").text)
    named = {attributes["name"]: attributes.get("value", "") for attributes, _ in page.find("input", type="hidden")}
    return page, {name: named[name] for name in ("worksheet", "model", "tokens", "practice")}


def finish(browser: Browser, sheet: dict[str, str], answers: dict[str, str]) -> None:
    """Check the sheet with these answers and go on to the next."""
    form = {**sheet, **answers}
    assert browser.post("/sheet/check", data=form).status_code == 303
    assert browser.post("/practice", data=form).status_code == 303


def kept(classroom: Classroom, student: Student) -> str | None:
    """What is stored of a student's practice."""
    return classroom.store.roster.practice_records(classroom.course).get(student.id)


def test_students_practise_what_their_course_does(classroom: Classroom) -> None:
    own = own_worksheet(classroom)
    kim, browser = classroom.join("Kim")
    alone, sheet = next_sheet_for(browser)
    assert sheet["worksheet"] != own.key
    assert not alone.find("p", class_="seen")
    assert start(classroom, own.key) == 303
    page, sheet = next_sheet_for(browser)
    assert (sheet["worksheet"], kept(classroom, kim)) == (own.key, None)
    assert "Transformers" in page.text("p", class_="seen")
    cookie = browser.cookies.get(PRACTICE_COOKIE)
    with classroom.school.browser() as stranger:
        assert stranger.get("/sheet", params=sheet).status_code == 404
    truth: Variant = sheet_of(classroom, own, sheet)
    finish(browser, sheet, {box: str(size) for box, size in right_sheet(truth).items()})
    assert browser.cookies.get(PRACTICE_COOKIE) == cookie
    student, *ideas, level = rows_of(Page(classroom.get(f"/courses/{classroom.course.id}/practice")))
    assert student == ["Kim", "All passed", "1", "1", "1", "0", ""]
    assert {tuple(counts) for _, *counts in ideas} == {("", "1", "")}
    assert level == ["1. One head", "1", "", ""]
    assert dict(zip(*students_csv(classroom), strict=True))["practice sheets right"] == "1"


def sheet_of(classroom: Classroom, own: Material, sheet: dict[str, str]) -> Variant:
    """The sheet that an address names, made from the material."""
    library = library_with_materials(classroom.school.library, classroom.store, [own])
    return library.variant(own.key, sheet["model"], int(sheet["tokens"]))


def rows_of(page: Page) -> list[list[str]]:
    """The cells of each student's line."""
    rows, current = list[list[str]](), list[str]()
    for tag, attributes, texts in page.elements:
        text = " ".join("".join(texts).split())
        if tag == "th" and attributes.get("scope") == "row":
            current = [text]
            rows.append(current)
        elif tag == "td" and current:
            current.append(text)
    return rows


def students_csv(classroom: Classroom) -> list[list[str]]:
    """The table of students as the export of the course has it."""
    files = course_files(classroom.school.library, classroom.store, classroom.course)
    return [["" if cell is None else str(cell) for cell in row] for row in files.student_rows()]


def test_ending_practice_deletes_how_far_students_were(classroom: Classroom) -> None:
    kim, browser = classroom.join("Kim")
    assert start(classroom, topics=("costs",)) == 303
    page, sheet = next_sheet_for(browser)
    assert page.find("p", class_="seen")
    box = next(iter(page.boxes()))
    finish(browser, sheet, {box: "1"})
    assert kept(classroom, kim)
    _, again = next_sheet_for(browser)
    assert again["worksheet"].startswith("costs-")
    classroom.instructor.post(f"/courses/{classroom.course.id}/practice", data={"end": "yes"})
    assert kept(classroom, kim) is None
    page, _ = next_sheet_for(browser)
    assert not page.find("p", class_="seen")


def test_what_cannot_be_practised_is_said(classroom: Classroom) -> None:
    assert start(classroom) == 422
    assert start(classroom, "own-99999") == 422
    assert classroom.store.courses.practice(classroom.course) is None


def test_a_worksheet_that_has_lost_its_model_is_named(classroom: Classroom) -> None:
    lost = {**OWN, "model": "cfg-" + "0" * 20}
    own = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, lost)
    form = {"topic": ["single-head"], "worksheet": [own.key]}
    refused = classroom.instructor.post(f"/courses/{classroom.course.id}/practice", data=form)
    assert refused.status_code == 422
    assert "Queries by hand" in Page(refused.text).text("p", id="problem")


def test_an_own_worksheet_that_was_removed_is_left_out(classroom: Classroom) -> None:
    own = own_worksheet(classroom)
    _, browser = classroom.join()
    start(classroom, own.key)
    classroom.store.materials.remove(own)
    page, sheet = next_sheet_for(browser)
    assert sheet["worksheet"] != own.key
    assert not page.find("p", class_="seen")
    assert classroom.get(f"/courses/{classroom.course.id}/practice")
