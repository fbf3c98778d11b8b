"""The practice page as a browser without script and as a script sees it: choosing, checking, saving, hints."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.sheets.answers import MAX_BOX_TEXT
from app.translation import ENGLISH
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page, kept_in
from tests.helpers.own_sheets import with_own_worksheet
from tests.helpers.school import SCRIPT
from tests.helpers.sheet_form import LLAMA_FORM, filled

if TYPE_CHECKING:
    from app.sheets.library import Library


# Choosing a sheet


def test_more_tokens_than_the_config_states_are_remarked_on(client: TestClient) -> None:
    for address in ("/sheet", "/handout"):
        for tokens, told in ((2048, False), (2049, True)):
            response = client.get(f"{address}?worksheet=llama-7b&tokens={tokens}")
            assert response.status_code == 200
            assert ("More tokens than the 2048 that the config of LLaMA 7B states" in response.text) is told
    assert (
        "More tokens than"
        not in client.get("/sheet?worksheet=bidirectional-bert-base&model=t5-small&tokens=99999").text
    )


@pytest.mark.parametrize("address", ["/sheet"])
def test_the_first_screen_is_a_sheet_to_type_into(client: TestClient, address: str) -> None:
    response = client.get(address)
    page = Page(response.text)
    assert response.status_code == 200
    assert page.text("h1") == "One head of LLaMA 7B"
    assert page.boxes() == dict.fromkeys(KEY, "")
    labels = [attrs["aria-label"] for attrs, _ in page.find("input") if "data-blank" in attrs]
    assert labels[:4] == [
        "Input to this head, rows",
        "Input to this head, columns",
        "Queries, rows",
        "Queries, columns",
    ]
    assert [attrs["value"] for attrs, _ in page.find("input", name="tokens")] == ["100", "100"]


def test_boxes_of_a_tensor_stand_in_brackets_and_say_their_dimension(client: TestClient) -> None:
    page = Page(client.get("/sheet?worksheet=four-dimensions-gpt2").text)
    labels = [attrs["aria-label"] for attrs, _ in page.find("input") if "data-blank" in attrs]
    assert labels[:3] == [f"Input to the layer, dim {number}" for number in range(3)]
    assert "Attention scores, dim 3" in labels
    assert "(,,)(,,)(,,,)" in "".join(text for _, text in page.find("td", class_="times"))
    headings = "".join(text for _, text in page.find("th", scope="col"))
    assert headings == "Tensor(dim 0,dim 1,dim 2,dim 3)"


def test_worksheet_model_and_tokens_can_be_chosen(client: TestClient) -> None:
    page = Page(client.get("/sheet?worksheet=qwen2.5-0.5b").text)
    assert "2 keys and 2 values" in page.text("p", class_="footnote")
    assert [attrs["rel"] for attrs, _ in page.find("a", href="https://arxiv.org/abs/2412.15115")] == [
        "external noopener"
    ]
    page = Page(client.get("/sheet?worksheet=llama-7b&model=qwen3-0.6b&tokens=7").text)
    assert page.text("h1") == "One head of Qwen3 0.6B"
    chosen = [attrs["value"] for attrs, _ in page.find("option") if "selected" in attrs]
    assert chosen == ["qwen3-0.6b"]


@pytest.mark.parametrize("tokens", ["1,000", "１０００", "2*500"])
def test_tokens_are_read_as_boxes_are(client: TestClient, tokens: str) -> None:
    page = Page(client.get("/sheet", params={"worksheet": "llama-7b", "tokens": tokens}).text)
    assert page.find("input", name="tokens")[-1][0]["value"] == "1000"


@pytest.mark.parametrize("tokens", ["0", "-3", "1000000000", "1.5", "", "   ", "many", "9**9**9", "1/0", "7" * 10_000])
def test_tokens_that_cannot_be_used_get_a_sentence(client: TestClient, tokens: str) -> None:
    response = client.get("/sheet", params={"worksheet": "llama-7b", "tokens": tokens})
    assert response.status_code == 422
    page = Page(response.text)
    assert page.text("p", id="chooser-problem") == "Tokens must be a whole number from 1 to 16,777,216."
    assert page.find("input", name="tokens")[0][0]["value"] == tokens
    assert page.boxes() == {}


def test_a_position_table_is_named_where_it_ends(client: TestClient) -> None:
    response = client.get("/sheet?worksheet=llama-7b&model=gpt2&tokens=1025")
    assert response.status_code == 422
    assert "GPT-2 has a table of 1,024 positions" in response.text


def test_tokens_that_hide_a_bug_get_others_to_open_the_sheet_with(client: TestClient) -> None:
    query = "worksheet=bug-one-head&tokens=64"
    response = client.get(f"/sheet?{query}")
    page = Page(response.text)
    assert response.status_code == 422
    assert "65 tokens" in page.text("p", class_="problem")
    [link] = [attributes["href"] for attributes, text in page.find("a") if text.endswith("with 65 tokens")]
    assert Page(client.get(link).text).find("ol", class_="program-lines")
    assert "65 tokens" in client.get("/api/v1/worksheets/bug-one-head?tokens=64").json()["detail"]


@pytest.mark.parametrize("query", ["worksheet=nope", "worksheet=llama-7b&model=nope", "worksheet=" + "x" * 5000])
def test_a_sheet_that_is_not_there_is_not_found(client: TestClient, query: str) -> None:
    response = client.get(f"/sheet?{query}")
    assert response.status_code == 404
    assert "llama-7b" in Page(response.text).text("p", id="chooser-problem")


def test_what_was_typed_into_an_address_is_escaped(client: TestClient) -> None:
    text = client.get("/sheet", params={"worksheet": "<script>alert(1)</script>"}).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


# Checking, saving, answering


def test_checking_without_script_marks_each_box(client: TestClient) -> None:
    form = filled(queries__columns="4096", keys__columns="about 128", values__columns="")
    response = client.post("/sheet/check", data=form)
    page = Page(response.text)
    assert response.status_code == 200
    assert page.find("title")
    special = {"queries.columns": "wrong", "keys.columns": "unreadable", "values.columns": "empty"}
    assert page.marks() == {**dict.fromkeys(KEY, "right"), **special}
    assert page.text("p", class_="result") == "11 of 14 right · 1 empty. Look again: Q, K"
    assert "“about” could not be read" in page.text("p", id="says-keys.columns")
    assert page.boxes() == {box: form[box] for box in KEY}


def test_points_are_said_where_boxes_follow_from_a_mistake(client: TestClient) -> None:
    wide = dict.fromkeys(("queries.columns", "keys.columns", "values.columns"), "4096")
    page = Page(client.post("/sheet/check", data={**KEY, **wide}).text)
    assert page.text("p", class_="result") == "11 of 14 right · 13 points. Look again: Q"


@pytest.mark.parametrize(
    ("button", "more"), [("check", {}), ("hint", {"hint": "2"}), ("answers", {})], ids=["check", "hint", "answers"]
)
def test_a_button_leads_to_an_address_that_shows_the_same_on_reload(
    client: TestClient, button: str, more: dict[str, str]
) -> None:
    form = {**filled(queries__columns="4096", keys__columns=""), **more}
    client.post("/sheet/check", data=form)
    sent = client.post(f"/sheet/{button}", data=form, follow_redirects=False)
    assert (sent.status_code, "#" in sent.headers["location"]) == (303, False)
    pages = [Page(client.get(sent.headers["location"]).text) for _ in range(2)]
    for page in pages:
        assert page.marks()["queries.columns"] == "wrong"
        focused = [attrs["name"] for attrs, _ in page.find("input") if "autofocus" in attrs]
        assert focused == ["queries.columns"] * (button != "answers")
        assert (bool(page.find("p", class_="hint")), bool(page.find("tr", class_="answer"))) == (
            button == "hint",
            button == "answers",
        )


def test_what_comes_next_is_focused_once_all_is_right(client: TestClient) -> None:
    page = Page(client.post("/sheet/check", data=filled()).text)
    assert [attrs["id"] for attrs, _ in page.find("a") if "autofocus" in attrs] == ["next"]


def test_answers_are_not_had_by_an_address(client: TestClient) -> None:
    page = Page(client.get("/sheet?answers=1").text)
    assert page.find("tr", class_="answer") == []
    assert "answer" in page.text("p", class_="result")


def test_a_script_gets_the_sheet_alone(client: TestClient) -> None:
    text = client.post("/sheet/check", data=filled(), headers=SCRIPT).text
    assert "<html" not in text
    assert Page(text).text("p", class_="result") == "✓ All 14 are right"


def test_what_was_read_stands_beside_a_product(client: TestClient) -> None:
    page = Page(client.post("/sheet/check", data=filled(queries__columns="4096/32")).text)
    assert [text for _, text in page.find("span", class_="read-as")] == ["= 128"]


def test_text_in_a_box_is_kept_as_typed_and_escaped(client: TestClient) -> None:
    typed = '"><script>alert(1)</script>'
    text = client.post("/sheet/check", data=filled(queries__rows=typed)).text
    assert Page(text).boxes()["queries.rows"] == typed
    assert "<script>alert" not in text


def test_ten_thousand_characters_are_unreadable(client: TestClient) -> None:
    page = Page(client.post("/sheet/check", data=filled(queries__rows="9" * 10_000)).text)
    assert page.marks()["queries.rows"] == "unreadable"
    assert page.boxes()["queries.rows"] == "9" * MAX_BOX_TEXT


def test_a_saved_draft_is_there_after_a_reload(client: TestClient) -> None:
    response = client.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "4 096"}, headers=SCRIPT)
    assert response.status_code == 200
    assert {attrs["data-size"] for attrs, _ in Page(response.text).find("g", data_blank="queries.rows")} == {"4096"}
    page = Page(client.get("/sheet").text)
    assert page.boxes()["queries.rows"] == "4 096"
    assert page.text("output") == "Saved"


def test_only_boxes_that_changed_are_stored_and_the_answer_tells_the_others(client: TestClient) -> None:
    client.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "1", "edits": "queries.rows:pageone1:4"})
    form = {**LLAMA_FORM, "queries.rows": "", "queries.columns": "2", "edits": "queries.columns:pagetwo2:1 odd:x"}
    kept = kept_in(client.post("/sheet/save", data=form, headers=SCRIPT).text)
    assert (kept["version"], kept["tab_versions"]) == (2, {"pagetwo2": 1})
    assert {box: text for box, text in kept["answers"].items() if text} == {"queries.rows": "1", "queries.columns": "2"}
    checked = client.post("/sheet/check", data={**form, "queries.rows": "100"}, headers=SCRIPT)
    assert Page(checked.text).marks()["queries.rows"] == "wrong"  # the 1 of the other page
    for edits in ("", "queries.rows:pageone1:4", "queries.rows:pageone1", "no.box:pageone1:9"):
        form = {**LLAMA_FORM, "queries.rows": "9", "edits": edits}
        assert kept_in(client.post("/sheet/save", data=form).text)["version"] == 2


def test_drafts_belong_to_their_sheet_and_their_browser(client: TestClient) -> None:
    client.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "100"})
    assert Page(client.get("/sheet?worksheet=llama-7b&tokens=7").text).boxes()["queries.rows"] == ""
    client.cookies.clear()
    assert Page(client.get("/sheet").text).boxes()["queries.rows"] == ""


def test_marks_come_back_with_the_texts_they_were_given_for(client: TestClient) -> None:
    client.post("/sheet/check", data={**filled(queries__columns="4096")})
    assert Page(client.get("/sheet").text).marks()["queries.columns"] == "wrong"
    client.post("/sheet/save", data={**filled(queries__columns="128")})
    marks = Page(client.get("/sheet").text).marks()
    assert "queries.columns" not in marks
    assert marks["queries.rows"] == "right"


def test_answers_are_shown_only_after_an_attempt(client: TestClient) -> None:
    assert 'id="answers"' not in client.get("/sheet").text
    page = Page(client.post("/sheet/answers", data=LLAMA_FORM).text)
    assert page.find("tr", class_="answer") == []
    assert page.text("p", class_="result").startswith("Try it first")
    client.post("/sheet/check", data={**LLAMA_FORM, "queries.rows": "what?"})
    assert Page(client.post("/sheet/answers", data=LLAMA_FORM).text).find("tr", class_="answer") == []
    checked = client.post("/sheet/check", data={**LLAMA_FORM, "queries.rows": "7"}).text
    assert 'id="answers"' in checked
    answers = [
        text for _, text in Page(client.post("/sheet/answers", data=LLAMA_FORM).text).find("tr", class_="answer")
    ]
    assert len(answers) == 7
    assert re.search(r"100\s?N × 128\s?d", answers[1])


def test_a_right_row_says_why_and_works_it_out_once_the_sheet_is_right(client: TestClient) -> None:
    scores = {**LLAMA_FORM, "scores.rows": "100", "scores.columns": "100", "keys.columns": "128"}
    page = Page(client.post("/sheet/check", data=scores).text)
    [reason] = [text for _, text in page.find("details", class_="why")]
    assert "query" in reason
    assert "128" not in reason
    shown = [text for _, text in Page(client.post("/sheet/answers", data=scores).text).find("p", class_="why")]
    assert len(shown) == 7
    assert sum("(100 × 128) · (128 × 100) = 100 × 100" in text for text in shown) == 1
    done = Page(client.post("/sheet/check", data=filled(**KEY)).text)
    right = [text for _, text in done.find("details", class_="why")]
    assert len(right) == 7
    assert any("(100 × 4096) · (4096 × 128) = 100 × 128" in text for text in right)


def test_an_attempt_on_one_sheet_opens_the_answers_of_no_other(client: TestClient) -> None:
    client.post("/sheet/check", data={**LLAMA_FORM, "queries.rows": "7"})
    for change in ({"tokens": "101"}, {"model": "gpt2"}, {"worksheet": "qwen2.5-0.5b"}):
        page = Page(client.post("/sheet/answers", data={**LLAMA_FORM, **change}).text)
        assert page.find("tr", class_="answer") == [], change


def test_a_fresh_visitor_is_not_given_the_answers(client: TestClient) -> None:
    text = client.get("/sheet").text
    page = Page(text)
    assert page.find("tr", class_="answer") == []
    assert page.marks() == {}
    assert set(page.boxes().values()) == {""}
    drawn = {attrs["data-blank"]: attrs["data-size"] for attrs, _ in page.find("g") if "data-blank" in attrs}
    asked = {box.partition(".")[0] for box in page.boxes()}
    known = {blank for blank, size in drawn.items() if size != "?"}
    assert {drawn[blank] for blank in known} == {"128", "4096"}  # of parameters, whose sizes the description states
    assert not asked & {blank.partition(".")[0] for blank in known}
    [described] = [attrs["aria-label"] for attrs, _ in page.find("svg") if "One head" in attrs.get("aria-label", "")]
    sides = {name: "{} × {}".format(*sizes) for name, *sizes in re.findall(r"([A-Z]\w*) (\S+) × ([^\s,.]+)", described)}
    assert {size for name, size in sides.items() if not name.startswith("W_")} == {"? × ?", "? × 128"}
    assert [name for name, size in sides.items() if size == "? × 128"] == ["C"]  # as W_O has it; C has no box
    about_the_sheet = {"data-keep", "data-copy-link", "data-frames", "href", "value", "viewbox", "width", "height", "d"}
    geometry = about_the_sheet | {"data-key", "x", "y", "x1", "x2", "y1", "y2", "hx-trigger", "content", "class", "src"}
    for tag, attributes, _ in page.elements:
        for name, value in attributes.items():
            if (tag in ("g", "span") and name == "data-size") or value == described:
                continue
            assert name in geometry or not re.search(r"\b(100|128|4096)\b", value), (tag, name, value)
    outside = re.sub(r"<svg.*?</svg>", "", text.replace(page.text("h1"), ""), flags=re.DOTALL)
    assert len(re.findall(r"\b128\b", outside)) == 5  # above the boxes, twice each in the description and in its key
    assert "<!--" not in text


def test_the_drawing_of_an_empty_sheet_is_the_same_whatever_the_key(client: TestClient) -> None:
    drawings = [
        re.search(
            r'<div id="figures".*?</aside>', client.get(f"/sheet?worksheet=llama-7b&model={model}").text, re.DOTALL
        )
        for model in ("llama-7b", "mistral-7b")
    ]
    assert drawings[0]
    assert drawings[1]
    assert drawings[0].group() == drawings[1].group()


@pytest.mark.parametrize("address", ["/sheet/check", "/sheet/save", "/sheet/answers", "/runs"])
@pytest.mark.parametrize(
    ("change", "status"),
    [({"worksheet": "nope"}, 404), ({"model": "nope"}, 404), ({"tokens": "0"}, 422), ({"tokens": "x"}, 422)],
)
def test_a_form_for_a_sheet_that_is_not_there_gets_a_sentence(
    client: TestClient, address: str, change: dict[str, str], status: int
) -> None:
    response = client.post(address, data={**LLAMA_FORM, **change})
    assert response.status_code == status
    assert Page(response.text).find("section", class_="lone")


# Hints, and the sentences once the sheet is done


TITLES = ("If that were so", "What really happens")
WIDE = {"queries__columns": "4096", "keys__columns": "4096", "values__columns": "4096"}


def hint_of(page: Page) -> str:
    return next((text for _, text in page.find("p", class_="hint")), "")


def next_level(page: Page) -> str | None:
    """The level that the hint button sends, or None without one."""
    return next((attrs["value"] for attrs, _ in page.find("button") if attrs.get("name") == "hint"), None)


def test_hints_go_further_with_every_press(client: TestClient, library: Library) -> None:
    page = Page(client.post("/sheet/check", data=filled(**WIDE)).text)
    diagnosis = library.wording.misconception("head-as-wide-as-model", "nudge")
    assert page.text("p", class_="diagnosis") == diagnosis
    assert (hint_of(page), next_level(page)) == ("", "2")
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": "2"}).text)
    assert hint_of(page) == library.wording.misconception("head-as-wide-as-model", "hint").replace(
        "W_Q", "WQ"
    )  # as set
    assert (next_level(page), page.find("td", class_="hinted")) == ("3", [])
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": "3"}).text)
    assert hint_of(page).startswith("Look again at “Queries”, “Keys” and “Values” (columns of each).")
    assert (next_level(page), len(page.find("td", class_="hinted"))) == (None, 3)
    assert [text for _, text in page.find("p", class_="diagnosis")] == [diagnosis]


@pytest.mark.parametrize("level", ["0", "4", "9" * 5000, "two", "", "²", "\x00"])
def test_a_hint_of_no_level_is_the_first(client: TestClient, library: Library, level: str) -> None:
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "hint": level}).text)
    assert hint_of(page) == library.wording.misconception("head-as-wide-as-model", "nudge")


def test_a_hint_is_a_check_of_what_has_changed_alone(client: TestClient, tmp_path: Path) -> None:
    def attempts() -> list[float]:
        with sqlite3.connect(tmp_path / "data" / "attention-shapes.sqlite3") as connection:
            return [score for (score,) in connection.execute("SELECT score FROM attempts ORDER BY id")]

    client.post("/sheet/check", data=filled(**WIDE))
    client.post("/sheet/hint", data={**filled(**WIDE), "hint": "2"})
    assert attempts() == [13]  # a misconception costs one box
    two_mistakes = filled(weights__columns="1", values__rows="31")
    page = Page(client.post("/sheet/hint", data={**two_mistakes, "hint": "2"}).text)
    assert page.marks()["weights.columns"] == "wrong"
    client.post("/sheet/hint", data={**two_mistakes, "hint": "3"})
    assert attempts() == [13, 12]


def test_there_is_no_hint_to_press_for_where_there_is_none(client: TestClient) -> None:
    assert next_level(Page(client.get("/sheet").text)) is None
    assert next_level(Page(client.post("/sheet/check", data={**LLAMA_FORM, "queries.rows": "some"}).text)) is None
    assert next_level(Page(client.post("/sheet/check", data=filled()).text)) is None
    client.post("/sheet/check", data=filled(**WIDE))
    assert next_level(Page(client.post("/sheet/answers", data=filled(**WIDE)).text)) is None


def test_the_first_broken_link_is_said_once(client: TestClient) -> None:
    said = "cannot be added to"
    narrow = {"values.rows": "31", "scores.columns": "77"}
    page = Page(client.post("/sheet/check", data={**filled(), **narrow}).text)
    assert page.find("p", class_="diagnosis") == []  # the drawing says it
    page = Page(client.post("/sheet/hint", data={**filled(), **narrow, "hint": "2"}).text)
    assert page.find("p", class_="diagnosis") == []
    page = Page(client.post("/sheet/check", data=filled(output__columns="128")).text)
    assert [said in text for _, text in page.find("p", class_="diagnosis")] == [False]
    page = Page(client.post("/sheet/hint", data={**filled(**WIDE), "values.rows": "31", "hint": "2"}).text)
    assert ["must be equal" in text for _, text in page.find("p", class_="diagnosis")] == [False]


def test_the_misconception_behind_an_earlier_attempt_is_explained_at_the_end(
    client: TestClient, library: Library
) -> None:
    explanation = library.wording.misconception("no-output-projection", "explanation")
    client.post("/sheet/check", data=filled(**WIDE))
    text = client.post("/sheet/check", data=filled(output__columns="128")).text
    assert (explanation in text, Page(text).find("section", class_="explanation")) == (False, [])
    client.post("/sheet/check", data=filled(scores__rows="99"))
    for text in (client.post("/sheet/check", data=filled()).text, client.get("/sheet").text):
        assert explanation in text
        figures = [said for _, said in Page(text).find("figure")][-2:]
        assert [said.startswith(title) for said, title in zip(figures, TITLES, strict=True)] == [True, True]
        assert "cannot be added" in figures[0]
        assert "cannot be added" not in figures[1]


def test_it_is_explained_beside_the_answers_too(client: TestClient, library: Library) -> None:
    client.post("/sheet/check", data=filled(**WIDE))
    text = client.post("/sheet/answers", data=filled(**WIDE)).text
    assert library.wording.misconception("head-as-wide-as-model", "explanation") in text
    assert len(Page(text).find("div", class_="pair")) == 1
    client.cookies.clear()
    client.post("/sheet/check", data=filled(queries__rows="99"))
    assert Page(client.post("/sheet/answers", data=filled()).text).find("section", class_="explanation") == []


def test_an_explanation_of_a_count_is_drawn_as_bars(client: TestClient) -> None:
    sheet = {"worksheet": "count-llama-7b", "model": "llama-7b", "tokens": "100"}
    wrong = {"embedding.count": "139460608", "total.count": "6746804224"}
    right = {"attention.count": "4*4096*4096", "final_norm.count": "4096"}
    client.post("/sheet/check", data={**sheet, **right, **wrong})
    page = Page(client.post("/sheet/answers", data={**sheet, **right, **wrong}).text)
    explanation = page.text("section", class_="explanation")
    assert "RoPE" in explanation
    assert "139,460,608" in explanation
    assert "131,072,000" in explanation


def says(boxes: Iterable[str]) -> set[str]:
    """The ids of the sentences about these boxes."""
    return {f"says-{box}" for box in boxes}


def test_one_sentence_is_said_once_for_many_boxes(client: TestClient) -> None:
    sheet = {"worksheet": "llama-7b~symbols", "tokens": "100"}
    boxes = Page(client.get("/sheet", params=sheet).text).boxes()
    page = Page(client.post("/sheet/check", data={**sheet, **dict.fromkeys(boxes, "100")}).text)
    (sentence,) = [text for _, text in page.find("p", class_="diagnosis")]
    assert "asks for symbols" in sentence
    assert all("hidden" in attributes for attributes, _ in page.find("p") if attributes.get("id", "") in says(boxes))
    page = Page(client.post("/sheet/check", data=filled(queries__rows="a hundred")).text)
    assert "“a hundred”" in page.text("p", id="says-queries.rows")


def test_a_sheet_can_be_changed_between_numbers_and_symbols(client: TestClient) -> None:
    chosen = {}
    for key in ("llama-7b", "llama-7b~symbols"):
        radios = Page(client.get("/sheet", params={"worksheet": key}).text).find(
            "input", type="radio", name="worksheet"
        )
        assert [attributes["value"] for attributes, _ in radios] == ["llama-7b", "llama-7b~symbols"]
        chosen[key] = [attributes["value"] for attributes, _ in radios if "checked" in attributes]
    assert chosen == {key: [key] for key in chosen}


@pytest.mark.parametrize(("worksheet", "reason"), [("first-steps", "steps"), ("width-llama-7b", "rounded")])
def test_why_a_sheet_is_not_in_symbols_is_said_where_it_is_chosen(
    client: TestClient, worksheet: str, reason: str
) -> None:
    page = Page(client.get(f"/sheet?worksheet={worksheet}").text)
    _, (symbols, _) = page.find("input", type="radio", name="worksheet")
    assert "disabled" in symbols
    assert reason in page.text("p", id=symbols["aria-describedby"])
    response = client.get(f"/sheet?worksheet={worksheet}~symbols")
    assert response.status_code in (404, 422)
    refused = Page(response.text)
    assert refused.find("p", class_="suggestions")
    _, (symbols, _) = refused.find("input", type="radio", name="worksheet")
    why = refused.text("p", id=symbols["aria-describedby"])
    assert [text for _, text in refused.find("p")].count(why) == 1


# What an author writes and switches off


def own_page(app: FastAPI, **settings: Any) -> tuple[Page, Page]:
    """The page of a worksheet with these settings instead of LLaMA 7B's, as it opens and after a check."""
    services = app.state.services
    app.state.services = replace(services, libraries={ENGLISH: with_own_worksheet(services.library, **settings)})
    browser = TestClient(app)
    opened = browser.get("/sheet?worksheet=mine")
    answers = {"queries.columns": "128", "keys.columns": "64"}
    checked = browser.post("/sheet/check", data={**LLAMA_FORM, "worksheet": "mine", **answers}, headers=SCRIPT)
    assert (opened.status_code, checked.status_code) == (200, 200)
    return Page(opened.text), Page(checked.text)


def test_a_sheet_says_what_its_author_wrote(new_app: FastAPI) -> None:
    words = {"introduction": "In **front** <i>", "footnote": "Own $d_h$"}
    page, checked = own_page(new_app, **words, row_points={"keys": 3})
    assert page.text("div", class_="own-words") == "In front <i>"
    assert page.text("div", class_="footnote") == "Own dh"
    assert "before transposing, 3 points each" in [text for _, text in page.find("small")]
    assert "1 of 18 points" in checked.text("p", class_="result")
