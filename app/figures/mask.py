"""What a mask hides of the attention weights, as areas of their box."""

from __future__ import annotations

from collections.abc import Iterator

from app.figures.figures import Box, Polygon
from app.figures.typed_shapes import TypedShapes
from app.shapes.table import Blank
from app.shapes.topics import TOPICS


def masked_areas(shapes: TypedShapes, box: Box) -> Iterator[Polygon]:
    """The areas of the weights' box that hold zeros; none for another matrix, without a mask, or if it isn't square.

    In a causal model these are the keys after each query's own token, the upper right triangle; with a sliding window
    of W keys also the keys from W tokens before, the lower left triangle.
    """
    architecture = shapes.variant.architecture
    masked = TOPICS[shapes.variant.worksheet.topic].masked and architecture.causal
    rows, columns = (shapes.lengths.get(Blank("weights", field)) for field in ("rows", "columns"))
    if box.tensor != "weights" or not masked or rows is None or rows != columns:
        return
    left, top, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    yield ((left, top), (right, top), (right, bottom))
    if architecture.window and architecture.window < rows:
        seen = architecture.window / rows
        yield ((left, top + seen * box.height), (left, bottom), (right - seen * box.width, bottom))
