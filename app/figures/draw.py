"""Draws the figures of a sheet from the numbers typed into it; the answer key is never looked at.

Lengths are on one scale for the whole sheet, so that one symbol has one length everywhere.
"""

from __future__ import annotations

from app.figures.figure_layout import FigureLayout
from app.figures.figures import Figure
from app.figures.mirror import mirror_figure
from app.figures.scale import MatrixSizes, Scale, ScaleName
from app.figures.typed_shapes import TypedShapes
from app.shapes.consistency import Values
from app.shapes.topics import TOPICS, FigurePlan
from app.sheets.variant import Variant


def draw_figures(variant: Variant, values: Values, scale: ScaleName = "root") -> tuple[Figure, ...]:
    """The figures of a sheet, in order, drawn from `values`, the numbers typed into its boxes, without empty ones.

    On a sheet whose tokens are columns they are mirror images. A sheet without products of matrices, such as a
    parameter count, has none.
    """
    shapes, plans = TypedShapes.of(variant, values), _plans(variant)
    return _lay_out(shapes, plans, Scale.fitting(scale, shapes, plans))


def draw_side_by_side(
    variant: Variant, left: Values, right: Values, scale: ScaleName = "root"
) -> tuple[tuple[Figure, Figure], ...]:
    """Two ways of filling in a sheet, as pairs of the same figure; pairs without a difference are left out.

    All figures are on one scale, the smaller of the two, so that a length that is alike looks alike.
    """
    plans = _plans(variant)
    both = [TypedShapes.of(variant, values) for values in (left, right)]
    smaller = min((Scale.fitting(scale, shapes, plans) for shapes in both), key=lambda fitted: fitted.px_per_unit)
    pairs = zip(*(_lay_out(shapes, plans, smaller) for shapes in both), strict=True)
    return tuple((first, second) for first, second in pairs if first.labels != second.labels)


def _plans(variant: Variant) -> tuple[FigurePlan, ...]:
    """The plans for the sheet's table; none if the table has no products to draw."""
    return TOPICS[variant.worksheet.topic].figure_plans.get(variant.table.key, ())


def _lay_out(shapes: TypedShapes, plans: tuple[FigurePlan, ...], scale: Scale) -> tuple[Figure, ...]:
    """One figure for each plan; mirrored on a sheet whose tokens are columns."""
    figures = map(FigureLayout(shapes, MatrixSizes(shapes, scale)).figure, plans)
    return tuple(map(mirror_figure, figures) if shapes.variant.worksheet.tokens_are == "columns" else figures)
