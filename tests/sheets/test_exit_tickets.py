"""Exit tickets as settings: every kind comes back equal, and what cannot be used is named."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from random import Random
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from app.sheets.authoring.worksheet_settings import SettingError
from app.sheets.exit_tickets import (
    MAX_OPTIONS,
    MAX_TICKET_QUESTIONS,
    SCALE_POINTS,
    ticket_of_settings,
)
from tests.helpers.own_ticket import OWN_TICKET, SETTINGS
from tests.helpers.processor_time import processor_time_s

NASTY = (
    " a ",
    "“quoted” \\ 'n' \"so\"",
    "=1+1",
    "#strong[x] $x$ @y",
    "<script>alert(1)</script>",
    "e\u0301",
    "№ 5",
    "1",
)


def random_settings(random: Random) -> dict[str, Any]:
    """Settings that make a ticket."""
    questions = list[dict[str, Any]]()
    for number in range(random.randint(1, 6)):
        kind = random.choice(("text", "choose-one", "choose-several", "scale"))
        question: dict[str, Any] = {"key": f"q{number}", "text": random.choice(NASTY), "kind": kind}
        if kind.startswith("choose"):
            question["options"] = random.sample(NASTY, random.randint(2, len(NASTY)))
        if kind == "scale":
            question["labels"] = random.sample(NASTY, 2)
        questions.append({**question, "required": random.random() < 0.5})
    optional = sum(not question["required"] for question in questions)
    numbers = {"pick_at_least": random.randint(0, optional), "anonymous": random.random() < 0.5}
    return {"title": random.choice(NASTY), "instruction": random.choice(NASTY), "questions": questions, **numbers}


@given(st.integers(0, 10_000))
def test_a_ticket_comes_back_equal_from_its_file(seed: int) -> None:
    ticket = ticket_of_settings("own-1", random_settings(Random(seed)))  # noqa: S311 - so that it can be repeated
    file = tomli_w.dumps(ticket.settings)
    assert ticket_of_settings("own-1", tomllib.loads(file)) == ticket


def test_what_is_left_out_has_its_default() -> None:
    ticket = ticket_of_settings("k", {"title": "T", "instruction": "I", "questions": [{"key": "q", "text": "Why?"}]})
    [question] = ticket.questions
    assert (question.kind, question.choices, question.required) == ("text", (), False)
    assert (ticket.pick_at_least, ticket.anonymous) == (0, True)
    assert OWN_TICKET.questions[0].choices == SCALE_POINTS


def changed(place: str, value: object) -> dict[str, Any]:
    """The settings of a good ticket with one of them changed, named by its path."""
    *above, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    whole: dict[str, Any] = deepcopy(SETTINGS)
    target: Any = whole
    for part in above:
        target = target[part]
    target[last] = value
    return whole


def test_a_long_list_of_options_is_refused_at_once() -> None:
    options = [f"{number}" for number in range(100_000)]

    def make() -> None:
        with pytest.raises(SettingError):
            ticket_of_settings("own-1", changed("questions.1.options", options))

    assert processor_time_s(make) < 5


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("title", ""),
        ("title", " \n"),
        ("title", "x" * 201),
        ("title", "x" * 1_000_000),
        ("title", ["x"]),
        ("instruction", "left\u202eright"),
        ("instruction", "nul\0"),
        ("questions", []),
        ("questions", "Why?"),
        ("questions", [SETTINGS["questions"][3]] * 2),
        ("questions", [{"key": f"q{n}", "text": "?"} for n in range(MAX_TICKET_QUESTIONS + 1)]),
        ("questions.0.labels", ["one"]),
        ("questions.0.labels.1", "x" * 61),
        ("questions.1.options", ["one"]),
        ("questions.1.options", ["one", "one "]),
        ("questions.1.options", [f"{n}" for n in range(MAX_OPTIONS + 1)]),
        ("questions.1.options.0", "\u2066"),
        ("questions.3.options", ["a", "b"]),
        ("questions.3.labels", ["a", "b"]),
        ("questions.3.kind", "essay"),
        ("questions.3.key", "../x"),
        ("questions.3.key", "x" * 61),
        ("questions.3.required", "yes"),
        ("questions.3.color", "red"),
        ("pick_at_least", 4),
        ("pick_at_least", -1),
        ("pick_at_least", "two"),
        ("anonymous", 3),
        ("course", "x"),
        ("key", "x"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(place: str, value: object) -> None:
    with pytest.raises(SettingError) as refused:
        ticket_of_settings("own-1", changed(place, value))
    assert ".".join(map(str, refused.value.path)) == place
    assert 0 < len(str(refused.value)) < 200
