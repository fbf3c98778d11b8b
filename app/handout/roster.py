"""A class list as instructors have it: a CSV file or a column of names, in any script.

>>> read_roster("name,id\\nAda Lovelace,1\\nعمر الخيام,2")
('Ada Lovelace', 'عمر الخيام')
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Sequence

from .options import HandoutError, one_line

MOST_NAMES = 5_000
LARGEST_ROSTER = 1_000_000  # bytes
LONGEST_NAME = 80
# What learning platforms and people call these columns, in lower case.
WHOLE = ("name", "full name", "student", "student name", "display name", "names", "sortable name")
FIRST = ("first name", "firstname", "given name", "forename")
LAST = ("last name", "lastname", "surname", "family name")


def read_roster(roster: bytes | str) -> tuple[str, ...]:
    """The names of a class list, in its order, as plain text; raises HandoutError that says what to change.

    With a header the columns of names are found by their titles; without one the first column is taken.
    """
    if len(roster) > LARGEST_ROSTER:
        raise HandoutError(f"A class list may be at most {LARGEST_ROSTER:,} bytes long: make the handout in parts.")
    lines = _lines(roster if isinstance(roster, str) else _decoded(roster))
    if not lines:
        raise HandoutError("The class list is empty: one name a line is enough.")
    titles = [cell.strip().strip("\ufeff").lower() for cell in lines[0]]
    picked = _columns(titles)
    names = [_name(line, picked or (0,)) for line in (lines[1:] if picked else lines)]
    found = tuple(name for name in names if name)
    if not found:
        raise HandoutError("No names stand in the class list: one name a line is enough.")
    if len(found) > MOST_NAMES:
        raise HandoutError(f"The class list has {len(found):,} names; at most {MOST_NAMES:,} fit into one handout.")
    return found


def _decoded(roster: bytes) -> str:
    for encoding in ("utf-16",) if roster[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "cp1252"):
        try:
            return roster.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise HandoutError("The class list is no text that can be read: save it as CSV in UTF-8.")


def _lines(text: str) -> list[list[str]]:
    text = text.replace("\0", " ").replace("\r\n", "\n").replace("\r", "\n")
    first = next((line for line in text.split("\n") if line.strip()), "")
    separator = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise HandoutError(f"The class list cannot be read as CSV: {error}.") from None
    return [line for line in lines if any(cell.strip() for cell in line)]


def _columns(titles: Sequence[str]) -> tuple[int, ...]:
    """The columns that hold names, by their titles: one whole name, or first and last; none without a header."""
    for title in WHOLE:
        if title in titles:
            return (titles.index(title),)
    parts = [next((titles.index(title) for title in known if title in titles), None) for known in (FIRST, LAST)]
    return tuple(at for at in parts if at is not None)


def _name(line: Sequence[str], columns: Sequence[int]) -> str:
    whole = " ".join(line[at] for at in columns if at < len(line))
    return one_line(unicodedata.normalize("NFC", whole), LONGEST_NAME)


# The language a script is set in, so that shared characters get the right forms: by the names Unicode gives letters.
_LANGUAGES = (
    ("HIRAGANA", "ja", "jp"),
    ("KATAKANA", "ja", "jp"),
    ("HANGUL", "ko", "kr"),
    ("CJK", "zh", "cn"),
    ("ARABIC", "ar", None),
    ("HEBREW", "he", None),
    ("GREEK", "el", None),
    ("CYRILLIC", "ru", None),
)


def language_of(name: str) -> tuple[str, str | None]:
    """The language and region a name is set in, English where its letters tell of no other."""
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
    for script, language, region in _LANGUAGES:
        if script in scripts:
            return language, region
    return "en", None
