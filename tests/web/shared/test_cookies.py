"""The header of every page knows who asks from the cookies only."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.web.shared.cookies import CLASS_COOKIE, TEACHER_COOKIE, TEACHER_NAME_COOKIE
from app.web.shared.lti_launch import STATE_COOKIE
from tests.helpers.html_page import Page
from tests.helpers.running_activity import counted_statements
from tests.helpers.school import Browser, Classroom


def links(browser: TestClient, address: str = "/models") -> dict[str, str]:
    """The links in the header of a page: their addresses, and whether each says that it is current."""
    page = Page(browser.get(address).text)
    [start, end] = [index for index, (tag, _, _) in enumerate(page.elements) if tag in ("header", "main")]
    return {attrs["href"]: attrs.get("aria-current", "") for tag, attrs, _ in page.elements[start:end] if tag == "a"}


def test_a_visitor_finds_learning_teaching_and_a_class(client: TestClient) -> None:
    others = dict.fromkeys(("/", "/practice", "/see", "/teach", "/join"), "")
    assert links(client) == {**others, "/models": "page"}
    assert links(client, "/handout")["/teach"] == "true"
    assert links(client, "/heads")["/see"] == "true"


def test_a_student_in_a_class_finds_only_the_class(classroom: Classroom) -> None:
    activity = classroom.open()
    browser = Browser(classroom.school.app)
    assert links(browser, f"/join/{activity.join_code}") == {"/": ""}
    browser.post(f"/join/{activity.join_code}", data={"name": "Kim"})
    page = f"/class/{activity.id}/1"
    assert all(address.startswith(("/class/", "/mine")) for address in links(browser, page))
    reached = {attrs.get("href", "").partition("?")[0] for attrs, _ in Page(browser.get(page).text).find("a")}
    assert not reached & {"/handout", "/marking", "/models", "/practice", "/sheet", "/sheets"}
    assert links(browser) == {**dict.fromkeys(("/", "/practice", "/see", "/mine"), ""), "/models": "page"}
    assert links(browser, "/mine") == {"/mine": "page"}


def test_a_student_finds_the_class_until_they_sign_out(classroom: Classroom) -> None:
    activity = classroom.open()
    browser = Browser(classroom.school.app)
    browser.post(f"/join/{activity.join_code}", data={"name": "Kim"})
    assert "/mine" in links(browser)
    assert "/join" not in links(browser)
    del browser.cookies[CLASS_COOKIE]
    assert "/mine" not in links(browser)
    browser.get("/mine")
    assert "/mine" in links(browser)
    [student] = classroom.store.roster.students(classroom.course)
    browser.post(f"/mine/{student.id}/leave")
    assert "/join" in links(browser)


def test_a_teacher_has_name_and_menu_on_every_page(classroom: Classroom) -> None:
    teacher = classroom.instructor
    teacher.cookies.set(TEACHER_NAME_COOKIE, "Zo%C3%AB%20Fox")
    for address in ("/", "/models", "/courses", "/sheet", "/worksheets/new", "/handout"):
        page = Page(teacher.get(address).text)
        assert page.find("form", class_="signed", method="post", action="/sign-out")
        assert next(text.strip() for _, text in page.find("summary")) == "Zoë Fox"
        assert "/join" not in links(teacher, address)
        assert "/courses" in links(teacher, address)
    assert links(teacher, "/password")["/courses"] == "true"
    for _again in range(2):  # the second time, the session has ended
        deleted = teacher.post("/sign-out").headers.get_list("set-cookie")
        assert {cookie.partition("=")[0] for cookie in deleted} == {TEACHER_COOKIE, TEACHER_NAME_COOKIE, STATE_COOKIE}


def test_signing_in_gives_the_header_the_name(client: TestClient) -> None:
    store = client.app.state.services.store  # type: ignore[attr-defined]
    token = store.people.add_link("setup")
    form = {"email": "ada@example.org", "name": "Ada Lovelace", "password": "ten characters"}
    client.post(f"/links/{token}", data=form)
    assert "Ada Lovelace" in client.get("/models").text


@pytest.mark.parametrize("address", ["/models", "/glossary", "/", "/teach", "/about", "/nope"])
def test_the_header_asks_the_database_nothing(classroom: Classroom, address: str) -> None:
    _, student = classroom.join()
    for browser in (student, classroom.instructor):
        alone = TestClient(classroom.school.app, cookies=browser.cookies)  # which submits no drafts before it asks
        with counted_statements(classroom.store) as statements:
            alone.get(address)
        assert statements == []
