"""The exhibits' pages: their steps, the sheets that lead there and back, and what they refuse."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi import FastAPI
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

LLAMA = "/see/heads?model=llama-3.2-1b&tokens=60"
TYPED = {"queries.rows": "100", "queries.columns": "128", "keys.rows": "100"}


def sentence(text: str) -> str:
    """The sentence of the step that is shown; "" if there is none."""
    said = Page(text).find("p", class_="says")
    return said[0][1] if said else ""


def see_links(text: str) -> dict[str, str]:
    """The links from a sheet to the exhibit, by the letter of the result."""
    found = [(attributes["href"], words) for attributes, words in Page(text).find("a") if "data-see" in attributes]
    return {words.partition(" ")[0]: address for address, words in found}


def right_answers(variant: Variant) -> dict[str, str]:
    """The answers to a sheet, as it asks for them."""
    if variant.worksheet.answers == "numbers":
        return {box: str(size) for box, size in variant.key.items()}
    return {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}


def test_every_exhibit_is_listed_and_opens(client: TestClient) -> None:
    page = Page(client.get("/see").text)
    links = {attributes["href"] for attributes, _ in page.find("a") if attributes["href"].startswith("/see/")}
    assert links == {"/see/slide", "/see/heads", "/see/token"}
    assert all(sentence(client.get(link).text) for link in links)


@pytest.mark.parametrize("exhibit", ["slide", "heads", "token"])
def test_links_lead_through_all_steps_and_no_further(client: TestClient, exhibit: str) -> None:
    address, seen = f"/see/{exhibit}?step=1", list[str]()
    while True:
        page = client.get(address).text
        seen.append(sentence(page))
        forward = [attributes for attributes, _ in Page(page).find("a", rel="next")]
        if not forward:
            break
        address = forward[0]["href"]
    assert Page(page).find("a", class_="button")[-1][1] == "Now on your sheet"
    assert len(seen) == len(set(seen)) >= 5


@pytest.mark.parametrize("exhibit", ["slide", "heads", "token"])
@pytest.mark.parametrize("step", ["0", "-3", "99999", "two", ""])
def test_a_step_that_is_not_there_is_refused_and_another_is_shown(client: TestClient, exhibit: str, step: str) -> None:
    answer = client.get(f"/see/{exhibit}", params={"step": step})
    assert answer.status_code == 422
    assert Page(answer.text).find("p", role="alert")
    assert sentence(answer.text)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("slide?topic=nope", 404),
        ("slide?worksheet=nope", 404),
        ("slide?product=nope", 404),
        ("slide?topic=attention-layer&product=nope", 404),
        ("slide?model=nobody", 404),
        ("slide?model=deepseek-v2-lite", 422),  # latent attention has no queries and keys of this table
        ("slide?model=gpt2&tokens=2000000", 422),
        ("slide?tokens=many", 422),
        ("heads?model=nobody", 404),
        ("heads?model=deepseek-v3", 422),
        ("heads?tokens=0", 422),
        ("token?model=bert-base", 422),
        ("token?model=vit-base", 422),
        ("token/embed?model=deepseek-v3", 422),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"/see/{query}")
    page = Page(answer.text)
    assert answer.status_code == status
    ((_, problem),) = page.find("p", role="alert")
    assert problem
    assert not sentence(answer.text)


@pytest.mark.parametrize("exhibit", ["slide", "heads", "token"])
def test_only_the_embeddable_page_may_be_in_a_frame_of_another_site(client: TestClient, exhibit: str) -> None:
    page, embedded = (client.get(f"/see/{exhibit}{more}") for more in ("", "/embed"))
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert embedded.headers["Content-Security-Policy"] == policy.replace("frame-ancestors 'none'", "frame-ancestors *")
    assert sentence(page.text) == sentence(embedded.text)
    assert not Page(embedded.text).find("header")
    steps = [attributes["href"] for attributes, _ in Page(embedded.text).find("a", rel="next")]
    assert all(address.startswith(f"/see/{exhibit}/embed?") for address in steps)


def test_an_exhibit_adds_at_most_40_kb_to_a_sheet(client: TestClient) -> None:
    page = client.get("/see/slide", headers={"accept-encoding": "gzip"})
    sent = int(page.headers["content-length"])
    for path in ("css/exhibits.css", "js/exhibit.js"):
        sent += int(client.get(static_url(path), headers={"accept-encoding": "gzip"}).headers["content-length"])
    assert sent < 40_000


# Slide it together


def test_every_topic_shows_a_product_or_says_that_it_has_none(client: TestClient) -> None:
    for topic in TOPICS:
        answer = client.get("/see/slide", params={"topic": topic})
        assert answer.status_code == 200
        assert bool(sentence(answer.text)) != bool(Page(answer.text).find("p", role="alert")), topic


def test_every_topic_in_the_menu_shows_a_product(client: TestClient) -> None:
    for attributes, _ in Page(client.get("/see/slide").text).find("option"):
        if attributes["value"] in TOPICS:
            assert sentence(client.get("/see/slide", params={"topic": attributes["value"]}).text), attributes


def test_a_sheet_leads_to_each_of_its_products_with_what_is_typed(client: TestClient) -> None:
    sheet = {"worksheet": "llama-7b", "model": "llama-7b", "tokens": "100"}
    client.post("/sheet/save", data={**sheet, **TYPED})
    links = see_links(client.get("/sheet?worksheet=llama-7b").text)
    assert list(links) == ["Q", "K", "V", "S", "C", "O"]
    missing = client.get(links["S"]).text
    assert Page(missing).find("p", role="alert")
    client.post("/sheet/save", data={**sheet, **TYPED, "keys.columns": "4096"})
    answer = client.get(see_links(client.get("/sheet?worksheet=llama-7b").text)["S"]).text
    assert "4096 × 100" in sentence(answer).replace("\u00a0", " ")
    assert "4096 ≠ 128" in answer
    assert Page(answer).find("p", class_="mismatch")


@pytest.mark.slow
def test_every_product_that_a_sheet_leads_to_is_shown_once_its_boxes_are_right(
    client: TestClient, library: Library
) -> None:
    sheets = library.worksheets.values()
    by_questions = {(sheet.topic, sheet.answers, sheet.rows): sheet.key for sheet in sheets}
    for variant in map(library.variant, by_questions.values()):
        right = right_answers(variant)
        for letter, address in see_links(client.get(f"/sheet?worksheet={variant.worksheet.key}").text).items():
            answer = client.get(address, params={**dict(parse_qsl(urlsplit(address).query)), **right})
            assert sentence(answer.text), (variant.worksheet.key, letter)
            assert not Page(answer.text).find("p", class_="mismatch"), (variant.worksheet.key, letter)


@pytest.mark.parametrize(
    ("worksheet", "model", "rows", "letters"),
    [
        ("llama-7b", "llama-7b", ("queries", "keys", "scores"), {"S"}),
        ("layer-mistral-7b", "qwen2.5-0.5b", ("queries", "keys", "scores"), {"S"}),  # as if it had 14 K/V heads
    ],
)
def test_a_class_s_own_worksheet_leads_to_the_products_of_its_rows(
    classroom: Classroom, worksheet: str, model: str, rows: tuple[str, ...], letters: set[str]
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
    assert letters <= {*links}
    for address in links.values():
        page = Page(browser.get(address).text)
        assert page.find("p", class_="says")
        assert page.find("a", href=f"/class/{activity.id}/1")


def test_a_product_can_be_broken_on_its_page(client: TestClient) -> None:
    page = Page(client.get("/see/slide?product=scores").text)
    [form] = [attributes for attributes, _ in page.find("form") if "breaks" in attributes.get("class", "")]
    assert form["action"] == "/see/slide"
    broken = client.get("/see/slide?topic=single-head&product=scores&keys.columns=4096").text
    assert Page(broken).find("p", class_="mismatch")
    assert Page(broken).find("input", name="keys.columns")[0][0]["value"] == "4096"


@pytest.mark.parametrize("policies", [{"exam": True}, {"hints": False}, {"feedback": "after_close"}])
def test_in_a_class_without_help_no_product_opens(classroom: Classroom, policies: dict[str, Any]) -> None:
    activity = classroom.open(**policies)
    _, browser = classroom.join()
    assert see_links(browser.get(f"/class/{activity.id}/1").text) == {}


# Deal the heads


@pytest.mark.parametrize(
    ("query", "status"), [("groups=7", 422), ("groups=eight", 422), ("groups=", 422), ("key=99", 200)]
)
def test_an_impossible_number_of_heads_shows_the_model_as_it_is(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"{LLAMA}&{query}")
    page = Page(answer.text)
    assert answer.status_code == status
    [chosen] = [
        words for attributes, words in page.find("a") if "aria-current" in attributes and "groups" in attributes["href"]
    ]
    assert chosen.startswith("8")
    assert ["1, 2, 4, 8, 16, 32" in each for _, each in page.find("p", role="alert")] == [True] * (status == 422)


def test_a_key_head_is_tried_for_a_query_head(client: TestClient) -> None:
    # 32 query heads share 8 key heads: the asked one, 6, reads key head 1.
    for key, reply in ((1, "Right"), (3, "No")):
        assert Page(client.get(f"{LLAMA}&step=2&key={key}").text).find("p", class_="reply")[0][1].startswith(reply)


def test_the_cache_of_each_number_of_heads_is_counted(client: TestClient) -> None:
    table = client.get(f"{LLAMA}&step=5").text
    for count in (1, 2, 4, 8, 16, 32):
        assert f"{16 * 60 * count * 64 * 2 * 2:,}" in table  # layers, tokens, heads, width, K and V, bytes
    assert "without a KV cache" in client.get("/see/heads?model=bert-base&step=5").text


@pytest.mark.parametrize(
    ("model", "tokens", "window", "true"),
    [
        ("gpt-oss-20b", 200, "128", 12 * (128 + 200) * 8 * 64 * 2 * 2),
        ("mistral-7b", 10_000, "4096", 32 * 4096 * 8 * 128 * 2 * 2),
    ],
)
def test_full_windows_are_counted_and_stated(
    client: TestClient, model: str, tokens: int, window: str, true: int
) -> None:
    page = client.get(f"/see/heads?model={model}&tokens={tokens}&step=5").text
    assert f"{true:,}" in page
    assert window in page


def test_finished_sheets_on_all_heads_lead_there_and_back(client: TestClient, library: Library) -> None:
    leading = []
    for worksheet in ("layer-mistral-7b", "three-dimensions-llama-7b", "latent-deepseek-v2-lite", "llama-7b"):
        right = right_answers(library.variant(worksheet))
        page = Page(client.post("/sheet/check", data={"worksheet": worksheet, **right}).text)
        leading += [attrs["href"] for attrs, _ in page.find("a") if attrs["href"].startswith("/see/heads")]
        assert "/see/heads" not in client.get(f"/sheet?worksheet={worksheet}&tokens=7").text
    assert len(leading) == 2
    for address in leading:
        last = client.get(address.replace("step=1", "step=5")).text
        back = [attrs["href"] for attrs, _ in Page(last).find("a") if "three-dim" in attrs["href"]]
        assert client.get(back[0]).status_code == 200


@pytest.mark.parametrize(("policies", "leads"), [({}, True), ({"hints": False}, False), ({"exam": True}, False)])
def test_a_class_s_finished_sheet_on_all_heads_leads_there_where_it_has_hints(
    app: FastAPI, library: Library, policies: dict[str, Any], leads: bool
) -> None:
    classroom = Classroom(app, Policies(**policies), ("three-dimensions-llama-7b",))
    _, browser = classroom.join()
    right = right_answers(library.variant("three-dimensions-llama-7b"))
    assert "/see/heads" not in browser.get(f"/class/{classroom.activity.id}/1").text
    press(browser, classroom.activity, "check" if leads else "hand-in", right)
    page = Page(browser.get(f"/class/{classroom.activity.id}/1").text)
    links = [attributes["href"] for attributes, _ in page.find("a") if attributes["href"].startswith("/see/heads")]
    assert bool(links) == leads


# One more token


def test_each_step_says_what_it_costs_with_a_cache_and_without(client: TestClient) -> None:
    page = Page(client.get("/see/token?model=llama-7b&tokens=100&step=6").text)
    with_cache = 4 * 2 * 4096 * 4096 + 2 * 2 * 101 * 4096
    assert f"{with_cache:,}" in page.find("tr", class_="cached")[0][1]
    assert f"{101 * with_cache:,}" in page.find("tr", class_="anew")[0][1]


def test_it_leads_to_the_sheet_about_the_same_step(client: TestClient) -> None:
    steps = re.search(r"1 of (\d+)", client.get("/see/token?model=gpt2&tokens=30").text)
    assert steps
    page = Page(client.get(f"/see/token?model=gpt2&tokens=30&step={steps[1]}").text)
    (link,) = (attributes["href"] for attributes, _ in page.find("a") if "/sheet?" in attributes["href"])
    assert {"model=gpt2", "tokens=30"} <= set(link.split("?")[1].split("&"))
    assert client.get(link).status_code == 200
