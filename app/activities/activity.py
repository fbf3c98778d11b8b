"""An activity of a course: its policies and times, and what follows from them at a moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from app.activities.content import Content

State = Literal["draft", "open"]  # set by the instructor; times narrow "open"
Phase = Literal["draft", "waiting", "open", "closing", "closed"]  # the state and times at a moment; see Activity.phase
Variants = Literal["same", "per_student"]
Feedback = Literal["immediate", "after_hand_in", "after_close"]
Running = Literal["before", "after"]
ProjectorView = Literal["join", "progress", "explain"]
Counting = Literal["last", "best", "first"]  # which of a student's attempts on a sheet counts

MAX_ATTEMPTS_ALLOWED = 99
MAX_MINUTES = 7 * 24 * 60  # for extra time and the late window
GRACE = timedelta(seconds=30)  # for work that was on its way when the activity closed
UNDO_TIME = timedelta(seconds=10)  # between a press of Close and the closing; less than GRACE
SETTLING_TIME = timedelta(seconds=5)  # after GRACE, for work accepted at the last moment to be committed


class PoliciesError(ValueError):
    """A policy has a forbidden value; the message is the name of the first such field."""


@checked_dataclass(frozen=True, config=ConfigDict(strict=True))
class Policies:
    """The rules of an activity; a forbidden value raises pydantic's ValidationError.

    `variants`: whether all students have the same numbers, or each their own.
    """

    variants: Variants = "same"
    feedback: Feedback = "immediate"
    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS_ALLOWED)] = 0
    marking: Literal["causes", "boxes", "rows"] = "causes"
    counting: Counting = "last"
    hints: bool = True
    run: Running = "after"
    ticket_anonymous: bool = True
    names_listed: bool = False
    exam: bool = False
    late_minutes: Annotated[int, Field(ge=0, le=MAX_MINUTES)] = 0
    auto_submit: bool = True
    examples: bool = True

    @classmethod
    def checked(cls, **values: Any) -> Policies:
        """The policies with these values, and defaults for the rest; unknown names are ignored."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise PoliciesError(str(error.errors()[0]["loc"][0])) from None

    def gives_help(self, phase: Phase) -> bool:
        """Whether students see drawings, nudges and diagnoses, get hints and may run a head."""
        return not self.exam or phase == "closed"

    @property
    def checks_freely(self) -> bool:
        """Whether students see marks at every check, and can check as often as they like."""
        return self.feedback == "immediate" and not self.max_attempts

    def marks_visible(self, phase: Phase, handed_in: bool) -> bool:
        """Whether a student may see an attempt's marks; `handed_in` says whether it was handed in."""
        if self.feedback == "after_hand_in" and handed_in:
            return True
        return self.feedback == "immediate" or phase == "closed"

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Policies:
        """The policies in stored JSON: missing fields get their defaults, unknown ones are ignored."""
        return cls.checked(**{known.name: stored[known.name] for known in fields(cls) if known.name in stored})


@dataclass(frozen=True)
class Plan:
    """What an instructor sets for an activity apart from its content; times of None mean no limit."""

    title: str
    day: date | None = None
    policies: Policies = field(default_factory=Policies)
    opens_at: datetime | None = None
    closes_at: datetime | None = None

    def closed_at(self, at: datetime) -> Plan:
        """The plan with `at` as closing time; an opening time later than a minute before `at` is dropped."""
        opens_at = None if self.opens_at and self.opens_at > at - timedelta(minutes=1) else self.opens_at
        return replace(self, closes_at=at, opens_at=opens_at)


@dataclass(frozen=True)
class UndoableClose:
    """A press of Close: when it was, the closing time that it set, and the times that Undo restores."""

    pressed_at: datetime
    closes_at: datetime
    opens_before: datetime | None
    closes_before: datetime | None

    def can_be_undone(self, activity: Activity, at: datetime) -> bool:
        still_set = self.closes_at == activity.plan.closes_at
        return still_set and at < max(self.closes_at, self.pressed_at + UNDO_TIME)


@dataclass(frozen=True)
class Projection:
    """What an activity's projector shows until a teacher changes it; sheets are numbered from 1."""

    view: ProjectorView = "join"
    sheet_number: int = 1
    misconception: str = ""  # the one to explain


@dataclass(frozen=True)
class Activity:
    """An activity with its newest revision: `revision` is its number, `content` what it holds.

    `extra_minutes` belong to the student it was read for, if any; `longest_extra` is the most that anybody has.
    """

    id: int
    course_id: int
    join_code: str
    state: State
    plan: Plan
    revision: int
    content: Content
    answers_shown_at: datetime | None = None
    auto_submitted_at: datetime | None = None
    longest_extra: int = 0  # minutes
    extra_minutes: int = 0
    is_archived: bool = False  # its course is archived: then extra time and the late window are over

    @property
    def policies(self) -> Policies:
        return self.plan.policies

    @property
    def closes_at(self) -> datetime | None:
        """The student's closing time, extra time included; None without a closing time."""
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=self.extra_minutes)

    @property
    def ends_at(self) -> datetime | None:
        """When the last person can no longer hand anything in; None without a closing time."""
        minutes = 0 if self.is_archived else self.longest_extra + self.policies.late_minutes
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=minutes) + GRACE

    @property
    def writable_until(self) -> datetime | None:
        """The end of the late window after the student's closing time; None without a closing time."""
        if self.is_archived:
            return self.plan.closes_at
        return self.closes_at and self.closes_at + timedelta(minutes=self.policies.late_minutes)

    def phase(self, at: datetime) -> Phase:
        """The phase at a time; in the state "draft" it is always "draft"."""
        opens_at = self.plan.opens_at
        closes_at = self.plan.closes_at if self.is_archived else self.closes_at
        if self.state == "draft":
            return "draft"
        if closes_at is None or at < closes_at:
            return "waiting" if opens_at and at < opens_at else "open"
        ended = self.ends_at is None or at >= self.ends_at
        settled = self._is_auto_submitted(at) or not self.policies.auto_submit
        return "closed" if ended and settled else "closing"

    def is_writable(self, at: datetime) -> bool:
        """Whether a page shown at that time can be typed in: until the end of the late window."""
        return self._is_open_for(timedelta(0), at)

    def accepts(self, at: datetime) -> bool:
        """Whether work arriving at that time is accepted: for GRACE longer than one can type."""
        return self._is_open_for(GRACE, at)

    def is_late(self, at: datetime) -> bool:
        """Whether an attempt made at that time is late."""
        after_closing = self.closes_at is not None and at >= self.closes_at + GRACE
        return after_closing or (self.answers_shown_at is not None and at >= self.answers_shown_at)

    def auto_submit_due(self, at: datetime) -> bool:
        """Whether auto-submitting is due: from SETTLING_TIME after `ends_at` until it has been done."""
        if self.state == "draft" or self.ends_at is None or self._is_auto_submitted(at):
            return False
        return at >= self.ends_at + SETTLING_TIME

    def _is_auto_submitted(self, at: datetime) -> bool:
        return self.auto_submitted_at is not None and self.auto_submitted_at <= at

    def seconds_left(self, at: datetime) -> int:
        """Seconds left until the student's closing time, rounded up; 0 without one, or after it."""
        left = (self.closes_at - at).total_seconds() if self.closes_at else 0
        return max(math.ceil(left), 0)

    def is_about_to_close(self, at: datetime) -> bool:
        """Whether it is open for at most UNDO_TIME more, as after a press of Close."""
        return self.phase(at) == "open" and 0 < self.seconds_left(at) <= UNDO_TIME.total_seconds()

    def changed(self, at: datetime, **changes: Any) -> Activity:
        """A copy with the given fields replaced from `at` on, and what follows for drafts and answers."""
        after = replace(self, **changes)
        moved = (self.ends_at, self.policies.auto_submit) != (after.ends_at, after.policies.auto_submit)
        after = replace(after, auto_submitted_at=None) if moved else after
        return replace(after, answers_shown_at=self.answers_shown_at or at) if self.is_reopened_as(after, at) else after

    def close_pressed(self, at: datetime, minutes: int, last: UndoableClose | None) -> UndoableClose | None:
        """The press of Close at `at`, for the caller to store: its closing time and what Undo restores."""
        phase, closes_at = self.phase(at), self.plan.closes_at
        if phase not in ("waiting", "open"):
            return None
        new = at if phase == "waiting" else at + max(timedelta(minutes=minutes), UNDO_TIME)
        if not minutes and closes_at and closes_at <= new:
            return None
        if last and at < last.pressed_at + UNDO_TIME:
            return replace(last, pressed_at=at, closes_at=new)
        return UndoableClose(at, new, self.plan.opens_at, closes_at)

    def is_reopened_as(self, after: Activity, at: datetime) -> bool:
        """Whether changing to `after` reopens it: its phase at `at` is "closed", and no longer would be."""
        return self.phase(at) == "closed" and not after.auto_submit_due(at) and after.phase(at) != "closed"

    def _is_open_for(self, longer: timedelta, at: datetime) -> bool:
        end = self.writable_until
        return self.phase(at) in ("open", "closing") and (end is None or at < end + longer)
