"""Activities of a course: their policies, their times, and what students see of them, frozen in revisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Literal, get_args

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from .courses import Course, Student, as_code, new_code
from .questions import Questions, added_id, columns, hashed, now
from .tables import activities, courses, enrolments, revisions, students, visitors

State = Literal["draft", "open", "closed"]
Phase = Literal["draft", "waiting", "open", "closed"]
Variants = Literal["same", "per_student"]
Feedback = Literal["immediate", "after_hand_in", "after_close"]
Running = Literal["before", "after"]

JOIN_LENGTH = 6
MAX_ATTEMPTS_ALLOWED = 99
# What of a worksheet its answers depend on: with another title it is the same sheet.
_ASKED = ("model", "topic", "tokens", "rows", "notation", "kv_head_per_query_head", "decoder_tokens", "answers",
          "tokens_are")  # fmt: skip


class PoliciesError(ValueError):
    """Policies that cannot be; names the first field that is wrong."""


@dataclass(frozen=True)
class Policies:
    """How an activity is worked on.

    `max_attempts` counts those on each sheet, 0 allows any number; `run` is when a head may be run: before the first
    check or after it; `follow_share` is the score of a box that is right given earlier answers.
    """

    variants: Variants = "same"
    feedback: Feedback = "immediate"
    max_attempts: int = 0
    follow_share: float = 0.5
    hints: bool = True
    run: Running = "after"
    ticket_anonymous: bool = True

    def __post_init__(self) -> None:
        choices = {"variants": Variants, "feedback": Feedback, "run": Running}
        switches = ("hints", "ticket_anonymous")
        allowed = {name: get_args(kind) for name, kind in choices.items()} | dict.fromkeys(switches, (True, False))
        for name, values in {**allowed, "max_attempts": range(MAX_ATTEMPTS_ALLOWED + 1)}.items():
            if getattr(self, name) not in values:
                raise PoliciesError(name)
        if not 0 <= self.follow_share <= 1:
            raise PoliciesError("follow_share")

    def marks_visible(self, phase: Phase, handed_in: bool) -> bool:
        """Whether the marks of an attempt may be seen."""
        if self.feedback == "after_hand_in" and handed_in:
            return True
        return self.feedback == "immediate" or phase == "closed"

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Policies:
        """As they were kept; what was not there then has its default."""
        return cls(**{field.name: kept[field.name] for field in fields(cls) if field.name in kept})


@dataclass(frozen=True)
class FrozenWorksheet:
    """One worksheet of an activity, as it was defined when it was frozen."""

    worksheet: Mapping[str, Any]

    @property
    def sheet_key(self) -> str:
        """What drafts and attempts are kept under: it stays the same as long as the questions do."""
        asked = json.dumps([self.worksheet.get(name) for name in _ASKED], sort_keys=True, default=list)
        return f"{str(self.worksheet['key'])[:100]}@{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class FrozenTicket:
    """The exit ticket of an activity: key and text of each question."""

    key: str
    title: str
    instruction: str
    questions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Content:
    """What students see: worksheets in order and an exit ticket, either of which may be missing; which wording."""

    items: tuple[FrozenWorksheet, ...]
    ticket: FrozenTicket | None
    wording: str

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [dict(item.worksheet) for item in self.items],
            "ticket": asdict(self.ticket) if self.ticket else None,
            "wording": self.wording,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Content:
        ticket = kept["ticket"]
        questions = tuple((key, text) for key, text in ticket["questions"]) if ticket else ()
        return cls(
            tuple(FrozenWorksheet(worksheet) for worksheet in kept["items"]),
            FrozenTicket(ticket["key"], ticket["title"], ticket["instruction"], questions) if ticket else None,
            kept["wording"],
        )


@dataclass(frozen=True)
class Plan:
    """What an instructor decides about an activity, but for its content."""

    title: str
    day: date | None = None
    policies: Policies = Policies()
    opens_at: datetime | None = None
    closes_at: datetime | None = None


@dataclass(frozen=True)
class Activity:
    """An activity as it stands; `revision` is the number of the newest one."""

    id: int
    course_id: int
    join_code: str
    state: State
    plan: Plan
    revision: int
    content: Content

    @property
    def policies(self) -> Policies:
        return self.plan.policies

    def phase(self, at: datetime | None = None) -> Phase:
        """What it is at a time, or now: an open one waits until its opening time and closes by itself."""
        at, plan = at or now(), self.plan
        if self.state != "open":
            return self.state
        if plan.closes_at and at >= plan.closes_at:
            return "closed"
        return "waiting" if plan.opens_at and at < plan.opens_at else "open"


_ACTIVITY = [
    *(activities.c[name] for name in ("id", "course_id", "join_code", "state", "title", "day")),
    sa.cast(activities.c.policies, sa.Text),
    *(activities.c.opens_at, activities.c.closes_at, revisions.c.number, sa.cast(revisions.c.content, sa.Text)),
]
_STUDENT = columns(students, Student)
_OTHERS = revisions.alias()
_NEWEST = sa.select(sa.func.max(_OTHERS.c.number)).where(_OTHERS.c.activity_id == activities.c.id).scalar_subquery()
_FROM = activities.join(revisions, (revisions.c.activity_id == activities.c.id) & (revisions.c.number == _NEWEST))
_FOUND = sa.select(*_ACTIVITY).select_from(_FROM).order_by(activities.c.id.desc())
_IN_COURSE = _FROM.join(courses, courses.c.id == activities.c.course_id)
_WITH_COURSE = sa.select(*_ACTIVITY, *columns(courses, Course)).select_from(_IN_COURSE)
# Built once: a class asks this with every save, and to build it takes as long as to answer it.
_OF_VISITOR = (
    sa.select(*_ACTIVITY, *columns(courses, Course), *_STUDENT)
    .select_from(
        _IN_COURSE.join(enrolments, enrolments.c.course_id == activities.c.course_id)
        .join(visitors, visitors.c.id == enrolments.c.visitor_id)
        .join(students, students.c.id == enrolments.c.student_id)
    )
    .where(activities.c.id == sa.bindparam("activity_id"), visitors.c.token_hash == sa.bindparam("token_hash"))
)


class Activities(Questions):
    """What there is to do in a course."""

    def add(self, course: Course, plan: Plan, content: Content) -> Activity:
        """A draft with a join code of its own and its first revision."""
        while True:
            try:
                with self._writing() as connection:
                    row = {"course_id": course.id, "join_code": new_code(JOIN_LENGTH), "state": "draft",
                           "created_at": now(), **_planned(plan)}  # fmt: skip
                    activity_id = added_id(connection, activities, row)
                    self._freeze(connection, activity_id, 1, content)
            except IntegrityError:  # that code was given out already
                continue
            return Activity(activity_id, course.id, str(row["join_code"]), "draft", plan, 1, content)

    def find(self, activity_id: int) -> Activity | None:
        return next(iter(self._found(activities.c.id == activity_id)), None)

    def by_code(self, typed: str) -> tuple[Activity, Course] | None:
        """The activity that a join code opens, in whatever way it is typed; drafts and archives have no door."""
        open_to_all = (activities.c.state != "draft", courses.c.archived_at.is_(None))
        row = self._one(_WITH_COURSE.where(activities.c.join_code == as_code(typed), *open_to_all))
        return (_activity(row), Course(*row[len(_ACTIVITY) :])) if row else None

    def of_visitor(self, token: str, activity_id: int) -> tuple[Activity, Course, Student] | None:
        """An activity, its course, and as whom the browser with that token sits there; None where it does not."""
        row = self._one(_OF_VISITOR, activity_id=activity_id, token_hash=hashed(token))
        if row is None:
            return None
        course, student = row[len(_ACTIVITY) : -len(_STUDENT)], row[-len(_STUDENT) :]
        return _activity(row), Course(*course), Student(*student)

    def of_course(self, course: Course) -> tuple[Activity, ...]:
        """The activities of a course, the newest first."""
        return self._found(activities.c.course_id == course.id)

    def change(self, activity: Activity, plan: Plan) -> None:
        """Title, day, policies and times; what students see stays."""
        self._write(sa.update(activities).where(activities.c.id == activity.id).values(_planned(plan)))

    def set_state(self, activity: Activity, state: State) -> None:
        self._write(sa.update(activities).where(activities.c.id == activity.id).values(state=state))

    def revise(self, activity: Activity, content: Content) -> int:
        """The number of the revision that now holds this content.

        The one of a draft is replaced, since nobody has seen it; afterwards a new one is made, and old ones stay.
        """
        if content.as_json() == activity.content.as_json():
            return activity.revision
        with self._writing() as connection:
            if activity.state == "draft":
                this = (revisions.c.activity_id == activity.id, revisions.c.number == activity.revision)
                frozen = {"content": content.as_json(), "created_at": now()}
                connection.execute(sa.update(revisions).where(*this).values(frozen))
                return activity.revision
            self._freeze(connection, activity.id, activity.revision + 1, content)
            return activity.revision + 1

    def content(self, activity_id: int, revision: int) -> Content | None:
        """What students saw in a revision."""
        this = (revisions.c.activity_id == activity_id, revisions.c.number == revision)
        row = self._one(sa.select(revisions.c.content).where(*this))
        return Content.from_json(row[0]) if row else None

    def revisions(self, activity: Activity) -> dict[int, Content]:
        """Everything that students saw, by the number of its revision."""
        query = sa.select(revisions.c.number, revisions.c.content).where(revisions.c.activity_id == activity.id)
        return {row.number: Content.from_json(row.content) for row in self._all(query.order_by(revisions.c.number))}

    def _freeze(self, connection: sa.Connection, activity_id: int, number: int, content: Content) -> None:
        row = {"activity_id": activity_id, "number": number, "content": content.as_json(), "created_at": now()}
        connection.execute(sa.insert(revisions).values(row))

    def _found(self, *conditions: sa.ColumnElement[bool]) -> tuple[Activity, ...]:
        return tuple(_activity(row) for row in self._all(_FOUND.where(*conditions)))


def _activity(row: Sequence[Any]) -> Activity:
    """An activity from a row that begins with its columns."""
    activity_id, course_id, code, state, title, day, policies, opens_at, closes_at, number, content = row[:11]
    plan = Plan(title, day, _policies(policies), opens_at, closes_at)
    return Activity(activity_id, course_id, code, state, plan, number, _content(content))


@lru_cache(maxsize=256)
def _policies(text: str) -> Policies:
    return Policies.from_json(json.loads(text))


@lru_cache(maxsize=256)
def _content(text: str) -> Content:
    """What a revision holds, read once for all who ask."""
    return Content.from_json(json.loads(text))


def _planned(plan: Plan) -> dict[str, Any]:
    return {"title": plan.title, "day": plan.day, "policies": asdict(plan.policies), "opens_at": plan.opens_at,
            "closes_at": plan.closes_at}  # fmt: skip
