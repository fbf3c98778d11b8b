"""Every bug with every model through the page: a sheet that is shown, with a key that earns all, or a plain refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.bugs.bank import BUGS
from app.grading.grade import grade
from app.topics.find_the_bug import ROWS
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.shipped import LIBRARY

# The first model of each family: a page takes a third of a second.
MODELS = {model.architecture.family: key for key, model in reversed([*LIBRARY.models.items()])}.values()
SHEET = LIBRARY.worksheet("bug-layer")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_bug_is_shown_or_refused_with_a_reason(classroom: Classroom, model: str) -> None:
    form = SentForm(classroom.get("/worksheets/new?topic=find-the-bug")).values
    for bug in BUGS:
        sent = {**form, "model": model, "bug": bug, "tokens": "10", "view": "right"}
        response = classroom.instructor.post("/worksheets/preview", data=sent)
        assert response.status_code in (200, 422), (bug, response.status_code)
        page = Page(response.text)
        if page.find("ol", class_="program-lines"):
            worksheet = replace(SHEET, key="mine", model=model, bug=bug, rows=ROWS, answers="numbers")
            variant = replace(LIBRARY, worksheets={"mine": worksheet}).variant("mine")
            right = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
            assert grade(variant, right).complete, bug
        else:
            assert page.text("p", class_="problem"), bug
