"""A sheet's drawing without letters and numbers, for lists: its matrices, and arcs where they meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from app.figures.geometry import Rect
from app.figures.parts import Arc, Box, Figure
from app.figures.sheet_figures import draw_figures
from app.sheets.variant import Variant

MAX_THUMBNAILS = 2048
MARGIN_AROUND_PX = 3.0
THUMBNAIL_PX = (96.0, 48.0)  # as wide and high as on the page
PROGRAM_WITH_BUG = (
    '<svg viewBox="0 0 96 48" aria-hidden="true"><path class="code-lines" d="M12 6h50M20 15h40M20 33h56M12 42h36"/>'
    '<path class="unequal" d="M20 24h62"/></svg>'
)


@dataclass(frozen=True)
class _Sheet:
    code: str
    variant: Variant = field(compare=False)  # it can't be hashed


def thumbnail(variant: Variant) -> str:
    """The drawing as SVG, of a program with a bug as lines; "" for a sheet whose drawings have no matrices."""
    return PROGRAM_WITH_BUG if variant.problem.case else _drawn(_Sheet(variant.code, variant))


@lru_cache(MAX_THUMBNAILS)
def _drawn(sheet: _Sheet) -> str:
    variant = sheet.variant
    figures = draw_figures(variant, {blank: variant.answer(blank) for blank in variant.blanks})
    with_matrices = [figure for figure in figures if figure.boxes]
    if not with_matrices:
        return ""
    figure = max(with_matrices, key=_ink)
    x, y, width, height = _frame(figure)
    drawn = "".join((*map(_arc, figure.arcs), *(part for box in figure.boxes for part in _matrix(box))))
    return f'<svg viewBox="{x:.0f} {y:.0f} {width:.0f} {height:.0f}" aria-hidden="true">{drawn}</svg>'


def _frame(figure: Figure) -> Rect:
    return Rect.around([box.extent for box in figure.boxes], MARGIN_AROUND_PX)


def _ink(figure: Figure) -> float:
    """How much of a thumbnail its matrices would fill: some drawings have small ones far apart."""
    frame = _frame(figure)
    wide, high = THUMBNAIL_PX
    scale = min(wide / frame.width, high / frame.height)
    return scale**2 * sum(box.rect.width * box.rect.height for box in figure.boxes)


def _matrix(box: Box) -> Iterator[str]:
    yield f'<g class="matrix {box.role}">'
    yield from (f"<rect {_at(rect)}/>" for rect in reversed(box.card_rects[:4]))
    yield "</g>"


def _arc(arc: Arc) -> str:
    (x1, y1), (x2, y2) = arc.start, arc.end
    radii = f"{abs(x2 - x1):.0f} {abs(y2 - y1):.0f}"
    return f'<path class="arc" d="M{x1:.0f} {y1:.0f}A{radii} 0 0 {int(arc.clockwise)} {x2:.0f} {y2:.0f}"/>'


def _at(rect: Rect) -> str:
    x, y, width, height = rect
    return f'x="{x:.0f}" y="{y:.0f}" width="{max(width, 1):.0f}" height="{max(height, 1):.0f}"'
