"""A student's first sheet in an activity: what their browser sends, and what is stored of it."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from app.store import Activity
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom

HALF = {**dict.fromkeys(KEY, ""), "input.rows": "100", "queries.columns": "4096"}


def press(browser: TestClient, activity: Activity, what: str, answers: dict[str, str], **more: str) -> Any:
    """Send the first sheet by a button: "save", "check", "hint" or "hand-in"; `more` are further fields of the form."""
    address = f"/class/{activity.id}/1"
    form_id = more.pop("form_id", None) or Page(browser.get(address).text).find("input", name="form_id")[0][0]["value"]
    data = {**answers, "form_id": form_id, **more}
    return browser.post(f"{address}/{what}", data=data, follow_redirects=what in ("check", "hint", "hand-in"))


def attempts_in(classroom: Classroom, activity: Activity) -> list[tuple[bool, float]]:
    """Whether each attempt on an activity was handed in, and its score, oldest first."""
    return [(found.handed_in, found.score) for found in classroom.store.classwork.attempts_of_activity(activity.id)]
