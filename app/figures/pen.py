"""Draws single tensors with their labelled sides: a matrix as a box, more sides as cards behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from app.figures.geometry import Point, Polygon, Rect
from app.figures.parts import (
    Box,
    Edge,
    EdgeKind,
    EdgeShown,
    EdgeSide,
    side_ends,
)
from app.figures.scale import UNKNOWN_DECK_PX, MatrixSizes
from app.figures.shapes import TypedShapes, hidden_rows, is_causal, shared_limits
from app.figures.words import axis_name, edge_kind
from app.shapes.table import Blank
from app.topics.registry import TOPICS

MIN_RULE_PX = 2.5  # between the lines of two heads; closer ones would blur
SLANT = Point(0.8, 0.6)  # how far right and up a card moves per pixel further back
MIN_CARD_PX = 3.2  # from one card to the next
MOST_CARDS, MOST_TEXTS = 12, 3  # that are drawn
TEXTS_PX = 9.0  # from the last card of a text to the next text's first
BATCHED_SHARE = 0.5  # share of their depth that cards keep where several texts are behind one another


@dataclass(frozen=True)
class Sides:
    """What the sides of a tensor are as drawn: rows and columns of a card, how many cards, and how many texts."""

    rows: Blank
    columns: Blank
    cards: Blank | None = None
    texts: Blank | None = None


@dataclass(frozen=True)
class Pen:
    """Draws matrices of known shapes to scale."""

    shapes: TypedShapes
    sizes: MatrixSizes
    in_place_of_numbers: str | None = None
    # label, colour and name of the drawn ones
    sides: dict[Blank, tuple[str, EdgeKind, str]] = field(default_factory=dict)

    @cached_property
    def working(self) -> str:
        """The first tensor of the sheet that isn't fully answered, or ""."""
        shapes = self.shapes
        sides = ((key, shapes.table[key].sides) for key in shapes.variant.problem.rows if key in shapes.table.by_key)
        return next((key for key, each in sides if any(side not in shapes.lengths for side in each)), "")

    # Tensors

    def sides_of(self, tensor: str) -> Sides:
        """The last two sides are rows and columns; with a batch, the first one counts texts."""
        *before, rows, columns = self.shapes.table[tensor].sides
        is_batched = TOPICS[self.shapes.variant.worksheet.topic].batched and not self.shapes.table[tensor].parameter
        texts = before.pop(0) if before and is_batched else None
        return Sides(rows, columns, before[0] if before else None, texts)

    def with_cards(self, box: Box) -> Box:
        """A copy of a box with the cards behind it: of each text, if there are several."""
        sides, lengths = self.sides_of(box.tensor), self.shapes.lengths
        cards, texts = (lengths.get(side) if side else 1 for side in (sides.cards, sides.texts))
        depth = self._cards_depth(sides)
        count = min(cards or 3, MOST_CARDS, 1 + int(depth / MIN_CARD_PX))
        stacks = min(texts, MOST_TEXTS) if texts else 2
        if count * stacks == 1:
            return replace(box, is_thinned=max(cards or 0, texts or 0) > 1)
        step, pitch = depth / max(count - 1, 1), depth + TEXTS_PX
        places = [pitch * text + step * card for text in range(stacks) for card in range(count)]
        return replace(
            box,
            cards=tuple(Point(place * SLANT.x, place * SLANT.y) for place in places[1:]),
            odd_cards=tuple(self._odd_cards(sides, count, stacks)),
            is_thinned=(cards or 0) > count or (texts or 0) > stacks,
        )

    def _cards_depth(self, sides: Sides) -> float:
        cards = self.shapes.lengths.get(sides.cards) if sides.cards else 1
        if cards == 1:
            return 0.0
        return (self.sizes.scale.px(cards) if cards else UNKNOWN_DECK_PX / 2) * (BATCHED_SHARE if sides.texts else 1)

    def _odd_cards(self, sides: Sides, count: int, stacks: int) -> Iterator[int]:
        groups, heads = self.shapes.variant.sizes["G"], self.shapes.variant.sizes["H"]
        if sides.cards is None or not (1 < groups < heads) or count < groups:
            return
        length = self.shapes.table[sides.cards.tensor].expression(sides.cards.field)
        if length.symbols in ({"H"}, {"G"}):
            for place in range(1, stacks * count):
                if place % count * groups // count % 2:
                    yield place - 1

    def ends(self, box: Box, blank: Blank, side: EdgeSide) -> tuple[Point, Point]:
        """Both ends of a side of a box; cards and texts go from the "upper" or the "lower" corner to the back."""
        sides, rect, depth = self.sides_of(box.tensor), box.rect, box.depth
        if blank not in (sides.cards, sides.texts):
            return side_ends(rect.moved(depth.x, -depth.y) if side in ("top", "right") else rect, side)
        if blank == sides.cards:
            depth = Point(*(self._cards_depth(sides) * slant for slant in SLANT))
        front = Point(rect.right, rect.bottom) if side == "lower" else Point(rect.x, rect.y)
        return front, front.moved(depth.x, -depth.y)

    def empty_box(self, tensor: str, rect: Rect, *, transposed: bool = False, products: str = "") -> Box:
        """A matrix without contents: hatched if it is a parameter, incomplete if a side isn't known."""
        entry = self.shapes.table[tensor]
        return Box(
            tensor=tensor,
            letter=self.shapes.letter(tensor),
            role=entry.role,
            rect=rect,
            hatched=entry.parameter,
            incomplete=not self.shapes.is_complete(tensor),
            transposed=transposed,
            products=products,
        )

    def with_inside(self, box: Box) -> Box:
        """A copy of a matrix with its contents."""
        heads = self.shapes.heads(box.tensor) if not box.incomplete else 0
        inside: dict[str, Any] = {
            "strips": (-heads if box.transposed else heads) if _cuts(box, heads) else 0,
            "groups": tuple(self._groups(box, heads)) if heads else (),
            "part": self._new_row(box),
            "masked": tuple(_masked_areas(self.shapes, box)),
            "gaps": tuple(self._gaps(box)) if self.sizes.scale.shortened else (),
        }
        return replace(box, **inside) if any(inside.values()) else box

    def _groups(self, box: Box, heads: int) -> Iterator[Polygon]:
        groups = self.shapes.variant.sizes.get("G", 0)
        if 1 < groups < self.shapes.variant.sizes["H"] and heads:
            for (first, last), (next_first, next_last) in list(pairwise(_cuts(box, groups)))[1::2]:
                yield (first, next_first, next_last, last)

    def _gaps(self, box: Box) -> Iterator[Polygon]:
        rect, shortened = box.rect, self.sizes.scale.shortened
        if shortened is None:
            return
        x, y = rect.x + 0.75 * rect.width, rect.y + 0.75 * rect.height
        vertical, horizontal = (self.shapes.lengths.get(blank) for blank in _blanks(box))
        if horizontal == shortened:
            top, bottom = rect.y - 3, rect.bottom + 3
            yield ((x, top), (x + 6, top), (x + 2, bottom), (x - 4, bottom))
        if vertical == shortened:
            left, right = rect.x - 3, rect.right + 3
            yield ((left, y), (left, y + 6), (right, y + 2), (right, y - 4))

    def _new_row(self, box: Box) -> Rect | None:
        if box.incomplete or not self.shapes.has_new_row(box.tensor):
            return None
        (x, y, width, height), row = box.rect, self.sizes.scale.px(1)
        return Rect(x + width - row, y, row, height) if box.transposed else Rect(x, y + height - row, width, row)

    def outlines(self, boxes: Iterable[Box]) -> tuple[Rect, ...]:
        """For each box that doesn't match what it is added to, the size it would need, from its upper left corner."""
        unlike = {mismatch.at for mismatch in self.shapes.mismatches if mismatch.added}
        sizes = ((box.rect, self.sizes.size_needed(box.tensor)) for box in boxes if box.tensor in unlike)
        return tuple(Rect(rect.x, rect.y, *size) for rect, size in sizes if size[0])

    # Labels

    def edge(
        self,
        blank: Blank,
        side: EdgeSide,
        box: Box,
        shown: EdgeShown = "label",
        *,
        letter: str = "",
        is_named: bool = True,
    ) -> Edge:
        """A side of a box: its ends, its label with its colour, and the name of what it counts."""
        label, kind, name = self.label(blank)
        start, end = self.ends(box, blank, side)
        return Edge(
            blank=blank,
            side=side,
            start=start,
            end=end,
            label=label,
            kind=kind,
            name=name if is_named and shown == "label" else "",
            letter=letter,
            shown=shown,
            products=box.products,
        )

    def label(self, blank: Blank) -> tuple[str, EdgeKind, str]:
        """The label of a side, its colour, and the name of what it counts."""
        if self.in_place_of_numbers is not None:
            return (self.in_place_of_numbers, "unknown", "")
        if blank not in self.sides:
            named = (self.shapes.label(blank), edge_kind(self.shapes, blank), axis_name(self.shapes, blank))
            self.sides[blank] = named
        return self.sides[blank]

    def outside_letter(self, box: Box) -> str:
        """A matrix's letter if the box has no room for it; beside lines to write on there are no letters."""
        return "" if box.letter_fits or self.in_place_of_numbers else box.symbol


def _blanks(box: Box) -> tuple[Blank, Blank]:
    rows, columns = Blank(box.tensor, "rows"), Blank(box.tensor, "columns")
    return (columns, rows) if box.transposed else (rows, columns)


def _cuts(box: Box, count: int) -> list[Polygon]:
    x, y, width, height = box.rect
    side = (height if box.transposed else width) / max(count, 1)
    if side < MIN_RULE_PX:
        return []
    if box.transposed:
        return [((x, y + at * side), (x + width, y + at * side)) for at in range(count + 1)]
    return [((x + at * side, y), (x + at * side, y + height)) for at in range(count + 1)]


def _masked_areas(shapes: TypedShapes, box: Box) -> Iterator[Polygon]:
    if not (rows := hidden_rows(shapes, box.tensor)):
        return
    left, top, right, bottom = box.rect.x, box.rect.y, box.rect.right, box.rect.bottom
    if is_causal(shapes):
        yield ((left, top), (right, top), (right, bottom))
    reach, chunk = shared_limits(shapes)
    if reach and reach < rows:
        x, y = reach / rows * box.rect.width, reach / rows * box.rect.height
        yield ((left, top + y), (left, bottom), (right - x, bottom))
        if not is_causal(shapes):
            yield ((left + x, top), (right, top), (right, bottom - y))
    for start in range(chunk, rows, chunk) if chunk else ():
        x, y = left + start / rows * box.rect.width, top + start / rows * box.rect.height
        end = top + min(start + (chunk or 0), rows) / rows * box.rect.height
        yield ((left, y), (x, y), (x, end), (left, end))
