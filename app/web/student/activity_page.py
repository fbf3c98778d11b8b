"""/class/N: what there is to do in an activity; and /class/N/closing: the time left, for the pages below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from app.classes.promises import rules_in_words
from app.store import Phase
from app.web.shared.activity_steps import (
    ClosingNotice,
    NextStep,
    Step,
    activity_steps,
    closing_notice,
    next_step,
    student_progress,
)
from app.web.shared.permissions import StudentAccess, StudentAccessDep
from app.web.shared.services import StoreDep
from app.web.shared.templating import local_time, render
from app.web.shared.threads import in_threads
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ClosingFragment:
    """Everything that templates/student/_closing.html shows."""

    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]


@dataclass(frozen=True)
class OverviewPage:
    """Everything that templates/student/activity.html shows."""

    access: Annotated[StudentAccess, Doc("The activity, its course and the student.")]
    phase: Annotated[Phase, Doc("Whether the activity waits, is open or has closed.")]
    writable: Annotated[bool, Doc("Whether the activity takes anything in from a page shown now.")]
    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]
    steps: Annotated[tuple[Step, ...], Doc("Its sheets, each with how far the student is.")]
    ticket_in: Annotated[bool, Doc("Whether the student has handed in the exit ticket.")]
    opens: Annotated[str, Doc("When it opens, in the course's time zone; empty if it has no opening time.")]
    rules: Annotated[tuple[str, ...], Doc("The rules for handing in a sheet, a sentence each.")]
    next: Annotated[NextStep, Doc("What to do next.")]


@router.get("/class/{activity_id:int}")
@in_threads("class")
def show_class_activity(store: StoreDep, access: StudentAccessDep) -> Response:
    """An activity's overview in any phase, with its sheets and exit ticket; the student counts as present from
    now on.
    """
    activity, phase = access.activity, access.phase
    ticket_in = store.classwork.arrive(activity.id, access.student.id)
    if phase == "open" and len(activity.content.items) == 1 and activity.content.ticket is None:
        return RedirectResponse(url_for("show_class_sheet", activity_id=activity.id, number=1), 303)
    if phase == "open" and not activity.content.items:
        return RedirectResponse(url_for("show_exit_ticket", activity_id=activity.id), 303)
    opens = activity.plan.opens_at
    steps = activity_steps(access, student_progress(store, access))
    page = OverviewPage(
        access=access,
        phase=phase,
        writable=activity.is_writable(access.now),
        closing=closing_notice(store, access),
        steps=steps,
        ticket_in=ticket_in,
        opens=local_time(opens, access.course.time_zone) if opens else "",
        rules=rules_in_words(activity) if steps else (),
        next=next_step(access, steps, ticket_in),
    )
    return render("student/activity.html", page)


@router.get("/class/{activity_id:int}/closing")
@in_threads("class")
def show_closing(store: StoreDep, access: StudentAccessDep) -> Response:
    """When the activity closes or has closed for this student; open pages poll this."""
    return render("student/_closing.html", ClosingFragment(closing_notice(store, access, is_update=True)))
