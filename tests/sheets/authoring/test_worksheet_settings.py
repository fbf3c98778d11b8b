"""Settings of a worksheet, from a file or a form: what cannot be used is named, and what can comes back as it was."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from itertools import product
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from app.models.architecture import TokensError
from app.settings import PROJECT
from app.sheets.authoring.author_misconceptions import read_formula
from app.sheets.authoring.worksheet_settings import (
    SettingError,
    check_settings,
    read_settings,
)
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import WORKSHEETS, Worksheet, WorksheetError, derived_key
from app.topics.registry import TOPICS, possible_tokens
from app.topics.requirements import TopicError
from tests.helpers.random_worksheets import random_settings
from tests.helpers.shipped import LIBRARY
from tests.helpers.slow import one_in

GOOD: dict[str, Any] = {
    "title": "T", "model": "llama-7b", "topic": "single-head", "tokens": 5, "rows": ["input", "queries"],
}  # fmt: skip
OWN = {"name": "Heads as wide as the model", "boxes": {"queries.columns": "H*d"}, "question": "?", "explanation": "!"}


def read(values: dict[str, Any], library: Library = LIBRARY) -> Worksheet:
    return read_settings("mine", values, library.models, library.wording)


def test_a_file_says_what_is_not_the_default() -> None:
    assert set(read(GOOD).settings) == set(GOOD)
    with pytest.raises(SettingError, match="no setting “key”"):
        read({**GOOD, "key": "other"})


@given(seed=st.integers(0, 10**6))
def test_settings_come_back_equal(seed: int) -> None:
    """After TOML and after JSON, whatever the texts are."""
    worksheet = read(random_settings(LIBRARY, seed))
    values = worksheet.settings
    assert read(tomllib.loads(tomli_w.dumps(values, multiline_strings=True))) == worksheet
    assert read(json.loads(json.dumps(values))) == worksheet
    assert read(values).settings == values


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_a_shipped_worksheet_comes_back_equal(key: str) -> None:
    worksheet = LIBRARY.worksheets[key]
    file = tomllib.loads((PROJECT / "worksheets" / f"{key}.toml").read_text(encoding="utf-8"))
    assert worksheet.settings.keys() <= file.keys()
    assert read_settings(key, worksheet.settings, LIBRARY.models, LIBRARY.wording) == worksheet


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"title": ""}, "title", "must be a text of 1 to 200 characters"),
        ({"title": "x" * 201}, "title", "must be"),
        ({"title": "a\nb"}, "title", "U+000A"),
        ({"title": "a\x00b"}, "title", "U+0000"),
        ({"footnote": "a \u202e b"}, "footnote", "U+202E"),
        ({"introduction": "x" * 4001}, "introduction", "at most 4,000 characters"),
        ({"row_hints": ["queries"]}, "row_hints", "must be"),
        ({"row_hints": {"querys": "Q"}}, "row_hints querys", "no row “querys”: use some of input, queries"),
        ({"row_hints": {"queries": ""}}, "row_hints queries", "row_hints.queries must be a text"),
        ({"marking": "rows"}, "marking", "no setting “marking”"),
        ({"tolerance": 0.01}, "tolerance", "no setting “tolerance”"),
        ({"row_hints": {"W_Q": "Q"}}, "row_hints W_Q", "no row “W_Q”"),
        ({"row_points": {"queries": 11}}, "row_points queries", "a whole number from 0 to 10"),
        ({"row_points": {"queries": 1.5}}, "row_points queries", "a whole number from 0 to 10"),
        ({"row_points": {"queries": 0, "input": 0}}, "row_points", "at least one row with points"),
        ({"tokens_from": 5}, "tokens_to", "is missing"),
        ({"tokens_from": 9, "tokens_to": 8}, "tokens_to", "at least as much"),
        ({"tokens_from": 0, "tokens_to": 8}, "tokens_from", "from 1 to"),
        ({"questions": ["Why?"]}, "questions 0", "questions.1 must be a table with key, text"),
        ({"kv_head_per_query_head": 0}, "kv_head_per_query_head", "true or false"),
        ({"questions": [{"text": "Why?"}] * 2}, "questions 1", "questions.2 is there twice"),
        ({"questions": [{"text": str(n)} for n in range(11)]}, "questions", "at most 10"),
        ({"questions": [{"text": "Why?"}, {}]}, "questions 1 text", "questions.2.text is missing"),
        ({"questions": [{"text": "Why?", "points": 1}]}, "questions 0 points", "no setting “questions.1.points”"),
        ({"questions": [{"text": "Why?", "key": "Ä"}]}, "questions 0 key", "lower-case"),
        ({"misconceptions": [{**OWN, "key": "transposed"}]}, "misconceptions 0 key", "own-"),
        ({"misconceptions": [OWN, OWN]}, "misconceptions 1", "twice"),
        ({"misconceptions": [{**OWN, "boxes": {}}]}, "misconceptions 0 boxes", "a table of 1 to 40 boxes"),
        ({"misconceptions": [{**OWN, "name": ""}]}, "misconceptions 0 name", "must be a text"),
        ({"misconceptions": [{**OWN, "name": "n" * 81}]}, "misconceptions 0 name", "1 to 80 characters"),
        ({"misconceptions": [OWN] * 11}, "misconceptions", "at most 10"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(changes: dict[str, Any], path: str, said: str) -> None:
    sheet, errors = check_settings("mine", {**GOOD, **changes}, LIBRARY.models, LIBRARY.wording)
    assert sheet is None
    assert " ".join(map(str, errors[0].path)) == path
    assert errors[0].setting == path.split()[0]
    assert said in str(errors[0])
    assert "\n" not in str(errors[0])


@pytest.mark.parametrize(
    ("box", "formula", "said"),
    [
        ("keys.columns", "d", "no box “keys.columns”: use one of input.rows"),
        ("queries.count", "d", "no box"),
        ("queries.columns", "H*q", "“q” is not a symbol of this sheet"),
        ("queries.columns", "d/", "not a formula"),
        ("queries.columns", "__import__('os')", "not a"),
        ("queries.columns", "d/N", "whole number"),
        ("queries.columns", "*".join("d" * 60), "not a formula"),
        ("queries.columns", "-".join(["(d+1)^49"] * 12), "not a formula"),
        ("queries.columns", "(" * 100 + "d" + ")" * 99, "not a formula"),
        ("queries.columns", "d" * 10_000, "at most 200 characters"),
    ],
)
def test_a_box_or_formula_that_cannot_be_used_is_named(box: str, formula: str, said: str) -> None:
    values = {**GOOD, "misconceptions": [{**OWN, "boxes": {box: formula}}], "tokens": 7}
    (error,) = check_settings("mine", values, LIBRARY.models, LIBRARY.wording)[1]
    assert error.path == ("misconceptions", 0, "boxes", box)
    assert said in str(error)


def test_every_wrong_setting_is_named_at_once() -> None:
    errors = check_settings("mine", {"rows": 5, "topic": 1, "nope": 1}, LIBRARY.models, LIBRARY.wording)[1]
    assert {error.setting for error in errors[:3]} == {"rows", "topic", "nope"}
    assert {error.setting for error in errors[3:]} == {"title", "model", "tokens"}


def test_a_range_must_fit_every_model() -> None:
    values = {**GOOD, "tokens_from": 1000, "tokens_to": 1500}
    assert read(values).tokens_to == 1500
    with pytest.raises(WorksheetError, match="1,024"):
        read({**values, "models": ["gpt2"]})


def test_a_key_follows_from_the_text() -> None:
    texts = ("Why?", "Why so?", "键", "值", "Größe", "Grösse", "x" * 100, "x" * 101, "?", "!")
    keys = [derived_key(text) for text in texts]
    assert keys[0] == "why"
    assert len({*keys} - {"grosse"}) == len(texts) - 2  # both spellings of a word may share one
    worksheet = read({**GOOD, "misconceptions": [OWN], "questions": [{"text": "Why does K have this shape?"}]})
    assert worksheet.misconceptions[0].key == "own-heads-as-wide-as-the-model"
    assert worksheet.questions[0].key == "why-does-k-have-this-shape"


def test_a_formula_may_be_written_in_the_notation() -> None:
    variant = LIBRARY.variant("llama-7b")
    for formula in ("H*d", "H·d_model", "h d", "d*d/d_head"):
        assert read_formula(variant, formula).size(variant.sizes) == 131_072


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=30) | st.sampled_from(
        ["input", "queries", "queries.columns", "H*d", "gpt2", "costs", "heads", "$x$", "own-x", "a\nb\0", "d**99999"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9) | st.sampled_from(
        ["input", "queries", "text", "key", "name", "boxes", "question", "explanation", "queries.columns"]
    ), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


@given(changes=st.dictionaries(st.sampled_from([field.name for field in fields(Worksheet)]), ANYTHING, max_size=4))
def test_whatever_stands_in_a_file_is_read_or_refused(changes: dict[str, Any]) -> None:
    sheet, errors = check_settings("mine", {**GOOD, **changes}, LIBRARY.models, LIBRARY.wording)
    assert (sheet is None) == bool(errors)
    for error in errors:
        assert error.setting in {field.name for field in fields(Worksheet)}
        assert "\n" not in str(error)


def test_a_megabyte_is_refused_at_once() -> None:
    long = "d*" * 500_000
    own = {**OWN, "boxes": {"queries.columns": long}, "explanation": long}
    values = {**GOOD, "title": long, "introduction": long, "topic": long, "rows": [long] * 2, "misconceptions": [own]}
    errors = check_settings("mine", values, LIBRARY.models, LIBRARY.wording)[1]
    assert {"title", "introduction", "misconceptions"} <= {error.setting for error in errors}
    assert max(len(str(error)) for error in errors) < 500


@pytest.mark.parametrize(("topic", "answers"), one_in(27, product(TOPICS, ["numbers", "letters"])))
def test_the_checker_refuses_what_cannot_be_opened(topic: str, answers: str) -> None:
    named = LIBRARY.wording.topics[topic].rows
    for model, simplified in product(LIBRARY.models, (False, True)):
        wanted = LIBRARY.models[model].architecture_taught(simplified)
        if simplified and wanted == LIBRARY.models[model].architecture_taught(False):
            continue
        first = {"title": "T", "model": model, "topic": topic, "tokens": possible_tokens(topic, wanted, 30)}
        if bugs := TOPICS[topic].bugs:
            first["bug"] = bugs[0]
        for row in named:
            values = {**first, "rows": [row], "kv_head_per_query_head": simplified, "answers": answers}
            accepted = check_settings("mine", values, LIBRARY.models, LIBRARY.wording)[0]
            sheet = WORKSHEETS.validate_python({**values, "key": "mine"})
            library = Library({"mine": sheet}, LIBRARY.models, LIBRARY.wording)
            assert (accepted is None) == (_opened(library) is None) == (library.refusal("mine", model) is not None)


def _opened(library: Library) -> Variant | None:
    try:
        return library.variant("mine")
    except (TopicError, TokensError):
        return None


def test_the_models_to_draw_from_have_the_rows() -> None:
    rows = {"topic": "three-dimensions", "rows": ["repeated_keys"], "model": "qwen2.5-0.5b"}
    (error,) = check_settings("mine", {**GOOD, **rows, "models": ["gpt2"]}, LIBRARY.models, LIBRARY.wording)[1]
    assert error.path == ("models",)
