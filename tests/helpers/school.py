"""Courses and people for tests: a school in the database of an app, and a classroom with one course of it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import httpx2
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.testclient import TestClient

from app.classes.student_sheet import freeze, give_sheets
from app.sheets.library import Library
from app.store import Activity, Course, Plan, Policies, Role, Store, Student, Teacher, Visitor
from app.web.shared.cookies import TEACHER_COOKIE, VISITOR_COOKIE
from app.web.shared.services import Services
from tests.helpers.clock import end_activity
from tests.helpers.html_page import Page

PASSWORD = "correct horse battery"  # noqa: S105 - of people who do not exist
SCRIPT = {"HX-Request": "true"}  # the header by which a page's script asks for a fragment
ONE_SHEET, TWO_SHEETS = ("llama-7b",), ("llama-7b", "qwen2.5-0.5b")
_numbers = itertools.count(1)


class Browser(TestClient):
    """A browser at a running app: unlike a TestClient's, its `with` neither starts nor stops the app.

    Before each request, the app looks for ended activities, as it does every two seconds in use.
    """

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Auto-submit the drafts that are due, if the database can, then send the request."""
        with suppress(SQLAlchemyError):
            self.app.state.services.auto_submitter.settle_all()  # type: ignore[attr-defined]
        return super().send(request, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass
class School:
    """An app whose database is filled with teachers, courses, activities and students one by one."""

    app: FastAPI

    @property
    def services(self) -> Services:
        services: Services = self.app.state.services
        return services

    @property
    def store(self) -> Store:
        return self.services.store

    @property
    def library(self) -> Library:
        return self.services.library

    def teacher(self, email: str = "", course: Course | None = None, role: Role = "instructor") -> Teacher:
        """Add a teacher with an account, on the staff of a course if one is given."""
        people, email = self.store.people, email or f"ada@school{next(_numbers)}.example"
        link = people.find_link(people.add_link("invite", email, course.id if course else None, role))
        assert link
        teacher = people.follow_link(link, email, email.partition("@")[0].title(), "no hash of any password")
        assert teacher
        return teacher

    def course(self, title: str, teacher: Teacher) -> Course:
        """Add a course in Berlin's time zone."""
        return self.store.courses.add(title, "Europe/Berlin", teacher)

    def activity(
        self,
        course: Course,
        policies: Policies | None = None,
        sheets: tuple[str, ...] = TWO_SHEETS,
        ticket: str = "classic",
        plan: Plan | None = None,
    ) -> Activity:
        """Add an activity and open it; a `plan`, which includes policies, replaces `policies`."""
        content = freeze(self.library, sheets, self.services.tickets.get(ticket))
        plan = plan or Plan("Week 3", None, policies or Policies())
        activity = self.store.activities.add(course, plan, content)
        self.store.activities.set_state(activity, "open")
        opened = self.reload(activity)
        give_sheets(self.library, self.store, opened)
        return opened

    def end(self, activity: Activity) -> Activity:
        """Close an activity so long ago that nothing is accepted any more."""
        return end_activity(self.store, activity.id)

    def reload(self, activity: Activity) -> Activity:
        """The activity as it is in the database now."""
        current = self.store.activities.find(activity.id)
        assert current
        return current

    def student(self, course: Course, name: str) -> tuple[Student, Visitor]:
        """Enrol a student, and return them with their browser."""
        visitor = self.store.add_visitor()
        return self.store.roster.enrol_new_student(course, name, visitor.id)[0], visitor

    def browser(self, *, teacher: Teacher | None = None, visitor: Visitor | None = None) -> Browser:
        """A browser with a teacher signed in, a student enrolled, or nobody known; it doesn't follow redirects."""
        cookies = {}
        if teacher:
            cookies[TEACHER_COOKIE] = self.store.people.open_session(teacher)
        if visitor:
            cookies[VISITOR_COOKIE] = visitor.token
        return Browser(self.app, cookies=cookies, raise_server_exceptions=False, follow_redirects=False)


class Classroom:
    """One course of a school with its teacher, students, and an open activity; `instructor` is the teacher's browser.

    `sheets=None` leaves the course without an activity, to be opened by `open` or through the pages.
    """

    def __init__(
        self, app: FastAPI, policies: Policies | None = None, sheets: tuple[str, ...] | None = ONE_SHEET
    ) -> None:
        self.school = School(app)
        self.teacher = self.school.teacher()
        self.course = self.school.course("Transformers", self.teacher)
        self.instructor = self.school.browser(teacher=self.teacher)
        self.visitors = dict[int, Visitor]()  # by the student's id
        if sheets is not None:
            self.activity: Activity = self.school.activity(self.course, policies, sheets)

    @property
    def store(self) -> Store:
        return self.school.store

    @property
    def path(self) -> str:
        """The activity's address for teachers, such as /activities/1."""
        return f"/activities/{self.activity.id}"

    @property
    def sheet_path(self) -> str:
        """The address of the activity's first sheet for students, such as /class/1/1."""
        return f"/class/{self.activity.id}/1"

    def open(self, **policies: Any) -> Activity:
        """Open another activity of one sheet with these policies."""
        return self.school.activity(self.course, Policies(**policies), ONE_SHEET)

    def join(self, name: str = "Kim") -> tuple[Student, Browser]:
        """Enrol a student, and return them with their browser."""
        student, visitor = self.school.student(self.course, name)
        self.visitors[student.id] = visitor
        return student, self.school.browser(visitor=visitor)

    def student(self, name: str = "Kim") -> Student:
        """Enrol a student who has come to the activity."""
        student, _ = self.join(name)
        self.store.classwork.arrive(self.activity.id, student.id)
        return student

    def browser_of(self, student: Student) -> Browser:
        """Another browser for a student who has already joined."""
        return self.school.browser(visitor=self.visitors[student.id])

    def get(self, address: str) -> str:
        """The text of a page as the instructor gets it; fails unless the status is 200."""
        response = self.instructor.get(address)
        assert response.status_code == 200, response.text
        return response.text

    def page(self, below: str = "") -> Page:
        """A page of the activity as the instructor gets it, by the end of its address, such as /results."""
        return Page(self.get(self.path + below))

    def send(self, student: Student, action: str, answers: Mapping[str, str], version: int = 1) -> None:
        """Send the first sheet as a student's page does: action is "save", "check" or "hand-in"."""
        with self.browser_of(student) as browser:
            form = {**answers, "form_id": f"form-{version}-of-it"}
            response = browser.post(f"{self.sheet_path}/{action}", data=form, headers=SCRIPT)
        assert response.status_code == 200
