"""Activities of a course: policies, times, and what students see, frozen in numbered revisions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from sqlalchemy.dialects import postgresql, sqlite

from .classwork import DRAFT_COLUMNS, ClassDraft, draft_of, question_name
from .courses import Course
from .queries import QueryBase, columns, from_row, hash_secret, insert_row
from .roster import Student, new_code, normalised_code
from .tables import (
    activities,
    class_drafts,
    courses,
    enrolments,
    extra_time,
    revision_snapshots,
    revisions,
    snapshots,
    students,
    undoable_closes,
    visitors,
)

State = Literal["draft", "open"]  # what the instructor has set; times narrow "open"
Phase = Literal["draft", "waiting", "open", "closing", "closed"]  # what it comes to at a time; see Activity.phase
Variants = Literal["same", "per_student"]
Feedback = Literal["immediate", "after_hand_in", "after_close"]
Running = Literal["before", "after"]
InsertInto = Callable[[sa.Table], sqlite.Insert | postgresql.Insert]

JOIN_CODE_LENGTH = 6
MAX_CODES_TRIED = 5  # of more than a hundred million
MAX_ATTEMPTS_ALLOWED = 99
MAX_MINUTES = 7 * 24 * 60  # of extra time, and of the late window
GRACE = timedelta(seconds=30)  # what was on its way when the activity closed still counts
UNDO_TIME = timedelta(seconds=10)  # between a press of Close and the closing; less than GRACE
SETTLING_TIME = timedelta(seconds=5)  # after the grace, for what was accepted in its last moment to be committed
# The fields of a worksheet that its right answers depend on; `title`, `models` and `follow_share` are none of them.
_QUESTION_FIELDS = ("model", "topic", "tokens", "rows", "notation", "kv_head_per_query_head", "decoder_tokens",
                    "answers", "tokens_are")  # fmt: skip


class PoliciesError(ValueError):
    """A policy has a value that it cannot have; the message is the name of the first such field."""


@checked_dataclass(frozen=True, config=ConfigDict(strict=True))
class Policies:
    """The rules of an activity; a value that is not allowed raises pydantic's ValidationError.

    `variants`: everybody has the same numbers, or each student their own. `feedback`: when marks are shown.
    `max_attempts`: on each sheet, 0 allows any number. `follow_share`: the score of a blank that is right given the
    student's own earlier answers. `run`: whether a head may be run before the first attempt, or only once the
    marks of an attempt may be seen, since a run shows the answers. `exam`:
    exam conditions, under which nothing on the sheet helps a student before the activity is closed. `late_minutes`: how
    long after the closing time work is still accepted, marked as late. `names_listed`: whoever has the join code can
    read the names on the roster that nobody has claimed. `take_in_drafts`: whether what is typed on a sheet when the
    activity has ended becomes an attempt, handed in or not.
    """

    variants: Variants = "same"
    feedback: Feedback = "immediate"
    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS_ALLOWED)] = 0
    follow_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    hints: bool = True
    run: Running = "after"
    ticket_anonymous: bool = True
    names_listed: bool = False
    exam: bool = False
    late_minutes: Annotated[int, Field(ge=0, le=MAX_MINUTES)] = 0
    take_in_drafts: bool = True

    @classmethod
    def checked(cls, **values: Any) -> Policies:
        """The policies with these values, defaults for the rest; PoliciesError names the first field that is wrong.

        No value is converted: "1" is no number. Names that are no fields are ignored.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise PoliciesError(str(error.errors()[0]["loc"][0])) from None

    def gives_help(self, phase: Phase) -> bool:
        """Whether students see drawings, nudges and diagnoses, get hints and may run a head: in an exam once closed."""
        return not self.exam or phase == "closed"

    def marks_visible(self, phase: Phase, handed_in: bool) -> bool:
        """Whether a student may see the marks of an attempt of theirs; `handed_in` says whether that attempt was.

        "immediate" feedback: always. "after_hand_in": if it was handed in, or the activity is closed. "after_close":
        only when the activity is closed.
        """
        if self.feedback == "after_hand_in" and handed_in:
            return True
        return self.feedback == "immediate" or phase == "closed"

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Policies:
        """The policies in stored JSON: a field that is missing gets its default, one that is unknown is ignored."""
        return cls.checked(**{known.name: stored[known.name] for known in fields(cls) if known.name in stored})


@dataclass(frozen=True)
class FrozenWorksheet:
    """One worksheet of an activity, with the fields of its definition as they were when it was frozen."""

    worksheet: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The worksheet's key in the library."""
        return str(self.worksheet["key"])

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What the teacher chose in place of the worksheet's own: its `model` by key, its `tokens`, and the `title`.

        Empty where nothing was chosen.
        """
        return dict(self.worksheet.get("chosen") or {})

    @property
    def title(self) -> str:
        """The title that everybody reads."""
        return str(self.chosen.get("title") or self.worksheet["title"])

    @property
    def questions(self) -> Mapping[str, str]:
        """Its open questions, in order, by what their answers are stored under: {'question.why-k': 'Why …?'}."""
        return {question_name(each["key"]): each["text"] for each in self.worksheet.get("questions") or ()}

    @property
    def sheet_key(self) -> str:
        """What drafts and attempts are stored under: it changes exactly when the questions change.

        A tolerance belongs to the questions too, and so do the edition, which a worksheet has whose model got another
        config in an open activity, and what was chosen for it; a worksheet without them has the key it had before there
        were any.

        Example: "llama-7b@9c1f0a52b6de", the worksheet's key and a hash of the fields that its answers depend on.
        """
        values = [self.worksheet.get(name) for name in _QUESTION_FIELDS]
        values += [value for name in ("tolerance", "edition", "chosen") if (value := self.worksheet.get(name))]
        questions = json.dumps(values, sort_keys=True, default=list)
        return f"{str(self.worksheet['key'])[:100]}@{hashlib.sha256(questions.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class FrozenTicket:
    """The exit ticket of an activity: its key and the settings of its file as they were when it was frozen."""

    ticket: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The ticket's key among the exit tickets."""
        return str(self.ticket["key"])

    @property
    def title(self) -> str:
        """What stands above its questions."""
        return str(self.ticket["title"])

    @property
    def questions(self) -> dict[str, str]:
        """The text of each question by its key, in order."""
        return {str(each["key"]): str(each["text"]) for each in self.ticket["questions"]}


@dataclass(frozen=True)
class Snapshot:
    """A text that revisions and runs name by its hash: the sections of a wording, or a model with its config."""

    kind: Literal["wording", "model"]
    content: str

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the content, in hex."""
        return hashlib.sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True)
class Content:
    """What students see: worksheets in order and an exit ticket, either of which may be missing.

    `wording` is the hash of its wording, `models` those of the models that its sheets may have, by their keys: the
    snapshots of these texts are stored with it. `snapshots` are the texts that it brings with it where it is new.
    """

    items: tuple[FrozenWorksheet, ...]
    ticket: FrozenTicket | None
    wording: str
    models: Mapping[str, str] = field(default_factory=dict)
    snapshots: tuple[Snapshot, ...] = field(default=(), compare=False, repr=False)

    @property
    def named(self) -> tuple[str, ...]:
        """The hashes of the snapshots that it names."""
        return tuple({self.wording, *self.models.values()})

    @cached_property
    def fingerprint(self) -> str:
        """Tells this content from any other: a hash of everything in it."""
        return hash_secret(json.dumps(self.as_json(), default=list))

    def as_json(self) -> dict[str, Any]:
        """The content as JSON values: "items", "ticket" (None if there is none), "wording" and "models"."""
        return {
            "items": [dict(item.worksheet) for item in self.items],
            "ticket": dict(self.ticket.ticket) if self.ticket else None,
            "wording": self.wording,
            "models": dict(self.models),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Content:
        """The content that `as_json` turned into JSON values."""
        return cls(
            tuple(FrozenWorksheet(worksheet) for worksheet in stored["items"]),
            FrozenTicket(stored["ticket"]) if stored["ticket"] else None,
            stored["wording"],
            stored.get("models", {}),
        )


@dataclass(frozen=True)
class Plan:
    """What an instructor sets for an activity apart from its content; times of None mean no limit."""

    title: str
    day: date | None = None
    policies: Policies = field(default_factory=Policies)
    opens_at: datetime | None = None
    closes_at: datetime | None = None


@dataclass(frozen=True)
class Activity:
    """An activity with its newest revision: `revision` is the number of it, `content` what it holds.

    `extra_minutes` are those of the student it was read for, 0 where it was read for nobody; `longest_extra` is the
    most that anybody has. `answers_shown_at` is set once it was opened again after students could see the answers,
    `drafts_taken_at` once it has ended and the drafts have been taken in.
    """

    id: int
    course_id: int
    join_code: str
    state: State
    plan: Plan
    revision: int
    content: Content
    answers_shown_at: datetime | None = None
    drafts_taken_at: datetime | None = None
    longest_extra: int = 0  # minutes
    extra_minutes: int = 0
    is_archived: bool = False  # its course: then extra time and the late window are over

    @property
    def policies(self) -> Policies:
        return self.plan.policies

    @property
    def closes_at(self) -> datetime | None:
        """The student's own closing time, extra time included; None where there is none."""
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=self.extra_minutes)

    @property
    def ends_at(self) -> datetime | None:
        """When nobody can hand anything in any more: after everybody's extra time, the late window and the grace."""
        minutes = 0 if self.is_archived else self.longest_extra + self.policies.late_minutes
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=minutes) + GRACE

    @property
    def writable_until(self) -> datetime | None:
        """The end of the student's late window, which is their closing time where there is none; None without both."""
        if self.is_archived:
            return self.plan.closes_at
        return self.closes_at and self.closes_at + timedelta(minutes=self.policies.late_minutes)

    def phase(self, at: datetime) -> Phase:
        """The phase at a time; a "draft" is one whatever its times.

        "waiting" until `opens_at`, "open" until the student's closing time, "closing" until nobody can hand anything in
        any more and drafts have been taken in, and "closed" from then on. Answers, and marks that wait for the end, are
        shown in "closed" only.
        """
        opens_at = self.plan.opens_at
        closes_at = self.plan.closes_at if self.is_archived else self.closes_at
        if self.state == "draft":
            return "draft"
        if closes_at is None or at < closes_at:
            return "waiting" if opens_at and at < opens_at else "open"
        ended = self.ends_at is None or at >= self.ends_at
        settled = self._drafts_are_taken(at) or not self.policies.take_in_drafts
        return "closed" if ended and settled else "closing"

    def is_writable(self, at: datetime) -> bool:
        """Whether a page shown at that time can be typed in: until the end of the late window."""
        return self._is_open_for(timedelta(0), at)

    def accepts(self, at: datetime) -> bool:
        """Whether work that arrives at that time is taken in: for GRACE longer than one can type."""
        return self._is_open_for(GRACE, at)

    def is_late(self, at: datetime) -> bool:
        """Whether an attempt made at that time counts as late.

        It does in the late window, except for what was on its way at the closing time, and always in an activity that
        was opened again after its answers had been shown.
        """
        after_closing = self.closes_at is not None and at >= self.closes_at + GRACE
        return after_closing or (self.answers_shown_at is not None and at >= self.answers_shown_at)

    def drafts_due(self, at: datetime) -> bool:
        """Whether drafts are to be taken in at that time: it has ended, and they have not been yet."""
        if self.state == "draft" or self.ends_at is None or self._drafts_are_taken(at):
            return False
        return at >= self.ends_at + SETTLING_TIME

    def _drafts_are_taken(self, at: datetime) -> bool:
        """Whether drafts have been taken in by that time; not by a clock that was ahead: they have changed since."""
        return self.drafts_taken_at is not None and self.drafts_taken_at <= at

    def seconds_left(self, at: datetime) -> int:
        """How long the activity is open for from that time on, rounded up; 0 without a closing time, or after it."""
        left = (self.closes_at - at).total_seconds() if self.closes_at else 0
        return max(math.ceil(left), 0)

    def is_about_to_close(self, at: datetime) -> bool:
        """Whether it is open for UNDO_TIME at most from that time on, as after a press of Close."""
        return self.phase(at) == "open" and 0 < self.seconds_left(at) <= UNDO_TIME.total_seconds()

    def changed(self, **changes: Any) -> Activity:
        """The activity with other values; where it ends at another time then, drafts are to be taken in there."""
        after = replace(self, **changes)
        moved = (self.ends_at, self.policies.take_in_drafts) != (after.ends_at, after.policies.take_in_drafts)
        return replace(after, drafts_taken_at=None) if moved else after

    def is_reopened_as(self, after: Activity, at: datetime) -> bool:
        """Whether students can see the answers at that time, and no longer once the activity is `after`."""
        return self.phase(at) == "closed" and not after.drafts_due(at) and after.phase(at) != "closed"

    def _is_open_for(self, longer: timedelta, at: datetime) -> bool:
        """Whether the activity is open at that time, or was until the late window ended less than `longer` ago."""
        end = self.writable_until
        return self.phase(at) in ("open", "closing") and (end is None or at < end + longer)


@dataclass(frozen=True)
class VisitorsActivity:
    """An activity, its course, the student that a browser is there, and their draft of the sheet that was asked for.

    There is no draft before the first save, and where no sheet was asked for.
    """

    activity: Activity
    course: Course
    student: Student
    draft: ClassDraft | None = None


_COLUMNS = [
    *(
        activities.c[name]
        for name in (
            "id",
            "course_id",
            "join_code",
            "state",
            "title",
            "day",
            "opens_at",
            "closes_at",
            "answers_shown_at",
            "drafts_taken_at",
        )
    ),
    sa.func.coalesce(
        sa.select(sa.func.max(extra_time.c.minutes))
        .where(extra_time.c.activity_id == activities.c.id)
        .correlate(activities)
        .scalar_subquery(),
        0,
    ).label("longest_extra"),
    revisions.c.number.label("revision"),
    courses.c.archived_at.is_not(None).label("is_archived"),
    # As text, so that equal policies and contents are parsed once for all who ask.
    sa.cast(activities.c.policies, sa.Text).label("policies"),
    sa.cast(revisions.c.content, sa.Text).label("content"),
]
_OTHERS = revisions.alias()
_NEWEST = sa.select(sa.func.max(_OTHERS.c.number)).where(_OTHERS.c.activity_id == activities.c.id).scalar_subquery()
_IN_COURSE = activities.join(
    revisions, (revisions.c.activity_id == activities.c.id) & (revisions.c.number == _NEWEST)
).join(courses, courses.c.id == activities.c.course_id)
_SELECT = sa.select(*_COLUMNS).select_from(_IN_COURSE).order_by(activities.c.id.desc())
_SELECT_WITH_COURSE = sa.select(*_COLUMNS, *columns(courses, Course, "course__")).select_from(_IN_COURSE)
# Built once: a class runs this with every save, and building it takes as long as executing it.
_SELECT_OF_VISITOR = (
    sa.select(
        *_COLUMNS,
        sa.func.coalesce(extra_time.c.minutes, 0).label("extra_minutes"),
        *columns(courses, Course, "course__"),
        *columns(students, Student, "student__"),
        *DRAFT_COLUMNS,
    )
    .select_from(
        _IN_COURSE.join(enrolments, enrolments.c.course_id == activities.c.course_id)
        .join(visitors, visitors.c.id == enrolments.c.visitor_id)
        .join(students, students.c.id == enrolments.c.student_id)
        .outerjoin(
            extra_time, (extra_time.c.activity_id == activities.c.id) & (extra_time.c.student_id == students.c.id)
        )
        .outerjoin(
            class_drafts,
            (class_drafts.c.activity_id == activities.c.id)
            & (class_drafts.c.student_id == students.c.id)
            & (class_drafts.c.sheet_key == sa.bindparam("sheet_key")),
        )
    )
    .where(activities.c.id == sa.bindparam("activity_id"), visitors.c.token_hash == sa.bindparam("token_hash"))
)


def questions_asked(revisions: Mapping[int, Content]) -> dict[tuple[str, str], str]:
    """Every open question that an activity ever asked, by sheet key and name, as it was asked last; new ones first."""
    asked = dict[tuple[str, str], str]()
    for _number, content in sorted(revisions.items(), reverse=True):
        for item in content.items:
            for name, text in item.questions.items():
                asked.setdefault((item.sheet_key, name), text)
    return asked


class Activities(QueryBase):
    """Queries on activities and their revisions."""

    def add(self, course: Course, plan: Plan, content: Content) -> Activity:
        """Create an activity in state "draft", with a random unused join code and this content as revision 1.

        Raises IntegrityError where the course has been deleted meanwhile.
        """
        for _ in range(MAX_CODES_TRIED):
            row = {"course_id": course.id, "join_code": new_code(JOIN_CODE_LENGTH), "state": "draft",
                   "created_at": self.now(), **_plan_values(plan)}  # fmt: skip
            insert = self._insert_into(activities).values(row)
            unless_used = insert.on_conflict_do_nothing(index_elements=[activities.c.join_code])
            with self.transaction() as connection:
                activity_id = connection.scalar(unless_used.returning(activities.c.id))
                if activity_id is not None:
                    self._insert_revision(connection, activity_id, 1, content)
                    return Activity(activity_id, course.id, str(row["join_code"]), "draft", plan, 1, content)
        raise RuntimeError("every join code that was tried is in use")

    def find(self, activity_id: int) -> Activity | None:
        """The activity with that id; None if there is none."""
        return next(iter(self._select(activities.c.id == activity_id)), None)

    def by_code(self, typed: str) -> tuple[Activity, Course] | None:
        """The activity with this join code, and its course; None for an unknown code, a draft or an archived course.

        Lower case, spaces and hyphens in the typed code do not matter. Closed activities are found.
        """
        joinable = (activities.c.state != "draft", courses.c.archived_at.is_(None))
        this = activities.c.join_code == normalised_code(typed)
        row = self._fetch_one(_SELECT_WITH_COURSE.where(this, *joinable))
        return (_activity(row), from_row(Course, row, "course__")) if row else None

    def of_visitor(self, token: str, activity_id: int, sheet_key: str = "") -> VisitorsActivity | None:
        """An activity with the student that the browser with this token is enrolled as there.

        The activity has this student's extra time. None if there is no such activity or visitor, or if the visitor is
        not enrolled in the course. Drafts and closed activities are found: the caller refuses them.
        """
        row = self._fetch_one(
            _SELECT_OF_VISITOR, activity_id=activity_id, token_hash=hash_secret(token), sheet_key=sheet_key
        )
        if row is None:
            return None
        activity = replace(_activity(row), extra_minutes=row.extra_minutes)
        draft = None if row.version is None else draft_of(row)
        return VisitorsActivity(activity, from_row(Course, row, "course__"), from_row(Student, row, "student__"), draft)

    def of_course(self, course: Course) -> tuple[Activity, ...]:
        """The activities of a course in whatever state, newest first."""
        return self._select(activities.c.course_id == course.id)

    def of_student(self, student: Student) -> tuple[Activity, ...]:
        """The activities of a student's course in whatever state, newest first, with this student's extra time."""
        rows = self._fetch_all(
            sa.select(extra_time.c.activity_id, extra_time.c.minutes).where(extra_time.c.student_id == student.id)
        )
        own = {row.activity_id: row.minutes for row in rows}
        of_course = self._select(activities.c.course_id == student.course_id)
        return tuple(replace(activity, extra_minutes=own.get(activity.id, 0)) for activity in of_course)

    def change(self, activity: Activity, plan: Plan) -> None:
        """Store another plan: title, day, policies and times. The content stays.

        Where students could see the answers and the new plan opens the activity again, that is noted: what they do from
        then on is late.
        """
        self._change_clock(activity, activity.changed(plan=plan), _plan_values(plan))

    def delete(self, activity: Activity) -> None:
        """Delete an activity for good, with its revisions and all that students did in it."""
        self._execute(sa.delete(activities).where(activities.c.id == activity.id))

    def set_state(self, activity: Activity, state: State) -> None:
        """Set an activity's state; nothing else changes, and the given Activity keeps its old one."""
        self._execute(sa.update(activities).where(activities.c.id == activity.id).values(state=state))

    def close(self, activity: Activity, at: datetime | None = None) -> None:
        """Set the closing time of an activity, by default to now.

        An opening time that is less than a minute before it goes. Nothing else of the plan is stored.
        """
        at, opens_at = at or self.now(), activity.plan.opens_at
        opens_at = None if opens_at and opens_at > at - timedelta(minutes=1) else opens_at
        times: dict[str, Any] = {"closes_at": at, "opens_at": opens_at}
        self._change_clock(activity, activity.changed(plan=replace(activity.plan, **times)), times)

    def close_undoably(self, activity: Activity, minutes: int = 0) -> bool:
        """Close an activity in so many minutes, at the earliest in UNDO_TIME, so that until then it can be undone.

        One that is not open yet closes at once. Two presses within UNDO_TIME are undone together. Nothing happens, and
        the answer is False, for a draft, for an activity that has closed, and without `minutes` for one that is about
        to close anyway.
        """
        with self.transaction():
            current, now = self.locked(activity), self.now()
            phase = current.phase(now) if current else "draft"
            if current is None or phase not in ("waiting", "open"):
                return False
            at = now if phase == "waiting" else now + max(timedelta(minutes=minutes), UNDO_TIME)
            if not minutes and current.plan.closes_at and current.plan.closes_at <= at:
                return False
            last = self._undoable_close(current)
            before = {"opens_before": current.plan.opens_at, "closes_before": current.plan.closes_at}
            if last and now < last.pressed_at + UNDO_TIME:
                before = {"opens_before": last.opens_before, "closes_before": last.closes_before}
            self.close(current, at)
            row = {"pressed_at": now, "closes_at": at, **before}
            insert = self._insert_into(undoable_closes).values(activity_id=activity.id, **row)
            self._execute(insert.on_conflict_do_update(index_elements=[undoable_closes.c.activity_id], set_=row))
        return True

    def can_undo_close(self, activity: Activity) -> bool:
        """Whether the last press of Close can be undone now.

        It can until the time that it set, and for UNDO_TIME where it closed an activity that was not open yet; but not
        once the times were changed in another way.
        """
        return self._undoable_close(activity) is not None

    def undo_close(self, activity: Activity) -> bool:
        """Put the opening and closing times back as they were before Close was pressed; False where it is too late.

        Nothing else has to be undone: until then no answers are shown, no draft is taken in, and no work is late.
        """
        with self.transaction():
            current = self.locked(activity)
            row = self._undoable_close(current) if current else None
            if current is None or row is None:
                return False
            self.change(current, replace(current.plan, opens_at=row.opens_before, closes_at=row.closes_before))
            self._execute(sa.delete(undoable_closes).where(undoable_closes.c.activity_id == activity.id))
        return True

    def _undoable_close(self, activity: Activity) -> Any:
        """The row of the last press of Close, None where it can no longer be undone."""
        row = self._fetch_one(sa.select(undoable_closes).where(undoable_closes.c.activity_id == activity.id))
        if row is None or row.closes_at != activity.plan.closes_at:
            return None
        return row if self.now() < max(row.closes_at, row.pressed_at + UNDO_TIME) else None

    def extra_times(self, activity_id: int) -> dict[int, int]:
        """The extra minutes of each student of an activity who has some, by the student's id."""
        query = sa.select(extra_time.c.student_id, extra_time.c.minutes)
        rows = self._fetch_all(query.where(extra_time.c.activity_id == activity_id))
        return {row.student_id: row.minutes for row in rows}

    def set_extra_time(self, activity: Activity, student_id: int, minutes: int) -> None:
        """Give a student so many minutes after the closing time, in place of what they had; 0 takes them away."""
        of_others = [m for student, m in self.extra_times(activity.id).items() if student != student_id]
        changed = activity.changed(longest_extra=max([minutes, *of_others]))
        this = (extra_time.c.activity_id == activity.id, extra_time.c.student_id == student_id)
        with self.transaction():
            self._execute(sa.delete(extra_time).where(*this))
            if minutes:
                row = {"activity_id": activity.id, "student_id": student_id, "minutes": minutes}
                self._execute(sa.insert(extra_time).values(row))
            self._change_clock(activity, changed, {})

    def ended(self) -> tuple[int, ...]:
        """The ids of the activities whose drafts may have to be taken in now; `drafts_due` says whether they have."""
        at, taken_at = self.now(), activities.c.drafts_taken_at
        untaken = (activities.c.state == "open", sa.or_(taken_at.is_(None), taken_at > at))
        query = sa.select(activities.c.id).where(*untaken, activities.c.closes_at <= at - GRACE)
        return tuple(row.id for row in self._fetch_all(query.order_by(activities.c.id)))

    def locked(self, activity: Activity) -> Activity | None:
        """The activity as it is now, None if it is gone; nobody changes it until this thread's `transaction()` ends."""
        self._fetch_one(sa.select(activities.c.id).where(activities.c.id == activity.id).with_for_update())
        return self.find(activity.id)  # a statement of its own, which sees what was stored while it waited for the lock

    def note_drafts_taken(self, activity: Activity) -> None:
        """Store that the drafts of an activity which has ended have been taken in."""
        self._execute(sa.update(activities).where(activities.c.id == activity.id).values(drafts_taken_at=self.now()))

    def _change_clock(self, before: Activity, after: Activity, values: Mapping[str, Any]) -> None:
        """Store these values of an activity, and what another end of it means.

        Drafts are to be taken in at the new end, and if it was closed and is no longer, its answers have been shown.
        """
        now = self.now()
        shown_at = before.answers_shown_at or now if before.is_reopened_as(after, now) else before.answers_shown_at
        times = {"drafts_taken_at": after.drafts_taken_at, "answers_shown_at": shown_at}
        self._execute(sa.update(activities).where(activities.c.id == before.id).values(**values, **times))

    def revise(self, activity: Activity, content: Content) -> int:
        """Store another content; return the number of the revision that holds it now.

        In state "draft" the newest revision is overwritten and keeps its number, since no student has seen it.
        Otherwise the content becomes a new revision, and the old ones stay. Content equal to the activity's changes
        nothing.
        """
        if content.as_json() == activity.content.as_json():
            return activity.revision
        with self.transaction() as connection:
            if activity.state == "draft":
                self._replace_content(connection, activity.id, activity.revision, content)
                return activity.revision
            self._insert_revision(connection, activity.id, activity.revision + 1, content)
            return activity.revision + 1

    def complete(self, activity_id: int, revision: int, content: Content) -> None:
        """Store a revision's content with snapshots that it lacked; everything else in it must be as it was."""
        with self.transaction() as connection:
            self._replace_content(connection, activity_id, revision, content)

    def snapshots(self, hashes: Iterable[str]) -> Mapping[str, str]:
        """The contents of these snapshots by hash; a hash that none has is left out."""
        query = sa.select(snapshots.c.hash, snapshots.c.content).where(snapshots.c.hash.in_(list(hashes)))
        return {row.hash: row.content for row in self._fetch_all(query)}

    def content(self, activity_id: int, revision: int) -> Content | None:
        """The content of one revision; None if there is no such revision."""
        this = (revisions.c.activity_id == activity_id, revisions.c.number == revision)
        row = self._fetch_one(sa.select(revisions.c.content).where(*this))
        return Content.from_json(row.content) if row else None

    def revisions(self, activity: Activity) -> dict[int, Content]:
        """The content of every revision of an activity by its number, in ascending order, the newest included."""
        query = sa.select(revisions.c.number, revisions.c.content).where(revisions.c.activity_id == activity.id)
        return {
            row.number: Content.from_json(row.content) for row in self._fetch_all(query.order_by(revisions.c.number))
        }

    def _insert_revision(self, connection: sa.Connection, activity_id: int, number: int, content: Content) -> None:
        """Insert a content as the revision of an activity with that number, created now."""
        keep_snapshots(connection, self._insert_into, content.snapshots, self.now())
        row = {"activity_id": activity_id, "number": number, "content": content.as_json(), "created_at": self.now()}
        revision_id = insert_row(connection, revisions, row)
        name_snapshots(connection, revision_snapshots.c.revision_id, revision_id, content.named)

    def _replace_content(self, connection: sa.Connection, activity_id: int, number: int, content: Content) -> None:
        """Store another content as a revision that is there already."""
        keep_snapshots(connection, self._insert_into, content.snapshots, self.now())
        this = (revisions.c.activity_id == activity_id, revisions.c.number == number)
        connection.execute(sa.update(revisions).where(*this).values(content=content.as_json()))
        revision_id = connection.scalars(sa.select(revisions.c.id).where(*this)).one()
        connection.execute(sa.delete(revision_snapshots).where(revision_snapshots.c.revision_id == revision_id))
        name_snapshots(connection, revision_snapshots.c.revision_id, revision_id, content.named)

    def _select(self, *conditions: sa.ColumnElement[bool]) -> tuple[Activity, ...]:
        """The activities that meet every condition, newest first."""
        return tuple(_activity(row) for row in self._fetch_all(_SELECT.where(*conditions)))


def keep_snapshots(connection: sa.Connection, insert_into: InsertInto, kept: Iterable[Snapshot], at: datetime) -> None:
    """Store snapshots in the transaction of the row that names them; one that is there already is kept from now on.

    Housekeeping deletes those that nothing names, but none that was kept within the last days.
    """
    for snapshot in sorted(kept, key=lambda snapshot: snapshot.hash):  # always in one order, so that nobody deadlocks
        row = {"hash": snapshot.hash, "kind": snapshot.kind, "content": snapshot.content, "kept_at": at}
        insert, again = insert_into(snapshots).values(row), {"kept_at": at}
        connection.execute(insert.on_conflict_do_update(index_elements=[snapshots.c.hash], set_=again))


def name_snapshots(connection: sa.Connection, owner: sa.Column[int], owner_id: int, hashes: Iterable[str]) -> None:
    """Store that a revision or regrade names these snapshots, as far as they are stored."""
    named = sa.select(sa.literal(owner_id), snapshots.c.hash).where(snapshots.c.hash.in_(list(hashes)))
    connection.execute(sa.insert(owner.table).from_select([owner.name, "hash"], named))


def _activity(row: Any) -> Activity:
    """The activity of a row that has the columns _COLUMNS."""
    plan = Plan(row.title, row.day, _policies(row.policies), row.opens_at, row.closes_at)
    return Activity(row.id, row.course_id, row.join_code, row.state, plan, row.revision, _content(row.content),
                    row.answers_shown_at, row.drafts_taken_at, row.longest_extra,
                    is_archived=row.is_archived)  # fmt: skip


@lru_cache(maxsize=256)
def _policies(text: str) -> Policies:
    """The policies that are stored as this JSON text."""
    return Policies.from_json(json.loads(text))


@lru_cache(maxsize=256)
def _content(text: str) -> Content:
    """The content that is stored as this JSON text."""
    return Content.from_json(json.loads(text))


def _plan_values(plan: Plan) -> dict[str, Any]:
    """The columns of an activity that hold its plan."""
    return {"title": plan.title, "day": plan.day, "policies": asdict(plan.policies), "opens_at": plan.opens_at,
            "closes_at": plan.closes_at}  # fmt: skip
