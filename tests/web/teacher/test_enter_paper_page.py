"""Answers on paper, typed in for an activity: each line is an attempt of one student, stored once, or a sentence."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from app.classes.student_sheet import variant_seed
from app.exchange.class_list import MAX_ENTRY_LENGTH
from app.grading.paper import MAX_PAPER_LINES
from app.sheets.library import Library
from app.store import Attempt, Policies, Student
from app.translation import ENGLISH
from tests.helpers.answer_keys import KEY
from tests.helpers.html_page import Page
from tests.helpers.processor_time import processor_time_s
from tests.helpers.school import ONE_SHEET, Classroom
from tests.helpers.sent_form import SentForm
from tests.helpers.slow import one_in

RIGHT = " ".join(KEY.values())
WIDE_TEXT = RIGHT.replace("128", "4096")


class PaperClassroom(Classroom):
    """A classroom with three students on the roster, whose papers the instructor types in."""

    def __init__(self, app: FastAPI, policies: Policies | None = None, sheets: tuple[str, ...] = ONE_SHEET) -> None:
        super().__init__(app, policies, sheets)
        self.store.roster.add_students(self.course, [("Kim Lee", "1017"), ("Lou Ray", "1018"), ("Kim Fox", None)])

    def look(self, typed: str, status: int = 200, **more: str) -> str:
        """Send the form as the instructor, storing nothing; fails unless the answer has that status."""
        before = self.attempt_count()
        response = self.instructor.post(f"{self.path}/paper", data={"typed": typed, **more})
        assert response.status_code == status, response.text
        assert self.attempt_count() == before
        return response.text

    def store_ticked(self, shown: str, status: int = 200, *, all_lines: bool = False, **changes: str) -> Page:
        """Press "Save the ticked lines" on a page; `all_lines` ticks each of them first."""
        values: dict[str, Any] = {**SentForm(shown).values, **changes, "do": "store"}
        if all_lines:
            values["line"] = tokens(Page(shown))
        response = self.instructor.post(f"{self.path}/paper", data=values)
        assert response.status_code == status, response.text
        return Page(response.text)

    def enter(self, typed: str, status: int = 200, **more: str) -> Page:
        """Send the form, and store every line that is clear, if one is; fails unless the answers have that status."""
        shown = self.look(typed, status, **more)
        return self.store_ticked(shown, status, all_lines=True) if tokens(Page(shown)) else Page(shown)

    def attempt_count(self) -> int:
        return len(self.store.classwork.attempts_of_activity(self.activity.id))

    def listed(self, name: str) -> Student:
        """The student of that name on the roster."""
        return next(student for student in self.store.roster.students(self.course) if student.name == name)

    def attempts(self, name: str) -> tuple[Attempt, ...]:
        return self.store.classwork.attempts_of_student(self.listed(name).id)

    def code_and_key(self, sheet: str, tokens: int, model: str | None = None) -> tuple[str, str]:
        """The code of another variant, and all its right answers."""
        variant = self.school.library.variant(sheet, model, tokens)
        return variant.code, " ".join(map(str, variant.key.values()))


def tokens(page: Page) -> list[str]:
    """The lines that can be ticked."""
    return [box["value"] for box, _ in page.find("input", name="line")]


def ticked(page: Page) -> list[bool]:
    """Which of them are."""
    return ["checked" in box for box, _ in page.find("input", name="line")]


def boxes(page: Page) -> str:
    """The text in the big box."""
    return "".join(page.find("textarea", name="typed")[0][1]).strip()


def all_text(page: Page) -> str:
    return " ".join(" ".join("".join(texts).split()) for _, attributes, texts in page.elements)


def test_a_line_becomes_an_attempt_that_was_handed_in_once(app_on_each_database: FastAPI) -> None:
    classroom = PaperClassroom(app_on_each_database)
    for _ in range(2):
        classroom.enter(f"1017: {RIGHT}\r\nlou ray: {WIDE_TEXT}\n")
    [kim], [lou] = classroom.attempts("Kim Lee"), classroom.attempts("Lou Ray")
    assert (kim.score, kim.out_of, kim.handed_in, dict(kim.answers)) == (14, 14, True, KEY)
    assert (lou.score, lou.misconceptions[0], lou.variant.tokens) == (13, "head-as-wide-as-model", 100)
    assert kim.sheet_key == classroom.activity.content.items[0].sheet_key
    came = {one.student_id for one in classroom.store.classwork.attendance(classroom.activity.id)}
    assert came == {kim.student_id, lou.student_id}
    draft = classroom.store.classwork.drafts_of_activity(classroom.activity.id)[0]
    assert dict(draft.answers) == KEY
    classroom.enter(f"1017: {WIDE_TEXT}")
    assert [one.score for one in classroom.attempts("Kim Lee")] == [14, 13]


def test_the_attempt_is_in_the_results_and_in_the_exports(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    classroom.enter(f"1017: {WIDE_TEXT}")
    results = classroom.get(f"{classroom.path}/results")
    assert "Kim Lee" in results
    assert "Head as wide as the model" in results
    assert "4096" in classroom.get(f"{classroom.path}/results/{classroom.listed('Kim Lee').id}")
    rows = list(
        csv.reader(
            io.StringIO(classroom.get(f"/courses/{classroom.course.id}/exports/attempts.csv").removeprefix("\ufeff"))
        )
    )
    [row] = [dict(zip(rows[0], cells, strict=True)) for cells in rows[1:]]
    assert {"Kim Lee", "1017", "13"} <= set(row.values())
    assert "1017" in classroom.get(f"/courses/{classroom.course.id}/exports/gradebook-moodle.csv")


def test_the_page_shows_marks_and_who_is_in(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    assert "Enter paper answers" in classroom.get(classroom.path)
    page = classroom.enter(f"1017: {WIDE_TEXT}")
    text = all_text(page)
    assert "Stored: 1." in text
    assert "13 of 14" in text
    assert "Does it also compute queries, keys and values of that size?" in text
    there = {" ".join("".join(texts).split()): attributes["data-in"] for attributes, texts in page.find("li")
             if "data-in" in attributes}  # fmt: skip
    assert [name for name, state in there.items() if state == "yes"] == ["✓ Kim Lee 1017, handed in"]
    assert len(there) == 3
    assert "Already stored: 1" in all_text(classroom.enter(f"1017: {WIDE_TEXT}"))


def test_lines_that_are_not_clear_come_back_and_the_others_are_stored(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    unclear = [f"Nobody: {RIGHT}", f"Kim: {RIGHT}", "1018:", f"1018: {RIGHT} 7", RIGHT]
    page = classroom.enter("\n".join([unclear[0], f"1017: {RIGHT}", *unclear[1:]]), 422)
    text = all_text(page)
    assert boxes(page) == " ".join(unclear)
    assert "Stored: 1." in text
    assert "Line 1: no one on the roster has the name or number “Nobody”" in text
    assert "Line 2: “Kim” could be Kim Fox or Kim Lee (1017)" in text
    assert "Line 3: there are no answers for Lou Ray" in text
    assert "Line 4 has 15 answers" in text
    assert "Line 5 doesn’t begin with a name" in text
    assert len(classroom.attempts("Kim Lee")) == 1
    assert not classroom.attempts("Lou Ray")
    assert "There is nothing to save" in all_text(classroom.enter(" \n", 422))


def test_who_is_meant_can_be_chosen(app: FastAPI) -> None:
    classroom, other = PaperClassroom(app), PaperClassroom(app)
    fox, stranger = classroom.listed("Kim Fox"), other.listed("Kim Fox")
    classroom.enter(f"Kim: {RIGHT}", 422, label="Kim", who=str(stranger.id))
    classroom.enter(f"Kim: {RIGHT}", label="Kim", who=str(fox.id))
    assert [one.score for one in classroom.attempts("Kim Fox")] == [14]
    assert not other.attempts("Kim Fox")


def test_a_model_that_only_a_paper_had_stays_when_the_library_has_it_no_longer(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    code, key = classroom.code_and_key("llama-7b", 96, "gpt2-xl")
    classroom.enter(f"Kim Lee {code}: {key}")
    before, services = classroom.get(f"{classroom.path}/results"), classroom.school.services
    try:
        app.state.services = replace(services, libraries={ENGLISH: Library({}, {}, services.library.wording)})
        assert classroom.get(f"{classroom.path}/results") == before
    finally:
        app.state.services = services


def test_codes_that_fit_nothing_here_are_told(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    code, right = classroom.code_and_key("qwen2.5-0.5b", 33)
    page = classroom.enter(f"1017 {code}: {right}\n1018: {RIGHT}", 422)
    assert f"Line 1: {code} is a code of “" in all_text(page)
    assert "which isn’t in this activity" in all_text(page)
    assert boxes(page).startswith(f"1017 {code}")
    for wrong, sentence in ((code, "isn’t in this"), ("BBBBBBB", "No sheet has the code"), ("?", "is not the code")):
        page = classroom.enter(f"1017: {right}", 422, code=wrong)
        assert sentence in all_text(page)
        assert right in boxes(page)
    assert not classroom.attempts("Kim Lee")


def test_without_a_code_students_have_the_numbers_of_their_screen(app: FastAPI) -> None:
    classroom = PaperClassroom(app, Policies(variants="per_student"))
    library = classroom.school.library
    names = ("Kim Lee", "Lou Ray")
    own = {name: library.seeded("llama-7b", variant_seed(classroom.activity, classroom.listed(name))) for name in names}
    assert len({variant.code for variant in own.values()}) == 2
    classroom.enter("\n".join(f"{name}: {' '.join(map(str, variant.key.values()))}" for name, variant in own.items()))
    assert [classroom.attempts(name)[0].score for name in own] == [14, 14]
    assert [classroom.attempts(name)[0].variant.tokens for name in own] == [variant.tokens for variant in own.values()]


def test_paper_with_other_numbers_leaves_the_screen_alone(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    mo = classroom.student("Mo")
    sheet = classroom.sheet_path
    with classroom.browser_of(mo) as browser:
        typed: Mapping[str, str] = {**KEY, "form_id": "0123456789"}
        assert browser.post(f"{sheet}/check", data=typed).status_code == 303
        code, right = classroom.code_and_key("llama-7b", 77)
        classroom.enter(f"Mo {code}: {right}")
        page = browser.get(sheet).text
    assert "was on paper, with different numbers" in page
    assert 'value="100"' in page
    assert 'data-mark="right"' not in page
    assert 'data-mark="wrong"' not in page
    assert [one.variant.tokens for one in classroom.store.classwork.attempts_of_student(mo.id)] == [100, 77]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "answers"),
    one_in(
        4,
        [
            ("{name}", ["4*25", "2^12"]),
            ("{name}:", ["100", "4096"]),
            ("{number}:", ["N", "d_h"]),
            ("Nobody {number}:", ["100"]),
            ("a b c d e f {number}", ["100"]),
            ("Pupil:", ["100"]),
        ],
    ),
)
def test_a_line_for_everybody_in_a_large_class_takes_a_second(app: FastAPI, label: str, answers: list[str]) -> None:
    room = PaperClassroom(app)
    pupils = [(f"Pupil {number} of Many", f"1{number:04}") for number in range(MAX_PAPER_LINES)]
    room.store.roster.add_students(room.course, pupils)
    cells = " ".join(answers * (len(KEY) // len(answers)))
    lines = [f"{label.format(name=name, number=number)} {cells}" for name, number in pupils]
    form = {"sheet": "1", "typed": "\n".join(lines)}

    def send() -> None:
        assert room.instructor.post(f"{room.path}/paper", data=form).status_code in (200, 422)

    assert min(processor_time_s(send) for _ in range(2)) < 4  # a machine may be slow


def test_a_draft_has_no_paper(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    classroom.store.activities.set_state(classroom.activity, "draft")
    page = classroom.enter(f"1017: {RIGHT}", 422)
    assert "draft" in all_text(page)
    assert not classroom.attempts("Kim Lee")


def test_nothing_is_stored_before_it_was_shown_and_nothing_is_lost(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    ada = classroom.student("Ada Sample")
    classroom.send(ada, "hand-in", KEY)
    shown = classroom.look(f"Ada Sample: 100 4096 100\n1018: {RIGHT}\n1017: 100 -")
    page = Page(shown)
    [doubtful, *_] = page.find("li", class_="doubtful")
    words = " ".join("".join(doubtful[1]).split())
    assert "Ada Sample 3 of 14" in words
    assert "So far: 14 of 14 from the screen" in words
    assert "3 answers, but the sheet has 14 boxes" in words
    assert ticked(page) == [False, True, False]
    page = classroom.store_ticked(shown)
    assert [one.score for one in classroom.attempts("Lou Ray")] == [14]
    assert [one.score for one in classroom.attempts("Ada Sample")] == [14]
    assert boxes(page) == "Ada Sample: 100 4096 100 1017: 100 -"
    shown = classroom.look("Ada Sample: 100 4096 100")
    classroom.store_ticked(shown, all_lines=True)
    assert [one.score for one in classroom.attempts("Ada Sample")] == [14, 3]


def test_a_line_that_changed_since_it_was_shown_is_shown_again(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    mo = classroom.student("Mo")
    shown = classroom.look(f"Mo: {RIGHT}")
    assert ticked(Page(shown)) == [True]
    page = classroom.store_ticked(shown, 422, typed=f"Mo: {WIDE_TEXT}")
    assert not classroom.attempts("Mo")
    assert ticked(page) == [False]
    classroom.send(mo, "hand-in", KEY)
    classroom.store_ticked(shown, 422, typed=f"Mo: {RIGHT}")
    assert [one.score for one in classroom.attempts("Mo")] == [14]
    again = classroom.look(f"Mo: {WIDE_TEXT}")
    assert "higher score" in all_text(Page(again))


def test_a_student_who_was_picked_is_still_meant_after_a_wrong_code(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    fox = classroom.listed("Kim Fox")
    refused = classroom.look(f"Kim: {RIGHT}", 422, label="Kim", who=str(fox.id), code="?")
    values: dict[str, Any] = {**SentForm(refused).values, "code": "", "do": "show"}
    shown = classroom.instructor.post(f"{classroom.path}/paper", data=values)
    assert shown.status_code == 200
    classroom.store_ticked(shown.text)
    assert [one.score for one in classroom.attempts("Kim Fox")] == [14]


def test_a_student_who_was_picked_is_still_meant_at_the_second_press(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    fox, lee = classroom.listed("Kim Fox"), classroom.listed("Kim Lee")
    both = {"label": ["Kim", "Kim"], "who": ["", str(fox.id)]}
    answer = classroom.instructor.post(
        f"{classroom.path}/paper", data={"typed": f"Kim: {RIGHT}\nKim: {WIDE_TEXT}", **both}
    )
    page = classroom.store_ticked(answer.text, 422)
    assert [one.score for one in classroom.attempts("Kim Fox")] == [13]
    assert boxes(page) == f"Kim: {RIGHT}"
    classroom.enter(boxes(page), label="Kim", who=str(lee.id))
    assert [one.score for one in classroom.attempts("Kim Lee")] == [14]


def test_answers_are_typed_into_a_grid_with_a_row_per_student(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    page = classroom.page("/paper")
    columns = len(page.find("input", name="cell")) // len(page.find("input", name="grid"))
    assert columns == len(KEY)
    cells = [*KEY.values(), *["" if each == "128" else each for each in KEY.values()], *[""] * columns]
    form = {"sheet": "1", "grid": ["1017", "Lou Ray", ""], "cell": cells}
    shown = classroom.instructor.post(f"{classroom.path}/paper", data=form)
    assert shown.status_code == 200
    assert SentForm(shown.text).values["cell"][:columns] == list(KEY.values())
    classroom.store_ticked(shown.text, all_lines=True)
    [kim], [lou] = classroom.attempts("Kim Lee"), classroom.attempts("Lou Ray")
    assert (kim.score, dict(kim.answers)) == (14, KEY)
    assert set(lou.answers.values()) == {"100", "4096", ""}


def test_an_unknown_student_is_added_to_the_roster_from_there(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    form = {"sheet": "1", "grid": ["Dee Fox", "99"], "cell": [*KEY.values(), *KEY.values()]}
    refused = classroom.instructor.post(f"{classroom.path}/paper", data=form)
    assert refused.status_code == 422
    assert [button["value"] for button, _ in Page(refused.text).find("button", name="add")] == ["Dee Fox"]
    again = {**SentForm(refused.text).values, "add": "Dee Fox", "do": "show"}
    shown = classroom.instructor.post(f"{classroom.path}/paper", data=again)
    assert classroom.listed("Dee Fox")
    assert len(tokens(Page(shown.text))) == 1


def test_enter_in_a_cell_adds_nobody_and_names_without_answers_are_kept(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    form = {"sheet": "1", "grid": ["Dee Fox", "Lou Ray"], "cell": [*KEY.values(), *[""] * len(KEY)]}
    refused = Page(classroom.instructor.post(f"{classroom.path}/paper", data=form).text)
    pressed_by_enter = next(button for button, _ in refused.find("button") if button.get("name") in ("add", "do"))
    assert (pressed_by_enter["name"], pressed_by_enter["value"]) == ("do", "show")
    assert [row["value"] for row, _ in refused.find("input", name="grid") if row.get("value")] == ["Dee Fox", "Lou Ray"]


def test_a_name_too_long_for_the_roster_is_cut(app: FastAPI) -> None:
    classroom = PaperClassroom(app)
    classroom.instructor.post(f"{classroom.path}/paper", data={"sheet": "1", "typed": "", "add": "D" * 150})
    assert classroom.listed("D" * MAX_ENTRY_LENGTH)
