"""Exit-ticket answers put together: choices counted, and texts that say the same grouped."""

from __future__ import annotations

from datetime import date

import pytest

from app.classes.ticket_groups import choice_counts, group_answers, written_answers
from app.sheets.exit_tickets import TicketQuestion
from app.store import TicketAnswer

SEVERAL = TicketQuestion(key="clear", text="What?", kind="choose-several", options=("A", "B", "C"))
PACE = TicketQuestion(key="pace", text="Pace?", kind="scale", labels=("slow", "fast"))


def answers(*texts: str, question: str = "why", starred: str = "", hidden: str = "") -> list[TicketAnswer]:
    """Answers to a question, with ids 0, 1, ...; one of them starred or hidden."""
    return [
        TicketAnswer(str(number), question, text, None, date(2026, 3, 1), text == starred, False, text == hidden)
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("The KV cache.", "the kv-cache", True),
        ("Why?", "why", True),
        ("“Heads”", "heads", True),
        ("√d", "d", False),
        ("d_k", "d k", False),
        ("3-2", "32", False),  # a minus sign between numbers
        ("?", "!", False),  # nothing else is left of either
    ],
)
def test_texts_that_say_the_same_are_one_group(one: str, other: str, *, together: bool) -> None:
    assert (len(group_answers(answers(one, other))) == 1) == together


def test_starred_groups_come_first_then_the_largest() -> None:
    groups = group_answers(answers("masks", "heads", "Heads!", "heads", "softmax", starred="softmax", hidden="masks"))
    assert [(group.text, len(group.answers), group.starred, group.hidden) for group in groups] == [
        ("softmax", 1, True, False),
        ("heads", 3, False, False),
        ("masks", 1, False, True),
    ]


def test_each_choice_is_counted_of_those_who_chose_anything_offered() -> None:
    given = [*answers("A\nC", "C", "A\nD", question="clear"), *answers("4", question="pace")]
    assert [(each.text, len(each.answers), each.percent) for each in choice_counts(SEVERAL, given)] == [
        ("A", 1, 50.0),
        ("B", 0, 0.0),
        ("C", 2, 100.0),
    ]
    assert [each.label for each in choice_counts(PACE, given)] == ["slow", "", "", "", "fast"]
    assert [answer.text for answer in written_answers({"clear": SEVERAL, "pace": PACE}, given)] == ["A\nD"]
