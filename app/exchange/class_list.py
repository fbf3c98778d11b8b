r"""Read a class list, a CSV file or a column of names in any script, as names with numbers.

Where column titles aren't known, they are recognized by the cells below them: a column of numbers or e-mail addresses
has a title if its first cell is neither. Rows that may be titles or summaries are `doubtful`.

>>> read_roster("Name;Number\nLee, Kim;17")
(('Kim Lee', '17'),)
>>> read_names("Kim Lee\nعمر الخيام")
('Kim Lee', 'عمر الخيام')
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from app.names import RosterEntry, clean_line, distinct_names, name_key
from app.refusal import Refusal
from app.translation import gettext as _

MAX_ROSTER_NAMES = 5_000
MAX_ROSTER_BYTES = 1_000_000
MAX_ENTRY_LENGTH = 80  # characters of a name, a number or the title of its column

Row = Sequence[str]
ChosenColumns = tuple[int | None, int | None, int | None]  # the columns of the first name, the last name and the number

# Titles that say which name is which. Those in other languages are Moodle's; others are recognized by their cells.
_FULL_NAMES = frozenset({"name", "full name", "student", "student name", "display name", "names", "sortable name"})
_FIRST_NAMES = frozenset({"first name", "firstname", "first", "given name", "forename", "vorname", "prénom", "nombre",
                          "имя", "förnamn"})  # fmt: skip
_LAST_NAMES = frozenset({"last name", "lastname", "last", "surname", "family name", "nachname", "nom", "nom de famille",
                         "apellidos", "apellido(s)", "фамилия", "efternamn"})  # fmt: skip
# In order of preference: numbers that students know come before those that only a system uses.
_NUMBERS = ("number", "student number", "student id", "id number", "sis user id", "orgdefinedid",
            "matriculation number", "matrikelnummer", "registration number", "roster number", "sid", "uin", "sis id",
            "identifier", "key", "username", "sis login id", "login id", "login", "id")  # fmt: skip
_DELIMITERS = "\t;,"
_EXTRA_LINES = 20  # lines besides the names, such as a header
_PREFACE_LINES = 10  # lines that may precede the titles
_LOOKED_AT = 30  # rows that a column is judged by
_MOST_CELLS = 20  # cells in a line without a header
_MOST_TITLES = 200
_HEADER_LENGTH = 20_000  # characters of a header that are read
# Gradebook rows that aren't students: Canvas's test student in either order, and Moodle's.
_NO_STUDENTS = frozenset({"points possible", "student, test", "test student", "manual posting", "overall average"})
_WRITTEN_HEADER = ["name", "number", "number title", "canvas id"]  # written by `write_roster`
_SEPARATOR_LINE = re.compile(r'"?sep=([^"])"?', re.IGNORECASE)  # Excel's own first line
_STUDENT_NUMBER = re.compile(r"(?=\S*\d)[^\s@]+")
_SIGN = re.compile(r"[\d@]")  # rare in a title, and always in a number or an address
_DECIMAL = re.compile(r"\d+[.,]\d+")
_FAMILY_NAME_FIRST = re.compile(r'[^\s",@\d]+, [^",@\d]+')
# How a spreadsheet and Brightspace keep a number's leading zeros: ="007", '007 and #007.
_SPELLED_NUMBER = re.compile(r"""='?"(.*)"|['#](.+)""")


class RosterError(Refusal):
    """A class list that can't be used."""


@dataclass(frozen=True)
class Columns:
    """The titles of a class list's columns, and the indexes of those used; `first` without `last` is the full name."""

    titles: tuple[str, ...]
    first: int | None
    last: int | None
    number: int | None
    canvas_id: int | None = None


@dataclass(frozen=True)
class RosterRows:
    """A class list as read; `left_out` are rows that aren't students."""

    text: str
    entries: tuple[RosterEntry, ...]
    left_out: tuple[str, ...] = ()
    columns: Columns | None = None
    guessed_titles: RosterEntry | None = None


def read_names(roster: bytes | str) -> tuple[str, ...]:
    """The names of a class list in order, with equal ones told apart by `distinct_names`; raises RosterError."""
    return tuple(distinct_names([entry[:2] for entry in read_roster_rows(roster).entries]))


def read_roster(roster: bytes | str, max_names: int = MAX_ROSTER_NAMES) -> tuple[tuple[str, str | None], ...]:
    """The names of a class list in order, each with the student's number or None; raises RosterError."""
    return tuple(entry[:2] for entry in sure_entries(read_roster_rows(roster, max_names)))


def sure_entries(rows: RosterRows) -> tuple[RosterEntry, ...]:
    """The entries without those that look like a summary above or below the students."""
    return tuple(entry for entry in rows.entries if not (entry.doubtful and rows.columns))


def read_roster_rows(
    roster: bytes | str,
    max_names: int = MAX_ROSTER_NAMES,
    chosen: ChosenColumns | None = None,
) -> RosterRows:
    """Read a class list; `chosen` are its columns if a person chose them."""
    if len(roster) > MAX_ROSTER_BYTES:
        problem = _("The class list is larger than {limit:,} bytes. Split it and add the parts one by one.")
        raise RosterError(problem.format(limit=MAX_ROSTER_BYTES))
    text = roster if isinstance(roster, str) else _decode(roster)
    lines = _lines(text)
    if len(lines) > max_names + _EXTRA_LINES:
        raise _too_many(len(lines), max_names)
    delimiters = _DELIMITERS
    if separator := _SEPARATOR_LINE.fullmatch(lines[0].strip()):
        delimiters, lines = separator[1], lines[1:]
    rows = RosterRows(text, ())
    if lines and lines[0].split("\t") == _WRITTEN_HEADER:
        cells = ([clean_line(cell, MAX_ENTRY_LENGTH + 1) for cell in row] for row in _read_csv(lines[1:], "\t"))
        entries = [_written_entry(*[*row, "", "", "", ""][:4]) for row in cells]
    elif place := _find_titles(lines, delimiters):
        rows, entries = _read_table(text, lines, place, chosen)
    else:
        entries = _read_lines(lines, delimiters)
    entries = [entry for entry in entries if entry.name]
    if not entries:
        raise RosterError(_("The class list has no names. Type one name per line."))
    if len(entries) > max_names:
        raise _too_many(len(entries), max_names)
    for text in (text for entry in entries for text in entry[:4] if text and len(text) > MAX_ENTRY_LENGTH):
        problem = _("“{start}…” has {count:,} characters; a name or number can have at most {limit}.")
        raise RosterError(problem.format(start=text[:30], count=len(text), limit=MAX_ENTRY_LENGTH))
    return replace(rows, entries=tuple(entries))


def write_roster(entries: Iterable[RosterEntry]) -> str:
    """A class list that `read_roster_rows` reads as these entries."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    rows = [[text or "" for text in entry[:4]] for entry in entries]
    writer.writerows([_WRITTEN_HEADER, *rows] if rows else ())
    return out.getvalue()


def _written_entry(name: str, number: str, title: str, canvas_id: str) -> RosterEntry:
    return RosterEntry(name, number or None, title or None, canvas_id or None)


def _too_many(count: int, limit: int) -> RosterError:
    problem = _("The class list has {count:,} names; at most {limit:,} can be added at once.")
    return RosterError(problem.format(count=count, limit=limit))


def _decode(roster: bytes) -> str:
    if roster.startswith(b"PK\3\4"):
        raise RosterError(_("This is a workbook, such as .xlsx, not a text file. Save the sheet as CSV in UTF-8."))
    for encoding in ("utf-16",) if roster[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return roster.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise RosterError(_("The class list is not a text file. Save it as CSV in UTF-8."))


def _lines(text: str) -> list[str]:
    lines = [line for line in text.removeprefix("\ufeff").replace("\0", " ").splitlines() if line.strip(' \t,;"')]
    if not lines:
        raise RosterError(_("The class list is empty. Type at least one name, one per line."))
    return lines


def _read_csv(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    except csv.Error as error:
        raise RosterError(_("The class list can’t be read as CSV: {reason}.").format(reason=error)) from None


# A table whose columns have titles


@dataclass(frozen=True)
class _Titles:
    """The line with the titles, and the separator; `guessed` if found by the cells below."""

    line: int
    delimiter: str
    guessed: bool = False


def _find_titles(lines: Sequence[str], delimiters: str) -> _Titles | None:
    starts = [line[:_HEADER_LENGTH] for line in lines[: _PREFACE_LINES + _LOOKED_AT]]
    for number, start in enumerate(starts[:_PREFACE_LINES]):
        known = [(delimiter, _count_known(_cells(start, delimiter))) for delimiter in delimiters]
        delimiter, count = max(known, key=lambda each: each[1])
        if count > 1:
            return _Titles(number, delimiter)
        if count == 1 and number == 0 and not _begins_with_a_name(lines):
            return _Titles(0, delimiter if delimiter in start else "")
    for number, start in enumerate(starts[:_PREFACE_LINES]):
        for delimiter in delimiters:
            if delimiter in start:
                titles = [clean_line(cell) for cell in _cells(start, delimiter)]
                rows = list(_read_csv(starts[number + 1 :][:_LOOKED_AT], delimiter))
                if _text_columns(titles, rows) and _columns_with(titles, rows, _all_have_signs):
                    return _Titles(number, delimiter, guessed=True)
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    return next(_read_csv([line], delimiter))[:_MOST_TITLES]


def _title_key(title: str) -> str:
    return clean_line(re.sub(r"[_-]", " ", title)).casefold().strip(" :*#")


def _count_known(titles: Row) -> int:
    keys = {_title_key(title) for title in titles}
    names = sum(not keys.isdisjoint(known) for known in (_FULL_NAMES, _FIRST_NAMES, _LAST_NAMES))
    return names and names + (not keys.isdisjoint(_NUMBERS))


def _begins_with_a_name(lines: Sequence[str]) -> bool:
    first, *others = (line.strip() for line in lines)
    rows = [line for line in others if "," in line]
    return bool(_FAMILY_NAME_FIRST.fullmatch(first)) and (not rows or any(map(_FAMILY_NAME_FIRST.fullmatch, rows)))


def _read_table(
    text: str, lines: Sequence[str], place: _Titles, chosen: ChosenColumns | None
) -> tuple[RosterRows, list[RosterEntry]]:
    columns = guessed = None
    if place.delimiter:
        header = _cells(lines[place.line][:_HEADER_LENGTH], place.delimiter)
        table = [row for row in _read_csv(lines[place.line + 1 :], place.delimiter) if row != header]
        titles = tuple(clean_line(cell, MAX_ENTRY_LENGTH) for cell in header)
        columns = _choose_columns(titles, table, chosen)
        guessed = _entry(titles, columns) if place.guessed else None
        entries = [_entry(row, columns) for row in table]
        signed = [_has_sign(entry, row, columns) for entry, row in zip(entries, table, strict=True)]
    else:  # one title, above names that may have numbers beside them
        entries, signed = _read_lines(lines[1:], _DELIMITERS), []
    left_out = [clean_line(line, MAX_ENTRY_LENGTH) for line in lines[: place.line]]
    left_out += [entry.name for entry in entries if name_key(entry.name) in _NO_STUDENTS]
    students = [bool(entry.name) and name_key(entry.name) not in _NO_STUDENTS for entry in entries]
    entries, signed = list(compress(entries, students)), list(compress(signed, students))
    rows = RosterRows(text, (), tuple(left_out), columns, guessed)
    return rows, _with_doubts(entries, signed) if signed else entries


def _has_sign(entry: RosterEntry, row: Row, columns: Columns) -> bool:
    if columns.number is None and columns.last is not None:  # a summary has one cell for both names
        return any(cell.strip() for cell in row[columns.last : columns.last + 1])
    return bool(entry.number) or "@" in "".join(row)


def _choose_columns(titles: tuple[str, ...], table: Sequence[Row], chosen: ChosenColumns | None) -> Columns:
    keys = [_title_key(title) for title in titles]
    filled = {index for row in table for index, cell in enumerate(row[: len(titles)]) if cell.strip()}
    is_canvas = keys[:2] == ["student", "id"] or keys[:3] == ["lastname", "firstname", "id"]
    canvas_id = keys.index("id") if is_canvas and "section" in keys else None
    if chosen:
        first, last, number = (index if index is not None and index < len(titles) else None for index in chosen)
        return Columns(titles, first, last, number, canvas_id)

    def find(known: Collection[str]) -> int | None:
        return next((index for index, key in enumerate(keys) if key in known and index in filled), None)

    full, first, last = map(find, (_FULL_NAMES, _FIRST_NAMES, _LAST_NAMES))
    number = next((index for title in _NUMBERS if (index := find([title])) is not None), None)
    sample = table[:_LOOKED_AT]
    if full is not None and (first is None) != (last is None) and _has_single_words(sample, full):
        first, last = (full if first is None else first), (full if last is None else last)  # "Name" and "Vorname"
    elif full is not None:
        first, last = full, None
    numbers, mails = _identifier_columns(titles, sample)
    are_guessed = first is last is None
    if are_guessed:
        first, *others = [*_text_columns(titles, sample), None]
        is_last = first is not None and others[0] == first + 1 and _has_single_words(sample, first)
        last = others[0] if is_last else None
    if number is None and (are_guessed or mails):  # grades come to the right of addresses
        number = next((index for index in numbers if index < min(mails, default=len(titles))), None)
    return Columns(titles, first, last, number, canvas_id)


def _column(rows: Sequence[Row], index: int) -> list[str]:
    return [cell for row in rows if index < len(row) and (cell := _unspelled(row[index]))]


def _has_single_words(rows: Sequence[Row], index: int) -> bool:
    cells = _column(rows, index)
    return 2 * sum(" " in cell for cell in cells) < len(cells)


def _columns_with(titles: Row, rows: Sequence[Row], fits: Callable[[list[str]], bool]) -> list[int]:
    titled = (i for i, title in enumerate(titles) if any(map(str.isalpha, title)) and not _SIGN.search(title))
    return [
        index for index in titled if (cells := _column(rows, index)) and 2 * len(cells) + 1 >= len(rows) and fits(cells)
    ]


def _all_have_signs(cells: list[str]) -> bool:
    return all(map(_SIGN.search, cells))


def _text_columns(titles: Row, rows: Sequence[Row]) -> list[int]:
    return _columns_with(titles, rows, lambda cells: 2 * sum(map(bool, map(_SIGN.search, cells))) < len(cells))


def _identifier_columns(titles: Row, rows: Sequence[Row]) -> tuple[list[int], list[int]]:
    def are_numbers(cells: list[str]) -> bool:
        only_count = cells == [f"{number}" for number in range(1, len(cells) + 1)] != ["1"]
        return not only_count and _differ(cells) and all(map(_STUDENT_NUMBER.fullmatch, cells))

    def are_mails(cells: list[str]) -> bool:
        return _differ(cells) and all("@" in cell for cell in cells)

    return _columns_with(titles, rows, are_numbers), _columns_with(titles, rows, are_mails)


def _differ(cells: list[str]) -> bool:
    return len(set(cells)) == len(cells) and not any(map(_DECIMAL.fullmatch, cells))


def _entry(row: Row, columns: Columns) -> RosterEntry:
    def cell(index: int | None) -> str:
        return _unspelled(row[index]) if index is not None and index < len(row) else ""

    first, last, number, canvas_id = map(cell, (columns.first, columns.last, columns.number, columns.canvas_id))
    title = columns.titles[columns.number] if columns.number is not None and number else None
    canvas_id = canvas_id if canvas_id.isdecimal() else ""
    if canvas_id and not number:
        assert columns.canvas_id is not None  # noqa: S101 - the cell came from there
        number, title = canvas_id, columns.titles[columns.canvas_id]
    name = clean_line(f"{first} {last}") if first and last else _first_name_first(first or last)
    return RosterEntry(name, _plain_number(number) or None, title, canvas_id or None)


def _unspelled(cell: str) -> str:
    return clean_line(spelled[1]) if (spelled := re.fullmatch(r'="(.*)"', cell.strip())) else clean_line(cell)


def _plain_number(number: str) -> str:
    spelled = _SPELLED_NUMBER.fullmatch(number)
    return clean_line(spelled[1] or spelled[2]) if spelled else number


def _with_doubts(entries: Sequence[RosterEntry], has_sign: Sequence[bool], after: bool = True) -> list[RosterEntry]:
    signed = [index for index, sign in enumerate(has_sign) if sign]
    start, end = (signed[0], signed[-1] + 1) if signed else (0, 0)
    if end - start != len(signed) or not (after or end == len(entries)):
        return list(entries)
    return [entry._replace(doubtful=bool(signed) and not start <= index < end) for index, entry in enumerate(entries)]


# Lines without titles


def _read_lines(lines: Sequence[str], delimiters: str) -> list[RosterEntry]:
    rows = [row for row in (_row(number, line, delimiters) for number, line in enumerate(lines, start=1)) if any(row)]
    entries = [_entry_by_look(row) for row in rows]
    has_sign = [bool(entry.number) or "@" in "".join(row) for entry, row in zip(entries, rows, strict=True)]
    if len(rows) > 1 and len(rows[0]) > 1 and not any(has_sign):
        entries[0] = entries[0]._replace(doubtful=True)
        return entries
    return _with_doubts(entries, has_sign, after=False)


def _row(number: int, line: str, delimiters: str) -> list[str]:
    delimiter = next((mark for mark in delimiters if mark in line), ",")
    if delimiter == "," and _FAMILY_NAME_FIRST.fullmatch(line.strip()):
        return [clean_line(line)]
    if line.count(delimiter) >= _MOST_CELLS:
        problem = _(
            "Line {number} of the class list has {count:,} columns. Write titles above them, such as Name and Number."
        )
        raise RosterError(problem.format(number=number, count=line.count(delimiter) + 1))
    return [_unspelled(cell) for cell in next(_read_csv([line], delimiter))]


def _entry_by_look(row: Row) -> RosterEntry:
    if len(row) == 1:
        return RosterEntry(_first_name_first(row[0]))
    number = next((cell for cell in row if _STUDENT_NUMBER.fullmatch(cell)), "")
    name = clean_line(" ".join(cell for cell in row if cell != number and "@" not in cell))
    return RosterEntry(_first_name_first(name), _plain_number(number) or None)


def _first_name_first(name: str) -> str:
    last, comma, first = name.partition(", ")
    return f"{first} {last}" if comma and last and first and "," not in first else name
