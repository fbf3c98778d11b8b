"""The sheets of an activity with how far a student is, as they stand above each sheet, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.classes.student_sheet import worksheet_titles
from app.store import SheetProgress, Store
from app.translation import gettext as _
from app.web.shared.permissions import StudentAccess
from app.web.shared.urls import url_for

StepState = Literal["new", "begun", "checked", "handed-in"]


@dataclass(frozen=True)
class Step:
    """One sheet in the list."""

    link: str
    title: str
    state: StepState
    here: bool  # whether it is the sheet on this page


def activity_steps(access: StudentAccess, progress: Mapping[str, SheetProgress], current: int = 0) -> tuple[Step, ...]:
    """Every sheet of the activity in order, with its link, title and state; one that `progress` lacks is "new".

    `progress` is by sheet key; `current` is the number, from 1, of the sheet on this page, 0 for none.
    """
    activity = access.activity
    sheets = zip(activity.content.items, worksheet_titles(activity.content), strict=True)
    return tuple(
        Step(
            link=url_for("show_class_sheet", activity_id=activity.id, number=number),
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
    """The first sheet after the current one that is not handed in, then those before it, then the exit ticket.

    The page of all their work, where none of these is left to do. `current` is a number as for `activity_steps`.
    """
    others = (*steps[current:], *steps[: max(current - 1, 0)])
    if left := next((step for step in others if step.state != "handed-in"), None):
        return NextStep(left.link, _("Next: {title}").format(title=left.title))
    if access.activity.content.ticket and not ticket_in:
        link = url_for("show_exit_ticket", activity_id=access.activity.id)
        return NextStep(link, _("Next: exit ticket"))
    return NextStep(url_for("show_my_work"), _("Your work"))


def student_progress(store: Store, access: StudentAccess) -> Mapping[str, SheetProgress]:
    """How far the student is with each sheet of the activity that they have typed anything on."""
    return store.classwork.progress(access.activity.id, access.student.id)


def _step_state(progress: SheetProgress | None) -> StepState:
    """The first that holds of "handed-in" (any attempt), "checked" (one attempt or more), and "begun" (only typed on).

    "new" for None: a sheet that the student has typed nothing on.
    """
    if progress is None:
        return "new"
    if progress.handed_in:
        return "handed-in"
    return "checked" if progress.attempts else "begun"
