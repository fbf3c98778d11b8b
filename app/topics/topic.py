"""What a topic is: a table for each model that it is true of, what it draws, and how it is practised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from app.bugs.bank import Bug
from app.models.architecture import Architecture
from app.models.families import FAMILIES
from app.shapes.parameter_inventory import Fact
from app.shapes.table import Blank, TensorTable
from app.topics.requirements import Requirement

COMMON_SYMBOLS = ("N", "M", "W", "d_rot")  # of sizes that sheets of every topic may have besides the model's
MODEL_SYMBOLS = frozenset(symbol for family in FAMILIES.values() for symbol in family.sizes)
Subject = Literal["head", "softmax", "layer", "parameters", "model", "counts"]
Bars = Literal["sums", "operations-and-bytes", "blocks-and-widths", "sums-and-growth"]
Program = Literal["", "head", "layer", "split-heads", "one-more-token", "two-texts"]
FigureLayout = Literal["product", "head-scores", "head-context", "stack", "row", "flow", "stripes", "decks"]
Rows = tuple[str, ...]


@dataclass(frozen=True)
class FigurePlan:
    """Which matrices one figure shows, and how.

    product: `left` next to its results, each result below its right operand; a result made from one matrix, such as A =
    softmax(S), has nothing above it. head-scores, head-context: the product of one head, taken out of matrices that
    hold all heads. stack: matrices below each other, which are added or multiplied entry by entry. row: matrices next
    to each other. flow: `left` and what is made of it in one lane, and `second_left`, if there is one, with what is
    made of it in a lane of other tokens below, see flow.py. stripes: `left` and its projections in a layer, of which
    one head is a stripe, see stripes.py. decks: `left` and its results next to each other, each a
    deck of cards, see decks/deck_figure.py. Between the matrices of a stack or a row are the signs of the operation
    that makes the last one.
    """

    key: str
    left: str
    results: tuple[str, ...]
    layout: FigureLayout = "product"
    second_left: str = ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The left operand and the results."""
        return (self.left, *self.results)

    @property
    def draws_products(self) -> bool:
        """Whether the layout places results by what they are made from: every layout but "stack" and "row"."""
        return self.layout not in ("stack", "row")


@dataclass(frozen=True)
class LevelSpec:
    """One level of practice: its topic, the levels that have to be passed before it, and its steps.

    Each step is the rows of one short sheet: together they ask for what is new, once. A level is passed when each of
    its steps was right. If it `begins_whole`, its first sheet is a whole one, which covers the first step.
    """

    key: str
    topic: str
    after: tuple[str, ...]
    steps: tuple[Rows, ...]
    begins_whole: bool = False


@dataclass(frozen=True)
class Topic:
    """Everything that is particular to one topic and is no prose; the wording has a file of the same name.

    subject: what its sheets are about: one head, its softmax, a whole layer, parameters, the whole model, or counts.
    build_table: the table that the topic means for a model and a number of tokens that meet `requires`.
    requires: what a model and a number of tokens must be for the topic to be true of them.
    uses_decoder: of an encoder-decoder, its sizes are the decoder's.
    reads_two_texts: there are M decoder tokens as well as N encoder tokens.
    masked: later tokens are hidden if the model is causal.
    batched: there are several inputs at once.
    adds_tokens: how many more tokens than the sheet's number it is about, at most.
    program: which of the programs in app/forward/program.py runs it in torch; empty if none does.
    extra_sizes: sizes that only this topic's tables use; `extra_symbols` are their symbols, separated by spaces.
    token_step: what the number of tokens should be a multiple of, so that every row has a whole number.
    tables: those that it is built from; `counts` are the keys of all counts that the table of some model adds.
    inventory: what its sheets also say about the model's parameters.
    bars: what its counts are drawn as: sums of their parts, numbers of two kinds, or sums next to a plot of growth.
    figures: what is drawn of a table, by its key; a table in `drawn_with` is drawn in place of the one with its key.
    in_steps: its sheets show one row at a time, each with a question, and once that is right with a reason; they are
    answered in numbers.
    bugs: of a topic about a program with a bug, the keys of those that a worksheet may name; `build_for_bug` then gives
    the table for one of them, and `build_table` that for the first that is true of the model.
    after, steps, begins_whole: those of its level of practice, which has the topic's key; see LevelSpec. `more_levels`
    are further levels on the topic.
    """

    key: str
    subject: Subject
    build_table: Callable[[Architecture, int], TensorTable]
    requires: tuple[Requirement, ...]
    steps: tuple[Rows, ...]
    after: tuple[str, ...] = ()
    begins_whole: bool = False
    more_levels: tuple[LevelSpec, ...] = ()
    uses_decoder: bool = False
    reads_two_texts: bool = False
    masked: bool = False
    batched: bool = False
    adds_tokens: int = 0
    program: Program = ""
    extra_sizes: Callable[[Architecture, int], Mapping[str, int]] = lambda _architecture, _tokens: {}
    token_step: Callable[[Architecture], int] = lambda _architecture: 1
    extra_symbols: str = ""
    tables: tuple[TensorTable, ...] = ()
    counts: str = ""
    inventory: Callable[[Architecture], Iterator[Fact]] | None = None
    bars: Bars = "sums"
    figures: Mapping[str, tuple[FigurePlan, ...]] = field(default_factory=dict)
    drawn_with: Mapping[str, TensorTable] = field(default_factory=dict)
    in_steps: bool = False
    bugs: tuple[str, ...] = ()
    build_for_bug: Callable[[Bug, Architecture, int], TensorTable] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a figure, a symbol or a level that its tables don't allow.

        A figure may draw only tensors of the table that is drawn; the sides of a table may have only `symbols`; a level
        may ask only for `rows`.
        """
        for table in self.tables:
            drawn = self.drawn_with.get(table.key, table)
            for plan in self.figures.get(table.key, ()):
                if missing := {*plan.tensors, *filter(None, (plan.second_left,))} - drawn.by_key.keys():
                    raise ValueError(f"{self.key}: the figure {plan.key} draws {min(missing)}, which {table.key} lacks")
            symbols = {symbol for tensor in table.tensors for side in tensor.shape for symbol in side.symbols}
            if unknown := symbols - self.symbols:
                raise ValueError(f"{self.key}: {table.key} uses the symbol {min(unknown)}, which no model has")
        for level in self.levels:
            if unknown := {row for step in level.steps for row in step} - self.rows:
                raise ValueError(f"{self.key}: the level {level.key} asks for {min(unknown)}, which no table has")

    @property
    def levels(self) -> tuple[LevelSpec, ...]:
        """The levels of practice on the topic: the one with its key, then `more_levels`."""
        return (LevelSpec(self.key, self.key, self.after, self.steps, self.begins_whole), *self.more_levels)

    @cached_property
    def boxes(self) -> frozenset[str]:
        """The boxes, by name, that the sheet of some model can ask for: 'queries.rows', 'total.count'.

        They are those of all `tables`, and one for each of `counts`.
        """
        entries = (item for table in self.tables for item in table.askable.items())
        sides = (str(Blank(key, field)) for key, entry in entries for field in entry.fields)
        return frozenset((*sides, *(f"{count}.count" for count in self.counts.split())))

    @property
    def rows(self) -> frozenset[str]:
        """The keys of the rows that `boxes` are in."""
        return frozenset(box.partition(".")[0] for box in self.boxes)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols that have a size on some model's sheet, and the keys of its counts: what formulas may use."""
        batch = ["B"] if self.batched else []
        return MODEL_SYMBOLS.union(COMMON_SYMBOLS, batch, self.extra_symbols.split(), self.counts.split())


def first_free(choices: Sequence[int], place: int, taken: Collection[int]) -> int:
    """The first of `choices` from `place` on that is not in `taken`; places, from 0, go around in a circle.

    If all are taken, it is the one at `place`.
    """
    in_order = [choices[(place + step) % len(choices)] for step in range(len(choices))]
    return next((choice for choice in in_order if choice not in taken), in_order[0])
