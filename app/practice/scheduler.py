"""Decides which sheet comes next in practice, from a library and a record alone; the same record gives the same sheet.

Levels follow the topics in the order in which they are taught. Two right sheets in a row lead one level up. A
misconception that was held comes back on a sheet that shows it, until a sheet was filled in without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS, group_of
from app.misconceptions.predictions import cannot_tell_apart, expectations
from app.practice.record import MAX_RESULTS, PracticeRecord, RecordError, SheetResult
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet, WorksheetError
from app.translation import gettext as _

RIGHT_SHEETS_TO_STEP_UP = 2  # in a row on one level
SHEETS_TO_SOLID = 3  # that could show a misconception of a group and did not
SHEETS_BEFORE_OTHER_LEVELS = 2  # then a held misconception is shown again on any level, not just on the record's own
SEEDS_TRIED = 4  # for each worksheet, in search of a sheet that was not there yet
SEEDS_TRIED_FOR_A_MODEL = 24  # for a worksheet with several models, in search of one that shows a misconception
SYMBOLS_SUFFIX = "-letters"  # ends the key of a level whose sheets are answered in symbols
LATENT_SUFFIX = "-latent"  # ends the key of a level whose sheets are about latent attention
FAILURES_TO_LOOK_AGAIN = 2  # sheets in a row that leave a group in doubt, though no misconception was named
# By difficulty, which is not quite the order in which topics are taught: letters after two topics in numbers, the whole
# model before its matrices are counted, latent attention last. Levels that are not here follow, as topics are taught.
LEVEL_ORDER = (
    *("single-head", "bidirectional-head", "single-head-letters", "attention-layer", "decode-step", "cross-attention"),
    *("attention-layer-letters", "decode-step-letters", "cross-attention-letters", "rotary-pairs"),
    *("whole-model", "layer-parameters", "layer-parameters-letters", "parameter-count", "parameter-count-letters"),
    *("experts", "costs", "costs-letters", "growth", "attention-layer-latent"),
)

_TOPICS_OF = {misconception.key: misconception.topics for misconception in MISCONCEPTIONS}

# Why a sheet comes: the very first; more of the same level; the first of a higher level ("step"); it comes "back" to a
# misconception; or any level at all once the last one is passed ("mixed").
NextReason = Literal["first", "more", "step", "back", "mixed"]
# How well a group of misconceptions is overcome: not met; met; SHEETS_TO_SOLID sheets without them; held, and not
# avoided since.
GroupState = Literal["new", "growing", "solid", "again"]


@dataclass(frozen=True)
class PracticeLevel:
    """One level of practice: a topic, in numbers or in symbols, with its worksheets, those with the fewest rows first.

    Its key is the topic's, with "-letters" behind it if the sheets are answered in symbols, and "-latent" if they are
    about latent attention.
    """

    key: str
    topic: str
    worksheets: tuple[str, ...]

    @property
    def in_letters(self) -> bool:
        """Whether its sheets are answered in symbols."""
        return self.key.endswith(SYMBOLS_SUFFIX)

    @property
    def about_latent_attention(self) -> bool:
        """Whether its sheets ask for the latents of keys and values."""
        return self.key.endswith(LATENT_SUFFIX)

    @property
    def right_sheets_to_step_up(self) -> int:
        """How many right sheets in a row lead a level up: one in symbols, where every sheet has the same answers."""
        return 1 if self.in_letters else RIGHT_SHEETS_TO_STEP_UP


@dataclass(frozen=True)
class NextSheet:
    """The sheet that comes next, its level and why it comes; `groups` are the misconception groups it comes back to."""

    variant: Variant
    level: PracticeLevel
    reason: NextReason
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class PastSheet:
    """A result with its sheet opened again, and the misconceptions that this sheet can show unmistakably."""

    result: SheetResult
    variant: Variant
    shows: frozenset[str]

    def avoided(self, misconception: str) -> bool:
        """Whether the sheet would have shown this misconception, and left neither it nor its group in doubt."""
        in_doubt = misconception in self.result.held or group_of(misconception) in self.result.unexplained_groups
        return not in_doubt and misconception in self.shows


def level_key(worksheet: Worksheet) -> str:
    """The key of the level a worksheet belongs to: "single-head", or "single-head-letters" if answered in symbols."""
    suffix = SYMBOLS_SUFFIX if worksheet.answers == "letters" else LATENT_SUFFIX if "latent" in worksheet.rows else ""
    return f"{worksheet.topic}{suffix}"


def practice_levels(library: Library) -> tuple[PracticeLevel, ...]:
    """The levels the library has worksheets for, in LEVEL_ORDER.

    A level's worksheets come by their number of rows, fewest first, equal ones in the library's order. Worksheets
    whose tokens are columns are left out: they are for courses that choose that convention.
    """
    by_level = dict[str, list[Worksheet]]()
    for worksheet in library.worksheets.values():
        if worksheet.tokens_are == "rows":
            by_level.setdefault(level_key(worksheet), []).append(worksheet)
    levels = list[PracticeLevel]()
    in_order = {key: place for place, key in enumerate(LEVEL_ORDER)}
    as_taught = {key: library.topics.index(worksheets[0].topic) for key, worksheets in by_level.items()}
    for key in sorted(by_level, key=lambda key: (in_order.get(key, len(in_order)), as_taught[key], key)):
        worksheets = sorted(by_level[key], key=lambda worksheet: len(worksheet.rows))
        levels.append(PracticeLevel(key, worksheets[0].topic, tuple(worksheet.key for worksheet in worksheets)))
    return tuple(levels)


def current_level(library: Library, record: PracticeRecord) -> PracticeLevel:
    """The level of a record; the lowest if the record names none, or one that the library does not have."""
    levels = practice_levels(library)
    return next((level for level in levels if level.key == record.level), levels[0])


def worksheet_after(library: Library, worksheet: str) -> str:
    """The key of the worksheet that comes after one on the way through the levels; empty after the last.

    After a worksheet of no level, such as one with tokens as columns, it is the first.
    """
    way = [key for level in practice_levels(library) for key in level.worksheets]
    following = way.index(worksheet) + 1 if worksheet in way else 0
    return way[following] if following < len(way) else ""


def record_result(library: Library, record: PracticeRecord, result: SheetResult) -> PracticeRecord:
    """The record with one more result and its draw counted; only the last MAX_RESULTS results are kept.

    A right sheet of the record's own level lengthens the streak; two in a row, or one in symbols, lead a level up,
    where it begins at 0; on the highest level it stays at two. A right sheet of another level leaves the streak as it
    is, and a wrong one of any level ends it.
    """
    levels, level = practice_levels(library), current_level(library, record)
    on_level = _level_with(levels, _worksheet_key(library, result)) == level
    streak = record.streak + on_level if result.right else 0
    if streak >= level.right_sheets_to_step_up and level != levels[-1]:
        level, streak = levels[levels.index(level) + 1], 0
    results = (*record.results, result)[-MAX_RESULTS:]
    return PracticeRecord(record.start, record.next_draw, level.key, min(streak, RIGHT_SHEETS_TO_STEP_UP), results)


def next_sheet(library: Library, record: PracticeRecord) -> NextSheet:
    """The sheet that comes next; raises RecordError if the library has no worksheet to practise on.

    A sheet that comes back to a held misconception goes before a new one of the record's level. After two right sheets
    in a row on the highest level, every new sheet is of a random level. Its reason is "back" or "mixed" in these cases,
    else "first" without past sheets, "step" right after a step up, or "more".
    """
    levels = practice_levels(library)
    if not levels:
        raise RecordError(_("There are no worksheets to practise with."))
    past, level = _past_sheets(library, record), current_level(library, record)
    last_level = _level_with(levels, past[-1].variant.worksheet.key) if past else None
    if back := _sheet_coming_back(library, record, past, last_level):
        return back
    passed_all = level == levels[-1] and record.streak >= RIGHT_SHEETS_TO_STEP_UP
    if passed_all:
        level = levels[_random_number(record, "level") % len(levels)]
    # The streak is 0 on a level just reached, and the last sheet was a right one of the level below.
    last_right = bool(past) and past[-1].result.right
    stepped_up = last_right and not record.streak and last_level == _level_below(levels, level)
    reason: NextReason = "mixed" if passed_all else "first" if not past else "step" if stepped_up else "more"
    return NextSheet(_new_sheet(library, record, level, past), level, reason)


def misconceptions_to_repeat(past: Sequence[PastSheet]) -> dict[str, int]:
    """For each misconception that was held and not avoided since, how many sheets it has waited; longest first.

    It has waited since the last sheet that could show it, or since it was held if none could: 1 is the last sheet.
    Ties go to those that this sheet was diagnosed with.
    """
    # For each, the turn of the last sheet that could show it, and whether that sheet left it in doubt without its being
    # diagnosed.
    waiting = dict[str, tuple[int, bool]]()
    for turn, sheet in enumerate(past):
        for misconception in list(waiting):
            if sheet.avoided(misconception):
                del waiting[misconception]
            elif misconception in sheet.shows:
                waiting[misconception] = turn, misconception not in sheet.result.held
        for misconception in sheet.result.held:
            # One that is held again on a sheet that cannot prove it keeps its old place in the queue.
            waiting.setdefault(misconception, (turn, False))
    return {
        misconception: len(past) - waiting[misconception][0]
        for misconception in sorted(waiting, key=waiting.__getitem__)
    }


def group_states(library: Library, record: PracticeRecord) -> dict[str, GroupState]:
    """The state of every misconception group, in catalogue order.

    "again" while one of its misconceptions was held and not avoided since, and if the last sheets that could show one
    all left the group in doubt; else "new", "growing" or "solid".
    """
    past = _past_sheets(library, record)
    again = {group_of(misconception) for misconception in misconceptions_to_repeat(past)}
    return {group: "again" if group in again else _group_state(group, past) for group in MISCONCEPTION_GROUPS}


def _group_state(group: str, past: Sequence[PastSheet]) -> GroupState:
    """The state of a group none of whose misconceptions waits.

    It is new before any sheet could show one of them; "again" if the last FAILURES_TO_LOOK_AGAIN such sheets left it in
    doubt; and solid after SHEETS_TO_SOLID such sheets since one was last
    held, on which the group was not left in doubt either.
    """
    misconceptions = MISCONCEPTION_GROUPS[group]
    met = [sheet for sheet in past if not sheet.shows.isdisjoint(misconceptions)]
    held_at = [turn for turn, sheet in enumerate(met) if not set(sheet.result.held).isdisjoint(misconceptions)]
    since = met[held_at[-1] + 1 :] if held_at else met
    last = met[-FAILURES_TO_LOOK_AGAIN:]
    if len(last) == FAILURES_TO_LOOK_AGAIN and all(group in sheet.result.unexplained_groups for sheet in last):
        return "again"
    avoided = sum(group not in sheet.result.unexplained_groups for sheet in since)
    return "solid" if avoided >= SHEETS_TO_SOLID else "growing" if met else "new"


def distinguishable_misconceptions(variant: Variant) -> frozenset[str]:
    """The misconceptions that show on this sheet and that no other one, nor the right answer, looks like."""
    hidden = {misconception for pair in cannot_tell_apart(variant.problem) for misconception in pair}
    return frozenset(entry.misconception for entry in expectations(variant.problem)) - hidden


def _new_sheet(library: Library, record: PracticeRecord, level: PracticeLevel, past: Sequence[PastSheet]) -> Variant:
    """The next sheet of a level; if its only sheet was the last one, of the next level that has another.

    Higher levels are tried first, then lower ones from the nearest on. The last sheet comes again only if the library
    has no other.
    """
    levels = practice_levels(library)
    at = levels.index(level)
    for other in (level, *levels[at + 1 :], *reversed(levels[:at])):
        if variant := next(_sheets_of_level(library, record, other, past), None):
            return variant
    return past[-1].variant  # a library with a single sheet


def _sheet_coming_back(
    library: Library, record: PracticeRecord, past: Sequence[PastSheet], last_level: PracticeLevel | None
) -> NextSheet | None:
    """A sheet that shows a misconception waiting to be repeated; None if none waits, or no sheet shows it for now.

    It is one of the record's level if there is one. Other levels, from the nearest lower one down and then upwards,
    are tried only if the last sheet was of the record's level, so that a level just chosen comes at least every other
    time, or if a misconception has waited SHEETS_BEFORE_OTHER_LEVELS sheets already.
    """
    waiting = misconceptions_to_repeat(past)
    if not waiting:
        return None
    own, levels = current_level(library, record), practice_levels(library)
    at = levels.index(own)
    others = (*reversed(levels[:at]), *levels[at + 1 :])
    may_leave = last_level == own or max(waiting.values()) >= SHEETS_BEFORE_OTHER_LEVELS
    for level in (own, *(others if may_leave else ())):
        sheets = _sheets_of_level(library, record, level, past)
        if variant := _sheet_showing(sheets, tuple(waiting)) or _other_model_showing(
            library, record, level, past, waiting
        ):
            shown = {group_of(key) for key in distinguishable_misconceptions(variant).intersection(waiting)}
            return NextSheet(variant, level, "back", tuple(group for group in MISCONCEPTION_GROUPS if group in shown))
    return None


def _other_model_showing(
    library: Library, record: PracticeRecord, level: PracticeLevel, past: Sequence[PastSheet], waiting: Iterable[str]
) -> Variant | None:
    """A new sheet of the level that shows the first of the waiting misconceptions, for which more models are drawn.

    Some show on few models, such as those whose config states the head dimension. None if no draw shows it.
    """
    first, codes = next(iter(waiting)), {sheet.result.code for sheet in past}
    if level.topic not in _TOPICS_OF[first]:
        return None
    several_models = [key for key in level.worksheets if len(library.worksheets[key].models) > 1]
    for turn in range(SEEDS_TRIED, SEEDS_TRIED_FOR_A_MODEL):
        for key in several_models:
            sheet = library.seeded(key, _random_number(record, f"{key}/{turn}"))
            if sheet.code not in codes and first in distinguishable_misconceptions(sheet):
                return sheet
    return None


def _sheet_showing(sheets: Iterator[Variant], misconceptions: Sequence[str]) -> Variant | None:
    """The first sheet that shows all of these misconceptions; else the one that shows the best of them.

    It must show the first. Among several, misconceptions earlier in the sequence decide. None if no sheet shows it.
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


def _sheets_of_level(
    library: Library, record: PracticeRecord, level: PracticeLevel, past: Sequence[PastSheet]
) -> Iterator[Variant]:
    """One sheet of each worksheet of a level: new ones first, then old ones from the longest ago; never the last sheet.

    The new ones come in the order of `_worksheet_order`.
    """
    codes = [sheet.result.code for sheet in past]
    met_before = list[Variant]()
    for key in _worksheet_order(library, record, level, past[-1].variant.worksheet.key if past else ""):
        sheet = _freshest_sheet(library, record, key, codes)
        if sheet.code not in codes:
            yield sheet
        elif sheet.code != codes[-1]:
            met_before.append(sheet)
    yield from sorted(met_before, key=lambda sheet: codes[::-1].index(sheet.code), reverse=True)


def _worksheet_order(library: Library, record: PracticeRecord, level: PracticeLevel, last: str) -> list[str]:
    """The keys of the level's worksheets from a random one on, round the circle; `last`, the last sheet's, goes last.

    While the record's streak is 0, worksheets with the fewest rows go before the others.
    """
    begin = _random_number(record, "sheet") % len(level.worksheets)
    circle = (*level.worksheets[begin:], *level.worksheets[:begin])
    rows = {key: len(library.worksheets[key].rows) for key in circle}
    fewest = min(rows.values())
    return sorted(circle, key=lambda key: (key == last, not record.streak and rows[key] > fewest))


def _freshest_sheet(library: Library, record: PracticeRecord, worksheet: str, codes: Sequence[str]) -> Variant:
    """The first sheet of SEEDS_TRIED random seeds whose code was not met yet, else the one met longest ago."""
    drawn = dict[str, Variant]()
    for turn in range(SEEDS_TRIED):
        sheet = library.seeded(worksheet, _random_number(record, f"{worksheet}/{turn}"))
        if sheet.code not in codes:
            return sheet
        drawn[sheet.code] = sheet
    return drawn[max(drawn, key=codes[::-1].index)]


def _random_number(record: PracticeRecord, what: str) -> int:
    """A number from 0 to 2^63 - 1 that depends only on the record's start, its count of sheets, and what it is for."""
    digest = sha256(f"{record.start}/{record.drawn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


def _past_sheets(library: Library, record: PracticeRecord) -> list[PastSheet]:
    """The record's results with their sheets, oldest first; a code that opens no sheet any more is left out."""
    opened = ((result, _open_sheet(library, result.code)) for result in record.results)
    return [PastSheet(result, sheet, distinguishable_misconceptions(sheet)) for result, sheet in opened if sheet]


def _open_sheet(library: Library, code: str) -> Variant | None:
    """The sheet with this code; None if its worksheet or model has changed or gone since."""
    try:
        return library.variant_from_code(code)
    except WorksheetError:
        return None


def _worksheet_key(library: Library, result: SheetResult) -> str:
    """The key of the worksheet that a result is about; "" if its code opens none any more."""
    sheet = _open_sheet(library, result.code)
    return sheet.worksheet.key if sheet else ""


def _level_with(levels: Sequence[PracticeLevel], worksheet: str) -> PracticeLevel | None:
    """The level that has this worksheet; None if none has it."""
    return next((level for level in levels if worksheet in level.worksheets), None)


def _level_below(levels: Sequence[PracticeLevel], level: PracticeLevel) -> PracticeLevel | None:
    """The level before this one; None for the lowest."""
    at = levels.index(level)
    return levels[at - 1] if at else None
