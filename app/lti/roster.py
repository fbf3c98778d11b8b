"""The class list of a platform's course: who is new becomes a student here, and who left it is named."""

from __future__ import annotations

from dataclasses import dataclass

from app.lti.message import is_test_user, role_of
from app.lti.services import PlatformError, PlatformServices
from app.store import Course, LtiCourse, Platform, Store, Student
from app.translation import gettext as _


@dataclass(frozen=True)
class FetchedRoster:
    """What fetching a class list changed: how many students are new, and who is no longer in the platform's course."""

    added: int
    known: int
    gone: tuple[Student, ...]


def fetch_roster(
    store: Store, services: PlatformServices, platform: Platform, context: LtiCourse, course: Course
) -> FetchedRoster:
    """Add everybody who learns in a platform's course. Raises PlatformError, adding nobody, if the list isn't whole."""
    learners = {
        member.sub: member.name
        for member in services.members(platform, context.memberships_url)
        if member.is_active and role_of(member.roles) == "student" and not is_test_user(member.roles)
    }
    if not learners:
        raise PlatformError(_("The list has no students."))
    with store.transaction():
        before = store.lti.students_of(context)
        on_roster = {student.id for student in store.roster.students(course)}
        students = [
            store.lti.add_student(context, sub, course, name) for sub, name in learners.items() if sub not in before
        ]
    added = sum(student.id not in on_roster for student in students)
    gone = tuple(student for sub, student in before.items() if sub not in learners)
    return FetchedRoster(added, len(learners) - added, gone)
