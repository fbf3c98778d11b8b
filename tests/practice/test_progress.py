"""How far a record is, in words: levels, groups of misconceptions, and why the next sheet comes."""

from __future__ import annotations

from dataclasses import replace

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS
from app.practice.levels import practice_levels
from app.practice.progress import group_views, level_name, level_views, practice_panel
from app.practice.record import PracticeRecord, SheetResult
from app.practice.scheduler import Practice, next_sheet
from tests.helpers.shipped import LIBRARY

STEPS, FIRST, *LATER = practice_levels(LIBRARY)
NEW = PracticeRecord(3, passed=(STEPS.key,))


def after_right_sheets(record: PracticeRecord, count: int) -> PracticeRecord:
    """The record after so many sheets in a row that were right."""
    for _ in range(count):
        record = Practice(LIBRARY, record).after(SheetResult(next_sheet(LIBRARY, record).variant.code, right=True))
    return record


def test_a_level_is_closed_until_what_comes_before_it_is_passed() -> None:
    steps, *levels = level_views(Practice(LIBRARY, NEW))
    assert (steps.number, steps.key) == (0, STEPS.key)
    assert [level.number for level in levels] == list(range(1, len(LATER) + 2))
    assert [level.state for level in levels] == ["current", *["closed"] * len(LATER)]
    assert all(level.before for level in levels[1:])
    passed = replace(NEW, passed=(STEPS.key, FIRST.key))
    opened = [level.key for level in LATER if set(level.after) == {FIRST.key}]
    _steps, *levels = level_views(Practice(LIBRARY, passed))
    assert [level.key for level in levels if not level.before and level.key != FIRST.key] == opened
    assert (levels[0].state, levels[0].left) == ("passed", 0)
    assert {level.state for level in levels if level.key in opened} == {"current", "open"}


def test_each_right_sheet_is_one_less_to_do() -> None:
    steps = len(FIRST.steps)
    assert [level_views(Practice(LIBRARY, after_right_sheets(NEW, count)))[1].done for count in range(steps + 1)] == [
        *range(steps),
        steps,
    ]
    before, after = after_right_sheets(NEW, steps - 1), after_right_sheets(NEW, steps)
    panel = practice_panel(LIBRARY, before, after, None)
    assert panel.reached == level_name(LIBRARY.wording, Practice(LIBRARY, after).level)
    assert practice_panel(LIBRARY, before, before, None).reached == ""


def test_what_was_missed_waits_on_its_level() -> None:
    code = LIBRARY.seeded("llama-7b", 2).code
    practice = Practice(LIBRARY, replace(NEW, results=(SheetResult(code, False, ("softmax-collapses",)),)))
    [again] = [view for view in group_views(practice) if view.state == "again"]
    assert level_views(practice)[1].missed == (again.name,)
    assert len(group_views(practice)) == len(MISCONCEPTION_GROUPS)
    assert {view.state for view in group_views(practice)} <= {"again", "new", "growing"}


def test_the_panel_says_why_only_of_the_sheet_that_the_record_asks_for() -> None:
    testing = replace(NEW, testing=True)
    coming = next_sheet(LIBRARY, testing).variant
    assert practice_panel(LIBRARY, testing, testing, coming).why
    assert practice_panel(LIBRARY, testing, testing, LIBRARY.seeded("llama-7b", 99)).why == ""


def test_every_level_has_a_name_of_its_own() -> None:
    names = [level_name(LIBRARY.wording, level) for level in (FIRST, *LATER)]
    assert len(set(names)) == len(names)
