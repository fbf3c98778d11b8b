"""The page to begin the next meeting with."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI

from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.marked_classroom import MarkedClassroom, classroom_with_tickets, table_rows
from tests.helpers.own_ticket import open_own_ticket

NO_PROJECTION = {**KEY, "output.columns": "128"}


def test_one_page_for_the_next_meeting(app: FastAPI) -> None:
    classroom = classroom_with_tickets(app, anonymous=True)
    for number, answers in enumerate([WIDE, WIDE, NO_PROJECTION]):
        classroom.hand_in(classroom.student(f"S{number}"), answers)
    exit_tickets = classroom.store.exit_tickets
    for one in exit_tickets.answers(classroom.activity):
        starred, hidden = one.text != "Why √d?", one.text == "a rude word"
        exit_tickets.mark(classroom.activity.id, one.id, starred=starred, hidden=hidden)
    page = classroom.page("/summary")
    explanation = classroom.school.library.wording.misconception("head-as-wide-as-model", "explanation")
    headings = [text for _, text in page.find("h3")]
    assert "Head as wide as the model" in headings[0]
    assert re.findall(r"\d+", headings[0]) == ["2", "6", "2"]
    assert explanation in [text for _, text in page.find("p")]
    hardest = [text for _, text in page.find("li") if "no mistake" in text]
    assert "33%" in hardest[0]
    assert [text.split()[0] for text in hardest] == ["Queries", "Output"]  # keys and values only follow
    assert sorted(text for _, text in page.find("blockquote")) == ["Mo is curious", "The output PROJECTION"]


@pytest.mark.slow
def test_what_was_chosen_on_tickets_is_counted_without_names(app: FastAPI) -> None:
    classroom = MarkedClassroom(app)
    activity = open_own_ticket(classroom)
    for name, choice in (("Kim", "Masks"), ("Lou", "Masks"), ("Mo", "KV cache")):
        answers = {"next": choice, "why": f"{name} wonders"}
        student = classroom.student(name)
        classroom.store.exit_tickets.hand_in(activity.id, student.id, answers, anonymous=False)
    page = classroom.page("/summary")
    assert {("KV cache", "1 of 3"), ("Masks", "2 of 3")} <= {tuple(row) for row in table_rows(page)}
    assert [text for _, text in page.find("h3", id="chosen-1")] == ["Next time?"]
    assert "Kim" not in page.text("article")
