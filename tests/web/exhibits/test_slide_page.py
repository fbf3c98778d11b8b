"""Slide it together: its page, the embeddable one, and what it refuses."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.helpers.html_page import Page


def frames(text: str) -> list[str]:
    """The keys of the frames on a page, in order."""
    return [attributes["data-key"] for attributes, _ in Page(text).find("li", class_="frame")]


def test_without_script_every_frame_is_there_and_the_asked_one_is_first_with_script(client: TestClient) -> None:
    page = Page(client.get("/see/slide?model=gpt2&tokens=100&step=2").text)
    assert len(page.find("li", class_="frame")) >= 3
    assert len(page.find("svg", role="img")) == len(page.find("li", class_="frame"))
    assert [attributes["id"] for attributes, _ in page.find("li", class_="shown")] == ["step-2"]


@pytest.mark.parametrize("step", ["0", "-3", "99999", "two", "٣"])
def test_a_step_that_is_none_shows_one_that_is(client: TestClient, step: str) -> None:
    answer = client.get("/see/slide", params={"step": step})
    assert answer.status_code == 200
    assert len(Page(answer.text).find("li", class_="shown")) == 1


def test_only_the_embeddable_page_may_stand_in_a_frame_of_another_site(client: TestClient) -> None:
    """Everything else that a page may do is the same for both."""
    page, embedded = (client.get(address) for address in ("/see/slide", "/see/slide/embed"))
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert embedded.headers["Content-Security-Policy"] == policy.replace("frame-ancestors 'none'", "frame-ancestors *")
    assert frames(page.text) == frames(embedded.text)
    assert not Page(embedded.text).find("header")


def test_what_cannot_be_shown_gets_a_sentence(client: TestClient) -> None:
    """An unknown model, a topic that is not true of it, and a length it cannot take."""
    for query, status in (("model=nobody", 404), ("model=deepseek-v2-lite", 422), ("model=gpt2&tokens=2000000", 422)):
        answer = client.get(f"/see/slide?{query}")
        assert answer.status_code == status
        page = Page(answer.text)
        assert page.find("p", role="alert")
        assert not page.find("svg", role="img")
        assert page.find("select", name="model")
