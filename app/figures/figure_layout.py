"""Lays out a figure: a lane of matrices, one head of a layer, tensors as decks of cards, or stripes at true scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from app.figures.decks.deck_figure import sketch_decks
from app.figures.geometry import Point
from app.figures.layout import sketch_flow
from app.figures.mismatch_brackets import brackets_of, head_brackets, with_free_labels
from app.figures.parts import Sign, Sketch
from app.figures.pen import CORNER_PX, PULLED_PX, Pen, corner_arcs, pulled_out
from app.figures.stripes import sketch_stripes
from app.shapes.table import Blank
from app.topics.topic import FigurePlan

GAP_PX = 22.0  # between a label and the next matrix
STACK_PX = 40.0  # between two matrices of a stack, for the upper one's label
SIGN_PX = 24.0  # room for a sign


def sketch_figure(pen: Pen, plan: FigurePlan) -> Sketch:
    """The figure of a plan with outlines, brackets and free labels."""
    if plan.stripes:
        sketch = sketch_stripes(pen, plan)
    elif pen.shapes.table.has_more_sides:
        return sketch_decks(pen, plan)
    elif product := pen.shapes.product_by_head(plan):
        left, right = product.operands
        makes_heads = bool(pen.shapes.heads(plan.results[0]))
        sketch = (_heads_of_result if makes_heads else _heads_of_operands)(pen, plan, left, right)
        sketch += Sketch(outlines=pen.outlines(sketch.boxes))
        of_sides = [brackets_of(pen, mismatch, sketch) for mismatch in pen.shapes.mismatches_in(plan.results)]
        brackets = dict.fromkeys((*sketch.brackets, *chain(*of_sides)))  # one bracket for equal ones
        sketch = replace(sketch, brackets=tuple(brackets))
    else:
        sketch = sketch_flow(pen, plan)
    return with_free_labels(sketch)


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


def _heads_of_operands(pen: Pen, plan: FigurePlan, left: str, right: str) -> Sketch:
    queries = pen.with_last_head(pen.box(left, 0.0, 0.0))
    sketch = pen.labelled(queries, "left", "bottom")
    query = pen.head(left, queries.rect.width + PULLED_PX, 0.0)
    label = pen.labelled_head(query, "under").edges[0].text_box
    query = query.moved(max(0.0, pen.right_end(sketch) + GAP_PX / 3 - label.x), 0.0)
    x, y = query.rect.right + CORNER_PX, -CORNER_PX - pen.sizes.head_size(right)[0]
    key = pen.head(right, x, y, transposed=True)
    keys = pen.with_last_head(pen.box(right, x, y - PULLED_PX - pen.sizes.size(right)[0], transposed=True))
    sketch += pen.labelled_head(query, "under") + pen.labelled(keys, "over", "top") + pen.labelled_head(key, "over")
    inner = (pen.shapes.head_width(left), pen.shapes.head_width(right))
    sketch += Sketch(
        pulled=(pulled_out(queries, query), pulled_out(keys, key)),
        arcs=corner_arcs(query, key, inner, shows_mismatches=pen.shapes.shows_mismatches),
        brackets=head_brackets(pen, query, key),
    )
    scores, *softmax = plan.results
    sketch += pen.labelled(pen.box(scores, x, 0.0), "right", "bottom")
    return _with_results(pen, softmax, sketch, pen.right_end(sketch) + GAP_PX)


def _heads_of_result(pen: Pen, plan: FigurePlan, left: str, right: str) -> Sketch:
    weights = pen.box(left, 0.0, 0.0)
    context = pen.head(plan.results[0], weights.rect.width + CORNER_PX, 0.0)
    value = pen.head(right, context.rect.x, -CORNER_PX - pen.sizes.size(right)[1])
    width, height = pen.sizes.size(right)
    values = pen.with_last_head(pen.box(right, value.rect.right - width, value.rect.y - PULLED_PX - height))
    inner = (pen.shapes.lengths.get(Blank(left, "columns")), pen.shapes.lengths.get(Blank(right, "rows")))
    below = pen.labelled_head(context, "bottom")
    end = max(context.rect.right, below.edges[0].text_box.right)
    whole = pen.with_last_head(pen.box(plan.results[0], end + 2 * SIGN_PX, 0.0))
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
