"""What comes next in practice: the rule alone, from a library and a record to a sheet.

Levels follow the topics in the order in which they are taught; two right sheets in a row lead one level up. A
misconception that was held comes back, on a sheet that shows it, until a sheet was filled in without it. The same
record always gives the same sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from app.misconceptions.catalogue import cannot_tell_apart
from app.misconceptions.ideas import IDEAS, idea_of
from app.practice.record import MAX_RESULTS, PracticeRecord, RecordError, SheetResult
from app.sheets.library import Library
from app.sheets.worksheet import Variant, Worksheet, WorksheetError

RIGHT_SHEETS_TO_STEP_UP = 2  # right sheets in a row on one level
SHEETS_TO_SOLID = 3  # sheets on which an idea could have gone wrong and did not
MAX_SHEETS_WAITING = 2  # sheets until a misconception that was held is shown again
SEEDS_TRIED = 4  # seeds that are looked at on each worksheet
LETTERS = "-letters"  # how the key of a level ends whose sheets are answered in letters

NextReason = Literal["first", "more", "step", "back", "mixed"]
IdeaState = Literal["new", "growing", "solid", "again"]


@dataclass(frozen=True)
class PracticeLevel:
    """One rung of the ladder: its key, its topic, and its worksheets, those with the fewest rows first."""

    key: str
    topic: str
    worksheets: tuple[str, ...]

    @property
    def in_letters(self) -> bool:
        return self.key.endswith(LETTERS)


@dataclass(frozen=True)
class NextSheet:
    """The sheet that comes next, its level, why it comes, and the ideas that it comes back to."""

    variant: Variant
    level: PracticeLevel
    reason: NextReason
    ideas: tuple[str, ...] = ()


@dataclass(frozen=True)
class PastSheet:
    """A result with its sheet, and the misconceptions that this shows."""

    result: SheetResult
    variant: Variant
    shows: frozenset[str]

    def avoided(self, misconception: str) -> bool:
        """Whether the sheet would have shown this misconception, and does not."""
        held = misconception in self.result.held or idea_of(misconception) in self.result.unexplained_ideas
        return not held and misconception in self.shows


def practice_levels(library: Library) -> tuple[PracticeLevel, ...]:
    """The levels there are worksheets for; sheets whose tokens are columns belong to courses that choose them."""
    levels = dict[str, list[Worksheet]]()
    for sheet in library.worksheets.values():
        if sheet.tokens_are == "rows":
            levels.setdefault(sheet.topic + LETTERS * (sheet.answers == "letters"), []).append(sheet)
    taught = sorted(levels, key=lambda key: (library.topics.index(key.removesuffix(LETTERS)), key))
    ordered = {key: sorted(levels[key], key=lambda sheet: len(sheet.rows)) for key in taught}
    return tuple(PracticeLevel(key, sheets[0].topic, tuple(s.key for s in sheets)) for key, sheets in ordered.items())


def current_level(library: Library, record: PracticeRecord) -> PracticeLevel:
    """The level of a record, the first one where it names none."""
    levels = practice_levels(library)
    return next((level for level in levels if level.key == record.level), levels[0])


def record_result(library: Library, record: PracticeRecord, result: SheetResult) -> PracticeRecord:
    """The record with one more result: a level up after two right sheets in a row there."""
    levels, level = practice_levels(library), current_level(library, record)
    there = _level_with(levels, _sheet_of(library, result)) == level
    streak = record.streak + there if result.right else 0
    if streak >= RIGHT_SHEETS_TO_STEP_UP and level != levels[-1]:
        level, streak = levels[levels.index(level) + 1], 0
    results = (*record.results, result)[-MAX_RESULTS:]
    return PracticeRecord(record.start, record.next_draw, level.key, min(streak, RIGHT_SHEETS_TO_STEP_UP), results)


def next_sheet(library: Library, record: PracticeRecord) -> NextSheet:
    """The sheet that comes next; raises RecordError where the library has no sheet to practise on."""
    if not practice_levels(library):
        raise RecordError("There are no worksheets to practise on.")
    seen, levels, level = _seen(library, record), practice_levels(library), current_level(library, record)
    latest = _level_with(levels, seen[-1].variant.worksheet.key) if seen else None
    if back := _coming_back(library, record, seen, misconceptions_to_repeat(seen), latest):
        return back
    through = level == levels[-1] and record.streak >= RIGHT_SHEETS_TO_STEP_UP
    if through:
        level = levels[_chance(record, "level") % len(levels)]
    stepped = bool(seen) and seen[-1].result.right and not record.streak and latest == _before(levels, level)
    reason: NextReason = "mixed" if through else "first" if not seen else "step" if stepped else "more"
    return NextSheet(_another(library, record, level, seen), level, reason)


def misconceptions_to_repeat(seen: Sequence[PastSheet]) -> dict[str, int]:
    """The misconceptions that were held and not avoided since, each with how many sheets ago one showed it; longest
    first.
    """
    waiting = dict[str, tuple[int, bool]]()  # the turn of its last sheet, and whether it was not held on that one
    for turn, entry in enumerate(seen):
        for misconception in list(waiting):
            if entry.avoided(misconception):
                del waiting[misconception]
            elif misconception in entry.shows:
                waiting[misconception] = turn, misconception not in entry.result.held
        for misconception in entry.result.held:  # held again where it is not clear, it has been waited for since before
            waiting.setdefault(misconception, (turn, False))
    return {
        misconception: len(seen) - waiting[misconception][0]
        for misconception in sorted(waiting, key=waiting.__getitem__)
    }


def idea_states(library: Library, record: PracticeRecord) -> dict[str, IdeaState]:
    """How each idea stands: not met, growing, solid, or to be looked at again."""
    seen = _seen(library, record)
    again = {idea_of(misconception) for misconception in misconceptions_to_repeat(seen)}
    return {idea: "again" if idea in again else _state(idea, seen) for idea in IDEAS}


def _state(idea: str, seen: Sequence[PastSheet]) -> IdeaState:
    met = [entry for entry in seen if not entry.shows.isdisjoint(IDEAS[idea])]
    held = [
        turn
        for turn, entry in enumerate(met)
        if any(misconception in entry.result.held for misconception in IDEAS[idea])
    ]
    since = met[held[-1] + 1 :] if held else met
    avoided = sum(idea not in entry.result.unexplained_ideas for entry in since)
    return "solid" if avoided >= SHEETS_TO_SOLID else "growing" if met else "new"


def distinguishable_misconceptions(variant: Variant) -> frozenset[str]:
    """The misconceptions that this sheet shows and tells from every other."""
    hidden = {misconception for pair in cannot_tell_apart(variant.with_tokens_as_rows) for misconception in pair}
    return frozenset(entry.misconception for entry in variant.with_tokens_as_rows.expectations) - hidden


def _another(library: Library, record: PracticeRecord, level: PracticeLevel, seen: Sequence[PastSheet]) -> Variant:
    """The next sheet of a level; of another one where this has a single sheet, and it was the last."""
    levels = practice_levels(library)
    at = levels.index(level)
    for other in (level, *levels[at + 1 :], *reversed(levels[:at])):
        if found := next(_sheets(library, record, other, seen), None):
            return found
    return seen[-1].variant  # a library of one sheet


def _coming_back(
    library: Library,
    record: PracticeRecord,
    seen: Sequence[PastSheet],
    waiting: Mapping[str, int],
    latest: PracticeLevel | None,
) -> NextSheet | None:
    """A sheet that shows what was missed: of the record's level if one can, else of the nearest level below, or above.

    Other levels alternate with the record's own, so that a level just chosen is what comes; but none waits longer.
    """
    if not waiting:
        return None
    misconceptions, longest = tuple(waiting), max(waiting.values())
    own, levels = current_level(library, record), practice_levels(library)
    at = levels.index(own)
    others = (*reversed(levels[:at]), *levels[at + 1 :])
    for level in (own, *(others if latest == own or longest >= MAX_SHEETS_WAITING else ())):
        if found := _showing(_sheets(library, record, level, seen), misconceptions):
            shown = {
                idea_of(misconception)
                for misconception in misconceptions
                if misconception in distinguishable_misconceptions(found)
            }
            return NextSheet(found, level, "back", tuple(idea for idea in IDEAS if idea in shown))
    return None


def _showing(sheets: Iterator[Variant], misconceptions: Sequence[str]) -> Variant | None:
    """The sheet that shows most of the misconceptions, the first of them above all; the first sheet that shows them
    all.
    """
    best: tuple[tuple[bool, ...], Variant] | None = None
    for sheet in sheets:
        shown = tuple(misconception in distinguishable_misconceptions(sheet) for misconception in misconceptions)
        if all(shown):
            return sheet
        if shown[0] and (best is None or shown > best[0]):
            best = shown, sheet
    return best[1] if best else None


def _sheets(
    library: Library, record: PracticeRecord, level: PracticeLevel, seen: Sequence[PastSheet]
) -> Iterator[Variant]:
    """A sheet of each worksheet of a level: those not met yet, else those met before; never the last sheet again.

    Until one was right on this level those with few rows come first, and after all others the worksheet of the last.
    """
    codes = [entry.result.code for entry in seen]
    waiting = list[Variant]()
    for key in _ordered(library, record, level, seen[-1].variant.worksheet.key if seen else ""):
        sheet = _fresh(library, record, key, codes)
        if sheet and sheet.code not in codes:
            yield sheet
        elif sheet and sheet.code != codes[-1]:
            waiting.append(sheet)
    yield from sorted(waiting, key=lambda sheet: codes[::-1].index(sheet.code), reverse=True)


def _ordered(library: Library, record: PracticeRecord, level: PracticeLevel, last: str) -> list[str]:
    turn = _chance(record, "sheet") % len(level.worksheets)
    turned = (*level.worksheets[turn:], *level.worksheets[:turn])
    rows = {key: len(library.worksheets[key].rows) for key in turned}
    fewest = min(rows.values())
    return sorted(turned, key=lambda key: (key == last, not record.streak and rows[key] > fewest))


def _fresh(library: Library, record: PracticeRecord, worksheet: str, codes: Sequence[str]) -> Variant | None:
    """The first sheet of some seeds that was not met yet, else the one among them that was met longest ago."""
    drawn = dict[str, Variant]()
    for turn in range(SEEDS_TRIED):
        sheet = library.seeded(worksheet, _chance(record, f"{worksheet}/{turn}"))
        if sheet.code not in codes:
            return sheet
        drawn[sheet.code] = sheet
    return drawn[max(drawn, key=codes[::-1].index)]


def _chance(record: PracticeRecord, what: str) -> int:
    """A number from 0 to 2^63 - 1 that only the record's start, its count of sheets and the question decide."""
    digest = sha256(f"{record.start}/{record.drawn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


def _seen(library: Library, record: PracticeRecord) -> list[PastSheet]:
    """The results whose sheets there are, with them."""
    found = ((result, _opened(library, result.code)) for result in record.results)
    return [PastSheet(result, variant, distinguishable_misconceptions(variant)) for result, variant in found if variant]


def _opened(library: Library, code: str) -> Variant | None:
    try:
        return library.variant_from_code(code)
    except WorksheetError:
        return None


def _sheet_of(library: Library, result: SheetResult) -> str:
    variant = _opened(library, result.code)
    return variant.worksheet.key if variant else ""


def _level_with(levels: Sequence[PracticeLevel], worksheet: str) -> PracticeLevel | None:
    return next((level for level in levels if worksheet in level.worksheets), None)


def _before(levels: Sequence[PracticeLevel], level: PracticeLevel) -> PracticeLevel | None:
    at = levels.index(level)
    return levels[at - 1] if at else None
