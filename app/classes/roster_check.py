"""What a class list would add to a roster, row by row, before anybody is added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.names import RosterEntry, name_key
from app.store import AuditAction, Store, Student, Teacher

from .roster_lookup import bare_name

Reason = Literal["", "titles", "doubtful", "no-name", "number-taken", "namesake"]
_NOT_IN_NAMES = frozenset(":;=@#_|<>{}[]")


@dataclass(frozen=True)
class CheckedEntry:
    """A row of a class list: new to the roster, known there, or odd, so that a person must check it."""

    entry: RosterEntry
    kind: Literal["new", "known", "odd"]
    reason: Reason = ""
    other: Student | None = None


def check_entries(
    entries: Iterable[RosterEntry | tuple[str, str | None]], students: Sequence[Student]
) -> tuple[CheckedEntry, ...]:
    """What adding each row would do, in order; earlier rows count as on the roster."""
    by_number = {student.roster_key: student for student in students if student.roster_key}
    names = {number: student.name for number, student in by_number.items()}  # and those of earlier rows
    unnumbered = {name_key(student.name): student for student in students if not student.roster_key}
    taken = set(unnumbered)
    by_name = dict[str, list[Student]]()
    for student in students:
        by_name.setdefault(name_key(student.name), []).append(student)
    checked = list[CheckedEntry]()
    for entry in (RosterEntry(*each) for each in entries):
        key, number = name_key(entry.name), entry.number
        if number in names if number else key in taken:
            if number and not _is_same_name(names[number], entry.name):
                checked.append(CheckedEntry(entry, "odd", "number-taken", by_number.get(number)))
            else:
                checked.append(CheckedEntry(entry, "known"))
            continue
        if number:
            names[number] = entry.name
        else:
            taken.add(key)
        reason, other = _reason(entry), None
        if not reason and key in by_name:
            namesakes = by_name[key]
            reason, other = "namesake", unnumbered.get(key) or (namesakes[0] if len(namesakes) == 1 else None)
        checked.append(CheckedEntry(entry, "odd" if reason else "new", reason, other if number else None))
    return tuple(checked)


def rename_and_record(store: Store, teacher: Teacher, student: Student, entry: RosterEntry) -> bool:
    """Inside a transaction, rename a student as `store.roster.rename` does, with an entry in the audit log."""
    if not store.roster.rename(student, entry):
        return False
    if entry.name != student.name:
        store.audit_log.record(teacher, AuditAction.STUDENT_RENAMED, student)
    if entry.number != student.roster_key:
        store.audit_log.record(teacher, AuditAction.STUDENT_NUMBER_CHANGED, student)
    return True


def _reason(entry: RosterEntry) -> Reason:
    if entry.doubtful:
        return "doubtful"
    is_name = any(map(str.isalpha, entry.name)) and not any(c.isdigit() or c in _NOT_IN_NAMES for c in entry.name)
    return "" if is_name else "no-name"


def _is_same_name(name: str, other: str) -> bool:
    return sorted(re.findall(r"\w+", bare_name(name))) == sorted(re.findall(r"\w+", bare_name(other)))
