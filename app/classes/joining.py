"""Finds the roster name that somebody joins under, from the name they type, without listing the roster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from app.classes.roster_lookup import bare_name
from app.names import name_key
from app.store import Course, Roster, Student

MIN_LETTERS, MAX_SUGGESTIONS = 4, 5
MIN_LETTERS_SENT = 3  # in a one-word name that somebody joins under: Kim is a name
NEAR = 0.85  # share of two names' letters, in order, that are the same


@dataclass(frozen=True)
class NameChoice:
    """What a typed name means: a student to join as, or a question or message; empty for an unknown name."""

    student: Student | None = None
    is_taken: bool = False  # somebody has joined under the name
    asks_number: bool = False  # several students have it, and the typed number isn't any of theirs
    suggestions: tuple[str, ...] = ()
    is_near: bool = False  # to more names than may be suggested, or to one that somebody has joined under


def suggested_names(roster: Roster, course: Course, typed: str) -> tuple[str, ...]:
    """The names of students who haven't joined and whose words begin with all typed words, sorted.

    Example: on a roster with Kim Lee and Kim Fox, "kim l" and "lee k" suggest Kim Lee, and "kim" nobody.
    """
    words = name_key(typed).replace(",", " ").split()
    if sum(map(len, words)) < MIN_LETTERS:
        return ()
    names = roster.unclaimed_names(course, words, MAX_SUGGESTIONS + 1)
    return names if len(names) <= MAX_SUGGESTIONS else ()


def choose_name(roster: Roster, course: Course, name: str, number: str = "") -> NameChoice:
    """Decide which student of the course somebody is who types this name, and perhaps a roster number."""
    namesakes = roster.namesakes(course, name)
    if not namesakes:
        near = _near(roster.students(course), name)
        names = tuple({name_key(each.name): each.name for each in near if not each.joined_at}.values())
        return NameChoice(suggestions=names if len(names) <= MAX_SUGGESTIONS else (), is_near=bool(near))
    if len(namesakes) > 1 and any(student.roster_key for student in namesakes):
        namesakes = tuple(each for each in namesakes if name_key(each.roster_key or "") == name_key(number))
        if not namesakes:
            return NameChoice(asks_number=True)
    free = next((student for student in namesakes if not student.joined_at), None)
    return NameChoice(student=free, is_taken=free is None)


def _near(students: Sequence[Student], typed: str) -> list[Student]:
    text, number = _bare(typed.replace(",", " "))
    words = text.split()
    if max(map(len, words), default=0) < MIN_LETTERS_SENT:
        return []
    matcher = SequenceMatcher(b=text, autojunk=False)

    def is_near(student: Student) -> bool:
        name, its_number = _bare(student.name)
        if number and number != its_number:
            return False
        if all(name.startswith(word) or f" {word}" in name for word in words):
            return True
        if 2 * min(len(name), len(text)) < NEAR * (len(name) + len(text)):  # quicker than the matcher
            return False
        matcher.set_seq1(name)
        return matcher.quick_ratio() >= NEAR and matcher.ratio() >= NEAR

    return [student for student in students if is_near(student)]


@lru_cache(maxsize=10_000)
def _bare(name: str) -> tuple[str, str]:
    return bare_name(name), "".join(filter(str.isdigit, name))
