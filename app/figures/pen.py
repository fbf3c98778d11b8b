"""Places single matrices with their labelled sides, and the arcs at the corner of a product."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from app.figures.captions import axis_name, edge_kind, head_label
from app.figures.figure import Arc, Box, Edge, EdgeKind, EdgeSide, Outline, Polygon, Rectangle, Sketch, changed, spread
from app.figures.frame import transpose_edge, transpose_rectangle
from app.figures.mask import masked_areas
from app.figures.scale import MatrixSizes
from app.figures.typed_shapes import TypedShapes
from app.shapes.table import Blank

CORNER_PX = 12.0  # between an operand and the result
PULLED_PX = 30.0  # between a matrix and the head that is pulled out of it
MIN_RULE_PX = 2.5  # between the lines of two heads; closer ones would be a blur


@dataclass(frozen=True)
class Pen:
    """Draws matrices of known shapes in their sizes, with tokens as rows."""

    shapes: TypedShapes
    sizes: MatrixSizes
    sides: dict[Blank, tuple[str, EdgeKind, str]] = field(default_factory=dict)  # label, colour and name of those drawn

    def with_facts(self) -> Pen:
        """The pen that also draws the sizes of the input that the sheet's own text tells."""
        shapes = self.shapes.with_facts()
        if shapes.facts == self.shapes.facts:
            return self
        return Pen(shapes, replace(self.sizes, shapes=shapes))

    def box(self, tensor: str, x: float, y: float, *, transposed: bool = False) -> Box:
        """A matrix with its upper left corner at (x, y), width and height exchanged if it is drawn transposed.

        Parameters are hatched, and what a model's mask hides of the attention weights. A matrix of several heads has
        lines between them, and a tint for every second group. Of cached keys and values, the new token's row, the last,
        is the part that is meant.
        """
        width, height = self.sizes.size(tensor)
        entry = self.shapes.table[tensor]
        whole = Box(
            tensor=tensor,
            letter=self.shapes.letter(tensor),
            role=entry.role,
            x=x,
            y=y,
            width=height if transposed else width,
            height=width if transposed else height,
            hatched=entry.parameter,
            incomplete=not self.shapes.is_complete(tensor),
            transposed=transposed,
        )
        return self.with_inside(whole)

    def with_inside(self, whole: Box) -> Box:
        """A matrix where it stands, with all that is drawn inside it."""
        heads = self.shapes.heads(whole.tensor) if not whole.incomplete else 0
        return changed(
            whole,
            rules=tuple((area[0], area[3]) for area in _strips(whole, heads)[1:]),
            groups=tuple(self._groups(whole, heads)),
            part=self.new_row(whole),
            masked=tuple(masked_areas(self.shapes, whole)),
            breaks=tuple(self._breaks(whole)),
        )

    def operand_above(self, result: str, x: float, base_y: float) -> Box | None:
        """The right operand of a result, its lower edge CORNER_PX above the base line; None if the result has none.

        It is drawn transposed if the product reads it so, as Kᵀ in Q·Kᵀ.
        """
        operand = self.sizes.operand_above(result)
        if operand is None:
            return None
        y = base_y - CORNER_PX - self.sizes.size_above(result)[1]
        return self.box(operand.key, x, y, transposed=self.sizes.stands_transposed(result))

    def head(self, tensor: str, x: float, y: float, *, transposed: bool = False) -> Box:
        """One head of a matrix, the last, on its own."""
        width, height = self.sizes.head_size(tensor)
        return replace(
            self.box(tensor, x, y),
            letter=self.shapes.head_letter(tensor),
            width=height if transposed else width,
            height=width if transposed else height,
            transposed=transposed,
            rules=(),
            groups=(),
        )

    def with_last_head(self, whole: Box) -> Box:
        """A matrix of several heads, with the last of them as the part that is meant."""
        heads = self.shapes.heads(whole.tensor)
        if whole.transposed:
            side = whole.height / heads
            return replace(whole, part=(whole.x, whole.y + whole.height - side, whole.width, side))
        side = whole.width / heads
        return replace(whole, part=(whole.x + whole.width - side, whole.y, side, whole.height))

    def edges(self, box: Box, vertical_side: EdgeSide | None, horizontal_side: EdgeSide | None) -> Iterator[Edge]:
        """The labelled vertical side and the labelled horizontal side of a box; None for a side without a label.

        The vertical one has the number of rows, of a transposed box the number of columns. The one that will be shown
        horizontal also has the matrix's letter if the box is too small to hold it.
        """
        vertical, horizontal = self._blanks(box)
        letter = "" if self.letter_fits(box) else box.symbol
        if horizontal_side:
            is_last = not vertical_side or not self.is_mirrored
            yield replace(self._edge(horizontal, horizontal_side, box), letter=letter if is_last else "")
        if vertical_side:
            is_last = not horizontal_side or self.is_mirrored
            yield replace(self._edge(vertical, vertical_side, box), letter=letter if is_last else "")

    def head_edge(self, box: Box, side: EdgeSide) -> Edge:
        """The side of a single head that has its own width, as the typed width of all heads makes it."""
        label, kind, name = head_label(self.shapes, box.tensor)
        return Edge(None, side, *side_ends(box, side), label, kind, name, "" if self.letter_fits(box) else box.symbol)

    @property
    def is_mirrored(self) -> bool:
        """Whether the sheet's tokens are columns, so that what is drawn here with tokens as rows will be mirrored."""
        return self.shapes.variant.worksheet.tokens_are == "columns"

    def letter_fits(self, box: Box) -> bool:
        """Whether a box has room for its letter as it will be shown."""
        return (replace(box, width=box.height, height=box.width) if self.is_mirrored else box).letter_fits

    def outlines(self, boxes: list[Box]) -> Iterator[Outline]:
        """For each box that cannot be added to what came in, the size it would need, from its own corner."""
        for box in boxes:
            width, height = self.sizes.size_needed(box.tensor)
            if width:
                yield Outline(box.x, box.y, width, height)

    def _blanks(self, box: Box) -> tuple[Blank, Blank]:
        """Which blanks the vertical and the horizontal side of a box have their lengths from."""
        rows, columns = Blank(box.tensor, "rows"), Blank(box.tensor, "columns")
        return (columns, rows) if box.transposed else (rows, columns)

    def _edge(self, blank: Blank, side: EdgeSide, box: Box) -> Edge:
        """An edge with its label, colour and name."""
        return Edge(blank, side, *side_ends(box, side), *self.labelled(blank), given=blank in self.shapes.facts)

    def labelled(self, blank: Blank) -> tuple[str, EdgeKind, str]:
        """What is written at a side, its colour, and the name of what it counts."""
        if blank not in self.sides:
            named = (self.shapes.label(blank), edge_kind(self.shapes, blank), axis_name(self.shapes, blank))
            self.sides[blank] = named
        return self.sides[blank]

    def _groups(self, box: Box, heads: int) -> Iterator[Polygon]:
        """Every second key/value head, or group of query heads that share one; none if heads share nothing."""
        groups = self.shapes.variant.sizes.get("G", 0)
        if 1 < groups < self.shapes.variant.sizes["H"] and heads:
            yield from _strips(box, groups)[1::2]

    def _breaks(self, box: Box) -> Iterator[Polygon]:
        """A slanted gap across each side that is drawn shortened."""
        x, y = box.x + 0.75 * box.width, box.y + 0.75 * box.height
        vertical, horizontal = (self.shapes.lengths.get(blank) for blank in self._blanks(box))
        shortened = self.sizes.scale.shortened
        if horizontal is not None and horizontal == shortened:
            top, bottom = box.y - 3, box.y + box.height + 3
            yield ((x, top), (x + 6, top), (x + 2, bottom), (x - 4, bottom))
        if vertical is not None and vertical == shortened:
            left, right = box.x - 3, box.x + box.width + 3
            yield ((left, y), (left, y + 6), (right, y + 2), (right, y - 4))

    def new_row(self, box: Box) -> tuple[float, float, float, float] | None:
        """The last row of keys and values in a decode step, and of logits; None for other matrices."""
        if box.incomplete or not self.shapes.has_new_row(box.tensor):
            return None
        row = self.sizes.scale.px(1)
        if box.transposed:
            return (box.x + box.width - row, box.y, row, box.height)
        return (box.x, box.y + box.height - row, box.width, row)


def _strips(box: Box, count: int) -> list[Polygon]:
    """A box cut into so many equal strips along its columns, each from its upper left corner; none if too narrow."""
    side = (box.height if box.transposed else box.width) / max(count, 1)
    if side < MIN_RULE_PX:
        return []
    right, bottom = box.x + box.width, box.y + box.height
    places = [index * side for index in range(count)]
    if box.transposed:
        tops = [box.y + place for place in places]
        return [((box.x, y), (box.x, y + side), (right, y + side), (right, y)) for y in tops]
    lefts = [box.x + place for place in places]
    return [((x, box.y), (x + side, box.y), (x + side, bottom), (x, bottom)) for x in lefts]


def pulled_out(whole: Box, head: Box) -> Polygon:
    """The band from one head's place in a matrix to that head on its own, which stands to the right or below."""
    assert whole.part is not None  # noqa: S101 - the head that was pulled out
    x, y, width, height = whole.part
    if head.x >= whole.x + whole.width:
        return ((x + width, y), (head.x, head.y), (head.x, head.y + head.height), (x + width, y + height))
    return ((x, y + height), (head.x, head.y), (head.x + head.width, head.y), (x + width, y + height))


def corner_arcs(
    left: Box, above: Box, inner: tuple[int | Fraction | None, int | Fraction | None], *, tells_mismatches: bool
) -> Iterator[Arc]:
    """One arc at the corner of a product, to the shorter of its inner lengths if they are not equal.

    `inner` are the left operand's columns and the rows of the operand above; there is no arc if one is unknown. Only
    with `tells_mismatches` is the arc of unequal ones a mismatch.
    """
    columns, rows = inner
    if columns is not None and rows is not None:
        pivot = (above.x - CORNER_PX / 2, left.y - CORNER_PX / 2)
        radius = min(left.width, above.height) + CORNER_PX / 2
        yield Arc(
            (pivot[0] - radius, pivot[1]), (pivot[0], pivot[1] - radius), True, tells_mismatches and columns != rows
        )


def place(sketch: Sketch, box: Box, edges: Iterable[Edge] = ()) -> Box:
    """Adds a box with its edges to a sketch, and returns it."""
    sketch.boxes.append(box)
    if sketch.is_mirrored:
        edges = list(edges)
        shifts = [edge.shift for edge in spread([transpose_edge(edge) for edge in edges])]
        sketch.edges += [replace(edge, shift=shift) for edge, shift in zip(edges, shifts, strict=True)]
    else:
        sketch.edges += spread(tuple(edges))
    return box


def label_box(sketch: Sketch, edge: Edge) -> Rectangle:
    """The rectangle that an edge's label takes; of a sketch that will be mirrored, the mirror image of that."""
    return transpose_rectangle(transpose_edge(edge).text_box) if sketch.is_mirrored else edge.text_box


def right_end(sketch: Sketch) -> float:
    """The right end of everything placed so far, labels included."""
    rectangles = [box.rectangle for box in sketch.boxes] + [label_box(sketch, edge) for edge in sketch.edges]
    return max(x + width for x, _, width, _ in rectangles)


def side_ends(box: Box, side: EdgeSide) -> tuple[float, float, float, float]:
    """Both ends of a side of a box, as x1, y1, x2, y2."""
    right, bottom = box.x + box.width, box.y + box.height
    match side:
        case "left" | "foot":
            return (box.x, box.y, box.x, bottom)
        case "right" | "over" | "beside":
            return (right, box.y, right, bottom)
        case "top" | "corner":
            return (box.x, box.y, right, box.y)
        case _:
            return (box.x, bottom, right, bottom)
