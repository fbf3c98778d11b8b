"""The sheets of an activity as a student works through them: their progress, what comes next, when it closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from app.classes.student_sheet import worksheet_titles
from app.store import SheetProgress, Store
from app.translation import gettext as _
from app.web.shared.permissions import StudentAccess
from app.web.shared.templating import clock_time, local_time

_POLL_S, _POLL_AT_THE_END_S = 60, 10  # how often a page checks whether its activity has closed
_END = timedelta(minutes=2)  # around the end, when answers are about to be shown
StepState = Literal["new", "begun", "checked", "handed-in"]


@dataclass(frozen=True)
class Step:
    """One sheet in the list."""

    link: str
    title: str
    state: StepState
    here: bool  # whether it is the sheet on this page


@dataclass(frozen=True)
class ClosingNotice:
    """When an activity closes or closed for a student, as templates/student/_closing.html shows it.

    "late" is the time when work is still accepted and marked late; "closing" the moment when typing is over but answers
    aren't shown yet. Times are texts in the course's time zone, or empty.
    """

    activity_id: int
    state: Literal["open", "late", "closing", "closed"]
    closes: str
    late_until: str
    extra_minutes: int
    closes_at: datetime | None
    now: datetime
    poll_s: int  # how long an open page waits before asking again; 0 for never
    auto_submits: bool  # whether saved work that isn't handed in is auto-submitted
    auto_submitted: tuple[str, ...] = ()  # titles of the sheets whose drafts were auto-submitted
    is_update: bool = False  # whether it updates a page that was already open


def activity_steps(access: StudentAccess, progress: Mapping[str, SheetProgress], current: int = 0) -> tuple[Step, ...]:
    """Every sheet of the activity in order, with its link, title and state; the current one is marked."""
    activity = access.activity
    sheets = zip(activity.content.items, worksheet_titles(activity.content), strict=True)
    return tuple(
        Step(
            link=access.links.sheet(number),
            title=title,
            state=_step_state(progress.get(item.sheet_key)),
            here=number == current,
        )
        for number, (item, title) in enumerate(sheets, start=1)
    )


@dataclass(frozen=True)
class NextStep:
    """Where a student goes on: a link and its label."""

    link: str
    label: str


def next_step(access: StudentAccess, steps: Sequence[Step], ticket_in: bool, current: int = 0) -> NextStep:
    """The link to the next sheet that isn't handed in, to the exit ticket, or to the page that looks back."""
    others = (*steps[current:], *steps[: max(current - 1, 0)])
    if left := next((step for step in others if step.state != "handed-in"), None):
        return NextStep(left.link, _("Next sheet"))
    if not access.activity.content.ticket:
        return NextStep(access.links.activity, _("Look back"))
    return NextStep(access.links.ticket, _("Look back") if ticket_in else _("Next: exit ticket"))


def student_progress(store: Store, access: StudentAccess) -> Mapping[str, SheetProgress]:
    """The student's progress on each sheet of the activity that they have typed on, by its key."""
    return store.classwork.progress(access.activity.id, access.student.id).sheets


def closing_notice(store: Store, access: StudentAccess, *, is_update: bool = False) -> ClosingNotice:
    """When the activity closes for this student, or what happened to their work when it closed."""
    activity, phase, now = access.activity, access.phase, access.now
    late = phase == "closing" and access.rules.is_writable
    is_ending = activity.ends_at is not None and abs(activity.ends_at - now) < _END
    return ClosingNotice(
        activity_id=activity.id,
        state="late" if late else phase if phase in ("closing", "closed") else "open",
        closes=short_time(activity.closes_at, now, access.course.time_zone),
        late_until=short_time(activity.writable_until, now, access.course.time_zone) if late else "",
        extra_minutes=activity.extra_minutes,
        closes_at=activity.closes_at,
        now=now,
        poll_s=0 if access.is_preview else _POLL_AT_THE_END_S if is_ending else _POLL_S,
        auto_submits=activity.policies.auto_submit,
        auto_submitted=_auto_submitted(store, access) if phase == "closed" else (),
        is_update=is_update,
    )


def _auto_submitted(store: Store, access: StudentAccess) -> tuple[str, ...]:
    content, activity_id = access.activity.content, access.activity.id
    attempts = store.classwork.attempts_of_student(access.student.id)
    last = {attempt.sheet_key: attempt.auto_submitted for attempt in attempts if attempt.activity_id == activity_id}
    sheets = zip(content.items, worksheet_titles(content), strict=True)
    return tuple(title for item, title in sheets if last.get(item.sheet_key))


def short_time(moment: datetime | None, now: datetime, time_zone: str) -> str:
    """A moment in the time zone: '10:50' if it is today there, otherwise '3 April, 10:50'."""
    if moment is None:
        return ""
    zone = ZoneInfo(time_zone)
    is_today = moment.astimezone(zone).date() == now.astimezone(zone).date()
    return (clock_time if is_today else local_time)(moment, time_zone)


def _step_state(progress: SheetProgress | None) -> StepState:
    if progress is None:
        return "new"
    if progress.handed_in:
        return "handed-in"
    return "checked" if progress.attempts else "begun"
