"""One head as one drawing: X → V, K, Q → S → A → C → O in a lane of tokens, every matrix in it one row per token.

Right operands stand above or below their results in turn, so that no arc crosses another one or a number:

                 ┌─┐ ┌─┐ ┌─┐
                 │W│ │W│ │W│               ┌─┐
                 └─┘ └─┘ └─┘               │V│
        ┌──────┐ ┌─┐ ┌─┐ ┌─┐  ┌──┐   ┌──┐  └─┘ ┌──────┐
    100 │  X   │ │V│ │K│ │Q│  │S │ → │A │  │C│ │  O   │
        └──────┘ └─┘ └─┘ └─┘  └──┘   └──┘  └─┘ └──────┘
          4096   128 128 128  100    100   128   4096
                              ┌──┐             ┌──────┐
                              │Kᵀ│             │ W_O  │
                              └──┘             └──────┘

Numbers stand in one line below the lane; the lane has the number of tokens at its left end. Of a matrix that has
another number of rows, the box is shorter than the lane or sticks out of it, and has its own number beside it.
Everything is laid out with tokens as rows, and with the room that the labels will need once the sketch is mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from app.figures.captions import size_name
from app.figures.figure import (
    Arc,
    Box,
    Break,
    Edge,
    EdgeShown,
    EdgeSide,
    Flow,
    Rectangle,
    Sign,
    Sketch,
    changed,
    overlapping,
)
from app.figures.frame import add_below, transpose_break, transpose_edge, transpose_rectangle
from app.figures.mask import masked_areas
from app.figures.mismatch_brackets import BRACKET_PX, MIN_BRACKET_PX, break_of, label_places
from app.figures.pen import Pen, side_ends
from app.figures.plans import FIGURE_PLANS, FigurePlan
from app.shapes.table import MATRIX_FIELDS, Blank

UNKNOWN_FLOW_PX = 24.0  # of a length not typed yet
ABOVE_PX = 8.0  # between the lane and a right operand above it
BELOW_PX = 7.0  # between the numbers below the lane and a right operand below them
BESIDE_PX = 8.0  # between an arc and the operand at its end
NEXT_PX = 12.0  # between two matrices that are made of one operand
PRODUCT_PX = 22.0  # between the left operand of a product and its result
SIGN_ROOM_PX = 34.0  # between two matrices with a sign between them
SIGN_TEXT_PX = 16.0  # of a sign
TEXT_PX = 7.0  # between a text and what stands beside it
LANE_PX = 5.0  # of the lane around its matrices
LANES_PX = 16.0  # between two lanes with all that stands at them
FRAME_WIDTH_PX, FRAME_HEIGHT_PX = 250.0, 150.0  # at least, of one product's frame


@dataclass(frozen=True)
class _Product:
    """One product of the lane by its result's key, with its left operand and the right one, "" if there is none.

    The right operand stands above the lane or below it, and is drawn transposed if it is used so, as Kᵀ.
    """

    result: str
    left: str
    right: str
    is_above: bool
    is_transposed: bool

    @cached_property
    def inner(self) -> tuple[Blank, Blank]:
        """The two sides that are summed away."""
        return Blank(self.left, "columns"), Blank(self.right, "columns" if self.is_transposed else "rows")


@dataclass(frozen=True)
class _Column:
    """A matrix in the lane at x, with its right operand above or below it, and what is written at either."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    breaks: tuple[Break, ...]


_Taken = tuple[Rectangle, float]  # where nothing else may stand, and the room around it


def sketch_flow(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """The lanes of a plan below one another, with the arcs of their products."""
    pen = pen.with_facts()
    for left in filter(None, (plan.left, plan.second_left)):
        lane = _Lane(pen, plan, Sketch(is_mirrored=sketch.is_mirrored), left)
        if lane.products:
            lane.draw()
            add_below(sketch, lane.sketch, LANES_PX)


def differing_plan(first: Pen, second: Pen, plan: FigurePlan) -> FigurePlan:
    """The plan with those products alone that have another length in the second drawing than in the first."""
    both = (first.shapes.lengths, second.shapes.lengths)

    def differs(each: _Product) -> bool:
        """Whether an operand or the result has another length."""
        blanks = [Blank(key, field) for key in (each.left, each.right, each.result) for field in MATRIX_FIELDS]
        return any(both[0].get(blank) != both[1].get(blank) for blank in blanks)

    lanes = [_Lane(first, plan, Sketch(), left) for left in filter(None, (plan.left, plan.second_left))]
    return replace(plan, results=tuple(each.result for lane in lanes for each in lane.products if differs(each)))


@dataclass(frozen=True)
class _Lane:
    """Draws the lane of a flow that begins with the matrix of the key `left`."""

    pen: Pen
    plan: FigurePlan
    sketch: Sketch
    left: str
    # What is asked for more than once, by the matrix, the product, or the products of a part.
    boxes: dict[str, Box] = field(default_factory=dict)
    labels: dict[str, tuple[Edge, ...]] = field(default_factory=dict)
    reaches: dict[str, tuple[float, float]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)

    def draw(self) -> None:
        """Every column as far left as its boxes and labels can stand, then signs, arcs, and what is worked on."""
        placed, taken = dict[str, _Column](), list[_Taken]()
        for key in self.lane:
            placed[key] = self._place(key, placed, taken)
        for column in placed.values():
            self.sketch.boxes += column.boxes
            self.sketch.edges += column.edges
        for each in self.products:
            if each.right:
                self.sketch.arcs += self._arc(each, placed[each.left].boxes[0], placed[each.result].boxes[1])
            else:
                column = placed[each.result]
                x = column.boxes[0].x - self._sign_room(column) / 2
                self.sketch.signs.append(Sign(self._sign, x, self.height / 2, each.result, self._states(each.result)))
        self.sketch.outlines += self.pen.outlines(self.sketch.boxes)
        breaks = [each for column in placed.values() for each in column.breaks]
        breaks += dict.fromkeys(self._other_breaks(placed))
        self.sketch.breaks += [changed(each, state=self._states(each.products)) for each in breaks]
        self.sketch.flow = self._flow(placed)

    @cached_property
    def whole(self) -> FigurePlan:
        """The plan of the whole drawing, of which only some products may be drawn."""
        return next(plan for plan in FIGURE_PLANS[self.pen.shapes.table.key] if plan.key == self.plan.key)

    @cached_property
    def products(self) -> tuple[_Product, ...]:
        """The products of this lane in its order; a right operand stands where it does in the whole flow."""
        products, is_above = list[_Product](), False
        for key in self.whole.results:
            equation, operand = self.pen.shapes.table[key].equation, self.pen.sizes.operand_above(key)
            left = equation.operands[0] if equation else self.left
            if left not in {self.left, *(each.result for each in products)}:
                continue
            if operand and not (products and left == products[-1].left):
                is_above = not is_above
            transposed = operand is not None and self.pen.sizes.stands_transposed(key)
            products.append(_Product(key, left, operand.key if operand else "", is_above, transposed))
        return tuple(each for each in products if each.result in self.plan.results)

    @cached_property
    def lane(self) -> tuple[str, ...]:
        """The matrices in the lane from left to right."""
        drawn = {key for each in self.products for key in (each.left, each.result)}
        return tuple(key for key in (self.left, *self.whole.results) if key in drawn)

    @cached_property
    def lanes(self) -> frozenset[str]:
        """The matrices in this lane and in the other one."""
        return frozenset({*self.lane, self.whole.second_left, *self.whole.tensors})

    @cached_property
    def product_of(self) -> dict[str, _Product]:
        """The product that makes each result."""
        return {each.result: each for each in self.products}

    @cached_property
    def is_mirrored(self) -> bool:
        """Whether tokens are columns, so that the lane runs down."""
        return self.pen.shapes.variant.worksheet.tokens_are == "columns"

    @property
    def _sign(self) -> str:
        """The arrow of a step with one operand, along the lane."""
        return "↓" if self.is_mirrored else "→"

    @cached_property
    def height(self) -> float:
        """The height of the lane: of the input's rows."""
        return self._px(Blank(self.lane[0], "rows"), UNKNOWN_FLOW_PX)

    def _px(self, blank: Blank, unknown: float) -> float:
        """The length of a side in px, or what stands for one that is not known."""
        length = self.pen.shapes.lengths.get(blank)
        return unknown if length is None else self.pen.sizes.scale.px(length)

    def _rectangle(self, edge: Edge) -> Rectangle:
        """Where an edge's label will stand, with tokens as rows, though it is written straight on a mirrored sheet."""
        return transpose_rectangle(transpose_edge(edge).text_box) if self.is_mirrored else edge.text_box

    def _label_place(self, each: Break) -> Rectangle:
        """Where a break's label will stand if nothing is in its way."""
        if self.is_mirrored:
            return transpose_rectangle(next(label_places(transpose_break(each), 0.0)))
        return next(label_places(each, 0.0))

    def _letter_fits(self, box: Box) -> bool:
        """Whether a matrix has room for its letter once the sketch is mirrored, if it is."""
        return (changed(box, width=box.height, height=box.width) if self.is_mirrored else box).letter_fits

    # Columns

    def _place(self, key: str, placed: dict[str, _Column], taken: list[_Taken]) -> _Column:
        """A column right of those that are placed, so far that nothing of it touches them; `taken` grows by its own."""
        column = self._column(key)
        own, x = list(self._taken(key, column)), 0.0
        if placed:
            before, last = list(placed.items())[-1]
            box = last.boxes[0]
            x = box.x + box.width + self._gap(key, before, column)
        for (left, top, _, height), own_room in own:
            for (other, other_top, width, other_height), room in taken:
                if top < other_top + other_height and other_top < top + height:
                    x = max(x, other + width - left + max(room, own_room))
        taken += (((left + x, top, width, height), room) for (left, top, width, height), room in own)
        drawn = tuple(self._inked(box, x) for box in column.boxes)
        edges = tuple(changed(edge, x1=edge.x1 + x, x2=edge.x2 + x) if x else edge for edge in column.edges)
        return _Column(
            drawn,
            edges,
            tuple(
                changed(each, start=(each.start[0] + x, each.start[1]), end=(each.end[0] + x, each.end[1]))
                for each in column.breaks
            ),
        )

    def _gap(self, key: str, before: str, column: _Column) -> float:
        """The room between a matrix and the one before it in the lane."""
        product = self.product_of.get(key)
        if product is None or product.left != before:
            return NEXT_PX
        return PRODUCT_PX if product.right else self._sign_room(column)

    def _sign_room(self, column: _Column) -> float:
        """The room for a sign before a matrix, and before its label where the lane is too low for both."""
        x, y, _, _ = self._rectangle(column.edges[0])
        covered = column.boxes[0].x - x if y < self.height / 2 + SIGN_TEXT_PX / 2 else 0.0
        return SIGN_ROOM_PX + 2 * max(0.0, covered)

    def _taken(self, key: str, column: _Column) -> Iterator[_Taken]:
        """The rectangles where nothing else may stand, each with the room around it."""
        for box in column.boxes:
            yield (box.x, box.y, box.width, box.height), TEXT_PX
        for edge in column.edges:
            if edge.text_height:
                yield self._rectangle(edge), TEXT_PX
        for gap in column.breaks:
            yield gap.bracket_box, 2.0
            yield self._label_place(gap), 2.0
        x = column.boxes[0].x
        if not getattr(self.product_of.get(key), "right", "-"):
            middle, half = x - self._sign_room(column) / 2, SIGN_TEXT_PX / 2
            yield (middle - half, self.height / 2 - half, 2 * half, 2 * half), 2.0
        for each in self.products:
            if each.right and each.left == key:  # an arc begins at the left end of this matrix
                near, far = self._reach(each)
                yield (x, min(near, far), 1.0, abs(far - near)), 2.0
                if self.pen.shapes.differ(*each.inner):  # where its bracket may be
                    yield (x, self._bracket_y(each) - 1, column.boxes[0].width, 2.0), 2.0

    def _column(self, key: str) -> _Column:
        """A matrix at the left end of the lane, its right operand, and the labels of both."""
        product = self.product_of.get(key)
        box = self._lane_box(key)
        operand = self._operand(product) if product and product.right else None
        breaks = tuple(self._column_breaks(box, operand))
        if product is None or operand is None:
            return _Column((box,), self._lane_edges(box), breaks)
        return _Column((box, operand), (*self._lane_edges(box), *self._operand_edges(product, operand)), breaks)

    def _lane_box(self, key: str) -> Box:
        """A matrix at the left end of the lane, without what is drawn inside it."""
        if key not in self.boxes:
            products = [each.result for each in self.products if key in (each.left, each.right)]
            rows, columns = self._size(key, self.height)
            self.boxes[key] = self._bare(key, 0.0, columns, rows, False, " ".join([key, *products]))
        return self.boxes[key]

    def _size(self, key: str, unknown_rows: float) -> tuple[float, float]:
        """The length of a matrix's rows side and columns side in px."""
        return self._px(Blank(key, "rows"), unknown_rows), self._px(Blank(key, "columns"), UNKNOWN_FLOW_PX)

    def _bare(self, key: str, y: float, width: float, height: float, transposed: bool, products: str) -> Box:
        """A matrix without what is drawn inside it."""
        letter, role = self.pen.shapes.letter(key), self.pen.shapes.table[key].role
        return Box(key, letter, role, 0.0, y, width, height, transposed=transposed, products=products)

    def _operand(self, product: _Product) -> Box:
        """The right operand of a product, above the lane or below its numbers."""
        near, far = self._reach(product)
        width = self._operand_size(product)[0]
        return self._bare(product.right, min(near, far), width, abs(far - near), product.is_transposed, product.result)

    def _operand_size(self, product: _Product) -> tuple[float, float]:
        """How wide and high a right operand is drawn."""
        rows, columns = self._size(product.right, self.height if product.right in self.lane else UNKNOWN_FLOW_PX)
        return (rows, columns) if product.is_transposed else (columns, rows)

    def _reach(self, product: _Product) -> tuple[float, float]:
        """Where the right operand begins, at the lane, and where it ends."""
        if product.result not in self.reaches:
            self.reaches[product.result] = self._new_reach(product)
        return self.reaches[product.result]

    def _new_reach(self, product: _Product) -> tuple[float, float]:
        """The same, worked out: below the lane it begins under the numbers of both matrices above it."""
        height = self._operand_size(product)[1]
        if product.is_above:
            return -ABOVE_PX, -ABOVE_PX - height
        boxes = [self._lane_box(key) for key in (product.left, product.result)]
        labels = [self._rectangle(edge) for box in boxes for edge in self._lane_edges(box)]
        ends = [self.height, *(box.height for box in boxes), *(label[1] + label[3] for label in labels)]
        return max(ends) + BELOW_PX, max(ends) + BELOW_PX + height

    def _inked(self, box: Box, x: float) -> Box:
        """A box at x with what is drawn inside it: hatching, what the mask hides, the new token's row of a cache."""
        shapes = self.pen.shapes
        hatched, incomplete = shapes.table[box.tensor].parameter, not shapes.is_complete(box.tensor)
        state = self._states(box.products)
        drawn = changed(box, x=x, hatched=hatched, incomplete=incomplete, state=state)
        masked = tuple(masked_areas(shapes, drawn)) if box.tensor == "weights" else ()
        part = self.pen.new_row(drawn)
        return changed(drawn, masked=masked, part=part) if masked or part else drawn

    # Labels

    def _lane_edges(self, box: Box) -> tuple[Edge, ...]:
        """What is written at a matrix in the lane, with its left side at 0."""
        if box.tensor not in self.labels:
            self.labels[box.tensor] = tuple(self._new_lane_edges(box))
        return self.labels[box.tensor]

    def _new_lane_edges(self, box: Box) -> Iterator[Edge]:
        """The number of columns below a matrix, and its rows: at the left end of the lane, or beside another number.

        A name stands where it is needed first: the sizes of later matrices have the same colours.
        """
        key = box.tensor
        fits = self._letter_fits(box)
        columns = self._edge(Blank(key, "columns"), "below", box, letter="" if fits else box.symbol)
        needed = max((outline.height for outline in self.pen.outlines([box])), default=0.0)
        columns = changed(columns, shift=max(0.0, needed - box.height))  # below the size that it would need, in dashes
        rows = self._rows(box)
        if rows.side == "left" and rows.shown == "label":
            lane, other = self._rectangle(rows), self._rectangle(columns)
            if other[0] < lane[0] + lane[2] + TEXT_PX and other[1] < lane[1] + lane[3]:
                columns = changed(columns, shift=lane[1] + lane[3] - other[1] + 2)
        if rows.side == "right" and rows.shown == "label":
            rows = changed(rows, shift=self._right_of(rows, columns))
        yield columns
        yield rows

    def _right_of(self, rows: Edge, columns: Edge) -> float:
        """How far the number of rows must stand right of a matrix that is too low for it and the one of the columns."""
        own, other = self._rectangle(rows), self._rectangle(columns)
        return max(0.0, other[0] + other[2] + 4 - own[0]) if own[1] + own[3] > other[1] else 0.0

    def _rows(self, box: Box) -> Edge:
        """The rows of a matrix in the lane."""
        blank = Blank(box.tensor, "rows")
        if box.tensor == self.lane[0]:
            return changed(self._edge(blank, "left", box), name=self._lane_name)
        if not self._has_own_rows(blank):
            return self._edge(blank, "left", box, "focus")
        is_mismatched = any(blank in (each.first[0], each.second[0]) for each in self.pen.shapes.mismatches)
        return self._edge(blank, "right", box, "line" if is_mismatched else "label")

    @cached_property
    def _lane_name(self) -> str:
        """What the rows of the lane count, whether or not the sheet asks for the matrix at its left end."""
        expression = self.pen.shapes.expression(Blank(self.lane[0], "rows"))
        return size_name(self.pen.shapes, expression) if expression else ""

    def _has_own_rows(self, rows: Blank) -> bool:
        """Whether a matrix has another number of rows than the lane, as far as is known and may be said."""
        shapes, lane = self.pen.shapes, Blank(self.lane[0], "rows")
        lengths = shapes.lengths
        if rows == lane or rows not in lengths:
            return False
        if not shapes.tells_mismatches:
            return shapes.is_asked(rows)
        both_typed = {rows, lane} <= set(shapes.compared)
        return shapes.differ(rows, lane) if both_typed else lengths[rows] != lengths.get(lane)

    def _operand_edges(self, product: _Product, box: Box) -> Iterator[Edge]:
        """The inner side of a right operand, and beside what was typed for it where the result does not say it.

        Its letter stands at the far side if there is no room for it inside.
        """
        rows, columns = Blank(box.tensor, "rows"), Blank(box.tensor, "columns")
        inner, outer = (columns, rows) if box.transposed else (rows, columns)
        far: EdgeSide = "top" if product.is_above else "below"
        fits = self._letter_fits(box)
        letter = "" if fits else box.symbol
        asked = box.tensor in self.pen.shapes.variant.worksheet.rows and box.tensor not in self.lanes
        shapes = self.pen.shapes
        if asked and inner in shapes.lengths and not shapes.share_number(inner, Blank(product.left, "columns")):
            yield self._edge(inner, "right", box)
        else:
            yield self._edge(inner, "left", box, "line")
        shared = shapes.share_number(outer, Blank(product.result, "columns"))
        differs = asked and outer in shapes.lengths and not shared
        yield self._edge(outer, far, box, "label" if differs else "letter" if letter else "focus", letter)

    def _edge(self, blank: Blank, side: EdgeSide, box: Box, shown: EdgeShown = "label", letter: str = "") -> Edge:
        """An edge of a box with what is written at it."""
        label, kind, name = self.pen.labelled(blank)
        named = name if shown == "label" and self._named.get(name, blank) == blank else ""
        given = blank in self.pen.shapes.facts
        return Edge(
            blank,
            side,
            *side_ends(box, side),
            label,
            kind,
            named,
            letter,
            shown=shown,
            given=given,
            products=box.products,
            state=self._states(box.products),
        )

    @cached_property
    def _named(self) -> dict[str, Blank]:
        """The first side that has each name, in the lane's order."""
        order = [Blank(self.lane[0], "rows"), *(Blank(key, "columns") for key in self.lane)]
        return {self.pen.labelled(blank)[2]: blank for blank in reversed(order)}

    # Arcs

    def _arc(self, product: _Product, left: Box, operand: Box) -> Iterator[Arc]:
        """The arc between the inner sides of a product, to the shorter one; one for products of one left operand."""
        sharing = [each.result for each in self.products if each.left == product.left]
        if sharing[0] != product.result:
            return
        near, far = self._reach(product)
        mismatch = self.pen.shapes.differ(*product.inner)
        shorter = min(left.width, operand.height) if mismatch else left.width
        end = (near + shorter if far > near else near - shorter) if mismatch else far
        is_open = not all(blank in self.pen.shapes.lengths for blank in product.inner)
        ends = (left.x + left.width - shorter, near), (operand.x - BESIDE_PX, end)
        yield Arc(*ends, product.is_above, mismatch, is_open, " ".join(sharing), self._states(" ".join(sharing)))

    # Breaks

    def _column_breaks(self, box: Box, operand: Box | None) -> Iterator[Break]:
        """The breaks of a column that stand right of it: too many or few rows, and an operand that is too high."""
        shapes, rows, lane = self.pen.shapes, Blank(box.tensor, "rows"), Blank(self.lane[0], "rows")
        if self._has_own_rows(rows) and any(rows in (each.first[0], each.second[0]) for each in shapes.mismatches):
            ends = sorted((box.height, self.height))
            label = self._rectangle(self._lane_edges(box)[0])
            right = max(box.width, label[0] + label[2] if ends[1] > label[1] - MIN_BRACKET_PX else 0.0)
            x = box.x + right + BRACKET_PX
            text = " ≠ ".join(shapes.label(blank) for blank in (rows, lane))
            end = max(ends[1], ends[0] + MIN_BRACKET_PX)
            yield Break((x, ends[0]), (x, end), (-1.0, 0.0), text, products=box.products)
        product = self.product_of.get(box.tensor)
        if product is None or operand is None or not self.pen.shapes.differ(*product.inner):
            return
        left = self._lane_box(product.left)
        if operand.height > left.width:
            (near, far), x = self._reach(product), operand.x + operand.width + BRACKET_PX
            start = near + left.width if far > near else near - left.width
            text = " ≠ ".join(shapes.label(blank) for blank in reversed(product.inner))
            end = max(far, start + MIN_BRACKET_PX) if far > near else min(far, start - MIN_BRACKET_PX)
            if end != far:  # beyond the operand, where its letter may be
                letters = [self._rectangle(edge) for edge in self._operand_edges(product, operand) if edge.text_height]
                x = max([x, *(label[0] + label[2] + BRACKET_PX for label in letters)])
            yield Break((x, start), (x, end), (-1.0, 0.0), text, products=product.result)

    def _bracket_y(self, product: _Product) -> float:
        """Where a bracket along the columns of a product's left operand stands."""
        return self._reach(product)[0] + (ABOVE_PX - BRACKET_PX if product.is_above else 0.0)

    def _other_breaks(self, placed: dict[str, _Column]) -> Iterator[Break]:
        """The breaks along columns: a left operand too wide, and results that don't suit what they are made of."""
        for each in self.products:
            if each.right and self.pen.shapes.differ(*each.inner):
                left, operand = placed[each.left].boxes[0], placed[each.result].boxes[1]
                if left.width >= operand.height:
                    y = self._bracket_y(each)
                    x = left.x + left.width - operand.height
                    text = " ≠ ".join(self.pen.shapes.label(blank) for blank in each.inner)
                    toward = (0.0, 1.0 if each.is_above else -1.0)
                    yield Break((x, y), (min(left.x, x - MIN_BRACKET_PX), y), toward, text, products=each.result)
        shown = [set(each.inner) for each in self.products if each.right]
        for mismatch in self.pen.shapes.mismatches_in(self.plan.results):
            pair = {mismatch.first[0], mismatch.second[0]}
            if pair not in shown and not all(b.field == "rows" and b.tensor in self.lane for b in pair):
                for gap in break_of(self.pen, mismatch, self.sketch):
                    yield changed(self._clear(gap), products=mismatch.result)

    def _clear(self, gap: Break) -> Break:
        """A bracket above a matrix, where that is free; else below it."""
        taken = [self._rectangle(edge) for edge in self.sketch.edges if edge.text_height]
        if gap.start[1] != gap.end[1] or not overlapping(gap.bracket_box, taken):
            return gap
        near = [box for box in self.sketch.boxes if abs(box.y - BRACKET_PX - gap.start[1]) < 1]
        y = max(box.y + box.height for box in near) + BRACKET_PX if near else gap.start[1]
        while True:
            below = changed(gap, start=(gap.start[0], y), end=(gap.end[0], y), toward=(0.0, -1.0))
            if not overlapping(below.bracket_box, taken):
                return below
            y += BRACKET_PX

    # What is worked on, and where to look

    def _states(self, products: str) -> str:
        """The state of a part of these products: on, done, or both."""
        if products not in self.states:
            self.states[products] = self._new_states(set(products.split()))
        return self.states[products]

    def _new_states(self, keys: set[str]) -> str:
        """The same, worked out."""
        on, done = not self._working or self._working in keys, any(self._is_done(key) for key in keys)
        return " ".join(word for word, holds in (("on", on), ("done", done)) if holds)

    def _is_done(self, product: str) -> bool:
        """Whether a product is fully answered; one that the sheet doesn't ask for, if its size follows."""
        return self._answered[product] if product in self._answered else self.pen.shapes.is_complete(product)

    @cached_property
    def _answered(self) -> dict[str, bool]:
        """Whether what the sheet asks for each product is filled in, in the sheet's order; the input counts as one."""
        shapes = self.pen.shapes
        answered = dict[str, bool]()
        for key in shapes.variant.worksheet.rows:
            owner = next((each.result for each in self.products if key == each.right and key not in self.lanes), key)
            known = all(
                Blank(key, field) in shapes.lengths and Blank(key, field) not in shapes.facts for field in MATRIX_FIELDS
            )
            answered[owner] = known and answered.get(owner, True)
        return {key: known for key, known in answered.items() if key in self.lanes}

    @cached_property
    def _working(self) -> str:
        """The first product that isn't fully answered, "" if there is none."""
        return next((key for key, known in self._answered.items() if not known), "")

    def _flow(self, placed: dict[str, _Column]) -> Flow:
        """The lane, and for each product where to look: together with those that share its left operand."""
        boxes = [column.boxes[0] for column in placed.values()]
        left, right = boxes[0].x - LANE_PX, boxes[-1].x + boxes[-1].width + LANE_PX
        frames, axes = dict[str, Rectangle](), dict[str, Edge]()
        for group in self._groups():
            columns = [placed[key] for key in self._seen(group, list(placed))]
            axis = self._axis(columns[0].boxes[0])
            keys = [each.result for each in group] + [self.lane[0]] * (group[0].left == self.lane[0])
            frame = self._frame(columns, group, axis)
            frames |= dict.fromkeys(keys, frame)
            axes |= dict.fromkeys(keys, axis)
        return Flow(((left, -LANE_PX, right - left, self.height + 2 * LANE_PX),), frames, axes)

    def _groups(self) -> Iterator[list[_Product]]:
        """The products that are seen together: of one left operand, or one after the other without a new operand."""
        group = list[_Product]()
        for each in self.products:
            if group and each.right and each.left != group[0].left:
                yield group
                group = []
            group.append(each)
        yield group

    def _axis(self, left: Box) -> Edge:
        """The lane's number and name, at the left end of a frame."""
        blank = Blank(self.lane[0], "rows")
        label, kind, _ = self.pen.labelled(blank)
        ends = side_ends(changed(left, height=self.height), "left")
        return Edge(blank, "left", *ends, label, kind, self._lane_name, given=blank in self.pen.shapes.facts)

    def _seen(self, group: Sequence[_Product], order: Sequence[str]) -> tuple[str, ...]:
        """The columns of a frame: the left operand, the results, and a right operand that stands just before."""
        left = order.index(group[0].left)
        beside = [key for key in order[max(0, left - 1) : left] if key in {each.right for each in group}]
        return tuple(dict.fromkeys([*beside, group[0].left, *(each.result for each in group)]))

    def _frame(self, columns: Sequence[_Column], group: Sequence[_Product], axis: Edge) -> Rectangle:
        """The rectangle around the columns of a frame, with the number of its lane, of a size that suits a phone."""
        results = {each.result for each in group}
        tensors = results | {each.right for each in group}
        boxes = [column.boxes[0] for column in columns]
        boxes += [box for column in columns for box in column.boxes[1:] if box.tensor in tensors]
        rectangles = [(box.x, box.y, box.width, box.height) for box in boxes]
        edges = [edge for column in columns for edge in column.edges if edge.text_height]
        edges = [edge for edge in edges if results & {*edge.products.split()}]
        rectangles += [self._rectangle(edge) for edge in (*edges, axis)]
        left, top = min(r[0] for r in rectangles) - 6, min(r[1] for r in rectangles) - 6
        width, height = (max(r[i] + r[i + 2] for r in rectangles) + 6 - (left, top)[i] for i in (0, 1))
        least = (FRAME_HEIGHT_PX, FRAME_WIDTH_PX) if self.is_mirrored else (FRAME_WIDTH_PX, FRAME_HEIGHT_PX)
        more = [max(0.0, room - size) / 2 for room, size in zip(least, (width, height), strict=True)]
        frame = (left - more[0], top - more[1], width + 2 * more[0], height + 2 * more[1])
        return (round(frame[0], 1), round(frame[1], 1), round(frame[2], 1), round(frame[3], 1))
