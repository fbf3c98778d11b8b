"""A tensor as a deck of cards: its last two sides are a card, the one before them says how many cards there are.

Cards are behind one another, to the right and up. With a batch, the first side counts whole decks, one per text,
behind one another.

              ┌────┐
            ┌────┐ │
    heads ┌────┐ │ │
          │    │ │─┘
   tokens │    │─┘
          └────┘
         features
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.figures.geometry import Point, Rect
from app.figures.parts import Box, Edge, EdgeShown, EdgeSide, side_ends, spread
from app.figures.pen import Pen
from app.figures.scale import UNKNOWN_DECK_PX
from app.shapes.table import Blank
from app.topics.registry import TOPICS

SLANT = Point(0.8, 0.6)  # how far right and up something moves per pixel further back
MIN_CARD_PX = 3.2  # from one card to the next
MOST_CARDS, MOST_TEXTS = 12, 3  # the most cards of a deck, and decks, that are drawn
TEXTS_PX = 9.0  # from the last card of a deck to the next text's first
BATCHED_SHARE = 0.5  # share of their depth that decks keep where several are behind one another


@dataclass(frozen=True)
class DeckSides:
    """The sides of a tensor: texts and cards, None where it has none, and the rows and columns of one card."""

    texts: Blank | None
    cards: Blank | None
    rows: Blank
    columns: Blank

    @property
    def drawn(self) -> tuple[Blank, ...]:
        return tuple(side for side in (self.texts, self.cards, self.rows, self.columns) if side)


def deck_sides(pen: Pen, tensor: str) -> DeckSides:
    """What each side of a tensor counts in a drawing: its last two sides are rows and columns."""
    *before, rows, columns = pen.shapes.table[tensor].sides
    is_batched = TOPICS[pen.shapes.variant.worksheet.topic].batched and not pen.shapes.table[tensor].parameter
    texts = before.pop(0) if before and is_batched else None
    return DeckSides(texts, before[0] if before else None, rows, columns)


@dataclass(frozen=True)
class Deck:
    """A drawn tensor: its front card, the cards behind it, where its sides of cards and texts end, and its labels."""

    box: Box
    sides: DeckSides
    cards_end: Point  # how far right and up the last card of the first text is
    edges: tuple[Edge, ...] = ()

    @property
    def rects(self) -> list[Rect]:
        return [self.box.extent, *self.texts]

    @property
    def texts(self) -> list[Rect]:
        return [edge.text_box for edge in self.edges if edge.text_height]

    def moved(self, x: float, y: float) -> Deck:
        return replace(self, box=self.box.moved(x, y), edges=tuple(edge.moved(x, y) for edge in self.edges))

    def ends(self, blank: Blank, side: EdgeSide) -> tuple[Point, Point]:
        """Both ends of a side drawn at `side` of the front card, which may be the "lower" or "upper" corner."""
        rect, depth = self.box.rect, self.box.depth
        if blank in (self.sides.cards, self.sides.texts):
            right, up = self.cards_end if blank == self.sides.cards else depth
            front = Point(rect.right, rect.bottom) if side == "lower" else Point(rect.x, rect.y)
            return front, front.moved(right, -up)
        return side_ends(rect.moved(depth.x, -depth.y) if side in ("top", "right") else rect, side)  # the last card's


def deck_of(pen: Pen, tensor: str, products: str, *, transposed: bool) -> Deck:
    """A tensor with its front card's lower left corner at (0, 0), without labels or contents."""
    sides, lengths = deck_sides(pen, tensor), pen.shapes.lengths
    width, height = (
        pen.sizes.scale.px(lengths[side]) if side in lengths else UNKNOWN_DECK_PX
        for side in ((sides.rows, sides.columns) if transposed else (sides.columns, sides.rows))
    )
    cards, texts = (lengths.get(side) if side else 1 for side in (sides.cards, sides.texts))
    depth = pen.sizes.scale.px(cards) if cards else UNKNOWN_DECK_PX / 2
    depth = 0.0 if cards == 1 else depth * BATCHED_SHARE if sides.texts else depth
    count = min(cards or 3, MOST_CARDS, 1 + int(depth / MIN_CARD_PX))
    stacks = min(texts, MOST_TEXTS) if texts else 2
    step, pitch = depth / max(count - 1, 1), depth + TEXTS_PX
    places = [pitch * text + step * card for text in range(stacks) for card in range(count)]
    box = replace(
        pen.empty_box(tensor, Rect(0.0, -height, width, height), transposed=transposed, products=products),
        cards=tuple(Point(place * SLANT.x, place * SLANT.y) for place in places[1:]),
        odd_cards=tuple(_odd_cards(pen, sides, count, stacks)),
        is_thinned=(cards or 0) > count or (texts or 0) > stacks,
    )
    return Deck(box, sides, Point(depth * SLANT.x, depth * SLANT.y))


def _odd_cards(pen: Pen, sides: DeckSides, count: int, stacks: int) -> Iterator[int]:
    groups, heads = pen.shapes.variant.sizes["G"], pen.shapes.variant.sizes["H"]
    if sides.cards is None or not (1 < groups < heads) or count < groups:
        return
    length = pen.shapes.table[sides.cards.tensor].expression(sides.cards.field)
    if length.symbols in ({"H"}, {"G"}):
        for place in range(1, stacks * count):
            if place % count * groups // count % 2:
                yield place - 1


def with_edges(
    pen: Pen, deck: Deck, sides: Sequence[tuple[Blank | None, EdgeSide, EdgeShown]], named: set[str]
) -> Deck:
    """A copy of the deck with labels only at `sides`; entries whose blank is None are skipped."""
    edges, box = list[Edge](), deck.box
    letter = "" if box.letter_fits else box.symbol
    takes_letter = any(side == "under" for _, side, _ in sides)
    for blank, side, shown in sides:
        if blank is not None:
            name = pen.label(blank)[2] if shown == "label" else ""
            below, ends = "below" if side == "under" else side, deck.ends(blank, side)
            under_letter = letter if side == "under" else ""
            edges.append(pen.edge(blank, below, box, shown, letter=under_letter, is_named=name not in named, ends=ends))
            named.add(name)
    if letter and not takes_letter:
        ends = deck.ends(deck.sides.columns, "top")
        edges.append(Edge(None, "top", *ends, "", "unknown", letter=letter, shown="letter", products=box.products))
    return replace(deck, edges=spread(edges, box.card_rects))
