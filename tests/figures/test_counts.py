"""The plot of what grows with what goes through the typed numbers, and says where its lines do not meet."""

from __future__ import annotations

import pytest

from app.figures.parts import Edge, Figure
from app.figures.sheet_figures import draw_figures
from app.shapes.table import Blank
from app.sheets.library import Library

WORKSHEET = "growth-llama-7b"


def plot(library: Library, **typed: int) -> Figure:
    """The plot of the sheet with these counts typed."""
    answers = {Blank(key, "count"): number for key, number in typed.items()}
    (figure,) = (f for f in draw_figures(library.variant(WORKSHEET), answers) if f.key == "growth")
    return figure


def line(figure: Figure, key: str) -> Edge:
    """The line of a count."""
    (edge,) = (edge for edge in figure.edges if edge.blank == Blank(key, "count"))
    return edge


def height(edge: Edge, x: float) -> float:
    """How far below the top a line is at some place."""
    return edge.start.y + (edge.end.y - edge.start.y) * (x - edge.start.x) / (edge.end.x - edge.start.x)


@pytest.mark.parametrize(("projections", "pairwise", "crossing"), [(8 * 10**9, 10**8, 8000), (10**9, 10**7, 10_000)])
def test_lines_meet_where_both_counts_are_equal(
    library: Library, projections: int, pairwise: int, crossing: int
) -> None:
    figure = plot(library, projections_flops=projections, pairwise_flops=pairwise, crossing=crossing)
    once, twice, upright = (line(figure, key) for key in ("projections_flops", "pairwise_flops", "crossing"))
    assert upright.start.x == upright.end.x
    assert height(once, upright.start.x) == pytest.approx(height(twice, upright.start.x), abs=0.01)
    assert twice.start.y - twice.end.y == pytest.approx(2 * (once.start.y - once.end.y))
    assert figure.mismatches == ()


def test_lines_that_meet_elsewhere_are_a_mismatch(library: Library) -> None:
    assert plot(library, projections_flops=10**9, pairwise_flops=10**7, crossing=8192).mismatches
    right = {blank.tensor: number for blank, number in library.variant(WORKSHEET).problem.answers.items()}
    assert not plot(library, **right).mismatches
    unfinished = plot(library, projections_flops=right["projections_flops"])
    assert not unfinished.mismatches
    assert "8192" not in "".join(edge.label for edge in unfinished.edges) + unfinished.alt_text
