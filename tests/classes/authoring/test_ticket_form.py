"""The form of an exit ticket without pages: texts become settings and back, and questions are moved."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.classes.authoring.ticket_form import (
    QuestionFields,
    TicketTexts,
    arranged_ticket,
    draft_ticket,
    field_of_error,
    texts_of_ticket,
    ticket_settings,
)
from app.sheets.authoring.worksheet_settings import SettingError
from app.sheets.exit_tickets import MAX_TICKET_QUESTIONS, ticket_of_settings
from tests.helpers.own_ticket import OWN_TICKET

TEXTS = texts_of_ticket(OWN_TICKET)


def test_a_ticket_comes_back_equal_from_the_form() -> None:
    assert ticket_of_settings(OWN_TICKET.key, ticket_settings(TEXTS)) == OWN_TICKET
    assert draft_ticket(TEXTS).model_copy(update={"key": OWN_TICKET.key}) == OWN_TICKET


def test_new_questions_get_keys_of_their_own_and_old_ones_keep_theirs() -> None:
    new = tuple(
        QuestionFields(f"__{number}", text) for number, text in enumerate(("Why?", "Why?", "why", "为什么", "¿?"))
    )
    keys = [entry["key"] for entry in ticket_settings(replace(TEXTS, questions=(*TEXTS.questions, *new)))["questions"]]
    assert keys[:4] == [question.key for question in OWN_TICKET.questions]
    assert len(set(keys)) == len(keys)
    rewritten = tuple(replace(question, text="Something else?") for question in TEXTS.questions)
    kept = ticket_settings(replace(TEXTS, questions=rewritten))["questions"]
    assert [entry["key"] for entry in kept] == keys[:4]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "choose-one", "options": "one\n\n one "}, "options.why"),
        ({"kind": "scale", "first": "low"}, "last.why"),
        ({"kind": "scale", "last": "high"}, "first.why"),
        ({"kind": "essay"}, "kind.why"),
        ({"text": " "}, "text.why"),
    ],
)
def test_an_error_belongs_to_a_field(change: dict[str, Any], field: str) -> None:
    *others, why = TEXTS.questions
    texts = replace(TEXTS, questions=(*others, replace(why, **change)))
    with pytest.raises(SettingError) as refused:
        ticket_of_settings("", ticket_settings(texts))
    assert field_of_error(texts, refused.value) == field


@given(st.integers(0, 10_000))
def test_buttons_move_and_remove_one_question(seed: int) -> None:
    random, texts = Random(seed), TEXTS  # noqa: S311 - so that it can be repeated
    for _press in range(40):
        names = [question.name for question in texts.questions]
        verb = random.choice(("up", "down", "remove", "add", "add", "preview"))
        name = random.choice([*names, "nobody"])
        texts, focus = arranged_ticket(texts, verb if verb == "add" else f"{verb} {name}")
        after = [question.name for question in texts.questions]
        assert len(set(after)) == len(after) <= MAX_TICKET_QUESTIONS
        if verb in ("up", "down"):
            assert sorted(after) == sorted(names)
            assert focus == f"do-{verb}-{name}"
        if verb == "add":
            assert focus == (f"text-{after[-1]}" if len(after) > len(names) else "do-add")
        if verb == "remove":
            assert after == [each for each in names if each != name]
    assert arranged_ticket(TicketTexts(questions=()), "remove x")[0].questions == ()
