"""What a drawing consists of: matrices as boxes, their labelled edges, arcs between them, and the figure around them.

This is geometry in pixels, measured from the figure's upper left corner; templates turn it into SVG, handouts into PDF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.shapes.table import Blank

# Where an edge's label stands. "under" is the bottom of the left operand, whose label must not reach to the right.
EdgeSide = Literal["left", "right", "top", "bottom", "under"]
# What an edge's colour says: its number is one of the sizes that the sheet itself tells, or another one, or there is
# none yet ("unknown"), or it does not fit the edge it should equal ("mismatch").
EdgeKind = Literal["head", "model", "tokens", "other", "unknown", "mismatch"]
Point = tuple[float, float]  # x, y
Size = tuple[float, float]  # width, height

LABEL_OFFSETS_PX: dict[EdgeSide, Point] = {
    "left": (-7.0, 4.0),
    "right": (7.0, 4.0),
    "top": (0.0, -7.0),
    "bottom": (0.0, 16.0),
    "under": (0.0, 16.0),
}
WIDE_FIGURE_PX = 420.0


@dataclass(frozen=True)
class Box:
    """One matrix as drawn, x and y at its upper left corner.

    hatched: a parameter of the model. incomplete: rows or columns are not known. masked: the causal mask hides a
    triangle. transposed: drawn with columns as height, as the keys in Q·Kᵀ. mirrored: on a sheet whose tokens are
    columns.
    """

    tensor: str
    letter: str
    role: str
    x: float
    y: float
    width: float
    height: float
    hatched: bool = False
    incomplete: bool = False
    masked: bool = False
    transposed: bool = False
    mirrored: bool = False

    @property
    def center(self) -> Point:
        """The middle of the box, where its letter stands."""
        return (self.x + self.width / 2, self.y + self.height / 2)

    @property
    def masked_triangle(self) -> tuple[Point, Point, Point]:
        """The corners of what the causal mask hides: the upper right half, in a mirrored figure the lower left one."""
        right, bottom = self.x + self.width, self.y + self.height
        return ((self.x, self.y), (self.x, bottom) if self.mirrored else (right, self.y), (right, bottom))

    @property
    def masked_path(self) -> str:
        """`masked_triangle` as an SVG path: 'M0.0 0.0 L10.0 0.0 L10.0 10.0 Z'."""
        (x1, y1), (x2, y2), (x3, y3) = self.masked_triangle
        return f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f} L{x3:.1f} {y3:.1f} Z"

    @property
    def letter_fits(self) -> bool:
        """Whether the letter fits inside; if not, it stands beside a label instead."""
        base, _, subscript = self.letter.partition("_")
        return self.height >= 15 and self.width >= 6 + 9 * len(base) + 6 * len(subscript)


@dataclass(frozen=True)
class Edge:
    """One labelled side of a box: the line, and the number typed for it or "?".

    blank: the box of the sheet that this length belongs to. letter: the matrix's, if its box is too small to hold it.
    """

    blank: Blank
    side: EdgeSide
    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    kind: EdgeKind
    letter: str = ""

    @property
    def label_too_wide(self) -> bool:
        """Whether a label below is wider than its side, so that it would reach over the corner to the next label."""
        below = self.side in ("bottom", "under")
        return below and self.x2 - self.x1 < 9 * len(self.label) + (18 if self.letter else 0)

    @property
    def label_at(self) -> Point:
        """Where the label stands: at the middle of its side; a label too wide, at the end away from the corner.

        Either way it is moved off the line by the LABEL_OFFSETS_PX of its side.
        """
        x, y = (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2
        if self.label_too_wide:
            x = self.x2 if self.side == "under" else self.x1
        dx, dy = LABEL_OFFSETS_PX[self.side]
        return (x + dx, y + dy)


@dataclass(frozen=True)
class Arc:
    """Part of a circle around a product's corner, from the left operand's columns to the right operand's rows.

    It says that the two lengths are one. Two shorter arcs that do not meet are a `mismatch`.
    """

    start: Point
    end: Point
    radius: float
    clockwise: bool
    mismatch: bool

    @property
    def path(self) -> str:
        """The arc as an SVG path."""
        (x1, y1), (x2, y2), r = self.start, self.end, self.radius
        return f"M{x1:.1f} {y1:.1f} A{r:.1f} {r:.1f} 0 0 {int(self.clockwise)} {x2:.1f} {y2:.1f}"


@dataclass(frozen=True)
class Outline:
    """The size that a matrix would need to be added to another one, drawn around it if it has another size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Figure:
    """One drawn product, or several with the same left operand or in a chain; width × height px.

    alt_text: the figure in words. captions: sentences below it; if it `has_mismatch`, what does not fit.
    """

    key: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    arcs: tuple[Arc, ...]
    alt_text: str
    captions: tuple[str, ...]
    has_mismatch: bool
    outlines: tuple[Outline, ...] = ()

    @property
    def wide(self) -> bool:
        """Whether a phone shows the figure so much smaller that its labels need larger type."""
        return self.width > WIDE_FIGURE_PX

    @property
    def labels(self) -> frozenset[tuple[Blank, str]]:
        """Every side with its label; equal for two drawings of the same numbers at different scales."""
        return frozenset((edge.blank, edge.label) for edge in self.edges)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The keys of the matrices in it, each once, in the order of its boxes."""
        return tuple(dict.fromkeys(box.tensor for box in self.boxes))
