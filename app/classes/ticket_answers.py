"""A student's answers on an exit ticket: checked against its questions, and kept as one text per answer.

The text of a chosen option is the option itself, and of several options one per line in the ticket's order; the text of
a scale is its point. Options have no line breaks, so the text says exactly what was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.sheets.exit_tickets import Ticket, TicketQuestion, picking_rule
from app.translation import gettext as _
from app.translation import ngettext

Typed = Mapping[str, Sequence[str]]  # by a question's key: what was written or chosen, without empty ones


def answer_texts(ticket: Ticket, typed: Typed) -> dict[str, str]:
    """The text of each answer by its question's key: the choices in the ticket's order, one per line, or free text."""
    texts = dict[str, str]()
    for question in ticket.questions:
        if values := typed[question.key]:
            chosen = [choice for choice in question.choices if choice in values]
            texts[question.key] = "\n".join(chosen or values)
    return texts


def chosen_in(question: TicketQuestion, text: str) -> tuple[str, ...]:
    r"""The choices in an answer's text, one per line; none if any line isn't a choice of the question.

    Example: with the options A, B and C, "A\nC" chooses A and C, and "A\nD" nothing.
    """
    values = tuple(text.split("\n"))
    return values if set(values) <= set(question.choices) else ()


def ticket_problems(ticket: Ticket, typed: Typed) -> dict[str, str]:
    """What keeps the answers from being handed in: a sentence by the question's key, or by "" about the whole
    ticket.
    """
    sentences = {question.key: _question_problem(question, typed[question.key]) for question in ticket.questions}
    problems = {key: sentence for key, sentence in sentences.items() if sentence}
    picked = sum(bool(typed[question.key]) for question in ticket.questions if not question.required)
    if problems:
        problems[""] = _("Nothing was handed in yet: see what is marked below.")
    elif picked < ticket.pick_at_least:
        problems[""] = picking_rule(ticket)
    elif 0 < ticket.pick_at_most < picked:
        problems[""] = ngettext(
            "Answer at most {count} question.", "Answer at most {count} questions.", ticket.pick_at_most
        ).format(count=ticket.pick_at_most)
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
