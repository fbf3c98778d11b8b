"""What students do in an activity: they arrive, type drafts, check and hand in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningInsert

from .limits import tolerated_failure
from .queries import QueryBase, columns, from_row, hash_secret
from .tables import attendance, class_attempts, class_drafts, students

MAX_PAGES = 30  # whose numbers a draft remembers: those that saved last

Answers = Mapping[str, str]  # what is typed in each blank, {"queries.rows": "100"}, and written to each open question


def question_name(key: str) -> str:
    """What the answer to an open question is stored under, beside those of the blanks: 'question.why-k'."""
    return f"question.{key}"


class Stamp(NamedTuple):
    """Where and when a box was last changed: the id of the page, and that page's running number of the change."""

    page: str
    number: int


@dataclass(frozen=True)
class MergedBoxes:
    """The texts of a draft after a save, and the highest number that was taken from each page."""

    answers: Answers
    pages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class VariantSizes:
    """What makes a worksheet one student's variant: a model and the numbers of tokens."""

    model: str
    tokens: int
    decoder_tokens: int | None = None


@dataclass(frozen=True)
class ClassSheetKey:
    """One sheet of one student in an activity: the sheet with number `sheet_number`, from 1, of that revision.

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
    """What is typed on a sheet of an activity: as it is stored, or as a page sent it.

    `version` counts the saves that are merged in a stored draft; it means nothing in a sent one.
    `changed` belongs to a sent one: the boxes that the page has changed (see `merge_boxes`), None without script.
    """

    answers: Answers
    version: int
    variant: VariantSizes
    changed: Mapping[str, Stamp] | None = None
    pages: Mapping[str, int] = field(default_factory=dict)  # of a stored one: the highest number taken from each page


@dataclass(frozen=True)
class StoredClassDraft:
    """A draft with its student, its sheet and the time it was saved."""

    student_id: int
    sheet_key: str
    variant: VariantSizes
    answers: Answers
    saved_at: datetime


@dataclass(frozen=True)
class UnfinishedWork:
    """A draft beside the attempts on the same sheet: how many there are, and of the last one its id and answers.

    The id is 0, and `last_answers` and `last_at` are None, before the first attempt. `handed_in_on_time`: the student
    has handed one in, not late; none that was taken in at closing.
    """

    draft: StoredClassDraft
    attempts: int
    last_id: int
    last_answers: Answers | None
    last_at: datetime | None
    handed_in_on_time: bool

    @property
    def sheet(self) -> tuple[int, str]:
        """The student's id and the sheet key."""
        return self.draft.student_id, self.draft.sheet_key

    def writes(self, questions: Collection[str]) -> bool:
        """Whether the draft answers any of these questions, by the names of `question_name`."""
        return any(name in questions for name in _typed(self.draft.answers))

    @property
    def has_news(self) -> bool:
        """Whether the draft was saved after the last attempt and holds other answers; empty boxes count for nothing."""
        if self.last_answers is None or self.last_at is None:
            return True
        return self.draft.saved_at > self.last_at and _typed(self.draft.answers) != _typed(self.last_answers)


@dataclass(frozen=True)
class Graded:
    """The marks of an attempt: the kind of mark by blank, misconceptions with the diagnosis first, and the score."""

    marks: Mapping[str, str]
    misconceptions: tuple[str, ...]
    score: float
    out_of: int


@dataclass(frozen=True)
class TakenIn:
    """A draft that is taken in when its activity has ended, with its marks, and whether it was typed late."""

    key: ClassSheetKey
    work: UnfinishedWork
    graded: Graded
    late: bool

    @property
    def client_id(self) -> str:
        """An id that is the same for the same sheet and last attempt, and no other: 'taken-in 17 4f9a…'."""
        sheet = f"{self.key.activity_id} {self.key.sheet_key}"
        return f"taken-in {self.work.last_id} {hash_secret(sheet)[:24]}"


@dataclass(frozen=True)
class PaperAttempt:
    """Answers on paper to be stored as a submission: the draft that they become, with their marks."""

    key: ClassSheetKey
    client_id: str
    draft: ClassDraft
    graded: Graded


@dataclass(frozen=True)
class ClassAttempt:
    """One check of a sheet, stored for good; a submission if it was handed in.

    `marked_by` is the sheet key (`FrozenWorksheet.sheet_key`) of the worksheet definition that gave the stored marks:
    the attempt's own `sheet_key` until a regrade marks it by a corrected definition. `taken_in`: it was a draft when
    the activity closed. `late`: it was made in the late window, or after answers had been shown.
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
    marked_by: str
    taken_in: bool = False
    late: bool = False


@dataclass(frozen=True)
class SheetProgress:
    """How many attempts a student has made on one sheet, and whether any of them was handed in."""

    attempts: int
    handed_in: bool


@dataclass(frozen=True)
class Attendance:
    """That a student opened an activity, when first, and whether they handed in an exit ticket."""

    student_id: int
    arrived_at: datetime
    ticket_in: bool


class NoAttemptsLeftError(Exception):
    """The student has made as many attempts on this sheet as the activity allows."""


def _typed(answers: Answers) -> dict[str, str]:
    """The texts that are not blank, without space around them."""
    return {blank: text.strip() for blank, text in answers.items() if text.strip()}


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
_LAST_ATTEMPT = (
    sa.select(*columns(class_attempts, ClassAttempt))
    .where(*_of_student(class_attempts), class_attempts.c.sheet_key == sa.bindparam("sheet_key"))
    .order_by(class_attempts.c.id.desc())
    .limit(1)
)
_DRAFTS_AND_ATTEMPTS = sa.union_all(
    sa.select(class_drafts.c.sheet_key, sa.literal(0).label("attempts"), sa.literal(0).label("handed_in")).where(
        *_of_student(class_drafts)
    ),
    sa.select(class_attempts.c.sheet_key, sa.literal(1), sa.cast(class_attempts.c.handed_in, sa.Integer)).where(
        *_of_student(class_attempts)
    ),
).subquery()
_PROGRESS = sa.select(
    _DRAFTS_AND_ATTEMPTS.c.sheet_key,
    sa.func.sum(_DRAFTS_AND_ATTEMPTS.c.attempts),
    sa.func.max(_DRAFTS_AND_ATTEMPTS.c.handed_in),
).group_by(_DRAFTS_AND_ATTEMPTS.c.sheet_key)


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


class Classwork(QueryBase):
    """Queries on attendance, drafts and attempts."""

    def arrive(self, activity_id: int, student_id: int) -> bool:
        """Store that a student opened an activity, if it is the first time; return whether their exit ticket is in.

        Where it cannot be stored, such as on a full disk, the page is shown all the same; what is part of a transaction
        raises.
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

        `seen` is the stored draft as this request has read it, if it has. The variant of the first save stays, whatever
        later ones say: a student's numbers never change. Where the draft brings nothing new, nothing is stored.
        """
        stored = seen or self.draft(key)
        while merged := _merged(stored, draft):
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
        keep_draft: bool = True,
        late: bool = False,
    ) -> ClassAttempt:
        """Store one attempt, durable once this returns; and, as `save` does, its draft unless `keep_draft` is off.

        `seen` is the stored draft as this request has read it, if it has.

        A `client_id` that this student has used before adds no attempt and returns the one that has it, even if no
        attempts are left. Raises NoAttemptsLeftError, and stores nothing, where the student would have more than
        `allowed` attempts on the sheet (0 allows any number). `marked_by` is the sheet's own key.
        """
        row = {**asdict(key), **asdict(graded), "client_id": client_id, "variant": asdict(draft.variant),
               "answers": dict(draft.answers), "handed_in": handed_in, "created_at": self.now(),
               "marked_by": key.sheet_key, "late": late}  # fmt: skip

        def write(connection: sa.Connection) -> Any:
            """Save the draft if `keep_draft`, then insert the attempt; its row, or None for a repeated client_id.

            Raises NoAttemptsLeftError, which rolls everything back, if the sheet then has more than `allowed` attempts
            (0: any).
            """
            if allowed and self.engine.dialect.name == "postgresql":
                # Two requests of one student take turns, so that neither miscounts; on SQLite all writers do.
                connection.execute(sa.select(students.c.id).where(students.c.id == key.student_id).with_for_update())
            if keep_draft:
                self.save(key, draft, seen)
            inserted = connection.execute(self._attempt_insert, row).one_or_none()
            if inserted and allowed:
                count = connection.scalar(sa.select(sa.func.count()).select_from(class_attempts).where(*_on_sheet(key)))
                if (count or 0) > allowed:
                    raise NoAttemptsLeftError
            return inserted

        inserted = self._in_transaction(write)
        same_request = (class_attempts.c.student_id == key.student_id, class_attempts.c.client_id == client_id)
        return _attempt(inserted) if inserted else self._select_attempts(*same_request)[0]

    @cached_property
    def _attempt_insert(self) -> ReturningInsert[Any]:
        """The INSERT of an attempt, built once: it adds and returns no row where the student has used the client id."""
        key = [class_attempts.c.student_id, class_attempts.c.client_id]
        insert = self._insert_into(class_attempts).on_conflict_do_nothing(index_elements=key)
        return insert.returning(*columns(class_attempts, ClassAttempt))

    def hand_in_last(self, key: ClassSheetKey) -> ClassAttempt | None:
        """Turn a student's last attempt on a sheet into a submission, and return it; None if there is none.

        Nothing else of it changes, and nothing at all if it was handed in before.
        """
        last = self.last_attempt(key)
        if last and not last.handed_in:
            self._execute(sa.update(class_attempts).where(class_attempts.c.id == last.id).values(handed_in=True))
            return self.last_attempt(key)
        return last

    def add_to_last(self, key: ClassSheetKey, written: Answers) -> None:
        """Add these answers to open questions to the student's last attempt on the sheet, without marking it again.

        Nothing happens without an attempt, if the last one is handed in, or if it holds these answers already.
        """
        last = self.last_attempt(key)
        if last and not last.handed_in and not written.items() <= last.answers.items():
            row = sa.update(class_attempts).where(class_attempts.c.id == last.id, ~class_attempts.c.handed_in)
            self._execute(row.values(answers={**last.answers, **written}))

    def attempts(self, key: ClassSheetKey) -> tuple[ClassAttempt, ...]:
        """Every attempt of a student on a sheet, oldest first."""
        return self._select_attempts(*_on_sheet(key))

    def last_attempt(self, key: ClassSheetKey) -> ClassAttempt | None:
        """The newest attempt of a student on a sheet, which is the one that counts; None if there is none."""
        student, activity = key.student_id, key.activity_id
        row = self._fetch_one(_LAST_ATTEMPT, student_id=student, activity_id=activity, sheet_key=key.sheet_key)
        return _attempt(row) if row else None

    def progress(self, activity_id: int, student_id: int) -> dict[str, SheetProgress]:
        """A student's progress in an activity by sheet key, in any order.

        A sheet with only a draft has 0 attempts; one with neither draft nor attempt is left out.
        """
        rows = self._fetch_all(_PROGRESS, activity_id=activity_id, student_id=student_id)
        return {sheet_key: SheetProgress(count, bool(handed_in)) for sheet_key, count, handed_in in rows}

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
        """Every draft of these students in an activity with what they did on its sheet, by student and sheet key."""
        rows = self._fetch_all(_DRAFTS_BESIDE_ATTEMPTS, activity_id=activity_id, student_ids=list(student_ids))
        return {(row.student_id, row.sheet_key): _unfinished_work(row) for row in rows}

    def hand_in_papers(self, papers: Sequence[PaperAttempt]) -> None:
        """Store answers on paper as submissions, together and in few statements, durable once this returns.

        Their students count as arrived. A paper becomes the draft of a student who has none. A client id that its
        student has used before adds nothing.
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
        """Store drafts with their marks as submissions that were taken in at closing.

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


def merge_boxes(
    stored: MergedBoxes | None, answers: Answers, changed: Mapping[str, Stamp] | None
) -> MergedBoxes | None:
    """A stored draft with a save merged into it; None where the save brings nothing new.

    A box in `changed` gets its text from `answers`, unless a change of the same page with that number or a higher one
    was taken already: then the request was sent twice, or overtaken on its way. Between two pages, the save that
    arrives last wins. So a page has to send every change until it was told that it is stored. `changed` is None for a
    form that was sent without script: then every text counts.

    Example:
        stored = MergedBoxes({"keys.rows": "1", "keys.columns": "2"}, {"tab1": 3})
        changed = {"keys.rows": Stamp("tab1", 3), "keys.columns": Stamp("tab2", 1)}
        merge_boxes(stored, {"keys.rows": "9", "keys.columns": "9"}, changed)
            MergedBoxes({"keys.rows": "1", "keys.columns": "9"}, {"tab1": 3, "tab2": 1})
    """
    before = stored or MergedBoxes(dict.fromkeys(answers, ""))
    if changed is None:
        return MergedBoxes({**before.answers, **answers}, before.pages)
    new = {box: stamp for box, stamp in changed.items() if stamp.number > before.pages.get(stamp.page, 0)}
    if not new:
        return None
    pages = dict(before.pages)
    for page, number in new.values():
        highest = max(number, pages.pop(page, 0))
        pages[page] = highest  # at the end, behind the pages that saved earlier
    newest = dict(list(pages.items())[-MAX_PAGES:])
    return MergedBoxes({**before.answers, **{box: answers[box] for box in new}}, newest)


def _on_sheet(key: ClassSheetKey) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the attempts of one student on one sheet, in whatever revision they were made."""
    return (
        class_attempts.c.student_id == key.student_id,
        class_attempts.c.activity_id == key.activity_id,
        class_attempts.c.sheet_key == key.sheet_key,
    )


def _merged(stored: ClassDraft | None, draft: ClassDraft) -> ClassDraft | None:
    """What is stored of a draft once another one, as a page sent it, is merged into it; None where nothing changes."""
    boxes = merge_boxes(MergedBoxes(stored.answers, stored.pages) if stored else None, draft.answers, draft.changed)
    if boxes is None:
        return None
    version, variant = (stored.version + 1, stored.variant) if stored else (1, draft.variant)
    return ClassDraft(boxes.answers, version, variant, pages=boxes.pages)


def _unfinished_work(row: Any) -> UnfinishedWork:
    """The draft and the last attempt of a row of _DRAFTS_BESIDE_ATTEMPTS."""
    draft = StoredClassDraft(row.student_id, row.sheet_key, VariantSizes(**row.variant), row.answers, row.saved_at)
    return UnfinishedWork(draft, row.attempts, row.last_id, row.last_answers, row.last_at, bool(row.handed_in_on_time))


def _draft_row(key: ClassSheetKey, draft: ClassDraft, at: datetime) -> dict[str, Any]:
    """The values of the row of class_drafts that holds a draft saved at that time."""
    return {"student_id": key.student_id, "activity_id": key.activity_id, "sheet_key": key.sheet_key,
            "answers": dict(draft.answers), "version": draft.version, "variant": asdict(draft.variant),
            "saved_at": at, "stamps": dict(draft.pages)}  # fmt: skip


def _attempt(row: Any) -> ClassAttempt:
    """The attempt of a row of class_attempts; JSON becomes VariantSizes and a tuple."""
    values = {**row._mapping, "variant": VariantSizes(**row.variant), "misconceptions": tuple(row.misconceptions)}
    return ClassAttempt(**values)
