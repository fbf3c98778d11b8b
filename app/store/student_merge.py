"""Merges two roster entries of one person, with everything that was done under either."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import sqlalchemy as sa

from .jobs import jobs
from .queries import QueryBase
from .roster import Student
from .tables import (
    activities,
    attempts,
    attendance,
    drafts,
    enrolments,
    extra_time,
    grade_changes,
    lti_links,
    lti_people,
    students,
    ticket_answers,
)

_Combine = Callable[[Any, Any], Mapping[str, Any]]  # both students' rows to the changes in the first one's
_FREELY_MOVED = (
    enrolments,
    grade_changes,
    jobs,
    lti_people,
    ticket_answers,
)  # any number of their rows may belong to one student
_MAX_SHEET_KEY = 200  # characters


@dataclass(frozen=True)
class MergePreview:
    """What a merge would move to the student who stays, and what happens to things that both have.

    `activities` that both opened become one attendance.
    """

    attempts: int
    drafts: int
    activities: int
    exit_tickets: int
    browsers: int
    kept_aside: int
    replaced_grades: tuple[int, ...]
    ends_resume_code: bool


class StudentMerge(QueryBase):
    def preview(self, stays: Student, goes: Student) -> MergePreview:
        """What `merge` would do with these two students now, without checking that they can be merged."""
        with self._read_connection() as connection:
            typed = _both(connection, drafts, stays, goes)
            grades = _overrides(connection, stays, goes)
            attended = _both(connection, attendance, stays, goes)
            codes = connection.scalars(sa.select(students.c.resume_hash).where(students.c.id.in_((stays.id, goes.id))))
            return MergePreview(
                attempts=_count(connection, attempts, goes),
                drafts=sum(theirs is not None for _, theirs in typed.values()),
                activities=sum(theirs is not None for _, theirs in attended.values()),
                exit_tickets=sum(bool(theirs and theirs.ticket_in) for _, theirs in attended.values()),
                browsers=_count(connection, enrolments, goes),
                kept_aside=sum(bool(ours and theirs and _lost_texts(ours, theirs)) for ours, theirs in typed.values()),
                replaced_grades=tuple(sorted(activity for activity, changes in grades.items() if len(changes) > 1)),
                ends_resume_code=all(codes),
            )

    def merge(self, stays: Student, goes: Student) -> bool:
        """Give `stays` everything that belongs to `goes`, and delete `goes`, in one transaction."""
        if stays.id == goes.id or stays.course_id != goes.course_id:
            return False
        with self.transaction() as connection:
            pair = sa.select(students).where(students.c.id.in_((stays.id, goes.id))).order_by(students.c.id)
            rows = {row.id: row for row in connection.execute(pair.with_for_update())}
            if len(rows) < 2:
                return False
            _move_attempts(connection, stays, goes)
            _keep_older_texts(connection, stays, goes)
            grades = _overrides(connection, stays, goes)
            for table, combine in _COMBINED.items():
                _move(connection, table, stays, goes, combine)
            for table in _FREELY_MOVED:
                connection.execute(sa.update(table).where(table.c.student_id == goes.id).values(student_id=stays.id))
            after = _overrides(connection, stays)
            for activity_id, changes in grades.items():
                # A change that was undone later for the other student must not end the one that counted.
                if changes[-1].id not in (change.id for change in after.get(activity_id, ())):
                    again = {n: v for n, v in changes[-1]._mapping.items() if n != "id"}
                    connection.execute(sa.insert(grade_changes).values({**again, "student_id": stays.id}))
            connection.execute(sa.delete(students).where(students.c.id == goes.id))
            of_course = sa.select(activities.c.id).where(activities.c.course_id == stays.course_id)
            linked = sa.update(lti_links).where(lti_links.c.activity_id.in_(of_course))
            connection.execute(linked.values(marker=""))  # so that platforms get the grades that now count
            values = _merged_student(rows[stays.id], rows[goes.id])
            connection.execute(sa.update(students).where(students.c.id == stays.id).values(values))
        return True


def _merged_student(stays: Any, goes: Any) -> dict[str, Any]:
    joined = [row.joined_at for row in (stays, goes) if row.joined_at]
    numbered = stays if stays.roster_key else goes  # a number goes with its column's title
    filled = {name: getattr(stays, name) or getattr(goes, name) for name in ("resume_hash", "practice_record")}
    filled |= {name: getattr(numbered, name) for name in ("roster_key", "number_title", "canvas_id")}
    return {**filled, "joined_at": min(joined, default=None)}


def _count(connection: sa.Connection, table: sa.Table, student: Student) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(table.c.student_id == student.id)
    return connection.scalar(query) or 0


def _overrides(connection: sa.Connection, *whose: Student) -> dict[int, list[Any]]:
    ids = [student.id for student in whose]
    newest = sa.select(sa.func.max(grade_changes.c.id)).where(grade_changes.c.student_id.in_(ids))
    newest = newest.group_by(grade_changes.c.activity_id, grade_changes.c.student_id)
    query = sa.select(grade_changes).where(grade_changes.c.id.in_(newest), grade_changes.c.kind != "undone")
    by_activity = dict[int, list[Any]]()
    for row in connection.execute(query.order_by(grade_changes.c.id)):
        by_activity.setdefault(row.activity_id, []).append(row)
    return by_activity


def _both(
    connection: sa.Connection, table: sa.Table, stays: Student, goes: Student, *, locked: bool = False
) -> dict[tuple[Any, ...], tuple[Any, Any]]:
    """If `locked`, nobody changes the rows until the transaction ends."""
    key = _KEYS[table]
    pairs = dict[tuple[Any, ...], list[Any]]()
    query = sa.select(table).where(table.c.student_id.in_((stays.id, goes.id)))
    for row in connection.execute(query.with_for_update() if locked else query):
        pair = pairs.setdefault(tuple(getattr(row, name) for name in key), [None, None])
        pair[row.student_id == goes.id] = row
    return {values: (ours, theirs) for values, (ours, theirs) in pairs.items()}


def _move(connection: sa.Connection, table: sa.Table, stays: Student, goes: Student, combine: _Combine) -> None:
    key = [table.c[name] for name in _KEYS[table]]
    for values, (ours, theirs) in _both(connection, table, stays, goes, locked=True).items():
        same = [column == value for column, value in zip(key, values, strict=True)]
        if ours and theirs:
            changed = combine(ours, theirs)
            if changed:
                connection.execute(sa.update(table).where(*same, table.c.student_id == stays.id).values(**changed))
            connection.execute(sa.delete(table).where(*same, table.c.student_id == goes.id))
    connection.execute(sa.update(table).where(table.c.student_id == goes.id).values(student_id=stays.id))


def _move_attempts(connection: sa.Connection, stays: Student, goes: Student) -> None:
    used = sa.select(attempts.c.client_id).where(attempts.c.student_id == stays.id)
    theirs = attempts.c.student_id == goes.id
    repeated = sa.select(attempts.c.id).where(theirs, attempts.c.client_id.in_(used))
    for attempt_id in connection.scalars(repeated).all():
        this = sa.update(attempts).where(attempts.c.id == attempt_id)
        connection.execute(this.values(client_id=f"merged.{secrets.token_hex(16)}"))
    connection.execute(sa.update(attempts).where(theirs).values(student_id=stays.id))


def _keep_older_texts(connection: sa.Connection, stays: Student, goes: Student) -> None:
    typed = _both(connection, drafts, stays, goes, locked=True)  # a save acknowledged now must not be lost
    taken = set(typed)
    for (activity_id, sheet_key), (ours, theirs) in typed.items():
        if ours and theirs and (lost := _lost_texts(ours, theirs)):
            older = min(ours, theirs, key=lambda row: row.saved_at)
            aside = next(key for key in _aside_keys(goes, sheet_key) if (activity_id, key) not in taken)
            taken.add((activity_id, aside))
            row = {name: value for name, value in older._mapping.items() if name != "id"}
            row |= {"student_id": stays.id, "sheet_key": aside, "answers": lost, "tab_versions": {}}
            connection.execute(sa.insert(drafts).values(row))


def _aside_keys(goes: Student, sheet_key: str) -> Iterator[str]:
    for suffix in chain([""], (f".{number}" for number in count(2))):
        yield f"~{goes.id}{suffix} {sheet_key}"[:_MAX_SHEET_KEY]


def _lost_texts(ours: Any, theirs: Any) -> dict[str, str]:
    older, combined = min(ours, theirs, key=lambda row: row.saved_at), _combined_draft(ours, theirs)
    same_sizes = combined["variant"] == older.variant
    return {
        blank: text
        for blank, text in older.answers.items()
        if text.strip() and not (same_sizes and combined["answers"].get(blank) == text)
    }


def _combined_draft(ours: Any, theirs: Any) -> dict[str, Any]:
    older, newer = sorted((ours, theirs), key=lambda row: row.saved_at)
    answers, versions = dict(newer.answers), dict(older.tab_versions)
    if older.variant == newer.variant:
        answers |= {blank: text for blank, text in older.answers.items() if not answers.get(blank, "").strip()}
    for tab, number in newer.tab_versions.items():
        versions[tab] = max(number, versions.pop(tab, 0))  # after the older draft's tabs, which saved earlier
    version = max(older.version, newer.version) + 1
    same = {name: getattr(newer, name) for name in ("variant", "model_key", "saved_at")}
    return {**same, "answers": answers, "tab_versions": versions, "version": version}


# The columns that, with student_id, are the key of a table with one row each.
_KEYS: Mapping[sa.Table, Sequence[str]] = {
    attendance: ("activity_id",),
    drafts: ("activity_id", "sheet_key"),
    extra_time: ("activity_id",),
}
# How two such rows with one key are combined: the earlier arrival counts, a ticket of either, and the longer time.
_COMBINED: Mapping[sa.Table, _Combine] = {
    attendance: lambda ours, theirs: {
        "arrived_at": min(ours.arrived_at, theirs.arrived_at),
        "ticket_in": ours.ticket_in or theirs.ticket_in,
    },
    drafts: _combined_draft,
    extra_time: lambda ours, theirs: {"minutes": max(ours.minutes, theirs.minutes)},
}
