"""First steps in a class: one at a time where checks show marks, otherwise all at once."""

from __future__ import annotations

import pytest

from app.store import Policies
from tests.helpers.class_sheet import press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.shipped import LIBRARY

SHEET = LIBRARY.variant("first-steps")
KEY = {box: str(size) for box, size in SHEET.key.items()}
EMPTY = dict.fromkeys(KEY, "")
FIRST = {**EMPTY, "token_query.rows": "1", "token_query.columns": "128"}


def boxes(page: Page) -> list[str]:
    return [name for name in page.boxes() if name in KEY]


def reasons(page: Page) -> int:
    return len(page.find("details", class_="why"))


def test_a_student_gets_a_step_for_each_right_one_and_hands_all_of_them_in(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, None, ("first-steps",))
    _, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    assert boxes(page) == ["token_query.rows", "token_query.columns"]
    page = Page(press(browser, activity, "check", {**FIRST, "token_query.columns": "4096"}).text)
    assert (len(boxes(page)), reasons(page)) == (2, 0)
    assert page.text("p", class_="diagnosis")
    page = Page(press(browser, activity, "check", FIRST).text)
    assert (len(boxes(page)), reasons(page)) == (4, 1)
    assert page.text("p", class_="result") == "1 of 12 steps done."
    to_the_root = {box: size for box, size in KEY.items() if box.startswith(("token_", "transposed_", "under_"))}
    drawn = press(browser, activity, "save", {**EMPTY, **to_the_root}).text
    assert "s = q · kᵀ" in drawn  # typing by itself leads to no other drawing
    press(browser, activity, "save", FIRST)
    page = Page(press(browser, activity, "check", {**FIRST, "queries.rows": "4"}).text)
    assert "queries.rows" in boxes(page)
    page = Page(press(browser, activity, "hand-in", KEY).text)
    assert (len(boxes(page)), reasons(page)) == (len(KEY), 12)
    [*_, last] = classroom.store.classwork.attempts_of_activity(activity.id)
    assert (last.handed_in, last.score) == (True, len(KEY))


@pytest.mark.parametrize("policies", [Policies(max_attempts=3), Policies(feedback="after_close")])
def test_all_questions_are_shown_where_nobody_could_go_on_from_one_to_the_next(
    classroom: Classroom, policies: Policies
) -> None:
    activity = classroom.school.activity(classroom.course, policies, ("first-steps",))
    _, browser = classroom.join()
    page = Page(browser.get(f"/class/{activity.id}/1").text)
    assert (len(boxes(page)), reasons(page)) == (len(KEY), 0)
    assert len(page.find("tr", class_="step")) == 12
