"""The form of an exit ticket without pages: texts become settings and back, and questions are moved."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.classes.authoring.ticket_form import (
    arranged_ticket,
    draft_ticket,
    field_of_error,
    new_question,
    ticket_settings,
    typed_ticket,
)
from app.sheets.authoring.worksheet_settings import SettingError
from app.sheets.exit_tickets import MAX_TICKET_QUESTIONS, ticket_of_settings
from tests.helpers.own_ticket import OWN_TICKET

TYPED = typed_ticket(OWN_TICKET)


def test_a_ticket_comes_back_equal_from_the_form() -> None:
    assert ticket_of_settings(OWN_TICKET.key, ticket_settings(TYPED)) == OWN_TICKET
    assert draft_ticket(TYPED).model_copy(update={"key": OWN_TICKET.key}) == OWN_TICKET


def test_new_questions_get_keys_of_their_own_and_old_ones_keep_theirs() -> None:
    asked = ("Why?", "Why?", "why", "为什么", "¿?")
    new = [{**new_question(number), "text": text} for number, text in enumerate(asked)]
    settings = ticket_settings({**TYPED, "questions": [*TYPED["questions"], *new]})
    keys = [entry["key"] for entry in settings["questions"]]
    assert keys[:4] == [question.key for question in OWN_TICKET.questions]
    assert len(set(keys)) == len(keys)
    rewritten = [{**question, "text": "Something else?"} for question in TYPED["questions"]]
    kept = ticket_settings({**TYPED, "questions": rewritten})["questions"]
    assert [entry["key"] for entry in kept] == keys[:4]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "choose-one", "options": ["one", "", " one "]}, "options.why"),
        ({"kind": "scale", "labels": ["low", ""]}, "last.why"),
        ({"kind": "scale", "labels": ["", "high"]}, "first.why"),
        ({"kind": "essay"}, "kind.why"),
        ({"text": " "}, "text.why"),
    ],
)
def test_an_error_belongs_to_a_field(change: dict[str, Any], field: str) -> None:
    *others, why = TYPED["questions"]
    typed = {**TYPED, "questions": [*others, {**why, **change}]}
    with pytest.raises(SettingError) as refused:
        ticket_of_settings("", ticket_settings(typed))
    assert field_of_error(typed, refused.value) == field


@given(st.integers(0, 10_000))
def test_buttons_move_and_remove_one_question(seed: int) -> None:
    random, typed = Random(seed), TYPED  # noqa: S311 - so that it can be repeated
    for _press in range(40):
        names = [question["key"] for question in typed["questions"]]
        verb = random.choice(("up", "down", "remove", "add", "add", "preview"))
        name = random.choice([*names, "nobody"])
        typed, focus = arranged_ticket(typed, verb if verb == "add" else f"{verb} {name}")
        after = [question["key"] for question in typed["questions"]]
        assert len(set(after)) == len(after) <= MAX_TICKET_QUESTIONS
        if verb in ("up", "down"):
            assert sorted(after) == sorted(names)
            assert focus == f"do-{verb}-{name}"
        if verb == "add":
            assert focus == (f"text-{after[-1]}" if len(after) > len(names) else "do-add")
        if verb == "remove":
            assert after == [each for each in names if each != name]
    assert arranged_ticket({**TYPED, "questions": []}, "remove x")[0]["questions"] == []
