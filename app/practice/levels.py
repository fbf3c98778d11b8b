"""The levels of practice: what each asks for, what has to be passed before it, and those that a library has.

>>> [spec.key for spec in LEVELS][:3]
['single-head', 'bidirectional-head', 'attention-layer']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.shapes.topics import TOPICS
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet

LETTERS_SUFFIX = "-letters"  # ends the key of a level whose sheets are answered in symbols
LATENT_SUFFIX = "-latent"  # follows the topic in the key of a level whose sheets are about latent attention

LADDERS_REMEMBERED = 32

WHOLE_SHEET = ()  # in place of the rows of a step: all that a worksheet asks for
Rows = tuple[str, ...]


@dataclass(frozen=True)
class LevelSpec:
    """One level: its topic, the levels that have to be passed before it, and its steps.

    Each step is the rows of one short sheet: together they ask for what is new, once. A level is passed when each of
    its steps was right. Of a level that `begins_whole` the first sheet is a whole one, which covers the first step.
    """

    key: str
    topic: str
    after: tuple[str, ...]
    steps: tuple[Rows, ...]
    begins_whole: bool = False


def _in_numbers(topic: str, *after: str, steps: tuple[Rows, ...], begins_whole: bool = False) -> LevelSpec:
    """The level of a topic in numbers, which comes after these."""
    return LevelSpec(topic, topic, after, steps, begins_whole)


def _in_letters(topic: str, *after: str, rows: Rows) -> LevelSpec:
    """The level of a topic in letters, which comes after the one in numbers and these; it is one sheet."""
    return LevelSpec(f"{topic}{LETTERS_SUFFIX}", topic, (topic, *after), (rows,))


# In the order in which they are practised, which is not quite that in which topics are taught (app/shapes/topics.py):
# letters some time after the same topic in numbers, the whole model before its matrices are counted. Whatever a level
# comes after stands above it.
LEVELS: tuple[LevelSpec, ...] = (
    _in_numbers(
        "single-head",
        steps=(("input", "queries", "keys", "scores"), ("queries", "values", "weights", "output")),
        begins_whole=True,
    ),
    _in_numbers("bidirectional-head", "single-head", steps=(("queries", "weights", "output"),)),
    _in_numbers(
        "attention-layer",
        "single-head",
        steps=(("queries", "keys", "scores", "output"), ("keys", "values", "context", "output")),
    ),
    _in_numbers(
        "decode-step",
        *("single-head", "attention-layer"),
        steps=(("queries", "keys", "scores"), ("queries", "values", "output")),
    ),
    _in_numbers(
        "scale-mask-softmax",
        *("single-head", "bidirectional-head"),
        steps=(("under_root", "mask", "masked", "chosen_weights", "row_sum", "weights_sum"),),
    ),
    _in_letters("single-head", rows=("queries", "scores", "output")),
    _in_numbers(
        "three-dimensions",
        "attention-layer",
        steps=(("queries", "split_queries", "queries_by_head"), ("keys_by_head", "scores", "joined_context")),
    ),
    _in_letters("attention-layer", "single-head-letters", rows=("queries", "keys", "scores", "output")),
    _in_numbers(
        "cross-attention",
        *("single-head", "bidirectional-head"),
        steps=(("queries", "keys", "scores", "output"),),
    ),
    _in_letters("decode-step", "attention-layer-letters", rows=("queries", "keys", "scores")),
    _in_letters("cross-attention", "single-head-letters", rows=("queries", "keys", "scores")),
    _in_numbers("whole-model", "attention-layer", steps=(("embedded", "angles", "hidden", "fed_forward", "logits"),)),
    _in_numbers(
        "rotary-pairs",
        *("attention-layer", "whole-model"),
        steps=(("angles", "rotated_queries", "partner", "layer_angles", "layer_rotated"),),
    ),
    _in_numbers(
        "head-parameters",
        "attention-layer",
        steps=(("W_K", "W_O", "layer_W_K"), ("W_Q", "layer_W_Q", "W_VO", "rank_W_VO")),
    ),
    _in_numbers(
        "layer-parameters",
        *("attention-layer", "whole-model"),
        steps=(("W_K", "W_O", "W_down"), ("W_Q", "W_up")),
    ),
    _in_numbers(
        "feed-forward-width",
        "layer-parameters",
        steps=(
            ("two_thirds", "multiplied", "width", "gated_parameters", "ungated_parameters"),
            ("block_parameters", "gated_width"),
        ),
    ),
    _in_numbers(
        "parameter-count",
        "layer-parameters",
        steps=(("embedding", "attention", "feed_forward", "all_layers", "total"),),
    ),
    _in_letters("layer-parameters", "attention-layer-letters", rows=("W_K", "W_O", "W_down")),
    _in_numbers(
        "experts",
        "parameter-count",
        steps=(("router_logits", "chosen", "expert_input", "W_up", "block_active", "total"),),
    ),
    _in_numbers(
        "costs",
        *("decode-step", "parameter-count"),
        steps=(("keys_flops", "scores_flops", "output_flops", "feed_forward_flops", "weights_16_bit", "cache_16_bit"),),
    ),
    _in_numbers(
        "growth",
        "costs",
        steps=(
            (
                *("crossing", "projections_doubled", "pairwise_doubled", "score_entries_doubled", "kv_cache_doubled"),
                "decode_flops",
            ),
        ),
    ),
    LevelSpec(
        "attention-layer-latent",
        "attention-layer",
        after=("attention-layer", "decode-step"),
        steps=(("queries", "rotary_key", "cache", "keys", "context"),),
    ),
    _in_numbers("four-dimensions", "three-dimensions", steps=(("queries_by_head", "scores", "joined_context"),)),
    _in_letters("bidirectional-head", "single-head-letters", rows=("queries", "weights", "output")),
    _in_letters(
        "scale-mask-softmax",
        "single-head-letters",
        rows=("under_root", "masked", "chosen_weights", "row_sum", "weights_sum"),
    ),
    _in_letters("three-dimensions", "attention-layer-letters", rows=("queries_by_head", "scores", "joined_context")),
    _in_letters("four-dimensions", "three-dimensions-letters", rows=("queries_by_head", "scores", "joined_context")),
    _in_letters("whole-model", "attention-layer-letters", rows=("embedded", "hidden", "fed_forward", "logits")),
    _in_letters(
        "rotary-pairs",
        "whole-model-letters",
        rows=("angles", "rotated_queries", "layer_angles", "layer_rotated"),
    ),
    _in_letters("head-parameters", "attention-layer-letters", rows=("W_K", "W_O", "W_VO", "rank_W_VO")),
    _in_letters("feed-forward-width", "layer-parameters-letters", rows=("two_thirds", "multiples", "width")),
    _in_letters(
        "parameter-count",
        "layer-parameters-letters",
        rows=("embedding", "attention", "feed_forward", "total"),
    ),
    _in_letters(
        "experts",
        "parameter-count-letters",
        rows=("router_logits", "chosen", "expert_input", "W_up", "block_active"),
    ),
    _in_letters(
        "costs",
        "layer-parameters-letters",
        rows=("keys_flops", "scores_flops", "output_flops", "feed_forward_flops", "cache_16_bit"),
    ),
    _in_letters("growth", "costs-letters", rows=("pairwise_flops", "crossing", "decode_flops", "cache_of_token")),
    LevelSpec(
        "attention-layer-latent-letters",
        "attention-layer",
        after=("attention-layer-latent", "attention-layer-letters"),
        steps=(("queries", "rotary_key", "cache", "keys", "context"),),
    ),
)


def check_levels(levels: Iterable[LevelSpec]) -> dict[str, LevelSpec]:
    """The levels by key; raises ValueError for an unknown topic, or a level that comes after none that stands above."""
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
    ours = [sheet for sheet in worksheets if not sheet.is_own]
    for rows in spec.steps if ours else ():
        if asking := [sheet for sheet in ours if 2 * len(set(rows).intersection(sheet.rows)) > len(rows)]:
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
