"""An exit ticket with a question of every kind, and an activity with it."""

from __future__ import annotations

from typing import Any

from app.classes.student_sheet import freeze
from app.sheets.exit_tickets import ticket_of_settings
from app.store import Activity, Plan, Policies
from tests.helpers.school import Classroom

SETTINGS: dict[str, Any] = {
    "title": "On your way out",
    "instruction": "Tell me how it went.",
    "questions": [
        {"key": "pace", "text": "How was the pace?", "kind": "scale", "labels": ["too slow", "too fast"]},
        {"key": "next", "text": "Next time?", "kind": "choose-one", "options": ["KV cache", "Masks"], "required": True},
        {
            "key": "clear",
            "text": "What is clear now?",
            "kind": "choose-several",
            "options": ["Heads, all of them", "Queries; keys", "<b>Values</b>"],
        },
        {"key": "why", "text": "Why does K have this shape?"},
    ],
    "pick_at_least": 2,
    "anonymous": False,
}
OWN_TICKET = ticket_of_settings("own-1", SETTINGS)
ANSWERS = {
    "answer-pace": "4",
    "answer-next": "Masks",
    "answer-clear": ["<b>Values</b>", "Heads, all of them"],
    "answer-why": "Because of d_h.",
}


def open_own_ticket(classroom: Classroom, *, anonymous: bool = False) -> Activity:
    """Open an activity of only OWN_TICKET; it becomes the classroom's own."""
    content = freeze(classroom.school.library, (), OWN_TICKET)
    activity = classroom.store.activities.add(
        classroom.course, Plan("Week 5", None, Policies(ticket_anonymous=anonymous)), content
    )
    classroom.store.activities.set_state(activity, "open")
    classroom.activity = classroom.school.reload(activity)
    return classroom.activity
