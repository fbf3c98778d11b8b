"""What students do in an activity: they arrive, type drafts, check and hand in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningInsert

from app.activities.work import (
    ActivityProgress,
    Answers,
    Attendance,
    ClassAttempt,
    ClassDraft,
    ClassSheetKey,
    ClassSheetWork,
    Graded,
    NoAttemptsLeftError,
    PaperAttempt,
    SheetProgress,
    StoredClassDraft,
    TakenIn,
    UnfinishedWork,
    VariantSizes,
    merged_draft,
)

from .limits import tolerated_failure
from .queries import QueryBase, columns, from_row
from .tables import attendance, class_attempts, class_drafts


def draft_of(row: Any) -> ClassDraft:
    """The draft of a row that has DRAFT_COLUMNS."""
    return ClassDraft(row.answers, row.version, VariantSizes(**row.variant), pages=row.stamps or {})


def _of_student(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the rows of one student in one activity, bind parameters `activity_id` and `student_id`."""
    return table.c.activity_id == sa.bindparam("activity_id"), table.c.student_id == sa.bindparam("student_id")


# Built once: a class runs these with every save, and building a statement takes as long as executing it.
_ARRIVAL = sa.select(attendance.c.ticket_in).where(*_of_student(attendance))
DRAFT_COLUMNS = (class_drafts.c.answers, class_drafts.c.version, class_drafts.c.variant, class_drafts.c.stamps)
_DRAFT = sa.select(*DRAFT_COLUMNS).where(
    *_of_student(class_drafts), class_drafts.c.sheet_key == sa.bindparam("sheet_key")
)
_PROGRESS_ROWS = sa.union_all(
    sa.select(class_drafts.c.sheet_key, sa.literal(0).label("attempts"), sa.literal(0).label("handed_in")).where(
        *_of_student(class_drafts)
    ),
    sa.select(class_attempts.c.sheet_key, sa.literal(1), sa.cast(class_attempts.c.handed_in, sa.Integer)).where(
        *_of_student(class_attempts)
    ),
    # Of no sheet: that the student has come, and whether the exit ticket is in.
    sa.select(sa.null(), sa.literal(0), sa.cast(attendance.c.ticket_in, sa.Integer)).where(*_of_student(attendance)),
).subquery()
_PROGRESS = sa.select(
    _PROGRESS_ROWS.c.sheet_key,
    sa.func.sum(_PROGRESS_ROWS.c.attempts).label("attempts"),
    sa.func.max(_PROGRESS_ROWS.c.handed_in).label("handed_in"),
).group_by(_PROGRESS_ROWS.c.sheet_key)


def select_work(
    source: sa.FromClause, columns_before: Sequence[sa.ColumnElement[Any]], student: Any, activity: Any, sheet_key: Any
) -> sa.Select[Any]:
    """A query on `source` that also reads what `work_of` needs: the draft, the last attempt, and how many there are.

    `student`, `activity` and `sheet_key` are columns of the source, values or bind parameters.
    """

    def is_on_sheet(table: sa.FromClause) -> sa.ColumnElement[bool]:
        return sa.and_(table.c.student_id == student, table.c.activity_id == activity, table.c.sheet_key == sheet_key)

    made, last = class_attempts.alias("made"), class_attempts.alias("last")
    newest = sa.select(sa.func.max(made.c.id)).where(is_on_sheet(made)).scalar_subquery()
    count = sa.select(sa.func.count(made.c.id)).where(is_on_sheet(made)).scalar_subquery()
    joined = source.outerjoin(class_drafts, is_on_sheet(class_drafts)).outerjoin(last, last.c.id == newest)
    of_last = columns(last, ClassAttempt, "last__")
    return sa.select(*columns_before, *DRAFT_COLUMNS, *of_last, count.label("made")).select_from(joined)


def work_of(row: Any) -> ClassSheetWork:
    """What a student has done on a sheet, from a row of `select_work`."""
    last = None if row.last__id is None else _attempt(row, "last__")
    return ClassSheetWork(None if row.version is None else draft_of(row), row.made, last)


_WORK = select_work(
    sa.select(sa.literal(1)).subquery("one"),
    (),
    sa.bindparam("student_id"),
    sa.bindparam("activity_id"),
    sa.bindparam("sheet_key"),
)


_ON_SHEET = (
    class_attempts.c.student_id == class_drafts.c.student_id,
    class_attempts.c.activity_id == class_drafts.c.activity_id,
    class_attempts.c.sheet_key == class_drafts.c.sheet_key,
)
_ON_TIME = (class_attempts.c.handed_in, ~class_attempts.c.taken_in, ~class_attempts.c.late)
_LAST_ID = sa.select(sa.func.max(class_attempts.c.id)).where(*_ON_SHEET).scalar_subquery()
_LAST = class_attempts.alias()
_DRAFTS_BESIDE_ATTEMPTS = (
    sa.select(
        *columns(class_drafts, StoredClassDraft),
        sa.select(sa.func.count()).select_from(class_attempts).where(*_ON_SHEET).scalar_subquery().label("attempts"),
        sa.exists().where(*_ON_SHEET, *_ON_TIME).label("handed_in_on_time"),
        sa.func.coalesce(_LAST.c.id, 0).label("last_id"),
        _LAST.c.answers.label("last_answers"),
        _LAST.c.created_at.label("last_at"),
    )
    .select_from(class_drafts.outerjoin(_LAST, _LAST.c.id == _LAST_ID))
    .where(
        class_drafts.c.activity_id == sa.bindparam("activity_id"),
        class_drafts.c.student_id.in_(sa.bindparam("student_ids", expanding=True)),
    )
)


@dataclass(frozen=True)
class Recorded:
    """An attempt that is stored, the draft that is stored with it, and how far the student is then."""

    attempt: ClassAttempt
    draft: ClassDraft
    progress: ActivityProgress
    is_new: bool  # not stored before, by a request that was sent twice


class Classwork(QueryBase):
    """Queries on attendance, drafts and attempts."""

    def arrive(self, activity_id: int, student_id: int) -> bool:
        """Store that a student opened an activity, if it is the first time; return whether their exit ticket is in.

        A database that cannot store it, such as on a full disk, is tolerated, except inside a transaction.
        """
        if row := self._fetch_one(_ARRIVAL, activity_id=activity_id, student_id=student_id):
            return bool(row.ticket_in)
        row = {"activity_id": activity_id, "student_id": student_id, "arrived_at": self.now(), "ticket_in": False}
        key = [attendance.c.activity_id, attendance.c.student_id]
        with nullcontext() if self._current_connection() else tolerated_failure():
            self._execute(self._insert_into(attendance).values(row).on_conflict_do_nothing(index_elements=key))
        return False

    def attendance(self, activity_id: int) -> tuple[Attendance, ...]:
        """Every student who opened an activity, in the order of their arrival."""
        query = sa.select(*columns(attendance, Attendance)).where(attendance.c.activity_id == activity_id)
        return tuple(from_row(Attendance, row) for row in self._fetch_all(query.order_by(attendance.c.arrived_at)))

    def attended(self, student_id: int) -> dict[int, bool]:
        """The id of each activity that a student opened, newest activity first, and whether their exit ticket is in."""
        query = sa.select(attendance.c.activity_id, attendance.c.ticket_in).where(attendance.c.student_id == student_id)
        rows = self._fetch_all(query.order_by(attendance.c.activity_id.desc()))
        return {row.activity_id: row.ticket_in for row in rows}

    # Drafts

    def save(self, key: ClassSheetKey, draft: ClassDraft, seen: ClassDraft | None = None) -> ClassDraft:
        """Merge a draft that a page sent into the stored one; return what is stored, durable once this returns.

        `seen` is the stored draft if this request has read it. The variant of the first save stays, whatever later ones
        say: a student's numbers never change. If the draft brings nothing new, nothing is stored.
        """
        stored = seen or self.draft(key)
        while merged := merged_draft(stored, draft):
            if self._execute(self._draft_upsert, _draft_row(key, merged, self.now())):
                return merged
            stored = self.draft(key)  # another save came first
        return stored or draft

    @cached_property
    def _draft_upsert(self) -> sa.Insert:
        """The INSERT of a draft that overwrites a stored one, except its variant; built once.

        It does so only where the stored one has the version before: otherwise another save came first, and no row
        changes.
        """
        insert = self._insert_into(class_drafts)
        values = {name: insert.excluded[name] for name in ("answers", "version", "saved_at", "stamps")}
        key = [class_drafts.c.student_id, class_drafts.c.activity_id, class_drafts.c.sheet_key]
        next_version = class_drafts.c.version == insert.excluded.version - 1
        upsert = insert.on_conflict_do_update(index_elements=key, set_=values, where=next_version)
        return upsert.execution_options(preserve_rowcount=True)  # which SQLAlchemy forgets for an INSERT

    def draft(self, key: ClassSheetKey) -> ClassDraft | None:
        """What a student has typed on a sheet; None before the first save."""
        row = self._fetch_one(_DRAFT, student_id=key.student_id, activity_id=key.activity_id, sheet_key=key.sheet_key)
        return draft_of(row) if row else None

    def work(self, key: ClassSheetKey) -> ClassSheetWork:
        """What a student has done on a sheet, in one query."""
        row = self._fetch_one(_WORK, student_id=key.student_id, activity_id=key.activity_id, sheet_key=key.sheet_key)
        return work_of(row)

    def drafts_of_activity(self, activity_id: int) -> tuple[StoredClassDraft, ...]:
        """Every student's drafts in an activity, by student and sheet, whether they were handed in or not."""
        query = sa.select(*columns(class_drafts, StoredClassDraft)).where(class_drafts.c.activity_id == activity_id)
        rows = self._fetch_all(query.order_by(class_drafts.c.student_id, class_drafts.c.sheet_key))
        return tuple(StoredClassDraft(**{**row._mapping, "variant": VariantSizes(**row.variant)}) for row in rows)

    # Attempts

    def record(
        self,
        key: ClassSheetKey,
        client_id: str,
        draft: ClassDraft,
        graded: Graded,
        *,
        handed_in: bool,
        seen: ClassDraft | None = None,
        allowed: int = 0,
        late: bool = False,
    ) -> Recorded:
        """Store one attempt and, as `save` does, its draft, in one transaction, durable once this returns.

        A `client_id` that this student has used before adds no attempt and returns the one that has it, even if no
        attempts are left. Raises NoAttemptsLeftError, and stores nothing, if the student would have more than `allowed`
        attempts on the sheet (0 allows any number). `seen` is the stored draft if this request has read it. `marked_by`
        is the sheet's own key.
        """
        row = {**asdict(key), **asdict(graded), "client_id": client_id, "variant": asdict(draft.variant),
               "answers": dict(draft.answers), "handed_in": handed_in, "created_at": self.now(),
               "marked_by": key.sheet_key, "late": late}  # fmt: skip

        def write(connection: sa.Connection) -> tuple[Any, ClassDraft, ActivityProgress]:
            """Save the draft, then insert the attempt, and count: its row, None for a repeated client_id, comes back.

            Raises NoAttemptsLeftError, which rolls everything back, if the sheet then has too many attempts.
            """
            stored = self.save(key, draft, seen)
            if allowed and stored is seen and self.engine.dialect.name == "postgresql":
                # Two requests of one student take turns, so that neither miscounts: by the draft that was written, or
                # by this lock. On SQLite all writers do.
                this = (class_drafts.c.student_id == key.student_id, class_drafts.c.activity_id == key.activity_id,
                        class_drafts.c.sheet_key == key.sheet_key)  # fmt: skip
                connection.execute(sa.select(class_drafts.c.version).where(*this).with_for_update())
            inserted = connection.execute(self._attempt_insert, row).one_or_none()
            progress = self.progress(key.activity_id, key.student_id)
            if inserted and allowed and progress.sheets[key.sheet_key].attempts > allowed:
                raise NoAttemptsLeftError
            return inserted, stored, progress

        inserted, stored, progress = self.in_transaction(write)
        same_request = (class_attempts.c.student_id == key.student_id, class_attempts.c.client_id == client_id)
        attempt = _attempt(inserted) if inserted else self._select_attempts(*same_request)[0]
        return Recorded(attempt, stored, progress, is_new=inserted is not None)

    @cached_property
    def _attempt_insert(self) -> ReturningInsert[Any]:
        """The INSERT of an attempt, built once: it adds and returns no row where the student has used the client id."""
        key = [class_attempts.c.student_id, class_attempts.c.client_id]
        insert = self._insert_into(class_attempts).on_conflict_do_nothing(index_elements=key)
        return insert.returning(*columns(class_attempts, ClassAttempt))

    def hand_in(self, attempt: ClassAttempt) -> ClassAttempt:
        """Turn an attempt into a submission, and return it; nothing else of it changes."""
        if not attempt.handed_in:
            self._execute(sa.update(class_attempts).where(class_attempts.c.id == attempt.id).values(handed_in=True))
        return replace(attempt, handed_in=True)

    def add_answers(self, attempt: ClassAttempt, written: Answers) -> ClassAttempt:
        """Add these answers to open questions to an attempt, without marking it again, and return it.

        Nothing happens if it has been handed in, or holds these answers already.
        """
        if attempt.handed_in or written.items() <= attempt.answers.items():
            return attempt
        answers = {**attempt.answers, **written}
        this = (class_attempts.c.id == attempt.id, ~class_attempts.c.handed_in)
        return (
            replace(attempt, answers=answers)
            if self._execute(sa.update(class_attempts).where(*this).values(answers=answers))
            else attempt
        )

    def attempts(self, key: ClassSheetKey) -> tuple[ClassAttempt, ...]:
        """Every attempt of a student on a sheet, oldest first."""
        return self._select_attempts(*_on_sheet(key))

    def progress(self, activity_id: int, student_id: int) -> ActivityProgress:
        """How far a student is in an activity; sheets with only a draft have 0 attempts, those without are left out."""
        rows = self._fetch_all(_PROGRESS, activity_id=activity_id, student_id=student_id)
        sheets = {row.sheet_key: SheetProgress(row.attempts, bool(row.handed_in)) for row in rows if row.sheet_key}
        arrived = [row for row in rows if row.sheet_key is None]
        return ActivityProgress(sheets, bool(arrived), any(row.handed_in for row in arrived))

    def sheets_with_draft(self, student_id: int) -> set[tuple[int, str]]:
        """Activity id and sheet key of every sheet that a student has typed anything on."""
        query = sa.select(class_drafts.c.activity_id, class_drafts.c.sheet_key)
        rows = self._fetch_all(query.where(class_drafts.c.student_id == student_id))
        return {(row.activity_id, row.sheet_key) for row in rows}

    def attempts_of_activity(
        self, activity_id: int, *, sheet_key: str | None = None, student_id: int | None = None
    ) -> tuple[ClassAttempt, ...]:
        """The attempts in an activity, oldest first: all of them, or those on one sheet or of one student."""
        wanted = [class_attempts.c.activity_id == activity_id]
        wanted += [class_attempts.c.sheet_key == sheet_key] if sheet_key is not None else []
        wanted += [class_attempts.c.student_id == student_id] if student_id is not None else []
        return self._select_attempts(*wanted)

    def attempts_of_student(self, student_id: int) -> tuple[ClassAttempt, ...]:
        """Every attempt of a student in all activities of the course, oldest first."""
        return self._select_attempts(class_attempts.c.student_id == student_id)

    def count_working(self, activity_id: int, sheet_keys: Collection[str]) -> int:
        """How many students have typed on a sheet of an activity that they have not handed in.

        `sheet_keys` are those of its newest revision: what is left of earlier ones, or was kept aside when two students
        were merged, can no longer be handed in.
        """
        handed_in = sa.exists().where(*_ON_SHEET, class_attempts.c.handed_in)
        on_sheets = class_drafts.c.activity_id == activity_id, class_drafts.c.sheet_key.in_(sheet_keys)
        count = sa.select(sa.func.count(class_drafts.c.student_id.distinct()))
        return int(self._fetch_one(count.where(*on_sheets, ~handed_in))[0])

    # Drafts that are taken in when an activity has ended

    def students_with_drafts(self, activity_id: int) -> tuple[int, ...]:
        """The ids of the students who have a draft in an activity, in ascending order."""
        query = sa.select(class_drafts.c.student_id).where(class_drafts.c.activity_id == activity_id).distinct()
        return tuple(row.student_id for row in self._fetch_all(query.order_by(class_drafts.c.student_id)))

    def unfinished_work(self, activity_id: int, student_ids: Sequence[int]) -> dict[tuple[int, str], UnfinishedWork]:
        """Every draft of these students in an activity with the attempts on its sheet, by student and sheet key."""
        rows = self._fetch_all(_DRAFTS_BESIDE_ATTEMPTS, activity_id=activity_id, student_ids=list(student_ids))
        return {(row.student_id, row.sheet_key): _unfinished_work(row) for row in rows}

    def hand_in_papers(self, papers: Sequence[PaperAttempt]) -> None:
        """Store answers on paper as submissions, in one transaction; a client id that its student has used adds
        nothing.

        Their students count as arrived. A paper becomes the draft of a student who has none on that sheet.
        """
        at = self.now()
        drafts = [_draft_row(paper.key, paper.draft, at) for paper in papers]
        arrivals = [{"activity_id": paper.key.activity_id, "student_id": paper.key.student_id, "arrived_at": at,
                     "ticket_in": False} for paper in papers]  # fmt: skip
        attempts = [
            {**asdict(paper.key), **asdict(paper.graded), "client_id": paper.client_id, "created_at": at,
             "variant": asdict(paper.draft.variant), "answers": dict(paper.draft.answers), "handed_in": True,
             "marked_by": paper.key.sheet_key}
            for paper in papers
        ]  # fmt: skip
        if papers:
            with self.transaction() as connection:
                for table, rows in ((attendance, arrivals), (class_drafts, drafts), (class_attempts, attempts)):
                    connection.execute(self._insert_into(table).on_conflict_do_nothing(), rows)

    def take_in(self, taken: Sequence[TakenIn]) -> None:
        """Store drafts with their marks as auto-submitted attempts, in one transaction.

        The client id is made from the student's last attempt, so that whoever does the same again adds nothing.
        """
        at = self.now()
        rows = [
            {**asdict(each.key), **asdict(each.graded), "client_id": each.client_id,
             "variant": asdict(each.work.draft.variant), "answers": dict(each.work.draft.answers), "handed_in": True,
             "created_at": at, "marked_by": each.key.sheet_key, "taken_in": True, "late": each.late}
            for each in taken
        ]  # fmt: skip
        if rows:
            unique = [class_attempts.c.student_id, class_attempts.c.client_id]
            with self.transaction() as connection:
                connection.execute(
                    self._insert_into(class_attempts).on_conflict_do_nothing(index_elements=unique), rows
                )

    def _select_attempts(self, *conditions: sa.ColumnElement[bool]) -> tuple[ClassAttempt, ...]:
        """The attempts that meet every condition, oldest first."""
        query = sa.select(*columns(class_attempts, ClassAttempt)).where(*conditions).order_by(class_attempts.c.id)
        return tuple(_attempt(row) for row in self._fetch_all(query))


def _on_sheet(key: ClassSheetKey) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the attempts of one student on one sheet, in whatever revision they were made."""
    return (
        class_attempts.c.student_id == key.student_id,
        class_attempts.c.activity_id == key.activity_id,
        class_attempts.c.sheet_key == key.sheet_key,
    )


def _unfinished_work(row: Any) -> UnfinishedWork:
    """The draft and the last attempt of a row of _DRAFTS_BESIDE_ATTEMPTS."""
    draft = StoredClassDraft(row.student_id, row.sheet_key, VariantSizes(**row.variant), row.answers, row.saved_at)
    return UnfinishedWork(draft, row.attempts, row.last_id, row.last_answers, row.last_at, bool(row.handed_in_on_time))


def _draft_row(key: ClassSheetKey, draft: ClassDraft, at: datetime) -> dict[str, Any]:
    """The values of the row of class_drafts that holds a draft saved at that time."""
    return {"student_id": key.student_id, "activity_id": key.activity_id, "sheet_key": key.sheet_key,
            "answers": dict(draft.answers), "version": draft.version, "variant": asdict(draft.variant),
            "saved_at": at, "stamps": dict(draft.pages)}  # fmt: skip


def _attempt(row: Any, prefix: str = "") -> ClassAttempt:
    """The attempt of a row of class_attempts; JSON becomes VariantSizes and a tuple."""
    attempt = from_row(ClassAttempt, row, prefix)
    variant = VariantSizes(**cast(Mapping[str, Any], attempt.variant))
    return replace(attempt, variant=variant, misconceptions=tuple(attempt.misconceptions))
