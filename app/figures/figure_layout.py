"""Where everything stands in a figure: the corner layout of a product, and what else is drawn.

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

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.figures.decks.deck_figure import sketch_decks
from app.figures.figure import Sign, Sketch
from app.figures.flow import sketch_flow
from app.figures.mismatch_brackets import head_breaks, joined_breaks
from app.figures.pen import CORNER_PX, PULLED_PX, Pen, corner_arcs, label_box, place, pulled_out, right_end
from app.figures.plans import FigurePlan, Layout
from app.shapes.table import Blank

GAP_PX = 22.0  # between a label and the next matrix
STACK_PX = 40.0  # between two matrices of a stack, for the label of the upper one
SIGN_PX = 24.0  # for a sign


def sketch_figure(pen: Pen, plan: FigurePlan) -> Sketch:
    """The figure of a plan with tokens as rows: its boxes, labelled sides, arcs, outlines and signs."""
    sketch = Sketch(is_mirrored=pen.is_mirrored)
    _LAYOUTS[plan.layout](pen, plan, sketch)
    if not sketch.flow:  # which has its own, as decks have
        sketch.outlines += pen.outlines(sketch.boxes)
    return sketch


def _product(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """The left operand, then one column for each result, side by side, each result below its right operand.

    Only the first product has arcs: later right operands either are made to fit or stand behind other boxes.
    """
    left = pen.box(plan.left, 0.0, 0.0)
    place(sketch, left, pen.edges(left, "left", "under"))
    _results(pen, plan, sketch, left.width + CORNER_PX)
    equation = pen.shapes.table[plan.results[0]].equation
    if equation is None or len(equation.operands) != 2:
        return
    above = sketch.boxes[1]
    columns = Blank(left.tensor, "columns")
    rows = Blank(above.tensor, "columns" if above.transposed else "rows")  # as drawn
    if any({rows, columns} <= set(blanks) for blanks in equation.blanks(plan.results[0]).values()):
        typed = pen.shapes.compared
        inner = (typed.get(columns), typed.get(rows))
        sketch.arcs += corner_arcs(left, above, inner, tells_mismatches=pen.shapes.tells_mismatches)


def _results(pen: Pen, plan: FigurePlan, sketch: Sketch, x: float) -> None:
    """One column for each result from x on, each result on the base line, its right operand above it."""
    for key in plan.results:
        column = _column(pen, key, x)
        covered = right_end(sketch) + GAP_PX / 3 - min(label_box(column, edge)[0] for edge in column.edges)
        if key != plan.results[0] and covered > 0:  # by a label wider than its matrix
            column = _column(pen, key, x + covered)
        sketch.boxes += column.boxes
        sketch.edges += column.edges
        x = right_end(sketch) + GAP_PX


def _column(pen: Pen, key: str, x: float) -> Sketch:
    """A result on the base line, below its right operand if it has one."""
    column, result = Sketch(is_mirrored=pen.is_mirrored), pen.box(key, x, 0.0)
    if (above := pen.operand_above(key, x, 0.0)) is not None:
        place(column, above, pen.edges(above, "over", "top"))
    place(column, result, pen.edges(result, "right", "bottom"))
    return column


def _head_scores(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """The scores of one head: its queries and keys are pulled out of those of all heads, then S = Q·Kᵀ as always.

    It is the last head, which in either matrix is next to the corner.
    """
    queries = pen.with_last_head(pen.box("queries", 0.0, 0.0))
    place(sketch, queries, pen.edges(queries, "left", "bottom"))
    query = pen.head("queries", queries.width + PULLED_PX, 0.0)
    covered = right_end(sketch) + GAP_PX / 3 - label_box(sketch, pen.head_edge(query, "under"))[0]
    query = replace(query, x=query.x + max(0.0, covered))
    x = query.x + query.width + CORNER_PX
    y = -CORNER_PX - pen.sizes.head_size("keys")[0]
    key = pen.head("keys", x, y, transposed=True)
    keys = pen.with_last_head(pen.box("keys", x, y - PULLED_PX - pen.sizes.size("keys")[0], transposed=True))
    place(sketch, query, (pen.head_edge(query, "under"),))
    place(sketch, keys, pen.edges(keys, "over", "top"))
    place(sketch, key, (pen.head_edge(key, "over"),))
    sketch.pulled += [pulled_out(queries, query), pulled_out(keys, key)]
    inner = (pen.shapes.head_width("queries"), pen.shapes.head_width("keys"))
    sketch.arcs += corner_arcs(query, key, inner, tells_mismatches=pen.shapes.tells_mismatches)
    sketch.breaks += head_breaks(pen, query, key)
    softmax = replace(plan, results=plan.results[1:])
    scores = pen.box(plan.results[0], x, 0.0)
    place(sketch, scores, pen.edges(scores, "right", "bottom"))
    _results(pen, softmax, sketch, right_end(sketch) + GAP_PX)


def _head_context(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """The context of one head: weights times its values, pulled out of those of all heads; then all heads in a row."""
    weights = pen.box("weights", 0.0, 0.0)
    context = pen.head("context", weights.width + CORNER_PX, 0.0)
    value = pen.head("values", context.x, -CORNER_PX - pen.sizes.size("values")[1])
    width, height = pen.sizes.size("values")
    values = pen.box("values", value.x + value.width - width, value.y - PULLED_PX - height)
    values = pen.with_last_head(values)
    place(sketch, weights, pen.edges(weights, "left", "under"))
    place(sketch, values, pen.edges(values, "left", "top"))
    place(sketch, value, (pen.head_edge(value, "corner"),))
    place(sketch, context, (pen.head_edge(context, "bottom"),))
    sketch.pulled.append(pulled_out(values, value))
    lengths = pen.shapes.lengths
    inner = (lengths.get(Blank("weights", "columns")), lengths.get(Blank("values", "rows")))
    sketch.arcs += corner_arcs(weights, value, inner, tells_mismatches=pen.shapes.tells_mismatches)
    sketch.breaks += head_breaks(pen, value, context)
    label = label_box(sketch, sketch.edges[-1])
    end = max(context.x + context.width, label[0] + label[2])
    sketch.signs.append(Sign("→", end + SIGN_PX, context.center[1]))
    whole = pen.with_last_head(pen.box("context", end + 2 * SIGN_PX, 0.0))
    place(sketch, whole, pen.edges(whole, "right", "bottom"))


def _stack(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """Matrices below each other, left aligned, so that sides that should be equal can be compared; signs before them.

    A sign ↓ says that the one below is the last row of the one above.
    """
    y = 0.0
    for key, sign in zip(plan.tensors, " " + plan.signs, strict=True):
        box = pen.box(key, 0.0, y)
        if plan.signs == "↓" and not sketch.boxes and not box.incomplete:
            row = pen.sizes.scale.px(1)
            box = replace(box, part=(box.x, box.y + box.height - row, box.width, row))
        place(sketch, box, pen.edges(box, "left", "bottom"))
        sketch.signs += [Sign(sign, 0.0, box.center[1])] if sign.strip() else []
        labels = [label_box(sketch, edge) for edge in sketch.edges]
        y = max(y + box.height + STACK_PX, *(top + height + GAP_PX / 3 for _, top, _, height in labels))
    left = min(label_box(sketch, edge)[0] for edge in sketch.edges) - SIGN_PX
    sketch.signs = [replace(sign, x=left) for sign in sketch.signs]


def _row(pen: Pen, plan: FigurePlan, sketch: Sketch) -> None:
    """Matrices beside each other, with signs between them."""
    x = 0.0
    for key, sign in zip(plan.tensors, (" " + plan.signs).ljust(len(plan.tensors)), strict=True):
        box = pen.box(key, x, 0.0)
        if sign.strip():
            sketch.signs.append(Sign(sign, x, box.center[1]))
            box = pen.box(key, x + SIGN_PX, 0.0)
        place(sketch, box, pen.edges(box, "right", "bottom"))
        x = right_end(sketch) + GAP_PX
    if plan.signs == "|=":
        sketch.breaks += joined_breaks(pen, sketch.boxes[-1], plan.tensors[:-1])


_LAYOUTS: Mapping[Layout, Callable[[Pen, FigurePlan, Sketch], None]] = {
    "product": _product,
    "head-scores": _head_scores,
    "head-context": _head_context,
    "stack": _stack,
    "row": _row,
    "flow": sketch_flow,
    "decks": sketch_decks,
}
