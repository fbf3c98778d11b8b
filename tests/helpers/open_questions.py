"""A library whose LLaMA sheet asks two open questions, and activities made from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.classes.student_sheet import freeze
from app.sheets.library import Library
from app.sheets.worksheet import OpenQuestion
from app.store import Activity, Content, Plan, Policies
from tests.helpers.school import Classroom

WHY, HEADS = (
    OpenQuestion("Why does K have this shape?", key="why-k"),
    OpenQuestion("What changes with two heads?", key="heads"),
)
WHY_K, TWO_HEADS = "question.why-k", "question.heads"  # the field names of their answers


def asking(library: Library, *questions: OpenQuestion) -> Library:
    """The library with these questions (by default both above) on its LLaMA sheet."""
    sheet = replace(library.worksheets["llama-7b"], questions=questions or (WHY, HEADS))
    return Library({**library.worksheets, sheet.key: sheet}, library.models, library.wording)


def asking_content(library: Library, *questions: OpenQuestion) -> Content:
    """The LLaMA sheet with these questions, as an activity has it."""
    return freeze(asking(library, *questions), ("llama-7b",), None)


def open_with_questions(classroom: Classroom, *questions: OpenQuestion, **policies: Any) -> Activity:
    """Open an activity of the LLaMA sheet with these questions."""
    store, content = classroom.store, asking_content(classroom.school.library, *questions)
    activity = store.activities.add(classroom.course, Plan("Week 3", None, Policies(**policies)), content)
    store.activities.set_state(activity, "open")
    classroom.activity = classroom.school.reload(activity)
    return classroom.activity
