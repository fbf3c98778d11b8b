"""Where work on a sheet is kept: a class, practice and a preview keep the same of each outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.activities.activity import Policies
from app.activities.rules import PRACTICE_RULES, Rules
from app.activities.work import Answers, Edit, SheetProgress, WorkDone
from app.classes import sheet_actions
from app.classes.sheet_actions import Action, SentSheet, perform
from app.classes.sheet_work import ClassWork, PracticeWork, PreviewWork
from app.classes.student_sheet import student_sheet
from app.sheets.library import Library
from app.store import Store
from tests.helpers.answer_keys import KEY, WIDE
from tests.helpers.running_activity import RunningActivity

NOTHING = dict.fromkeys(KEY, "")
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
    return ClassWork(
        store, sheet.key, sheet.sizes, WorkDone(), library, running.activity, sheet, charge=lambda _answers: None
    )


def rules_now(work: ClassWork) -> Rules:
    return Rules.of(work.activity, work.store.now())


def test_a_preview_keeps_what_a_class_does(class_work: ClassWork) -> None:
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
    visitor, variant = store.add_visitor(), library.variant("llama-7b")
    work = PracticeWork.find(store, visitor.token, variant)
    assert work
    for number, (action, answers) in enumerate(STEPS[:3]):
        _, work = perform(action, variant, work, PRACTICE_RULES, SentSheet(answers, None, f"form.{number}"))
    found = PracticeWork.find(store, visitor.token, variant)
    assert found
    assert (found.done, found.attempts) == (work.done, 2)
    other = PracticeWork.find(store, visitor.token, library.variant("qwen2.5-0.5b"))
    assert other
    assert (other.draft, other.last, other.newest_attempts) == (None, None, ())
    assert PracticeWork.find(store, "nobody", variant) is None


@pytest.mark.parametrize("action", [sheet_actions.save, sheet_actions.check, sheet_actions.hand_in])
def test_what_another_tab_has_saved_meanwhile_counts(class_work: ClassWork, action: Action) -> None:
    seen = class_work
    first = SentSheet({**NOTHING, "queries.rows": "1"}, {"queries.rows": Edit("phone001", 1)}, "phone")
    perform(sheet_actions.check, seen.sheet.variant, seen, rules_now(seen), first)
    sent = SentSheet({**NOTHING, "keys.rows": "2"}, {"keys.rows": Edit("laptop01", 1)}, "laptop")
    outcome, work = perform(action, seen.sheet.variant, seen, rules_now(seen), sent)
    typed = {**NOTHING, "queries.rows": "1", "keys.rows": "2"}
    assert work.draft
    assert (outcome.answers, work.draft.answers, work.draft.version) == (typed, typed, 2)
    assert [dict(each.answers) for each in work.newest_attempts] == [
        *([] if action is sheet_actions.save else [typed]),
        {**NOTHING, "queries.rows": "1"},
    ]


def test_where_one_attempt_is_left_one_of_two_requests_makes_it(class_work: ClassWork) -> None:
    plan = replace(class_work.activity.plan, policies=Policies(max_attempts=1))
    work = replace(class_work, activity=replace(class_work.activity, plan=plan))
    outcomes = [
        perform(sheet_actions.check, work.sheet.variant, work, rules_now(work), SentSheet(answers, None, request))[0]
        for request, answers in (("a", WIDE), ("b", KEY))
    ]
    assert [outcome.result for outcome in outcomes] == ["checked", "no-attempts-left"]
    after = work.read_again()
    assert after.draft
    assert (after.attempts, after.draft.answers) == (1, WIDE)
