"""What a student can do with a sheet, as one table: every action at every moment, under every policy, on any work.

The table says in a few lines what the rules are; all combinations of moments, policies and work are compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from app.activities.activity import Activity, Feedback, Plan, Policies
from app.activities.content import Content
from app.activities.rules import PRACTICE_RULES, Rules
from app.activities.work import (
    Answers,
    ClassSheetKey,
    Draft,
    Edit,
    Graded,
    NewAttempt,
    StudentDraft,
    UnfinishedWork,
    VariantSizes,
)
from app.classes import sheet_actions
from app.classes.sheet_actions import Action, Outcome, SentSheet, may_run, perform
from app.classes.sheet_work import PreviewWork
from app.classes.student_sheet import StudentSheet
from app.grading import grade as grading
from app.sheets.worksheet import OpenQuestion
from tests.helpers.shipped import LIBRARY

OPENS, CLOSES = datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 1, 10, tzinfo=UTC)
LATE, EXTRA = 5, 20  # minutes

_llama = LIBRARY.variant("llama-7b")
_worksheet = replace(_llama.worksheet, rows=("queries",), questions=(OpenQuestion(key="why", text="Why?"),))
SIZES = VariantSizes("llama-7b", 100)
SHEET = LIBRARY.variant_with_sizes(_worksheet, "llama-7b", 100, None)
STUDENT_SHEET = StudentSheet(ClassSheetKey(1, 1, 1, 1, "llama-7b@1"), SIZES, SHEET)

NOTHING = {"queries.rows": "", "queries.columns": "", "question.why": ""}
HALF = {**NOTHING, "queries.rows": "100"}
WRONG = {**NOTHING, "queries.rows": "7", "queries.columns": "4096"}
RIGHT = {**NOTHING, "queries.rows": "100", "queries.columns": "128"}
WORDS = {**NOTHING, "question.why": "One row per token."}


@dataclass(frozen=True)
class Moment:
    """A time in the life of an activity, and by hand what it means: who may write, whether late, what is shown."""

    minutes: float  # after the closing time
    accepts: bool = True
    is_late: bool = False
    phase: str = "open"
    is_writable: bool | None = None  # as `accepts` where it is None
    extra: int = 0  # minutes of this student
    reopened: bool = False  # after its answers were shown
    settled: bool = False  # drafts were auto-submitted


MOMENTS = {
    "before it opens": Moment(-61, accepts=False, phase="waiting"),
    "as it opens": Moment(-60),
    "just before it closes": Moment(-0.01),
    "on its way at the closing time": Moment(0.4, phase="closing"),
    "in the late window": Moment(1, is_late=True, phase="closing"),
    "on its way at the end of the late window": Moment(LATE + 0.4, is_late=True, phase="closing", is_writable=False),
    "after the late window": Moment(LATE + 0.6, accepts=False, phase="closing"),
    "in extra time": Moment(EXTRA - 0.1, extra=EXTRA),
    "late in extra time": Moment(EXTRA + 1, extra=EXTRA, is_late=True, phase="closing"),
    "after the end of all, drafts not in yet": Moment(60, accepts=False, phase="closing"),
    "closed": Moment(60, accepts=False, phase="closed", settled=True),
    "opened again after the answers were shown": Moment(-5, is_late=True, reopened=True),
}  # fmt: skip
FEEDBACKS: tuple[Feedback, ...] = ("immediate", "after_hand_in", "after_close")


@dataclass(frozen=True)
class Done:
    """What was done on the sheet so far: how many attempts, what the last one answers, and whether it is in."""

    attempts: int = 0
    answers: Answers | None = None
    handed_in: bool = False


NOTHING_DONE, CHECKED, SAME, IN = Done(), Done(1, WRONG), Done(1, HALF), Done(1, HALF, handed_in=True)
ALL_DONE = (NOTHING_DONE, CHECKED, SAME, IN)


@cache
def rules_at(moment: Moment, **policies: Any) -> Rules:
    """The rules of an activity at a moment, as its policies and times make them; each made once."""
    at = CLOSES + timedelta(minutes=moment.minutes)
    plan = Plan("Week 3", None, Policies(late_minutes=LATE, **policies), OPENS, CLOSES)
    activity = Activity(
        1, 1, "ABCDEF", "open", plan, 1, Content((), None),
        answers_shown_at=OPENS if moment.reopened else None,
        auto_submitted_at=at if moment.settled else None,
        longest_extra=EXTRA,
        extra_minutes=moment.extra,
    )  # fmt: skip
    return Rules.of(activity, at)


def work_after(done: Done) -> PreviewWork:
    """The work on the sheet after so much was done on it."""
    work = PreviewWork(STUDENT_SHEET, (), OPENS)
    if done.answers is not None:
        attempt = NewAttempt(done.answers, SIZES, Graded({}, (), 0, 2), handed_in=done.handed_in)
        work = work.kept(Outcome("checked", done.answers, attempt=attempt))
    return work


@pytest.fixture(autouse=True, scope="module")
def graded_once() -> Iterator[None]:
    """Each of the five sheets is graded once for all combinations."""
    known = dict[tuple[str, ...], Any]()

    def grade(variant: Any, answers: Mapping[str, str]) -> Any:
        texts = tuple(answers.values())
        if texts not in known:
            known[texts] = grading.grade(variant, answers)
        return known[texts]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sheet_actions, "grade", grade)
        yield


# The rules. Of each action, the first line whose condition is true says what comes of it:
# the result, and "new" where it adds an attempt, "last" where it hands in the last one, "saved" where it saves only.


@dataclass(frozen=True)
class Case:
    """One combination, in the words of the rules."""

    moment: Moment
    feedback: Feedback
    allowed: int
    done: Done
    typed: Answers
    asks: bool = False
    exam: bool = False
    hints: bool = True
    rules_changed: bool = False

    @property
    def used_up(self) -> bool:
        return 0 < self.allowed <= self.done.attempts

    @property
    def shows_marks(self) -> bool:
        """Whether the last attempt's marks are shown, if there is one."""
        shown = {"immediate": True, "after_hand_in": self.done.handed_in, "after_close": False}
        return self.done.attempts > 0 and (shown[self.feedback] or self.moment.phase == "closed")

    @property
    def has_empty_boxes(self) -> bool:
        return not all(self.typed[box] for box in ("queries.rows", "queries.columns"))


Line = tuple[Callable[[Case], bool], tuple[str, str]]
CHECK: list[Line] = [
    (lambda case: not case.moment.accepts, ("not-open", "")),
    (lambda case: case.rules_changed, ("new-rules", "saved")),
    (lambda case: case.feedback != "immediate", ("marks-later", "")),
    (lambda case: case.typed in (NOTHING, WORDS), ("nothing-read", "saved")),
    (lambda case: case.used_up, ("no-attempts-left", "")),
    (lambda case: True, ("checked", "new")),
]
HAND_IN: list[Line] = [
    (lambda case: not case.moment.accepts, ("not-open", "")),
    (lambda case: case.rules_changed, ("new-rules", "saved")),
    (lambda case: case.asks and case.has_empty_boxes, ("empty", "saved")),
    (lambda case: case.done == SAME and case.typed == HALF, ("handed-in", "last")),
    (lambda case: case.used_up, ("no-attempts-left", "last")),
    (lambda case: True, ("handed-in", "new")),
]
HINT: list[Line] = [
    (lambda case: not case.moment.accepts, ("not-open", "")),
    (lambda case: case.exam or not case.hints or not case.shows_marks, ("no-hint", "")),
    (lambda case: True, ("hint", "saved")),
]
SAVE: list[Line] = [
    (lambda case: not case.moment.accepts, ("not-open", "")),
    (lambda case: True, ("saved", "saved")),
]


def expected(lines: list[Line], case: Case) -> tuple[str, str, bool]:
    """What the table says of a case, and whether its attempt counts as late."""
    result, stored = next(said for holds, said in lines if holds(case))
    return result, stored, stored == "new" and case.moment.is_late


def done_in(action: Action, case: Case) -> tuple[str, str, bool]:
    """What the action does."""
    policies = {"feedback": case.feedback, "max_attempts": case.allowed, "exam": case.exam, "hints": case.hints}
    work, rules = work_after(case.done), rules_at(case.moment, **policies)
    sent = SentSheet(case.typed, None, "form.1", rules_changed=case.rules_changed, asks_about_empty=case.asks)
    outcome, after = perform(action, SHEET, work, rules, sent)
    added = after.attempts - work.attempts
    stored = "new" if added else "last" if outcome.hands_in_last else "saved" if outcome.draft else ""
    if action is sheet_actions.hand_in and stored in ("new", "last"):
        assert after.last
        assert after.last.handed_in
    assert outcome.is_refused <= (outcome.draft is None and outcome.attempt is None)
    return outcome.result, stored, bool(added and after.last and after.last.late)


def combinations(**varied: tuple[Any, ...]) -> Iterator[Case]:
    """Every combination of moments, feedback, attempts allowed and work, with these further ones."""
    always = {"moment": tuple(MOMENTS.values()), "feedback": FEEDBACKS, "allowed": (0, 1, 2), "done": ALL_DONE}
    varied = always | varied
    for values in itertools.product(*varied.values()):
        yield Case(**dict(zip(varied, values, strict=True)))


@pytest.mark.parametrize(
    ("action", "lines", "varied"),
    [
        (sheet_actions.save, SAVE, {"typed": (HALF,)}),
        (sheet_actions.check, CHECK, {"typed": (NOTHING, WORDS, HALF), "rules_changed": (False, True)}),
        (sheet_actions.hand_in, HAND_IN, {"typed": (HALF, RIGHT), "asks": (False, True)}),
        (sheet_actions.hint, HINT, {"typed": (HALF,), "exam": (False, True), "hints": (True, False)}),
    ],
    ids=["save", "check", "hand in", "hint"],
)
def test_every_action_does_what_the_table_says(
    action: Action, lines: list[Line], varied: dict[str, tuple[Any, ...]]
) -> None:
    cases = list(combinations(**varied))
    assert len(cases) >= 432
    wrong = [(case, done_in(action, case), expected(lines, case)) for case in cases]
    assert [each for each in wrong if each[1] != each[2]] == []


def test_a_moment_means_what_the_table_says() -> None:
    for name, moment in MOMENTS.items():
        rules = rules_at(moment)
        writable = moment.accepts if moment.is_writable is None else moment.is_writable
        if name == "on its way at the closing time":
            assert rules.is_writable  # the late window has begun
        assert (rules.phase, rules.accepts, rules.is_writable) == (moment.phase, moment.accepts, writable), name
        if moment.accepts:
            assert rules.is_late == moment.is_late, name


@pytest.mark.parametrize("exam", [False, True])
@pytest.mark.parametrize("run", ["before", "after"])
def test_what_is_shown(exam: bool, run: str) -> None:
    """Answers once it is closed; help then or outside of exams; a run before an attempt only where the rules say so."""
    for moment, feedback, done in itertools.product(MOMENTS.values(), FEEDBACKS, ALL_DONE):
        rules = rules_at(moment, feedback=feedback, exam=exam, run=run)
        case, closed = Case(moment, feedback, 0, done, HALF), moment.phase == "closed"
        work = work_after(done)
        assert sheet_actions.marks_visible(work, rules) == case.shows_marks
        assert rules.shows_answers == closed
        assert rules.gives_help == (closed or not exam)
        assert rules.shows_marks_of_checks == (closed or feedback == "immediate")
        shown = moment.phase != "waiting" and (closed or not exam)
        assert may_run(work, rules) == (shown and (run == "before" or case.shows_marks))


def test_a_request_that_is_sent_again_adds_nothing() -> None:
    rules = rules_at(MOMENTS["as it opens"], max_attempts=1)
    sent = SentSheet(RIGHT, None, "form.1")
    _, once = perform(sheet_actions.check, SHEET, work_after(NOTHING_DONE), rules, sent)
    outcome, twice = perform(sheet_actions.check, SHEET, once, rules, sent)
    assert (outcome.result, once.attempts, twice.made) == ("checked", 1, once.made)
    outcome, handed_in = perform(sheet_actions.hand_in, SHEET, once, rules, sent)
    assert (outcome.result, handed_in.attempts, handed_in.made[0].handed_in) == ("handed-in", 1, True)
    outcome, again = perform(sheet_actions.hand_in, SHEET, handed_in, rules, sent)
    assert (outcome.result, again.made) == ("handed-in", handed_in.made)


def test_answers_to_open_questions_go_to_the_last_attempt() -> None:
    for allowed, expected_answer in ((2, ""), (1, WORDS["question.why"])):
        rules = rules_at(MOMENTS["as it opens"], max_attempts=allowed)
        _, after = perform(
            sheet_actions.save,
            SHEET,
            work_after(SAME),
            rules,
            SentSheet({**HALF, "question.why": WORDS["question.why"]}),
        )
        assert after.made[0].answers["question.why"] == expected_answer
    sent = SentSheet({**HALF, "question.why": "So."})
    _, after = perform(sheet_actions.hand_in, SHEET, work_after(SAME), rules, sent)
    assert (after.attempts, after.made[0].answers["question.why"]) == (1, "So.")


def test_a_box_that_another_tab_has_changed_counts_as_it_is_stored() -> None:
    @dataclass(frozen=True)
    class Drafted(PreviewWork):
        """Work with a draft, as a database has it."""

        @property
        def draft(self) -> Draft:
            return Draft({**RIGHT, "queries.columns": "5"}, 3, SIZES, {"othertab": 2})

    work = Drafted(STUDENT_SHEET, (), OPENS)
    sent = SentSheet({**NOTHING, "queries.columns": "128"}, {"queries.columns": Edit("thistab1", 1)}, "form.1")
    outcome, _ = perform(sheet_actions.check, SHEET, work, rules_at(MOMENTS["as it opens"]), sent)
    assert outcome.attempt
    assert outcome.attempt.answers == RIGHT
    assert outcome.report
    assert outcome.report.complete


@pytest.mark.parametrize("action", [sheet_actions.save, sheet_actions.check, sheet_actions.hand_in])
def test_the_edits_of_a_form_are_stored_with_its_texts(action: Action) -> None:
    edits = {"queries.rows": Edit("thistab1", 1)}
    outcome = action(SHEET, work_after(NOTHING_DONE), rules_at(MOMENTS["as it opens"]), SentSheet(RIGHT, edits))
    assert outcome.draft
    assert (outcome.draft.answers["queries.rows"], outcome.draft.tab_versions) == ("100", {"thistab1": 1})


# Auto-submission


@pytest.mark.parametrize("auto_submit", [True, False])
@pytest.mark.parametrize("allowed", [0, 1])
def test_what_is_typed_is_submitted_at_closing(auto_submit: bool, allowed: int) -> None:
    saved = {"on time": MOMENTS["just before it closes"], "late": MOMENTS["in the late window"]}
    for (when, moment), typed, done, on_time in itertools.product(
        saved.items(), (NOTHING, WORDS, HALF), ALL_DONE, (False, True)
    ):
        rules = rules_at(moment, auto_submit=auto_submit, max_attempts=allowed)
        draft = StudentDraft(1, "llama-7b@1", SIZES, typed, OPENS + timedelta(minutes=5))
        last_at = OPENS if done.attempts else None
        work = UnfinishedWork(draft, done.attempts, done.attempts, done.answers, last_at, on_time)
        is_news = done.answers is None or typed != done.answers
        submitted = (
            auto_submit
            and typed != NOTHING
            and is_news
            and not (0 < allowed <= done.attempts)
            and not (when == "late" and on_time)
        )
        attempt = sheet_actions.auto_submit(SHEET, work, rules).attempt
        assert (attempt is not None) == submitted, (when, typed, done, on_time)
        if attempt:
            assert (attempt.handed_in, attempt.auto_submitted, attempt.late) == (True, True, when == "late")


# Practice


@pytest.mark.parametrize("typed", [NOTHING, WORDS, HALF, RIGHT])
@pytest.mark.parametrize("done", [NOTHING_DONE, CHECKED, SAME])
def test_practice_marks_at_once_and_as_often_as_asked(typed: Answers, done: Done) -> None:
    work, sent, is_read = work_after(done), SentSheet(typed), typed in (HALF, RIGHT)
    boxes = {name: text for name, text in typed.items() if name != "question.why"}
    checked, after = perform(sheet_actions.check, SHEET, work, PRACTICE_RULES, sent)
    assert (checked.result, after.attempts - work.attempts) == ("checked" if is_read else "nothing-read", is_read)
    assert checked.report
    if checked.attempt:
        assert (checked.attempt.answers, checked.attempt.late) == (boxes, False)
    hinted, with_hint = perform(sheet_actions.hint, SHEET, after, PRACTICE_RULES, sent)
    assert (hinted.result, with_hint.attempts) == ("hint", after.attempts)
    shown, _ = perform(sheet_actions.show_answers, SHEET, after, PRACTICE_RULES, sent)
    assert shown.result == ("answers" if after.attempts else "try-first")
    assert all(outcome.draft for outcome in (checked, hinted, shown))
