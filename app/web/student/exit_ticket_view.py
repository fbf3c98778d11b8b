"""The exit ticket of an activity as its page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_doc import Doc
from fastapi import HTTPException

from app.classes.promises import ticket_promise
from app.store import FrozenTicket, Store
from app.web.shared.activity_steps import (
    ClosingNotice,
    NextStep,
    Step,
    activity_steps,
    closing_notice,
    next_step,
    student_progress,
)
from app.web.shared.forms import MAX_TEXT
from app.web.shared.permissions import StudentAccess


@dataclass(frozen=True)
class TicketPage:
    """Everything that templates/student/exit_ticket.html shows."""

    access: Annotated[StudentAccess, Doc("The activity, its course and the student.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket: Annotated[FrozenTicket, Doc("The exit ticket.")]
    ticket_in: Annotated[bool, Doc("Whether this student has handed it in.")]
    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]
    writable: Annotated[bool, Doc("Whether it can be filled in now.")]
    next: Annotated[NextStep, Doc("Where to go on once it is handed in.")]
    promise: Annotated[str, Doc("What this page says becomes of the answers, as its form sends it back.")]
    form_id: Annotated[str, Doc("An id of this form, by which a request that is sent again is known.")]
    longest: Annotated[int, Doc("How many characters an answer may have.")] = MAX_TEXT
    typed: Annotated[Mapping[str, str], Doc("The answers as typed, by question.")] = field(default_factory=dict)
    problem: Annotated[str, Doc("Why nothing was handed in; empty if there is no problem.")] = ""
    unasked: Annotated[str, Doc("What was typed under questions that are no longer asked.")] = ""


def make_ticket_page(store: Store, access: StudentAccess, form_id: str, ticket_in: bool) -> TicketPage:
    """The page with the questions and the activity's sheets, nothing typed; raises 404 without an exit ticket."""
    ticket = access.activity.content.ticket
    if ticket is None:
        raise HTTPException(404)
    steps = activity_steps(access, student_progress(store, access))
    onward = next_step(access, steps, ticket_in)
    promise = ticket_promise(access.activity)
    closing, writable = closing_notice(store, access), access.activity.is_writable()
    return TicketPage(access, steps, ticket, ticket_in, closing, writable, onward, promise, form_id)
