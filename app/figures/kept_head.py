"""The head on the start page: SmolLM2's weights on one sentence, computed once and kept in a file.

`simulation/kept_head.py` makes the file; a test compares it with the weights.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from pydantic import TypeAdapter

from app.figures.heat_map import percent_text

KEPT_HEAD = Path(__file__).parents[2] / "worksheets" / "start-page-head.json"
LEAST_SHARE_NAMED = 0.05  # a smaller share isn't written under its word
TINTS_OF_CELLS, TINTS_OF_SMALL_CELLS = 50, 8
TINTS_OF_WORDS = 10  # of a word's background, in css/practice.css

Weights = tuple[tuple[float, ...], ...]  # by query: what it gives to each key up to itself


@dataclass(frozen=True)
class KeptWord:
    """A word of the sentence as one query sees it: how dark it is, and its share if that is worth naming."""

    text: str
    tint: int
    share: str
    is_hidden: bool  # it comes later than the query


@dataclass(frozen=True)
class KeptHead:
    made_with: str
    sentence: str
    layer: int
    head: int
    tokens: tuple[str, ...]
    head_width: int
    query: int
    key: int
    heads_in_model: int
    heads_that_agree: int
    heads_of_layer: tuple[Weights, ...]

    @property
    def weights(self) -> Weights:
        return self.heads_of_layer[self.head]

    def words(self, query: int) -> tuple[KeptWord, ...]:
        """The sentence as the query sees it."""
        shares = (*self.weights[query], *[0.0] * (len(self.tokens) - query - 1))
        return tuple(
            KeptWord(
                text,
                round(share * TINTS_OF_WORDS),
                percent_text(share) if share >= LEAST_SHARE_NAMED else "",
                key > query,
            )
            for key, (text, share) in enumerate(zip(self.tokens, shares, strict=True))
        )

    def strongest(self, query: int) -> tuple[str, str]:
        """The word that the query looks at most, and its share."""
        row = self.weights[query]
        key = row.index(max(row))
        return self.tokens[key], percent_text(row[key])

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Each query's row as SVG cells of 1 × 1, on paper as wide as it can see."""
        return tuple(
            f'<rect class="seen" width="{len(shares)}" height="1"/>{_cells((shares,), TINTS_OF_CELLS)}'
            for shares in self.weights
        )

    @cached_property
    def small_heads(self) -> tuple[str, ...]:
        """All heads of the layer as SVG cells of 1 × 1."""
        return tuple(_cells(weights, TINTS_OF_SMALL_CELLS) for weights in self.heads_of_layer)


def _cells(weights: Weights, levels: int) -> str:
    paths = defaultdict[int, str](str)
    for y, shares in enumerate(weights):
        for x, share in enumerate(shares):
            paths[round(share * levels)] += f"M{x} {y}h1v1h-1z"
    return "".join(
        f'<path class="plus" fill-opacity="{level / levels:.2f}" d="{path}"/>' for level, path in paths.items() if level
    )


@cache
def kept_head() -> KeptHead:
    return TypeAdapter(KeptHead).validate_json(KEPT_HEAD.read_bytes())
