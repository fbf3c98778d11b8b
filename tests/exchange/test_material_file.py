"""Worksheets and exit tickets as files: the round trip, and the messages about unusable files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.material_file import MaterialFileError, decode_file, read_material_file
from app.exchange.toml_text import write_toml
from app.settings import PROJECT
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import Library
from tests.helpers.random_worksheets import random_settings

SHEET = """\
title = "One head"
model = "llama-7b"
topic = "single-head"
tokens = 100
rows = ["input", "queries"]
"""
TICKET = """\
title = "Before you go"
instruction = "Pick one."
[[questions]]
key = "why"
text = "Why?"
"""


@given(seed=st.integers(0, 10**6))
def test_what_is_written_to_a_file_is_read_again(library: Library, seed: int) -> None:
    sheet = read_settings("mine", random_settings(library, seed), library.models, library.wording)
    text = write_toml(sheet.settings)
    assert read_material_file(sheet.key, text, library).read == sheet
    assert read_material_file(sheet.key, text.replace("\n", "\r\n"), library).read == sheet


def test_the_files_of_the_library_can_be_imported(library: Library) -> None:
    tickets = load_tickets(PROJECT / "worksheets")
    for path in [*PROJECT.glob("worksheets/*.toml"), *PROJECT.glob("worksheets/exit-tickets/*.toml")]:
        read = read_material_file(path.stem, decode_file(path.read_bytes()), library)
        assert read.read == (tickets if read.kind == "ticket" else library.worksheets)[path.stem]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (SHEET.replace("100", "0"), [4]), (SHEET.replace("input", "inputs"), [5]), (SHEET + "colour = 1", [6]),
        (SHEET + "[row_points]\nqueries = 99", [7]), (SHEET.replace("llama-7b", "cfg-1"), [2]),
        (SHEET.replace('"One head"', "1") + '[[questions]]\nkey = "A B"\ntext = "\\u202E"', [1, 7, 8]),
        (SHEET.replace("tokens = 100\n", ""), [0]), (SHEET.replace("=", ":"), [1]),
        (TICKET.replace('"Why?"', '""'), [5]), (TICKET + "colour = 1", [6]), (TICKET.replace('text = "Why?"', ""), [3]),
        ("", [0] * 5), ("instruction = 1\nquestions = [[1]]", [0, 2]),
    ],
)  # fmt: skip
def test_problems_are_told_by_line(library: Library, text: str, lines: list[int]) -> None:
    with pytest.raises(MaterialFileError) as refusal:
        read_material_file("mine", text, library)
    told = refusal.value.problems
    assert [int(each[5:].partition(":")[0]) if each.startswith("Line ") else 0 for each in told] == lines
    assert all(len(each) < 500 and each.isprintable() for each in told)


def test_a_file_in_another_encoding_is_refused_by_line() -> None:
    assert decode_file("\ufefftitle".encode()) == "title"
    with pytest.raises(MaterialFileError) as refusal:
        decode_file("title\nBüro".encode("latin-1"))
    assert "2" in refusal.value.problems[0]
