"""Cells of a CSV file as a spreadsheet reads them: numbers as numbers, and no text as a formula."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.spreadsheet import csv_lines, escape_formula


@pytest.mark.parametrize(
    "evil", ["=1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "-", "+", "=", "-2+3+cmd|' /C calc'!A0"]
)
def test_a_text_that_would_be_a_formula_begins_with_an_apostrophe(evil: str) -> None:
    """The beginnings that spreadsheets evaluate, also behind spaces and in their wide forms."""
    assert escape_formula(evil) == f"'{evil}"


@pytest.mark.parametrize("number", [-3, 2.5, "-3", "+7", "-12.5", "1,5", "100"])
def test_numbers_stay_numbers(number: object) -> None:
    """Below nothing, with a sign, with either point: what is a number is not touched."""
    assert escape_formula(number) == number  # type: ignore[arg-type]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_no_text_becomes_a_formula_and_none_is_lost(texts: list[str]) -> None:
    """Whatever is typed, each cell comes back as typed but for one apostrophe, and none begins as a formula does."""
    [row] = csv.reader(io.StringIO("".join(csv_lines([texts])).removeprefix("\ufeff"), newline=""))
    assert [cell.removeprefix("'") if cell != text else cell for cell, text in zip(row, texts, strict=True)] == texts
    for cell in row:
        assert re.match(r"\s*[=+@-]|[\t\r\n]", cell) is None or re.fullmatch(r"[+-]?[\d]+([.,]\d+)?", cell)


def test_a_row_says_numbers_without_quotes_and_nothing_as_nothing() -> None:
    """Worked by hand: whole numbers without a point, yes and no as words, every text in quotes."""
    assert "".join(csv_lines([("a", 14.0, 2.5, True, None, -1)])) == '\ufeff"a",14,2.5,"yes","",-1\r\n'
