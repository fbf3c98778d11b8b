"""One head as a stripe of its layer, at true scale: the projections of all heads, and this head enlarged below.

            ╭───── ┌┬┬┬┬┬┐ 8 heads     ┌┬┐ 2 heads
          ╭─╯      ││█││││             │█│
         ╭╯        ││█││││             │█│
100 ┌─────────┐    └┴┴┴┴┴┘             └┴┘
    └─────────┘    ┌┬█┬┬┬┐             ┌█┐
       4096         ╱ ╲                ╱ ╲
                   ┌───┐ enlarged     ┌───┐
                   │ Q │              │ K │
                   └───┘              └───┘
                    128                128
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from app.algebra.expression import Expression
from app.figures.geometry import Point, Rect
from app.figures.heads import pulled_out
from app.figures.parts import Arc, Box, Edge, Flow, Sketch, side_ends, view_of
from app.figures.pen import Pen
from app.figures.shapes import TypedShapes
from app.shapes.table import Blank
from app.topics.topic import FigurePlan

_WIDTH_PX, _HEIGHT_PX, _ROWS_PX = 440.0, 150.0, 60.0  # at most: everything in the lane, the layer's matrices, rows
_HEAD_PX = 40.0  # at most: a side of the enlarged head
_UNKNOWN_PX = 34.0  # a length not typed yet
THINNEST_PX, _LEAST_HEAD_PX = 1.0, 4.0  # a matrix, and an enlarged head, that would otherwise be too thin to see
_NEXT_PX, _ABOVE_PX, _LANE_PX = 26.0, 8.0, 4.0  # between two matrices, between matrix and lane, of the lane around rows
_DROP_PX = 22.0  # from the lane to the enlarged head
_MOST_TIMES = 20
_MIN_STRIPE_PX = 1.4  # the least width of a stripe whose neighbours have lines


def has_stripes(shapes: TypedShapes, plan: FigurePlan) -> bool:
    """Whether there is enough to draw: the widths of the input and a projection are known."""
    lengths = shapes.lengths
    widths = [lengths[blank] for key in plan.results if (blank := Blank(key, "columns")) in lengths]
    rows = [lengths[blank] for key in plan.results if (blank := Blank(key, "rows")) in lengths]
    width = lengths.get(Blank(plan.left, "columns"))
    if not widths or width is None:
        return False
    longest = max(width, lengths.get(Blank(plan.left, "rows"), 0))
    return max((*widths, *rows)) <= _MOST_TIMES * longest


def thickens(pen: Pen, plan: FigurePlan) -> bool:
    """Whether a matrix or a stripe would be too thin to see at true scale, and may be drawn thicker."""
    return _Stripes(pen, plan).has_thin_sides


def sketch_stripes(pen: Pen, plan: FigurePlan) -> Sketch:
    """The input, the projections of the plan's results in their layer, and one head's results enlarged."""
    return _Stripes(pen, plan).sketch()


@dataclass(frozen=True)
class _Stripes:
    """Draws the stripes of one plan, with the first rows of the lane at y = 0."""

    pen: Pen
    plan: FigurePlan

    def sketch(self) -> Sketch:
        """Draw the input, then each projection right of the previous one, with arcs and the bands of the lane
        behind.
        """
        pen, left = self.pen, self.plan.left
        rect = Rect(0.0, 0.0, self._px(self._columns(left)), self._px(self._rows(left)))
        source = pen.empty_box(left, rect, products=" ".join((left, *self.plan.results)))
        columns, rows = pen.edge(Blank(left, "columns"), "below", source), pen.edge(Blank(left, "rows"), "left", source)
        columns = replace(columns, letter=pen.outside_letter(source))
        sketch = Sketch(boxes=(source,), edges=(columns, rows))
        parts, right = dict[str, Sketch](), rect.right + _NEXT_PX
        for key in self.plan.results:
            part = self._projection(key, rect.width)
            reach = min(part.boxes[-1].rect.x, *(edge.text_box.x for edge in part.edges if edge.text_height))
            parts[key] = part = part.moved(max(right + _NEXT_PX, right + _NEXT_PX / 2 - reach), 0.0)
            sketch += part + Sketch(arcs=(self._arc(source, part.boxes[0], key),))
            right = max(
                each.right for each in (*(box.rect for box in part.boxes), *(edge.text_box for edge in part.edges))
            )
        first, *others = parts.values()
        groups = (Sketch(boxes=(source,), edges=(columns, rows)) + first, sum(others, Sketch()))
        views = [view_of(self._frame(each)) for each in groups if each.boxes]
        frames = {key: views[key not in (left, self.plan.results[0])] for key in (left, *parts)}
        lane = [source.rect] + [part.boxes[1].rect for key, part in parts.items() if self._rows(key) is not None]
        bands = [Rect(r.x - _LANE_PX, r.y - _LANE_PX, r.width + 2 * _LANE_PX, r.height + 2 * _LANE_PX) for r in lane]
        states = sketch.states(pen.working, pen.shapes.is_complete)
        return replace(sketch, flow=Flow(tuple(bands), frames, {}, states))

    # Lengths

    def _columns(self, key: str) -> int | None:
        return self.pen.shapes.lengths.get(Blank(key, "columns"))

    def _rows(self, key: str) -> int | None:
        return self.pen.shapes.lengths.get(Blank(key, "rows"))

    @cached_property
    def _unit(self) -> float:
        width = self._columns(self.plan.left) or 1
        total = width + sum(self._layer_columns(key) for key in self.plan.results)
        return min(_WIDTH_PX / total, _HEIGHT_PX / width, _ROWS_PX / (self._rows(self.plan.left) or 1))

    @cached_property
    def _factor(self) -> int:
        sizes = [self._columns(key) or 1 for key in self.plan.results if not self._is_all(key)]
        return max(1, int(_HEAD_PX / (self._unit * max(*sizes, self._rows(self.plan.left) or 1, 1))))

    @property
    def has_thin_sides(self) -> bool:
        """Whether something typed would be thinner than THINNEST_PX."""
        lengths = self.pen.shapes.lengths
        sides = (side for key in self.plan.tensors for side in self.pen.shapes.table[key].sides if side in lengths)
        return any(lengths[side] * self._unit < THINNEST_PX for side in sides)

    def _px(self, length: int | None) -> float:
        return _UNKNOWN_PX if length is None else max(THINNEST_PX, length * self._unit)

    def _heads(self, key: str) -> int:
        variant = self.pen.shapes.variant
        is_decoder = variant.architecture.encoder_decoder
        is_query = self.pen.shapes.table[key].role == "query"
        return variant.sizes["H"] if is_query or is_decoder else variant.architecture.kv_heads

    def _is_all(self, key: str) -> bool:
        shapes, sizes = self.pen.shapes, self.pen.shapes.variant.sizes
        if not (shapes.shows_mismatches and self._columns(key) == self._columns(self.plan.left) == sizes["d"]):
            return False
        return self._heads(key) > 1 and self._heads(key) * sizes["d_h"] == sizes["d"]

    def _layer_columns(self, key: str) -> int:
        columns = self._columns(key) or 0
        return columns if self._is_all(key) else columns * self._heads(key)

    # Parts

    def _projection(self, key: str, width: float) -> Sketch:
        pen, operand = self.pen, self.pen.sizes.operand_above(key)
        assert operand is not None  # noqa: S101 - plans of stripes have projections
        inner, is_typed = Blank(operand.key, "rows"), self._columns(key) is not None
        height = width if inner in pen.shapes.lengths else _UNKNOWN_PX
        across = self._px(self._layer_columns(key)) if is_typed else _UNKNOWN_PX
        above = pen.empty_box(operand.key, Rect(0.0, -_ABOVE_PX - height, across, height), products=key)
        result = pen.empty_box(key, Rect(0.0, 0.0, across, self._px(self._rows(key))), products=key)
        sides = pen.edge(inner, "left", above, "line"), pen.edge(Blank(key, "columns"), "below", result)
        if not is_typed:
            below = replace(sides[1], letter=pen.outside_letter(result))
            return Sketch(boxes=(above, result), edges=(sides[0], below))
        letter, ends = pen.outside_letter(above), side_ends(above.rect, "top")
        title = Edge(None, "top", *ends, "", "other", self._heads_text(key), letter, products=key)
        layers = self._layer_box(above, key), replace(self._layer_box(result, key), letter="")
        if self._is_all(key) or self._factor < 2 or self._rows(key) is None:
            name = self._heads_text(key) if self._is_all(key) else sides[1].name
            below = replace(sides[1], name=name, letter=result.letter)
            return Sketch(boxes=layers, edges=(title, sides[0], below))
        head = self._head(key, layers[1])
        enlarged = pen.shapes.variant.wording.say("drawing", "enlarged-head")
        below = pen.edge(Blank(key, "columns"), "below", head, letter=pen.outside_letter(head))
        below = replace(below, name=enlarged)
        return Sketch(boxes=(*layers, head), edges=(title, sides[0], below), pulled=(pulled_out(layers[1], head),))

    def _head(self, key: str, layer: Box) -> Box:
        assert layer.part is not None  # noqa: S101 - as _layer_box makes it
        lengths = (self._columns(key) or 1, self._rows(key) or 1)
        width, height = (max(_LEAST_HEAD_PX, length * self._unit * self._factor) for length in lengths)
        rect = Rect(layer.part.centre.x - width / 2, layer.rect.bottom + _DROP_PX, width, height)
        return self.pen.empty_box(key, rect, products=key)

    def _heads_text(self, key: str) -> str:
        heads, shapes = self._heads(key), self.pen.shapes
        symbol = "H" if heads == shapes.variant.sizes["H"] else "G"
        written = shapes.written(heads, Expression.symbol(symbol))
        return shapes.variant.wording.say("drawing", "stripes" if heads > 1 else "one-stripe", heads=written)

    def _layer_box(self, box: Box, key: str) -> Box:
        heads, (x, y, width, height) = self._heads(key), box.rect
        stripe = width / heads
        query_heads = self.pen.shapes.variant.sizes["H"]
        at = query_heads // 3 * heads // query_heads
        part = box.rect if self._is_all(key) else Rect(x + at * stripe, y, stripe, height)
        strips = heads if stripe >= _MIN_STRIPE_PX and height > 5 * THINNEST_PX else 0
        letter = "" if self.pen.outside_letter(box) else box.letter
        return replace(box, letter=letter, part=part, strips=strips, hatched=False)

    def _arc(self, source: Box, above: Box, key: str) -> Arc:
        lengths = self.pen.shapes.lengths
        is_open = self._columns(self.plan.left) is None or Blank(above.tensor, "rows") not in lengths
        start = Point(source.rect.x, source.rect.y - _ABOVE_PX)
        return Arc(start, Point(above.rect.x - _ABOVE_PX, above.rect.y), True, False, is_open, key)

    def _frame(self, part: Sketch) -> Iterator[Rect]:
        yield from (box.rect for box in part.boxes)
        yield from (edge.text_box for edge in part.edges if edge.text_height)
