"""Teachers, students and what they hand in, put straight into a store, without the app around it."""

from __future__ import annotations

from app.store import Activity, Content, Course, Fixed, Graded, Item, Learner, Spot, Store, Student, Teacher, Ticket

SHEET = {"key": "llama-7b", "title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100,
         "rows": ["input", "queries"]}  # fmt: skip
CONTENT = Content((Item(SHEET),), Ticket("classic", "Before you go", "Pick a couple.", (("muddiest", "?"),)), "w1")
LLAMA = Fixed("llama-7b", 100)
HALF = Graded({"queries.rows": "right", "queries.columns": "wrong"}, ("whole-width",), 1, 2)


def teacher(store: Store, email: str = "ada@example.org") -> Teacher:
    """Somebody who can sign in, with a hash that no password has."""
    link = store.people.find_link(store.people.add_link("invite", email))
    assert link
    made = store.people.follow_link(link, email, "Ada", "not a hash")
    assert made
    return made


def seated(store: Store, where: Course, name: str = "Kim") -> tuple[Student, Learner, str]:
    learner = store.add_learner()
    student, code = store.courses.enrol(where, name, learner.id)
    return student, learner, code


def spot(student: Student, activity: Activity) -> Spot:
    return Spot(student.id, activity.id, activity.revision, 0, activity.content.items[0].sheet)
