"""Where work on a sheet is kept: a class, practice and a preview keep the same of each outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.activities.activity import Policies
from app.activities.rules import PRACTICE_RULES, Rules
from app.activities.work import Answers, ClassSheetWork, SheetProgress
from app.classes import sheet_actions
from app.classes.sheet_actions import Action, SentSheet, perform
from app.classes.sheet_work import ClassWork, PracticeWork, PreviewWork
from app.classes.student_sheet import student_sheet
from app.sheets.library import Library
from app.store import Store
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.running_activity import RunningActivity

STEPS: tuple[tuple[Action, Answers], ...] = (
    (sheet_actions.save, {"queries.rows": "1"}),
    (sheet_actions.check, WIDE),
    (sheet_actions.check, WIDE),  # the same again, by another request
    (sheet_actions.hint, WIDE),
    (sheet_actions.hand_in, WIDE),
    (sheet_actions.hand_in, KEY),
)


class RefusedError(Exception):
    """What a limit on attempts raises."""


def refuse(_answers: Answers) -> None:
    raise RefusedError


@pytest.fixture
def class_work(library: Library, store: Store) -> ClassWork:
    """Kim's work on the first sheet of an activity, nothing done yet."""
    running = RunningActivity(library, store)
    sheet = student_sheet(library, store, running.activity, running.student(), 1)
    empty = ClassSheetWork(None, 0, None)
    return ClassWork(library, store, running.activity, sheet, empty, lambda _answers: None)


def rules_now(work: ClassWork) -> Rules:
    return Rules.of(work.activity, work.store.now())


def test_a_preview_keeps_what_a_class_does(class_work: ClassWork) -> None:
    """After each step the same attempts, marks and progress; only the draft is the class's alone."""
    work, preview = class_work, PreviewWork(class_work.sheet, (), class_work.store.now())
    for number, (action, answers) in enumerate(STEPS):
        sent, rules = SentSheet(answers, None, f"form.{number}"), rules_now(work)
        outcome, work = perform(action, work.sheet.variant, work, rules, sent)
        tried, preview = perform(action, work.sheet.variant, preview, rules, sent)
        assert (tried.result, tried.answers) == (outcome.result, outcome.answers)
        assert preview.attempts == work.attempts == len(work.newest_attempts)
        progress = [each.progress.sheets.get(each.sheet.key.sheet_key) for each in (work, preview)]
        assert progress[0] == (progress[1] or SheetProgress(0, handed_in=False))  # the draft counts in a class
        for mine, stored in zip(preview.newest_attempts, work.newest_attempts, strict=True):
            assert (mine.answers, mine.marks, mine.score, mine.handed_in, mine.late) == (
                stored.answers, stored.marks, stored.score, stored.handed_in, stored.late,
            )  # fmt: skip
        again = work.read_again()
        assert (again.draft, again.last, again.attempts) == (work.draft, work.last, work.attempts)
    assert preview.draft is None
    assert work.draft
    assert work.draft.answers == KEY


def test_an_attempt_over_the_limit_is_refused_and_its_text_saved(class_work: ClassWork) -> None:
    """So that it is auto-submitted at closing; with a limit of the activity's own, the other is not asked."""
    limited = replace(class_work, charge=refuse)
    with pytest.raises(RefusedError):
        perform(sheet_actions.check, limited.sheet.variant, limited, rules_now(limited), SentSheet(WIDE, None, "a"))
    after = limited.read_again()
    assert after.draft
    assert (after.draft.answers, after.attempts) == (WIDE, 0)
    plan = replace(limited.activity.plan, policies=Policies(max_attempts=1))
    once = replace(limited, activity=replace(limited.activity, plan=plan))
    _, once = perform(sheet_actions.check, once.sheet.variant, once, rules_now(once), SentSheet(WIDE, None, "b"))
    assert once.attempts == 1


def test_practice_is_found_by_the_browsers_token(library: Library, store: Store) -> None:
    """With the draft and the last attempt on the sheet; of another sheet there is none."""
    visitor, variant = store.add_visitor(), library.variant("llama-7b")
    work = PracticeWork.find(store, visitor.token, "s/1")
    assert work
    for number, (action, answers) in enumerate(STEPS[:3]):
        _, work = perform(action, variant, work, PRACTICE_RULES, SentSheet(answers, None, f"form.{number}"))
    found = PracticeWork.find(store, visitor.token, "s/1")
    assert found
    assert found.draft == work.draft
    assert found.last
    assert work.last
    assert (found.last.answers, found.last.score) == (work.last.answers, work.last.score)
    other = PracticeWork.find(store, visitor.token, "s/2")
    assert other
    assert (other.draft, other.last, other.newest_attempts) == (None, None, ())
    assert PracticeWork.find(store, "nobody", "s/1") is None
