"""Worksheets as shipped: their rows, their wording, and the sizes they can be made for."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.models.architecture import TokensError
from app.shapes.table import Blank, symbol_fields
from app.sheets.answers import box_unit
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError
from app.topics.requirements import TopicError

CLASSIC_ROWS = ["input", "queries", "keys", "values", "scores", "weights", "output"]
SHEETS = ("llama-7b", "qwen2.5-0.5b")
MODELS = ("llama-7b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "mistral-7b", "gpt2")


def every_variant(library: Library) -> list[Variant]:
    """Every worksheet with its own model, and with every other that has the topic and takes as many tokens."""
    found = [library.variant(sheet) for sheet in library.worksheets]
    for sheet in library.worksheets:
        for model in library.models:
            with suppress(TopicError, TokensError):
                found.append(library.variant(sheet, model))
    assert len(found) > 2 * len(library.worksheets)
    return found


def shape(variant: Variant, key: str) -> tuple[int, int]:
    """The true rows and columns of a matrix of the sheet."""
    return (variant.answer(Blank(key, "rows")), variant.answer(Blank(key, "columns")))


def test_the_promised_models_and_worksheets_are_there(library: Library) -> None:
    assert set(library.models) >= set(MODELS)
    tokens = {key: library.worksheets[key].tokens for key in SHEETS}
    assert tokens == {"llama-7b": 100, "qwen2.5-0.5b": 50}


@pytest.mark.parametrize("key", SHEETS)
def test_a_shipped_sheet_asks_the_seven_classic_rows(library: Library, key: str) -> None:
    variant = library.variant(key)
    assert [row.key for row in variant.rows] == CLASSIC_ROWS
    assert [str(blank) for blank in variant.blanks][:3] == ["input.rows", "input.columns", "queries.rows"]
    assert len(variant.blanks) == 14


def test_no_sentence_about_unreadable_text_gives_an_answer_away(library: Library) -> None:
    keys = {
        variant.answer(blank)
        for variant in every_variant(library)
        for blank in variant.blanks
        if blank.field in symbol_fields(variant.table.askable[blank.tensor])
        if box_unit(variant.problem, blank) != "index"
    }
    sizes = keys | {
        value for variant in every_variant(library) for value in (variant.architecture.H, variant.architecture.G)
    }
    for reason, sentence in library.wording.sheets["unreadable"].items():
        examples = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", sentence)}
        assert not examples & (sizes - {1, 2}), reason


def test_gpt2_ends_where_its_position_table_does(library: Library) -> None:
    assert shape(library.variant("llama-7b", "gpt2", 1024), "scores") == (1024, 1024)
    with pytest.raises(TokensError, match=r"from 1 to 1,024: GPT-2 has a table of 1,024 positions"):
        library.variant("llama-7b", "gpt2", 1025)


def test_rotary_models_go_beyond_their_stated_length(library: Library) -> None:
    assert shape(library.variant("llama-7b", None, 131_072), "scores") == (131_072, 131_072)


@pytest.mark.parametrize("tokens", [0, -3, 10**9])
def test_impossible_lengths_are_refused(library: Library, tokens: int) -> None:
    """The sentence says which numbers can be used."""
    with pytest.raises(TokensError, match="whole number from 1 to"):
        library.variant("llama-7b", None, tokens)


def test_what_is_not_there_is_listed(library: Library) -> None:
    with pytest.raises(WorksheetError, match=r"no worksheet “nope”. Worksheets: .*llama-7b"):
        library.variant("nope")
    with pytest.raises(WorksheetError, match=r"no model “nope”. Models: .*gpt2"):
        library.variant("llama-7b", "nope")
    with pytest.raises(WorksheetError) as refused:
        library.worksheet("x" * 10_000)
    assert "x" * 60 in str(refused.value)
    assert "x" * 61 not in str(refused.value)


def test_numbers_are_grouped_from_ten_thousand_on() -> None:
    assert [format_number(number) for number in (1, 4096, 9999, 10_000, 131_072)] == [
        "1",
        "4096",
        "9999",
        "10,000",
        "131,072",
    ]


def test_one_table_is_written_in_the_notation_of_each_course() -> None:
    dim = Expression.parse("H*d_h + 1")
    assert NOTATIONS["classic"].write(dim) == "H·d_head + 1"
    assert NOTATIONS["lecture"].write(Expression.parse("N")) == "T"
