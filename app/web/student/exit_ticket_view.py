"""The exit ticket of an activity as its page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_doc import Doc
from fastapi import HTTPException

from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.promises import ticket_promise
from app.classes.ticket_answers import Typed
from app.sheets.exit_tickets import Ticket, picking_rule
from app.store import Store
from app.store.exit_tickets import SHOWN_FROM
from app.web.shared.activity_steps import (
    ClosingNotice,
    NextStep,
    Step,
    activity_steps,
    closing_notice,
    next_step,
    student_progress,
)
from app.web.shared.forms import MAX_TEXT, FormReader
from app.web.shared.permissions import StudentAccess


@dataclass(frozen=True)
class TicketPage:
    """Everything that templates/student/exit_ticket.html shows."""

    access: Annotated[StudentAccess, Doc("The activity, its course and the student.")]
    steps: Annotated[tuple[Step, ...], Doc("The sheets of the activity.")]
    ticket: Annotated[Ticket, Doc("The exit ticket.")]
    rule: Annotated[str, Doc("How many questions have to be answered; empty where the ticket leaves that open.")]
    ticket_in: Annotated[bool, Doc("Whether this student has handed it in.")]
    closing: Annotated[ClosingNotice, Doc("When the activity closes, or that it has closed.")]
    writable: Annotated[bool, Doc("Whether it can be filled in now.")]
    next: Annotated[NextStep, Doc("Where to go on once it is handed in.")]
    promise: Annotated[str, Doc("What this page says becomes of the answers, as its form sends it back.")]
    longest: Annotated[int, Doc("How many characters an answer may have.")] = MAX_TEXT
    shown_from: Annotated[int, Doc("How many anonymous tickets must be in before any is shown.")] = SHOWN_FROM
    typed: Annotated[Typed, Doc("What was written or chosen, by question.")] = field(default_factory=dict)
    problems: Annotated[Mapping[str, str], Doc("What is wrong with an answer, by question.")] = field(
        default_factory=dict
    )
    problem: Annotated[str, Doc("Why nothing was handed in; empty if there is no problem.")] = ""
    unasked: Annotated[str, Doc("What was typed under questions that are no longer asked.")] = ""


def make_ticket_page(store: Store, access: StudentAccess, ticket_in: bool) -> TicketPage:
    """The page of the exit ticket, empty; 404 for an activity without one."""
    ticket = frozen_ticket(access.activity.content)
    if ticket is None:
        raise HTTPException(404)
    steps = activity_steps(access, student_progress(store, access))
    onward = next_step(access, steps, ticket_in)
    promise, rule = ticket_promise(access.activity), picking_rule(ticket)
    closing, writable = closing_notice(store, access), access.activity.is_writable(access.now)
    return TicketPage(access, steps, ticket, rule, ticket_in, closing, writable, onward, promise)


def read_ticket_form(form: FormReader, ticket: Ticket) -> dict[str, tuple[str, ...]]:
    """The form's answer to each question, by its key: the choices in the order sent, or one text."""
    typed = dict[str, tuple[str, ...]]()
    for question in ticket.questions:
        name = f"answer-{question.key}"
        typed[question.key] = tuple(filter(None, form.all(name) if question.choices else (form.multi_line(name),)))
    return typed
