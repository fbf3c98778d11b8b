"""A tensor as a deck of cards: its last two sides are a card, the one before them says how many cards there are.

Cards are behind one another, to the right and up. With a batch, the first side counts whole decks, one per text,
behind one another.

A deck made from one other is right of it, after an arrow with the function's name. With two broadcast operands, the
second is right of the first, after its sign, and the result right of that. Two decks are multiplied card by card.

              ┌────┐
            ┌────┐ │
    heads ┌────┐ │ │
          │    │ │─┘
   tokens │    │─┘
          └────┘
         features
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from app.figures.geometry import Point, Rect
from app.figures.mismatch_brackets import with_free_labels
from app.figures.parts import (
    Arc,
    Box,
    Edge,
    EdgeShown,
    EdgeSide,
    Flow,
    MismatchBracket,
    Sign,
    Sketch,
    side_ends,
    spread,
    view_of,
)
from app.figures.pen import Pen
from app.figures.scale import UNKNOWN_DECK_PX
from app.shapes.operation import Matmul
from app.shapes.table import Blank
from app.topics.registry import TOPICS
from app.topics.topic import FigurePlan

SLANT = Point(0.8, 0.6)  # how far right and up something moves per pixel further back
MIN_CARD_PX = 3.2  # from one card to the next
MOST_CARDS, MOST_TEXTS = 12, 3  # the most cards of a deck, and decks, that are drawn
TEXTS_PX = 9.0  # from the last card of a deck to the next text's first
BATCHED_SHARE = 0.5  # share of their depth that decks keep where several are behind one another
AWAY_PX = 5.0  # between a side and its bracket
LEAST_PX = 8.0  # a bracket's least length
DECKS_PX = 13.0  # between two decks of a product
ARC_GAP_PX = 8.0  # between an arc and the deck at its end
STEP_GAP_PX = 7.0  # on either side of a sign
_Sides = list[tuple[Blank | None, EdgeSide, EdgeShown]]


def sketch_decks(pen: Pen, plan: FigurePlan) -> Sketch:
    """The decks of a plan from left to right, with their labels placed."""
    return _DeckFigure(pen, plan).sketch()


@dataclass(frozen=True)
class _DeckFigure:
    pen: Pen
    plan: FigurePlan
    placed: dict[str, Deck] = field(default_factory=dict)
    above: dict[str, Deck] = field(default_factory=dict)  # right operands, by the result below them
    signs: list[Sign] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def sketch(self) -> Sketch:
        left = self._deck(self.plan.left)
        is_product = isinstance(self.pen.shapes.table[self.plan.results[0]].made_by, Matmul)
        sides = _outer_sides(left, has_arc=is_product)
        self.placed[self.plan.left] = with_edges(self.pen, left, sides, self.named)
        for key in self.plan.results:
            made_by = self.pen.shapes.table[key].made_by
            if isinstance(made_by, Matmul):
                self._place_product(key, made_by.operands[1])
                continue
            for added in self.pen.sizes.added_to(key):
                self._place_step(added, made_by.sign if made_by else "", of=key)
            self._place_step(key, made_by.arrow if made_by else "→", of=key)
        decks = [*self.placed.values(), *self.above.values()]
        boxes = tuple(self.pen.with_inside(deck.box) for deck in decks)
        sketch = Sketch(
            boxes=boxes,
            edges=tuple(edge for deck in decks for edge in deck.edges),
            arcs=tuple(map(self._arc, self.above)),
            outlines=self.pen.outlines(boxes),
            signs=tuple(self.signs),
            brackets=tuple(dict.fromkeys(deck_brackets(self.pen, self.plan, decks))),
            flow=Flow((), {}, {}),
        )
        sketch = with_free_labels(sketch)
        states = sketch.states(self.pen.working, self.pen.shapes.is_complete)
        return replace(sketch, flow=Flow((), dict(self._frames(sketch)), {}, states))

    def _deck(self, tensor: str, *, transposed: bool = False) -> Deck:
        results = [key for key in self.plan.results if tensor in (key, *self._operands(key))]
        products = " ".join(dict.fromkeys([*results, *([tensor] if tensor == self.plan.left else [])]))
        return deck_of(self.pen, tensor, products, transposed=transposed)

    def _operands(self, result: str) -> tuple[str, ...]:
        made_by = self.pen.shapes.table[result].made_by
        return made_by.operands if made_by else ()

    # Places

    def _place_step(self, key: str, sign_text: str, of: str) -> None:
        deck = self._deck(key)
        deck = with_edges(self.pen, deck, _outer_sides(deck), self.named)
        right = max(rect.right for each in (*self.placed.values(), *self.above.values()) for rect in each.rects)
        before = self.placed[self._operands(of)[0]]
        y = -min(before.box.rect.height, deck.box.rect.height) / 2
        made_by = self.pen.shapes.table[key].made_by
        words = re.findall(r"[^_]+_?", made_by.call) if made_by and sign_text == "→" else ()
        sign = Sign(sign_text, Point(0.0, y), of, words=tuple(words))
        width = sign.text_box.width
        self.signs.append(sign.moved(right + STEP_GAP_PX + width / 2, 0.0))
        self.placed[key] = deck.moved(right + width + 2 * STEP_GAP_PX - min(rect.x for rect in deck.rects), 0.0)

    def _place_product(self, key: str, operand: str) -> None:
        left = self.placed[self._operands(key)[0]]
        result, right = self._deck(key), self._deck(operand, transposed=self.pen.sizes.is_drawn_transposed(key))
        result = with_edges(self.pen, result, self._in_corner(key, result), self.named)
        right = with_edges(self.pen, right, self._over(key, right), self.named)
        x = left.box.extent.right + DECKS_PX
        for rect in (result.box.rect, *result.texts):
            for text in left.texts:
                if rect.y < text.bottom and text.y < rect.bottom:
                    x = max(x, text.right + 6 - rect.x)
        self.placed[key] = result.moved(x, 0.0)
        self.above[key] = right.moved(x, result.box.extent.y - DECKS_PX)

    def _over(self, key: str, deck: Deck) -> _Sides:
        sides = deck.sides
        inner, outer = (sides.columns, sides.rows) if deck.box.transposed else (sides.rows, sides.columns)
        return [
            (sides.cards, "upper", "label"),
            (inner, "right", "label"),
            (outer, "top", self._if_mismatched(key, outer)),
            (sides.texts, "lower", self._if_mismatched(key, sides.texts)),
        ]

    def _in_corner(self, key: str, deck: Deck) -> _Sides:
        sides = deck.sides
        return [
            (sides.cards, "lower", "label"),
            (sides.rows, "right", "label"),
            (sides.columns, "under", "label"),
            (sides.texts, "lower", self._if_mismatched(key, sides.texts)),
        ]

    def _if_mismatched(self, result: str, blank: Blank | None) -> EdgeShown:
        shapes = self.pen.shapes
        if not shapes.shows_mismatches:
            return "label" if blank and blank in shapes.lengths and shapes.is_asked(blank) else "focus"
        lengths, groups = shapes.compared, shapes.table.equal_sides[result]
        partners = next((group for group in groups if blank in group), ())
        return "label" if len({lengths[each] for each in partners if each in lengths}) > 1 else "focus"

    def _arc(self, key: str) -> Arc:
        left, right = self.placed[self._operands(key)[0]], self.above[key]
        inner = (left.sides.columns, right.sides.columns if right.box.transposed else right.sides.rows)
        mismatch = self.pen.shapes.differ(*inner)
        is_open = not all(side in self.pen.shapes.compared for side in inner)
        short = min(left.box.rect.width, right.box.rect.height)
        over = (left.box.rect.width - short, right.box.rect.height - short) if mismatch else (0.0, 0.0)
        extent = left.box.extent
        start = Point(extent.right - left.box.rect.width + over[0], extent.y - ARC_GAP_PX / 2)
        end = Point(right.box.rect.x - ARC_GAP_PX, right.box.rect.y + over[1])
        return Arc(start, end, True, mismatch, is_open, key)

    # What is worked on, and where to look

    def _frames(self, sketch: Sketch) -> Iterator[tuple[str, Rect]]:
        for at, key in enumerate(self.plan.results):
            decks = [self.placed[key], self.placed[self._operands(key)[0]]]
            decks += [self.above[key]] if key in self.above else []
            decks += [self.placed[added] for added in self.pen.sizes.added_to(key)]
            blanks = {side for deck in decks for side in deck.sides.drawn}
            rects = [deck.box.extent for deck in decks]
            rects += [edge.text_box for edge in sketch.edges if edge.blank in blanks and edge.text_height]
            rects += [sign.text_box for sign in sketch.signs if sign.products == key]
            brackets = (each for each in sketch.brackets if each.products == key)
            rects += [rect for each in brackets for rect in (each.text_box, each.bracket_box)]
            frame = view_of(rects)
            yield key, frame
            if not at:
                yield self.plan.left, frame


def _outer_sides(deck: Deck, *, has_arc: bool = False) -> _Sides:
    sides = deck.sides
    return [
        (sides.cards, "upper", "label"),
        (sides.rows, "left", "label"),
        (sides.columns, "under" if has_arc else "below", "label"),
        (sides.texts, "lower", "label"),
    ]


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
