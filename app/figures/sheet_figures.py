"""Draws a sheet's figures from what was typed into it, never from the answer key.

The whole sheet has one scale, so that one symbol has the same length everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.figures.counts import draw_counts, longest_bars
from app.figures.layout import differing_plan, sketch_figure
from app.figures.parts import Figure
from app.figures.pen import Pen
from app.figures.scale import MatrixSizes, Scale
from app.figures.shapes import Answers, TypedShapes
from app.figures.words import alt_text, captions, mismatch_captions
from app.sheets.prose import rows_so_far
from app.sheets.variant import Variant
from app.topics.registry import DRAWN_WITH, FIGURE_PLANS, TOPICS
from app.topics.topic import FigurePlan


def draw_figures(
    variant: Variant,
    answers: Answers,
    *,
    names_sizes: bool = True,
    shows_mismatches: bool = True,
    step: str = "",
    in_place_of_numbers: str | None = None,
) -> tuple[Figure, ...]:
    """The figures of a sheet, drawn from `answers`: what was typed into its boxes, without empty ones.

    `in_place_of_numbers` is written at every side, as on paper to be filled in.
    """
    sheet, plans = variant.worksheet, _plans(variant)
    if TOPICS[sheet.topic].in_steps:
        plans = (*_reached(variant, rows_so_far(variant, answers, step), plans),)
        plans = plans if not step and all(blank in answers for blank in variant.blanks) else plans[-1:]
    bars = draw_counts(variant, answers, shows_mismatches=shows_mismatches)
    if not plans:
        return bars
    shapes = TypedShapes.of(variant, answers, names_sizes, shows_mismatches, step)
    pen = Pen(shapes, MatrixSizes(shapes, Scale.fitting(shapes, plans)), in_place_of_numbers)
    return (*_lay_out(pen, plans), *bars)


def product_plan(variant: Variant, left: str, result: str) -> FigurePlan | None:
    """The plan of one product by itself; None if no figure of the sheet has it."""
    plans = (plan for plan in _plans(variant) if result in plan.results)
    plan = next(plans, None)
    return plan and replace(plan, left=left, results=(result,), second_left="")


def draw_product(variant: Variant, answers: Answers, plan: FigurePlan) -> Figure:
    """The figure of a `product_plan`, drawn from `answers` at its own scale."""
    shapes = TypedShapes.of(variant, answers)
    return _figure(Pen(shapes, MatrixSizes(shapes, Scale.fitting(shapes, (plan,)))), plan)


def draw_side_by_side(variant: Variant, left: Answers, right: Answers) -> tuple[tuple[Figure, Figure], ...]:
    """Two ways of filling in a sheet, as pairs of the same figure; pairs without a difference are left out."""
    longest = [longest_bars(variant, values) for values in (left, right)]
    shared = {key: max(each[key] for each in longest) for key in longest[0]}
    bars = _differing(zip(*(draw_counts(variant, values, shared) for values in (left, right)), strict=True))
    plans = _plans(variant)
    if not plans:
        return bars
    both = [TypedShapes.of(variant, values) for values in (left, right)]
    smaller = min((Scale.fitting(shapes, plans) for shapes in both), key=lambda fitted: fitted.px_per_unit)
    first, second = (Pen(shapes, MatrixSizes(shapes, smaller)) for shapes in both)
    lengths = (both[0].lengths, both[1].lengths)
    plans = tuple(differing_plan(first, plan, *lengths) for plan in plans)
    return (*_differing((_figure(first, plan), _figure(second, plan)) for plan in plans if plan.results), *bars)


def _differing(pairs: Iterable[tuple[Figure, Figure]]) -> tuple[tuple[Figure, Figure], ...]:
    return tuple((first, second) for first, second in pairs if first.labels != second.labels)


def _plans(variant: Variant) -> tuple[FigurePlan, ...]:
    drawn, asked = DRAWN_WITH.get(variant.table.key, variant.table), set(variant.problem.rows)
    plans = tuple(p for p in FIGURE_PLANS.get(variant.table.key, ()) if drawn.by_key.keys() >= {*p.tensors})
    results = {result for plan in plans for result in plan.results if not plan.needs_left}

    def is_asked(plan: FigurePlan) -> bool:
        given = set() if plan.left in results else {plan.left}
        return bool(asked & (given if plan.needs_left else given | set(plan.results)))

    return tuple(plan for plan in plans if is_asked(plan)) if drawn.has_more_sides else plans


def _reached(variant: Variant, rows: Iterable[str], plans: Iterable[FigurePlan]) -> Iterator[FigurePlan]:
    reached = {*rows}
    for plan in plans:
        operands = {key: made_by.operands for key in plan.results if (made_by := variant.table[key].made_by)}
        # A matrix that a product transposes is drawn in it before the sheet asks for the product.
        asked = reached.intersection(plan.results) or {
            key for key, factors in operands.items() if reached & {*factors} - {plan.left}
        }
        needed = asked.union(*(operands[key] for key in asked if key in operands))
        if asked:
            yield replace(plan, results=tuple(key for key in plan.results if key in needed))


def _lay_out(pen: Pen, plans: tuple[FigurePlan, ...]) -> tuple[Figure, ...]:
    figures = [_figure(pen, plan) for plan in plans]
    lengthened = [any(map(pen.sizes.lengthens, figure.tensors)) for figure in figures]
    thinned = [any(box.is_thinned for box in figure.boxes) for figure in figures]
    for key, holds in (("thinned", thinned), ("lengthened", lengthened)):
        if any(holds):
            first = holds.index(True)
            captions = (*figures[first].captions, pen.shapes.variant.wording.say("captions", key))
            figures[first] = replace(figures[first], captions=captions)
    return tuple(figures)


def _figure(pen: Pen, plan: FigurePlan) -> Figure:
    sketch, shapes = sketch_figure(pen, plan), pen.shapes
    is_shortened = any(box.gaps for box in sketch.boxes)
    shortened = (shapes.variant.wording.say("captions", "shortened"),) if is_shortened else ()
    return Figure(
        **vars(sketch),
        key=plan.key,
        frame=sketch.extent,
        alt_text=alt_text(shapes, plan, sketch.boxes),
        captions=shortened,
        explanations=tuple(captions(shapes, plan, sketch.boxes)),
        mismatches=tuple(mismatch_captions(shapes, plan)),
    )
