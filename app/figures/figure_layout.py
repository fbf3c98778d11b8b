"""Where everything stands in a figure: the corner layout of a product, on one scale for the whole sheet.

The left operand stands beside the result, so that they share their rows; the right operand stands above the result,
so that they share their columns. The inner dimension, which is summed away, meets at the corner between them:

                 ┌─────┐
                 │  Kᵀ │
                 └─────┘
        ┌─────┐  ┌─────┐
        │  Q  │  │  S  │
        └─────┘  └─────┘
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from app.figures.captions import alt_text, captions, edge_kind, edge_label
from app.figures.figures import Arc, Box, Edge, EdgeSide, Figure, Outline, Point
from app.figures.scale import MatrixSizes
from app.figures.typed_shapes import TypedShapes
from app.shapes.table import Blank
from app.shapes.topics import TOPICS, FigurePlan

LEFT_PX, TOP_PX, RIGHT_PX, BOTTOM_PX = 62.0, 26.0, 58.0, 24.0  # around the matrices, for their labels
CORNER_PX = 12.0  # between an operand and the result
BETWEEN_RESULTS_PX = 62.0


@dataclass(frozen=True)
class FigureLayout:
    """Lays out figures from known shapes and the sizes of their matrices, with tokens as rows."""

    shapes: TypedShapes
    sizes: MatrixSizes

    def figure(self, plan: FigurePlan) -> Figure:
        """The figure of a plan: the left operand, then one column for each result, side by side on one base line.

        Each result stands below its right operand. The figure has its labels, arcs, outlines, captions and alt text.
        """
        base_y = TOP_PX + max(self.sizes.size_above(key)[1] for key in plan.results) + CORNER_PX
        left = self._box(plan.left, LEFT_PX, base_y)
        boxes, edges = [left], self._edges(left, "left", "under")
        widths = [self.sizes.column_width(key) for key in plan.results]
        first_x = LEFT_PX + left.width + CORNER_PX
        starts = list(accumulate((width + BETWEEN_RESULTS_PX for width in widths[:-1]), initial=first_x))
        for key, x in zip(plan.results, starts, strict=True):
            if (operand := self._box_above(key, x, base_y)) is not None:
                boxes.append(operand)
                edges += self._edges(operand, "right", "top")
            boxes.append(self._box(key, x, base_y))
            edges += self._edges(boxes[-1], "right", "bottom")
        outlines = tuple(self._outlines(boxes))
        bottom = max(*(box.y + box.height for box in boxes), *(o.y + o.height for o in outlines))
        return Figure(
            key=plan.key,
            width=starts[-1] + widths[-1] + RIGHT_PX,
            height=bottom + BOTTOM_PX,
            boxes=tuple(boxes),
            edges=tuple(edges),
            arcs=tuple(self._arcs(plan, boxes)),
            alt_text=alt_text(self.shapes, plan, boxes),
            captions=tuple(captions(self.shapes, plan)),
            has_mismatch=bool(self.shapes.mismatches_in(plan.results)),
            outlines=outlines,
        )

    def _box(self, tensor: str, x: float, y: float, transposed: bool = False) -> Box:
        """A matrix with its upper left corner at (x, y), width and height exchanged if it is drawn transposed.

        Parameters are hatched. Only the attention weights are masked, on a masked topic and in a causal model.
        """
        variant, entry = self.shapes.variant, self.shapes.variant.table[tensor]
        width, height = self.sizes.size(tensor)
        return Box(
            tensor=tensor,
            letter=self.shapes.letter(tensor),
            role=entry.role,
            x=x,
            y=y,
            width=height if transposed else width,
            height=width if transposed else height,
            hatched=entry.parameter,
            incomplete=not self.shapes.is_complete(tensor),
            masked=tensor == "weights" and TOPICS[variant.worksheet.topic].masked and variant.architecture.causal,
            transposed=transposed,
        )

    def _box_above(self, result: str, x: float, base_y: float) -> Box | None:
        """The right operand of a result, its lower edge CORNER_PX above the base line; None if the result has none.

        It is drawn transposed if the product reads it so, as Kᵀ in Q·Kᵀ.
        """
        operand = self.sizes.operand_above(result)
        if operand is None:
            return None
        y = base_y - CORNER_PX - self.sizes.size_above(result)[1]
        return self._box(operand.key, x, y, self.sizes.stands_transposed(result))

    def _edges(self, box: Box, vertical_side: EdgeSide, horizontal_side: EdgeSide) -> list[Edge]:
        """The labelled vertical side and the labelled horizontal side of a box.

        The vertical one has the number of rows, of a transposed box the number of columns. The horizontal one also has
        the matrix's letter if the box is too small to hold it.
        """
        rows, columns = Blank(box.tensor, "rows"), Blank(box.tensor, "columns")
        vertical, horizontal = (columns, rows) if box.transposed else (rows, columns)
        right, bottom = box.x + box.width, box.y + box.height
        x = box.x if vertical_side == "left" else right
        y = box.y if horizontal_side == "top" else bottom
        letter = "" if box.letter_fits else box.letter
        return [
            self._edge(vertical, vertical_side, (x, box.y), (x, bottom)),
            self._edge(horizontal, horizontal_side, (box.x, y), (right, y), letter),
        ]

    def _edge(self, blank: Blank, side: EdgeSide, start: Point, end: Point, letter: str = "") -> Edge:
        """An edge with its label and colour."""
        return Edge(blank, side, *start, *end, edge_label(self.shapes, blank), edge_kind(self.shapes, blank), letter)

    def _outlines(self, boxes: list[Box]) -> Iterator[Outline]:
        """For each box that cannot be added to what came in, the size it would need, from its own corner."""
        for box in boxes:
            width, height = self.sizes.size_needed(box.tensor)
            if width:
                yield Outline(box.x, box.y, width, height)

    def _arcs(self, plan: FigurePlan, boxes: list[Box]) -> Iterator[Arc]:
        """One arc at the corner of the figure's first product if the inner lengths are equal, two that miss if not.

        None if one of the two lengths is unknown, or the first result is no product of two matrices. Later right
        operands either are made to fit or stand behind other boxes.
        """
        equation = self.shapes.variant.table[plan.results[0]].equation
        if equation is None or len(equation.operands) != 2:
            return
        left, right = boxes[0], boxes[1]
        columns = Blank(left.tensor, "columns")
        rows = Blank(right.tensor, "columns" if right.transposed else "rows")  # as drawn
        are_one = any({rows, columns} <= set(blanks) for blanks in equation.blanks(plan.results[0]).values())
        lengths = self.shapes.lengths
        if not are_one or rows not in lengths or columns not in lengths:
            return
        pivot = (right.x - CORNER_PX / 2, left.y - CORNER_PX / 2)
        inner_radius = left.width + CORNER_PX / 2
        if lengths[rows] == lengths[columns]:
            yield _arc(pivot, inner_radius, 180, 90, mismatch=False)
            return
        # From either end towards the other, with two radii, so that they pass each other and do not meet.
        yield _arc(pivot, inner_radius, 180, 118, mismatch=True)
        outer_radius, room = right.height + CORNER_PX / 2, left.width + LEFT_PX / 2
        reach = min(62.0, math.degrees(math.asin(min(1.0, room / outer_radius))))  # no further left than the figure
        yield _arc(pivot, outer_radius, 90, 90 + reach, mismatch=True)


def _arc(pivot: Point, radius: float, start_angle: float, end_angle: float, *, mismatch: bool) -> Arc:
    """An arc around a point from one angle to another, in degrees anticlockwise from the right.

    It runs clockwise if the second angle is the smaller one.
    """

    def at(angle: float) -> Point:
        """The point of the circle at an angle; y grows downwards."""
        return (pivot[0] + radius * math.cos(math.radians(angle)), pivot[1] - radius * math.sin(math.radians(angle)))

    return Arc(at(start_angle), at(end_angle), radius, start_angle > end_angle, mismatch)
