"""A sketch made ready to be shown: mirrored on a sheet whose tokens are columns, and the frame around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.figures.figure import (
    MARGIN_PX,
    Box,
    Break,
    Edge,
    EdgeSide,
    Flow,
    Outline,
    Point,
    Rectangle,
    Sketch,
    changed,
)

MIRRORED_SIDES: Mapping[EdgeSide, EdgeSide] = {
    "left": "top",
    "top": "left",
    "under": "over",
    "over": "under",
    "right": "bottom",
    "bottom": "right",
    "corner": "foot",
    "below": "beside",
}


def mirror_sketch(sketch: Sketch) -> Sketch:
    """The sketch of the transposed product, (A·B)ᵀ = Bᵀ·Aᵀ: its mirror image, with rows and columns exchanged."""
    boxes = [_transpose_box(box) for box in sketch.boxes]
    edges = [transpose_edge(edge) for edge in sketch.edges]
    return Sketch(
        boxes,
        edges,
        [changed(arc, start=_swap(arc.start), end=_swap(arc.end), clockwise=not arc.clockwise) for arc in sketch.arcs],
        [Outline(o.y, o.x, o.height, o.width) for o in sketch.outlines],
        [changed(sign, x=sign.y, y=sign.x) for sign in sketch.signs],
        [tuple(map(_swap, polygon)) for polygon in sketch.pulled],
        [transpose_break(each) for each in sketch.breaks],
        sketch.flow and _transpose_flow(sketch.flow),
    )


def _swap(point: Point) -> Point:
    """X and y exchanged."""
    return (point[1], point[0])


def transpose_break(each: Break) -> Break:
    """The mirrored bracket, its label not placed yet."""
    return changed(each, start=_swap(each.start), end=_swap(each.end), toward=_swap(each.toward))


def transpose_rectangle(rectangle: Rectangle) -> Rectangle:
    """The mirror image of a rectangle."""
    x, y, width, height = rectangle
    return (y, x, height, width)


def _transpose_flow(flow: Flow) -> Flow:
    """The lane running down, with its frames."""
    frames = {key: transpose_rectangle(frame) for key, frame in flow.frames.items()}
    lanes = tuple(map(transpose_rectangle, flow.lanes))
    return Flow(lanes, frames, {key: transpose_edge(axis) for key, axis in flow.axes.items()})


def _transpose_box(box: Box) -> Box:
    """The transposed matrix, with all that is drawn in it."""
    part = box.part and transpose_rectangle(box.part)
    return changed(
        box,
        x=box.y,
        y=box.x,
        width=box.height,
        height=box.width,
        masked=tuple(tuple(map(_swap, polygon)) for polygon in box.masked),
        rules=tuple((_swap(start), _swap(end)) for start, end in box.rules),
        groups=tuple(tuple(map(_swap, polygon)) for polygon in box.groups),
        breaks=tuple(tuple(map(_swap, polygon)) for polygon in box.breaks),
        part=part,
    )


def add_below(sketch: Sketch, other: Sketch, room: float) -> None:
    """Adds the flow of another sketch to a sketch: below what is there already, with some room between.

    Both have tokens as rows; of those that will be mirrored, labels count where they will stand then.
    """
    y = 0.0
    if sketch.flow:
        ends = [_rows_extent(each) for each in (sketch, other)]
        y = ends[0][1] + room - ends[1][0]
    lowered = _lowered_sketch(other, y) if y else other
    sketch.boxes += lowered.boxes
    sketch.edges += lowered.edges
    sketch.arcs += lowered.arcs
    sketch.outlines += lowered.outlines
    sketch.signs += lowered.signs
    sketch.breaks += lowered.breaks
    sketch.flow = _with_lane(sketch.flow, other.flow, y) if other.flow else sketch.flow


def _lowered_sketch(sketch: Sketch, y: float) -> Sketch:
    """All that is drawn of a sketch, moved down; without its flow."""
    return Sketch(
        boxes=[_lowered_box(box, y) for box in sketch.boxes],
        edges=[changed(edge, y1=edge.y1 + y, y2=edge.y2 + y) for edge in sketch.edges],
        arcs=[changed(arc, start=_lowered(arc.start, y), end=_lowered(arc.end, y)) for arc in sketch.arcs],
        outlines=[changed(each, y=each.y + y) for each in sketch.outlines],
        signs=[changed(sign, y=sign.y + y) for sign in sketch.signs],
        breaks=[changed(each, start=_lowered(each.start, y), end=_lowered(each.end, y)) for each in sketch.breaks],
    )


def _with_lane(flow: Flow | None, other: Flow, y: float) -> Flow:
    """A flow with the lane of another one, moved down; its first label always stands, so it is none of a frame's."""
    if flow is None:
        return other
    first = next(iter(other.axes.values()))
    lanes = [(left, top + y, width, height) for left, top, width, height in other.lanes]
    frames = {key: (left, top + y, width, height) for key, (left, top, width, height) in other.frames.items()}
    axes = {key: changed(axis, y1=axis.y1 + y, y2=axis.y2 + y) for key, axis in other.axes.items() if axis != first}
    return Flow((*flow.lanes, *lanes), {**flow.frames, **frames}, {**flow.axes, **axes})


def _rows_extent(sketch: Sketch) -> tuple[float, float]:
    """Where a sketch begins and ends along its tokens, labels included."""
    _, top, _, height = transpose_rectangle(frame_of(mirror_sketch(sketch))) if sketch.is_mirrored else frame_of(sketch)
    return top, top + height


def _lowered(point: Point, y: float) -> Point:
    """A point moved down."""
    return (point[0], point[1] + y)


def _lowered_box(box: Box, y: float) -> Box:
    """A matrix of a flow moved down, with all that is drawn in it."""
    part = box.part and (box.part[0], box.part[1] + y, *box.part[2:])
    masked = tuple(tuple(_lowered(point, y) for point in polygon) for polygon in box.masked)
    return changed(box, y=box.y + y, part=part, masked=masked)


def transpose_edge(edge: Edge) -> Edge:
    """The edge on the mirrored side, with the blank of the exchanged field."""
    x1, y1, x2, y2 = edge.y1, edge.x1, edge.y2, edge.x2
    blank = edge.blank and edge.blank.transposed
    return changed(edge, blank=blank, side=MIRRORED_SIDES[edge.side], x1=x1, y1=y1, x2=x2, y2=y2)


def frame_of(sketch: Sketch) -> Rectangle:
    """The rectangle that holds all of a sketch, labels included, with MARGIN_PX around it."""
    rectangles = list(_rectangles(sketch))
    left, top = min(r[0] for r in rectangles) - MARGIN_PX, min(r[1] for r in rectangles) - MARGIN_PX
    right, bottom = max(r[0] + r[2] for r in rectangles), max(r[1] + r[3] for r in rectangles)
    return (left, top, right + MARGIN_PX - left, bottom + MARGIN_PX - top)


def _rectangles(sketch: Sketch) -> Iterator[Rectangle]:
    """The extent of everything that must lie in the frame."""
    yield from (box.extent for box in sketch.boxes)
    for outline in sketch.outlines:
        yield (outline.x, outline.y, outline.width, outline.height)
    yield from (edge.text_box for edge in sketch.edges)
    yield from sketch.flow.lanes if sketch.flow else ()
    for point in (point for arc in sketch.arcs for point in (arc.start, arc.end)):
        yield (*point, 0.0, 0.0)
    for each in sketch.breaks:
        yield each.bracket_box
        yield each.text_box
    for sign in sketch.signs:
        yield sign.text_box


def obstacles(sketch: Sketch) -> Iterator[Rectangle]:
    """What no label must stand on: matrices, signs, the dashes of outlines, and arcs, by points along them."""
    yield from (rectangle for box in sketch.boxes for rectangle in box.card_rectangles)
    yield from (sign.text_box for sign in sketch.signs)
    for outline in sketch.outlines:
        right, bottom = outline.x + outline.width, outline.y + outline.height
        yield from ((outline.x, y - 1, outline.width, 2.0) for y in (outline.y, bottom))
        yield from ((x - 1, outline.y, 2.0, outline.height) for x in (outline.x, right))
    yield from ((x - 1.5, y - 1.5, 3.0, 3.0) for arc in sketch.arcs for x, y in arc.points)
