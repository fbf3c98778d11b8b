"""The lessons as a browser without script sees them, with the record in a cookie."""

from __future__ import annotations

import base64
import json

import pytest
from starlette.testclient import TestClient

from app.bugs.bank import BUGS, BugKind
from app.practice.lessons import LESSONS
from app.practice.record import MAX_CARDS, MAX_DONE, Card, PracticeRecord, read_record, write_record
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.web.shared.cookies import PRACTICE_COOKIE
from app.web.shared.practice_place import MAX_COOKIE
from app.web.shared.sheet_address import sheet_link
from simulation.misconception_students import misconception_sheets, right_sheet
from tests.helpers.html_page import Page
from tests.helpers.shipped import LIBRARY

HEAD = LIBRARY.variant("llama-7b")


def check(client: TestClient, variant: Variant, misconception: str = "") -> None:
    sizes = dict(misconception_sheets(variant))[misconception] if misconception else right_sheet(variant)
    sheet = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": str(variant.tokens)}
    response = client.post("/sheet/check", data={**sheet, **{box: str(size) for box, size in sizes.items()}})
    assert response.status_code == 200


def record_of(client: TestClient) -> PracticeRecord:
    return read_record(LIBRARY, base64.urlsafe_b64decode(client.cookies[PRACTICE_COOKIE]).decode())


def set_record(client: TestClient, text: str) -> None:
    client.cookies.set(PRACTICE_COOKIE, base64.urlsafe_b64encode(text.encode()).decode())


def states(client: TestClient) -> list[str]:
    """How the sheets of the first lesson's row stand."""
    items = [each["data-state"] for each, _ in Page(client.get("/practice").text).find("li") if "data-state" in each]
    return items[: len(LESSONS[0].sheets)]


def test_every_sheet_of_the_lessons_is_at_most_two_links_away(client: TestClient) -> None:
    def links_on(address: str) -> list[str]:
        page = Page(client.get(address).text)
        return [each["href"] for each, _ in page.find("a") if "worksheet=" in each.get("href", "")]

    links = links_on("/practice")
    for lesson in LESSONS:
        for key in (*lesson.sheets, lesson.hunt, lesson.harder):
            assert any(f"worksheet={key}" in link for link in links), key
        more = links_on(f"/sheets?lesson={lesson.key}")
        assert all(any(f"worksheet={key}" in link for link in more) for key in lesson.more)
    assert PRACTICE_COOKIE not in client.cookies
    assert all(client.get(link).status_code == 200 for link in links[:6])


def test_a_checked_sheet_is_done_and_the_next_one_is_named(client: TestClient) -> None:
    assert states(client) == ["next", "open", "open", "open"]
    check(client, HEAD)
    assert states(client) == ["open", "done", "next", "open"]
    page = Page(client.get(sheet_link(HEAD)).text)
    [[following, _]] = page.find("a", id="next")
    assert "worksheet=softmax-of-a-model" in following["href"]
    [[back, _]] = [found for found in page.find("a") if found[0].get("href") == "/practice" and "Lesson" in found[1]]
    assert back


def test_a_mistake_waits_and_its_link_leads_to_the_rows_concerned(client: TestClient, library: Library) -> None:
    check(client, HEAD, "head-as-wide-as-model")
    check(client, HEAD)
    check(client, HEAD)
    assert record_of(client).finished == 1
    assert states(client)[1] == "again"
    page = Page(client.get("/practice").text)
    [link] = [each["href"] for each, _ in page.find("a") if "~" in each.get("href", "")]
    part = Page(client.get(link).text)
    assert {box.partition(".")[0] for box in part.boxes()} == {"queries", "keys", "values"}
    worksheet, tokens = [part.find("input", name=name)[0][0]["value"] for name in ("worksheet", "tokens")]
    check(client, library.variant(worksheet, None, int(tokens)))
    [card] = record_of(client).cards
    assert (card.times_right, card.due > record_of(client).finished) == (1, True)


def test_a_bug_hunt_deals_another_bug_each_time_and_counts(client: TestClient, library: Library) -> None:
    dealt = [client.get("/sheet/another?worksheet=bug-or-none").url.params["worksheet"] for _ in range(12)]
    assert len(set(dealt)) > 6
    assert {key.partition("~")[2] for key in dealt} <= set(BUGS)
    page = Page(client.get("/sheet/another?worksheet=bug-or-none").text)
    links = [each["href"] for each, _ in page.find("a") if "/sheet/another" in each.get("href", "")]
    kinds: list[BugKind] = ["any", "loud", "silent"]
    for kind, link in zip(kinds, links, strict=True):
        key = client.get(link).url.params["worksheet"]
        assert kind == "any" or BUGS[key.partition("~")[2]].is_kind(kind)
    variant = library.seeded("bug-one-head", 1)
    form = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
    sheet = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": str(variant.tokens)}
    assert client.get(sheet_link(variant)).status_code == 200
    assert client.get(f"/v/{variant.code}").url.params["worksheet"] == variant.worksheet.key
    client.post("/sheet/check", data={**sheet, **form})
    assert record_of(client).done == ("bug-one-head",)


def test_a_cookie_of_levels_is_carried_over_at_the_next_check(client: TestClient) -> None:
    set_record(client, json.dumps([7, 2, "whole-model", False, False, [HEAD.code], ["first-steps"]]))
    assert states(client) == ["done", "done", "next", "open"]
    client.post("/practice/forget")
    assert states(client) == ["next", "open", "open", "open"]


@pytest.mark.parametrize("cookie", ["", "%%%", "bm8gcmVjb3Jk", "W10=", "x" * 9000])
def test_a_cookie_that_cannot_be_read_is_an_empty_record(client: TestClient, cookie: str) -> None:
    client.cookies.set(PRACTICE_COOKIE, cookie)
    assert states(client) == ["next", "open", "open", "open"]


def test_the_longest_record_fits_into_a_cookie() -> None:
    keys = sorted((key for key, _ in misconception_sheets(HEAD)), key=len, reverse=True)
    worksheets = sorted((key for lesson in LESSONS for key in lesson.worksheets), key=len, reverse=True)
    own = [f"own-{number}" for number in range(100_000, 100_000 + MAX_DONE)]
    cards = tuple(Card(key, f"{HEAD.code}-YYYBBB-XBBBBB", 2, 10**4) for key in keys[:MAX_CARDS])
    record = PracticeRecord((*worksheets, *own)[:MAX_DONE], cards, 10**4)
    assert len(base64.urlsafe_b64encode(write_record(record).encode())) <= MAX_COOKIE
