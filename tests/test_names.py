"""Names cleaned and compared by one rule, whatever the keyboard."""

from __future__ import annotations

import unicodedata
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.names import JOINERS, MAX_MARKS, clean_line, name_key, normal_form
from tests.helpers.processor_time import processor_time_s

ALI_REZA = "علی\u200cرضا"
# Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 16
DEFAULT_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
BLANK_SYMBOLS = "\u2800\U0001d159"  # a Braille pattern without dots, a note without a head
UNSEEN = [chr(code) for first, last in DEFAULT_IGNORABLE for code in range(first, last + 1)] + [*BLANK_SYMBOLS]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (f"  {ALI_REZA}\u200c ", ALI_REZA),
        (unicodedata.normalize("NFD", "José Müller"), "José Müller"),
        ("Kim\t\u00a0 Lee\r\n", "Kim Lee"),
        ("A\x00d\x07a\u202e \u200b\u200d", "Ada"),
        ("", ""),
        ("x" * 9, "xxxxx"),
        ("abcd efg", "abcd"),
    ],
)
def test_a_line_is_cleaned(typed: str, kept: str) -> None:
    """Composed and on one line; joiners inside a word stay, invisible characters do not; cut to five characters."""
    assert clean_line(typed, 5 if set(typed) <= set("abcdefg x") else None) == kept


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("José Müller", unicodedata.normalize("NFD", "JOSÉ  MÜLLER")),
        (ALI_REZA, ALI_REZA.replace("\u200c", "")),
        ("Zoë O'Brien", "zoë o’brien"),
        ("Ｋｉｍ Ｌｅｅ", "kim lee"),
        ("Groß", "GROSS"),
        ("Jean-Luc", "Jean\u2011Luc"),
    ],
)
def test_names_are_the_same_however_they_are_typed(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_different_names_stay_different() -> None:
    """An accent, another letter or another order is another name."""
    assert len({name_key(name) for name in ("Zoe Fox", "Zoë Fox", "Fox Zoe", "Zoe Fo")}) == 4


def test_what_cannot_be_seen_makes_no_name() -> None:
    assert [ascii(char) for char in UNSEEN if clean_line(char) or clean_line(f" {char}{char} ")] == []
    kept = {char for char in UNSEEN if clean_line(f"Kim{char} Le{char}e") != "Kim Lee"}
    assert kept == set(JOINERS)
    assert {name_key(f"Kim{char} Le{char}e") for char in UNSEEN} == {"kim lee"}


@given(st.text() | st.text("Aé \u0301" + JOINERS + "\u3164\u034f\ufe0f\u2800"))
def test_a_clean_line_stays_as_it_is_and_has_the_key_of_what_was_typed(typed: str) -> None:
    line = clean_line(typed)
    assert clean_line(line) == line
    assert all(char in JOINERS or (char.isprintable() and char not in UNSEEN) for char in line)
    assert name_key(line) == name_key(typed)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0316\u0f73\uff9e", "\u0f73\u0f75"])
def test_a_run_of_combining_marks_takes_no_time(marks: str) -> None:
    run = "a" + "".join(mark * 20_000 for mark in marks)
    for clean in (clean_line, name_key, lambda text: clean_line(text, 60), lambda text: normal_form("NFKD", text)):
        assert processor_time_s(partial(clean, run)) < 0.5


def test_as_many_marks_as_any_language_writes_are_kept() -> None:
    letter = "a" + "\u0316" * MAX_MARKS
    assert clean_line(f"{letter} {letter}") == f"{letter} {letter}"
    assert clean_line(f"{letter}\u0316 b") == f"{letter} b"
    assert clean_line(letter * 9, 5) == letter[:5]
