"""A sheet like one of an activity, where its rules allow it: worked out, and another one once it has closed."""

from __future__ import annotations

from typing import Any

import pytest

from app.store import Policies
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import attempts_in, press
from tests.helpers.clock import end_activity
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def links_of(page: Page) -> list[str]:
    return [each["href"] for each, _ in page.find("a") if "/example" in each.get("href", "")]


@pytest.mark.parametrize(
    ("policies", "status"),
    [({}, 200), ({"examples": False}, 404), ({"hints": False}, 404), ({"exam": True}, 404)],
)
def test_an_example_is_there_where_the_activity_gives_hints_and_examples(
    classroom: Classroom, policies: dict[str, Any], status: int
) -> None:
    activity = classroom.open(**policies)
    _, browser = classroom.join()
    address = f"/class/{activity.id}/1/example"
    assert browser.get(address).status_code == status
    assert bool(links_of(Page(browser.get(f"/class/{activity.id}/1").text))) == (status == 200)
    end_activity(classroom.store, activity.id)
    assert browser.get(address).status_code == 200
    [link] = links_of(Page(browser.get(f"/class/{activity.id}/1").text))
    assert "kind=another" in link


def test_what_is_tried_on_another_sheet_is_not_stored(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    press(browser, activity, "check", KEY)
    [link] = links_of(Page(browser.get(f"/class/{activity.id}/1").text))
    assert Page(browser.get(link).text).boxes() == dict.fromkeys(KEY, "")
    page = Page(browser.post(link, data=KEY).text)
    assert {*page.marks().values()} == {"wrong"}
    assert len(attempts_in(classroom, activity)) == 1


def test_an_example_is_about_no_model_of_the_activity(classroom: Classroom) -> None:
    activity = classroom.school.activity(classroom.course, Policies(), ("llama-7b", "qwen2.5-0.5b"))
    _, browser = classroom.join()
    for seed in range(1, 5):
        title = Page(browser.get(f"/class/{activity.id}/1/example?seed={seed}").text).text("h1")
        assert "LLaMA 7B" not in title
        assert "Qwen2.5 0.5B" not in title


def test_an_example_of_a_sheet_that_is_not_there_is_not_found(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    assert browser.get(f"/class/{activity.id}/2/example").status_code == 404
