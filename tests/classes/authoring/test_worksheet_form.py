"""The texts of a worksheet's form: what they mean, what is refused and where, and what the buttons do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.classes.authoring.worksheet_form import (
    WorksheetFormError,
    arrange,
    complete_rows,
    read_worksheet_form,
    typed_worksheet,
)
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.library import Library
from tests.helpers.random_worksheets import random_settings
from tests.helpers.shipped import LIBRARY


@given(st.integers(0, 2**32))
def test_a_worksheet_is_read_back_from_its_texts(seed: int) -> None:
    worksheet = read_settings("own-1", random_settings(LIBRARY, seed), LIBRARY.models, LIBRARY.wording)
    texts = typed_worksheet(LIBRARY, worksheet)
    assert read_worksheet_form(LIBRARY, "own-1", texts) == worksheet
    assert complete_rows(LIBRARY, texts) == texts


@pytest.fixture
def texts(library: Library) -> dict[str, Any]:
    """The form of the sheet on LLaMA 7B."""
    return typed_worksheet(library, library.worksheet("llama-7b"))


OWN = {
    "key": "",
    "name": "Side by side",
    "boxes": "queries.columns = H*d",
    "question": "How many heads?",
    "explanation": "One head has d_h columns.",
}


def question(text: str, key: str = "") -> dict[str, str]:
    """A question of the form without a model answer."""
    return {"key": key, "text": text, "model_answer": ""}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tokens": ""}, "tokens"),
        ({"tokens": "a hundred"}, "tokens"),
        ({"tokens": "9" * 400}, "tokens"),
        ({"tokens": "99999999"}, "tokens"),
        ({"tokens_from": "20"}, "tokens_to"),
        ({"tokens_from": "20", "tokens_to": "10"}, "tokens_to"),
        ({"decoder_tokens": "5"}, "decoder_tokens"),
        ({"topic": "cross-attention"}, "model"),
        ({"topic": "nonsense"}, "topic"),
        ({"model": "nonsense"}, "model"),
        ({"notation": "nonsense"}, "notation"),
        ({"topic": "feed-forward-width", "answers": "letters"}, "answers"),
        ({"title": "x" * 201}, "title"),
        ({"introduction": "x" * 4001}, "introduction"),
        ({"introduction": "\u202eevil"}, "introduction"),
    ],
)
def test_what_cannot_be_used_is_said_beside_its_field(
    library: Library, texts: dict[str, Any], fields: dict[str, str], field: str
) -> None:
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", complete_rows(library, {**texts, **fields}))
    assert refused.value.field == field
    assert "_" not in str(refused.value)
    assert not str(refused.value)[0].islower()


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"name": ""}, "name"),
        ({"question": ""}, "question"),
        ({"explanation": "x" * 4001}, "explanation"),
        ({"boxes": ""}, "boxes"),
        ({"boxes": "queries.columns H*d"}, "boxes"),
        ({"boxes": "queries.columns = " + "H*" * 10_000 + "H"}, "boxes"),
        ({"boxes": "queries.columns = 9**9**9**9"}, "boxes"),
        ({"boxes": "queries.columns = __import__('os')"}, "boxes"),
        ({"boxes": "nonsense.columns = H"}, "boxes"),
        ({"boxes": "queries.columns = H\nqueries.columns = d"}, "boxes"),
    ],
)
def test_a_misconception_is_whole_or_refused(
    library: Library, texts: dict[str, Any], own: dict[str, str], field: str
) -> None:
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", {**texts, "misconceptions": [{**OWN, **own}]})
    assert refused.value.field == f"misconceptions.0.{field}"


def test_an_empty_misconception_before_it_does_not_hide_one_that_is_refused(
    library: Library, texts: dict[str, Any]
) -> None:
    twice = {**OWN, "boxes": "queries.columns = H\nqueries.columns = d"}
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", {**texts, "misconceptions": [dict.fromkeys(OWN, ""), twice]})
    assert refused.value.field == "misconceptions.1.boxes"


def test_an_entry_without_text_is_none(library: Library, texts: dict[str, Any]) -> None:
    empty = {**texts, "questions": [question("")], "misconceptions": [dict.fromkeys(OWN, "")]}
    assert read_worksheet_form(library, "llama-7b", empty) == library.worksheet("llama-7b")
    with pytest.raises(WorksheetFormError) as refused:
        read_worksheet_form(library, "own-1", {**texts, "questions": [question(""), *[question("Why?")] * 2]})
    assert refused.value.field == "questions.2.text"


def test_what_was_reworded_keeps_its_key_and_leaves_its_old_words_free(library: Library, texts: dict[str, Any]) -> None:
    first = read_worksheet_form(
        library, "own-1", {**texts, "questions": [question("What is Q?")], "misconceptions": [OWN]}
    )
    shown = typed_worksheet(library, first)
    [asked], [own] = shown["questions"], shown["misconceptions"]
    questions = [question("What is Q?"), {**asked, "text": "Why is Q?"}, question("What is Q")]
    reworded = {**shown, "questions": questions, "misconceptions": [{**own, "name": "Wide"}, OWN]}
    second = read_worksheet_form(library, "own-1", reworded)
    assert (second.questions[1].key, second.misconceptions[0].key) == (asked["key"], own["key"])
    assert [each.text for each in second.questions] == ["What is Q?", "Why is Q?", "What is Q"]
    assert [each.name for each in second.misconceptions] == ["Wide", OWN["name"]]
    assert read_worksheet_form(library, "own-1", typed_worksheet(library, second)) == second
    for old in (asked, {**asked, "key": ""}):
        with pytest.raises(WorksheetFormError) as refused:
            read_worksheet_form(library, "own-1", {**shown, "questions": [*shown["questions"], questions[0], old]})
        assert refused.value.field.startswith("questions.")
    with pytest.raises(WorksheetFormError):
        read_worksheet_form(library, "own-1", {**shown, "misconceptions": [own, OWN]})


def test_another_topic_has_its_own_rows_and_title(library: Library, texts: dict[str, Any]) -> None:
    moved = arrange({**texts, "row_hints": {"input": "Mine"}}, "down input")
    assert moved["all_rows"][:2] == ("queries", "input")
    other_model = complete_rows(library, {**moved, "model": "gpt2"})
    assert (other_model["all_rows"], read_worksheet_form(library, "own-1", other_model).title) == (
        moved["all_rows"],
        "One head of GPT-2",
    )
    other_topic = complete_rows(library, {**moved, "topic": "costs"})
    assert len(other_topic["rows"]) > 5
    assert other_topic["rows"] == other_topic["all_rows"]


def test_rows_that_the_simplification_takes_away_are_not_offered(texts: dict[str, Any], library: Library) -> None:
    changed = {**texts, "topic": "three-dimensions", "model": "qwen2.5-0.5b"}
    grouped = complete_rows(library, changed)
    simplified = complete_rows(library, {**changed, "kv_head_per_query_head": True})
    assert "repeated_keys" in {*grouped["all_rows"]} - {*simplified["all_rows"]}
    assert read_worksheet_form(library, "own-1", simplified).kv_head_per_query_head


def test_buttons_change_the_texts(texts: dict[str, Any]) -> None:
    """They add, move and remove, and set a field; anything else changes nothing."""
    two = arrange(arrange(texts, "add-question"), "add-question")
    assert two["questions"] == [question("")] * 2
    two = {**two, "questions": [question("first"), question("second")]}
    assert [each["text"] for each in arrange(two, "up-question 1")["questions"]] == ["second", "first"]
    assert [each["text"] for each in arrange(two, "remove-question 0")["questions"]] == ["second"]
    assert arrange(texts, "set tokens 70")["tokens"] == "70"
    for action in ("up input", "up nonsense", "remove-question 9", "up-question -1", "set nonsense 1", "", "down"):
        assert arrange(two, action) == two
