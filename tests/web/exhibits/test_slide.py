"""Slide it together: its page, the embeddable one, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from app.classes.student_sheet import freeze
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Plan, Policies
from app.topics.registry import TOPICS
from app.web.shared.static_files import static_url
from tests.helpers.class_sheet import press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


def frames(text: str) -> list[str]:
    """The keys of the frames on a page, in order."""
    return [attributes["data-key"] for attributes, _ in Page(text).find("li", class_="frame")]


def test_without_script_every_frame_is_there_and_the_asked_one_is_first_with_script(client: TestClient) -> None:
    page = Page(client.get("/see/slide?model=gpt2&tokens=100&step=2").text)
    assert len(page.find("li", class_="frame")) >= 3
    assert len(page.find("svg", role="img")) == len(page.find("li", class_="frame"))
    assert [attributes["id"] for attributes, _ in page.find("li", class_="shown")] == ["step-2"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("topic=nope", 404),
        ("worksheet=nope", 404),
        ("product=nope", 404),
        ("topic=attention-layer&product=nope", 404),
        ("model=nobody", 404),
        ("model=deepseek-v2-lite", 422),  # latent attention has no queries and keys of this table
        ("model=gpt2&tokens=2000000", 422),
        ("tokens=many", 422),
    ],
)
def test_what_is_not_there_is_said_and_can_be_chosen_anew(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"/see/slide?{query}")
    page = Page(answer.text)
    assert answer.status_code == status
    ((_, sentence),) = page.find("p", role="alert")
    assert sentence
    assert frames(answer.text) == []
    for menu in ("topic", "model"):
        assert page.find("select", name=menu)
    if "model=" in query and "nobody" not in query:
        chosen = [attributes["value"] for attributes, _ in page.find("option") if "selected" in attributes]
        assert query.partition("model=")[2].partition("&")[0] in chosen


@pytest.mark.parametrize("exhibit", ["slide", "heads", "token"])
@pytest.mark.parametrize("step", ["0", "-3", "99999", "two", ""])
def test_a_step_that_is_none_is_said_to_be_none_and_the_first_is_shown(
    client: TestClient, exhibit: str, step: str
) -> None:
    answer = client.get(f"/see/{exhibit}", params={"step": step})
    page = Page(answer.text)
    assert answer.status_code == 422
    assert page.find("p", role="alert")
    assert [attributes["id"] for attributes, _ in page.find("li", class_="shown")] == ["step-1"]


def test_only_the_embeddable_page_may_stand_in_a_frame_of_another_site(client: TestClient) -> None:
    page, embedded = (client.get(address) for address in ("/see/slide", "/see/slide/embed"))
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert embedded.headers["Content-Security-Policy"] == policy.replace("frame-ancestors 'none'", "frame-ancestors *")
    assert frames(page.text) == frames(embedded.text)
    assert not Page(embedded.text).find("header")


TYPED = {"queries.rows": "100", "queries.columns": "128", "keys.rows": "100"}


def see_links(text: str) -> dict[str, str]:
    """The links from a sheet to the exhibit, by the letter of the result."""
    found = [(attributes["href"], words) for attributes, words in Page(text).find("a") if "data-see" in attributes]
    return {words.partition(" ")[0]: address for address, words in found}


def test_a_sheet_leads_to_each_of_its_products_with_what_is_typed(client: TestClient) -> None:
    sheet = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}
    client.post("/sheet/save", data={**sheet, **TYPED})
    links = see_links(client.get("/sheet?worksheet=llama-7b").text)
    assert list(links) == ["Q", "K", "V", "S", "C", "O"]
    missing = client.get(links["S"]).text
    assert frames(missing) == []
    assert Page(missing).find("p", role="alert")
    client.post("/sheet/save", data={**sheet, **TYPED, "keys.columns": "4096"})
    links = see_links(client.get("/sheet?worksheet=llama-7b").text)
    assert frames(client.get(links["S"]).text) == ["apart", "bounce"]
    assert "3968" in client.get(links["S"]).text


@pytest.mark.slow
def test_every_product_that_a_sheet_leads_to_is_shown_once_its_boxes_are_right(
    client: TestClient, library: Library
) -> None:
    sheets = library.worksheets.values()
    by_questions = {(sheet.topic, sheet.answers, sheet.rows): sheet.key for sheet in sheets}
    shown = 0
    for variant in map(library.variant, by_questions.values()):
        right = right_answers(variant)
        for letter, address in see_links(client.get(f"/sheet?worksheet={variant.worksheet.key}").text).items():
            exhibit = client.get(address, params={**dict(parse_qsl(urlsplit(address).query)), **right})
            assert frames(exhibit.text)[:1] == ["apart"], (variant.worksheet.key, letter)
            assert "bounce" not in frames(exhibit.text), (variant.worksheet.key, letter)
            shown += 1
    assert shown > len(by_questions)


def right_answers(variant: Variant) -> dict[str, str]:
    """The answers to a sheet, as it asks for them."""
    if variant.worksheet.answers == "numbers":
        return {box: str(size) for box, size in variant.key.items()}
    return {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}


def test_what_is_missing_are_rows_of_the_sheet_each_named_once(client: TestClient) -> None:
    sheet = {"worksheet": "decode-gpt2~11", "typed": "1"}  # queries, keys and scores

    def problem(product: str, **typed: str) -> str:
        page = Page(client.get("/see/slide", params={**sheet, "product": product, **typed}).text)
        ((_, sentence),) = page.find("p", role="alert")
        return sentence

    assert "boxes of q and K on" in problem("scores")
    half = problem("scores", **{"queries.rows": "1", "queries.columns": "64", "keys.rows": "60"})
    assert "boxes of K on" in half
    assert "choose another" in problem("new_value")
    assert "new_value" not in [
        each["value"] for each, _ in Page(client.get("/see/slide", params=sheet).text).find("option")
    ]


@pytest.mark.parametrize(
    ("worksheet", "model", "rows", "letters"),
    [
        ("llama-7b", "llama-7b", ("queries", "keys", "scores"), ["Q", "K", "S"]),
        ("llama-7b", "llama-7b", ("input", "context", "output"), ["V", "C", "O"]),  # no sheet here asks for C
        (
            "layer-mistral-7b",
            "qwen2.5-0.5b",
            ("queries", "keys", "scores"),
            ["Q", "K", "S"],
        ),  # as if it had 14 K/V heads
    ],
)
def test_a_class_s_own_worksheet_leads_to_the_products_of_its_rows(
    classroom: Classroom, worksheet: str, model: str, rows: tuple[str, ...], letters: list[str]
) -> None:
    library = classroom.school.library
    own = replace(library.worksheets[worksheet], key="own-1", model=model, rows=rows, kv_head_per_query_head=True)
    library = replace(library, worksheets={**library.worksheets, "own-1": own})
    activity = classroom.store.activities.add(
        classroom.course, Plan("Week 4", None, Policies()), freeze(library, ("own-1",), None)
    )
    classroom.store.activities.set_state(activity, "open")
    _, browser = classroom.join()
    press(browser, activity, "save", right_answers(library.variant("own-1")))
    links = see_links(browser.get(f"/class/{activity.id}/1").text)
    assert list(links) == letters
    for address in links.values():
        page = browser.get(address).text
        assert frames(page)[:3] == ["apart", "meet", "result"]
    [form] = [each for each, _ in Page(page).find("form") if each["action"].endswith("/take")]
    assert form["action"] == f"/class/{activity.id}/1/take"


@pytest.mark.parametrize(
    ("worksheet", "typed", "taken"),
    [
        (
            "llama-7b~symbols",
            {"queries.rows": "T", "queries.columns": "d_head", "keys.rows": "T", "keys.columns": "d_head"},
            {"scores.rows": "N", "scores.columns": "N"},
        ),
        (
            "three-dimensions-llama-7b&model=qwen2.5-0.5b",
            {
                "queries_by_head.dim0": "14",
                "queries_by_head.dim1": "7",
                "queries_by_head.dim2": "64",
                "repeated_keys.dim0": "14",
                "repeated_keys.dim1": "9",
                "repeated_keys.dim2": "64",
            },
            {"scores.dim0": "14", "scores.dim1": "7", "scores.dim2": "9"},
        ),
        (
            "layer-mistral-7b&model=qwen2.5-0.5b",  # one head of 14, and one of 2
            {"queries.rows": "7", "queries.columns": "896", "keys.rows": "9", "keys.columns": "128"},
            {"scores.rows": "7", "scores.columns": "9"},
        ),
    ],
)
def test_sheets_of_every_kind_lead_to_their_products(
    client: TestClient, worksheet: str, typed: dict[str, str], taken: dict[str, str]
) -> None:
    address = see_links(client.get(f"/sheet?worksheet={worksheet}").text)["S"]
    answer = client.get(address, params={**dict(parse_qsl(urlsplit(address).query)), **typed})
    assert frames(answer.text)[:3] == ["apart", "meet", "result"]
    page = Page(answer.text)
    fields = {each["name"]: each["value"] for each, _ in page.find("input", type="hidden") if "value" in each}
    boxes = Page(client.post("/see/slide/take", data=fields).text).boxes()
    assert {name: text for name, text in boxes.items() if text} == taken


def test_a_head_s_letter_is_set_with_its_index_and_transposed(client: TestClient) -> None:
    assert "<i>K</i><sub>1</sub><sup>T</sup>" in client.get("/see/slide?topic=attention-layer&product=scores").text


def test_heads_that_cannot_be_split_are_refused_with_what_to_correct(client: TestClient) -> None:
    address = see_links(client.get("/sheet?worksheet=layer-mistral-7b&model=qwen2.5-0.5b").text)["S"]
    answer = client.get(f"{address}&queries.rows=7&queries.columns=900&keys.rows=9&keys.columns=128")
    assert frames(answer.text) == []
    ((_, sentence),) = Page(answer.text).find("p", role="alert")
    assert "14" in sentence


def test_what_was_put_together_goes_into_its_boxes_and_no_others(client: TestClient) -> None:
    sheet = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}
    client.post("/sheet/save", data={**sheet, **TYPED, "keys.columns": "128", "scores.rows": "7"})
    address = see_links(client.get("/sheet?worksheet=llama-7b").text)["S"]
    page = Page(client.get(address).text)
    fields = {each["name"]: each["value"] for each, _ in page.find("input", type="hidden") if "value" in each}
    assert page.find("form", action="/see/slide/take")
    arrived = client.post("/see/slide/take", data=fields)
    boxes = Page(arrived.text).boxes()
    assert arrived.url.path == "/sheet"
    assert {name: text for name, text in boxes.items() if text} == {
        **TYPED, "keys.columns": "128", "scores.rows": "100", "scores.columns": "100",
    }  # fmt: skip
    bounced = client.get(address.replace("keys.columns=128", "keys.columns=4096"))
    assert not Page(bounced.text).find("form", action="/see/slide/take")


def test_every_topic_shows_a_product_and_is_in_the_menu_or_says_that_it_has_none(client: TestClient) -> None:
    menu = Page(client.get("/see/slide").text)
    offered = {attributes["value"] for attributes, _ in menu.find("option")}
    for topic in TOPICS:
        answer = client.get("/see/slide", params={"topic": topic})
        page = Page(answer.text)
        assert answer.status_code == 200
        assert bool(page.find("li", class_="frame")) == (topic in offered), topic
        assert bool(page.find("p", role="alert")) == (topic not in offered), topic


def test_the_page_of_an_exhibit_adds_at_most_40_kb_to_a_sheet(client: TestClient) -> None:
    page = client.get("/see/slide", headers={"accept-encoding": "gzip"})
    sent = int(page.headers["content-length"])
    for path in ("css/exhibits.css", "js/exhibit.js", "js/exhibit_slide.js"):
        sent += int(client.get(static_url(path), headers={"accept-encoding": "gzip"}).headers["content-length"])
    assert sent < 40_000


def test_in_a_class_products_open_where_hints_and_marks_are_given(classroom: Classroom) -> None:
    activity = classroom.open()
    _, browser = classroom.join()
    press(browser, activity, "save", {**TYPED, "keys.columns": "128"})
    page = Page(browser.get(see_links(browser.get(f"/class/{activity.id}/1").text)["S"]).text)
    [form] = [each for each, _ in page.find("form") if each["action"].endswith("/take")]
    assert page.find("a", href=f"/class/{activity.id}/1")
    fields = {each["name"]: each["value"] for each, _ in page.find("input", type="hidden") if each["name"] != "topic"}
    arrived = browser.post(form["action"], data=fields, follow_redirects=True)
    boxes = Page(arrived.text).boxes()
    assert {name: text for name, text in boxes.items() if text} == {
        **TYPED, "keys.columns": "128", "scores.rows": "100", "scores.columns": "100",
    }  # fmt: skip


@pytest.mark.parametrize("policies", [{"exam": True}, {"hints": False}, {"feedback": "after_close"}])
def test_in_a_class_without_help_no_product_opens(classroom: Classroom, policies: dict[str, Any]) -> None:
    activity = classroom.open(**policies)
    _, browser = classroom.join()
    assert see_links(browser.get(f"/class/{activity.id}/1").text) == {}
