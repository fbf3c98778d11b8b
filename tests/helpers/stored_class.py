"""Teachers, students and what they hand in, put straight into a store, without the app around it."""

from __future__ import annotations

from app.store import (
    Activity,
    Content,
    Course,
    FrozenTicket,
    FrozenWorksheet,
    Graded,
    Store,
    Student,
    SubmissionKey,
    Teacher,
    VariantSizes,
    Visitor,
)

SHEET = {"key": "llama-7b", "title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100,
         "rows": ["input", "queries"]}  # fmt: skip
CONTENT = Content(
    (FrozenWorksheet(SHEET),), FrozenTicket("classic", "Before you go", "Pick a couple.", (("muddiest", "?"),)), "w1"
)
LLAMA = VariantSizes("llama-7b", 100)
HALF = Graded({"queries.rows": "right", "queries.columns": "wrong"}, ("whole-width",), 1, 2)


def teacher(store: Store, email: str = "ada@example.org") -> Teacher:
    """Somebody who can sign in, with a hash that no password has."""
    link = store.people.find_link(store.people.add_link("invite", email))
    assert link
    made = store.people.follow_link(link, email, "Ada", "not a hash")
    assert made
    return made


def seated(store: Store, where: Course, name: str = "Kim") -> tuple[Student, Visitor, str]:
    visitor = store.add_visitor()
    student, code = store.courses.enrol(where, name, visitor.id)
    return student, visitor, code


def key(student: Student, activity: Activity) -> SubmissionKey:
    return SubmissionKey(student.id, activity.id, activity.revision, 1, activity.content.items[0].sheet_key)
