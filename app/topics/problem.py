"""A Problem: what one sheet asks for, in numbers, without wording or notation. Tokens are rows.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> problem = problem_for("single-head", gpt2, ("queries", "scores"), tokens=100)
>>> {str(blank): number for blank, number in problem.answers.items()}
{'queries.rows': 100, 'queries.columns': 64, 'scores.rows': 100, 'scores.columns': 100}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from app.algebra.expression import Expression
from app.bugs.bank import Bug
from app.bugs.case import BugCase
from app.models.architecture import Architecture
from app.shapes.consistency import upstream_blanks
from app.shapes.table import Blank, TensorTable
from app.topics.find_the_bug import BugTable
from app.topics.registry import sizes_for, topic_for


@dataclass(frozen=True, eq=False)
class Problem:
    """A table of tensors, a size for each of its symbols, and the rows that are asked."""

    topic: str
    architecture: Architecture
    table: TensorTable
    sizes: Mapping[str, int]
    rows: tuple[str, ...]
    author_misconceptions: Mapping[str, Mapping[Blank, Expression]] = field(default_factory=dict)

    @cached_property
    def asked(self) -> frozenset[str]:
        return frozenset(self.rows)

    @cached_property
    def blanks(self) -> tuple[Blank, ...]:
        """Every blank, row by row: a tensor's sides and, for a parameter, its count; or a count."""
        return tuple(Blank(key, field) for key in self.rows for field in self.table.askable[key].fields)

    @cached_property
    def blanks_by_name(self) -> Mapping[str, Blank]:
        """The blanks by their text, such as 'queries.rows'."""
        return {str(blank): blank for blank in self.blanks}

    @cached_property
    def answers(self) -> Mapping[Blank, int]:
        """The right number for every blank."""
        return {blank: self.table.askable[blank.tensor].size(blank.field, self.sizes) for blank in self.blanks}

    def expression(self, blank: Blank) -> Expression:
        """The right answer to a blank in symbols, such as H*d_h."""
        return self.table.askable[blank.tensor].expression(blank.field)

    @property
    def case(self) -> BugCase | None:
        """The buggy program that the sheet is about, or None."""
        return self.table.case if isinstance(self.table, BugTable) else None

    @cached_property
    def upstream_blanks(self) -> Mapping[Blank, frozenset[Blank]]:
        """For each computed side, in order, the asked sides that its length comes from."""
        return upstream_blanks(self.table, self.asked)


def problem_for(
    topic: str,
    architecture: Architecture,
    rows: tuple[str, ...],
    tokens: int,
    decoder_tokens: int | None = None,
    bug: Bug | None = None,
    head: int | None = None,
) -> Problem:
    """The Problem of a topic for a model and N = `tokens`; M is `decoder_tokens`, or by default `tokens`.

    Raises TopicError if the topic doesn't fit the model, KeyError if it is unknown.
    """
    table = topic_for(topic, architecture, tokens, bug)
    decoder_positions = min(decoder_tokens or tokens, architecture.max_decoder_tokens)
    sizes = sizes_for(topic, architecture, tokens, decoder_positions)
    if isinstance(table, BugTable) and table.case:
        sizes |= table.case.sizes
    if head is not None and "j" in sizes:
        sizes["j"] = head
    return Problem(topic, architecture, table, sizes, tuple(key for key in rows if key in table.askable))
