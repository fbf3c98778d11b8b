"""The students of a course, found by what stands at the head of a sheet of paper."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from app.store import Student


class Roll:
    """A roster in which students are looked up as people write them: by number, whole name, or part of a name."""

    def __init__(self, students: Sequence[Student]) -> None:
        self.students = tuple(students)
        self._numbers, self._names = dict[str, list[Student]](), dict[str, list[Student]]()
        for student in students:
            self._names.setdefault(_plain(student.name), []).append(student)
            if student.roster_key:
                self._numbers.setdefault(_plain(student.roster_key), []).append(student)

    def find(self, written: str) -> tuple[Student, ...]:
        """Whoever may be meant: nobody, one, or several of whom one must be chosen.

        A number goes before a whole name, that before its parts; 'Lee, Kim' is Kim Lee, and so is 'Kim' if no other is.
        """
        plain = _plain(written)
        if found := self._numbers.get(plain) or self._names.get(plain):
            return tuple(found)
        last, comma, first = (part.strip() for part in plain.partition(","))
        if comma and (found := self._names.get(f"{first} {last}")):
            return tuple(found)
        words = set(plain.replace(",", " ").split())
        return tuple(student for student in self.students if words and words <= set(_plain(student.name).split()))

    def one(self, student_id: str) -> Student | None:
        """The student who was chosen from a list; None for an id of another course, or none."""
        return next((student for student in self.students if str(student.id) == student_id), None)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
