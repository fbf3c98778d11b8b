"""One step of a layer's heads as decks of cards: from a slab to a deck, or two decks multiplied card by card.

A deck that is made of one other stands right of it, behind an arrow with the name of what is called. The product of
two decks is one product for each pair of cards, so the front cards stand in the corner layout of a product: the left
deck beside the result, the right one above it, with an arc between the sides that are summed away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from app.figures.decks.deck import Deck, deck_of, with_edges
from app.figures.decks.deck_brackets import deck_breaks
from app.figures.figure import Arc, EdgeShown, EdgeSide, Flow, Rectangle, Sign, Sketch, changed, spread
from app.figures.frame import obstacles
from app.figures.mismatch_brackets import placed_breaks
from app.figures.pen import Pen
from app.figures.plans import FigurePlan
from app.shapes.table import Blank

DECKS_PX = 13.0  # between two decks of a product
ARC_GAP_PX = 8.0  # between an arc and the deck at its end
STEP_GAP_PX = 7.0  # at either side of a sign
FRAME_GAP_PX = 6.0
FRAME_PX = (250.0, 150.0)  # at least, of the part that is looked at
_Sides = list[tuple[Blank | None, EdgeSide, EdgeShown]]


def sketch_decks(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """The decks of a plan from left to right, with their labels placed."""
    figure = _DeckFigure(pen.with_facts(), plan, sketch)
    figure.draw()


@dataclass(frozen=True)
class _DeckFigure:
    """Draws the decks of one plan."""

    pen: Pen
    plan: FigurePlan
    sketch: Sketch
    placed: dict[str, Deck] = field(default_factory=dict)
    above: dict[str, Deck] = field(default_factory=dict)  # right operands, by the result they stand above
    named: set[str] = field(default_factory=set)

    def draw(self) -> None:
        """Every deck, then what joins or separates them, then all labels where they stand free."""
        left = self._deck(self.plan.left)
        sides = _beside(left, has_arc=bool(self.pen.sizes.operand_above(self.plan.results[0])))
        self.placed[self.plan.left] = with_edges(self.pen, left, sides, self.named)
        for key in self.plan.results:
            operand = self.pen.sizes.operand_above(key)
            if operand:
                self._place_product(key, operand.key)
            else:
                self._place_step(key)
        sketch, decks = self.sketch, [*self.placed.values(), *self.above.values()]
        sketch.boxes += [deck.box for deck in decks]
        sketch.arcs += [self._arc(key) for key in self.above]
        sketch.outlines += self.pen.outlines(sketch.boxes)
        breaks = dict.fromkeys(deck_breaks(self.pen, self.plan, decks))
        sketch.breaks += [changed(each, state=self._state(each.products)) for each in breaks]
        brackets = [each.bracket_box for each in sketch.breaks]
        sketch.edges += spread([edge for deck in decks for edge in deck.edges], [*obstacles(sketch), *brackets])
        sketch.breaks = placed_breaks(sketch)
        sketch.flow = Flow((), dict(self._frames()), {})
        sketch.is_placed = True

    def _deck(self, tensor: str, *, transposed: bool = False) -> Deck:
        """A deck at the origin, with the products that it takes part in."""
        results = [key for key in self.plan.results if tensor in (key, *self._operands(key))]
        products = " ".join(dict.fromkeys([*results, *([tensor] if tensor == self.plan.left else [])]))
        return deck_of(self.pen, tensor, products, self._state(products), transposed=transposed)

    def _operands(self, result: str) -> tuple[str, ...]:
        """What a result is made of."""
        equation = self.pen.shapes.table[result].equation
        return equation.operands if equation else ()

    # Places

    def _place_step(self, key: str) -> None:
        """A result that is made of one deck: right of all that is placed, behind an arrow."""
        deck = self._deck(key)
        deck = with_edges(self.pen, deck, _beside(deck), self.named)
        words = self._words(key)
        sign = Sign("→", 0.0, 0.0, key, self._state(key), words)
        decks = [*self.placed.values(), *self.above.values()]
        right = max(x + width for each in decks for x, _, width, _ in each.rectangles)
        sign_width = sign.text_box[2]
        x = right + sign_width + 2 * STEP_GAP_PX - min(x for x, _, _, _ in deck.rectangles)
        before = self.placed[self._operands(key)[0]]
        y = -min(before.box.height, deck.box.height) / 2
        self.sketch.signs.append(changed(sign, x=right + STEP_GAP_PX + sign_width / 2, y=y))
        self.placed[key] = deck.moved(x, 0.0)

    def _words(self, key: str) -> tuple[str, ...]:
        """The name of what is called to make a tensor, as in the table, in lines that can be broken: view."""
        equation = self.pen.shapes.table[key].equation
        calls = re.findall(r"(\w+)\(", equation.formula) if equation else []
        return tuple(re.findall(r"[^_]+_?", calls[0])) if calls else ()

    def _place_product(self, key: str, operand: str) -> None:
        """A result beside its left operand, below its right one."""
        left = self.placed[self._operands(key)[0]]
        result, right = self._deck(key), self._deck(operand, transposed=self.pen.sizes.stands_transposed(key))
        result = with_edges(self.pen, result, self._in_corner(key, result), self.named)
        right = with_edges(self.pen, right, self._over(key, right), self.named)
        texts = [edge.text_box for edge in left.edges if edge.text_height]
        x = left.right + DECKS_PX
        for a in (result.box.rectangle, *(edge.text_box for edge in result.edges if edge.text_height)):
            for b in texts:
                if a[1] < b[1] + b[3] and b[1] < a[1] + a[3]:
                    x = max(x, b[0] + b[2] + 6 - a[0])
        self.placed[key] = result.moved(x, 0.0)
        self.above[key] = right.moved(x, result.box.y - result.box.depth[1] - DECKS_PX)

    def _over(self, key: str, deck: Deck) -> _Sides:
        """The labelled sides of a right operand: the inner one, its cards, and what differs from the result's own."""
        sides = deck.sides
        inner, outer = (sides.columns, sides.rows) if deck.box.transposed else (sides.rows, sides.columns)
        return [
            (sides.cards, "upper", "label"),
            (inner, "right", "label"),
            (outer, "top", self._if_broken(key, outer)),
            (sides.texts, "lower", self._if_broken(key, sides.texts)),
        ]

    def _in_corner(self, key: str, deck: Deck) -> _Sides:
        """The labelled sides of a result that stands in the corner between two decks; texts, if they differ."""
        sides = deck.sides
        return [
            (sides.cards, "lower", "label"),
            (sides.rows, "right", "label"),
            (sides.columns, "under", "label"),
            (sides.texts, "lower", self._if_broken(key, sides.texts)),
        ]

    def _if_broken(self, result: str, blank: Blank | None) -> EdgeShown:
        """Whether a side has its label, because another one of the product should be equal and is not.

        Where that may not be said, every side that was typed has its label.
        """
        shapes = self.pen.shapes
        if not shapes.tells_mismatches:
            return "label" if blank and blank in shapes.lengths and shapes.is_asked(blank) else "focus"
        lengths, groups = self.pen.shapes.compared, self.pen.shapes.table.equal_sides[result]
        partners = next((group for group in groups if blank in group), [])
        return "label" if len({lengths[each] for each in partners if each in lengths}) > 1 else "focus"

    def _arc(self, key: str) -> Arc:
        """The arc of a product, from the left deck's columns to the right deck's inner side, as long as both have."""
        left, right = self.placed[self._operands(key)[0]], self.above[key]
        inner = (left.sides.columns, right.sides.columns if right.box.transposed else right.sides.rows)
        mismatch = self.pen.shapes.differ(*inner)
        is_open = not all(side in self.pen.shapes.compared for side in inner)
        short = min(left.box.width, right.box.height)
        x, y = left.right - (short if mismatch else left.box.width), left.box.extent[1] - ARC_GAP_PX / 2
        top = right.box.y + (right.box.height - short if mismatch else 0.0)
        return Arc((x, y), (right.box.x - ARC_GAP_PX, top), True, mismatch, is_open, key, self._state(key))

    # What is worked on, and where to look

    def _state(self, products: str) -> str:
        """The state of a part of these products: on, done, or both, as in a flow."""
        keys = set(products.split())
        on = not self._working or self._working in keys
        done = any(self.pen.shapes.is_complete(key) for key in keys)
        return " ".join(word for word, holds in (("on", on), ("done", done)) if holds)

    @cached_property
    def _working(self) -> str:
        """The first tensor of the sheet that is not fully answered, "" if there is none."""
        shapes = self.pen.shapes
        sides = ((key, shapes.table[key].sides) for key in shapes.variant.problem.rows)
        return next((k for k, each in sides if any(s not in shapes.lengths or s in shapes.facts for s in each)), "")

    def _frames(self) -> Iterator[tuple[str, Rectangle]]:
        """For each result the rectangle around it and what it is made of; the left deck's is that of the first one."""
        sketch = self.sketch
        for at, key in enumerate(self.plan.results):
            decks = [self.placed[key], self.placed[self._operands(key)[0]]]
            decks += [self.above[key]] if key in self.above else []
            blanks = {side for deck in decks for side in deck.sides.drawn}
            breaks = [each for each in sketch.breaks if each.products == key]
            rectangles = [deck.box.extent for deck in decks]
            rectangles += [edge.text_box for edge in sketch.edges if edge.blank in blanks and edge.text_height]
            rectangles += [sign.text_box for sign in sketch.signs if sign.products == key]
            rectangles += [rectangle for each in breaks for rectangle in (each.text_box, each.bracket_box)]
            frame = _framed(rectangles)
            yield key, frame
            if not at:
                yield self.plan.left, frame


def _beside(deck: Deck, *, has_arc: bool = False) -> _Sides:
    """The labelled sides of a deck with nothing above it, or nothing but an arc."""
    sides = deck.sides
    return [
        (sides.cards, "upper", "label"),
        (sides.rows, "left", "label"),
        (sides.columns, "under" if has_arc else "below", "label"),
        (sides.texts, "lower", "label"),
    ]


def _framed(rectangles: list[Rectangle]) -> Rectangle:
    """The rectangle around these, of a size that suits a phone."""
    left, top = (min(r[i] for r in rectangles) - FRAME_GAP_PX for i in (0, 1))
    right, bottom = (max(r[i] + r[i + 2] for r in rectangles) + FRAME_GAP_PX for i in (0, 1))
    more = [max(0.0, least - size) / 2 for least, size in zip(FRAME_PX, (right - left, bottom - top), strict=True)]
    frame = (left - more[0], top - more[1], right - left + 2 * more[0], bottom - top + 2 * more[1])
    return (round(frame[0], 1), round(frame[1], 1), round(frame[2], 1), round(frame[3], 1))
