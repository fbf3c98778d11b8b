"""Work on sheets: drafts and attempts, in an activity or in practice, and attendance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from app.activities.activity import Counting
from app.activities.work import (
    ActivityProgress,
    Answers,
    Attempt,
    Attendance,
    ClassSheetKey,
    Draft,
    NewAttempt,
    PracticeSheetKey,
    SheetKey,
    SheetProgress,
    StudentDraft,
    UnfinishedWork,
    WorkChangedError,
    WorkDone,
)

from .limits import tolerated_failure
from .queries import QueryBase, batches, columns, from_row, hash_secret
from .tables import attempts, attendance, drafts, visitors

MAX_VALUES = 500  # ids per statement

StudentSheetKey = tuple[int, str]  # a student's id and a sheet key

# The columns that identify a sheet's work.
_OWNER: Mapping[type[SheetKey], tuple[str, ...]] = {
    ClassSheetKey: ("student_id", "activity_id", "sheet_key"),
    PracticeSheetKey: ("visitor_id", "sheet_key"),
}


def _of_student(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.activity_id == sa.bindparam("activity_id"), table.c.student_id == sa.bindparam("student_id")


# Built once: a class runs these with every save, and building a statement takes as long as executing it.
ARRIVAL = sa.select(attendance.c.ticket_in).where(*_of_student(attendance))
_PROGRESS_ROWS = sa.union_all(
    sa.select(drafts.c.sheet_key, sa.literal(0).label("attempts"), sa.literal(0).label("handed_in")).where(
        *_of_student(drafts)
    ),
    sa.select(attempts.c.sheet_key, sa.literal(1), sa.cast(attempts.c.handed_in, sa.Integer)).where(
        *_of_student(attempts)
    ),
    # Not for one sheet: that the student has arrived, and whether the exit ticket is in.
    sa.select(sa.null(), sa.literal(0), sa.cast(attendance.c.ticket_in, sa.Integer)).where(*_of_student(attendance)),
).subquery()
_PROGRESS = sa.select(
    _PROGRESS_ROWS.c.sheet_key,
    sa.func.sum(_PROGRESS_ROWS.c.attempts).label("attempts"),
    sa.func.max(_PROGRESS_ROWS.c.handed_in).label("handed_in"),
).group_by(_PROGRESS_ROWS.c.sheet_key)


def select_work(
    source: sa.FromClause, columns_before: Sequence[sa.ColumnElement[Any]], owner: Mapping[str, Any]
) -> sa.Select[Any]:
    """A query on `source` for `columns_before` and what `work_of` needs: draft, newest attempt, number of attempts."""

    def is_owned(table: sa.FromClause) -> sa.ColumnElement[bool]:
        return sa.and_(*(table.c[name] == value for name, value in owner.items()))

    made, last = attempts.alias("made"), attempts.alias("last")
    newest = sa.select(sa.func.max(made.c.id)).where(is_owned(made)).scalar_subquery()
    count = sa.select(sa.func.count(made.c.id)).where(is_owned(made)).scalar_subquery()
    joined = source.outerjoin(drafts, is_owned(drafts)).outerjoin(last, last.c.id == newest)
    return sa.select(
        *columns_before, *columns(drafts, Draft), *columns(last, Attempt, "last__"), count.label("made")
    ).select_from(joined)


def work_of(row: Any) -> WorkDone:
    """The work on a sheet, from a row of `select_work`."""
    last = None if row.last__id is None else _attempt(row, "last__")
    return WorkDone(None if row.version is None else from_row(Draft, row), row.made, last)


def counted_ids(counting: Counting, *conditions: sa.ColumnElement[bool]) -> sa.Select[tuple[int]]:
    """The ids of the attempts that count, of every student on every sheet key: see app.activities.work.counted_of."""
    key = (attempts.c.activity_id, attempts.c.student_id, attempts.c.sheet_key)
    if counting != "best":  # answered by an index alone
        newest_or_oldest = sa.func.max if counting == "last" else sa.func.min
        return sa.select(newest_or_oldest(attempts.c.id)).where(*conditions).group_by(*key)
    share = sa.func.coalesce(attempts.c.score / sa.func.nullif(attempts.c.out_of, 0), 0)
    best_first = (share.desc(), attempts.c.late, attempts.c.id.desc())
    place = sa.func.row_number().over(partition_by=key, order_by=best_first).label("place")
    ranked = sa.select(attempts.c.id, place).where(*conditions).subquery()
    return sa.select(ranked.c.id).where(ranked.c.place == 1)


_WORK = {
    kind: select_work(sa.select(sa.literal(1)).subquery("one"), (), {name: sa.bindparam(name) for name in names})
    for kind, names in _OWNER.items()
}
_WORK_OF_VISITOR = select_work(
    visitors, (visitors.c.id,), {"visitor_id": visitors.c.id, "sheet_key": sa.bindparam("sheet_key")}
).where(visitors.c.token_hash == sa.bindparam("token_hash"))


_ON_SHEET = (
    attempts.c.student_id == drafts.c.student_id,
    attempts.c.activity_id == drafts.c.activity_id,
    attempts.c.sheet_key == drafts.c.sheet_key,
)
_ON_TIME = (attempts.c.handed_in, ~attempts.c.auto_submitted, ~attempts.c.late)
_LAST_ID = sa.select(sa.func.max(attempts.c.id)).where(*_ON_SHEET).scalar_subquery()
_LAST = attempts.alias()
_DRAFTS_BESIDE_ATTEMPTS = (
    sa.select(
        *columns(drafts, StudentDraft),
        sa.select(sa.func.count()).select_from(attempts).where(*_ON_SHEET).scalar_subquery().label("attempts"),
        sa.exists().where(*_ON_SHEET, *_ON_TIME).label("handed_in_on_time"),
        sa.func.coalesce(_LAST.c.id, 0).label("last_id"),
        _LAST.c.answers.label("last_answers"),
        _LAST.c.created_at.label("last_at"),
    )
    .select_from(drafts.outerjoin(_LAST, _LAST.c.id == _LAST_ID))
    .where(
        drafts.c.activity_id == sa.bindparam("activity_id"),
        drafts.c.student_id.in_(sa.bindparam("student_ids", expanding=True)),
    )
)


@dataclass(frozen=True)
class Recorded:
    """A stored attempt, and its student's progress in the activity, if any."""

    attempt: Attempt
    progress: ActivityProgress
    is_new: bool  # False if a repeated request had stored it before


@dataclass(frozen=True)
class LastAttempt:
    """The id of a student's newest attempt on a sheet, and what was done with any of their attempts on it.

    `handed_in`: the student handed one in.
    """

    id: int
    handed_in: bool
    auto_submitted: bool


@dataclass(frozen=True)
class StoredMarks:
    """What the live view needs of an attempt: the kind of mark by blank, the misconceptions, the answers."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    answers: Mapping[str, str]


class Classwork(QueryBase):
    """Queries on attendance, drafts and attempts."""

    def arrive(self, activity_id: int, student_id: int) -> bool:
        """Store a student's first visit to an activity; return whether their exit ticket is in.

        Outside a transaction, a database that can't store it (a full disk) is tolerated.
        """
        if row := self._fetch_one(ARRIVAL, activity_id=activity_id, student_id=student_id):
            return bool(row.ticket_in)
        row = {"activity_id": activity_id, "student_id": student_id, "arrived_at": self.now(), "ticket_in": False}
        key = [attendance.c.activity_id, attendance.c.student_id]
        with nullcontext() if self._current_connection() else tolerated_failure():
            self._execute(self._insert_into(attendance).values(row).on_conflict_do_nothing(index_elements=key))
        return False

    def attendance(self, activity_id: int) -> tuple[Attendance, ...]:
        """Every student who opened an activity, in the order of arrival."""
        query = sa.select(*columns(attendance, Attendance)).where(attendance.c.activity_id == activity_id)
        return self._values(Attendance, query.order_by(attendance.c.arrived_at))

    def attended(self, student_id: int) -> dict[int, bool]:
        """The activities that a student opened, newest first, by id, and whether their exit ticket is in."""
        query = sa.select(attendance.c.activity_id, attendance.c.ticket_in).where(attendance.c.student_id == student_id)
        rows = self._fetch_all(query.order_by(attendance.c.activity_id.desc()))
        return {row.activity_id: row.ticket_in for row in rows}

    # Drafts

    def save(self, key: SheetKey, draft: Draft) -> None:
        """Replace the previous version of a draft, durably.

        Raises WorkChangedError, storing nothing, if another save came first.
        """
        if not self._execute(self._draft_upserts[type(key)], draft_row(key, draft, self.now())):
            raise WorkChangedError

    @cached_property
    def _draft_upserts(self) -> Mapping[type[SheetKey], sa.Insert]:
        insert = self._insert_into(drafts)
        values = {name: insert.excluded[name] for name in ("answers", "version", "saved_at", "tab_versions")}
        next_version = drafts.c.version == insert.excluded.version - 1
        return {
            kind: insert.on_conflict_do_update(
                index_elements=names, index_where=drafts.c[names[0]].is_not(None), set_=values, where=next_version
            ).execution_options(preserve_rowcount=True)  # which SQLAlchemy forgets for an INSERT
            for kind, names in _OWNER.items()
        }

    def draft(self, key: SheetKey) -> Draft | None:
        return self.work(key).draft

    def work(self, key: SheetKey) -> WorkDone:
        """The work on a sheet, in one query."""
        return work_of(self._fetch_one(_WORK[type(key)], **_owner(key)))

    def of_visitor(self, token: str, sheet_key: str) -> tuple[int, WorkDone] | None:
        """The id of the visitor with this token and their work on a practice sheet, in one query, or None."""
        row = self._fetch_one(_WORK_OF_VISITOR, token_hash=hash_secret(token), sheet_key=sheet_key)
        return (row.id, work_of(row)) if row else None

    def drafts_of_activity(self, activity_id: int) -> tuple[StudentDraft, ...]:
        """Every student's drafts in an activity, by student and sheet, handed in or not."""
        query = sa.select(*columns(drafts, StudentDraft)).where(drafts.c.activity_id == activity_id)
        return self._values(StudentDraft, query.order_by(drafts.c.student_id, drafts.c.sheet_key))

    def draft_versions(self, activity_id: int) -> dict[StudentSheetKey, int]:
        """The version of every student's draft on every sheet of an activity."""
        query = sa.select(drafts.c.student_id, drafts.c.sheet_key, drafts.c.version)
        rows = self._fetch_all(query.where(drafts.c.activity_id == activity_id))
        return {(row.student_id, row.sheet_key): row.version for row in rows}

    def draft_texts(self, activity_id: int, student_ids: Collection[int]) -> dict[StudentSheetKey, Draft]:
        """These students' drafts in an activity, by student id and sheet key."""
        found = dict[StudentSheetKey, Draft]()
        query = sa.select(drafts.c.student_id, drafts.c.sheet_key, *columns(drafts, Draft))
        for some in batches(sorted(student_ids), MAX_VALUES):
            theirs = (drafts.c.activity_id == activity_id, drafts.c.student_id.in_(some))
            rows = self._fetch_all(query.where(*theirs))
            found |= {(row.student_id, row.sheet_key): from_row(Draft, row) for row in rows}
        return found

    # Attempts

    def record(self, key: SheetKey, new: NewAttempt, draft: Draft | None, allowed: int = 0) -> Recorded:
        """Store an attempt and, if given, a draft (as `save` does) in one transaction."""
        at = self.now()

        progress = ActivityProgress()
        with self.transaction() as connection:
            if draft:
                self.save(key, draft)
            elif allowed and self.engine.dialect.name == "postgresql":
                # One student's requests take turns, so that neither miscounts: by the written draft, or by this lock.
                # On SQLite all writers do.
                lock = sa.select(drafts.c.version).where(*_is_owned(drafts, key)).with_for_update()
                connection.execute(lock)
            new_id = connection.scalar(self._attempt_insert_returning_id, attempt_row(key, new, at))
            if isinstance(key, ClassSheetKey):
                progress = self.progress(key.activity_id, key.student_id)
                if new_id and allowed and progress.sheets[key.sheet_key].attempts > allowed:
                    raise WorkChangedError
        if new_id:
            return Recorded(new.stored(key, new_id, at), progress, is_new=True)
        same_request = (attempts.c.student_id == _owner(key)["student_id"], attempts.c.client_id == new.client_id)
        return Recorded(self._select_attempts(*same_request)[0], progress, is_new=False)

    @cached_property
    def _attempt_insert(self) -> sqlite.Insert | postgresql.Insert:
        key, is_class = [attempts.c.student_id, attempts.c.client_id], attempts.c.student_id.is_not(None)
        return self._insert_into(attempts).on_conflict_do_nothing(index_elements=key, index_where=is_class)

    @cached_property
    def _attempt_insert_returning_id(self) -> ReturningInsert[Any]:
        return self._attempt_insert.returning(attempts.c.id)

    def hand_in(self, attempt: Attempt) -> Attempt:
        """Store that an attempt is handed in, and return it."""
        if not attempt.handed_in:
            self._execute(sa.update(attempts).where(attempts.c.id == attempt.id).values(handed_in=True))
        return replace(attempt, handed_in=True)

    def add_answers(self, attempt: Attempt, written: Answers) -> Attempt:
        """Add answers to open questions to a stored attempt, replacing earlier ones; return the attempt."""
        if attempt.handed_in or written.items() <= attempt.answers.items():
            return attempt
        answers = {**attempt.answers, **written}
        this = (attempts.c.id == attempt.id, ~attempts.c.handed_in)
        is_stored = self._execute(sa.update(attempts).where(*this).values(answers=answers))
        return replace(attempt, answers=answers) if is_stored else attempt

    def latest_attempts(self, key: SheetKey, limit: int) -> tuple[Attempt, ...]:
        """The newest attempts on a sheet in any revision, newest first, at most `limit`."""
        query = sa.select(*columns(attempts, Attempt)).where(*_is_owned(attempts, key))
        return tuple(map(_attempt, self._fetch_all(query.order_by(attempts.c.id.desc()).limit(limit))))

    def counted_attempt(self, key: ClassSheetKey, counting: Counting) -> Attempt | None:
        """The student's attempt on this sheet that counts, of those under its sheet key."""
        ids = counted_ids(counting, *_is_owned(attempts, key))
        return next(iter(self._select_attempts(attempts.c.id.in_(ids))), None)

    def progress(self, activity_id: int, student_id: int) -> ActivityProgress:
        """A student's progress in an activity: by sheet key, the number of attempts and whether one was handed in."""
        rows = self._fetch_all(_PROGRESS, activity_id=activity_id, student_id=student_id)
        sheets = {row.sheet_key: SheetProgress(row.attempts, bool(row.handed_in)) for row in rows if row.sheet_key}
        arrived = [row for row in rows if row.sheet_key is None]
        return ActivityProgress(sheets, bool(arrived), any(row.handed_in for row in arrived))

    def sheets_with_draft(self, student_id: int) -> set[tuple[int, str]]:
        """Activity id and sheet key of every sheet that a student has typed on."""
        query = sa.select(drafts.c.activity_id, drafts.c.sheet_key)
        rows = self._fetch_all(query.where(drafts.c.student_id == student_id))
        return {(row.activity_id, row.sheet_key) for row in rows}

    def attempts_of_activity(
        self, activity_id: int, *, sheet_key: str | None = None, student_id: int | None = None
    ) -> tuple[Attempt, ...]:
        """The attempts in an activity's revisions, oldest first."""
        wanted = [attempts.c.activity_id == activity_id]
        wanted += [attempts.c.sheet_key == sheet_key] if sheet_key is not None else []
        wanted += [attempts.c.student_id == student_id] if student_id is not None else []
        return self._select_attempts(*wanted)

    def attempts_of_student(self, student_id: int) -> tuple[Attempt, ...]:
        """Every attempt of a student in all activities of the course, oldest first."""
        return self._select_attempts(attempts.c.student_id == student_id)

    def count_working(self, activity_id: int, sheet_keys: Collection[str]) -> int:
        """How many students have a draft on any of these sheets of an activity without a handed-in attempt on it."""
        handed_in = sa.exists().where(*_ON_SHEET, attempts.c.handed_in)
        on_sheets = drafts.c.activity_id == activity_id, drafts.c.sheet_key.in_(sheet_keys)
        count = sa.select(sa.func.count(drafts.c.student_id.distinct()))
        return int(self._fetch_one(count.where(*on_sheets, ~handed_in))[0])

    def last_attempts(self, activity_id: int) -> dict[StudentSheetKey, LastAttempt]:
        """The newest attempt's id, and what happened on the sheet, by student id and sheet key."""
        key = (attempts.c.student_id, attempts.c.sheet_key)
        newest = sa.func.max(attempts.c.id)
        auto_submitted = sa.func.max(sa.case((attempts.c.auto_submitted, 1), else_=0))
        by_student = attempts.c.handed_in & ~attempts.c.auto_submitted
        handed_in = sa.func.max(sa.case((by_student, 1), else_=0))
        query = (
            sa.select(*key, newest.label("id"), handed_in.label("handed_in"), auto_submitted.label("auto_submitted"))
            .where(attempts.c.activity_id == activity_id)
            .group_by(*key)
        )
        rows = self._fetch_all(query)
        return {
            (row.student_id, row.sheet_key): LastAttempt(row.id, bool(row.handed_in), bool(row.auto_submitted))
            for row in rows
        }

    def stored_marks(self, attempt_ids: Collection[int]) -> dict[int, StoredMarks]:
        """By attempt id, the marks by blank, the misconceptions and the answers; unknown ids are left out."""
        stored = dict[int, StoredMarks]()
        for some in batches(sorted(attempt_ids), MAX_VALUES):
            query = sa.select(attempts.c.id, *columns(attempts, StoredMarks)).where(attempts.c.id.in_(some))
            stored |= {row.id: from_row(StoredMarks, row) for row in self._fetch_all(query)}
        return stored

    def first_misconceptions(self, activity_id: int, sheet_key: str) -> list[tuple[str, ...]]:
        """The misconceptions in each student's first attempt on a sheet."""
        ids = counted_ids("first", attempts.c.activity_id == activity_id, attempts.c.sheet_key == sheet_key)
        query = sa.select(attempts.c.misconceptions).where(attempts.c.id.in_(ids))
        return [tuple(row.misconceptions) for row in self._fetch_all(query)]

    # Drafts that are auto-submitted after an activity ends

    def students_with_drafts(self, activity_id: int) -> tuple[int, ...]:
        """The ids of the students with a draft in an activity, ascending."""
        query = sa.select(drafts.c.student_id).where(drafts.c.activity_id == activity_id).distinct()
        return tuple(row.student_id for row in self._fetch_all(query.order_by(drafts.c.student_id)))

    def unfinished_work(self, activity_id: int, student_ids: Sequence[int]) -> dict[tuple[int, str], UnfinishedWork]:
        """These students' drafts in an activity with the attempts on the same sheet, by student id and sheet key."""
        rows = self._fetch_all(_DRAFTS_BESIDE_ATTEMPTS, activity_id=activity_id, student_ids=list(student_ids))
        return {(row.student_id, row.sheet_key): _unfinished_work(row) for row in rows}

    def hand_in_papers(self, papers: Sequence[tuple[ClassSheetKey, NewAttempt]]) -> None:
        """Store answers on paper as attempts, in one transaction; a used client id adds none."""
        at = self.now()
        arrivals = [
            {"activity_id": key.activity_id, "student_id": key.student_id, "arrived_at": at, "ticket_in": False}
            for key, _ in papers
        ]
        typed = [draft_row(key, Draft(new.answers, 1, new.variant), at) for key, new in papers]
        if papers:
            with self.transaction() as connection:
                for table, rows in ((attendance, arrivals), (drafts, typed)):
                    connection.execute(self._insert_into(table).on_conflict_do_nothing(), rows)
                self.add_attempts(papers)

    def add_attempts(self, new: Sequence[tuple[ClassSheetKey, NewAttempt]]) -> None:
        """Store attempts, made now, in one transaction; a used client id adds nothing."""
        rows = [attempt_row(key, attempt, self.now()) for key, attempt in new]
        if rows:
            with self.transaction() as connection:
                connection.execute(self._attempt_insert, rows)

    def _select_attempts(self, *conditions: sa.ColumnElement[bool]) -> tuple[Attempt, ...]:
        query = sa.select(*columns(attempts, Attempt)).where(*conditions).order_by(attempts.c.id)
        return tuple(_attempt(row) for row in self._fetch_all(query))


def _owner(key: SheetKey) -> dict[str, Any]:
    return {name: getattr(key, name) for name in _OWNER[type(key)]}


def _is_owned(table: sa.Table, key: SheetKey) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == value for name, value in _owner(key).items()]


def _unfinished_work(row: Any) -> UnfinishedWork:
    draft = from_row(StudentDraft, row)
    return UnfinishedWork(draft, row.attempts, row.last_id, row.last_answers, row.last_at, bool(row.handed_in_on_time))


def draft_row(key: SheetKey, draft: Draft, at: datetime) -> dict[str, Any]:
    """The row of a draft saved at that time, by column."""
    return {**_owner(key), **vars(draft), "saved_at": at}


def attempt_row(key: SheetKey, new: NewAttempt, at: datetime) -> dict[str, Any]:
    """The row of an attempt made at that time, by column; `marked_by` is the sheet key of `key`."""
    rest = {name: value for name, value in vars(new).items() if name != "graded"}
    return {**vars(key), **vars(new.graded), **rest, "created_at": at, "marked_by": key.sheet_key}


def _attempt(row: Any, prefix: str = "") -> Attempt:
    attempt = from_row(Attempt, row, prefix)
    in_class = attempt.student_id is not None
    return attempt if in_class else replace(attempt, student_id=0, activity_id=0, revision=0, sheet_number=0)
