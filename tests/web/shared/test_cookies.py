"""The header of every page knows who asks from the cookies only."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.web.shared.cookies import CLASS_COOKIE, TEACHER_COOKIE
from tests.helpers.html_page import Page
from tests.helpers.running_activity import counted_statements
from tests.helpers.school import Browser, Classroom


def links(browser: TestClient, address: str = "/models") -> dict[str, str]:
    """The links in the navigation of a page: their addresses, and whether each says that it is current."""
    page = Page(browser.get(address).text)
    [start] = [index for index, (tag, _, _) in enumerate(page.elements) if tag == "nav"][:1]
    [end] = [index for index, (tag, _, _) in enumerate(page.elements) if tag == "main"]
    elements = page.elements[start:end]
    return {attrs["href"]: attrs.get("aria-current", "") for tag, attrs, _ in elements if tag == "a"}


def test_a_visitor_finds_a_way_into_a_class_from_either_side(client: TestClient) -> None:
    others = dict.fromkeys(("/practice", "/see", "/handout", "/join", "/courses"), "")
    assert links(client) == {**others, "/models": "page"}


def test_a_student_finds_the_class_until_they_sign_out(classroom: Classroom) -> None:
    activity = classroom.open()
    browser = Browser(classroom.school.app)
    browser.post(f"/join/{activity.join_code}", data={"name": "Kim"})
    assert links(browser)["/mine"] == ""
    assert "/join" not in links(browser)
    assert links(browser, f"/class/{activity.id}")["/mine"] == "true"
    del browser.cookies[CLASS_COOKIE]
    assert "/mine" not in links(browser)
    browser.get("/mine")
    assert links(browser, "/mine")["/mine"] == "page"
    [student] = classroom.store.roster.students(classroom.course)
    browser.post(f"/mine/{student.id}/leave")
    assert "/join" in links(browser)


def test_a_teacher_can_sign_out_on_every_page(classroom: Classroom) -> None:
    teacher = classroom.instructor
    for address in ("/", "/models", "/courses", "/sheet"):
        assert Page(teacher.get(address).text).find("form", class_="signed", method="post", action="/sign-out")
        assert "/join" not in links(teacher, address)
    assert links(teacher, "/password")["/courses"] == "true"
    assert f'{TEACHER_COOKIE}=""' in teacher.post("/sign-out").headers["set-cookie"]
    assert f'{TEACHER_COOKIE}=""' in teacher.post("/sign-out").headers["set-cookie"]  # an ended session's


@pytest.mark.parametrize("address", ["/models", "/glossary", "/", "/nope"])
def test_the_header_asks_the_database_nothing(classroom: Classroom, address: str) -> None:
    _, student = classroom.join()
    for browser in (student, classroom.instructor):
        alone = TestClient(classroom.school.app, cookies=browser.cookies)  # which submits no drafts before it asks
        with counted_statements(classroom.store) as statements:
            alone.get(address)
        assert statements == []
