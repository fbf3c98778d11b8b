"""A sketch made ready to be shown: mirrored on a sheet whose tokens are columns, and the frame around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from app.figures.figures import MARGIN_PX, Box, Break, Edge, EdgeSide, Flow, Outline, Point, Rectangle, Sketch

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
        [replace(arc, start=_swap(arc.start), end=_swap(arc.end), clockwise=not arc.clockwise) for arc in sketch.arcs],
        [Outline(o.y, o.x, o.height, o.width) for o in sketch.outlines],
        [replace(sign, x=sign.y, y=sign.x) for sign in sketch.signs],
        [tuple(map(_swap, polygon)) for polygon in sketch.pulled],
        [transpose_break(each) for each in sketch.breaks],
        sketch.flow and _transpose_flow(sketch.flow),
    )


def _swap(point: Point) -> Point:
    """X and y exchanged."""
    return (point[1], point[0])


def transpose_break(each: Break) -> Break:
    """The mirrored bracket, its label not placed yet."""
    return replace(each, start=_swap(each.start), end=_swap(each.end), toward=_swap(each.toward))


def transpose_rectangle(rectangle: Rectangle) -> Rectangle:
    """The mirror image of a rectangle."""
    x, y, width, height = rectangle
    return (y, x, height, width)


def _transpose_flow(flow: Flow) -> Flow:
    """The lane running down, with its frames."""
    frames = {key: transpose_rectangle(frame) for key, frame in flow.frames.items()}
    return Flow(transpose_rectangle(flow.lane), frames, {key: transpose_edge(axis) for key, axis in flow.axes.items()})


def _transpose_box(box: Box) -> Box:
    """The transposed matrix, with all that is drawn in it."""
    part = box.part and transpose_rectangle(box.part)
    return replace(
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


def transpose_edge(edge: Edge) -> Edge:
    """The edge on the mirrored side, with the blank of the exchanged field."""
    x1, y1, x2, y2 = edge.y1, edge.x1, edge.y2, edge.x2
    blank = edge.blank and edge.blank.transposed
    return replace(edge, blank=blank, side=MIRRORED_SIDES[edge.side], x1=x1, y1=y1, x2=x2, y2=y2)


def frame_of(sketch: Sketch) -> Rectangle:
    """The rectangle that holds all of a sketch, labels included, with MARGIN_PX around it."""
    rectangles = list(_rectangles(sketch))
    left, top = min(r[0] for r in rectangles) - MARGIN_PX, min(r[1] for r in rectangles) - MARGIN_PX
    right, bottom = max(r[0] + r[2] for r in rectangles), max(r[1] + r[3] for r in rectangles)
    return (left, top, right + MARGIN_PX - left, bottom + MARGIN_PX - top)


def _rectangles(sketch: Sketch) -> Iterator[Rectangle]:
    """The extent of everything that must lie in the frame."""
    for box in sketch.boxes:
        yield (box.x, box.y, box.width, box.height)
    for outline in sketch.outlines:
        yield (outline.x, outline.y, outline.width, outline.height)
    yield from (edge.text_box for edge in sketch.edges)
    yield from (sketch.flow.lane,) if sketch.flow else ()
    for point in (point for arc in sketch.arcs for point in (arc.start, arc.end)):
        yield (*point, 0.0, 0.0)
    for each in sketch.breaks:
        yield each.bracket_box
        yield each.text_box
    for sign in sketch.signs:
        yield sign.text_box


def obstacles(sketch: Sketch) -> Iterator[Rectangle]:
    """What no label must stand on: matrices, signs, the dashes of outlines, and arcs, by points along them."""
    yield from (box.rectangle for box in sketch.boxes)
    yield from (sign.text_box for sign in sketch.signs)
    for outline in sketch.outlines:
        right, bottom = outline.x + outline.width, outline.y + outline.height
        yield from ((outline.x, y - 1, outline.width, 2.0) for y in (outline.y, bottom))
        yield from ((x - 1, outline.y, 2.0, outline.height) for x in (outline.x, right))
    yield from ((x - 1.5, y - 1.5, 3.0, 3.0) for arc in sketch.arcs for x, y in arc.points)
