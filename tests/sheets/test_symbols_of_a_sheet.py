"""Sheets in symbols, made from worksheets in numbers, and the sheets that replace old ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.sheets.codes import short_hash
from app.sheets.replaced import REPLACED
from app.sheets.worksheet import WorksheetError
from app.topics.requirements import TopicError
from tests.helpers.shipped import LIBRARY


@pytest.mark.parametrize("key", ["llama-7b~symbols", "llama-7b~symbols~5", "experts-mixtral-8x7b~symbols"])
def test_a_sheet_in_symbols_asks_the_same_and_takes_symbols(key: str) -> None:
    in_symbols, in_numbers = LIBRARY.variant(key), LIBRARY.variant(key.replace("~symbols", ""))
    assert dict(in_symbols.key) == dict(in_numbers.key)
    for blank in in_symbols.blanks:
        assert in_symbols.read(blank, in_symbols.written_answer(blank)) == in_symbols.read(
            blank, in_symbols.written_answer(blank, in_symbols=True)
        )
    assert LIBRARY.variant_from_code(in_symbols.code) == in_symbols != LIBRARY.variant_from_code(in_numbers.code)
    assert LIBRARY.seeded(key, 3).worksheet == in_symbols.worksheet


def test_an_answer_without_symbols_is_not_asked_for_in_symbols() -> None:
    left_out = set(LIBRARY.variant("growth-llama-7b").key) - set(LIBRARY.variant("growth-llama-7b~symbols").key)
    assert {LIBRARY.variant("growth-llama-7b").key[box] for box in left_out} == {2, 4}


def test_a_worksheet_written_in_symbols_must_not_ask_for_such_an_answer() -> None:
    worksheet = replace(LIBRARY.worksheets["growth-llama-7b"], key="mine", answers="letters")
    assert replace(LIBRARY, worksheets={"mine": worksheet}).refusal("mine", "llama-7b")


@pytest.mark.parametrize("key", ["first-steps", "it-attends-smollm2", "bug-one-head", "bug-layer"])
def test_a_worksheet_that_makes_no_sense_in_symbols_is_refused(key: str) -> None:
    with pytest.raises(WorksheetError):
        LIBRARY.worksheet(f"{key}~symbols")


def test_rounded_answers_depend_on_the_model() -> None:
    with pytest.raises(TopicError):
        LIBRARY.variant("width-llama-7b~symbols")
    assert LIBRARY.variant("width-llama-7b~symbols", "llama-3.2-3b").blanks


@pytest.mark.parametrize("end", ["~", "~~", "~symbols~", "~5~symbols", "~symbols~symbols", "~symbols~0", "~-1"])
def test_no_other_ending_makes_a_sheet(end: str) -> None:
    with pytest.raises(WorksheetError):
        LIBRARY.worksheet(f"llama-7b{end}")
    assert LIBRARY.find_worksheet(f"llama-7b{end}") is None


def test_old_sheets_lead_to_sheets_that_exist() -> None:
    in_use = {short_hash(key, 3) for key in LIBRARY.worksheets}
    for old, new in REPLACED.items():
        variant = LIBRARY.variant(new.worksheet, new.model or None, decoder_tokens=new.decoder_tokens)
        if short_hash(old, 3) not in in_use:
            opened = LIBRARY.variant_from_code(f"{short_hash(old, 3)}-FF-BB")  # 60 tokens
            assert (opened.worksheet, opened.model) == (variant.worksheet, variant.model)
            assert opened.tokens in (60, variant.architecture.fixed_tokens)


@pytest.mark.parametrize("key", LIBRARY.worksheets)
def test_no_mistyped_code_opens_the_sheet_that_replaced_an_old_one(key: str) -> None:
    code = LIBRARY.variant(key).code
    with pytest.raises(WorksheetError):
        LIBRARY.variant_from_code(code[:-1] + ("B" if code[-1] != "B" else "C"))
