"""An open activity in the database of a running server or campus, for simulated students to join."""

from __future__ import annotations

from dataclasses import dataclass

from app.classes.student_sheet import ChosenWorksheet, freeze
from app.settings import PROJECT
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library
from app.sheets.variant import Variant
from app.store import Activity, Course, Plan, Policies, Store, Teacher
from simulation.server import Site

WORKSHEET = "llama-7b"
AFTER_HAND_IN = Policies(feedback="after_hand_in")


@dataclass(frozen=True)
class Lesson:
    """An open activity on a server or campus, its only sheet, and a session token of its teacher."""

    server: Site
    activity: Activity
    variant: Variant
    session: str

    @property
    def sheet_path(self) -> str:
        """The address of the sheet for students, such as /class/1/1."""
        return f"/class/{self.activity.id}/1"


def open_lesson(
    server: Site,
    title: str = "Lesson",
    policies: Policies = AFTER_HAND_IN,
    worksheet: str = WORKSHEET,
    tokens: int | None = None,
) -> Lesson:
    """Put a teacher, a course and an open activity with one sheet and an exit ticket into the server's database."""
    library, tickets = load_library(PROJECT / "worksheets"), load_tickets(PROJECT / "worksheets")
    store = Store(server.database, server.folder)
    teacher = add_teacher(store, f"{title.lower().replace(' ', '-')}@example.org", title)
    course: Course = store.courses.add(title, "UTC", teacher)
    plan = Plan(title, None, policies)
    activity = store.activities.add(
        course, plan, freeze(library, (ChosenWorksheet(worksheet, tokens=tokens),), tickets["classic"])
    )
    store.activities.set_state(activity, "open")
    session = store.people.open_session(teacher)
    store.close()
    return Lesson(server, activity, library.variant(worksheet, tokens=tokens), session)


def add_teacher(store: Store, email: str, name: str) -> Teacher:
    """Add a teacher whose account no password opens."""
    link = store.people.find_link(store.people.add_link("invite", email))
    assert link is not None
    teacher = store.people.follow_link(link, email, name, "no hash of any password")
    assert teacher is not None
    return teacher
