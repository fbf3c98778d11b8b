"""Under which name on the roster somebody joins, by the name they type, without listing the roster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.names import name_key
from app.store import Student

MIN_LETTERS, MAX_SUGGESTIONS = 4, 5
MIN_LETTERS_SENT = 3  # of one word, where somebody joins under it: Kim is a name


@dataclass(frozen=True)
class NameChoice:
    """What a typed name means: a student who may join under it, or what else has to be asked or said.

    All of it is empty for a name that nobody on the roster has.
    """

    student: Student | None = None
    is_taken: bool = False  # somebody has joined under the name
    asks_number: bool = False  # several students have it, and the number that was typed is none of theirs
    suggestions: tuple[str, ...] = ()


def unclaimed_names(students: Sequence[Student]) -> tuple[str, ...]:
    """The names of students who have not joined, in the order given, each once."""
    return tuple({name_key(student.name): student.name for student in students if not student.joined_at}.values())


def suggested_names(students: Sequence[Student], typed: str) -> tuple[str, ...]:
    """The names of students who have not joined in which a word begins with each word that was typed.

    None before MIN_LETTERS letters are typed, and none where more than MAX_SUGGESTIONS fit. So nobody sees the roster
    by chance; whoever has the join code can still find out names by guessing how they begin.

    Example: on a roster with Kim Lee and Kim Fox, "kim l" and "lee k" suggest Kim Lee, and "kim" nobody.
    """
    words = _words(typed)
    return _names_beginning(students, words) if sum(map(len, words)) >= MIN_LETTERS else ()


def _words(typed: str) -> list[str]:
    """The words of a typed name, as names are compared."""
    return name_key(typed).replace(",", " ").split()


def _names_beginning(students: Sequence[Student], words: Sequence[str]) -> tuple[str, ...]:
    """The names of students who have not joined in which a word begins with each of these; none if they are many."""
    names = [
        name
        for name in unclaimed_names(students)
        if all(any(part.startswith(word) for part in name_key(name).split()) for word in words)
    ]
    return tuple(names) if len(names) <= MAX_SUGGESTIONS else ()


def choose_name(students: Sequence[Student], name: str, number: str = "") -> NameChoice:
    """What it means that somebody types this name, and perhaps their number on the roster, to join.

    The number is asked for where several students of the course have the name, joined or not, and some have a number.
    """
    namesakes = [student for student in students if name_key(student.name) == name_key(name)]
    if not namesakes:
        words = _words(name)
        is_long = max(map(len, words), default=0) >= MIN_LETTERS_SENT
        return NameChoice(suggestions=_names_beginning(students, words) if is_long else ())
    if len(namesakes) > 1 and any(student.roster_key for student in namesakes):
        namesakes = [student for student in namesakes if name_key(student.roster_key or "") == name_key(number)]
        if not namesakes:
            return NameChoice(asks_number=True)
    free = next((student for student in namesakes if not student.joined_at), None)
    return NameChoice(student=free, is_taken=free is None)
