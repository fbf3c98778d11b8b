"""A class's handout is printed for the teacher who asked for it."""

from __future__ import annotations

import time

from fastapi import FastAPI

from tests.helpers.permission_table import ROLES, TwoCourses


def test_a_class_handout_is_for_the_teacher_who_asked_for_it(app: FastAPI) -> None:
    """Its address alone, with everybody's name behind it, opens nothing: for all others it is not there."""
    courses = TwoCourses(app)
    with courses.school.browser(**courses.people["instructor"]) as browser:
        form = {"sheet": "1", "layout": "full"}
        answer = browser.post(courses.path("/activities/{activity_id:int}/handout"), data=form, follow_redirects=False)
        address = answer.headers["location"]
        end = time.monotonic() + 60
        while "Download the PDF" not in browser.get(address).text and time.monotonic() < end:
            time.sleep(0.05)
        assert browser.get(f"{address}.pdf").content.startswith(b"%PDF")
    for role in ROLES[:-1]:
        with courses.school.browser(**courses.people[role]) as browser:
            hidden, absent = browser.get(address), browser.get("/handout/jobs/" + "a" * 24)
            assert (hidden.status_code, hidden.text) == (404, absent.text)
            assert browser.get(f"{address}.pdf").status_code == 404
