"""What a class list would add to a roster, row by row, before anybody is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.names import name_key
from app.store import Student

Reason = Literal["", "no-name", "namesake"]


@dataclass(frozen=True)
class CheckedEntry:
    """A row of a class list: new to the roster, known there, or odd, which is new too but looks like a mistake.

    `reason` says why it is odd: "no-name" for a name with a digit or without a letter, "namesake" where a student of
    the roster has the name and another number, or none.
    """

    name: str
    number: str | None
    kind: Literal["new", "known", "odd"]
    reason: Reason = ""

    @property
    def entry(self) -> tuple[str, str | None]:
        return self.name, self.number


def check_entries(entries: Sequence[tuple[str, str | None]], students: Sequence[Student]) -> tuple[CheckedEntry, ...]:
    """Say of each name and number, in order, what adding it would do: "known" (nothing), "new" or "odd".

    Known is a number on the roster, whatever the name; a name without a number that is there without one; and the same
    number, or name without one, further up in the list: see Roster.add_students. Any other row is odd if its name has a
    digit or no letter ("no-name"), else if a student on the roster, with or without a number, has that name
    ("namesake"), else new. Names are compared by `name_key`, numbers exactly.
    """
    numbers = {student.roster_key for student in students if student.roster_key}
    unnumbered = {name_key(student.name) for student in students if not student.roster_key}
    on_roster = {name_key(student.name) for student in students}
    checked = list[CheckedEntry]()
    for name, number in entries:
        key = name_key(name)
        if number in numbers if number else key in unnumbered:
            checked.append(CheckedEntry(name, number, "known"))
            continue
        numbers.add(number) if number else unnumbered.add(key)
        is_no_name = any(char.isdigit() for char in name) or not any(char.isalpha() for char in name)
        reason: Reason = "no-name" if is_no_name else "namesake" if key in on_roster else ""
        checked.append(CheckedEntry(name, number, "odd" if reason else "new", reason))
    return tuple(checked)
