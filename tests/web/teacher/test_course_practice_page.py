"""Practice for a course: students are told who sees how far they are; its staff sees that, by lesson."""

from __future__ import annotations

from app.classes.course_files import course_files
from app.store import Material, Student
from app.web.shared.cookies import PRACTICE_COOKIE
from simulation.misconception_students import misconception_sheets, right_sheet
from tests.helpers.html_page import Page
from tests.helpers.school import Browser, Classroom
from tests.helpers.shipped import LIBRARY
from tests.helpers.versioned_form import save, version_in

OWN = {"title": "Queries by hand", "topic": "single-head", "model": "llama-7b", "tokens": 40, "rows": ["queries"]}
HEAD = LIBRARY.variant("llama-7b")
SHEET = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}


def own_worksheet(classroom: Classroom) -> Material:
    """A worksheet of the course, on the queries of one head of LLaMA 7B."""
    return classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, OWN)


def start(classroom: Classroom, *worksheets: str) -> int:
    """Have the course practise the lessons and these, as its page does."""
    form = {"worksheet": list(worksheets)}
    return int(save(classroom.instructor, f"/courses/{classroom.course.id}/practice", form).status_code)


def check(browser: Browser, misconception: str = "") -> None:
    """Check the sheet about one head, right or by a misconception."""
    sizes = dict(misconception_sheets(HEAD))[misconception] if misconception else right_sheet(HEAD)
    form = {**SHEET, **{box: str(size) for box, size in sizes.items()}}
    assert browser.post("/sheet/check", data=form).status_code == 303


def kept(classroom: Classroom, student: Student) -> str | None:
    """What is stored of a student's practice."""
    return classroom.store.roster.practice_records(classroom.course).get(student.id)


def rows_of(page: Page) -> list[list[str]]:
    """The cells of each student's line, and of each idea's."""
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


def test_teachers_see_how_far_a_student_is_in_each_lesson_and_what_to_look_at_again(classroom: Classroom) -> None:
    kim, browser = classroom.join("Kim")
    check(browser)
    assert kept(classroom, kim) is None
    assert start(classroom) == 303
    for address in ("/practice", "/sheet?worksheet=llama-7b"):
        assert "Transformers" in Page(browser.get(address).text).text("p", class_="seen")
    cookie = browser.cookies.get(PRACTICE_COOKIE)
    check(browser, "head-as-wide-as-model")
    assert browser.cookies.get(PRACTICE_COOKIE) == cookie
    page = Page(classroom.get(f"/courses/{classroom.course.id}/practice"))
    [(name, *lessons, again), (idea, count)] = rows_of(page)
    assert (name, lessons) == ("Kim", ["0 of 4", "0 of 3", "0 of 3", "0 of 4"])
    assert (again, count) == (idea, "1")
    header, row = students_csv(classroom)
    assert dict(zip(header, row, strict=True))["to review"] == "head-as-wide-as-model"
    with classroom.school.browser() as stranger:
        assert not Page(stranger.get("/practice").text).find("p", class_="seen")


def test_a_sheet_done_for_the_course_counts_in_its_lesson(classroom: Classroom) -> None:
    kim, browser = classroom.join("Kim")
    start(classroom)
    check(browser)
    assert kept(classroom, kim) == '[["llama-7b"],[],1]'
    [[name, first, *_]] = rows_of(Page(classroom.get(f"/courses/{classroom.course.id}/practice")))
    assert (name, first) == ("Kim", "1 of 4")
    assert [each["data-state"] for each, _ in Page(browser.get("/practice").text).find("li") if "data-state" in each][
        :2
    ] == ["open", "done"]


def test_own_worksheets_are_listed_for_the_students_of_the_course_only(classroom: Classroom) -> None:
    own = own_worksheet(classroom)
    _, browser = classroom.join()
    assert start(classroom, own.key) == 303
    [link] = [
        each["href"] for each, _ in Page(browser.get("/practice").text).find("a") if own.key in each.get("href", "")
    ]
    assert browser.get(link).status_code == 200
    with classroom.school.browser() as stranger:
        assert own.key not in stranger.get("/practice").text
        assert stranger.get(link).status_code == 404


def test_ending_practice_deletes_how_far_students_were(classroom: Classroom) -> None:
    kim, browser = classroom.join("Kim")
    start(classroom)
    check(browser)
    assert kept(classroom, kim)
    classroom.instructor.post(f"/courses/{classroom.course.id}/practice", data={"end": "yes"})
    assert kept(classroom, kim) is None
    assert not Page(browser.get("/practice").text).find("p", class_="seen")


def test_a_record_that_cannot_be_read_is_shown_as_empty(classroom: Classroom) -> None:
    kim, browser = classroom.join("Kim")
    start(classroom)
    classroom.store.roster.keep_practice_record(kim, "no record")
    [[name, *lessons, again]] = rows_of(Page(classroom.get(f"/courses/{classroom.course.id}/practice")))
    assert (name, set(lessons) <= {"0 of 4", "0 of 3"}, again) == ("Kim", True, "")
    assert browser.get("/practice").status_code == 200
    assert len(students_csv(classroom)) == 2


def test_a_worksheet_that_has_lost_its_model_is_named(classroom: Classroom) -> None:
    lost = {**OWN, "model": "cfg-" + "0" * 20}
    own = classroom.store.materials.add("worksheet", classroom.course, classroom.teacher, lost)
    refused = classroom.instructor.post(f"/courses/{classroom.course.id}/practice", data={"worksheet": [own.key]})
    assert refused.status_code == 422
    assert "Queries by hand" in Page(refused.text).text("p", id="problem")


def test_an_own_worksheet_that_was_removed_is_left_out(classroom: Classroom) -> None:
    own = own_worksheet(classroom)
    _, browser = classroom.join()
    start(classroom, own.key)
    classroom.store.materials.remove(own)
    assert own.key not in browser.get("/practice").text
    assert classroom.get(f"/courses/{classroom.course.id}/practice")


def test_a_choice_that_somebody_else_has_changed_meanwhile_is_shown_before_it_is_replaced(classroom: Classroom) -> None:
    theirs = own_worksheet(classroom)
    address = f"/courses/{classroom.course.id}/practice"
    version = version_in(classroom.instructor, address)
    assert start(classroom, theirs.key) == 303
    refused = classroom.instructor.post(address, data={"version": version})
    assert refused.status_code == 409
    page = Page(refused.text)
    assert "Queries by hand" in page.text("section", class_="conflict")
    [(button, _)] = page.find("button", name="overwrite")
    assert (
        classroom.instructor.post(address, data={"version": version, "overwrite": button["value"]}).status_code == 303
    )
    assert classroom.store.courses.practice(classroom.course) == {"worksheets": []}
