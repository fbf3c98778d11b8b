"""What is said at the end is true of what the student typed: on LLaMA 7B, worked out by hand."""

from __future__ import annotations

import pytest

from app.activities.rules import Rules
from app.classes.look_back import LookBack, look_back
from app.classes.student_sheet import student_sheet
from app.store import Activity, Policies, Student
from tests.helpers.answer_keys import KEY
from tests.helpers.class_sheet import press
from tests.helpers.school import Browser, Classroom

# Each head as wide as the model: 4096 where the head dimension, 128, belongs.
WIDE = {**KEY, **{f"{row}.columns": "4096" for row in ("queries", "keys", "values")}}
TYPO = {**KEY, "keys.columns": "127"}


class Lesson:
    """An activity with one student in it."""

    def __init__(self, classroom: Classroom, activity: Activity) -> None:
        self.classroom, self.activity = classroom, activity
        self.student, self.browser = classroom.join()

    def checks(self, *answers: dict[str, str]) -> LookBack | None:
        for typed in answers:
            press(self.browser, self.activity, "check", typed)
        return self.looks_back(self.student)

    def looks_back(self, student: Student) -> LookBack | None:
        school = self.classroom.school
        activity = school.reload(self.activity)
        rules = Rules.of(activity, school.store.now())
        return look_back(school.library, school.store, activity, student, rules)


@pytest.fixture
def lesson(classroom: Classroom) -> Lesson:
    return Lesson(classroom, classroom.open())


def test_a_misconception_that_was_corrected_is_looked_back_at(lesson: Lesson) -> None:
    seen = lesson.checks(WIDE, KEY)
    assert seen
    assert seen.fixed
    assert (seen.fixed.misconception, seen.fixed.before, seen.fixed.now) == ("head-as-wide-as-model", "4096", "128")
    assert (seen.fixed.row.key, seen.fixed.boxes, seen.fixed.tries) == ("queries", len(KEY), 2)
    assert seen.fixed.lengths == pytest.approx((100, 100 * (128 / 4096) ** 0.5))
    assert (seen.left, seen.boxes_right, seen.at_first_try) == ((), len(KEY), False)


def test_a_slip_without_a_misconception_is_looked_back_at_by_its_row(lesson: Lesson) -> None:
    seen = lesson.checks(TYPO, KEY)
    assert seen
    assert seen.fixed
    assert (seen.fixed.misconception, seen.fixed.row.key) == ("", "keys")
    assert (seen.fixed.before, seen.fixed.now, seen.fixed.name) == ("127", "128", seen.fixed.row.name)


def test_what_is_only_half_corrected_was_not_fixed(lesson: Lesson) -> None:
    seen = lesson.checks(WIDE, {**WIDE, "queries.columns": "128"})
    assert seen
    assert not (seen.fixed and seen.fixed.misconception)
    assert seen.left[0].row.key == "keys"
    assert (seen.left[0].others, seen.boxes_right) == (1, 0)


def test_what_comes_back_was_not_fixed(lesson: Lesson) -> None:
    seen = lesson.checks(WIDE, KEY, WIDE)
    assert seen
    assert seen.fixed is None
    assert seen.left[0].row.key == "queries"


def test_all_right_at_the_first_try(lesson: Lesson) -> None:
    seen = lesson.checks(KEY)
    assert seen == LookBack(None, (), len(KEY), at_first_try=True)


def test_a_sheet_filled_in_bit_by_bit_without_a_mistake_was_right_at_the_first_try(lesson: Lesson) -> None:
    half = {box: text if box.startswith("queries") else "" for box, text in KEY.items()}
    seen = lesson.checks(half, KEY)
    assert seen
    assert (seen.fixed, seen.at_first_try) == (None, True)


def test_an_unreadable_answer_is_no_first_try(lesson: Lesson) -> None:
    seen = lesson.checks({**KEY, "keys.columns": "?!"}, KEY)
    assert seen
    assert (seen.fixed, seen.boxes_right, seen.at_first_try) == (None, len(KEY), False)


def test_two_sheets_are_all_right_only_together(classroom: Classroom) -> None:
    lesson = Lesson(classroom, classroom.school.activity(classroom.course))
    seen = lesson.checks(KEY)
    assert seen
    assert (seen.left, seen.boxes_right, seen.at_first_try) == ((), 0, False)


def test_how_many_began_alike_is_said_from_five_students_on(lesson: Lesson) -> None:
    def with_another(name: str, *answers: dict[str, str]) -> tuple[int, int]:
        _, browser = lesson.classroom.join(name)
        for typed in answers:
            press(browser, lesson.activity, "check", typed)
        seen = lesson.looks_back(lesson.student)
        assert seen
        assert seen.fixed
        return seen.fixed.began_alike, seen.fixed.students

    lesson.checks(WIDE, KEY)
    assert with_another("Lou", WIDE) == (0, 0)
    assert with_another("Max", KEY, WIDE) == (0, 0)  # who didn't begin with it
    assert with_another("Ann", KEY) == (0, 0)
    assert with_another("Zoe", WIDE, KEY) == (3, 5)


@pytest.mark.parametrize(
    ("policies", "sees_marks", "sees_idea"),
    [
        (Policies(), True, True),
        (Policies(feedback="after_close"), False, False),
        (Policies(exam=True), True, False),
    ],
)
def test_nothing_is_said_that_the_rules_hide(
    classroom: Classroom, policies: Policies, sees_marks: bool, sees_idea: bool
) -> None:
    lesson = Lesson(classroom, classroom.school.activity(classroom.course, policies, ("llama-7b",)))
    for typed in (WIDE, KEY):
        press(lesson.browser, lesson.activity, "hand-in", typed)
    seen = lesson.looks_back(lesson.student)
    assert (seen is not None, bool(seen and seen.fixed)) == (sees_marks, sees_idea)


def test_of_boxes_marked_together_one_that_was_changed_is_looked_back_at(classroom: Classroom) -> None:
    lesson = Lesson(classroom, classroom.school.activity(classroom.course, Policies(), ("bug-layer",)))
    variant = student_sheet(classroom.school.library, classroom.store, lesson.activity, lesson.student, 1).variant
    right = {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    repair = [name for name in right if name.startswith(str(variant.blanks[-1]).rpartition(".")[0])]
    assert len(repair) > 1
    seen = lesson.checks({**right, repair[-1]: "7"}, right)
    assert seen
    assert seen.fixed
    assert (seen.fixed.before, seen.fixed.now) == ("7", right[repair[-1]])


def end_of(browser: Browser, activity: Activity) -> str:
    return browser.get(f"/class/{activity.id}/ticket").text


def test_the_page_says_what_was_fixed(lesson: Lesson) -> None:
    lesson.checks(WIDE, KEY)
    page = end_of(lesson.browser, lesson.activity)
    words = lesson.classroom.school.library.wording
    assert words.misconception_name("head-as-wide-as-model") in page
    assert "not handed in yet" in page
