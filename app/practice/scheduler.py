"""Decides which sheet comes next in practice, from a library and a record alone; the same record gives the same sheet.

A level is passed once each of its steps was right and nothing missed waits, or by one test-out; then the next level
that is open follows. A misconception that was held comes back on a sheet that shows it, until a sheet was filled in
without it. No sheet is of a level whose prerequisites were not passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Literal

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS, group_of
from app.practice.ideas import (
    GroupState,
    PastSheet,
    distinguishable_misconceptions,
    group_states,
    misconceptions_to_repeat,
    past_sheets,
)
from app.practice.levels import LevelStep, PracticeLevel, level_after, practice_levels
from app.practice.record import (
    MAX_RESULTS,
    PracticeRecord,
    RecordError,
    SheetResult,
    first_readable_answers,
    sheet_result,
)
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import library_key
from app.topics.registry import TOPICS
from app.translation import gettext as _

SHEETS_BEFORE_OTHER_LEVELS = 2  # then a held misconception is shown again on any open level, not just on the record's
SEEDS_TRIED = 4  # for each worksheet, in search of a sheet that was not there yet

_TOPICS_OF = {misconception.key: misconception.topics for misconception in MISCONCEPTIONS}

# Why a sheet comes: the very first; more of the same level; the first of a higher level ("step"); it comes "back" to a
# misconception; it tests out of its level ("test"); or any level at all once all are passed ("mixed").
NextReason = Literal["first", "more", "step", "back", "test", "mixed"]


@dataclass(frozen=True)
class NextSheet:
    """The sheet that comes next, its level and why it comes; `groups` are the misconception groups it comes back to."""

    variant: Variant
    level: PracticeLevel
    reason: NextReason
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Practice:
    """A library and a record, with what both together say; raises RecordError without a worksheet to practise on."""

    library: Library
    record: PracticeRecord

    @cached_property
    def levels(self) -> tuple[PracticeLevel, ...]:
        """The levels that the library has worksheets for, lowest first; raises RecordError if there is none."""
        levels = practice_levels(self.library, in_letters=self.record.in_letters)
        if not levels:
            raise RecordError(_("There are no worksheets to practise with."))
        return levels

    @cached_property
    def open_levels(self) -> tuple[PracticeLevel, ...]:
        """The levels whose prerequisites were passed: no sheet is of another one."""
        return tuple(level for level in self.levels if level.is_open(self.record.passed))

    @cached_property
    def level(self) -> PracticeLevel:
        """The record's level; the first that `level_after` finds if the record names none, or one that is not open."""
        named = next((level for level in self.open_levels if level.key == self.record.level), None)
        return named or level_after(self.levels, self.record.passed, None)

    @property
    def all_passed(self) -> bool:
        """Whether there is no level left to pass."""
        return {level.key for level in self.levels} <= set(self.record.passed)

    @cached_property
    def past(self) -> list[PastSheet]:
        """The sheets of the record that still open, oldest first."""
        return past_sheets(self.library, self.record)

    @cached_property
    def waiting(self) -> dict[str, int]:
        """The misconceptions that were held and not avoided since; see `misconceptions_to_repeat`."""
        return misconceptions_to_repeat(self.past)

    @cached_property
    def groups(self) -> dict[str, GroupState]:
        """The state of every misconception group."""
        return group_states(self.past)

    @cached_property
    def coming(self) -> NextSheet:
        """The sheet that comes next."""
        if self.record.testing:
            return NextSheet(_hardest_sheet(self), self.level, "test")
        if back := _sheet_coming_back(self):
            return back
        if self.all_passed and self.level == self.levels[-1]:
            level = self.levels[_random_number(self.record, "level") % len(self.levels)]
            return NextSheet(_new_sheet(self, level), level, "mixed")
        last = self.past[-1] if self.past else None
        begun = any(self.is_of(sheet, self.level) for sheet in self.past)
        stepped_up = last is not None and last.result.right and not begun
        reason: NextReason = "first" if last is None else "step" if stepped_up else "more"
        return NextSheet(_new_sheet(self, self.level), self.level, reason)

    def is_of(self, sheet: PastSheet, level: PracticeLevel) -> bool:
        """Whether a past sheet belongs to this level."""
        return library_key(sheet.variant.worksheet.key) in level.worksheets

    def steps_left(self, level: PracticeLevel) -> list[LevelStep]:
        """The steps of a level left to do; each right sheet of it, oldest first, removes the first that it covers."""
        left = list(level.steps)
        for sheet in self.past:
            if sheet.result.right and self.is_of(sheet, level):
                whole = self.library.worksheet(sheet.variant.worksheet.whole)
                covered = next((step for step in left if step.is_covered_by(sheet.variant, whole)), None)
                left = [step for step in left if step is not covered]
        return left

    def after(self, result: SheetResult) -> PracticeRecord:
        """The record with one more result and its draw counted, and the record's level passed if this result ends
        it, whichever level the sheet is of.
        """
        results = (*self.record.results, result)[-MAX_RESULTS:]
        record = replace(self.record, drawn=self.record.next_draw, testing=False, results=results)
        following, level = Practice(self.library, record), self.level
        tested = self.record.testing and result.right
        if not tested and (following.steps_left(level) or following.has_missed(level)):
            return replace(record, level=level.key)
        passed = tuple(dict.fromkeys((*record.passed, level.key)))
        return replace(record, passed=passed, level=level_after(self.levels, passed, level).key)

    def has_missed(self, level: PracticeLevel) -> bool:
        """Whether a misconception held on a sheet of this level waits, and some open level can show it."""
        held = {key for sheet in self.past if self.is_of(sheet, level) for key in sheet.result.held}
        waiting = [key for key in self.waiting if key in held]
        return any(_sheet_of_level_showing(self, each, [key]) for key in waiting for each in self.open_levels)

    def groups_missed_on(self, level: PracticeLevel) -> tuple[str, ...]:
        """The misconception groups in state "again" whose last sheet on which they were missed is of this level."""
        again = [group for group, state in self.groups.items() if state == "again"]
        missed_last = {group: next(each for each in reversed(self.past) if each.missed(group)) for group in again}
        return tuple(group for group, sheet in missed_last.items() if self.is_of(sheet, level))


def record_with_sheet(
    library: Library, record: PracticeRecord, variant: Variant, attempts: Sequence[Mapping[str, str]]
) -> PracticeRecord:
    """The record with the result of a sheet, from the first readable answer to each blank; `attempts` are newest
    first.
    """
    is_in_steps = TOPICS[variant.worksheet.topic].in_steps
    if is_in_steps or any(result.code == variant.code for result in record.results):
        attempts = attempts[:1]
    result = sheet_result(variant, first_readable_answers(variant, reversed(attempts)))
    if result is None or (is_in_steps and not result.right):
        return record.after_skipping()
    return Practice(library, record).after(result)


def counts(library: Library, record: PracticeRecord, variant: Variant) -> bool:
    """Whether a sheet counts for a record: the sheet that comes next, and any sheet in steps without a result in it."""
    is_known = any(result.code == variant.code for result in record.results)
    is_in_steps = TOPICS[variant.worksheet.topic].in_steps
    return (is_in_steps and not is_known) or next_sheet(library, record).variant == variant


def next_sheet(library: Library, record: PracticeRecord) -> NextSheet:
    """The sheet that comes next; see `Practice.coming`. Raises RecordError without a worksheet to practise on."""
    return Practice(library, record).coming


def _new_sheet(practice: Practice, level: PracticeLevel) -> Variant:
    if level.begins_whole and not any(practice.is_of(sheet, level) for sheet in practice.past):
        return next(_sheets_of(practice, level.dealt))
    at = practice.levels.index(level)
    nearest = (*practice.levels[at:], *reversed(practice.levels[:at]))
    for other in (each for each in nearest if each in practice.open_levels):
        left = practice.steps_left(other)
        turn = _random_number(practice.record, "step") % len(other.steps)
        circle = (*other.steps[turn:], *other.steps[:turn])
        for step in (*left, *(each for each in circle if each not in left)):
            if variant := next(_sheets_of(practice, step.worksheets), None):
                return variant
    return practice.past[-1].variant  # a library with a single sheet


def _hardest_sheet(practice: Practice) -> Variant:
    drawn = [
        practice.library.seeded(key, _random_number(practice.record, f"{key}/{turn}"))
        for key in practice.level.dealt
        for turn in range(SEEDS_TRIED)
    ]
    last = practice.past[-1].variant if practice.past else None
    return max(drawn, key=lambda sheet: (sheet != last, len(distinguishable_misconceptions(sheet)), len(sheet.blanks)))


def _sheet_coming_back(practice: Practice) -> NextSheet | None:
    waiting = practice.waiting
    if not waiting:
        return None
    current, at = practice.level, practice.open_levels.index(practice.level)
    others = (*reversed(practice.open_levels[:at]), *practice.open_levels[at + 1 :])
    may_leave = practice.is_of(practice.past[-1], current) or max(waiting.values()) >= SHEETS_BEFORE_OTHER_LEVELS
    for level in (current, *(others if may_leave else ())):
        if variant := _sheet_of_level_showing(practice, level, tuple(waiting)):
            shown = {group_of(key) for key in distinguishable_misconceptions(variant).intersection(waiting)}
            return NextSheet(variant, level, "back", tuple(group for group in MISCONCEPTION_GROUPS if group in shown))
    return None


def _sheet_of_level_showing(practice: Practice, level: PracticeLevel, waiting: Sequence[str]) -> Variant | None:
    if level.topic not in _TOPICS_OF[waiting[0]] or TOPICS[level.topic].in_steps:
        return None
    short = [key for step in level.steps for key in step.worksheets]
    whole = [key for key in level.dealt if key not in short]
    return (
        _sheet_showing(_sheets_of(practice, short), waiting)
        or _sheet_showing(_sheets_of(practice, whole), waiting)
        or _other_model_showing(practice, (*short, *whole), waiting[0])
    )


def _other_model_showing(practice: Practice, worksheets: Iterable[str], misconception: str) -> Variant | None:
    library, codes = practice.library, {sheet.result.code for sheet in practice.past}
    models = [(key, model) for key in worksheets for model in library.worksheet(key).models]
    for turn in range(SEEDS_TRIED):
        for key, model in models:
            if misconception in frozenset().union(*library.unavoidable_confusions(key, model)):
                continue  # it never shows on this model
            sheet = library.seeded(key, _random_number(practice.record, f"{key}/{turn}"), model)
            if sheet.code not in codes and misconception in distinguishable_misconceptions(sheet):
                return sheet
    return None


def _sheet_showing(sheets: Iterator[Variant], misconceptions: Sequence[str]) -> Variant | None:
    best: tuple[tuple[bool, ...], Variant] | None = None
    for sheet in sheets:
        distinguishable = distinguishable_misconceptions(sheet)
        shown = tuple(misconception in distinguishable for misconception in misconceptions)
        if all(shown):
            return sheet
        if shown[0] and (best is None or shown > best[0]):
            best = shown, sheet
    return best[1] if best else None


def _sheets_of(practice: Practice, worksheets: Sequence[str]) -> Iterator[Variant]:
    codes = [sheet.result.code for sheet in practice.past]
    met_before = list[Variant]()
    for key in _worksheet_order(practice, worksheets):
        sheet = _freshest_sheet(practice, key, codes)
        if sheet.code not in codes:
            yield sheet
        elif sheet.code != codes[-1]:
            met_before.append(sheet)
    yield from sorted(met_before, key=lambda sheet: codes[::-1].index(sheet.code), reverse=True)


def _worksheet_order(practice: Practice, worksheets: Sequence[str]) -> list[str]:
    last = library_key(practice.past[-1].variant.worksheet.key) if practice.past else ""
    begin = _random_number(practice.record, "sheet") % max(1, len(worksheets))
    sheets = map(practice.library.worksheet, (*worksheets[begin:], *worksheets[:begin]))
    rows = {sheet.key: len(sheet.rows) if sheet.key == sheet.whole else 0 for sheet in sheets}
    return sorted(rows, key=lambda key: (library_key(key) == last, rows[key]))


def _freshest_sheet(practice: Practice, worksheet: str, codes: Sequence[str]) -> Variant:
    drawn = dict[str, Variant]()
    for turn in range(SEEDS_TRIED):
        sheet = practice.library.seeded(worksheet, _random_number(practice.record, f"{worksheet}/{turn}"))
        if sheet.code not in codes:
            return sheet
        drawn[sheet.code] = sheet
    return drawn[max(drawn, key=codes[::-1].index)]


def _random_number(record: PracticeRecord, what: str) -> int:
    digest = sha256(f"{record.start}/{record.drawn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
