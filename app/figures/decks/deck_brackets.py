"""Marks sides of decks that don't fit: a bracket along the excess of the longer side, with both lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from app.figures.decks.deck import SLANT, Deck
from app.figures.geometry import Point
from app.figures.parts import MismatchBracket
from app.figures.pen import Pen
from app.shapes.table import Blank
from app.topics.topic import FigurePlan

AWAY_PX = 5.0  # between a side and its bracket
LEAST_PX = 8.0  # a bracket's least length


@dataclass(frozen=True)
class _DrawnSide:
    """A side of a deck as drawn, from start to end; `toward` points from the side to its matrix."""

    start: Point
    end: Point
    toward: Point


def deck_brackets(pen: Pen, plan: FigurePlan, decks: Sequence[Deck]) -> Iterator[MismatchBracket]:
    """Yield a bracket, at the longer one if a deck shows it, for each pair of sides that should be equal but differ."""
    shapes, deck_of = pen.shapes, {deck.box.tensor: deck for deck in reversed(decks)}  # the first deck of each tensor
    for mismatch in shapes.mismatches_in(plan.results):
        parts = mismatch.parts or (mismatch.right,)  # the last of several merged sides stands for their product
        product = prod(shapes.lengths[part] for part in parts)
        sides = [
            (shapes.lengths[mismatch.left], mismatch.left, shapes.label(mismatch.left)),
            (product, mismatch.right, " · ".join(map(shapes.label, parts))),
        ]
        (short, other, shorter), (long, side, longer) = sorted(sides, key=lambda each: each[0])
        drawn = next((blank for blank in (side, other) if blank.tensor in deck_of), None)
        if drawn:
            share = pen.sizes.scale.px(short) / pen.sizes.scale.px(long)
            yield _bracket(_drawn(drawn, deck_of[drawn.tensor]), share, f"{longer} ≠ {shorter}", mismatch.at)


def _drawn(blank: Blank, deck: Deck) -> _DrawnSide:
    rect = deck.box.rect
    if blank in (deck.sides.cards, deck.sides.texts):
        edge = next((e for e in deck.edges if e.blank == blank), None)
        is_lower = edge is not None and edge.side == "lower"
        sign = -1.0 if is_lower else 1.0
        toward = Point(sign * SLANT.y, sign * SLANT.x)  # the direction to the cards
        first, last = deck.ends(blank, "lower" if is_lower else "upper")
        away = (-toward.x * AWAY_PX, -toward.y * AWAY_PX)
        return _DrawnSide(first.moved(*away), last.moved(*away), toward)
    if (blank == deck.sides.columns) != deck.box.transposed:
        y = rect.bottom + AWAY_PX
        return _DrawnSide(Point(rect.x, y), Point(rect.right, y), Point(0.0, -1.0))
    x = rect.x - AWAY_PX
    return _DrawnSide(Point(x, rect.bottom), Point(x, rect.y), Point(1.0, 0.0))


def _bracket(side: _DrawnSide, share: float, text: str, result: str) -> MismatchBracket:
    (x1, y1), (x2, y2), (away_x, away_y) = side.start, side.end, side.toward
    length = math.hypot(x2 - x1, y2 - y1)
    along = (abs(away_y), -abs(away_x))  # to the right or up, as all sides run
    start = length * min(share, 1.0)
    if length - start < LEAST_PX:
        start = max(0.0, length - LEAST_PX)
    end = max(length, start + LEAST_PX)
    first, last = (Point(x1 + along[0] * at, y1 + along[1] * at) for at in (start, end))
    return MismatchBracket(first, last, side.toward, text, products=result)
