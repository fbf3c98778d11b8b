"""Tests of the landing page."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app
from tests.helpers.school import SCRIPT


def asked(page: Page) -> str:
    """The name of the box that waits for an answer."""
    [[box, _]] = [each for each in page.find("input") if "data-blank" in each[0]]
    return box["name"]


def drawn_size(page: Page) -> str:
    """What the drawing has at the side of the keys that is asked for."""
    sizes = {side["data-size"] for side, _ in page.find("g") if side.get("data-blank") == "keys.columns"}
    assert len(sizes) == 1
    return sizes.pop()


def test_links_to_sheets_from_before_there_was_a_landing_page_still_open_the_sheet(client: TestClient) -> None:
    answer = client.get("/?worksheet=llama-7b&tokens=50", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == "/sheet?worksheet=llama-7b&tokens=50"


def test_every_right_answer_opens_the_next_box_until_everything_fits(client: TestClient) -> None:
    typed = dict[str, str]()
    for name, text in {"keys.columns": "4096/32", "scores.columns": "100", "output.columns": "4,096"}.items():
        response = client.get("/", params=typed)
        assert asked(Page(response.text)) == name
        assert response.headers.get("set-cookie") is None
        typed[name] = text
    page = Page(client.get("/", params=typed).text)
    assert [box["name"] for box, _ in page.find("input", type="hidden")] == list(typed)
    assert not page.find("span", class_="box")
    assert not page.find("g", class_="mismatched")


@pytest.mark.parametrize(("text", "kind"), [("4096", "wrong"), ("wide", "unreadable"), ("", "")])
def test_a_wrong_answer_is_drawn_and_asked_for_again(client: TestClient, text: str, kind: str) -> None:
    page = Page(client.get("/", params={"keys.columns": text}).text)
    assert asked(page) == "keys.columns"
    assert [mark.get("data-mark", "") for mark, _ in page.find("span", class_="box")] == [kind]
    assert drawn_size(page) == (text if kind == "wrong" else "?")


@pytest.mark.parametrize("text", ["1", "12", " 12", ""])
def test_the_beginning_of_the_answer_is_not_called_wrong_while_it_is_typed(client: TestClient, text: str) -> None:
    def is_wrong(number: str, **headers: str) -> bool:
        page = Page(client.get("/", params={"keys.columns": number}, headers=headers).text)
        assert asked(page) == "keys.columns"
        wrong = [mark["data-mark"] for mark, _ in page.find("p", class_="remark") if "data-mark" in mark]
        assert (drawn_size(page) != "?") == bool(wrong)
        return bool(wrong)

    assert not is_wrong(text, **SCRIPT)
    assert is_wrong(text) == bool(text)
    assert is_wrong(f"{text}3", **SCRIPT)


def test_htmx_gets_the_drawing_alone(client: TestClient) -> None:
    fragment = Page(client.get("/", params={"keys.columns": "128"}, headers={"HX-Request": "true"}).text)
    assert asked(fragment) == "scores.columns"
    assert not fragment.find("h1")


def test_on_a_server_for_exams_the_doors_that_work_stay_open(data_dir: Path) -> None:
    with TestClient(make_app(Settings(data_dir=data_dir, database_url="", practice=False))) as exam:
        for address in ("/", "/?keys.columns=128"):
            page = Page(exam.get(address).text)
            assert not page.find("input")
            assert not page.find("svg")
            doors = [link["href"] for link, _ in page.find("a", class_="button")]
            assert doors == ["/join", "/courses"]
            assert not [link for link, _ in page.find("a") if link["href"] in ("/practice", "/models", "/glossary")]
