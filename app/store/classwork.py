"""What students do in an activity: that they came, what they type, their attempts, and their exit tickets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningInsert

from .questions import Questions, columns, hashed, now
from .tables import attendance, class_attempts, class_drafts, students, ticket_answers

Answers = Mapping[str, str]


@dataclass(frozen=True)
class VariantSizes:
    """What fixes the sizes of a worksheet for one student: a model and the lengths of its texts."""

    model: str
    tokens: int
    decoder_tokens: int | None = None


@dataclass(frozen=True)
class SubmissionKey:
    """One student's work on one sheet of an activity: sheet number `sheet_number`, from 1, of that revision.

    Drafts and attempts are stored under `sheet_key` (see FrozenWorksheet), which survives revisions that leave the
    questions as they are.
    """

    student_id: int
    activity_id: int
    revision: int
    sheet_number: int
    sheet_key: str


@dataclass(frozen=True)
class ClassDraft:
    """What stands in the boxes, as typed; versions grow with the browser's clock."""

    answers: Answers
    version: int
    variant: VariantSizes


@dataclass(frozen=True)
class StoredClassDraft:
    """A draft as it is kept: whose, of which sheet, and since when."""

    student_id: int
    sheet_key: str
    variant: VariantSizes
    answers: Answers
    saved_at: datetime


@dataclass(frozen=True)
class Graded:
    """What an attempt got: kind of mark by place, keys of misconceptions with the diagnosis first, and a score."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int


@dataclass(frozen=True)
class ClassAttempt:
    """One check of a sheet, kept for good; a submission where it was handed in.

    `marked_by` is the sheet key (`FrozenWorksheet.sheet_key`) of the worksheet definition that gave the stored marks:
    the attempt's own `sheet_key` until a regrade marks it by a corrected definition. It is None for attempts that were
    regraded before the database knew this.
    """

    id: int
    student_id: int
    activity_id: int
    revision: int
    sheet_number: int
    sheet_key: str
    client_id: str
    variant: VariantSizes
    answers: Answers
    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int
    handed_in: bool
    created_at: datetime
    marked_by: str | None = None


@dataclass(frozen=True)
class SheetProgress:
    """How far a student is with one sheet: how many attempts, and whether one of them was handed in."""

    attempts: int
    handed_in: bool


@dataclass(frozen=True)
class Attendance:
    """That a student came to an activity, and whether their exit ticket is in."""

    student_id: int
    arrived_at: datetime
    ticket_in: bool


@dataclass(frozen=True)
class TicketAnswer:
    """One answer on an exit ticket; `student_id` is None where the ticket is anonymous."""

    id: str
    question: str
    text: str
    student_id: int | None
    day: date
    starred: bool
    follow_up: bool
    hidden: bool


class NoAttemptsLeftError(Exception):
    """As many attempts as the activity allows are there already."""


def _own(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """What is one student's in one activity."""
    return table.c.activity_id == sa.bindparam("activity_id"), table.c.student_id == sa.bindparam("student_id")


# Built once: a class asks these with every save, and to build one takes as long as to answer it.
_CAME = sa.select(attendance.c.ticket_in).where(*_own(attendance))
_DRAFT = sa.select(class_drafts.c.answers, class_drafts.c.version, class_drafts.c.variant).where(
    *_own(class_drafts), class_drafts.c.sheet_key == sa.bindparam("sheet_key")
)
_BEGUN = sa.union_all(
    sa.select(class_drafts.c.sheet_key, sa.literal(0).label("attempts"), sa.literal(0).label("handed_in")).where(
        *_own(class_drafts)
    ),
    sa.select(class_attempts.c.sheet_key, sa.literal(1), sa.cast(class_attempts.c.handed_in, sa.Integer)).where(
        *_own(class_attempts)
    ),
).subquery()
_PROGRESS = sa.select(_BEGUN.c.sheet_key, sa.func.sum(_BEGUN.c.attempts), sa.func.max(_BEGUN.c.handed_in)).group_by(
    _BEGUN.c.sheet_key
)


class Classwork(Questions):
    """What students do."""

    def arrive(self, activity_id: int, student_id: int) -> bool:
        """Note that a student came; once is enough, and then costs no write. Whether their exit ticket is in."""
        if row := self._one(_CAME, activity_id=activity_id, student_id=student_id):
            return bool(row.ticket_in)
        row = {"activity_id": activity_id, "student_id": student_id, "arrived_at": now(), "ticket_in": False}
        place = [attendance.c.activity_id, attendance.c.student_id]
        self._write(self._insert(attendance).values(row).on_conflict_do_nothing(index_elements=place))
        return False

    def attendance(self, activity_id: int) -> tuple[Attendance, ...]:
        """Everybody who came, in the order in which they did."""
        query = sa.select(*columns(attendance, Attendance)).where(attendance.c.activity_id == activity_id)
        return tuple(Attendance(*row) for row in self._all(query.order_by(attendance.c.arrived_at)))

    def attended(self, student_id: int) -> tuple[tuple[int, bool], ...]:
        """The activities a student came to, the newest first, each with whether the exit ticket is in."""
        query = sa.select(attendance.c.activity_id, attendance.c.ticket_in).where(attendance.c.student_id == student_id)
        return tuple((row[0], row[1]) for row in self._all(query.order_by(attendance.c.activity_id.desc())))

    # Drafts

    def save(self, key: SubmissionKey, draft: ClassDraft) -> None:
        """Keep what stands in the boxes, unless something newer is kept already; durable once this returns."""
        self._write(self._saving, _draft_row(key, draft))

    @cached_property
    def _saving(self) -> sa.Insert:
        """Built once. The variant stays as it was first kept: nobody's numbers change under their hands."""
        insert = self._insert(class_drafts)
        values = {name: insert.excluded[name] for name in ("answers", "version", "saved_at")}
        place = [class_drafts.c.student_id, class_drafts.c.activity_id, class_drafts.c.sheet_key]
        newer = class_drafts.c.version <= insert.excluded.version
        return insert.on_conflict_do_update(index_elements=place, set_=values, where=newer)

    def draft(self, key: SubmissionKey) -> ClassDraft | None:
        """What stands in the boxes of one sheet."""
        row = self._one(_DRAFT, student_id=key.student_id, activity_id=key.activity_id, sheet_key=key.sheet_key)
        return ClassDraft(row.answers, row.version, VariantSizes(**row.variant)) if row else None

    def drafts_of_activity(self, activity_id: int) -> tuple[StoredClassDraft, ...]:
        """What stands in everybody's boxes, handed in or not."""
        query = sa.select(*columns(class_drafts, StoredClassDraft)).where(class_drafts.c.activity_id == activity_id)
        rows = self._all(query.order_by(class_drafts.c.student_id, class_drafts.c.sheet_key))
        return tuple(StoredClassDraft(**{**row._mapping, "variant": VariantSizes(**row.variant)}) for row in rows)

    # Attempts

    def record(
        self,
        key: SubmissionKey,
        client_id: str,
        draft: ClassDraft,
        graded: Graded,
        *,
        handed_in: bool,
        allowed: int = 0,
        keep_draft: bool = True,
    ) -> ClassAttempt:
        """Store one attempt for good, and the draft it was made from unless `keep_draft` is off.

        It is durable once this returns. The same `client_id` again stores nothing and returns the attempt that has it.
        Raises NoAttemptsLeftError where the sheet would have more than `allowed` attempts of this student (0 allows any
        number); then nothing is stored.
        """
        row = {**asdict(key), **asdict(graded), "client_id": client_id, "variant": asdict(draft.variant),
               "answers": dict(draft.answers), "handed_in": handed_in, "created_at": now(),
               "marked_by": key.sheet_key}  # fmt: skip
        with self._writing() as connection:
            self._one_at_a_time(connection, key.student_id, counted=allowed > 0)
            if keep_draft:
                connection.execute(self._saving, _draft_row(key, draft))
            added = connection.execute(self._recording, row).one_or_none()
            if added and allowed:
                count = connection.scalar(sa.select(sa.func.count()).select_from(class_attempts).where(*_on(key)))
                if (count or 0) > allowed:
                    raise NoAttemptsLeftError
        same = (class_attempts.c.student_id == key.student_id, class_attempts.c.client_id == client_id)
        return _attempt(added) if added else self._attempts(*same)[0]

    @cached_property
    def _recording(self) -> ReturningInsert[Any]:
        place = [class_attempts.c.student_id, class_attempts.c.client_id]
        insert = self._insert(class_attempts).on_conflict_do_nothing(index_elements=place)
        return insert.returning(*columns(class_attempts, ClassAttempt))

    def _one_at_a_time(self, connection: sa.Connection, student_id: int, *, counted: bool) -> None:
        """Let two requests of one student wait for each other where attempts are counted, so that neither miscounts."""
        if self.engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        elif counted:
            connection.execute(sa.select(students.c.id).where(students.c.id == student_id).with_for_update())

    def hand_in_last(self, key: SubmissionKey) -> ClassAttempt | None:
        """Hand in the last attempt as it is; None if there is none."""
        last = self.last_attempt(key)
        if last and not last.handed_in:
            self._write(sa.update(class_attempts).where(class_attempts.c.id == last.id).values(handed_in=True))
            return self.last_attempt(key)
        return last

    def attempts(self, key: SubmissionKey) -> tuple[ClassAttempt, ...]:
        """Every attempt of one student on one sheet, the first one first."""
        return self._attempts(*_on(key))

    def last_attempt(self, key: SubmissionKey) -> ClassAttempt | None:
        """The newest attempt of one student on one sheet: the one that counts."""
        row = self._one(
            sa.select(*columns(class_attempts, ClassAttempt))
            .where(*_on(key))
            .order_by(class_attempts.c.id.desc())
            .limit(1)
        )
        return _attempt(row) if row else None

    def progress(self, activity_id: int, student_id: int) -> dict[str, SheetProgress]:
        """How far a student is in an activity, by sheet; what was not begun is missing."""
        rows = self._all(_PROGRESS, activity_id=activity_id, student_id=student_id)
        return {sheet: SheetProgress(count, bool(handed_in)) for sheet, count, handed_in in rows}

    def attempts_of_activity(self, activity_id: int) -> tuple[ClassAttempt, ...]:
        """Every attempt of everybody, the first one first."""
        return self._attempts(class_attempts.c.activity_id == activity_id)

    def attempts_of_student(self, student_id: int) -> tuple[ClassAttempt, ...]:
        """Every attempt of one student in every activity, the first one first."""
        return self._attempts(class_attempts.c.student_id == student_id)

    def _attempts(self, *conditions: sa.ColumnElement[bool]) -> tuple[ClassAttempt, ...]:
        query = sa.select(*columns(class_attempts, ClassAttempt)).where(*conditions).order_by(class_attempts.c.id)
        return tuple(_attempt(row) for row in self._all(query))

    # Exit tickets

    def hand_in_ticket(
        self, activity_id: int, student_id: int, client_id: str, answers: Answers, *, anonymous: bool
    ) -> bool:
        """Keep an exit ticket, once; whether it was kept now. Durable once this returns.

        Where it is anonymous, nothing that is stored joins the answers to the student: not a key, not a time, not the
        order of rows. That a ticket came from them is noted apart from it.
        """
        ours = (attendance.c.activity_id == activity_id, attendance.c.student_id == student_id)
        came = sa.update(attendance).where(*ours, attendance.c.ticket_in.is_(False)).values(ticket_in=True)
        with self._writing() as connection:
            if not connection.execute(came).rowcount:
                return False
            for question, text in answers.items():
                row = {"id": hashed(f"{client_id} {question}"), "activity_id": activity_id, "question": question,
                       "text": text, "student_id": None if anonymous else student_id, "day": datetime.now(UTC).date(),
                       "starred": False, "follow_up": False, "hidden": False}  # fmt: skip
                insert = self._insert(ticket_answers).values(row)
                connection.execute(insert.on_conflict_do_nothing(index_elements=[ticket_answers.c.id]))
        return True

    def ticket_in(self, activity_id: int, student_id: int) -> bool:
        """Whether a student's exit ticket is in."""
        row = self._one(_CAME, activity_id=activity_id, student_id=student_id)
        return bool(row and row.ticket_in)

    def tickets(self, activity_id: int) -> tuple[TicketAnswer, ...]:
        """Every answer on the exit tickets of an activity."""
        query = sa.select(*columns(ticket_answers, TicketAnswer)).where(ticket_answers.c.activity_id == activity_id)
        return tuple(TicketAnswer(*row) for row in self._all(query.order_by(ticket_answers.c.id)))

    def mark_ticket(self, activity_id: int, answer_id: str, **marks: bool) -> bool:
        """Set `starred`, `follow_up` or `hidden`; whether there is such an answer."""
        this = (ticket_answers.c.id == answer_id, ticket_answers.c.activity_id == activity_id)
        return bool(self._write(sa.update(ticket_answers).where(*this).values(marks)))


def _on(key: SubmissionKey) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        class_attempts.c.student_id == key.student_id,
        class_attempts.c.activity_id == key.activity_id,
        class_attempts.c.sheet_key == key.sheet_key,
    )


def _draft_row(key: SubmissionKey, draft: ClassDraft) -> dict[str, Any]:
    place = {"student_id": key.student_id, "activity_id": key.activity_id, "sheet_key": key.sheet_key}
    kept = {"answers": dict(draft.answers), "version": draft.version, "variant": asdict(draft.variant)}
    return {**place, **kept, "saved_at": now()}


def _attempt(row: sa.Row[Any]) -> ClassAttempt:
    values = {**row._mapping, "variant": VariantSizes(**row.variant), "misconceptions": tuple(row.misconceptions)}
    return ClassAttempt(**values)
