"""The catalogue has every sheet, opens each with the chosen model where it fits, and finds words."""

from __future__ import annotations

import pytest

from app.practice.catalogue import _NAMES_AND_LINES, catalogue, search
from app.sheets.library import Library
from app.sheets.worksheet import is_in_symbols, library_key


def test_every_sheet_is_listed_with_a_name_and_a_line(library: Library) -> None:
    entries = catalogue(library, "", in_symbols=False)
    assert sorted(entry.variant.worksheet.key for entry in entries) == sorted(library.worksheets)
    assert _NAMES_AND_LINES.keys() == library.worksheets.keys()
    assert len({entry.name for entry in entries}) == len(entries)
    assert all(entry.line and entry.variant.model.key == entry.variant.worksheet.model for entry in entries)


@pytest.mark.parametrize("model", ["gpt2", "bert-base", "mixtral-8x7b", "whisper-tiny"])
def test_a_chosen_model_is_kept_where_it_fits(library: Library, model: str) -> None:
    for entry in catalogue(library, model, in_symbols=False):
        key = entry.variant.worksheet.key
        assert entry.keeps_model == (library.refusal(key, model) is not None)
        assert (entry.variant.model.key == model) or entry.keeps_model


def test_a_name_about_another_model_is_not_used(library: Library) -> None:
    names = {entry.variant.worksheet.key: entry.name for entry in catalogue(library, "gpt2", in_symbols=False)}
    assert "11,008" not in names["width-llama-7b"]
    assert len(set(names.values())) == len(names)


def test_symbols_are_chosen_where_a_sheet_has_them(library: Library) -> None:
    in_symbols = {
        library_key(entry.variant.worksheet.key): is_in_symbols(entry.variant.worksheet.key)
        for entry in catalogue(library, "", in_symbols=True)
    }
    assert in_symbols["llama-7b"]
    assert not in_symbols["first-steps"]


def test_every_word_must_be_found(library: Library) -> None:
    entries = catalogue(library, "", in_symbols=False)
    assert search(entries, "") == entries
    found = {entry.variant.worksheet.key for entry in search(entries, "QWEN cache")}
    assert found == {"cache-qwen3-0.6b", "bug-decoding"}
    bugs = {entry.name for entry in entries if entry.drawn.worksheet.bug}
    assert {entry.name for entry in search(entries, "bug")} == bugs
    assert search(entries, "cache nothing-like-it") == ()
