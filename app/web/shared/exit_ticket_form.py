"""The exit ticket of an activity as its page shows it, to students and in a preview."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException

from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.promises import ticket_promise
from app.sheets.exit_tickets import Ticket, picking_rule
from app.store import Store
from app.store.exit_tickets import SHOWN_FROM
from app.web.shared.activity_steps import activity_steps, closing_notice, next_step, student_progress
from app.web.shared.forms import MAX_TEXT, FormReader
from app.web.shared.permissions import StudentAccess


def ticket_of(access: StudentAccess) -> Ticket:
    """The activity's exit ticket; 404 for an activity without one."""
    ticket = frozen_ticket(access.activity.content)
    if ticket is None:
        raise HTTPException(404)
    return ticket


def ticket_names(store: Store, access: StudentAccess, ticket_in: bool) -> dict[str, Any]:
    """What templates/student/exit_ticket.html shows before anything is written."""
    ticket, steps = ticket_of(access), activity_steps(access, student_progress(store, access))
    return {
        "access": access,
        "steps": steps,
        "ticket": ticket,
        "rule": picking_rule(ticket),
        "ticket_in": ticket_in,
        "closing": closing_notice(store, access),
        "writable": access.activity.is_writable(access.now),
        "next": next_step(access, steps, ticket_in),
        "promise": ticket_promise(access.activity),
        "longest": MAX_TEXT,
        "shown_from": SHOWN_FROM,
        "typed": {},
        "problems": {},
        "problem": "",
        "unasked": "",
    }


def read_ticket_form(form: FormReader, ticket: Ticket) -> dict[str, tuple[str, ...]]:
    """The form's answer to each question, by its key: the choices in the order sent, or one text."""
    typed = dict[str, tuple[str, ...]]()
    for question in ticket.questions:
        name = f"answer-{question.key}"
        typed[question.key] = tuple(filter(None, form.all(name) if question.choices else (form.multi_line(name),)))
    return typed
