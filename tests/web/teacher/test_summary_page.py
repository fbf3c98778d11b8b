"""The page to begin the next meeting with."""

from __future__ import annotations

from fastapi import FastAPI

from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.marked_classroom import classroom_with_tickets

NO_PROJECTION = {**KEY, "output.columns": "128"}


def test_one_page_for_the_next_meeting(app: FastAPI) -> None:
    """The misconception that most hold with its explanation, the row that fewest had right first, and starred
    sentences.
    """
    classroom = classroom_with_tickets(app, anonymous=True)
    for number, answers in enumerate([WIDE, WIDE, NO_PROJECTION]):
        classroom.hand_in(classroom.student(f"S{number}"), answers)
    exit_tickets = classroom.store.exit_tickets
    for one in exit_tickets.answers(classroom.activity.id):
        starred, hidden = one.text != "Why √d?", one.text == "a rude word"
        exit_tickets.mark(classroom.activity.id, one.id, starred=starred, hidden=hidden)
    page = classroom.page("/summary")
    explanation = classroom.school.library.wording.misconception("head-as-wide-as-model", "explanation")
    headings = [text for _, text in page.find("h3")]
    assert headings[0] == "“Head as wide as the model”? 2 of 6 students, 2 on the first attempt"
    assert explanation in [text for _, text in page.find("p")]
    lowest = next(text for _, text in page.find("li") if "% correct" in text)
    assert lowest == "Queries Q One head of LLaMA 7B: 33% correct"
    assert sorted(text for _, text in page.find("blockquote")) == ["Mo is curious", "The output PROJECTION"]
