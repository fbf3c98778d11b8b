"""The map of practice: every level with how far one is, what comes before it, and testing out of one."""

from __future__ import annotations

import base64
from dataclasses import replace

from starlette.testclient import TestClient

from app.practice.levels import practice_levels
from app.practice.record import PracticeRecord, SheetResult, read_record, write_record
from app.practice.scheduler import Practice, next_sheet
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.web.shared.cookies import PRACTICE_COOKIE
from simulation.beginners import typed_texts
from simulation.misconception_students import right_sheet
from tests.helpers.html_page import Page
from tests.helpers.shipped import LIBRARY


def keep(client: TestClient, record: PracticeRecord) -> None:
    """Put a record into the browser's cookie."""
    client.cookies.set(PRACTICE_COOKIE, base64.urlsafe_b64encode(write_record(record).encode()).decode())


def record_of(client: TestClient) -> PracticeRecord:
    return read_record(base64.urlsafe_b64decode(client.cookies[PRACTICE_COOKIE]).decode())


def states(client: TestClient) -> list[str]:
    """The state of each level on the map."""
    page = Page(client.get("/practice/map").text)
    levels = {
        attributes["id"]: attributes["data-state"]
        for attributes, _text in page.find("li")
        if "data-state" in attributes and "id" in attributes
    }
    return [levels[level.key] for level in practice_levels(LIBRARY)]


def answer(client: TestClient, variant: Variant, sizes: dict[str, int]) -> None:
    """Check the sheet with these sizes, and go on."""
    sheet = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": str(variant.tokens)}
    form = {**sheet, "practice": "1", **typed_texts(variant, sizes)}
    client.post("/sheet/check", data=form)
    client.post("/practice", data=form)


def test_the_map_shows_every_level_and_opens_only_what_can_be_practised(client: TestClient, library: Library) -> None:
    assert states(client) == ["current", "open"] + ["closed"] * (len(practice_levels(library)) - 2)
    elements = Page(client.get("/practice/map").text).elements
    tests = [attributes["aria-label"] for _, attributes, _ in elements if attributes.get("name") == "test"]
    assert tests == ["Test out: One head"]  # first steps teach: there is nothing to test out of
    keep(client, PracticeRecord(1, passed=("single-head",)))
    opened = [level.key for level in practice_levels(library) if set(level.after) == {"single-head"}]
    page = Page(client.get("/practice/map").text)
    offered = [attributes["value"] for _, attributes, _ in page.elements if attributes.get("name") == "level"]
    assert sorted(offered) == sorted(["first-steps", "single-head", *opened])
    assert "3. Attention layer" in page.text("li", **{"data-state": "closed"})


def test_the_map_names_what_was_missed_where_it_was_missed(client: TestClient, library: Library) -> None:
    start = PracticeRecord(1, passed=("first-steps",))
    first = next_sheet(library, start).variant
    missed = SheetResult(library.seeded("llama-7b", 2).code, False, ("softmax-collapses",))
    keep(client, replace(start, results=(SheetResult(first.code, True), missed)))
    here = Page(client.get("/practice/map").text).text("li", **{"aria-current": "step"})
    assert "1 of 2 sheets right" in here
    assert "Scores and weights" in here


def test_one_harder_sheet_tests_out_of_a_level(client: TestClient, library: Library) -> None:
    client.get("/practice")
    client.post("/practice/level", data={"level": "single-head", "test": "1"})
    harder = next_sheet(library, record_of(client))
    assert (harder.reason, harder.variant.worksheet.whole) == ("test", harder.variant.worksheet.key)
    assert Practice(library, record_of(client)).level.key == "single-head"
    wrong = {**right_sheet(harder.variant), "weights.columns": 1}
    answer(client, harder.variant, wrong)
    assert (record_of(client).passed, record_of(client).testing) == ((), False)
    assert next_sheet(library, record_of(client)).reason == "back"
    client.post("/practice/level", data={"level": "single-head", "test": "1"})
    again = next_sheet(library, record_of(client)).variant
    assert again != harder.variant
    answer(client, again, right_sheet(again))
    assert record_of(client).passed == ("single-head",)
    assert record_of(client).level == "whole-model"
