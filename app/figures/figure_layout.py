"""The places of everything in a figure: the corner layout of a product, and what else is drawn.

The left operand is next to the result, so that they share their rows; the right operand is above the result, so that
they share their columns. The inner dimension, which is summed over, meets at the corner between them:

                 ┌─────┐
                 │  Kᵀ │
                 └─────┘
        ┌─────┐  ┌─────┐
        │  Q  │  │  S  │
        └─────┘  └─────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from app.figures.decks.deck_figure import sketch_decks
from app.figures.flow import sketch_flow
from app.figures.geometry import Point, Rect
from app.figures.mismatch_brackets import brackets_of, head_brackets, joined_brackets, with_free_labels
from app.figures.parts import Sign, Sketch
from app.figures.pen import CORNER_PX, PULLED_PX, Pen, corner_arcs, pulled_out
from app.figures.stripes import sketch_stripes
from app.shapes.operation import Concat, LastRow, Operation
from app.shapes.table import Blank
from app.topics.topic import FigureLayout, FigurePlan

GAP_PX = 22.0  # between a label and the next matrix
STACK_PX = 40.0  # between two matrices of a stack, for the upper one's label
SIGN_PX = 24.0  # room for a sign


def sketch_figure(pen: Pen, plan: FigurePlan) -> Sketch:
    """The figure of a plan with outlines, brackets and free labels."""
    if plan.layout == "decks":
        return sketch_decks(pen, plan)
    sketch = _LAYOUTS[plan.layout](pen, plan)
    if not sketch.flow:  # a flow has them already
        sketch += Sketch(outlines=pen.outlines(sketch.boxes))
        of_sides = [brackets_of(pen, mismatch, sketch) for mismatch in pen.shapes.mismatches_in(plan.results)]
        brackets = dict.fromkeys((*sketch.brackets, *chain(*of_sides)))  # one bracket for equal ones
        sketch = replace(sketch, brackets=tuple(brackets))
    return with_free_labels(sketch)


def _product(pen: Pen, plan: FigurePlan) -> Sketch:
    left = pen.box(plan.left, 0.0, 0.0)
    sketch = _with_results(pen, plan.results, pen.labelled(left, "left", "under"), left.rect.width + CORNER_PX)
    first_result = pen.shapes.table[plan.results[0]]
    if first_result.made_by is None or len(first_result.made_by.operands) != 2:
        return sketch
    above = sketch.boxes[1]
    columns = Blank(left.tensor, "columns")
    rows = Blank(above.tensor, "columns" if above.transposed else "rows")  # as drawn
    if any({rows, columns} <= set(blanks) for blanks in first_result.equal_sides.values()):
        typed = pen.shapes.compared
        inner = (typed.get(columns), typed.get(rows))
        sketch += Sketch(arcs=corner_arcs(left, above, inner, shows_mismatches=pen.shapes.shows_mismatches))
    return sketch


def _with_results(pen: Pen, results: Sequence[str], sketch: Sketch, x: float) -> Sketch:
    for key in results:
        column = _column(pen, key, x)
        covered = pen.right_end(sketch) + GAP_PX / 3 - min(edge.text_box.x for edge in column.edges)
        if key != results[0] and covered > 0:  # covered by a label wider than its matrix
            column = _column(pen, key, x + covered)
        sketch += column
        x = pen.right_end(sketch) + GAP_PX
    return sketch


def _column(pen: Pen, key: str, x: float) -> Sketch:
    result = pen.labelled(pen.box(key, x, 0.0), "right", "bottom")
    above = pen.operand_above(key, x, 0.0)
    return pen.labelled(above, "over", "top") + result if above else result


def _head_scores(pen: Pen, plan: FigurePlan) -> Sketch:
    queries = pen.with_last_head(pen.box("queries", 0.0, 0.0))
    sketch = pen.labelled(queries, "left", "bottom")
    query = pen.head("queries", queries.rect.width + PULLED_PX, 0.0)
    label = pen.labelled_head(query, "under").edges[0].text_box
    query = query.moved(max(0.0, pen.right_end(sketch) + GAP_PX / 3 - label.x), 0.0)
    x, y = query.rect.right + CORNER_PX, -CORNER_PX - pen.sizes.head_size("keys")[0]
    key = pen.head("keys", x, y, transposed=True)
    keys = pen.with_last_head(pen.box("keys", x, y - PULLED_PX - pen.sizes.size("keys")[0], transposed=True))
    sketch += pen.labelled_head(query, "under") + pen.labelled(keys, "over", "top") + pen.labelled_head(key, "over")
    inner = (pen.shapes.head_width("queries"), pen.shapes.head_width("keys"))
    sketch += Sketch(
        pulled=(pulled_out(queries, query), pulled_out(keys, key)),
        arcs=corner_arcs(query, key, inner, shows_mismatches=pen.shapes.shows_mismatches),
        brackets=head_brackets(pen, query, key),
    )
    scores, *softmax = plan.results
    sketch += pen.labelled(pen.box(scores, x, 0.0), "right", "bottom")
    return _with_results(pen, softmax, sketch, pen.right_end(sketch) + GAP_PX)


def _head_context(pen: Pen, plan: FigurePlan) -> Sketch:
    weights = pen.box("weights", 0.0, 0.0)
    context = pen.head("context", weights.rect.width + CORNER_PX, 0.0)
    value = pen.head("values", context.rect.x, -CORNER_PX - pen.sizes.size("values")[1])
    width, height = pen.sizes.size("values")
    values = pen.with_last_head(pen.box("values", value.rect.right - width, value.rect.y - PULLED_PX - height))
    inner = (pen.shapes.lengths.get(Blank("weights", "columns")), pen.shapes.lengths.get(Blank("values", "rows")))
    below = pen.labelled_head(context, "bottom")
    end = max(context.rect.right, below.edges[0].text_box.right)
    whole = pen.with_last_head(pen.box("context", end + 2 * SIGN_PX, 0.0))
    return (
        pen.labelled(weights, "left", "under")
        + pen.labelled(values, "left", "top")
        + pen.labelled_head(value, "corner")
        + below
        + pen.labelled(whole, "right", "bottom")
        + Sketch(
            pulled=(pulled_out(values, value),),
            arcs=corner_arcs(weights, value, inner, shows_mismatches=pen.shapes.shows_mismatches),
            brackets=head_brackets(pen, value, context),
            signs=(Sign("→", Point(end + SIGN_PX, context.rect.centre.y)),),
        )
    )


def _made_by(pen: Pen, plan: FigurePlan) -> Operation:
    made_by = pen.shapes.table[plan.results[-1]].made_by
    assert made_by is not None  # noqa: S101 - plans of stacks and rows show what an operation does
    return made_by


def _stack(pen: Pen, plan: FigurePlan) -> Sketch:
    sketch, y, made_by = Sketch(), 0.0, _made_by(pen, plan)
    for key, sign in zip(plan.tensors, " " + made_by.signs, strict=True):
        box = pen.box(key, 0.0, y)
        if isinstance(made_by, LastRow) and not sketch.boxes and not box.incomplete:
            row = pen.sizes.scale.px(1)
            box = replace(box, part=Rect(box.rect.x, box.rect.bottom - row, box.rect.width, row))
        signs = (Sign(sign, Point(0.0, box.rect.centre.y)),) if sign.strip() else ()
        sketch += pen.labelled(box, "left", "bottom") + Sketch(signs=signs)
        y = max(box.rect.bottom + STACK_PX, *(edge.text_box.bottom + GAP_PX / 3 for edge in sketch.edges))
    left = min(edge.text_box.x for edge in sketch.edges) - SIGN_PX
    return replace(sketch, signs=tuple(sign.moved(left, 0.0) for sign in sketch.signs))


def _row(pen: Pen, plan: FigurePlan) -> Sketch:
    sketch, x, made_by = Sketch(), 0.0, _made_by(pen, plan)
    for key, sign in zip(plan.tensors, " " + made_by.signs, strict=True):
        box = pen.box(key, x, 0.0)
        if sign.strip():
            sketch += Sketch(signs=(Sign(sign, Point(x, box.rect.centre.y)),))
            box = box.moved(SIGN_PX, 0.0)
        sketch += pen.labelled(box, "right", "bottom")
        x = pen.right_end(sketch) + GAP_PX
    if isinstance(made_by, Concat):
        sketch += Sketch(brackets=joined_brackets(pen, sketch.boxes[-1], plan.tensors[:-1]))
    return sketch


_LAYOUTS: Mapping[FigureLayout, Callable[[Pen, FigurePlan], Sketch]] = {
    "product": _product,
    "head-scores": _head_scores,
    "head-context": _head_context,
    "stack": _stack,
    "row": _row,
    "flow": sketch_flow,
    "stripes": sketch_stripes,
}
