"""One rule for the names of people: how a line of text is cleaned before it is kept, and when two names are the same.

>>> clean_line("  Jose\\u0301\\tMüller\\x07 ")
'José Müller'
>>> name_key("O’BRIEN,  Zoë") == name_key("o'brien, Zoe\\u0308")
True
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

JOINERS = "\u200c\u200d"  # they shape the letters of some scripts, as in علی‌رضا
# Printable, and yet nothing can be seen of them: what Unicode calls default ignorable, and two symbols that are blank.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef\u2800\U0001d159]"
)
_SAME_MARKS = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "‐": "-", **dict.fromkeys(JOINERS)})


def clean_line(text: str, longest: int | None = None) -> str:
    """Return a text as it is kept: on one line, composed (NFC), and with nothing in it that cannot be seen.

    Each run of white space becomes one space. Characters that cannot be printed or seen are dropped, but for the
    JOINERS inside a word. What is longer than `longest` characters is cut.
    """
    if not text.isascii():
        text = _UNSEEN.sub("", text)
    words = text.split()
    if not text.isprintable():
        words = ["".join(filter(_is_kept, word)).strip(JOINERS) for word in words]
    line = unicodedata.normalize("NFC", " ".join(filter(None, words)))
    return line[:longest].strip(f" {JOINERS}")


@lru_cache(20_000)  # who joins is compared with everybody on the roster
def name_key(name: str) -> str:
    """Return what names are compared by: two with the same key are the same name, however they were typed.

    Upper and lower case, composed and decomposed accents, full-width letters, straight and curly apostrophes, joiners
    and runs of spaces make no difference. Accents do: Zoe is not Zoë.
    """
    folded = unicodedata.normalize("NFKC", clean_line(name)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).translate(_SAME_MARKS).split())


def told_apart(people: Sequence[tuple[str, str | None]]) -> list[str]:
    """Return the names of people given by name and number: with the number where several have the same name.

    Example:
        told_apart([("Alex Smith", "1020"), ("Alex Smith", "1044"), ("Kim Lee", "17")])
        # ["Alex Smith (1020)", "Alex Smith (1044)", "Kim Lee"]
    """
    count = Counter(name_key(name) for name, _ in people)
    return [f"{name} ({number})" if number and count[name_key(name)] > 1 else name for name, number in people]


def _is_kept(char: str) -> bool:
    """Tell whether a character can stand in a cleaned line; spaces have been dealt with before."""
    return char.isprintable() or char in JOINERS
