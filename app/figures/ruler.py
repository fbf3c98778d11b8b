"""The sizes that a sheet's text gives, above its boxes: the embedding as one stripe per head, and the tokens to scale.

    ┌┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬┬█┬┬┬┬┬┬┬┐
    └┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┴┘
    4096 embedding = 32 heads × 128 per head
    ▯ 100 tokens

Only what the text states is drawn, so nothing that a box asks for is given away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from app.sheets.prose import ruler_words
from app.sheets.variant import Variant
from app.topics.registry import TOPICS

_KINDS = {"d": "model", "d_h": "head", "N": "tokens", "M": "tokens"}  # colours as in drawings; others have none


@dataclass(frozen=True)
class RulerSize:
    """A given size, the words after it, and the class of its colour."""

    number: int
    words: str
    kind: str


@dataclass(frozen=True)
class Ruler:
    """The given sizes in order; `heads` is 0 if no bar is drawn, and `tokens` the tokens' length in per cent of it."""

    sizes: Mapping[str, RulerSize]
    heads: int = 0
    tokens: float = 0.0

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The class of each given number, as typed."""
        return {str(size.number): size.kind for size in self.sizes.values()}

    @property
    def lit(self) -> int:
        """Which head's stripe is coloured, from 0."""
        return self.heads // 4

    @property
    def lines(self) -> str:
        """An SVG path for the lines between the stripes, each one unit wide."""
        return "".join(f"M{at} 0v1" for at in range(1, self.heads))


def ruler_of(sheet: Variant) -> Ruler:
    """The ruler of a sheet in numbers; a sheet in steps gives its sizes in the questions."""
    if sheet.worksheet.in_letters or TOPICS[sheet.worksheet.topic].in_steps:
        return Ruler({})
    numbers = sheet.sizes
    sizes = {key: RulerSize(numbers[key], words, _KINDS.get(key, "")) for key, words in ruler_words(sheet)}
    if not {"d", "H", "d_h"} <= sizes.keys() or numbers["H"] * numbers["d_h"] != numbers["d"] or numbers["H"] == 1:
        return Ruler(sizes)
    tokens = round(100 * numbers["N"] / numbers["d"], 2) if "N" in sizes and "M" not in sizes else 0.0
    return Ruler(sizes, numbers["H"], tokens if tokens <= 100 else 0.0)
