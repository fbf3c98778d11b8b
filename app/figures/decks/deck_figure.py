"""One step of a layer's heads as decks of cards: from a slab to a deck, or two decks multiplied card by card.

A deck made from one other is right of it, after an arrow with the function's name. With two broadcast operands, the
second is right of the first, after its sign, and the result right of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from app.figures.decks.deck import Deck, deck_of, with_edges
from app.figures.decks.deck_brackets import deck_brackets
from app.figures.geometry import Point, Rect
from app.figures.mismatch_brackets import with_free_labels
from app.figures.parts import Arc, EdgeShown, EdgeSide, Flow, Sign, Sketch, view_of
from app.figures.pen import Pen
from app.shapes.operation import Matmul
from app.shapes.table import Blank
from app.topics.topic import FigurePlan

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
