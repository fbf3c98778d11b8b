"""Tests of the start page: its picture, its question, and what exams leave of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app
from tests.helpers.school import SCRIPT


def verdict(client: TestClient, rows: str, columns: str, **headers: str) -> str:
    page = Page(client.get("/", params={"rows": rows, "columns": columns}, headers=headers).text)
    [(form, _)] = page.find("form", id="start-question")
    assert [box["value"] for box, _ in page.find("input", inputmode="numeric")] == [rows, columns]
    return form["data-verdict"]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ("64", "11", "right"),
        ("8 * 8", "11", "right"),
        ("11", "64", "turned"),
        ("11", "11", "rows"),
        ("64", "64", "columns"),
        ("many", "11", "unreadable"),
        ("", "11", ""),
    ],
)
def test_the_question_is_graded_without_script(client: TestClient, rows: str, columns: str, expected: str) -> None:
    assert verdict(client, rows, columns) == expected


def test_the_beginning_of_the_answer_is_not_called_wrong_while_it_is_typed(client: TestClient) -> None:
    assert verdict(client, "64", "1", **SCRIPT) == ""
    assert verdict(client, "64", "1") == "columns"
    assert verdict(client, "64", "12", **SCRIPT) == "columns"


def test_every_word_says_where_it_looks_most(client: TestClient) -> None:
    page = Page(client.get("/").text)
    stories = [" ".join(text.split()) for _, text in page.find("p", class_="tell")]
    assert len(stories) == len(page.find("input", type="radio")) == 11
    assert stories[7] == "“it” gives 80 % of its attention to “cat”."
    assert [word["value"] for word, _ in page.find("input", type="radio") if "checked" in word] == ["7"]


def test_htmx_gets_the_question_alone(client: TestClient) -> None:
    fragment = Page(client.get("/", params={"rows": "64"}, headers=SCRIPT).text)
    assert fragment.find("form", id="start-question")
    assert not fragment.find("h1")


def test_nothing_is_stored_for_a_visitor(client: TestClient) -> None:
    assert "set-cookie" not in client.get("/", params={"rows": "64", "columns": "11"}).headers


def test_on_a_server_for_exams_the_doors_that_work_stay_open(data_dir: Path) -> None:
    with TestClient(make_app(Settings(data_dir=data_dir, database_url="", practice=False))) as exam:
        for address in ("/", "/?rows=64&columns=11"):
            page = Page(exam.get(address).text)
            assert not page.find("input")
            assert not page.find("svg")
            assert [link["href"] for link, _ in page.find("a", class_="button")] == ["/join", "/teach"]
            assert not [link for link, _ in page.find("a") if link["href"] in ("/practice", "/models", "/glossary")]
        teach = {link["href"] for link, _ in Page(exam.get("/teach").text).find("a")}
        assert "/courses" in teach
        assert not teach & {"/handout", "/marking", "/demonstration"}
