"""Class lists as they are pasted and exported: every shape of file becomes names with numbers, or a sentence."""

from __future__ import annotations

import csv
import io
import time
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.exchange.class_list import (
    MAX_ENTRY_LENGTH,
    MAX_ROSTER_BYTES,
    MAX_ROSTER_NAMES,
    RosterError,
    read_names,
    read_roster,
    read_roster_rows,
    write_roster,
)

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Sheet 1 (44)
    Points Possible,,,,,14
"Lee, Kim",993,s17,kim,A,12
"Fox, Ada",994,s18,ada,A,
"Student, Test",1001,,5b3d,A,
"""


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Kim Lee", [("Kim Lee", None)]),
        ("Kim Lee\n\n  Lou   Ray \n", [("Kim Lee", None), ("Lou Ray", None)]),
        ("Kim Lee, 1017\nLou Ray, 1018", [("Kim Lee", "1017"), ("Lou Ray", "1018")]),
        ("1017;Kim;Lee", [("Kim Lee", "1017")]),
        ("Name\tNumber\nKim Lee\t17", [("Kim Lee", "17")]),
        ("Matriculation number,Last name,First name,E-mail\ns17,Lee,Kim,kim@example.org", [("Kim Lee", "s17")]),
        ('Student,ID,SIS User ID,Section\n"Lee, Kim",993,s17,A', [("Kim Lee", "s17")]),
        ('"Lee, Kim",s17', [("Kim Lee", "s17")]),
        ("First name,Last name,Email address\nKim,Lee,kim@example.org", [("Kim Lee", None)]),
        ("Kim Lee,kim@example.org", [("Kim Lee", None)]),
        ("name\nKim Lee", [("Kim Lee", None)]),
        ("Name,Number\nKim Lee", [("Kim Lee", None)]),
        ("Søren Ærø;7\n李 明;8", [("Søren Ærø", "7"), ("李 明", "8")]),
        ("id;Full Name\n1;Ada Lovelace\n", [("Ada Lovelace", "1")]),
        ("Surname,First name\nLovelace,Ada\n", [("Ada Lovelace", None)]),
        ("Lovelace, Ada\nTuring, Alan", [("Ada Lovelace", None), ("Alan Turing", None)]),
        ("First, Last\nAda, Lovelace", [("Ada Lovelace", None)]),
        ('\ufeff"Name"\r\nÅngström\r\nعمر الخيام\r\n', [("Ångström", None), ("عمر الخيام", None)]),
        ("=cmd()|' /C calc'!A0\n+1\n@x\n", [("=cmd()|' /C calc'!A0", None), ("+1", None), ("@x", None)]),
        ("A\x00da\x07\n\n \nB", [("A da", None), ("B", None)]),
        ("Ada\nAda\n", [("Ada", None), ("Ada", None)]),
        (
            "Kim Lee, 1017\n1018;Lou;Ray\nFox, Ada\nBo\tBerg",
            [("Kim Lee", "1017"), ("Lou Ray", "1018"), ("Ada Fox", None), ("Bo Berg", None)],
        ),
        (CANVAS, [("Kim Lee", "s17"), ("Ada Fox", "s18")]),
        ("First name,Surname,ID number\nKim,Lee,17\nOverall average,,\n", [("Kim Lee", "17")]),
        ("Name,Section\nAda Lovelace,Lab 2\nBo Li,", [("Ada Lovelace", None), ("Bo Li", None)]),
        ("Name, Section\nAda Lovelace, A\nBo Li, B", [("Ada Lovelace", None), ("Bo Li", None)]),
        ("Points;Name\n87;Ada Lovelace\n87;Bo Li", [("Ada Lovelace", None), ("Bo Li", None)]),
        ('Section\tStudent\nA\t"Lee, Kim"\nB\tStudent, Test', [("Kim Lee", None)]),
        ("Student, Ada", [("Ada Student", None)]),
        ("Student, Ada\nBo Li", [("Ada Student", None), ("Bo Li", None)]),
        ("Name, Kim\nLee, Bo\nFox, Lou, 17", [("Kim Name", None), ("Bo Lee", None), ("Fox Lou", "17")]),
        ("Ada Name, 17\nBo Student, 18", [("Ada Name", "17"), ("Bo Student", "18")]),
        ("sep=;\nName;Number\nKim Lee;17", [("Kim Lee", "17")]),
        ("sep=|\nKim Lee|17", [("Kim Lee", "17")]),
        ('sep="\nName,Number\nKim Lee,17', [("Kim Lee", "17")]),  # no separator: Python 3.13 refuses it
        ("id,first_name,last_name,email\nklee,Kim,Lee,k@x.example", [("Kim Lee", "klee")]),
        (
            "Course,CS101\nInstructor: X,,\n\nName,Number\nKim Lee,001\nName,Number\nLou,2",
            [("Kim Lee", "001"), ("Lou", "2")],
        ),
        ("Name;Vorname;Matrikelnummer\nLee;Kim;17", [("Kim Lee", "17")]),
        ("Vorname;Nachname;ID-Nummer;E-Mail\nKim;Lee;017;k@x.example", [("Kim Lee", "017")]),
        (
            "姓名,学籍番号,クラス\n山田 太郎,A001,1組\n鈴木 花子,A002,1組",
            [("山田 太郎", "A001"), ("鈴木 花子", "A002")],
        ),
        ("Nr;Nachname, Vorname;Matrikel\n1;Lee, Kim;017\n2;Ray, Lou;018", [("Kim Lee", "017"), ("Lou Ray", "018")]),
        (
            "Imię;Nazwisko;E-mail;Punkty\nKim;Lee;k@x.example;7\nLou;Ray;l@x.example;8",
            [("Kim Lee", None), ("Lou Ray", None)],
        ),
        (f"Imię;Nazwisko;Suma{';' * 30}\nKim;Lee;7,5{';' * 30}\nLou;Ray;7,5", [("Kim Lee", None), ("Lou Ray", None)]),
        (f"Rufname;Familienname;Kennung{';Blatt' * 30}\nKim;Lee;017{';12,5' * 30}", [("Kim Lee", "017")]),
        ('Name,ID\nKim,"=""0017"""\nLou,="0018"\nBo,\'0019', [("Kim", "0017"), ("Lou", "0018"), ("Bo", "0019")]),
        ('Kim Lee,="0017"\n\'t Hooft,#0018', [("Kim Lee", "0017"), ("'t Hooft", "0018")]),
        ("OrgDefinedId,Username,Last Name,First Name\n#0017,#klee,Lee,Kim", [("Kim Lee", "0017")]),
        *(
            (f"First Name,Last Name,{title}\nKim,Lee,0017", [("Kim Lee", "0017")])
            for title in ("SID", "UIN", "Identifier", "Matrikelnummer", "student_id")
        ),
        ("LastName,FirstName,ID,SIS Login ID,Section\nLee,Kim,993,klee,A", [("Kim Lee", "klee")]),
        ("First name,Last name,ID number,Username\nKim,Lee,,klee", [("Kim Lee", "klee")]),
        ("Test Student", [("Test Student", None)]),  # without a header, somebody typed that name
        ("می\u200cنا\n王小明\n김철수", [("می\u200cنا", None), ("王小明", None), ("김철수", None)]),
    ],
)
def test_class_lists_are_read(text: str, read: list[tuple[str, str | None]]) -> None:
    """Alone, with numbers, with headers of several systems, family name first or last, in any script and encoding."""
    assert list(read_roster(text)) == read
    assert list(read_roster(text.encode())) == read
    assert list(read_roster(text.encode("utf-16"))) == read
    assert list(read_names(text)) == [name for name, _ in read]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_files_are_read_as_they_were_saved(encoding: str) -> None:
    assert read_roster("Name;Number\nJosé Núñez;5".encode(encoding)) == (("José Núñez", "5"),)


@pytest.mark.parametrize(
    ("roster", "sentence"),
    [
        ("", "is empty"),
        ("\n\n , \n", "is empty"),
        (";;;\n;;;", "is empty"),
        ("name\n\n", "has no names"),
        ("," * 900_000 + "x", "has 900,001 columns"),
        ("x\n" * 190_000, "190,000 names"),
        ("Name,Number", "has no names"),
        ("x\n" * 6_000, "6,000 names; at most 5,000"),
        ("x" * (MAX_ENTRY_LENGTH + 1), "at most 80"),
        (f"Kim,{'1' * 200}", "at most 80"),
        ("Name\n" * 1_000_000, f"larger than {MAX_ROSTER_BYTES:,} bytes"),
        (b"\xff\xfea", "not a text file"),
        (b"PK\3\4" + b"x" * 99, "workbook"),
        ('Name,Id\nKim,"' + "x" * 500_000, "can’t be read as CSV"),
    ],
)
def test_a_list_that_cannot_be_used_is_told(roster: str | bytes, sentence: str) -> None:
    with pytest.raises(RosterError, match=sentence):
        read_roster(roster)


@pytest.mark.parametrize(
    "hostile", ["," * 900_000, "x\n" * 490_000, ("a," * 499 + "a\n") * 1_000, "Name,Id" + ",a" * 400_000, '"' * 900_000]
)
def test_a_list_of_a_million_characters_is_answered_at_once(hostile: str) -> None:
    begin = time.process_time()
    with suppress(RosterError):
        read_roster(hostile)
    assert time.process_time() - begin < 5


def test_rows_that_are_no_students_are_named() -> None:
    assert read_roster_rows(CANVAS).left_out == ("Points Possible", "Test Student")
    assert read_roster_rows("Course: CS 101\nName,Number\nKim,1").left_out == ("Course: CS 101",)


@pytest.mark.parametrize(
    ("text", "doubtful"),
    [
        ("Instructor: X\nKim Lee,001\nLou Ray,002", ["Instructor: X"]),
        ("Namn;Efternamnet\nKim;Lee\nLou;Ray", ["Namn Efternamnet"]),
        ("Vorname;Nachname;ID-Nummer;E-Mail\nKim;Lee;017;k@x.example\nGesamtdurchschnitt;;;", ["Gesamtdurchschnitt"]),
        ("Name,Number\nDurchschnitt,\nKim Lee,17\nLou Ray,18", ["Durchschnitt"]),
        ("Nombre,Apellidos,Grado\nKim,Lee,1\nLou,Ray,2\nPromedio,,1.5", ["Promedio"]),  # no column of numbers is sure
        ("Name,Number\nKim Lee,17\nLou Ray,\nBo Li,18\nMo Ek,", []),  # not everybody has a number
        ("Kim Lee\nLou Ray", []),
        ("Kim Lee;–\nLou Ray;17", ["Kim Lee –"]),
        ("Kim Lee,17\nLou Ray", []),
    ],
)
def test_what_may_be_no_student_is_doubtful(text: str, doubtful: list[str]) -> None:
    assert [entry.name for entry in read_roster_rows(text).entries if entry.doubtful] == doubtful


def test_titles_that_are_guessed_are_not_lost() -> None:
    rows = read_roster_rows("Kim Lee;none\nLou Ray;17\nBo Li;18")
    assert rows.guessed_titles
    assert (rows.guessed_titles.name, [entry.name for entry in rows.entries]) == ("Kim Lee", ["Lou Ray", "Bo Li"])
    assert not read_roster_rows("Name;Number\nLou Ray;17").guessed_titles


def test_a_number_keeps_its_title_and_canvas_its_id() -> None:
    by_default = read_roster_rows(CANVAS)
    assert [entry[1:4] for entry in by_default.entries] == [
        ("s17", "SIS User ID", "993"),
        ("s18", "SIS User ID", "994"),
    ]
    written = write_roster(by_default.entries)
    assert read_roster_rows(written).entries == by_default.entries
    assert read_roster(written + "Lou\nBo\t1\t2\t3\t4\t5\t6\n")[-2:] == (("Lou", None), ("Bo", "1"))
    assert by_default.columns
    login = by_default.columns.titles.index("SIS Login ID")
    chosen = read_roster_rows(CANVAS, chosen=(0, None, login)).entries
    assert chosen[0][:4] == ("Kim Lee", "kim", "SIS Login ID", "993")
    [jo] = read_roster_rows("Student,ID,SIS User ID,Section\nJo,7,,A\n").entries
    assert jo[1:4] == ("7", "ID", "7")
    assert read_roster_rows("id,name\n7,Jo\n").entries[0].canvas_id is None


def test_as_many_names_as_are_allowed_are_read() -> None:
    assert len(read_roster("Kim\n" * MAX_ROSTER_NAMES)) == MAX_ROSTER_NAMES
    assert len(read_roster("Kim\n" * 20, 20)) == 20
    with pytest.raises(RosterError, match="21 names; at most 20"):
        read_roster("Kim\n" * 21, 20)


NAMES = st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=1, max_size=20)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(1, 10**9)), min_size=1, max_size=20), st.sampled_from(",;\t"))
def test_what_a_spreadsheet_writes_is_read_back(people: list[tuple[str, str, int]], mark: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark)
    writer.writerow(["First name", "Last name", "Student ID"])
    writer.writerows(people)
    whole = [(unicodedata.normalize("NFC", f"{first} {last}"), str(number)) for first, last, number in people]
    assert list(read_roster(out.getvalue())) == whole


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=12))
def test_any_names_come_back_as_they_were_written(names: list[str]) -> None:
    written = io.StringIO()
    csv.writer(written).writerows([["name", "id"], *([name, ""] for name in names)])
    assert read_names(written.getvalue()) == tuple(unicodedata.normalize("NFC", name) for name in names)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        entries = read_roster(data)
    except RosterError:
        return
    assert entries
    for text in (text for entry in entries for text in entry if text is not None):
        assert 0 < len(text) <= MAX_ENTRY_LENGTH
        assert text.replace("\u200c", "").replace("\u200d", "").isprintable()
