"""Teachers, students and their work, put straight into a store, without the app."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from app.activities.work import SheetKey, merged_draft
from app.store import (
    Activity,
    Answers,
    Attempt,
    ClassSheetKey,
    Content,
    Course,
    Draft,
    Edit,
    FrozenTicket,
    FrozenWorksheet,
    Graded,
    NewAttempt,
    Plan,
    Store,
    Student,
    Teacher,
    VariantSizes,
    Visitor,
    WorkChangedError,
)
from simulation.lesson import add_teacher

SHEET = {"key": "llama-7b", "title": "One head", "model": "llama-7b", "topic": "single-head", "tokens": 100,
         "rows": ["input", "queries"]}  # fmt: skip
TICKET = {"key": "classic", "title": "Before you go", "instruction": "Pick a couple.",
          "questions": [{"key": "muddiest", "text": "?"}]}  # fmt: skip
CONTENT = Content((FrozenWorksheet(SHEET),), FrozenTicket(TICKET))
LLAMA = VariantSizes("llama-7b", 100)
HALF = Graded({"queries.rows": "right", "queries.columns": "wrong"}, ("whole-width",), 1, 2)


def teacher(store: Store, email: str = "ada@example.org") -> Teacher:
    """Add a teacher named Ada whose account no password opens."""
    link = store.people.find_link(store.people.add_link("invite", email))
    assert link
    ada = store.people.follow_link(link, email, "Ada", "not a hash")
    assert ada
    return ada


def course(store: Store) -> Course:
    """Add a course whose teacher is Ada."""
    return store.courses.add("Transformers", "Europe/Berlin", teacher(store))


def enrol_student(store: Store, course: Course, name: str = "Kim") -> tuple[Student, Visitor, str]:
    """Enrol a student in a course; return the student, their browser, and their resume code."""
    visitor = store.add_visitor()
    student, code = store.roster.enrol_new_student(course, name, visitor.id)
    return student, visitor, code


def key(student: Student, activity: Activity) -> ClassSheetKey:
    """The key for a student's work on the activity's first sheet."""
    return ClassSheetKey(student.id, activity.id, activity.revision, 1, activity.content.items[0].sheet_key)


def save(
    store: Store,
    key: SheetKey,
    answers: Answers,
    edits: Mapping[str, Edit] | None = None,
    sizes: VariantSizes = LLAMA,
    seen: Draft | None = None,
) -> Draft:
    """Save what a page sends, as the app does, retrying once after another save; return the stored draft."""
    stored = seen or store.classwork.draft(key)
    while draft := merged_draft(stored, answers, edits, sizes):
        try:
            store.classwork.save(key, draft)
        except WorkChangedError:
            stored = store.classwork.draft(key)
        else:
            return draft
    assert stored
    return stored


def record(
    store: Store,
    key: SheetKey,
    answers: Answers,
    graded: Graded = HALF,
    *,
    client_id: str = "",
    handed_in: bool = True,
    allowed: int = 0,
    sizes: VariantSizes = LLAMA,
) -> Attempt:
    """Store an attempt and its draft; the client id is random by default."""
    new = NewAttempt(answers, sizes, graded, client_id or secrets.token_hex(8), handed_in)
    draft = merged_draft(store.classwork.draft(key), answers, None, sizes)
    return store.classwork.record(key, new, draft, allowed).attempt


def opened(store: Store) -> tuple[Activity, Student]:
    """An activity of a new course, and Kim, who has come to it."""
    where = course(store)
    activity = store.activities.add(where, Plan("Week 3"), CONTENT)
    kim, _, _ = enrol_student(store, where)
    store.classwork.arrive(activity.id, kim.id)
    return activity, kim


def activity(store: Store, plan: Plan) -> tuple[Activity, Student, str]:
    """An open activity, and a student of its course with their browser's token."""
    course = store.courses.add("Course", "UTC", add_teacher(store, "ada@example.org", "Ada"))
    made = store.activities.add(course, plan, Content((), None))
    store.activities.set_state(made, "open")
    visitor = store.add_visitor()
    student, _ = store.roster.enrol_new_student(course, "Kim", visitor.id)
    return reload(store, made), student, visitor.token


def reload(store: Store, made: Activity) -> Activity:
    """An activity as it is stored now."""
    current = store.activities.find(made.id)
    assert current
    return current
