"""A figure as lanes of boxes, as one head in one lane of tokens: X → Q, K, V → S → A → C → O.

Right operands are alternately above and below their results, so that no arc crosses a number. Where several products
have the same left operand, later arcs pass behind the earlier right operands:

                 ┌─┐ ┌─┐ ┌─┐
                 │W│ │W│ │W│               ┌─┐
                 └─┘ └─┘ └─┘               │V│
        ┌──────┐ ┌─┐ ┌─┐ ┌─┐  ┌──┐   ┌──┐  └─┘ ┌──────┐
    100 │  X   │ │Q│ │K│ │V│  │S │ → │A │  │C│ │  O   │
        └──────┘ └─┘ └─┘ └─┘  └──┘   └──┘  └─┘ └──────┘
          4096   128 128 128  100    100   128   4096
                              ┌──┐             ┌──────┐
                              │Kᵀ│             │ W_O  │
                              └──┘             └──────┘

A tensor with more than two sides is a box with cards behind it, to the right and up. Two are multiplied card by card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

from app.figures.geometry import Point, Rect
from app.figures.heads import whole_of, with_heads, with_wholes
from app.figures.mismatch_brackets import (
    BRACKET_PX,
    MIN_BRACKET_PX,
    brackets_of,
    card_brackets,
    joined_brackets,
    label_places,
    with_free_labels,
)
from app.figures.parts import (
    SIGN_SIDE_PX,
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
from app.figures.words import size_name
from app.shapes.consistency import Values
from app.shapes.operation import Concat, LastRow, Operation
from app.shapes.table import Blank
from app.topics.registry import FIGURE_PLANS
from app.topics.topic import FigurePlan

UNKNOWN_FLOW_PX = 34.0  # a length not typed yet
ABOVE_PX = 8.0  # between the lane and a right operand above it
BELOW_PX = 7.0  # between the numbers below the lane and a right operand below them
BESIDE_PX = 8.0  # between an arc and the operand at its end
NEXT_PX = 12.0  # between two matrices made from one operand
PRODUCT_PX = 22.0  # between the left operand of a product and its result
SIGN_ROOM_PX = 34.0  # between two matrices with a sign between them
TEXT_PX = 7.0  # between a text and what is next to it
LANE_PX = 5.0  # the lane's margin around its matrices
LANES_PX = 16.0  # between two lanes with everything around them


@dataclass(frozen=True)
class _Product:
    """One operation of the lane: the keys of its result, its left operand, and a product's right one.

    An operation that isn't a product has its operands and its result in the lane, with a `sign` between them. Each
    operand after the first is an entry of its own, which is drawn for `step`, the key of the operation's result.
    """

    result: str
    left: str
    right: str
    is_above: bool
    is_transposed: bool
    sign: str
    step: str
    words: tuple[str, ...] = ()  # above the sign

    @property
    def outward(self) -> int:
        """The direction of y from the lane to the right operand: up is -1."""
        return -1 if self.is_above else 1


_Taken = tuple[Rect, float]  # a reserved rectangle, and the room around it


def sketch_figure(pen: Pen, plan: FigurePlan) -> Sketch:
    """The figure of a plan with its labels placed, laid out as its tensors and first operation ask for."""
    if product := pen.shapes.product_by_head(plan):
        by_head, of_heads = with_heads(pen, plan, product)
        sketch = with_wholes(pen, _Lane(by_head, of_heads, of_heads, plan.left).sketch())
    else:
        sketch = sketch_lanes(pen, plan)
    return with_free_labels(sketch)


def sketch_lanes(pen: Pen, plan: FigurePlan) -> Sketch:
    """The lanes of a plan with everything around them, LANES_PX below one another; empty lanes are left out."""
    sketch = Sketch()
    for lane in _lanes(pen, plan):
        drawn = lane.sketch()
        if sketch.flow:
            drawn = drawn.moved(0.0, sketch.extent.bottom + LANES_PX - drawn.extent.y)
        sketch += drawn
    return sketch


def _lanes(pen: Pen, plan: FigurePlan) -> list[_Lane]:
    whole = next(each for each in FIGURE_PLANS[pen.shapes.table.key] if each.key == plan.key)
    lanes = (_Lane(pen, plan, whole, left) for left in (plan.left, plan.second_left) if left)
    return [lane for lane in lanes if lane.products]


def differing_plan(pen: Pen, plan: FigurePlan, first: Values, second: Values) -> FigurePlan:
    """The plan with only those products whose lengths differ between `first` and `second`, lane by lane.

    One head of a layer and decks are small enough to be shown whole.
    """
    if pen.shapes.table.has_more_sides or pen.shapes.product_by_head(plan):
        return plan

    def differs(each: _Product) -> bool:
        keys = (each.left, each.right, each.result, each.step)
        return any(first.get(side) != second.get(side) for key in keys if key for side in pen.shapes.table[key].sides)

    products = (each for lane in _lanes(pen, plan) for each in lane.products)
    return replace(plan, results=tuple(dict.fromkeys(each.step for each in products if differs(each))))


@dataclass(frozen=True)
class _Lane:
    """The lane of a flow that begins with the matrix `left`.

    Each matrix with its right operand is a column, drawn at x = 0 and then moved as far left as it fits.
    """

    pen: Pen
    plan: FigurePlan
    whole: FigurePlan  # of the whole drawing, even if only some of its products are drawn
    left: str

    def sketch(self) -> Sketch:
        """Draw each column as far left as it fits, then signs, arcs and brackets."""
        columns, taken, right = dict[str, Sketch](), list[tuple[float, float, float, float]](), 0.0
        for before, key in pairwise(("", *self.keys)):
            column = self._column(key)
            column_rects = list(self._taken(key, column))
            x = right + self._gap(key, before, column) if before else 0.0
            for (left, top, _, height), column_room in column_rects:
                bottom = top + height
                beside = [
                    other_right - left + (room if room > column_room else column_room)  # noqa: FURB136 - twice as fast
                    for other_right, other_top, other_bottom, room in taken
                    if top < other_bottom and other_top < bottom
                ]
                x = max(x, *beside) if beside else x
            taken += [(left + x + width, top, top + height, room) for (left, top, width, height), room in column_rects]
            columns[key] = column.moved(x, 0.0)
            right = columns[key].boxes[0].extent.right
        boxes = tuple(self.pen.with_inside(box) for column in columns.values() for box in column.boxes)
        sketch = Sketch(
            boxes=boxes,
            edges=tuple(edge for column in columns.values() for edge in column.edges),
            arcs=tuple(arc for each in self.products if each.right for arc in self._arcs(each, columns)),
            outlines=self.pen.outlines(boxes),
            signs=tuple(self._sign(each, columns[each.result]) for each in self.products if each.sign),
        )
        if self.has_cards:
            brackets = list(card_brackets(self.pen, self.pen.shapes.mismatches_in(self.plan.results), sketch))
        else:
            brackets = [each for column in columns.values() for each in column.brackets]
            brackets += self._other_brackets(columns, sketch)
        sketch = replace(sketch, brackets=tuple(dict.fromkeys(brackets)))
        return replace(sketch, flow=self._flow(columns, sketch.states(self._working, self._is_done)))

    @cached_property
    def products(self) -> tuple[_Product, ...]:
        """The operations of this lane that the plan draws, in order."""
        products, is_above = list[_Product](), False
        for key in self.whole.results:
            made_by, operand = self.pen.shapes.table[key].made_by, self.pen.sizes.operand_above(key)
            left = made_by.operands[0] if made_by else self.left
            if left not in {self.left, *(each.result for each in products)}:
                continue
            if operand and not (products and left == products[-1].left):
                is_above = not is_above
            transposed = operand is not None and self.pen.sizes.is_drawn_transposed(key)
            signs = made_by.signs if made_by and not operand else ""
            for added, sign in zip(made_by.operands[1:] if signs and made_by else (), signs, strict=False):
                if sign.strip() or not self.has_cards:
                    products.append(_Product(added, left, "", False, False, sign.strip(), key))
            is_call = self.has_cards and made_by is not None and signs[-1:] == "→"
            words = tuple(re.findall(r"[^_]+_?", made_by.call)) if made_by and is_call else ()
            right = operand.key if operand else ""
            products.append(_Product(key, left, right, is_above, transposed, signs[-1:], whole_of(key), words))
        return tuple(each for each in products if {each.step, each.result} & {*self.plan.results})

    @cached_property
    def product_of(self) -> dict[str, _Product]:
        return {each.result: each for each in self.products}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The matrices in the lane from left to right."""
        first = self.products[0].left
        return tuple(dict.fromkeys((first, *(key for each in self.products for key in (each.left, each.result)))))

    @cached_property
    def keys_of_both(self) -> frozenset[str]:
        """The matrices that are in both lanes."""
        return frozenset({self.whole.second_left, *self.whole.tensors})

    @cached_property
    def tokens(self) -> Blank:
        """The rows of the first matrix, which set the lane's height."""
        return self.pen.sides_of(self.keys[0]).rows

    @cached_property
    def has_cards(self) -> bool:
        """Whether tensors may have more than two sides. Then each is labelled for itself."""
        return self.pen.shapes.table.has_more_sides

    def _inner(self, product: _Product) -> tuple[Blank, Blank]:
        left, right = self.pen.sides_of(product.left), self.pen.sides_of(product.right)
        return left.columns, right.columns if product.is_transposed else right.rows

    @cached_property
    def height(self) -> float:
        return self._px(self.tokens)

    def _px(self, blank: Blank) -> float:
        length = self.pen.shapes.lengths.get(blank)
        if length is None:
            return UNKNOWN_DECK_PX if self.has_cards else UNKNOWN_FLOW_PX
        return self.pen.sizes.scale.px(length)

    # Columns

    @cached_property
    def boxes(self) -> dict[str, Box]:
        """Each matrix of the lane at x = 0, by key, without contents."""
        boxes = dict[str, Box]()
        for key in self.keys:
            products = dict.fromkeys(
                [key, *(each.step for each in self.products if key in (each.left, each.right, each.result))]
            )
            sides = self.pen.sides_of(key)
            width, height = self._px(sides.columns), self._px(sides.rows)
            rect = Rect(0.0, (self.height - height) / 2 if self.has_cards else 0.0, width, height)
            box = self.pen.with_cards(self.pen.empty_box(key, rect, products=" ".join(products)))
            boxes[key] = self._with_last_row(box)
        return boxes

    def _with_last_row(self, box: Box) -> Box:
        if box.incomplete or not any(
            isinstance(self._made_by(each), LastRow) and each.left == box.tensor for each in self.products
        ):
            return box
        row = self.pen.sizes.scale.px(1)
        return replace(box, part=Rect(box.rect.x, box.rect.bottom - row, box.rect.width, row))

    def _made_by(self, product: _Product) -> Operation | None:
        return self.pen.shapes.table[product.result].made_by

    @cached_property
    def edges(self) -> dict[str, tuple[Edge, ...]]:
        """The labels of each matrix of the lane: its columns, then its rows."""
        return {key: self._lane_edges(box) for key, box in self.boxes.items()}

    @cached_property
    def operands(self) -> dict[str, Box]:
        """The right operand above or below the lane, at x = 0, by the product's result."""
        operands = dict[str, Box]()
        for each in (product for product in self.products if product.right):
            sides = self.pen.sides_of(each.right)
            rows, columns = self._px(sides.rows), self._px(sides.columns)
            width, height = (rows, columns) if each.is_transposed else (columns, rows)
            y = min(box.extent.y for box in self.boxes.values()) - ABOVE_PX - height
            if not each.is_above:
                keys = self.keys[self.keys.index(each.left) : self.keys.index(each.result) + 1]
                boxes = [self.boxes[key].rect for key in keys]
                labels = [edge.text_box for key in keys for edge in self.edges[key]]
                y = max(self.height, *(rect.bottom for rect in (*boxes, *labels))) + BELOW_PX
            rect = Rect(0.0, y, width, height)
            box = self.pen.empty_box(each.right, rect, transposed=each.is_transposed, products=each.step)
            box = self.pen.with_cards(box)
            operands[each.result] = box if each.is_above else box.moved(0.0, box.depth.y)
        return operands

    def _near(self, product: _Product) -> float:
        rect = self.operands[product.result].rect
        return rect.bottom if product.is_above else rect.y

    def _column(self, key: str) -> Sketch:
        box, product = self.boxes[key], self.product_of.get(key)
        edges, brackets = self.edges[key], () if self.has_cards else tuple(self._row_brackets(box))
        if product is None or not product.right:
            return Sketch(boxes=(box,), edges=edges, brackets=brackets)
        operand = self.operands[key]
        edges += self._operand_edges(product, operand)
        if self.has_cards:
            return Sketch(boxes=(box, operand), edges=edges)
        brackets += tuple(self._operand_brackets(product, operand))
        return Sketch(boxes=(box, operand), edges=edges, brackets=brackets)

    def _gap(self, key: str, before: str, column: Sketch) -> float:
        product = self.product_of.get(key)
        if product and product.sign:
            sign = self._sign(product, column)
            return column.boxes[0].rect.x - sign.text_box.x + (SIGN_ROOM_PX - SIGN_SIDE_PX) / 2
        return PRODUCT_PX if product and product.left == before else NEXT_PX

    def _sign(self, product: _Product, column: Sketch) -> Sign:
        left = column.boxes[0].rect.x
        sign = Sign(product.sign, Point(left, self.height / 2), product.step, product.words)
        box = sign.text_box
        labels = (edge.text_box for edge in column.edges if edge.text_height)
        covered = (left - label.x for label in labels if label.y < box.bottom and box.y < label.bottom)
        return sign.moved(-(box.width + SIGN_ROOM_PX - SIGN_SIDE_PX) / 2 - max((0.0, *covered)), 0.0)

    def _taken(self, key: str, column: Sketch) -> Iterator[_Taken]:
        for box in column.boxes:
            yield box.extent, TEXT_PX
        for edge in column.edges:
            if edge.text_height:
                yield edge.text_box, TEXT_PX
        for bracket in column.brackets:
            yield bracket.bracket_box, 2.0
            yield next(label_places(bracket)), 2.0
        box = column.boxes[0]
        if key in self.product_of and self.product_of[key].sign:
            yield self._sign(self.product_of[key], column).text_box, 2.0
        for each in self.products:
            if each.right and each.left == key:  # an arc begins at the left end of this matrix
                operand = self.operands[each.result].rect
                yield Rect(box.depth.x, operand.y, 1.0, operand.height), 2.0
                if self.pen.shapes.differ(*self._inner(each)):  # where its bracket may be
                    yield Rect(0.0, self._bracket_y(each) - 1, box.rect.width, 2.0), 2.0

    # Labels

    def _lane_edges(self, box: Box) -> tuple[Edge, ...]:
        sides = self.pen.sides_of(box.tensor)
        columns = self._edge(sides.columns, "below", box, letter=self.pen.outside_letter(box))
        heights = [outline.height for outline in self.pen.outlines([box])]
        needed = max(0.0 if self.has_cards else self.height, *heights, 0.0)
        columns = replace(columns, shift=max(0.0, needed - box.rect.height))
        rows = self._rows(box)
        if rows.shown == "label":
            at_row, below = rows.text_box, columns.text_box
            if rows.side == "left" and below.x < at_row.right + TEXT_PX and below.y < at_row.bottom:
                columns = replace(columns, shift=at_row.bottom - below.y + 2)
            if rows.side == "right" and at_row.bottom > below.y:  # a matrix too low for both
                rows = replace(rows, shift=max(0.0, below.right + 4 - at_row.x))
        if not self.has_cards:
            return columns, rows
        product = self.product_of.get(box.tensor)
        cards = self._edge(sides.cards, "lower" if product and product.right else "upper", box) if sides.cards else None
        first = self.pen.sides_of(self.keys[0]).texts
        shown: EdgeShown = "label" if sides.texts == first or not self._are_equal(sides.texts, first) else "focus"
        texts = self._edge(sides.texts, "lower", box, shown) if sides.texts else None
        return spread([columns, rows, *filter(None, (cards, texts))], box.card_rects)

    def _are_equal(self, first: Blank | None, second: Blank | None) -> bool:
        shapes = self.pen.shapes
        if not shapes.shows_mismatches and first and shapes.is_asked(first):
            return False
        return shapes.lengths.get(first) == shapes.lengths.get(second) if first and second else False

    def _rows(self, box: Box) -> Edge:
        blank = self.pen.sides_of(box.tensor).rows
        if blank == self.tokens:
            edge = self._edge(blank, "left", box)
            return edge if self.has_cards else replace(edge, name=self._lane_name)
        if self.has_cards:
            return self._edge(blank, "right", box)
        if not self._has_own_rows(blank):
            return self._edge(blank, "left", box, "focus")
        return self._edge(blank, "right", box, "line" if self._is_mismatched(blank) else "label")

    def _is_mismatched(self, blank: Blank) -> bool:
        return any(blank in (each.left, each.right) for each in self.pen.shapes.mismatches)

    @cached_property
    def _lane_name(self) -> str:
        expression = self.pen.shapes.expression(self.tokens)
        return size_name(self.pen.shapes, expression) if expression else ""

    def _has_own_rows(self, rows: Blank) -> bool:
        shapes, lengths = self.pen.shapes, self.pen.shapes.lengths
        if rows == self.tokens or rows not in lengths:
            return False
        if not shapes.shows_mismatches:
            return shapes.is_asked(rows)
        both_typed = {rows, self.tokens} <= set(shapes.compared)
        return shapes.differ(rows, self.tokens) if both_typed else lengths[rows] != lengths.get(self.tokens)

    def _operand_edges(self, product: _Product, box: Box) -> tuple[Edge, ...]:
        shapes, sides = self.pen.shapes, self.pen.sides_of(box.tensor)
        inner, outer = (sides.columns, sides.rows) if box.transposed else (sides.rows, sides.columns)
        far: EdgeSide = "top" if product.is_above else "below"
        letter = self.pen.outside_letter(box)
        stated = {*shapes.variant.worksheet.rows, *shapes.given}
        has_numbers = box.tensor in stated and box.tensor not in self.keys_of_both

        def shows_no_number(side: Blank, blank: Blank) -> bool:
            if not has_numbers or (side not in shapes.lengths and not shapes.is_asked(side)):
                return True
            return shapes.share_number(side, blank) and (shapes.is_asked(blank) or not shapes.is_asked(side))

        is_repeated = any(self._repeats(each, product) for each in self.products[self.products.index(product) + 1 :])
        if is_repeated or shows_no_number(inner, self.pen.sides_of(product.left).columns):
            inner_edge = self._edge(inner, "left", box, "line")
        else:
            inner_edge = self._edge(inner, "right", box)
        shown: EdgeShown = "letter" if letter else "focus"
        if not shows_no_number(outer, self.pen.sides_of(product.result).columns):
            shown = "label"
        edges = [inner_edge, self._edge(outer, far, box, shown, letter)]
        if sides.cards:
            edges.append(self._edge(sides.cards, "upper", box))
        if sides.texts:
            is_equal = self._are_equal(sides.texts, self.pen.sides_of(product.left).texts)
            edges.append(self._edge(sides.texts, "lower", box, "focus" if is_equal else "label"))
        return spread(edges, box.card_rects) if self.has_cards else tuple(edges)

    def _repeats(self, later: _Product, product: _Product) -> bool:
        sides = [self._inner(each)[1] for each in (later, product) if each.right]
        lengths = [self.pen.shapes.lengths.get(side) for side in sides]
        asked = any(map(self.pen.shapes.is_asked, sides))
        return later.left == product.left and not asked and len(lengths) == 2 and lengths[0] == lengths[1]

    def _edge(self, blank: Blank, side: EdgeSide, box: Box, shown: EdgeShown = "label", letter: str = "") -> Edge:
        is_named = self._named.get(self.pen.label(blank)[2], blank) == blank
        return self.pen.edge(blank, side, box, shown, letter=letter, is_named=is_named)

    @cached_property
    def _named(self) -> dict[str, Blank]:
        operands = [side for each in self.products if each.right for side in self.pen.shapes.table[each.right].sides]
        in_lane = [
            side
            for key in self.keys
            for side in (self.pen.shapes.table[key].sides if self.has_cards else [self.pen.sides_of(key).columns])
        ]
        named = {self.pen.label(blank)[2]: blank for blank in reversed([*in_lane, *operands])}
        return named if self.has_cards else named | {self._lane_name: self.tokens}

    # Arcs and brackets

    def _arcs(self, product: _Product, columns: dict[str, Sketch]) -> Iterator[Arc]:
        first, operand = columns[product.left].boxes[0], columns[product.result].boxes[1].rect
        left, inner = first.rect.moved(first.depth.x, 0.0), self._inner(product)
        mismatch = self.pen.shapes.differ(*inner)
        shorter = min(left.width, operand.height) if mismatch else left.width
        far = product.outward * (shorter if mismatch else operand.height)
        is_open = not all(blank in self.pen.shapes.lengths for blank in inner)
        near = self._near(product)
        ends = Point(left.right - shorter, near), Point(operand.x - BESIDE_PX, near + far)
        yield Arc(*ends, product.is_above, mismatch, is_open, product.step)

    def _row_brackets(self, box: Box) -> Iterator[MismatchBracket]:
        rows = Blank(box.tensor, "rows")
        if self._has_own_rows(rows) and self._is_mismatched(rows):
            short, long = sorted((box.rect.height, self.height))
            label = self.edges[box.tensor][0].text_box
            right = max(box.rect.width, label.right if long > label.y - MIN_BRACKET_PX else 0.0)
            x, end = right + BRACKET_PX, max(long, short + MIN_BRACKET_PX)
            ends = Point(x, short), Point(x, end)
            yield MismatchBracket(*ends, Point(-1.0, 0.0), self._differ(rows, self.tokens), products=box.products)

    def _differ(self, first: Blank, second: Blank) -> str:
        return " ≠ ".join(map(self.pen.shapes.label, (first, second)))

    def _operand_brackets(self, product: _Product, operand: Box) -> Iterator[MismatchBracket]:
        length, left = operand.rect.height, self.boxes[product.left].rect.width
        if not self.pen.shapes.differ(*self._inner(product)) or length <= left:
            return
        x, end = operand.rect.width + BRACKET_PX, max(length, left + MIN_BRACKET_PX)
        if end != length:  # beyond the operand, where its letter may be
            edges = (edge for edge in self._operand_edges(product, operand) if edge.text_height)
            x = max([x, *(edge.text_box.right + BRACKET_PX for edge in edges)])
        near = self._near(product)
        ends = Point(x, near + product.outward * left), Point(x, near + product.outward * end)
        text = self._differ(*reversed(self._inner(product)))
        yield MismatchBracket(*ends, Point(-1.0, 0.0), text, products=product.step)

    def _bracket_y(self, product: _Product) -> float:
        return self._near(product) + (ABOVE_PX - BRACKET_PX if product.is_above else 0.0)

    def _other_brackets(self, columns: dict[str, Sketch], sketch: Sketch) -> Iterator[MismatchBracket]:
        products = [each for each in self.products if each.right]
        for each in products:
            left, length = columns[each.left].boxes[0].rect, self.operands[each.result].rect.height
            if self.pen.shapes.differ(*self._inner(each)) and left.width >= length:
                x, y = left.right - length, self._bracket_y(each)
                ends = Point(x, y), Point(min(left.x, x - MIN_BRACKET_PX), y)
                toward = Point(0.0, -1.0 * each.outward)
                yield MismatchBracket(*ends, toward, self._differ(*self._inner(each)), products=each.step)
        for each in self.products:
            made_by = self._made_by(each)
            if isinstance(made_by, Concat) and each.result == each.step:
                for bracket in joined_brackets(self.pen, columns[each.result].boxes[0], made_by.operands):
                    yield replace(bracket, products=each.step)
        shown = [set(self._inner(each)) for each in products]
        for mismatch in self.pen.shapes.mismatches_in(self.plan.results):
            pair = {mismatch.left, mismatch.right}
            if pair not in shown and not all(b.field == "rows" and b.tensor in self.keys for b in pair):
                for bracket in brackets_of(self.pen, mismatch, sketch):
                    yield replace(self._clear(bracket, sketch), products=mismatch.at)

    def _clear(self, bracket: MismatchBracket, sketch: Sketch) -> MismatchBracket:
        taken = [edge.text_box for edge in sketch.edges if edge.text_height]
        (x1, y), (x2, end_y) = bracket.start, bracket.end
        if y != end_y or not bracket.bracket_box.overlapping(taken):
            return bracket
        near = [box.rect.bottom for box in sketch.boxes if abs(box.rect.y - BRACKET_PX - y) < 1]
        y = max(near) + BRACKET_PX if near else y
        while True:
            below = replace(bracket, start=Point(x1, y), end=Point(x2, y), toward=Point(0.0, -1.0))
            if not below.bracket_box.overlapping(taken):
                return below
            y += BRACKET_PX

    # What is worked on, and where to look

    def _is_done(self, product: str) -> bool:
        return self._answered[product] if product in self._answered else self.pen.shapes.is_complete(product)

    @cached_property
    def _answered(self) -> dict[str, bool]:
        answered = dict[str, bool]()
        for key in filter(self.pen.shapes.table.by_key.__contains__, self.pen.shapes.variant.worksheet.rows):
            # a parameter is answered with its product
            results = (each.result for each in self.products if key == each.right)
            owner = key if key in self.keys_of_both else next(results, key)
            answered[owner] = self.pen.shapes.is_complete(key) and answered.get(owner, True)
        return {key: known for key, known in answered.items() if key in self.keys_of_both}

    @cached_property
    def _working(self) -> str:
        working = self.pen.working
        return (
            next((each.step for each in self.products if each.right == working), working)
            if working not in self.keys_of_both
            else working
        )

    def _flow(self, columns: dict[str, Sketch], states: dict[str, str]) -> Flow:
        lanes = list[Rect]()
        for known, run in groupby(self.keys, lambda key: self.pen.sides_of(key).rows in self.pen.shapes.lengths):
            if known and not self.has_cards:
                first, *_, last = [columns[key].boxes[0].rect for key in run] * 2
                width = last.right - first.x + 2 * LANE_PX
                lanes.append(Rect(first.x - LANE_PX, -LANE_PX, width, self.height + 2 * LANE_PX))
        frames, axes = dict[str, Rect](), dict[str, Edge]()
        for group in self._groups():
            frame_columns = [columns[key] for key in self._frame_columns(group)]
            axis = self._axis(frame_columns[0].boxes[0])
            keys = [each.result for each in group] + [self.keys[0]] * (group[0].left == self.keys[0])
            frames |= dict.fromkeys(keys, self._frame(frame_columns, group, axis))
            axes |= dict.fromkeys(keys, axis) if not self.has_cards else {}
        return Flow(tuple(lanes), frames, axes, states)

    def _groups(self) -> Iterator[list[_Product]]:
        group = list[_Product]()
        for each in self.products:
            if group and not each.sign and each.left != group[0].left:
                yield group
                group = []
            group.append(each)
        yield group

    def _axis(self, left: Box) -> Edge:
        label, kind, _ = self.pen.label(self.tokens)
        ends = side_ends(left.rect._replace(height=self.height), "left")
        return Edge(self.tokens, "left", *ends, label, kind, self._lane_name)

    def _frame_columns(self, group: Sequence[_Product]) -> tuple[str, ...]:
        left = self.keys.index(group[0].left)
        before = [key for key in self.keys[max(0, left - 1) : left] if key in {each.right for each in group}]
        return tuple(dict.fromkeys([*before, group[0].left, *(each.result for each in group)]))

    def _frame(self, columns: Sequence[Sketch], group: Sequence[_Product], axis: Edge) -> Rect:
        results = {each.result for each in group}
        tensors = results | {each.right for each in group}
        rects = [column.boxes[0].extent for column in columns]
        rects += [box.extent for column in columns for box in column.boxes[1:] if box.tensor in tensors]
        edges = (edge for column in columns for edge in column.edges if edge.text_height)
        edges = (edge for edge in edges if results & {*edge.products.split()})
        rects += [edge.text_box for edge in (*edges, axis)]
        return view_of(rects)
