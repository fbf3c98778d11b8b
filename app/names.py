r"""One rule for people's names: how a line of text is cleaned before it is kept, and when two names are equal.

>>> clean_line("  Jose\u0301\tMüller\x07 ")
'José Müller'
>>> name_key("O’BRIEN,  Zoë") == name_key("o'brien, Zoe\u0308")
True
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

MAX_MARKS = 30  # combining marks in a row
LOOKED_AT = 4  # times a line's limit, since some typed characters are left out
JOINERS = "\u200c\u200d"  # they shape the letters of some scripts, as in علی‌رضا
# Printable but invisible: what Unicode calls default ignorable, and two blank symbols.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef\u2800\U0001d159]"
)
_SAME_MARKS = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "‐": "-", **dict.fromkeys(JOINERS)})


class RosterEntry(NamedTuple):
    """A student as a class list gives them.

    Other gradebooks find the student again by `number_title`, the number column's title, and `canvas_id`, Canvas's own
    ID.
    """

    name: str
    number: str | None = None
    number_title: str | None = None
    canvas_id: str | None = None
    doubtful: bool = False


def normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """A text in one of Unicode's normal forms, with at most MAX_MARKS combining marks in a row."""
    if len(text) > MAX_MARKS and not text.isascii():
        text = "".join(_limit_marks(text))
    return unicodedata.normalize(form, text)


def _limit_marks(text: str) -> Iterator[str]:
    marks = 0
    for char in text:
        marks = marks + 1 if _is_mark(char) else 0
        if marks <= MAX_MARKS:
            yield char


@lru_cache(4096)
def _is_mark(char: str) -> bool:
    return unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0


def without_unseen(text: str) -> str:
    """A text without invisible characters, such as a zero-width space; white space stays."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in _UNSEEN.sub("", text) if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))


def clean_line(text: str, longest: int | None = None) -> str:
    """A text as it is kept: on one line, composed (NFC), and without invisible characters."""
    if longest is not None:
        text = text[: LOOKED_AT * longest]
    if not text.isascii():
        text = _UNSEEN.sub("", text)
    words = text.split()
    if not text.isprintable():
        words = ["".join(c for c in word if c.isprintable() or c in JOINERS).strip(JOINERS) for word in words]
    line = normal_form("NFC", " ".join(filter(None, words)))
    return line[:longest].strip(f" {JOINERS}")


@lru_cache(20_000)  # a joining student is compared with everybody on the roster
def name_key(name: str) -> str:
    """The key for comparing names: names with the same key are equal, however they were typed."""
    folded = normal_form("NFKC", clean_line(name)).casefold()
    return " ".join(normal_form("NFKC", folded).translate(_SAME_MARKS).split())


def distinct_names(people: Sequence[tuple[str, str | None]]) -> list[str]:
    """The names of people given by name and number, in order: with the number if several have the same name.

    Example:
        distinct_names([("Alex Smith", "1020"), ("Alex Smith", "1044"), ("Kim Lee", "17")])
        # ["Alex Smith (1020)", "Alex Smith (1044)", "Kim Lee"]
    """
    count = Counter(name_key(name) for name, _ in people)
    return [f"{name} ({number})" if number and count[name_key(name)] > 1 else name for name, number in people]
