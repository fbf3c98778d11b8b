"""The levels of practice: what each asks for, what has to be passed before it, and those that a library has.

>>> [spec.key for spec in LEVELS][:3]
['first-steps', 'single-head', 'whole-model']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.topics.registry import LEVELS, TOPICS
from app.topics.topic import LevelSpec, Rows

LATENT_SUFFIX = "-latent"  # follows the topic in the key of a level whose sheets are about latent attention

LADDERS_REMEMBERED = 32

WHOLE_SHEET = ()  # in place of the rows of a step: all that a worksheet asks for


def check_levels(levels: Iterable[LevelSpec]) -> dict[str, LevelSpec]:
    """The levels by key; raises ValueError for an unknown topic, or a level that comes after one not above it."""
    specs = dict[str, LevelSpec]()
    for spec in levels:
        if spec.topic not in TOPICS:
            raise ValueError(f"The level {spec.key} has an unknown topic: {spec.topic}.")
        if unknown := set(spec.after) - specs.keys():
            raise ValueError(f"The level {spec.key} comes after no level above it: {', '.join(sorted(unknown))}.")
        specs[spec.key] = spec
    return specs


_SPECS = check_levels(LEVELS)


@dataclass(frozen=True)
class LevelStep:
    """One sheet's worth of a level: the worksheets that can be dealt for it, each cut to the rows of the step."""

    rows: Rows
    worksheets: tuple[str, ...]

    def is_covered_by(self, variant: Variant, whole: Worksheet) -> bool:
        """Whether a sheet, of the worksheet `whole` or a part of it, asks for all that the step asks for."""
        if self.rows == WHOLE_SHEET:
            return variant.worksheet.key in self.worksheets
        wanted = {row for row in whole.rows if row in self.rows and row in variant.table.askable}
        return bool(wanted) and wanted <= variant.problem.asked


@dataclass(frozen=True)
class PracticeLevel:
    """One level that a library has: its topic, its whole worksheets, its steps, and the levels to be passed before
    it.
    """

    key: str
    topic: str
    worksheets: tuple[str, ...]
    dealt: tuple[str, ...]
    has_both_kinds: bool
    steps: tuple[LevelStep, ...]
    after: tuple[str, ...]
    begins_whole: bool

    @property
    def about_latent_attention(self) -> bool:
        """Whether its sheets ask for the latents of keys and values."""
        return self.key.endswith(LATENT_SUFFIX)

    def is_open(self, passed: Collection[str]) -> bool:
        """Whether all levels that come before it are among those passed."""
        return all(key in passed for key in self.after)


def practice_levels(library: Library, *, in_letters: bool = False) -> tuple[PracticeLevel, ...]:
    """The levels that the library has worksheets for, in the order of LEVELS."""
    return _levels_of(tuple(library.worksheets.values()), in_letters)


@lru_cache(maxsize=LADDERS_REMEMBERED)
def _levels_of(worksheets: tuple[Worksheet, ...], in_letters: bool) -> tuple[PracticeLevel, ...]:
    by_level = dict[str, list[Worksheet]]()
    for worksheet in sorted(worksheets, key=lambda sheet: (sheet.answers == "letters", len(sheet.rows))):
        if worksheet.is_own or not worksheet.sentence:
            key = f"{worksheet.topic}{LATENT_SUFFIX if 'latent' in worksheet.rows else ''}"
            by_level.setdefault(key, []).append(worksheet)
    return tuple(
        PracticeLevel(
            spec.key,
            spec.topic,
            worksheets=tuple(sheet.key for sheet in by_level[spec.key]),
            dealt=tuple(sheet.key for sheet in _dealt(by_level[spec.key], in_letters)),
            has_both_kinds=any(not sheet.why_not_in_symbols for sheet in by_level[spec.key]),
            steps=tuple(_steps(spec, by_level[spec.key], in_letters)),
            after=tuple(dict.fromkeys(_present(spec.after, by_level))),
            begins_whole=spec.begins_whole,
        )
        for spec in LEVELS
        if spec.key in by_level
    )


def _dealt(worksheets: Sequence[Worksheet], in_letters: bool) -> Sequence[Worksheet]:
    if in_letters:
        dealt = [sheet.in_symbols() for sheet in worksheets if not sheet.why_not_in_symbols]
    else:
        dealt = [sheet for sheet in worksheets if sheet.is_own or sheet.answers == "numbers"]
    return dealt or worksheets


def _steps(spec: LevelSpec, worksheets: Sequence[Worksheet], in_letters: bool) -> Iterator[LevelStep]:
    ours = [sheet for sheet in worksheets if not sheet.is_own]
    for rows in spec.steps if ours else ():
        if asking := [sheet for sheet in ours if 2 * len(set(rows).intersection(sheet.rows)) > len(rows)]:
            yield LevelStep(rows, tuple(sheet.cut_to(rows).key for sheet in _dealt(asking, in_letters)))
    yield from (LevelStep(WHOLE_SHEET, (sheet.key,)) for sheet in worksheets if sheet not in ours)


def _present(keys: tuple[str, ...], library_has: Collection[str]) -> Iterator[str]:
    for key in keys:
        if key in library_has:
            yield key
        else:
            yield from _present(_SPECS[key].after, library_has)


def worksheet_after(library: Library, worksheet: str) -> str:
    """The key of the worksheet that comes after `worksheet` in the order of the levels; empty after the last."""
    way = [key for level in practice_levels(library) for key in level.worksheets]
    following = way.index(worksheet) + 1 if worksheet in way else 0
    return way[following] if following < len(way) else ""


def level_after(levels: Sequence[PracticeLevel], passed: Collection[str], level: PracticeLevel | None) -> PracticeLevel:
    """The level to go on with: the next open one after `level` that is not passed, else the first such one before
    it.
    """
    begin = levels.index(level) + 1 if level else 0
    in_turn = (*levels[begin:], *levels[:begin])
    return next((each for each in in_turn if each.key not in passed and each.is_open(passed)), levels[-1])
