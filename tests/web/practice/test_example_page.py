"""A sheet like one of practice: worked out, with its first rows given, and another one to practise."""

from __future__ import annotations

import re

from starlette.testclient import TestClient

from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.shipped import LIBRARY

EXAMPLE = "/sheet/example?worksheet=llama-7b&kind="


def given(page: Page) -> dict[str, str]:
    """The boxes that are filled in and can't be changed."""
    return {
        each["name"]: each["value"] for each, _ in page.find("input") if "data-blank" in each and "readonly" in each
    }


def test_a_worked_sheet_has_every_answer_and_its_reason_and_none_of_the_sheets_own(client: TestClient) -> None:
    response = client.get(f"{EXAMPLE}worked")
    page = Page(response.text)
    assert given(page).keys() == KEY.keys()
    assert not {*given(page).values()} & {*KEY.values()}
    assert len(page.find("p", class_="why")) == 7
    assert page.find("button", id="check") == []
    assert "set-cookie" not in response.headers


def test_a_faded_sheet_gives_the_first_rows_and_marks_the_rest(client: TestClient) -> None:
    rows = [row.key for row in LIBRARY.variant("llama-7b").rows]
    page = Page(client.get(f"{EXAMPLE}faded").text)
    first = given(page)
    assert {box.partition(".")[0] for box in first} == set(rows[:4])
    tokens = first["queries.rows"]
    typed = {"scores.rows": tokens, "scores.columns": tokens, "weights.rows": "1", "queries.rows": "5"}
    response = client.post(f"{EXAMPLE}faded", data=typed)
    assert "2 of 6 right" in Page(response.text).text("p", class_="result")
    marks = Page(response.text).marks()
    assert (marks["scores.rows"], marks["scores.columns"], marks["weights.rows"]) == ("right", "right", "wrong")
    assert given(Page(response.text)) == first
    assert len(Page(response.text).find("details", class_="why")) == 1
    assert "set-cookie" not in response.headers


def test_a_sheet_in_symbols_is_worked_out_in_numbers(client: TestClient) -> None:
    page = Page(client.get("/sheet/example?worksheet=llama-7b~symbols").text)
    assert all(re.fullmatch(r"[\d,]+", text) for text in given(page).values())


def test_the_next_example_has_other_numbers(client: TestClient) -> None:
    page = Page(client.get(f"{EXAMPLE}worked").text)
    [link] = [each["href"] for each, text in page.find("a") if text.strip() == "Another one"]
    assert "seed=2" in link
    assert client.get(link).status_code == 200


def test_another_like_a_finished_sheet_is_a_sheet_of_practice_with_other_numbers(client: TestClient) -> None:
    form = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}
    half = Page(client.post("/sheet/check", data={**form, **KEY, "keys.rows": "7"}).text)
    done = Page(client.post("/sheet/check", data={**form, **KEY}).text)
    links = [[each["href"] for each, _ in page.find("a") if "href" in each] for page in (half, done)]
    assert [any("/sheet/example" in link for link in each) for each in links] == [True, False]
    [another] = [link for link in links[1] if "/sheet/another" in link]
    response = client.get(another, follow_redirects=False)
    assert response.status_code == 303
    assert Page(client.get(response.headers["location"]).text).boxes() == dict.fromkeys(KEY, "")
    assert "tokens=100&" not in f"{response.headers['location']}&"


def test_a_sheet_whose_rows_no_other_sheet_has_says_so(client: TestClient) -> None:
    response = client.get("/sheet/example?worksheet=loss-vit-base")
    assert response.status_code == 404
    assert "has the rows of this one" in response.text


def test_rows_that_are_the_same_on_every_sheet_are_left_to_fill_in(client: TestClient) -> None:
    page = Page(client.get("/sheet/example?worksheet=loss-whisper-tiny").text)
    assert 0 < len(given(page)) < len(page.boxes())
    assert "worked out row by row" not in page.text("p", class_="example")
