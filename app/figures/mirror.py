"""Figures for sheets whose tokens are columns: the mirror image of the figure with tokens as rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.figures.figure_layout import RIGHT_PX
from app.figures.figures import Arc, Box, Edge, EdgeSide, Figure, Outline, Point

MIRROR_LEFT_PX = 40.0  # more to the left, for labels that stood above
MIRRORED_SIDES: Mapping[EdgeSide, EdgeSide] = {
    "left": "top",
    "under": "right",
    "right": "bottom",
    "bottom": "right",
    "top": "left",
}


def mirror_figure(figure: Figure) -> Figure:
    """The figure of the transposed product, (A·B)ᵀ = Bᵀ·Aᵀ: its mirror image, with rows and columns exchanged.

    It is what a sheet shows whose tokens are columns. On the left there is MIRROR_LEFT_PX of room for labels.
    """

    def point(x: float, y: float) -> Point:
        """X and y exchanged, with room on the left for labels that stood above."""
        return (y + MIRROR_LEFT_PX, x)

    def box(original: Box) -> Box:
        """The transposed matrix."""
        x, y = point(original.x, original.y)
        return replace(original, x=x, y=y, width=original.height, height=original.width, mirrored=True)

    def edge(original: Edge) -> Edge:
        """The edge on the mirrored side, with the label of the exchanged field."""
        (x1, y1), (x2, y2) = point(original.x1, original.y1), point(original.x2, original.y2)
        side = MIRRORED_SIDES[original.side]
        return replace(original, blank=original.blank.transposed, side=side, x1=x1, y1=y1, x2=x2, y2=y2)

    def arc(original: Arc) -> Arc:
        """The arc in the other direction."""
        start, end = point(*original.start), point(*original.end)
        return replace(original, start=start, end=end, clockwise=not original.clockwise)

    return replace(
        figure,
        width=figure.height + MIRROR_LEFT_PX + RIGHT_PX,
        height=figure.width,
        boxes=tuple(map(box, figure.boxes)),
        edges=tuple(map(edge, figure.edges)),
        arcs=tuple(map(arc, figure.arcs)),
        outlines=tuple(Outline(*point(o.x, o.y), o.height, o.width) for o in figure.outlines),
    )
