"""Answers on an exit ticket: checked against its questions, and kept as one text each."""

from __future__ import annotations

import pytest

from app.classes.ticket_answers import Typed, answer_texts, chosen_in, ticket_problems
from app.sheets.exit_tickets import ticket_of_settings

TICKET = ticket_of_settings(
    "mine",
    {
        "title": "Bye",
        "instruction": "Answer.",
        "pick_at_least": 1,
        "questions": [
            {"key": "one", "text": "One?", "kind": "choose-one", "options": ["A", "B"], "required": True},
            {"key": "several", "text": "Which?", "kind": "choose-several", "options": ["A", "B", "C"]},
            {"key": "pace", "text": "Pace?", "kind": "scale", "labels": ["slow", "fast"]},
            {"key": "why", "text": "Why?"},
        ],
    },
)
_, SEVERAL, PACE, WHY = TICKET.questions
FINE: Typed = {"one": ["A"], "several": [], "pace": ["3"], "why": []}


@pytest.mark.parametrize(
    ("changes", "marked"),
    [
        ({}, set()),
        ({"several": ["C", "A"], "why": ["Because."]}, set()),
        ({"one": []}, {"one", ""}),  # required
        ({"one": ["C"]}, {"one", ""}),  # not offered
        ({"one": ["A", "B"]}, {"one", ""}),
        ({"several": ["A", "D"]}, {"several", ""}),
        ({"pace": ["6"]}, {"pace", ""}),
        ({"why": ["a", "b"]}, {"why", ""}),
        ({"pace": []}, {""}),  # one of those that are not required has to be picked
    ],
)
def test_what_cannot_be_taken_is_marked(changes: dict[str, list[str]], marked: set[str]) -> None:
    assert set(ticket_problems(TICKET, {**FINE, **changes})) == marked


def test_choices_are_kept_in_the_order_of_the_ticket() -> None:
    texts = answer_texts(TICKET, {**FINE, "several": ["C", "A"]})
    assert texts == {"one": "A", "several": "A\nC", "pace": "3"}
    assert chosen_in(SEVERAL, texts["several"]) == ("A", "C")


def test_a_text_that_holds_anything_else_chooses_nothing() -> None:
    assert chosen_in(SEVERAL, "A\nD") == ()
    assert chosen_in(PACE, "6") == ()
    assert chosen_in(WHY, "A") == ()
