"""Names cleaned and compared: by one rule, whoever typed them and on whatever keyboard."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.names import JOINERS, clean_line, name_key

ALI_REZA = "علی\u200cرضا"


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
    """Case, composition, joiners, width and the kind of apostrophe make no difference."""
    assert name_key(one) == name_key(other)


def test_different_names_stay_different() -> None:
    """An accent, another letter or another order is another name."""
    assert len({name_key(name) for name in ("Zoe Fox", "Zoë Fox", "Fox Zoe", "Zoe Fo")}) == 4


@given(st.text())
def test_a_clean_line_stays_as_it_is_and_has_the_key_of_what_was_typed(typed: str) -> None:
    """Cleaning twice is cleaning once, and nothing that cannot be seen is left but joiners."""
    line = clean_line(typed)
    assert clean_line(line) == line
    assert all(char.isprintable() or char in JOINERS for char in line)
    assert name_key(line) == name_key(typed)
