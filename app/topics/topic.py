"""A topic: its table for each model that it is true of, what it draws, and how it is practised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from app.bugs.bank import Bug
from app.models.architecture import Architecture
from app.models.model_sentences import size_meanings
from app.shapes.parameter_inventory import Fact
from app.shapes.table import Blank, Joint, TensorTable
from app.topics.requirements import ATTENTION, ORDINARY_LAYERS, Requirement

COMMON_SYMBOLS = ("N", "M", "W", "d_rot")  # sizes that sheets of every topic may have besides the model's
MODEL_SYMBOLS = frozenset(size_meanings())
Subject = Literal["head", "softmax", "layer", "parameters", "model", "counts"]


@dataclass(frozen=True)
class FigurePlan:
    """The tensors that one figure shows: a left operand, and what is made from it step by step."""

    key: str
    left: str
    results: tuple[str, ...]
    second_left: str = ""  # the left operand of a second lane
    needs_left: bool = False  # drawn only if the sheet asks for the left operand, where tensors have more sides

    @property
    def tensors(self) -> tuple[str, ...]:
        """The left operand and the results."""
        return (self.left, *self.results)


@dataclass(frozen=True)
class CountFigure:
    """Counts of one kind, drawn below one another as bars to scale."""

    key: str
    counts: tuple[str, ...]


@dataclass(frozen=True)
class Growth:
    """The keys of two counts, plotted over the tokens, and of the number of tokens at which they are equal."""

    linear: str
    squared: str
    crossing: str


@dataclass(frozen=True)
class Topic:
    """Everything particular to one topic except its prose; the wording has a file of the same name."""

    key: str
    subject: Subject
    build_table: Callable[[Architecture, int], TensorTable]
    requires: tuple[Requirement, ...]
    about_attention: bool = True
    uses_decoder: bool = False
    reads_two_texts: bool = False
    masked: bool = False
    batched: bool = False
    adds_tokens: int = 0
    runs: bool = False
    extra_sizes: Callable[[Architecture, int], Mapping[str, int]] = lambda _architecture, _tokens: {}
    token_step: Callable[[Architecture], int] = lambda _architecture: 1
    extra_symbols: str = ""
    tables: tuple[TensorTable, ...] = ()
    counts: str = ""
    inventory: Callable[[Architecture], Iterator[Fact]] | None = None
    count_figures: tuple[CountFigure, ...] = ()  # without any, each sum of counts is drawn with its parts
    growth: Growth | None = None
    figures: Mapping[str, tuple[FigurePlan, ...]] = field(default_factory=dict)
    drawn_with: Mapping[str, TensorTable] = field(default_factory=dict)
    in_steps: bool = False
    bugs: tuple[str, ...] = ()
    build_for_bug: Callable[[Bug, Architecture, int], TensorTable] | None = None

    def __post_init__(self) -> None:
        for table in self.tables:
            drawn = self.drawn_with.get(table.key, table)
            for plan in self.figures.get(table.key, ()):
                if missing := {*plan.tensors, *filter(None, (plan.second_left,))} - drawn.by_key.keys():
                    raise ValueError(f"{self.key}: the figure {plan.key} draws {min(missing)}, which {table.key} lacks")
            symbols = {symbol for tensor in table.tensors for side in tensor.shape for symbol in side.symbols}
            if unknown := symbols - self.symbols:
                raise ValueError(f"{self.key}: {table.key} uses the symbol {min(unknown)}, which no model has")

    @property
    def figure_keys(self) -> frozenset[str]:
        plans = (plan for plans in self.figures.values() for plan in plans)
        return frozenset((*(plan.key for plan in plans), *(figure.key for figure in self.count_figures)))

    @cached_property
    def boxes(self) -> frozenset[str]:
        """The names of the boxes that some model's sheet can ask for: 'queries.rows', 'total.count'."""
        entries = (item for table in self.tables for item in table.askable.items())
        sides = (str(Blank(key, field)) for key, entry in entries for field in entry.fields)
        return frozenset((*sides, *(f"{count}.count" for count in self.counts.split())))

    @cached_property
    def late_rows(self) -> Mapping[str, Joint]:
        """The rows that open only after a check, since they show the answer to another one."""
        asked = (entry for table in self.tables for entry in table.askable.values())
        return {entry.key: entry for entry in asked if isinstance(entry, Joint) and entry.reveals}

    @property
    def is_layer(self) -> bool:
        """Whether the topic is a whole attention layer rather than one head."""
        return self.subject == "layer"

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What a model must be for this topic: what most topics ask for, then what only this one does."""
        attention = (ATTENTION,) if self.about_attention else ()
        layers = (ORDINARY_LAYERS,) if self.subject in ("parameters", "counts") else ()
        return (*attention, *layers, *self.requires)

    @property
    def reads_one_text(self) -> bool:
        """Whether the tokens of one text read each other, rather than a new token a cache, or a text another."""
        return not self.adds_tokens and not self.reads_two_texts

    @property
    def rows(self) -> frozenset[str]:
        return frozenset(box.partition(".")[0] for box in self.boxes)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols that formulas may use: those with a size on some model's sheet, and the keys of counts."""
        batch = ["B"] if self.batched else []
        return MODEL_SYMBOLS.union(COMMON_SYMBOLS, batch, self.extra_symbols.split(), self.counts.split())


def first_free(choices: Sequence[int], place: int, taken: Collection[int]) -> int:
    """The first of `choices` from `place` on, cyclically, that isn't in `taken`."""
    in_order = [choices[(place + step) % len(choices)] for step in range(len(choices))]
    return next((choice for choice in in_order if choice not in taken), in_order[0])
