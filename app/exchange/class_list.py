"""Read a class list, a CSV file or a column of names in any script, as names with numbers.

>>> read_roster("Name;Number\\nLee, Kim;17")
(('Kim Lee', '17'),)
>>> read_names("Kim Lee\\nعمر الخيام")
('Kim Lee', 'عمر الخيام')
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.names import clean_line, distinct_names, name_key
from app.translation import gettext as _

MAX_ROSTER_NAMES = 5_000
MAX_ROSTER_BYTES = 1_000_000
MAX_ENTRY_LENGTH = 80  # characters of a name, or of a number

RosterEntry = tuple[str, str | None]  # a name, and the student's number if there is one
_ColumnKind = Literal["name", "first", "last", "number"]

# The titles of the columns of class lists, in the systems that make them.
_TITLES: Mapping[_ColumnKind, frozenset[str]] = {
    "name": frozenset({"name", "full name", "student", "student name", "display name", "names", "sortable name"}),
    "first": frozenset({"first name", "firstname", "first", "given name", "forename"}),
    "last": frozenset({"last name", "lastname", "last", "surname", "family name"}),
    "number": frozenset({"number", "id", "id number", "student id", "student number", "sis user id", "sis id", "key",
                         "matriculation number", "username", "roster number"}),
}  # fmt: skip
_DELIMITERS = "\t;,"
_EXTRA_LINES = 20  # that a list may have besides its names, such as a header
_MOST_CELLS = 20  # of a line without a header
_HEADER_LENGTH = 20_000  # characters of a header that are looked at
# Rows of gradebooks that are no students: of Canvas, its test student in either order, and of Moodle.
_NO_STUDENTS = frozenset({"points possible", "student, test", "test student", "manual posting", "overall average"})
_WRITTEN_HEADER = ("name", "number")  # of `write_roster`, whose lists have students alone
_STUDENT_NUMBER = re.compile(r"(?=\S*\d)[^\s@]+")
_FAMILY_NAME_FIRST = re.compile(r'[^\s",@\d]+, [^",@\d]+')


class RosterError(ValueError):
    """A class list that cannot be used; one sentence that says what to change."""


@dataclass(frozen=True)
class RosterRows:
    """The students of a class list, and the names of its rows that are not students."""

    entries: tuple[RosterEntry, ...]
    left_out: tuple[str, ...]


def read_names(roster: bytes | str) -> tuple[str, ...]:
    """The names of a class list in its order, as `distinct_names` tells equal ones apart; raises RosterError."""
    return tuple(distinct_names(read_roster(roster)))


def read_roster(roster: bytes | str, max_names: int = MAX_ROSTER_NAMES) -> tuple[RosterEntry, ...]:
    """Return the names of a class list in its order, each with the student's number or None.

    With a header the columns are found by their titles, those with other titles are ignored, and rows that Canvas and
    Moodle add are left out, such as "Points Possible" and the test student, unless the header is that of
    `write_roster`. Without one, each line is read separately: the first cell with a digit and no space is the number,
    e-mail addresses are left out, and the rest is the name. "Lee, Kim" becomes "Kim Lee". Rows without a name are left
    out. Raises RosterError for a file that cannot be read, no names, more than `max_names`, and a name or number of
    more than MAX_ENTRY_LENGTH characters.
    """
    return read_roster_rows(roster, max_names).entries


def read_roster_rows(roster: bytes | str, max_names: int = MAX_ROSTER_NAMES) -> RosterRows:
    """What `read_roster` returns, and the names of the rows that Canvas and Moodle added, which it leaves out.

    There are such rows only in a list with a header other than that of `write_roster`. Raises RosterError as
    `read_roster` does, for more than MAX_ROSTER_BYTES bytes (of a text: characters), and for more than _EXTRA_LINES
    lines beyond `max_names`.
    """
    if len(roster) > MAX_ROSTER_BYTES:
        problem = _("The class list is larger than {limit:,} bytes. Split it and add the parts one by one.")
        raise RosterError(problem.format(limit=MAX_ROSTER_BYTES))
    lines = _lines(roster if isinstance(roster, str) else _decode(roster))
    if len(lines) > max_names + _EXTRA_LINES:
        raise _too_many(len(lines), max_names)
    delimiter, columns = _header(lines)
    if delimiter:
        entries = [_entry_by_header(row, columns) for row in _read_csv(lines[1:], delimiter)]
    else:
        entries = [_entry_by_look(_row(number, line)) for number, line in enumerate(lines[bool(columns) :], start=1)]
    named = [(name, number or None) for name, number in entries if name]
    may_have_others = bool(columns) and tuple(lines[0].split("\t")) != _WRITTEN_HEADER
    left_out = tuple(name for name, _number in named if may_have_others and name_key(name) in _NO_STUDENTS)
    named = [entry for entry in named if entry[0] not in left_out]
    if not named:
        raise RosterError(_("The class list has no names. Type one name per line."))
    if len(named) > max_names:
        raise _too_many(len(named), max_names)
    for text in (text for entry in named for text in entry if text and len(text) > MAX_ENTRY_LENGTH):
        problem = _("“{start}…” has {count:,} characters; a name or number can have at most {limit}.")
        raise RosterError(problem.format(start=text[:30], count=len(text), limit=MAX_ENTRY_LENGTH))
    return RosterRows(tuple(named), left_out)


def write_roster(entries: Iterable[RosterEntry]) -> str:
    """Return a class list that `read_roster` reads as these names and numbers; "" if there are none.

    Example:
        write_roster([("Kim Lee", "17")])  # "name\\tnumber\\nKim Lee\\t17\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    rows = [(name, number or "") for name, number in entries]
    writer.writerows([_WRITTEN_HEADER, *rows] if rows else ())
    return out.getvalue()


def _too_many(count: int, limit: int) -> RosterError:
    problem = _("The class list has {count:,} names; at most {limit:,} can be added at once.")
    return RosterError(problem.format(count=count, limit=limit))


def _decode(roster: bytes) -> str:
    """Return a file's text, without a byte order mark.

    With a UTF-16 mark it must be UTF-16; otherwise it is UTF-8, else Windows-1252. Raises RosterError if it can be read
    as none of these.
    """
    for encoding in ("utf-16",) if roster[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return roster.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise RosterError(_("The class list is not a text file. Save it as CSV in UTF-8."))


def _lines(text: str) -> list[str]:
    """Return the lines that hold more than spaces, tabs, commas, semicolons and quotes.

    They are not stripped; NULs become spaces, and a byte order mark is dropped. Raises RosterError if no line is left.
    """
    lines = [line for line in text.removeprefix("\ufeff").replace("\0", " ").splitlines() if line.strip(' \t,;"')]
    if not lines:
        raise RosterError(_("The class list is empty. Type at least one name, one per line."))
    return lines


def _header(lines: Sequence[str]) -> tuple[str, dict[_ColumnKind, int]]:
    """Return the delimiter of the header and the index of each kind of column; ("", {}) if there is no header.

    Titles are read from the first line alone, of which at most _HEADER_LENGTH characters are looked at. Later lines
    only help to tell whether a single title, as in "Name, Section", is really a name such as "Lee, Kim"; then there is
    no header. `lines` must have a line, and none may be empty (see `_lines`).

    There is no header if no title for a name is known. The delimiter is the one of tab, semicolon and comma that finds
    the most columns with a known title, the first of these if several do. It is "" if only one title is known and the
    line does not contain it. Raises RosterError if the line is not CSV.
    """
    start = lines[0][:_HEADER_LENGTH]
    headers = [(delimiter, _header_columns(next(_read_csv([start], delimiter)))) for delimiter in _DELIMITERS]
    delimiter, columns = max(headers, key=lambda header: len(header[1]))
    if len(columns) > 1:
        return delimiter, columns
    if _begins_with_a_name(lines):
        return "", {}
    return delimiter if columns and delimiter in start else "", columns


def _begins_with_a_name(lines: Sequence[str]) -> bool:
    """Whether the first line is a name such as "Student, Ada", rather than titles such as "Name, Section".

    It is a name if it is written like "Lee, Kim", and so is one of the lines below it, or none of them has a comma.
    """
    first, *others = (line.strip() for line in lines)
    rows = [line for line in others if "," in line]
    return bool(_FAMILY_NAME_FIRST.fullmatch(first)) and (not rows or any(map(_FAMILY_NAME_FIRST.fullmatch, rows)))


def _read_csv(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of each row, unchanged; raises RosterError for text that is not CSV."""
    try:
        yield from csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    except csv.Error as error:
        raise RosterError(_("The class list can’t be read as CSV: {reason}.").format(reason=error)) from None


def _row(number: int, line: str) -> list[str]:
    """The cleaned cells of a line without a header, separated by tab if it has one, else semicolon, else comma.

    "Lee, Kim" is one cell: the comma belongs to the name. Raises RosterError for more than _MOST_CELLS cells, naming
    the line's `number`, and for a line that is not CSV.
    """
    delimiter = next((mark for mark in _DELIMITERS if mark in line), ",")
    if delimiter == "," and _FAMILY_NAME_FIRST.fullmatch(line.strip()):
        return [clean_line(line)]
    if line.count(delimiter) >= _MOST_CELLS:
        problem = _("Line {number} of the class list has {count:,} columns. Put one student on each line.")
        raise RosterError(problem.format(number=number, count=line.count(delimiter) + 1))
    return [clean_line(cell) for cell in next(_read_csv([line], delimiter))]


def _header_columns(row: Sequence[str]) -> dict[_ColumnKind, int]:
    """Return the index of each kind of column by the titles in a header, whatever their case, the first of each kind.

    {} if none of its cells is a title for names: then the row is no header.
    """
    columns = {
        kind: index
        for kind, titles in _TITLES.items()
        for index, cell in reversed(list(enumerate(row)))
        if cell.strip().casefold() in titles
    }
    return columns if columns.keys() & {"name", "first", "last"} else {}


def _entry_by_header(row: Sequence[str], columns: Mapping[_ColumnKind, int]) -> tuple[str, str]:
    """Name and number of a row by its columns, each "" if there is none; without a full name, first and last name.

    "Lee, Kim" becomes "Kim Lee". A row may be shorter than the header.
    """
    cells = {kind: clean_line(row[index]) if index < len(row) else "" for kind, index in columns.items()}
    name = cells.get("name") or clean_line(f"{cells.get('first', '')} {cells.get('last', '')}")
    return _first_name_first(name), cells.get("number", "")


def _entry_by_look(row: Sequence[str]) -> tuple[str, str]:
    """Return name and number of a row without a header, each "" if there is none.

    The only cell of a row is always the name, whatever it looks like. Of several cells the first with a digit and no
    space is the number, those with @ are ignored, and the others are the name. "Lee, Kim" becomes "Kim Lee".
    """
    if len(row) == 1:
        return _first_name_first(row[0]), ""
    number = next((cell for cell in row if _STUDENT_NUMBER.fullmatch(cell)), "")
    return _first_name_first(clean_line(" ".join(cell for cell in row if cell != number and "@" not in cell))), number


def _first_name_first(name: str) -> str:
    """Return "Lee, Kim" as "Kim Lee"; a name with no comma, or with two, is returned unchanged."""
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma and last and first and "," not in first else name
