"""A small world of people for tests: two courses, their staff, students and activities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.testclient import TestClient

from app.classes.student_sheet import freeze
from app.store import Activity, Course, Learner, Plan, Policies, Role, Student, Teacher
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from app.web.shared.services import Services

PASSWORD = "correct horse battery"  # noqa: S105 - of people who do not exist


@dataclass
class World:
    """The app, and what is in its database."""

    app: FastAPI

    @property
    def services(self) -> Services:
        found: Services = self.app.state.services
        return found

    def teacher(self, email: str, course: Course | None = None, role: Role = "instructor") -> Teacher:
        """Somebody with an account, on the staff of a course if one is given."""
        people = self.services.store.people
        link = people.find_link(people.add_link("invite", email, course.id if course else None, role))
        assert link
        made = people.follow_link(link, email, email.partition("@")[0].title(), "no hash of any password")
        assert made
        return made

    def course(self, title: str, teacher: Teacher) -> Course:
        return self.services.store.courses.add(title, "Europe/Berlin", teacher)

    def activity(
        self,
        course: Course,
        policies: Policies | None = None,
        sheets: tuple[str, ...] = ("llama-7b", "qwen2.5-0.5b"),
        ticket: str = "classic",
        plan: Plan | None = None,
    ) -> Activity:
        """An open activity."""
        content = freeze(self.services.library, sheets, self.services.tickets.get(ticket))
        made = self.services.store.activities.add(course, plan or Plan("Week 3", None, policies or Policies()), content)
        self.services.store.activities.set_state(made, "open")
        return self.again(made)

    def again(self, activity: Activity) -> Activity:
        """The activity as it is now."""
        found = self.services.store.activities.find(activity.id)
        assert found
        return found

    def student(self, course: Course, name: str) -> tuple[Student, Learner]:
        learner = self.services.store.add_learner()
        return self.services.store.courses.enrol(course, name, learner.id)[0], learner

    @contextmanager
    def browser(self, *, teacher: Teacher | None = None, learner: Learner | None = None) -> Iterator[TestClient]:
        """A browser in which somebody is signed in, or sits as a student, or nobody is anything."""
        cookies = {}
        if teacher:
            cookies[TEACHER_COOKIE] = self.services.store.people.open_session(teacher)
        if learner:
            cookies[VISITOR_COOKIE] = learner.token
        yield TestClient(self.app, cookies=cookies, raise_server_exceptions=False, follow_redirects=False)
