"""What a student answers on an exit ticket: checked against its questions, and kept as one text for each answer.

The text of a chosen option is the option itself, of a scale its point, of several options one a line in the ticket's
order. No option has a line break in it, so that the text says exactly what was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.sheets.exit_tickets import Ticket, TicketQuestion, picking_rule
from app.translation import gettext as _

Typed = Mapping[str, Sequence[str]]  # by the key of a question: what was written or chosen, nothing empty among it


def answer_texts(ticket: Ticket, typed: Typed) -> dict[str, str]:
    """The text of each answer by the key of its question: the choices in the ticket's order, one a line, or what was
    written.
    """
    texts = dict[str, str]()
    for question in ticket.questions:
        if values := typed[question.key]:
            chosen = [choice for choice in question.choices if choice in values]
            texts[question.key] = "\n".join(chosen or values)
    return texts


def chosen_in(question: TicketQuestion, text: str) -> tuple[str, ...]:
    """The choices that the text of an answer names, one a line; none if any line is no choice of the question.

    Example: with the options A, B and C, "A\\nC" chooses A and C, and "A\\nD" nothing.
    """
    values = tuple(text.split("\n"))
    return values if set(values) <= set(question.choices) else ()


def ticket_problems(ticket: Ticket, typed: Typed) -> dict[str, str]:
    """What keeps the answers from being handed in: a sentence by the question's key, and by "" one about the ticket."""
    sentences = {question.key: _question_problem(question, typed[question.key]) for question in ticket.questions}
    problems = {key: sentence for key, sentence in sentences.items() if sentence}
    picked = sum(bool(typed[question.key]) for question in ticket.questions if not question.required)
    if problems:
        problems[""] = _("Nothing was handed in yet: see what is marked below.")
    elif picked < ticket.pick_at_least:
        problems[""] = picking_rule(ticket)
    elif not any(typed.values()):
        problems[""] = _("Answer at least one question.")
    return problems


def _question_problem(question: TicketQuestion, values: Sequence[str]) -> str:
    if question.choices and not set(values) <= set(question.choices):
        return _("This cannot be chosen here: choose again.")
    if len(set(values)) > 1 and question.kind != "choose-several":
        return _("Choose one only.")
    if question.required and not values:
        return _("Choose an answer.") if question.choices else _("Write an answer.")
    return ""
