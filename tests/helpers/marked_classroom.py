"""A classroom with marks to look at: students hand in, exit tickets are written, tables are read back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from fastapi import FastAPI

from app.classes.student_sheet import freeze, stored_marks, student_sheet
from app.grading.grade import grade
from app.sheets.worksheet import Marking
from app.store import Attempt, Policies, Student
from tests.helpers.closed_activity import close_activity
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.stored_class import record

_numbers = itertools.count(1)  # for drafts and forms, so that none is confused with another


class MarkedClassroom(Classroom):
    """A classroom whose students' sheets are stored with their marks directly, without a page."""

    def freeze_mistaken_sheet(self) -> None:
        """Make the sheet look as if it had been frozen in letters by mistake, with a row too many."""
        content = freeze(self.school.library, ("llama-7b",), None)
        [item] = content.items
        asked = [*item.worksheet["rows"], "context"]
        mistaken = replace(item, worksheet={**item.worksheet, "answers": "letters", "rows": asked})
        self.store.activities.revise(self.activity, replace(content, items=(mistaken,)))

    def hand_in(self, student: Student, answers: Mapping[str, str], number: int = 0) -> Attempt:
        """Grade and store a submission as the student's page would; `number` counts the activity's sheets from 0."""
        activity = self.school.reload(self.activity)
        services = self.school.services
        sheet = student_sheet(services.library, services.store, activity, student, number + 1)
        graded = stored_marks(sheet.variant, grade(sheet.variant, answers))
        return record(services.store, sheet.key, answers, graded, sizes=sheet.sizes)

    def change_marking(self, marking: Marking) -> None:
        """Change the marking as the instructor."""
        plan = self.activity.plan
        changed = replace(plan, policies=replace(plan.policies, marking=marking))
        self.school.store.activities.change(self.activity, changed)

    def seen_by(self, student: Student) -> tuple[Page, str]:
        """The first sheet as a student has it now, and the line about it on their own page."""
        with self.browser_of(student) as browser:
            sheet, mine = Page(browser.get(self.sheet_path).text), Page(browser.get("/mine").text)
        return sheet, next(text for _, text in mine.find("li") if text.startswith(sheet.text("h1")))

    def regrade(self, data: Mapping[str, str]) -> int:
        """Send the form of the regrade page as the instructor; return the status."""
        return self.instructor.post(f"{self.path}/regrade", data=data).status_code


def table_rows(page: Page) -> list[list[str]]:
    """The cell texts of every row of every table, including headers."""
    rows = list[list[str]]()
    for tag, _, texts in page.elements:
        if tag == "tr":
            rows.append([])
        elif tag in ("th", "td") and rows:
            rows[-1].append(" ".join("".join(texts).split()))
    return rows


def classroom_with_tickets(app: FastAPI, *, anonymous: bool) -> MarkedClassroom:
    """A classroom in which Kim, Lou and Mo have handed in exit tickets, Mo with two answers and the others with one."""
    classroom = MarkedClassroom(app, Policies(ticket_anonymous=anonymous))
    for name, text in (("Kim", "Why √d?"), ("Lou", "The output PROJECTION"), ("Mo", "a rude word")):
        answers = {"muddiest": text, "curious": f"{name} is curious"} if name == "Mo" else {"muddiest": text}
        exit_tickets, student = classroom.store.exit_tickets, classroom.student(name)
        exit_tickets.hand_in(classroom.activity.id, student.id, answers, anonymous=anonymous)
    if anonymous:  # this few are only shown once the activity is closed
        classroom.activity = close_activity(classroom.store, classroom.activity)
    return classroom
