"""Class lists as instructors have them: every shape of file becomes plain names, or a sentence."""

from __future__ import annotations

import contextlib
import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.handout.options import HandoutError, one_line
from app.handout.roster import LARGEST_ROSTER, language_of, read_roster


@pytest.mark.parametrize(
    ("roster", "names"),
    [
        ("Ada Lovelace\nAlan Turing\n", ("Ada Lovelace", "Alan Turing")),
        ("Name,ID\nAda Lovelace,1\n", ("Ada Lovelace",)),
        ("id;Full Name\n1;Ada Lovelace\n", ("Ada Lovelace",)),
        ("First name\tLast name\tEmail\nAda\tLovelace\ta@b.c\n", ("Ada Lovelace",)),
        ("Surname,First name\nLovelace,Ada\n", ("Ada Lovelace",)),
        ('Student,ID\n"Lovelace, Ada",1\n', ("Lovelace, Ada",)),
        ("\ufeffname\r\nÅngström\r\nعمر الخيام\r\n", ("Ångström", "عمر الخيام")),
        ("Ada,1\nAlan,2", ("Ada", "Alan")),
        ("=cmd()|' /C calc'!A0\n+1\n@x\n", ("=cmd()|' /C calc'!A0", "+1", "@x")),
        ("A\x00da\x07\n\n \nB", ("A da", "B")),
        ("Ada\nAda\n", ("Ada", "Ada")),
        ("王小明\n田中さくら\n김철수", ("王小明", "田中さくら", "김철수")),
    ],
)
def test_a_class_list_becomes_its_names(roster: str, names: tuple[str, ...]) -> None:
    """With and without a header, with commas, semicolons or tabs, in any script, as text and as bytes."""
    assert read_roster(roster) == names
    assert read_roster(roster.encode()) == names
    assert read_roster(roster.encode("utf-16")) == names


def test_an_old_export_is_read_too() -> None:
    """Spreadsheets of some countries save in the code page of Windows."""
    assert read_roster("Name\nJosé Müller".encode("cp1252")) == ("José Müller",)


@pytest.mark.parametrize(
    ("roster", "sentence"),
    [
        ("", "is empty"),
        ("\n\n , \n", "is empty"),
        ("name\n\n", "No names"),
        ("x\n" * 6_000, "6,000 names; at most 5,000"),
        ("x" * 81, "at most 80"),
        ("Name\n" * 1_000_000, f"at most {LARGEST_ROSTER:,} bytes"),
        (b"\xff\xfea", "no text that can be read"),
    ],
)
def test_a_list_that_cannot_be_used_is_told(roster: str | bytes, sentence: str) -> None:
    """One sentence says what to change, for a million rows too."""
    with pytest.raises(HandoutError, match=sentence):
        read_roster(roster)


LETTERS = st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1, max_size=20)


@given(st.lists(st.lists(LETTERS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=12))
def test_any_names_come_back_as_they_were_written(names: list[str]) -> None:
    """A CSV with a header gives back each name, in order, its letters composed."""
    written = io.StringIO()
    csv.writer(written).writerows([["name", "id"], *([name, "1"] for name in names)])
    assert read_roster(written.getvalue()) == tuple(unicodedata.normalize("NFC", name) for name in names)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(roster: bytes) -> None:
    """No file whatever stops the program."""
    with contextlib.suppress(HandoutError):
        assert all(one_line(name) == name for name in read_roster(roster))


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("Ada", "en"),
        ("Ελένη", "el"),
        ("Дмитрий", "ru"),
        ("王小明", "zh"),
        ("田中さくら", "ja"),
        ("김철수", "ko"),
        ("محمد", "ar"),
        ("כהן", "he"),
    ],
)
def test_a_name_is_set_in_its_language(name: str, language: str) -> None:
    """Shared characters get the forms of the right language, and a reading machine the right voice."""
    assert language_of(name)[0] == language
