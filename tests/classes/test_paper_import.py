"""Paper answers entered without pages: whose a line is, which sheet it is about, and that it is stored once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.classes.paper_import import PaperImport, PaperLineError, WrongSheetError, students_handed_in
from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import student_sheet
from app.grading.grade import AnswersError
from app.sheets.library import Library
from app.sheets.worksheet import WorksheetError
from app.store import Store, Student
from app.store.classwork import ClassDraft
from tests.helpers.answer_keys import KEY
from tests.helpers.running_activity import RunningActivity, counted_statements

RIGHT = " ".join(KEY.values())


class PaperActivity(RunningActivity):
    """An activity of two sheets with three students on the roster."""

    def __init__(self, library: Library, store: Store) -> None:
        super().__init__(library, store, ("llama-7b", "qwen2.5-0.5b"))
        store.roster.add_students(self.course, [("Kim Lee", "1017"), ("Kim Fox", None), ("Lou Ray", "1018")])

    def paper_import(self, **options: Any) -> PaperImport:
        roster = RosterLookup(self.store.roster.students(self.course))
        return PaperImport(self.library, self.store, self.activity, roster, **options)

    def listed(self, name: str) -> Student:
        return next(student for student in self.store.roster.students(self.course) if student.name == name)

    def attempts(self) -> int:
        return len(self.store.classwork.attempts_of_activity(self.activity.id))


@pytest.fixture
def paper_activity(library: Library, store: Store) -> PaperActivity:
    return PaperActivity(library, store)


@pytest.mark.parametrize("start", ["1017:", "kim lee:", "Lee, Kim:", "Kim Lee", "1017"])
def test_a_line_becomes_an_attempt_once(paper_activity: PaperActivity, start: str) -> None:
    """By number or name, with a colon or without; the same line again is the same attempt."""
    line = paper_activity.paper_import().store_line(f"{start} {RIGHT}", 1)
    assert (line.student.name, line.paper.report.score, line.already_stored) == ("Kim Lee", 14, False)
    assert paper_activity.paper_import().store_line(f"1017: {RIGHT}", 1).already_stored
    [attempt] = paper_activity.store.classwork.attempts_of_activity(paper_activity.activity.id)
    assert (attempt.student_id, attempt.sheet_number, attempt.handed_in) == (line.student.id, 1, True)
    assert students_handed_in(paper_activity.store, paper_activity.activity, 1) == {line.student.id}
    assert students_handed_in(paper_activity.store, paper_activity.activity, 2) == set()


def test_many_lines_are_stored_in_as_few_statements_as_one(paper_activity: PaperActivity) -> None:
    """Fifty students more: no statement more; each has an attempt, a draft, and counts as arrived."""
    store, activity = paper_activity.store, paper_activity.activity
    with counted_statements(store) as one:
        paper_activity.paper_import().store_lines([f"1017: {RIGHT}"])
    store.roster.add_students(paper_activity.course, [(f"Pupil {n}", str(2000 + n)) for n in range(50)])
    paper_import = paper_activity.paper_import()
    with counted_statements(store) as many:
        stored, rejected = paper_import.store_lines([f"{2000 + n}: {RIGHT}" for n in range(50)] + [f"1017: {RIGHT}"])
    assert (len(stored), [line.already_stored for line in stored[-2:]], rejected) == (51, [False, True], ())
    assert (paper_activity.attempts(), len(store.classwork.drafts_of_activity(activity.id))) == (51, 51)
    assert len(store.classwork.attendance(activity.id)) == 51
    assert len(many) <= len(one) + 2  # Kim's draft, which the line entered again is beside


def test_lines_that_are_not_clear_come_back_with_who_may_be_meant(paper_activity: PaperActivity) -> None:
    """Each with its own sentence, numbered among those that come back; the clear one between them is stored."""
    stored, rejected = paper_activity.paper_import().store_lines(
        [f"Kim: {RIGHT}", f"Lou: {RIGHT}", "Eve: 1", "Lou:", "1 2 3"]
    )
    assert [line.student.name for line in stored] == ["Lou Ray"]
    assert [line.line for line in rejected] == [f"Kim: {RIGHT}", "Eve: 1", "Lou:", "1 2 3"]
    assert {student.name for student in rejected[0].students} == {"Kim Lee", "Kim Fox"}
    assert (rejected[0].label, len(rejected[1].students)) == ("Kim", 3)
    assert [f"{number}" in line.problem for number, line in enumerate(rejected, start=1)] == [True] * 4
    assert paper_activity.attempts() == 1


def test_a_picked_student_is_used_for_one_line(paper_activity: PaperActivity) -> None:
    """Two lines with the same label get the two students that were picked, in order; a stranger's id is none."""
    ids = [str(paper_activity.listed(name).id) for name in ("Kim Fox", "Kim Lee")]
    paper_import = paper_activity.paper_import(chosen={"Kim": [*ids, "999999"]})
    stored, rejected = paper_import.store_lines([f"Kim: {RIGHT}"] * 3)
    assert [line.student.name for line in stored] == ["Kim Fox", "Kim Lee"]
    assert len(rejected) == 1


def test_a_code_says_which_sheet_and_which_sizes(paper_activity: PaperActivity, library: Library) -> None:
    """Behind the name, or for all lines; its sizes are those of the paper, whatever the screen has."""
    other = library.variant("qwen2.5-0.5b", None, 64)
    answers = " ".join(map(str, other.key.values()))
    for line, code in ((f"1017 {other.code}: {answers}", ""), (f"1018: {answers}", other.code)):
        stored = paper_activity.paper_import(code=code).store_line(line, 1)
        assert (stored.variant.code, stored.paper.report.complete) == (other.code, True)
    attempts = paper_activity.store.classwork.attempts_of_activity(paper_activity.activity.id)
    assert {(attempt.sheet_number, attempt.variant.tokens) for attempt in attempts} == {(2, 64)}


def test_a_code_of_no_sheet_of_the_activity_is_refused(paper_activity: PaperActivity, library: Library) -> None:
    """Another worksheet's, an earlier version's, and what is no code."""
    with pytest.raises(WrongSheetError):
        paper_activity.paper_import().sheet_by_code(library.variant("walk-gpt2").code)
    with pytest.raises(WorksheetError):
        paper_activity.paper_import().sheet_by_code("nonsense")
    with pytest.raises(PaperLineError):
        paper_activity.paper_import(code="nonsense").store_line(f"1017: {RIGHT}", 1)
    [first, second] = paper_activity.activity.content.items
    shorter = replace(first, worksheet={**first.worksheet, "rows": ["input"]})
    content = replace(paper_activity.activity.content, items=(shorter, second))
    paper_activity.store.activities.revise(paper_activity.activity, content)
    with pytest.raises(WrongSheetError):
        paper_activity.paper_import().sheet_by_code(library.variant("llama-7b").code)


def test_too_many_answers_are_refused(paper_activity: PaperActivity) -> None:
    """More than the sheet has blanks; nothing is stored."""
    with pytest.raises(AnswersError, match="Line 3"):
        paper_activity.paper_import().store_line(f"1017: {RIGHT} 1", 3)
    assert paper_activity.attempts() == 0


def test_what_is_typed_on_the_screen_stays(paper_activity: PaperActivity, library: Library) -> None:
    """Whatever sizes the paper has, and however little is on it; without a draft, the paper becomes one."""
    kim = paper_activity.listed("Kim Lee")
    sheet = student_sheet(library, paper_activity.store, paper_activity.activity, kim, 1)
    paper_activity.store.classwork.save(sheet.key, ClassDraft({"input.rows": "1"}, 0, sheet.sizes))
    other = library.variant("llama-7b", None, 77)
    paper_activity.paper_import(code=other.code).store_line(f"1017: {' '.join(map(str, other.key.values()))}", 1)
    for line in ("1017: 7 8 9", f"1017: {RIGHT}"):
        paper_activity.paper_import().store_line(line, 1)
    draft = paper_activity.store.classwork.draft(sheet.key)
    assert draft
    assert (dict(draft.answers), draft.variant.tokens) == ({"input.rows": "1"}, 100)
    lou = paper_activity.listed("Lou Ray")
    paper_activity.paper_import().store_line(f"1018: {RIGHT}", 1)
    draft = paper_activity.store.classwork.draft(replace(sheet.key, student_id=lou.id))
    assert draft
    assert dict(draft.answers) == KEY
