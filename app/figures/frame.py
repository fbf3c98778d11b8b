"""A sketch made ready to be shown: mirrored on a sheet whose tokens are columns, and the frame around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from app.figures.figures import MARGIN_PX, Box, Edge, EdgeSide, Outline, Point, Rectangle, Sign, Sketch, with_room

MIRRORED_SIDES: Mapping[EdgeSide, EdgeSide] = {
    "left": "top",
    "top": "left",
    "under": "over",
    "over": "under",
    "right": "bottom",
    "bottom": "right",
    "corner": "foot",
}


def mirror_sketch(sketch: Sketch) -> Sketch:
    """The sketch of the transposed product, (A·B)ᵀ = Bᵀ·Aᵀ: its mirror image, with rows and columns exchanged."""
    return Sketch(
        [_transpose_box(box) for box in sketch.boxes],
        list(with_room([_transpose_edge(edge) for edge in sketch.edges])),
        [replace(arc, start=_swap(arc.start), end=_swap(arc.end), clockwise=not arc.clockwise) for arc in sketch.arcs],
        [Outline(o.y, o.x, o.height, o.width) for o in sketch.outlines],
        [Sign(sign.text, sign.y, sign.x) for sign in sketch.signs],
        [tuple(map(_swap, polygon)) for polygon in sketch.pulled],
    )


def _swap(point: Point) -> Point:
    """X and y exchanged."""
    return (point[1], point[0])


def _transpose_box(box: Box) -> Box:
    """The transposed matrix, with all that is drawn in it."""
    part = box.part and (box.part[1], box.part[0], box.part[3], box.part[2])
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


def _transpose_edge(edge: Edge) -> Edge:
    """The edge on the mirrored side, with the blank of the exchanged field."""
    x1, y1, x2, y2 = edge.y1, edge.x1, edge.y2, edge.x2
    blank = edge.blank and edge.blank.transposed
    return replace(edge, blank=blank, side=MIRRORED_SIDES[edge.side], shift=0.0, x1=x1, y1=y1, x2=x2, y2=y2)


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
    for edge in sketch.edges:
        yield edge.text_box
    for point in (point for arc in sketch.arcs for point in (arc.start, arc.end)):
        yield (*point, 0.0, 0.0)
    for sign in sketch.signs:
        yield (sign.x - 8, sign.y - 8, 16.0, 16.0)
