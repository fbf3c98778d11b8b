"""The levels of practice: what each asks for, what has to be passed before it, and those that a library has.

>>> [spec.key for spec in LEVELS][:3]
['single-head', 'bidirectional-head', 'scale-mask-softmax']
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet

LETTERS_SUFFIX = "-letters"  # ends the key of a level whose sheets are answered in symbols
LATENT_SUFFIX = "-latent"  # follows the topic in the key of a level whose sheets are about latent attention
OWN_WORKSHEET_PREFIX = "own-"  # of the keys of worksheets that a course wrote

LADDERS_REMEMBERED = 32

WHOLE_SHEET = ()  # in place of rows: all that a worksheet asks for
Rows = tuple[str, ...]


@dataclass(frozen=True)
class LevelSpec:
    """One level: its topic, in numbers or in letters, the levels that have to be passed before it, and its steps.

    Each step is the rows of one short sheet: together they ask for what is new, once. A level is passed when each of
    its steps was right. Of a level that `begins_whole` the first sheet is a whole one, which covers the first step.
    """

    key: str
    topic: str
    form: Literal["numbers", "letters"] = "numbers"
    after: tuple[str, ...] = ()
    steps: tuple[Rows, ...] = (WHOLE_SHEET,)
    begins_whole: bool = False


def _in_letters(topic: str, *after: str, steps: tuple[Rows, ...] = (WHOLE_SHEET,)) -> LevelSpec:
    """The level of a topic in letters, which comes after the one in numbers and these."""
    return LevelSpec(f"{topic}{LETTERS_SUFFIX}", topic, "letters", (topic, *after), steps)


# In the order in which they are practised, which is not quite that in which topics are taught (app/shapes/topics.py):
# letters some time after the same topic in numbers, the whole model before its matrices are counted. Whatever a level
# comes after stands above it.
_HEAD, _LAYER, _DECODE, _WALK, _MATRICES = (
    *("single-head", "attention-layer", "decode-step"),
    *("whole-model", "layer-parameters"),
)
LEVELS: tuple[LevelSpec, ...] = (
    LevelSpec(
        _HEAD,
        _HEAD,
        steps=(("input", "queries", "keys", "scores"), ("queries", "values", "weights", "output")),
        begins_whole=True,
    ),
    LevelSpec("bidirectional-head", "bidirectional-head", after=(_HEAD,), steps=(("queries", "weights", "output"),)),
    LevelSpec(
        "scale-mask-softmax",
        "scale-mask-softmax",
        after=(_HEAD, "bidirectional-head"),
        steps=(("under_root", "mask", "masked", "chosen_weights", "row_sum", "weights_sum"),),
    ),
    LevelSpec(
        _LAYER,
        _LAYER,
        after=(_HEAD,),
        steps=(("queries", "keys", "scores", "output"), ("keys", "values", "context", "output")),
    ),
    LevelSpec(
        _DECODE,
        _DECODE,
        after=(_HEAD, _LAYER),
        steps=(("queries", "keys", "scores"), ("queries", "values", "output")),
    ),
    _in_letters(_HEAD, steps=(("queries", "scores", "output"),)),
    LevelSpec(
        "three-dimensions",
        "three-dimensions",
        after=(_LAYER,),
        steps=(("queries", "split_queries", "queries_by_head"), ("keys_by_head", "scores", "joined_context")),
    ),
    _in_letters(_LAYER, "single-head-letters", steps=(("queries", "keys", "scores", "output"),)),
    LevelSpec(
        "cross-attention",
        "cross-attention",
        after=(_HEAD, "bidirectional-head"),
        steps=(("queries", "keys", "scores", "output"),),
    ),
    _in_letters(_DECODE, "attention-layer-letters", steps=(("queries", "keys", "scores"),)),
    _in_letters("cross-attention", "single-head-letters", steps=(("queries", "keys", "scores"),)),
    LevelSpec(_WALK, _WALK, after=(_LAYER,), steps=(("embedded", "angles", "hidden", "fed_forward", "logits"),)),
    LevelSpec(
        "rotary-pairs",
        "rotary-pairs",
        after=(_LAYER, _WALK),
        steps=(("angles", "rotated_queries", "partner", "layer_angles", "layer_rotated"),),
    ),
    LevelSpec("head-parameters", "head-parameters", after=(_LAYER,)),
    LevelSpec(_MATRICES, _MATRICES, after=(_LAYER, _WALK), steps=(("W_K", "W_O", "W_down"), ("W_Q", "W_up"))),
    LevelSpec("feed-forward-width", "feed-forward-width", after=(_MATRICES,)),
    LevelSpec(
        "parameter-count",
        "parameter-count",
        after=(_MATRICES,),
        steps=(("embedding", "attention", "feed_forward", "all_layers", "total"),),
    ),
    _in_letters(_MATRICES, "attention-layer-letters", steps=(("W_K", "W_O", "W_down"),)),
    LevelSpec(
        "experts",
        "experts",
        after=("parameter-count",),
        steps=(("router_logits", "chosen", "expert_input", "W_up", "block_active", "total"),),
    ),
    LevelSpec(
        "costs",
        "costs",
        after=(_DECODE, "parameter-count"),
        steps=(("keys_flops", "scores_flops", "output_flops", "feed_forward_flops", "weights_16_bit", "cache_16_bit"),),
    ),
    LevelSpec("growth", "growth", after=("costs",)),
    LevelSpec(
        "attention-layer-latent",
        _LAYER,
        after=(_LAYER, _DECODE),
        steps=(("queries", "rotary_key", "cache", "keys", "context"),),
    ),
    LevelSpec(
        "four-dimensions",
        "four-dimensions",
        after=("three-dimensions",),
        steps=(("split_queries", "queries_by_head", "scores", "joined_context"),),
    ),
    _in_letters("bidirectional-head", "single-head-letters"),
    _in_letters("scale-mask-softmax", "single-head-letters"),
    _in_letters("three-dimensions", "attention-layer-letters"),
    _in_letters("four-dimensions", "three-dimensions-letters"),
    _in_letters(_WALK, "attention-layer-letters"),
    _in_letters("rotary-pairs", "whole-model-letters"),
    _in_letters("head-parameters", "attention-layer-letters"),
    _in_letters("feed-forward-width", "layer-parameters-letters"),
    _in_letters(
        "parameter-count",
        "layer-parameters-letters",
        steps=(("embedding", "attention", "feed_forward", "total"),),
    ),
    _in_letters("experts", "parameter-count-letters"),
    _in_letters(
        "costs",
        "layer-parameters-letters",
        steps=(("keys_flops", "scores_flops", "output_flops", "feed_forward_flops", "cache_16_bit"),),
    ),
    _in_letters("growth", "costs-letters"),
    LevelSpec(
        "attention-layer-latent-letters",
        _LAYER,
        "letters",
        after=("attention-layer-latent", "attention-layer-letters"),
    ),
)
_SPECS = {spec.key: spec for spec in LEVELS}


@dataclass(frozen=True)
class LevelStep:
    """One sheet's worth of a level: the worksheets that can be dealt for it, each cut to the rows of the step."""

    rows: Rows
    worksheets: tuple[str, ...]

    def is_covered_by(self, variant: Variant, whole: Worksheet) -> bool:
        """Whether a sheet of the worksheet `whole`, or of a part of it, asks for all that the step asks for."""
        if self.rows == WHOLE_SHEET:
            return variant.worksheet.key in self.worksheets
        wanted = {row for row in whole.rows if row in self.rows and row in variant.table.asked}
        return bool(wanted) and wanted <= variant.problem.asked


@dataclass(frozen=True)
class PracticeLevel:
    """One level that a library has: its topic, its whole worksheets, its steps, and the levels to be passed before it.

    The worksheets with the fewest rows come first. `after` leaves out levels that the library lacks, and has in their
    place what these come after.
    """

    key: str
    topic: str
    worksheets: tuple[str, ...]
    steps: tuple[LevelStep, ...] = ()
    after: tuple[str, ...] = ()
    begins_whole: bool = False

    @property
    def in_letters(self) -> bool:
        """Whether its sheets are answered in symbols."""
        return self.key.endswith(LETTERS_SUFFIX)

    @property
    def about_latent_attention(self) -> bool:
        """Whether its sheets ask for the latents of keys and values."""
        return self.key.removesuffix(LETTERS_SUFFIX).endswith(LATENT_SUFFIX)

    def is_open(self, passed: Collection[str]) -> bool:
        """Whether all levels that come before it are among those passed."""
        return all(key in passed for key in self.after)


def level_key(worksheet: Worksheet) -> str:
    """The key of the level a worksheet belongs to: that of its topic, and what is particular to its rows and answers.

    Example: "single-head", "single-head-letters", "attention-layer-latent"
    """
    latent = LATENT_SUFFIX if "latent" in worksheet.rows else ""
    return f"{worksheet.topic}{latent}{LETTERS_SUFFIX if worksheet.answers == 'letters' else ''}"


def practice_levels(library: Library) -> tuple[PracticeLevel, ...]:
    """The levels that the library has worksheets for, in the order of LEVELS.

    Worksheets whose tokens are columns are left out: they are for courses that choose that convention.
    """
    return _levels_of(tuple(library.worksheets.values()))


@lru_cache(maxsize=LADDERS_REMEMBERED)
def _levels_of(worksheets: tuple[Worksheet, ...]) -> tuple[PracticeLevel, ...]:
    """The levels that have some of these worksheets."""
    by_level = dict[str, list[Worksheet]]()
    for worksheet in worksheets:
        if worksheet.tokens_are == "rows":
            by_level.setdefault(level_key(worksheet), []).append(worksheet)
    return tuple(
        PracticeLevel(
            spec.key,
            spec.topic,
            tuple(sheet.key for sheet in sorted(by_level[spec.key], key=lambda sheet: len(sheet.rows))),
            tuple(_steps(spec, by_level[spec.key])),
            tuple(dict.fromkeys(_present(spec.after, by_level))),
            spec.begins_whole,
        )
        for spec in LEVELS
        if spec.key in by_level
    )


def _steps(spec: LevelSpec, worksheets: Sequence[Worksheet]) -> Iterator[LevelStep]:
    """The steps of a level with these worksheets: those of the table, then each worksheet that a course wrote, whole.

    A step of the table is dealt from the worksheets that ask for more than half of its rows, and left out without one.
    """
    ours = [sheet for sheet in worksheets if not sheet.key.startswith(OWN_WORKSHEET_PREFIX)]
    for rows in spec.steps if ours else ():
        if asking := [sheet for sheet in ours if 2 * len(set(rows).intersection(sheet.rows)) > len(rows) or not rows]:
            yield LevelStep(rows, tuple(sheet.cut_to(rows).key for sheet in asking))
    yield from (LevelStep(WHOLE_SHEET, (sheet.key,)) for sheet in worksheets if sheet not in ours)


def _present(keys: tuple[str, ...], library_has: Collection[str]) -> Iterator[str]:
    """Those of the levels that the library has, and in place of the others what these come after."""
    for key in keys:
        if key in library_has:
            yield key
        else:
            yield from _present(_SPECS[key].after, library_has)


def worksheet_after(library: Library, worksheet: str) -> str:
    """The key of the worksheet that comes after one on the way through the levels; empty after the last.

    After a worksheet of no level, such as one with tokens as columns, it is the first.
    """
    way = [key for level in practice_levels(library) for key in level.worksheets]
    following = way.index(worksheet) + 1 if worksheet in way else 0
    return way[following] if following < len(way) else ""


def level_after(levels: Sequence[PracticeLevel], passed: Collection[str], level: PracticeLevel | None) -> PracticeLevel:
    """The level to go on with: the next open one after `level` that is not passed, else the first one anywhere.

    Once all are passed it is the last one.
    """
    begin = levels.index(level) + 1 if level else 0
    in_turn = (*levels[begin:], *levels[:begin])
    return next((each for each in in_turn if each.key not in passed and each.is_open(passed)), levels[-1])
