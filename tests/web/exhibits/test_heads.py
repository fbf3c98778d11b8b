"""Deal the heads: its page, what is typed into it, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.sheets.library import Library
from app.store import Policies
from tests.helpers.class_sheet import press
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom

LLAMA = "/see/heads?model=llama-3.2-1b&tokens=60"


def marks(page: Page) -> list[str]:
    """The marks of all boxes that hold something."""
    return [attributes["data-mark"] for attributes, _ in page.find("span", class_="box") if "data-mark" in attributes]


def test_boxes_are_marked_by_the_server_and_the_drawing_tells_what_was_found(client: TestClient) -> None:
    sides = "queries.dim0=32&queries.dim1=60&queries.dim2=64&keys.dim0=32&keys.dim1=60&keys.dim2=64"
    answer = client.get(f"{LLAMA}&{sides}&cache=1.97+MB")
    assert marks(Page(answer.text)) == ["right"] * 3 + ["wrong", "right", "right"] + ["right"]
    assert "(32, 60, 64)" in answer.text
    assert "(8, 60, 64)" not in answer.text
    assert "(8, 60, 64)" not in client.get(LLAMA).text
    assert "1,966,080" in answer.text
    assert "1,966,080" not in client.get(LLAMA).text


@pytest.mark.parametrize(("query", "status"), [("model=nobody", 404), ("model=deepseek-v3", 422), ("tokens=0", 422)])
def test_what_cannot_be_shown_gets_a_sentence_and_no_frame(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"/see/heads?{query}")
    page = Page(answer.text)
    assert answer.status_code == status
    assert page.find("p", class_="problem")
    assert not page.find("li", class_="frame")


@pytest.mark.parametrize(
    ("query", "status"),
    [("groups=7", 422), ("groups=eight", 422), ("groups=", 422), ("key=99", 200), ("dealt=-1", 200)],
)
def test_an_address_that_says_something_impossible_shows_the_model_as_it_is(
    client: TestClient, query: str, status: int
) -> None:
    answer = client.get(f"{LLAMA}&{query}")
    page = Page(answer.text)
    checked = [attributes for attributes, _ in page.find("input", name="groups") if "checked" in attributes]
    assert answer.status_code == status
    assert [attributes["value"] for attributes in checked] == ["8"]
    assert ["1, 2, 4, 8, 16, 32" in sentence for _, sentence in page.find("p", role="alert")] == [True] * (
        status == 422
    )


def test_other_numbers_of_heads_are_said_to_be_no_model_s(client: TestClient) -> None:
    page = Page(client.get(f"{LLAMA}&groups=4").text)
    assert [attributes["value"] for attributes, _ in page.find("input", name="groups")] == [
        "1",
        "2",
        "4",
        "8",
        "16",
        "32",
    ]
    ((_, kind),) = page.find("p", class_="kind")
    assert "if Llama 3.2 1B had 4" in kind
    assert "983,040" in kind  # half of what 8 heads take
    encoder = client.get("/see/heads?model=bert-base")
    assert "without a KV cache" in encoder.text
    assert not Page(encoder.text).find("input", name="cache")


@pytest.mark.parametrize(
    ("model", "tokens", "window", "product", "true"),
    [
        ("gpt-oss-20b", 200, "128", 24 * 200 * 8 * 128 * 2, 12 * (128 + 200) * 8 * 128 * 2),
        ("mistral-7b", 10_000, "4096", 32 * 10_000 * 8 * 256 * 2, 32 * 4096 * 8 * 256 * 2),
    ],
)
def test_full_windows_are_stated_beside_the_question_about_the_cache(
    client: TestClient, model: str, tokens: int, window: str, product: int, true: int
) -> None:
    before, multiplied, counted = (
        client.get(f"/see/heads?model={model}&tokens={tokens}&cache={typed}").text for typed in ("", product, true)
    )
    assert any(window in sentence for _, sentence in Page(before).find("p", class_="remark"))
    assert (marks(Page(multiplied)), marks(Page(counted))) == (["wrong"], ["right"])
    assert not any("Multiply the layers" in sentence for _, sentence in Page(multiplied).find("p", id="cache-says"))
    short = Page(client.get(f"/see/heads?model={model}&tokens=60").text)
    assert not any("window" in sentence for _, sentence in short.find("p", class_="remark"))


def test_it_can_be_embedded(client: TestClient) -> None:
    """The forms of the embeddable page lead to itself."""
    answer = client.get("/see/heads/embed?model=gpt2")
    assert "frame-ancestors *" in answer.headers["Content-Security-Policy"]
    assert [attributes["action"] for attributes, _ in Page(answer.text).find("form")] == ["/see/heads/embed"]


def test_while_a_slider_moves_one_frame_is_sent_with_nothing_around_it(client: TestClient) -> None:
    answer = client.get(f"{LLAMA}&alone=1&step=2")
    page = Page(answer.text)
    assert [attributes["id"] for attributes, _ in page.find("li", class_="frame")] == ["step-2"]
    assert not page.find("header")
    assert {attributes["action"] for attributes, _ in page.find("form")} == {"/see/heads"}
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_after_the_last_card_the_frame_that_is_sent_alone_leads_to_the_next_one(client: TestClient) -> None:
    answer = client.get(f"{LLAMA}&step=3&dealt=9&alone=1")
    assert answer.status_code == 200
    actions = [each.get("formaction", "") for each, _ in Page(answer.text).find("button")]
    assert "/see/heads#step-4" in actions


def test_finished_sheets_on_all_heads_lead_there_and_back(client: TestClient, library: Library) -> None:
    leading = []
    for worksheet in ("layer-mistral-7b", "three-dimensions-llama-7b", "latent-deepseek-v2-lite", "llama-7b"):
        variant = library.variant(worksheet)
        right = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
        page = Page(client.post("/sheet/check", data={"worksheet": worksheet, **right}).text)
        assert page.find("form", id="work")[0][0].get("data-all-right") is not None
        leading += [attrs["href"] for attrs, _ in page.find("a") if attrs["href"].startswith("/see/heads")]
        assert "/see/heads" not in client.get(f"/sheet?worksheet={worksheet}&tokens=7").text
    assert len(leading) == 2
    for address in leading:
        back = [attrs["href"] for attrs, _ in Page(client.get(address).text).find("a") if "three-dim" in attrs["href"]]
        assert client.get(back[0]).status_code == 200


@pytest.mark.parametrize(("policies", "leads"), [({}, True), ({"hints": False}, False), ({"exam": True}, False)])
def test_a_class_s_finished_sheet_on_all_heads_leads_there_where_it_has_hints(
    app: FastAPI, library: Library, policies: dict[str, Any], leads: bool
) -> None:
    classroom = Classroom(app, Policies(**policies), ("three-dimensions-llama-7b",))
    _, browser = classroom.join()
    variant = library.variant("three-dimensions-llama-7b")
    right = {str(blank): str(variant.answer(blank)) for blank in variant.blanks}
    assert "/see/heads" not in browser.get(f"/class/{classroom.activity.id}/1").text
    press(browser, classroom.activity, "check" if leads else "hand-in", right)
    page = Page(browser.get(f"/class/{classroom.activity.id}/1").text)
    links = [attributes["href"] for attributes, _ in page.find("a") if attributes["href"].startswith("/see/heads")]
    assert bool(links) == leads
    assert all(browser.get(link).status_code == 200 for link in links)
