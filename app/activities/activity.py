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

State = Literal["draft", "open"]  # what the instructor has set; times narrow "open"
Phase = Literal["draft", "waiting", "open", "closing", "closed"]  # what it comes to at a time; see Activity.phase
Variants = Literal["same", "per_student"]
Feedback = Literal["immediate", "after_hand_in", "after_close"]
Running = Literal["before", "after"]

MAX_ATTEMPTS_ALLOWED = 99
MAX_MINUTES = 7 * 24 * 60  # of extra time, and of the late window
GRACE = timedelta(seconds=30)  # what was on its way when the activity closed still counts
UNDO_TIME = timedelta(seconds=10)  # between a press of Close and the closing; less than GRACE
SETTLING_TIME = timedelta(seconds=5)  # after the grace, for what was accepted in its last moment to be committed


class PoliciesError(ValueError):
    """A policy has a value that it cannot have; the message is the name of the first such field."""


@checked_dataclass(frozen=True, config=ConfigDict(strict=True))
class Policies:
    """The rules of an activity; a value that is not allowed raises pydantic's ValidationError.

    `variants`: everybody has the same numbers, or each student their own. `feedback`: when marks are shown.
    `max_attempts`: on each sheet, 0 allows any number. `follow_share`: the score of a blank that is right given the
    student's own earlier answers. `run`: whether a head may be run before the first attempt, or only once the
    marks of an attempt may be seen, since a run shows the answers. `examples`: where students get hints, they can also
    see a sheet like theirs with other numbers, worked out. `exam`: exam conditions, under which nothing on the sheet
    helps a student before the activity is closed. `late_minutes`: how long after the closing time work is still
    accepted, marked as late. `names_listed`: whoever has the join code can read the names on the roster that nobody has
    claimed. `auto_submit`: whether what is typed on a sheet when the activity has ended becomes an attempt, handed
    in or not.
    """

    variants: Variants = "same"
    feedback: Feedback = "immediate"
    max_attempts: Annotated[int, Field(ge=0, le=MAX_ATTEMPTS_ALLOWED)] = 0
    follow_share: Annotated[float, Field(ge=0, le=1)] = 1.0
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
        """The policies with these values, and defaults for the rest; unknown names are ignored.

        Raises PoliciesError with the name of the first field, in the order of the class, whose value has another type
        ("1" is not a number, and nothing is converted), is not one of the choices or is out of range.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise PoliciesError(str(error.errors()[0]["loc"][0])) from None

    def gives_help(self, phase: Phase) -> bool:
        """Whether students see drawings, nudges and diagnoses, get hints and may run a head.

        Always, except under exam conditions, where it is in phase "closed" only.
        """
        return not self.exam or phase == "closed"

    @property
    def checks_freely(self) -> bool:
        """Whether students see marks at every check, and can check as often as they like."""
        return self.feedback == "immediate" and not self.max_attempts

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
    """A press of Close: when it was, the closing time that it set, and the times that Undo brings back."""

    pressed_at: datetime
    closes_at: datetime
    opens_before: datetime | None
    closes_before: datetime | None

    def can_be_undone(self, activity: Activity, at: datetime) -> bool:
        """Whether Close can still be undone at `at`.

        It can until the time that the press set, and for at least UNDO_TIME; but not once the closing time was changed
        in another way.
        """
        still_set = self.closes_at == activity.plan.closes_at
        return still_set and at < max(self.closes_at, self.pressed_at + UNDO_TIME)


@dataclass(frozen=True)
class Activity:
    """An activity with its newest revision: `revision` is the number of it, `content` what it holds.

    `extra_minutes` are those of the student it was read for, 0 where it was read for nobody; `longest_extra` is the
    most that anybody has. `answers_shown_at` is set once it was opened again after students could see the answers,
    `auto_submitted_at` once it has ended and the drafts have been auto-submitted.
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
    is_archived: bool = False  # its course: then extra time and the late window are over

    @property
    def policies(self) -> Policies:
        return self.plan.policies

    @property
    def closes_at(self) -> datetime | None:
        """The student's closing time, extra time included; None without a closing time."""
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=self.extra_minutes)

    @property
    def ends_at(self) -> datetime | None:
        """When nobody can hand anything in any more; None without a closing time.

        That is GRACE after the closing time; unless the course is archived, the longest extra time that a student has
        and the late window come before it.
        """
        minutes = 0 if self.is_archived else self.longest_extra + self.policies.late_minutes
        return self.plan.closes_at and self.plan.closes_at + timedelta(minutes=minutes) + GRACE

    @property
    def writable_until(self) -> datetime | None:
        """The end of the late window after the student's closing time; None without a closing time.

        In an archived course it is the closing time, without extra time and late window.
        """
        if self.is_archived:
            return self.plan.closes_at
        return self.closes_at and self.closes_at + timedelta(minutes=self.policies.late_minutes)

    def phase(self, at: datetime) -> Phase:
        """The phase at a time: "draft" in the state "draft", whatever the times.

        Otherwise "waiting" until `opens_at`, "open" until the student's closing time (for ever if there is none),
        "closing" until `ends_at` and, if the policies auto-submit drafts, until that has been done, and "closed" from
        then on. After the closing time, `opens_at` no longer matters. In an archived course, the closing time has no
        extra time. Answers, and marks that wait for the end, are shown in "closed" only.
        """
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
        """Whether work that arrives at that time is accepted: for GRACE longer than one can type."""
        return self._is_open_for(GRACE, at)

    def is_late(self, at: datetime) -> bool:
        """Whether an attempt made at that time counts as late.

        It does from GRACE after the student's closing time on, and always in an activity that was opened again after
        its answers had been shown.
        """
        after_closing = self.closes_at is not None and at >= self.closes_at + GRACE
        return after_closing or (self.answers_shown_at is not None and at >= self.answers_shown_at)

    def auto_submit_due(self, at: datetime) -> bool:
        """Whether auto-submitting is due at that time: from SETTLING_TIME after `ends_at` until it has been done.

        Never for a draft or without an end. It is due even if the policies submit no drafts.
        """
        if self.state == "draft" or self.ends_at is None or self._is_auto_submitted(at):
            return False
        return at >= self.ends_at + SETTLING_TIME

    def _is_auto_submitted(self, at: datetime) -> bool:
        """Whether drafts have been auto-submitted by that time.

        A later time, noted by a clock that was ahead, does not count: drafts may have changed since.
        """
        return self.auto_submitted_at is not None and self.auto_submitted_at <= at

    def seconds_left(self, at: datetime) -> int:
        """How many seconds are left until the student's closing time, rounded up; 0 without one, or after it."""
        left = (self.closes_at - at).total_seconds() if self.closes_at else 0
        return max(math.ceil(left), 0)

    def is_about_to_close(self, at: datetime) -> bool:
        """Whether it is open at that time, for UNDO_TIME more at most, as after a press of Close."""
        return self.phase(at) == "open" and 0 < self.seconds_left(at) <= UNDO_TIME.total_seconds()

    def changed(self, at: datetime, **changes: Any) -> Activity:
        """A copy of the activity with the given fields replaced from `at` on, and what follows for drafts and answers.

        `auto_submitted_at` becomes None, so that drafts are submitted again, if `ends_at` or the policy `auto_submit`
        changes. If this reopens the activity (`is_reopened_as`), `answers_shown_at` becomes `at`, unless it is set
        already: what students do from then on is late. Nothing is checked or stored.
        """
        after = replace(self, **changes)
        moved = (self.ends_at, self.policies.auto_submit) != (after.ends_at, after.policies.auto_submit)
        after = replace(after, auto_submitted_at=None) if moved else after
        return replace(after, answers_shown_at=self.answers_shown_at or at) if self.is_reopened_as(after, at) else after

    def close_pressed(self, at: datetime, minutes: int, last: UndoableClose | None) -> UndoableClose | None:
        """The press of Close at `at`, for the caller to store: its closing time and what Undo brings back. None changes
        nothing.

        An open activity closes in `minutes`, but not before UNDO_TIME has passed, even if that is later than its
        closing time was; one in phase "waiting" closes at once. The result is None in the phases "draft", "closing" and
        "closed", and with 0 `minutes` if the closing time (without extra time) comes by then anyway. Undo brings back
        the present opening and closing times, or those that `last`, the press before (None if it cannot be undone),
        would have brought back, if that was less than UNDO_TIME ago.
        """
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
        """Whether changing the activity to `after` reopens it: its phase at `at` is "closed", and would no longer be.

        An `after` whose drafts are due to be auto-submitted does not count: it will be closed as soon as that is done.
        """
        return self.phase(at) == "closed" and not after.auto_submit_due(at) and after.phase(at) != "closed"

    def _is_open_for(self, longer: timedelta, at: datetime) -> bool:
        """Whether its phase at `at` is "open" or "closing", and the student's late window ended less than `longer` ago,
        if at all.
        """
        end = self.writable_until
        return self.phase(at) in ("open", "closing") and (end is None or at < end + longer)
