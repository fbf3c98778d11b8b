"""Every bug through the page of the editor, and with a model of every family: a key that earns all, or a refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.bugs.bank import BUGS
from app.grading.grade import grade
from app.sheets.variant import Variant
from app.topics.find_the_bug import ROWS
from app.topics.requirements import TopicError
from tests.helpers.html_page import Page
from tests.helpers.school import Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.shipped import LIBRARY

# The first model of each family.
MODELS = [*{model.architecture.family: key for key, model in reversed([*LIBRARY.models.items()])}.values()]
SHEET = LIBRARY.worksheet("bug-layer")


def sheet_of(bug: str, model: str) -> Variant | None:
    worksheet = replace(SHEET, key="mine", model=model, bug=bug, rows=ROWS, answers="numbers")
    try:
        return replace(LIBRARY, worksheets={"mine": worksheet}).variant("mine")
    except TopicError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_key_of_a_bug_that_a_model_shows_earns_all(model: str) -> None:
    for bug in BUGS:
        if variant := sheet_of(bug, model):
            right = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
            assert grade(variant, right).complete, bug


@pytest.mark.slow
def test_the_editor_shows_every_bug_or_says_why_the_model_does_not(classroom: Classroom) -> None:
    form = SentForm(classroom.get("/worksheets/new?topic=find-the-bug")).values
    models = [model for model in MODELS if LIBRARY.model(model).architecture.fixed_tokens is None]
    for bug in BUGS:
        is_shown = {bool(sheet_of(bug, model)): model for model in reversed(models)}  # the first of either kind
        for expected, model in is_shown.items():
            sent = {**form, "model": model, "bug": bug, "tokens": "10", "view": "right"}
            page = Page(classroom.instructor.post("/worksheets/preview", data=sent).text)
            assert bool(page.find("ol", class_="program-lines")) is expected, (bug, model)
            assert expected or page.text("p", class_="problem"), bug
