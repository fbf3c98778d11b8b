"""Finds the students of a course by what is written at the top of a paper sheet."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from app.names import distinct_names, name_key, normal_form
from app.store import Student


class RosterLookup:
    """A roster in which students are looked up as people write them: by number, full name, or part of a name."""

    def __init__(self, students: Sequence[Student]) -> None:
        self.students = tuple(students)
        self._by_number, self._by_name = dict[str, list[Student]](), dict[str, list[Student]]()
        self._by_word = dict[str, set[Student]]()
        self._by_id = {str(student.id): student for student in students}
        numbered = names_with_numbers(self.students)
        for student in students:
            if numbered[student.id] != student.name:  # as printed on a handout
                self._by_name.setdefault(name_key(numbered[student.id]), []).append(student)
            self._by_name.setdefault(name_key(student.name), []).append(student)
            for word in name_key(student.name).split():
                self._by_word.setdefault(word, set()).add(student)
            if student.roster_key:
                self._by_number.setdefault(name_key(student.roster_key), []).append(student)

    def find(self, written: str) -> tuple[Student, ...]:
        """Every student who may be meant, in the order of the roster.

        Example: on a roster with Kim Lee and Kim Fox, '1017' and 'lee, kim' find Kim Lee, and 'Kim' finds both.
        """
        plain = name_key(written)
        if students := self._by_number.get(plain) or self._by_name.get(plain):
            return tuple(students)
        last, comma, first = (part.strip() for part in plain.partition(","))
        if comma and (students := self._by_name.get(f"{first} {last}")):
            return tuple(students)
        words = plain.replace(",", " ").split()
        named = set.intersection(*(self._by_word.get(word, set()) for word in words)) if words else set[Student]()
        return tuple(student for student in self.students if student in named) if named else ()

    def by_id(self, student_id: str) -> Student | None:
        """The student with that id, as a form sends it; None if it isn't in the course."""
        return self._by_id.get(student_id)


def names_with_numbers(students: Sequence[Student]) -> dict[int, str]:
    """The name of each student by id, for the staff: with the number if several have the same name."""
    names = distinct_names([(student.name, student.roster_key) for student in students])
    return {student.id: name for student, name in zip(students, names, strict=True)}


def named_apart(students: Sequence[Student]) -> tuple[Student, ...]:
    """The students with the names of `names_with_numbers`."""
    names = names_with_numbers(students)
    return tuple(replace(student, name=names[student.id]) for student in students)


def sorted_by_likeness(student: Student, everybody: Sequence[Student]) -> list[Student]:
    """All other students, those whose names share the most words with this one's first."""
    words = set(bare_name(student.name).split())
    others = [other for other in everybody if other.id != student.id]
    return sorted(others, key=lambda other: -len(words.intersection(bare_name(other.name).split())))


def bare_name(name: str) -> str:
    """A name as `name_key` compares it, without accents: "Zoë Ñandú" is "zoe nandu"."""
    letters = normal_form("NFD", name_key(name))
    return "".join(char for char in letters if not unicodedata.combining(char))
