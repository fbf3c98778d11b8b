"""Cells of a CSV file as a spreadsheet reads them: numbers as numbers, and no text as a formula."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.spreadsheet import csv_lines, escape_formula

APOSTROPHE = re.compile(r"(^|[;\r\n])'")  # where one may have been added


@pytest.mark.parametrize(
    "evil",
    ["=1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r1", " =1", '"=1', "＝1+1", "-", "+", "=", "-2+3+cmd|' /C calc'!A0"],
)
def test_a_text_that_would_be_a_formula_begins_with_an_apostrophe(evil: str) -> None:
    assert escape_formula(evil) == f"'{evil}"


@pytest.mark.parametrize("number", [-3, 2.5, "-3", "+7", "-12.5", "1,5", "100"])
def test_numbers_stay_numbers(number: object) -> None:
    """Below nothing, with a sign, with either point: what is a number is not touched."""
    assert escape_formula(number) == number  # type: ignore[arg-type]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_no_text_becomes_a_formula_and_none_is_lost(texts: list[str]) -> None:
    [row] = csv.reader(io.StringIO("".join(csv_lines([texts])).removeprefix("\ufeff"), newline=""))
    kept = [cell if cell == text else APOSTROPHE.sub(r"\1", cell) for cell, text in zip(row, texts, strict=True)]
    assert kept == [t if cell == t else APOSTROPHE.sub(r"\1", t) for cell, t in zip(row, texts, strict=True)]
    for cell in row:
        assert re.match(r"\s*[=+@-]|[\t\r\n]", cell) is None or re.fullmatch(r"[+-]?[\d]+([.,]\d+)?", cell)


@pytest.mark.parametrize("evil", ["K;=cmd|' /C calc'!A0;", "5;=2+2;", '5; "=2+2"', "a\n=2+2", "a;-1-1", "a;-"])
def test_a_text_hides_no_formula_behind_a_semicolon(evil: str) -> None:
    file = "".join(csv_lines([("Kim", evil, 7)])).removeprefix("\ufeff")
    cells = [cell.strip(' "') for line in file.splitlines() for cell in line.split(";")]
    assert len(cells) > 1
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert escape_formula("1;-2.5;+3") == "1;-2.5;+3"


def test_a_row_says_numbers_without_quotes_and_nothing_as_nothing() -> None:
    assert "".join(csv_lines([("a", 14.0, 2.5, True, None, -1)])) == '\ufeff"a",14,2.5,"yes","",-1\r\n'
