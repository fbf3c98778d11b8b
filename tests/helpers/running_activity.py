"""An open activity of a course in a store, whose students attempt its sheets without an app."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, get_args

import sqlalchemy as sa

from app.classes.student_sheet import freeze, stored_marks, student_sheet
from app.grading.grade import grade
from app.sheets.library import Library
from app.sheets.worksheet import Marking
from app.store import Activity, Attempt, Plan, Policies, Store, Student
from app.store.jobs import JobKind
from tests.helpers.stored_class import enrol_student, record, teacher


class RunningActivity:
    """One open activity; `activity` is always its current state in the database."""

    def __init__(
        self,
        library: Library,
        store: Store,
        sheets: tuple[str, ...] = ("llama-7b",),
        policies: Policies | None = None,
    ) -> None:
        self.library, self.store = library, store
        self.teacher = teacher(store)
        self.course = store.courses.add("Transformers", "Europe/Berlin", self.teacher)
        plan = Plan("Week 3", None, policies or Policies())
        self._id = store.activities.add(self.course, plan, freeze(library, sheets, None)).id
        store.activities.set_state(self.activity, "open")

    @property
    def activity(self) -> Activity:
        """The activity as it is in the database."""
        activity = self.store.activities.find(self._id)
        assert activity
        return activity

    def student(self, name: str = "Kim") -> Student:
        """Enrol a student."""
        return enrol_student(self.store, self.course, name)[0]

    def attempt(self, student: Student, answers: Mapping[str, str], sheet_number: int = 1) -> Attempt:
        """Hand in a sheet with these answers."""
        sheet = student_sheet(self.library, self.store, self.activity, student, sheet_number)
        marks = stored_marks(sheet.variant, grade(sheet.variant, answers))
        return record(self.store, sheet.key, answers, marks, sizes=sheet.sizes)

    def change_marking(self, marking: Marking) -> None:
        plan = self.activity.plan
        self.store.activities.change(self.activity, replace(plan, policies=replace(plan.policies, marking=marking)))


@contextmanager
def counted_statements(store: Store) -> Iterator[list[str]]:
    """The SQL statements sent to a store's database meanwhile, without background threads.

    It first waits until no job is left: a save's thread may send a job's writes in one transaction.
    """
    statements = list[str]()
    late = time.monotonic() + 60
    while any(store.jobs.count(kind) for kind in get_args(JobKind)):
        assert time.monotonic() < late, "a job neither ends nor fails"
        time.sleep(0.05)

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not any(
            name in threading.current_thread().name
            for name in ("jobs", "housekeeping", "auto-submit", "grades", "mail")
        ):
            statements.append(statement)

    # Transactions are heard as well, because their engine has the same connections.
    sa.event.listen(store.single_engine, "before_cursor_execute", count)
    try:
        yield statements
    finally:
        sa.event.remove(store.single_engine, "before_cursor_execute", count)
