"""The end of an activity as its page shows it to students and in a preview: the look back, and the exit ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException

from app.classes.frozen.frozen_library import frozen_ticket
from app.classes.promises import ticket_promise
from app.sheets.exit_tickets import Ticket, picking_rule
from app.store import Store
from app.store.exit_tickets import SHOWN_FROM
from app.web.shared.activity_steps import activity_steps, closing_notice, student_progress
from app.web.shared.forms import MAX_TEXT, FormReader
from app.web.shared.permissions import StudentAccess


def ticket_of(access: StudentAccess) -> Ticket:
    """The activity's exit ticket; 404 for an activity without one."""
    ticket = frozen_ticket(access.activity.content)
    if ticket is None:
        raise HTTPException(404)
    return ticket


def end_names(store: Store, access: StudentAccess, ticket_in: bool) -> dict[str, Any]:
    """What templates/student/end.html shows of an activity, with a look back only for a student."""
    steps = activity_steps(access, student_progress(store, access))
    return {
        "access": access,
        "steps": steps,
        "ticket": None,
        "ticket_in": ticket_in,
        "closing": closing_notice(store, access),
        "writable": access.activity.is_writable(access.now),
        "problem": "",
        "look_back": None,
        "further": (),
    }


def ticket_names(store: Store, access: StudentAccess, ticket_in: bool) -> dict[str, Any]:
    """`end_names` with an exit ticket on which nothing is written yet."""
    ticket = ticket_of(access)
    return end_names(store, access, ticket_in) | {
        "ticket": ticket,
        "rule": picking_rule(ticket),
        "promise": ticket_promise(access.activity),
        "longest": MAX_TEXT,
        "shown_from": SHOWN_FROM,
        "typed": {},
        "picks": (),
        "problems": {},
        "unasked": "",
    }


def read_ticket_form(form: FormReader, ticket: Ticket) -> dict[str, tuple[str, ...]]:
    """The form's answer to each question, by its key: the choices in the order sent, or one text."""
    typed = dict[str, tuple[str, ...]]()
    for question in ticket.questions:
        name = f"answer-{question.key}"
        answers = form.all(name) if question.choices else (form.multi_line(name),)
        typed[question.key] = tuple(filter(None, answers))
    return typed


def counted_answers(
    ticket: Ticket, typed: Mapping[str, tuple[str, ...]], picked: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """What is handed in of a form: where questions are picked, no answer to one that isn't picked any more."""
    counted = {question.key for question in ticket.questions if question.required or question.key in picked}
    # On a page where questions are picked, the picks begin with "".
    return {key: answers if key in counted or not picked else () for key, answers in typed.items()}
