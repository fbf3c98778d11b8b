"""What is frozen is frozen: an activity whose worksheets, models and sentences are gone or changed stays as it was."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast
from unittest.mock import patch

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from app.bugs.bank import BUGS, Bug
from app.bugs.programs import ONE_HEAD, PROGRAMS, CodeProgram
from app.classes.frozen.frozen_library import freeze_ticket, frozen_form, frozen_ticket, worksheet_of
from app.classes.gradebook import gradebook_columns
from app.classes.student_sheet import best_scores, freeze, student_sheet
from app.settings import PROJECT
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.code_text import answer_in_words, code_shown, option_text
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import Library
from app.store import Content, FrozenWorksheet, Policies, Store
from app.translation import ENGLISH
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.changed_library import Change, with_everything_changed, without_anything
from tests.helpers.marked_classroom import MarkedClassroom
from tests.helpers.own_ticket import OWN_TICKET
from tests.helpers.random_worksheets import random_settings
from tests.helpers.running_activity import RunningActivity, counted_statements
from tests.helpers.school import Browser
from tests.helpers.shipped import LIBRARY
from tests.helpers.stored_class import SHEET

STUDENT_PAGES = ("/class/{id}/1", "/class/{id}/2", "/class/{id}/ticket", "/mine")
TEACHER_PAGES = (
    *("/activities/{id}", "/activities/{id}/projector", "/activities/{id}/results"),
    *("/activities/{id}/results?sheet=2", "/activities/{id}/results/{kim}", "/activities/{id}/summary"),
    *("/activities/{id}/tickets", "/activities/{id}/paper", "/activities/{id}/handout"),
    *("/courses/{course}/exports/attempts.csv", "/courses/{course}/exports/answers.csv"),
    *("/courses/{course}/gradebook", "/courses/{course}/exports/gradebook-canvas.csv"),
)  # fmt: skip


class Lesson(MarkedClassroom):
    """An open activity of two sheets in which Kim handed in, Lou has typed, and Mo has come and done nothing."""

    def __init__(self, app: FastAPI, policies: Policies) -> None:
        super().__init__(app, policies, sheets=("llama-7b", "count-llama-7b"))
        self.app, self.of_now = app, self.school.services
        self.kim, self.lou, self.mo = (self.student(name) for name in ("Kim", "Lou", "Mo"))
        self.hand_in(self.kim, WIDE)
        self.send(self.lou, "save", {"keys.rows": "12"})

    def change_library(self, change: Change) -> None:
        """Let the app run with another library, as after a restart with other files, and without exit tickets."""
        self.app.state.services = replace(self.of_now, libraries={ENGLISH: change(self.of_now.library)}, tickets={})

    def pages(self) -> dict[str, str]:
        """Every page of the activity, by who looks and its address, without the ids that differ at each look."""
        values = {"id": self.activity.id, "course": self.course.id, "kim": self.kim.id}
        pages = {f"teacher {path}": text_of(self.instructor, path.format(**values)) for path in TEACHER_PAGES}
        for student in (self.kim, self.lou, self.mo):
            with self.browser_of(student) as browser:
                looks = {f"{student.name} {path}": text_of(browser, path.format(**values)) for path in STUDENT_PAGES}
            pages |= looks
        return pages


def text_of(browser: Browser, path: str) -> str:
    response = browser.get(path)
    assert response.status_code == 200, (path, response.text)
    passing = r'(name="form_id" value|data-now)="[^"]*"|<time data-clock.*?</time>|(?<=name="seen" value=")[\d.]+'
    # What explains a misconception to the class is drawn with a model of today's library.
    drawn = r'<div class="pair">.*?</div>\s*<p class="drawn-with">.*?</p>'
    return re.sub(passing, "", re.sub(drawn, "", response.text, flags=re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("change", [without_anything, with_everything_changed])
@pytest.mark.parametrize("variants", ["same", "per_student"])
def test_every_page_stays_as_it_was(new_app: FastAPI, change: Change, variants: Any) -> None:
    lesson = Lesson(new_app, Policies(variants=variants))
    before = lesson.pages()
    lesson.change_library(change)
    after = lesson.pages()
    assert {name: text for name, text in after.items() if text != before[name]} == {}
    assert "would keep its marks" in lesson.get(f"{lesson.path}/regrade")
    new = lesson.student("Nia")
    lesson.send(new, "check", KEY)
    [attempt] = [a for a in lesson.store.classwork.attempts_of_activity(lesson.activity.id) if a.student_id == new.id]
    assert attempt.out_of == 14


@given(seed=st.integers(0, 10**6))
def test_a_worksheet_is_frozen_whole(seed: int) -> None:
    worksheet = read_settings("mine", random_settings(LIBRARY, seed), LIBRARY.models, LIBRARY.wording)
    stored = json.loads(json.dumps(frozen_form(worksheet).worksheet))
    assert worksheet_of(FrozenWorksheet(stored)) == worksheet


def test_a_worksheet_of_another_version_can_be_read() -> None:
    own = {"key": "own-x", "name": "X", "boxes": {"queries.rows": "d"}, "question": "?", "explanation": "!", "new": 1}
    stored = FrozenWorksheet({**SHEET, "nope": [1], "notation": "framework", "misconceptions": [own]})
    assert worksheet_of(stored).notation == "classic"
    assert worksheet_of(stored).misconceptions[0].boxes == {"queries.rows": "d"}


def test_a_sheet_key_stays_where_the_questions_stay(library: Library) -> None:
    worksheet = library.worksheets["llama-7b"]
    assert frozen_form(worksheet).sheet_key == "llama-7b@82b77963909d"
    changed = replace(worksheet, row_hints={"keys": "K"}, row_points={"keys": 2})
    assert frozen_form(changed).sheet_key == frozen_form(worksheet).sheet_key


def test_a_program_stays_whatever_becomes_of_the_bank(
    library: Library, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningActivity(library, store, ("bug-one-head",))
    kim, activity = running.student(), running.activity

    def asked(of_now: Library) -> tuple[Any, ...]:
        variant = student_sheet(of_now, store, activity, kim, 1).variant
        reasons = [option_text(variant, "why", place) for place in range(1, 5)]
        return code_shown(variant), variant.key, reasons, answer_in_words(variant, "repair")

    before, frozen = asked(library), activity.content.items[0]
    assert worksheet_of(frozen) == library.worksheets["bug-one-head"]
    changed = replace(BUGS["keys-not-transposed"], wrong="S = Q.T @ K.T / d_h**0.5", beliefs=("mask-needs-heads",))
    shorter = replace(ONE_HEAD, lines=ONE_HEAD.lines[:-1], output="C")
    monkeypatch.setitem(cast("dict[str, Bug]", BUGS), changed.key, changed)
    monkeypatch.setitem(cast("dict[str, CodeProgram]", PROGRAMS), "one-head", shorter)
    # A library made anew, as after a restart: nothing of the sheets made before is remembered.
    again = replace(library, worksheets=dict(library.worksheets))
    assert asked(again) == before
    assert worksheet_of(frozen) != library.worksheets["bug-one-head"]  # which the activity's form calls corrected
    assert freeze(again, ("bug-one-head",), None).items[0].sheet_key != frozen.sheet_key
    others = {key: bug for key, bug in BUGS.items() if key != changed.key}
    with patch.dict(cast("dict[str, Bug]", BUGS), others, clear=True):  # which restores their order as well
        assert asked(without_anything(library)) == before


def test_only_the_first_look_asks_the_database_for_the_sheet(library: Library, store: Store) -> None:
    running = RunningActivity(library, store)
    kim, activity, gone = running.student(), running.activity, without_anything(library)
    counts = list[int]()
    for of_now in (gone, gone, library, library):
        with counted_statements(store) as statements:
            student_sheet(of_now, store, activity, kim, 1)
        counts.append(len(statements))
    assert counts[0] <= 5  # the draft, and the sheet: looked for, and stored
    assert counts[1:] == [1, 1, 1]


def test_an_attempt_counts_for_its_worksheet_wherever_that_stands_now(library: Library, store: Store) -> None:
    running = RunningActivity(library, store, ("llama-7b", "qwen2.5-0.5b"))
    kim = running.student()
    running.attempt(kim, KEY, 1)
    running.attempt(kim, {}, 2)

    def score() -> float:
        activity = running.activity
        points = best_scores(library, store, activity)
        attempts = store.grades.counted_scores({activity.id: "last"})
        [column] = gradebook_columns([activity], store.now(), {activity.id: points}, attempts)
        return column.scores.get(kim.id, 0)

    assert score() == 14
    for keys, expected in ((("qwen2.5-0.5b", "llama-7b"), 14), (("qwen2.5-0.5b",), 0)):
        store.activities.revise(running.activity, freeze(library, keys, None))
        assert score() == expected
    longer_sheet = replace(library.worksheets["llama-7b"], tokens=50)
    corrected = replace(library, worksheets={"llama-7b": longer_sheet})
    store.activities.revise(running.activity, freeze(corrected, ("llama-7b",), None))
    assert score() == 14  # a corrected version of the worksheet takes its attempts over


def test_a_ticket_is_frozen_whole() -> None:
    for ticket in (load_tickets(PROJECT / "worksheets")["classic"], OWN_TICKET):
        content = Content((), freeze_ticket(ticket))
        restored = Content.from_json(json.loads(json.dumps(content.as_json())))
        assert (frozen_ticket(restored), restored) == (ticket, content)
