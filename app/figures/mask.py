"""What a mask hides of the attention weights, as areas of their box."""

from __future__ import annotations

from collections.abc import Iterator

from app.figures.geometry import Polygon
from app.figures.parts import Box
from app.figures.shapes import TypedShapes
from app.models.architecture import Architecture
from app.shapes.operation import Softmax
from app.shapes.table import Tensor
from app.topics.registry import TOPICS


def masked_areas(shapes: TypedShapes, box: Box) -> Iterator[Polygon]:
    """Yield the areas of a box that a mask hides, if it is a square box of weights or a mask."""
    if not (rows := hidden_rows(shapes, box.tensor)):
        return
    left, top, right, bottom = box.rect.x, box.rect.y, box.rect.right, box.rect.bottom
    if is_causal(shapes):
        yield ((left, top), (right, top), (right, bottom))
    reach, chunk = shared_limits(shapes)
    if reach and reach < rows:
        x, y = reach / rows * box.rect.width, reach / rows * box.rect.height
        yield ((left, top + y), (left, bottom), (right - x, bottom))
        if not is_causal(shapes):
            yield ((left + x, top), (right, top), (right, bottom - y))
    for start in range(chunk, rows, chunk) if chunk else ():
        x, y = left + start / rows * box.rect.width, top + start / rows * box.rect.height
        end = top + min(start + (chunk or 0), rows) / rows * box.rect.height
        yield ((left, y), (x, y), (x, end), (left, end))


def hidden_rows(shapes: TypedShapes, tensor: str) -> int:
    """How many rows of weights or a mask can have hidden entries; 0 unless they are square."""
    softmax = _softmax(shapes)
    if softmax is None or tensor not in {softmax.key, *(softmax.made_by.operands[1:] if softmax.made_by else ())}:
        return 0
    rows, columns = (shapes.lengths.get(side) for side in shapes.table[tensor].sides[-2:])
    return rows if rows and rows == columns else 0


def is_causal(shapes: TypedShapes) -> bool:
    """Whether later tokens are hidden on this sheet: its topic has a mask, and the model is causal."""
    return TOPICS[shapes.variant.worksheet.topic].masked and shapes.variant.architecture.causal


def has_mask(shapes: TypedShapes) -> bool:
    """Whether a text attends to itself, so that the model's mask applies."""
    weights = _softmax(shapes)
    return weights is not None and weights.rows == weights.columns


def _softmax(shapes: TypedShapes) -> Tensor | None:
    return next((tensor for tensor in shapes.table.tensors if isinstance(tensor.made_by, Softmax)), None)


def shared_limits(shapes: TypedShapes) -> tuple[int | None, int | None]:
    """How far the window reaches, and the size of a chunk, each if it is the same in all layers."""
    limits = set(_limits(shapes.variant.architecture))
    return limits.pop() if len(limits) == 1 and has_mask(shapes) else (None, None)


def some_layers_hide_more(shapes: TypedShapes, rows: int) -> bool:
    """Whether layers differ in window or chunk, and one of these hides something of `rows` tokens."""
    limits = set(_limits(shapes.variant.architecture))
    least = min((limit for limits_of_run in limits for limit in limits_of_run if limit), default=rows)
    return has_mask(shapes) and len(limits) > 1 and least < rows


def _limits(architecture: Architecture) -> Iterator[tuple[int | None, int | None]]:
    for run in (run for stack in architecture.stacks for run in stack.attending):
        yield architecture.reach_of(run.window) if run.window else None, run.chunk
