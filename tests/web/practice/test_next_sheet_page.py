"""Practice as a browser without script sees it: plain forms, one after another, with the record in a cookie."""

from __future__ import annotations

import base64
import re

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from app.practice.record import MAX_RESULTS, PracticeRecord, SheetResult, read_record, write_record
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.topics.registry import LEVELS
from app.web.practice.practice_cookie import MAX_COOKIE, read_record_cookie, set_record_cookie
from app.web.practice.sheet_request import sheet_link
from app.web.shared.cookies import PRACTICE_COOKIE
from simulation.misconception_students import misconception_sheets, right_sheet
from tests.helpers.html_page import Page

Answers = dict[str, str]


def sheet_on(page: httpx2.Response, library: Library) -> Variant:
    """The sheet that a page shows, by its code."""
    found = re.search(r'<a href="/v/([A-Z-]+)">', page.text)
    assert found
    return library.variant_from_code(found[1])


def form(variant: Variant, answers: Answers) -> Answers:
    """What the form of that sheet sends."""
    sizes = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": str(variant.tokens)}
    return {**sizes, "practice": "1", **answers}


def truth(variant: Variant) -> Answers:
    return {box: str(size) for box, size in right_sheet(variant).items()}


def with_misconception(variant: Variant, misconception: str) -> Answers:
    return {box: str(size) for box, size in dict(misconception_sheets(variant))[misconception].items()}


def record_of(client: TestClient) -> PracticeRecord:
    return read_record(base64.urlsafe_b64decode(client.cookies[PRACTICE_COOKIE]).decode())


def group_state(page: httpx2.Response, name: str) -> str:
    found = re.search(rf'<li data-state="(\w+)">{name} ', page.text)
    assert found
    return found[1]


def request_with(cookie: str) -> Request:
    headers = [(b"cookie", cookie.encode()), (b"host", b"localhost")]
    return Request({"type": "http", "scheme": "http", "path": "/", "query_string": b"", "headers": headers})


def begin_with_one_head(client: TestClient) -> httpx2.Response:
    """The first sheet for somebody who goes past the first steps."""
    return client.post("/practice/level", data={"level": "single-head"})


def test_practice_begins_with_first_steps_which_lead_to_one_head(client: TestClient, library: Library) -> None:
    variant = sheet_on(client.get("/practice"), library)
    assert variant.worksheet.topic == "first-steps"
    first = dict(list(truth(variant).items())[:2])
    client.post("/sheet/check", data=form(variant, first | {"token_query.columns": "31"}))
    done = client.post("/sheet/check", data=form(variant, truth(variant)))
    assert Page(done.text).text("button", id="another") == "Now the whole sheet"
    page = client.post("/practice", data=form(variant, truth(variant)))
    following = sheet_on(page, library)
    assert (following.worksheet.topic, following.worksheet.rows_number) == ("single-head", None)
    assert record_of(client).passed == ("first-steps",)
    assert record_of(client).results == (SheetResult(variant.code, True),)


def test_first_steps_of_the_start_page_count(client: TestClient, library: Library) -> None:
    [link] = [each["href"] for each, _ in Page(client.get("/").text).find("a") if "first-steps" in each["href"]]
    variant = sheet_on(client.get(link), library)
    assert variant.model.key == "llama-7b"
    first = dict(list(truth(variant).items())[:2])
    client.post("/sheet/check", data=form(variant, first))
    left = client.post("/practice", data=form(variant, first))
    assert record_of(client).results == ()
    assert sheet_on(left, library).worksheet.topic == "first-steps"
    client.post("/sheet/check", data=form(variant, truth(variant)))
    page = client.post("/practice", data=form(variant, truth(variant)))
    assert sheet_on(page, library).worksheet.topic == "single-head"


def test_practice_opens_with_a_sheet_and_comes_back_to_it(client: TestClient, library: Library) -> None:
    assert client.get("/practice", follow_redirects=False).status_code == 200
    first = begin_with_one_head(client)
    assert Page(first.text).text("button", id="another") == "Skip"
    assert group_state(first, "Scores and weights") == "new"
    assert "0 of 2 sheets right" in first.text
    assert 'href="/practice/map"' in first.text
    assert sheet_on(client.get("/practice"), library) == sheet_on(first, library)
    other = TestClient(client.app).get("/practice")
    assert sheet_on(other, library).worksheet.topic == "first-steps"


def test_an_ordinary_sheet_has_nothing_of_practice(client: TestClient) -> None:
    page = client.get("/sheet")
    assert 'href="/practice"' in page.text
    for word in ('id="another"', 'name="practice"', "misconception-groups"):
        assert word not in page.text


def test_a_level_can_be_answered_in_symbols(client: TestClient, library: Library) -> None:
    for answers, other in (("numbers", "letters"), ("letters", "numbers")):
        page = client.post("/practice/level", data={"level": "single-head"})
        assert sheet_on(page, library).worksheet.answers == answers
        offered = [
            each for tag, each, _ in Page(page.text).elements if (tag, each.get("name")) == ("button", "answers")
        ]
        assert [each["value"] for each in offered] == [other]
        client.post("/practice/level", data={"level": "single-head", "answers": other})
        client.post("/practice/level", data={"level": "single-head"})
    assert sheet_on(client.get("/practice"), library).worksheet.answers == "numbers"


def test_two_right_sheets_lead_a_level_up(client: TestClient, library: Library) -> None:
    page = begin_with_one_head(client)
    for _ in range(2):
        variant = sheet_on(page, library)
        assert variant.worksheet.topic == "single-head"
        checked = client.post("/sheet/check", data=form(variant, truth(variant)))
        assert Page(checked.text).text("button", id="another") == "Next sheet"
        assert "misconception-groups" in checked.text
        page = client.post("/practice", data=form(variant, truth(variant)))
    assert sheet_on(page, library).worksheet.topic == "whole-model"
    assert f"New level: {library.wording.topics['whole-model'].name}." in page.text
    assert [result.right for result in record_of(client).results] == [True, True]
    assert group_state(page, "Scores and weights") == "growing"


def test_what_was_missed_first_comes_back_though_it_was_put_right(client: TestClient, library: Library) -> None:
    variant = sheet_on(begin_with_one_head(client), library)
    client.post("/sheet/check", data=form(variant, with_misconception(variant, "softmax-collapses")))
    client.post("/sheet/check", data=form(variant, truth(variant)))
    page = client.post("/practice", data=form(variant, truth(variant)))
    assert record_of(client).results == (SheetResult(variant.code, False, ("softmax-collapses",)),)
    assert "This sheet comes back to something you missed: Scores and weights." in page.text
    assert group_state(page, "Scores and weights") == "again"
    variant = sheet_on(page, library)
    client.post("/sheet/check", data=form(variant, truth(variant)))
    answered = client.post("/practice", data=form(variant, truth(variant)))
    assert group_state(answered, "Scores and weights") == "growing"


def test_a_sheet_checked_row_by_row_counts_as_a_whole(client: TestClient, library: Library) -> None:
    variant = sheet_on(client.get("/practice"), library)
    answers = truth(variant)
    for boxes in (2, 9, len(answers)):
        client.post("/sheet/check", data=form(variant, dict(list(answers.items())[:boxes])))
    client.post("/practice", data=form(variant, answers))
    assert record_of(client).results == (SheetResult(variant.code, True),)


def test_a_sheet_without_an_attempt_is_skipped_and_what_was_typed_is_kept(client: TestClient, library: Library) -> None:
    variant = sheet_on(client.get("/practice"), library)
    client.post("/sheet/save", data=form(variant, {"queries.rows": "31"}))
    page = client.post("/practice", data=form(variant, {"queries.rows": "313"}))
    assert sheet_on(page, library) != variant
    assert record_of(client).results == ()
    assert 'value="313"' in client.get(sheet_link(variant)).text


def test_a_sheet_counts_once_however_often_it_is_sent(client: TestClient, library: Library) -> None:
    variant = sheet_on(client.get("/practice"), library)
    client.post("/sheet/check", data=form(variant, truth(variant)))
    pages = [client.post("/practice", data=form(variant, truth(variant))) for _ in range(3)]
    assert len({str(page.url) for page in pages}) == 1
    assert len(record_of(client).results) == 1


def test_a_level_can_be_chosen_and_the_record_forgotten(client: TestClient, library: Library) -> None:
    variant = sheet_on(begin_with_one_head(client), library)
    client.post("/sheet/check", data=form(variant, truth(variant)))
    variant = sheet_on(client.post("/practice", data=form(variant, truth(variant))), library)
    client.post("/sheet/check", data=form(variant, truth(variant)))
    page = client.post("/practice/level", data={"level": "attention-layer"})
    assert sheet_on(page, library).worksheet.topic == "attention-layer"
    assert len(record_of(client).results) == 2
    assert record_of(client).passed == ("single-head",)
    page = client.post("/practice/level", data={"level": "costs"})
    assert sheet_on(page, library).worksheet.topic == "attention-layer"
    page = client.post("/practice/forget")
    assert sheet_on(page, library).worksheet.topic == "first-steps"
    assert record_of(client).results == ()
    assert client.post("/practice/level", data={"level": "x" * 61}).status_code == 422
    assert sheet_on(client.post("/practice/level", data={"level": "none"}), library).worksheet.topic == "first-steps"


@pytest.mark.parametrize("cookie", ["x", "é", "W10=", "A" * 5000, base64.urlsafe_b64encode(b"\xff[").decode()])
def test_a_cookie_that_is_no_record_begins_a_new_one(client: TestClient, cookie: str) -> None:
    page = client.get("/practice", headers=[(b"cookie", f"{PRACTICE_COOKIE}={cookie}".encode())])
    assert page.status_code == 200
    assert Page(page.text).find("button", id="another")


def test_with_script_the_check_gives_the_sheet_alone_with_its_way_on(client: TestClient, library: Library) -> None:
    opened = begin_with_one_head(client)
    variant = sheet_on(opened, library)
    script = {"hx-request": "true"}
    wrong = client.post("/sheet/check", data=form(variant, truth(variant) | {"queries.rows": ""}), headers=script)
    assert "misconception-groups" not in wrong.text
    checked = client.post("/sheet/check", data=form(variant, truth(variant)), headers=script)
    assert Page(checked.text).text("button", id="another") == "Next sheet"
    assert 'name="practice"' in checked.text
    assert group_state(checked, "Scores and weights") == "growing"
    assert "1 of 2 sheets right" in checked.text
    assert record_of(client).results == ()
    assert "1 of 2 sheets right" in client.get(str(opened.url)).text


def test_an_address_of_practice_opens_anywhere(client: TestClient) -> None:
    page = client.get("/sheet?worksheet=llama-7b&practice=1")
    assert page.status_code == 200
    assert "misconception-groups" in page.text
    assert client.get("/sheet?worksheet=nothing&practice=1").status_code == 404


@given(st.integers(0, MAX_RESULTS), st.integers(0, 4))
def test_a_long_record_fits_into_a_cookie_and_keeps_its_newest_results(count: int, missed: int) -> None:
    held = ("heads-multiply-width", "shrunken-output-projection")
    results = [SheetResult(f"KHT-LC-XWZPNH-{'BCDFGHJKLM'[n % 10]}B", n % 5 >= missed) for n in range(count)]
    results = [
        result if result.right else SheetResult(result.code, False, held, ("input", "cache")) for result in results
    ]
    record, response = (
        PracticeRecord(
            10**9, 10**9, "attention-layer-latent", True, True, tuple(results), tuple(spec.key for spec in LEVELS)
        ),
        Response(),
    )
    set_record_cookie(request_with(""), response, record)
    cookie = response.headers["set-cookie"]
    assert len(cookie) < 4096
    read = read_record_cookie(request_with(cookie.split(";")[0]))
    assert read.results == record.results[len(record.results) - len(read.results) :]
    assert len(read.results) >= min(count, 15)
    assert len(write_record(read)) <= MAX_COOKIE
