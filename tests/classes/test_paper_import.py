"""Paper answers entered without pages: whose a line is, which sheet it is about, and that it is stored once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.classes import paper_import
from app.classes.paper_import import PaperImport, ReadLine, RejectedLine, WrongSheetError, students_handed_in
from app.classes.roster_lookup import RosterLookup
from app.classes.student_sheet import stored_marks, student_sheet
from app.grading.grade import grade
from app.grading.paper import grid_line
from app.sheets.library import Library
from app.sheets.worksheet import WorksheetError
from app.store import Store, Student
from tests.helpers.answer_keys import KEY
from tests.helpers.running_activity import RunningActivity, counted_statements
from tests.helpers.stored_class import record, save

RIGHT = " ".join(KEY.values())
WIDE_TEXT = RIGHT.replace("128", "4096")


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

    def enter(self, *lines: str, **options: Any) -> tuple[tuple[ReadLine, ...], tuple[RejectedLine, ...]]:
        """Read these lines, and store the clear ones."""
        entered = self.paper_import(**options)
        read, rejected = entered.read_lines(lines)
        entered.store_lines(read)
        return read, rejected

    def attempts(self) -> int:
        return len(self.store.classwork.attempts_of_activity(self.activity.id))


@pytest.fixture
def paper_activity(library: Library, store: Store) -> PaperActivity:
    return PaperActivity(library, store)


@pytest.mark.parametrize("start", ["1017:", "kim lee:", "Lee, Kim:", "Kim Lee", "1017"])
def test_a_line_becomes_an_attempt_once(paper_activity: PaperActivity, start: str) -> None:
    [line], _ = paper_activity.enter(f"{start} {RIGHT}")
    assert (line.student.name, line.paper.report.score, line.already_stored) == ("Kim Lee", 14, False)
    [again], _ = paper_activity.enter(f"1017: {RIGHT}")
    assert again.already_stored
    [attempt] = paper_activity.store.classwork.attempts_of_activity(paper_activity.activity.id)
    assert (attempt.student_id, attempt.sheet_number, attempt.handed_in) == (line.student.id, 1, True)
    assert students_handed_in(paper_activity.store, paper_activity.activity, 1) == {line.student.id}
    assert students_handed_in(paper_activity.store, paper_activity.activity, 2) == set()


def test_many_lines_are_stored_in_as_few_statements_as_one(paper_activity: PaperActivity) -> None:
    store, activity = paper_activity.store, paper_activity.activity
    with counted_statements(store) as one:
        paper_activity.enter(f"1017: {RIGHT}")
    store.roster.add_students(paper_activity.course, [(f"Pupil {n}", str(2000 + n)) for n in range(50)])
    with counted_statements(store) as many:
        stored, rejected = paper_activity.enter(*(f"{2000 + n}: {RIGHT}" for n in range(50)), f"1017: {RIGHT}")
    assert (len(stored), [line.already_stored for line in stored[-2:]], rejected) == (51, [False, True], ())
    assert (paper_activity.attempts(), len(store.classwork.drafts_of_activity(activity.id))) == (51, 51)
    assert len(store.classwork.attendance(activity.id)) == 51
    assert len(many) <= len(one) + 2  # Kim's draft, which the line entered again is beside


def test_lines_that_are_not_clear_come_back_with_who_may_be_meant(paper_activity: PaperActivity) -> None:
    stored, rejected = paper_activity.enter(f"Kim: {RIGHT}", f"Lou: {RIGHT}", "Eve: 1", "Lou:", "1 2 3")
    assert [line.student.name for line in stored] == ["Lou Ray"]
    assert [line.line for line in rejected] == [f"Kim: {RIGHT}", "Eve: 1", "Lou:", "1 2 3"]
    assert {student.name for student in rejected[0].students} == {"Kim Lee", "Kim Fox"}
    assert (rejected[0].label, len(rejected[1].students)) == ("Kim", 3)
    assert [f"{number}" in line.problem for number, line in enumerate(rejected, start=1)] == [True] * 4
    assert paper_activity.attempts() == 1


def test_a_page_offers_so_many_students_in_all(paper_activity: PaperActivity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_import, "MAX_CHOICES", 7)
    _, rejected = paper_activity.enter(*(f"Eve {number}: 1" for number in range(4)))
    assert [len(line.students) for line in rejected] == [3, 3, 0, 0]
    monkeypatch.setattr(paper_import, "MAX_CHOICES", 2)
    _, rejected = paper_activity.enter("Eve: 1", "Eve: 1")
    assert [len(line.students) for line in rejected] == [3, 0]


def test_a_picked_student_is_used_for_one_line(paper_activity: PaperActivity) -> None:
    ids = [str(paper_activity.listed(name).id) for name in ("Kim Fox", "Kim Lee")]
    stored, rejected = paper_activity.enter(*[f"Kim: {RIGHT}"] * 3, chosen={"Kim": [*ids, "999999"]})
    assert {line.picked_label for line in stored} == {"Kim"}
    assert [line.student.name for line in stored] == ["Kim Fox", "Kim Lee"]
    assert len(rejected) == 1


def test_a_code_says_which_sheet_and_which_sizes(paper_activity: PaperActivity, library: Library) -> None:
    other = library.variant("qwen2.5-0.5b", None, 64)
    answers = " ".join(map(str, other.key.values()))
    for line, code in ((f"1017 {other.code}: {answers}", ""), (f"1018: {answers}", other.code)):
        [stored], _ = paper_activity.enter(line, code=code)
        assert (stored.sheet.variant.code, stored.paper.report.complete) == (other.code, True)
    attempts = paper_activity.store.classwork.attempts_of_activity(paper_activity.activity.id)
    assert {(attempt.sheet_number, attempt.variant.tokens) for attempt in attempts} == {(2, 64)}


def test_a_code_of_no_sheet_of_the_activity_is_refused(paper_activity: PaperActivity, library: Library) -> None:
    with pytest.raises(WrongSheetError):
        paper_activity.paper_import().sheet_by_code(library.variant("walk-llama-3.2-1b", "gpt2").code)
    with pytest.raises(WorksheetError):
        paper_activity.paper_import().sheet_by_code("nonsense")
    assert paper_activity.enter(f"1017: {RIGHT}", code="nonsense")[0] == ()
    [first, second] = paper_activity.activity.content.items
    shorter = replace(first, worksheet={**first.worksheet, "rows": ["input"]})
    content = replace(paper_activity.activity.content, items=(shorter, second))
    paper_activity.store.activities.revise(paper_activity.activity, content)
    with pytest.raises(WrongSheetError):
        paper_activity.paper_import().sheet_by_code(library.variant("llama-7b").code)


def test_too_many_answers_are_refused(paper_activity: PaperActivity) -> None:
    [], [rejected] = paper_activity.enter(f"1017: {RIGHT} 1")
    assert "Line 1" in rejected.problem
    assert paper_activity.attempts() == 0


def test_what_is_typed_on_the_screen_stays(paper_activity: PaperActivity, library: Library) -> None:
    kim = paper_activity.listed("Kim Lee")
    sheet = student_sheet(library, paper_activity.store, paper_activity.activity, kim, 1)
    save(paper_activity.store, sheet.key, {"input.rows": "1"}, sizes=sheet.sizes)
    other = library.variant("llama-7b", None, 77)
    paper_activity.enter(f"1017: {' '.join(map(str, other.key.values()))}", code=other.code)
    for line in ("1017: 7 8 9", f"1017: {RIGHT}"):
        paper_activity.enter(line)
    draft = paper_activity.store.classwork.draft(sheet.key)
    assert draft
    assert (dict(draft.answers), draft.variant.tokens) == ({"input.rows": "1"}, 100)
    lou = paper_activity.listed("Lou Ray")
    paper_activity.enter(f"1018: {RIGHT}")
    draft = paper_activity.store.classwork.draft(replace(sheet.key, student_id=lou.id))
    assert draft
    assert dict(draft.answers) == KEY


def test_what_a_line_replaces_is_known_before_it_is_stored(paper_activity: PaperActivity, library: Library) -> None:
    kim, store = paper_activity.listed("Kim Lee"), paper_activity.store
    sheet = student_sheet(library, store, paper_activity.activity, kim, 1)
    graded = stored_marks(sheet.variant, grade(sheet.variant, KEY))
    record(store, sheet.key, KEY, graded, sizes=sheet.sizes)
    in_grid = grid_line("Kim Fox", ["1", "", *["-"] * 12])
    lines = ("1017: 100 4096 100", f"1017: {RIGHT}", f"1018: {RIGHT}", "Kim Fox: 1 " + "- " * 13, in_grid)
    (short, second, lou, dashes, skipped), _ = paper_activity.paper_import().read_lines(lines)
    assert paper_activity.attempts() == 1
    before = short.replaces
    assert before
    assert (before.score, before.out_of, before.answered, before.origin) == (14, 14, 14, "screen")
    assert short.paper.report.score == 3
    assert all((short.is_short, short.lowers_score, short.has_fewer_answers))
    assert second.replaces
    assert (second.replaces.origin, second.replaces.score) == ("line", 3)
    assert (lou.replaces, lou.is_doubtful) == (None, False)
    assert not dashes.is_doubtful
    assert (skipped.is_short, skipped.paper.given) == (True, 13)  # an empty cell isn't a dash
    assert [line.is_doubtful for line in (short, second)] == [True, True]
    paper_activity.enter(lines[0])
    attempts = store.classwork.attempts_of_student(kim.id)
    assert [attempt.score for attempt in attempts] == [14, 3]
    (again,), _ = paper_activity.paper_import().read_lines([f"1017: {WIDE_TEXT}"])
    assert again.replaces
    assert (again.replaces.origin, again.token == short.token) == ("paper", False)


def test_the_token_of_a_line_changes_with_what_it_replaces(paper_activity: PaperActivity) -> None:
    [line], _ = paper_activity.paper_import().read_lines([f"1017: {RIGHT}"])
    [same], _ = paper_activity.paper_import().read_lines([f"Kim Lee: {RIGHT}"])
    assert line.token == same.token
    paper_activity.enter(f"1017: {WIDE_TEXT}")
    [after], _ = paper_activity.paper_import().read_lines([f"1017: {RIGHT}"])
    assert after.token != line.token
