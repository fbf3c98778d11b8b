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
from app.sheets.worksheet import whole_key
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
        """The sheet that comes next.

        The hardest of the record's level, to test out with, goes before all others, and one that comes back to a held
        misconception before a new one of that level; a misconception that no sheet shows for now is passed over.
        Nothing else is repeated. Once all levels are passed and the record is at the last one, every new sheet is of a
        random level. For a new sheet of the record's level, the reason is "first" if no sheet of the record still
        opens, "step" if none was of this level and the last one was right, else "more".
        """
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
        return sheet.variant.worksheet.whole in level.worksheets

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
        """The record with one more result and its draw counted, and the record's level passed if this result ends it,
        whichever level the sheet is of.

        A level ends once no step is left and nothing that was missed on it waits (`has_missed`), or with a right
        test-out; the record is then at the level of `level_after`. Testing ends with its sheet, right or wrong. Only
        the last MAX_RESULTS results are kept.
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
    """The record with the result of a sheet, from the first readable answer to each blank; `attempts` are newest first.

    For a sheet with a result in the record already, which so comes again, and for a sheet in steps, only the last
    attempt counts. Without any readable answer the sheet is skipped: only the draw is counted. So is a sheet in steps
    unless the attempt is all right, since it is there to be got right in the end.
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
    """The next sheet of a level: of the first step that is left, or, once none is, of steps from a random one on.

    A level that begins whole begins with one of its whole worksheets. If a step has no sheet but the last one, the next
    step is taken; after the level's steps those of the open levels above it, then those below, nearest first. The last
    sheet comes again only if there is no other.
    """
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
    """The sheet to test out of the record's level with.

    Of each worksheet that practice deals on that level SEEDS_TRIED random sheets are drawn, which depend on the record
    alone. It is that on which the most misconceptions show unmistakably; of equal ones, that with the most boxes, then
    the first drawn. It is not the last sheet of the record, unless no other was drawn.
    """
    drawn = [
        practice.library.seeded(key, _random_number(practice.record, f"{key}/{turn}"))
        for key in practice.level.dealt
        for turn in range(SEEDS_TRIED)
    ]
    last = practice.past[-1].variant if practice.past else None
    return max(drawn, key=lambda sheet: (sheet != last, len(distinguishable_misconceptions(sheet)), len(sheet.blanks)))


def _sheet_coming_back(practice: Practice) -> NextSheet | None:
    """A sheet that shows the misconception that has waited longest to be repeated, with the groups of all waiting
    misconceptions that it shows.

    None if none waits, or if no sheet tried shows that one: the next-longest is not tried in its place. It is a sheet
    of the record's level if there is one. Other open levels, from the nearest lower one down and then upwards, are
    tried only if the last sheet was of the record's level, so that a level just chosen comes at least every other time,
    or if a misconception has waited SHEETS_BEFORE_OTHER_LEVELS sheets already.
    """
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
    """A sheet of the level that shows `waiting[0]`, and if possible the later ones too; None if no sheet shows it.

    None, too, if the level's topic cannot show `waiting[0]`, or is in steps. Sheets of the level's steps are tried
    first, then the whole worksheets that practice deals, which have more boxes. Both come before new sheets with any
    other model of these worksheets, where only `waiting[0]` counts.
    """
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
    """A sheet of these worksheets, not in the record yet, that shows the misconception, with any model they may draw.

    Some show on few models, such as those whose config states the head dimension. Each worksheet is drawn SEEDS_TRIED
    times with each model; None if no draw shows it.
    """
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
    """The first sheet that shows all of these misconceptions, or else the one that shows the best of them.

    It must show the first. Of two such sheets, that is better which shows the earliest misconception in which they
    differ; of equal ones the first is taken. None if no sheet shows the first.
    """
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
    """One sheet of each of these worksheets: new ones first, then old ones from the longest ago. A worksheet that has
    only the last sheet to offer is left out.

    The new ones come in the order of `_worksheet_order`.
    """
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
    """The keys of the worksheets in the order in which they are tried: parts first, then whole ones, fewest rows first.

    Equal ones keep their order from a random one on, starting over at the end. The worksheet of the last sheet, and its
    parts, come last.
    """
    last = practice.past[-1].variant.worksheet.whole if practice.past else ""
    begin = _random_number(practice.record, "sheet") % max(1, len(worksheets))
    sheets = map(practice.library.worksheet, (*worksheets[begin:], *worksheets[:begin]))
    rows = {sheet.key: len(sheet.rows) if sheet.key == sheet.whole else 0 for sheet in sheets}
    return sorted(rows, key=lambda key: (whole_key(key) == last, rows[key]))


def _freshest_sheet(practice: Practice, worksheet: str, codes: Sequence[str]) -> Variant:
    """The first sheet of SEEDS_TRIED random seeds whose code is not in `codes`, else the one met longest ago.

    `codes` are those of the past sheets, oldest first.
    """
    drawn = dict[str, Variant]()
    for turn in range(SEEDS_TRIED):
        sheet = practice.library.seeded(worksheet, _random_number(practice.record, f"{worksheet}/{turn}"))
        if sheet.code not in codes:
            return sheet
        drawn[sheet.code] = sheet
    return drawn[max(drawn, key=codes[::-1].index)]


def _random_number(record: PracticeRecord, what: str) -> int:
    """A number from 0 to 2^63 - 1 that depends only on the record's start, its count of sheets, and what it is for."""
    digest = sha256(f"{record.start}/{record.drawn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
