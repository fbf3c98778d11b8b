"""Heads as stripes of a matrix and as cards of a deck: how wide each is, and how it is drawn.

All lengths come from the layer's tables. Of very many heads, some are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.algebra.number_text import format_number
from app.figures.exhibits.frames import DrawnMark, Part, RectangleMark, TextMark
from app.topics.layer_heads import LayerHeads
from app.translation import gettext as _

WIDTH = 340.0  # the width of every drawing, so that phones show it unscaled
LEFT = 34.0  # where the matrices begin, right of the number of tokens
ROOM = WIDTH - LEFT - 4
CARD_HEIGHT = 22.0  # the height of the tokens in all cards
MIN_CARD, MAX_CARD = 15.0, 28.0  # the width of a card
MAX_STRIPE = 16.0
MOST_STRIPES = 32  # stripes of one matrix that are drawn


@dataclass(frozen=True)
class Cards:
    """The stripes and cards of one layer; `letters` are the sheet's letters by matrix.

    `widest` is the greatest width of a card in px.
    """

    heads: LayerHeads
    letters: Mapping[str, str]
    widest: float = MAX_CARD

    @property
    def card_width(self) -> float:
        """A card's width: CARD_HEIGHT · √(columns/rows) of a query head, within MIN_CARD and `widest`."""
        _count, rows, columns = self.heads.deck("queries")
        return max(MIN_CARD, min(self.widest, CARD_HEIGHT * math.sqrt(columns / rows)))

    @property
    def stripe(self) -> float:
        """The width of a stripe, the same in all matrices of the layer, at most MAX_STRIPE."""
        places = len(self.shown("queries"))
        return min(MAX_STRIPE, (ROOM - self.card_width) / max(places - 1, 1))

    def width(self, key: str) -> float:
        """The width of a tensor's card; a score card has a column per token, and is square."""
        return CARD_HEIGHT if self.heads.table[key].role == "score" else self.card_width

    def shown(self, key: str) -> list[int | None]:
        """The heads to draw; over MOST_STRIPES, the first 15, None twice for the gap, then the last 15."""
        count = self.heads.count(key)
        if count <= MOST_STRIPES:
            return list(range(count))
        half = MOST_STRIPES // 2 - 1
        return [*range(half), None, None, *range(count - half, count)]

    def slab_px(self, key: str) -> float:
        """The width of a matrix drawn stripe by stripe."""
        return self.stripe * len(self.shown(key))

    def stripes(self, key: str, x: float, y: float, stripe: float) -> Iterator[Part]:
        """Yield the stripes of a matrix, from (x, y), each `stripe` px wide."""
        css = f"matrix {self.heads.table[key].role}"
        for place, head in enumerate(self.shown(key)):
            if head is not None:
                mark = RectangleMark(0, 0, stripe, CARD_HEIGHT, self._tint(key, head))
                yield Part(f"{key}-{head}", (mark,), x + place * stripe, y, css)

    def cards(
        self,
        key: str,
        placed: Sequence[tuple[int | None, float, float]],
        state: str = "",
        *,
        labelled: bool = False,
        prefix: str = "",
    ) -> Iterator[Part]:
        """Yield heads' cards at their upper left corners; the last, or all if `labelled`, show the head's number."""
        css = f"matrix {self.heads.table[key].role} card {state}".strip()
        width = self.width(key)
        for head, x, y in placed:
            if head is not None:
                marks: tuple[DrawnMark, ...] = (RectangleMark(0, 0, width, CARD_HEIGHT, self._tint(key, head)),)
                if labelled or head == placed[-1][0]:
                    marks = (*marks, TextMark(width / 2, 15, str(head), "index", "middle"))
                yield Part(f"{prefix}{key}-{head}", marks, x, y, css, {"head": str(head)})

    def letter(self, key: str, x: float, y: float) -> TextMark:
        return TextMark(x, y, self.letters[key], "letter", is_symbol=True)

    def tokens(self, key: str, y: float) -> tuple[TextMark, TextMark]:
        """A matrix's number of rows and the word "tokens" below it, left of the matrix."""
        rows = format_number(self.heads.slab(key)[0])
        return (
            TextMark(LEFT - 6, y + 10, rows, "number tokens", "end"),
            TextMark(LEFT - 6, y + 21, _("tokens"), "name tokens", "end"),
        )

    def size_text(self, key: str) -> str:
        """The size of a matrix: '2048 × 512'."""
        return " × ".join(map(format_number, self.heads.slab(key)))

    def split_text(self, key: str) -> str:
        """The columns of a matrix as heads times columns per head: '2048 = 32 · 64'."""
        count, _rows, columns = self.heads.deck(key)
        return f"{format_number(self.heads.slab(key)[1])} = {count} · {format_number(columns)}"

    def _tint(self, key: str, head: int) -> str:
        group = head if self.heads.count(key) == self.heads.count("keys") else self.heads.read_by(head)
        return "odd" if group % 2 else ""


def labels(key: str, *marks: TextMark) -> Part:
    """A part for labels, which don't move."""
    return Part(key, marks, css="labels")
