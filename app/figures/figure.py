"""What a drawing consists of: matrices as boxes, their labelled edges, arcs between them, and the figure around them.

This is geometry in pixels, measured from the upper left corner of a figure's left operand; svg.py turns it into SVG,
handouts into PDF.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any, Literal, TypeVar

from app.figures.lettering import (
    BASELINE_PX,
    LETTER_BASELINE_PX,
    LETTER_LINE_PX,
    LINE_PX,
    SPACE_PX,
    label_px,
    letter_px,
)
from app.shapes.table import Blank

# Where an edge's label stands. "under" is the bottom of a left operand, whose label must not reach to the right; "over"
# is the right side of a right operand, whose label must not reach down; "corner" is at the right end of a top side,
# "foot" at the lower end of a left side. In a flow, "below" is the bottom and "beside" the right side, with the label
# always at its middle. Of cards behind one another "upper" is the slanting side at their upper left corners, "lower"
# that at their lower right corners.
EdgeSide = Literal[
    "left", "right", "top", "bottom", "under", "over", "corner", "foot", "below", "beside", "upper", "lower"
]
# How much of an edge is drawn: its line and its label; the line alone, or the matrix's letter alone, because the number
# stands elsewhere; or nothing until its box on the sheet has the focus.
EdgeShown = Literal["label", "line", "letter", "focus"]
# What an edge's colour says: its number is one of the sizes that the sheet itself tells, or another one, or there is
# none yet ("unknown"), or it does not fit the edge it should equal ("mismatch").
EdgeKind = Literal["head", "model", "tokens", "other", "unknown", "mismatch"]
Point = tuple[float, float]  # x, y
Size = tuple[float, float]  # width, height
Rectangle = tuple[float, float, float, float]  # x, y, width, height
Polygon = tuple[Point, ...]
Part = TypeVar("Part")  # a dataclass

MARGIN_PX = 6.0  # around everything in a figure
CLEAR_PX = 3.0  # between a label that was moved and what it was moved away from
SIGN_SIDE_PX = 16.0  # of the square that a sign takes
HOOK_PX = 4.0  # of a bracket
ARC_POINTS = 8  # by which an arc is told from what it must not cross


# Whose labels move first: those at the left and at the top, beyond which there is nothing else.
_MOVING_ORDER: tuple[EdgeSide, ...] = (
    "upper", "left", "foot", "top", "corner", "lower", "bottom", "below", "under", "right", "over", "beside"
)  # fmt: skip


def changed(part: Part, /, **values: Any) -> Part:
    """A part with other values: `dataclasses.replace` in a sixth of the time; a drawing needs it a hundred times."""
    copy: Part = object.__new__(type(part))
    fields = vars(part)
    vars(copy).update({name: fields[name] for name in part.__match_args__}, **values)  # type: ignore[attr-defined]
    return copy


def overlapping(rectangle: Rectangle, others: Iterable[Rectangle]) -> list[Rectangle]:
    """Those of the others that have a part in common with a rectangle."""
    x, y, width, height = rectangle
    right, bottom = x + width, y + height
    return [o for o in others if x < o[0] + o[2] and o[0] < right and y < o[1] + o[3] and o[1] < bottom]


def closed_path(polygon: Polygon) -> str:
    """A polygon as an SVG path: 'M0.0 0.0 L10.0 0.0 L10.0 10.0 Z'."""
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in polygon) + " Z"


@dataclass(frozen=True)
class Box:
    """One matrix as drawn, x and y at its upper left corner.

    hatched: a parameter of the model. incomplete: rows or columns are not known. masked: what the mask hides of it.
    transposed: drawn with columns as height, as the keys in Q·Kᵀ. rules: lines between the heads in it. groups: every
    second key/value head, or every second group of query heads that share one. part: the piece of it that is meant,
    such as one head's columns or the new token's row; the rest is drawn pale. breaks: gaps in a side that is drawn
    shortened. cards: how far right and up each card behind it stands, from the nearest to the last, of a tensor with
    more than two sides; odd_cards are those of every second group, and is_thinned says that there are more cards than
    are drawn. products and state: of a flow (see Flow).
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
    masked: tuple[Polygon, ...] = ()
    transposed: bool = False
    rules: tuple[tuple[Point, Point], ...] = ()
    groups: tuple[Polygon, ...] = ()
    part: Rectangle | None = None
    breaks: tuple[Polygon, ...] = ()
    cards: tuple[Point, ...] = ()
    odd_cards: tuple[int, ...] = ()
    is_thinned: bool = False
    products: str = ""
    state: str = ""

    @property
    def rectangle(self) -> Rectangle:
        """Where it stands."""
        return (self.x, self.y, self.width, self.height)

    @property
    def center(self) -> Point:
        """The middle of the box, where its letter stands."""
        return (self.x + self.width / 2, self.y + self.height / 2)

    @property
    def depth(self) -> Point:
        """How far right and up the last of its cards stands."""
        return self.cards[-1] if self.cards else (0.0, 0.0)

    @property
    def extent(self) -> Rectangle:
        """The rectangle around it and its cards."""
        right, up = self.depth
        return (self.x, self.y - up, self.width + right, self.height + up)

    @property
    def card_rectangles(self) -> tuple[Rectangle, ...]:
        """Where it stands, and each of its cards."""
        behind = ((self.x + right, self.y - up, self.width, self.height) for right, up in self.cards)
        return (self.rectangle, *behind)

    @property
    def card_polygons(self) -> tuple[Polygon, ...]:
        """What can be seen of each card behind: above the one before it, and right of that."""
        return tuple(starmap(self._card_polygon, pairwise([(0.0, 0.0), *self.cards])))

    def _card_polygon(self, before: Point, card: Point) -> Polygon:
        """What can be seen of a card that stands behind another one."""
        left, top = self.x + card[0], self.y - card[1]
        right, bottom = left + self.width, top + self.height
        inner_x, inner_y = self.x + before[0] + self.width, self.y - before[1]
        if inner_x <= left or inner_y >= bottom:  # nothing covers it
            return ((left, top), (right, top), (right, bottom), (left, bottom))
        return ((left, inner_y), (left, top), (right, top), (right, bottom), (inner_x, bottom), (inner_x, inner_y))

    @property
    def cards_path(self) -> str:
        """`card_polygons` as an SVG path."""
        return " ".join(map(closed_path, self.card_polygons))

    @property
    def odd_cards_path(self) -> str:
        """Those of `odd_cards` as an SVG path."""
        polygons = self.card_polygons
        return " ".join(closed_path(polygons[index]) for index in self.odd_cards)

    @property
    def masked_path(self) -> str:
        """`masked` as an SVG path."""
        return " ".join(map(closed_path, self.masked))

    @property
    def groups_path(self) -> str:
        """`groups` as an SVG path."""
        return " ".join(map(closed_path, self.groups))

    @property
    def breaks_path(self) -> str:
        """`breaks` as an SVG path."""
        return " ".join(map(closed_path, self.breaks))

    @property
    def rules_path(self) -> str:
        """`rules` as an SVG path."""
        return " ".join(f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}" for (x1, y1), (x2, y2) in self.rules)

    @property
    def symbol(self) -> str:
        """Its letter, with a ᵀ if it is drawn transposed."""
        return f"{self.letter}ᵀ" if self.transposed else self.letter

    @property
    def letter_fits(self) -> bool:
        """Whether the letter fits inside; if not, it stands beside a label instead."""
        return self.height >= LETTER_LINE_PX - 2 and self.width >= letter_px(self.symbol) + 4


@dataclass(frozen=True)
class Edge:
    """One labelled side of a box: the line, the length typed for it or "?", and what this length counts.

    blank: the box of the sheet that this length belongs to, None for a side that no box asks for, as of a single head.
    name: "tokens", "embedding" …, or "". letter: the matrix's, if its box is too small to hold it. shift: how far its
    label is moved outwards, to stand free. given: the number was not typed, the sheet's own text tells it. products and
    state: of a flow (see Flow).
    """

    blank: Blank | None
    side: EdgeSide
    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    kind: EdgeKind
    name: str = ""
    letter: str = ""
    shift: float = 0.0
    shown: EdgeShown = "label"
    given: bool = False
    products: str = ""
    state: str = ""

    @property
    def text_width(self) -> float:
        """About how wide the label is, in px: its wider line; 0 if it is not shown."""
        if self.shown != "label":
            return letter_px(self.letter) if self.shown == "letter" else 0.0
        space = SPACE_PX if self.letter and self.label else 0.0
        return max(letter_px(self.letter) + space + label_px(self.label), label_px(self.name))

    @property
    def line_height(self) -> float:
        """How high the line of the number is, in px; 0 without a number or a letter."""
        return LETTER_LINE_PX if self.letter else LINE_PX if self.label else 0.0

    @property
    def text_height(self) -> float:
        """How high the label is, in px: a line for the number, and one for the name; 0 if it is not shown."""
        if self.shown != "label":
            return self.line_height if self.shown == "letter" else 0.0
        return self.line_height + LINE_PX * bool(self.name)

    @property
    def is_cramped(self) -> bool:
        """Whether a label reaches over the ends of its side, and so might reach over the corner to the next label."""
        if self.side in ("bottom", "under"):
            return self.x2 - self.x1 < self.text_width + 4
        return self.side in ("left", "right", "over") and self.y2 - self.y1 < self.text_height

    @cached_property
    def text_box(self) -> Rectangle:
        """Where the label stands; a cramped one ends at the corner of its product, and reaches away from it."""
        width, height = self.text_width, self.text_height
        x, y = (self.x1 + self.x2 - width) / 2, (self.y1 + self.y2 - height) / 2
        if self.is_cramped:
            x = {"bottom": self.x1, "under": self.x2 - width}.get(self.side, x)
            y = {"right": self.y1, "over": self.y2 - height, "left": self.y2 - height}.get(self.side, y)
        match self.side:
            case "left":
                x = self.x1 - 7 - width - self.shift
            case "right" | "over" | "beside":
                x = self.x1 + 7 + self.shift
            case "top":
                y = self.y1 - 5 - height - self.shift
            case "corner":
                x, y = self.x2 + 7 + self.shift, self.y1 - 3 - height
            case "foot":
                x, y = self.x1 - 3 - width - self.shift, self.y2 + 3
            case "upper":
                x, y = (self.x1 + self.x2) / 2 - 3 - width, (self.y1 + self.y2) / 2 - 1 - height - self.shift
            case "lower":
                x, y = (self.x1 + self.x2) / 2 + 4 + self.shift, (self.y1 + self.y2) / 2 + 2
            case _:
                y = self.y1 + 5 + self.shift
        return (x, y, width, height)

    @property
    def anchor(self) -> Literal["start", "middle", "end"]:
        """Which end of its lines the label is aligned at."""
        if self.side in ("left", "foot", "upper") or (self.side == "under" and self.is_cramped):
            return "end"
        if self.side in ("top", "below"):
            return "middle"
        return "middle" if self.side in ("bottom", "under") and not self.is_cramped else "start"

    @property
    def label_at(self) -> Point:
        """Where the base line of the number starts, ends or has its middle, by its anchor; the name is a line below."""
        x, y, width, _ = self.text_box
        baseline = LETTER_BASELINE_PX if self.letter else BASELINE_PX
        return (x + {"start": 0.0, "middle": width / 2, "end": width}[self.anchor], y + baseline)

    @property
    def name_y(self) -> float:
        """The base line of the name, a line below the number if there is one."""
        return self.text_box[1] + self.line_height + BASELINE_PX

    def moved_past(self, others: Sequence[Rectangle]) -> Edge:
        """The edge with its label moved outwards, away from its box, until it lies on none of these."""
        x, y, width, height = self.text_box
        match self.side:
            case "left" | "foot":
                further = x + width - min(other[0] for other in others)
            case "right" | "over" | "beside" | "corner" | "lower":
                further = max(other[0] + other[2] for other in others) - x
            case "top" | "upper":
                further = y + height - min(other[1] for other in others)
            case _:
                further = max(other[1] + other[3] for other in others) - y
        return changed(self, shift=self.shift + further + CLEAR_PX)


def spread(edges: Sequence[Edge], taken: Sequence[Rectangle] = ()) -> list[Edge]:
    """The edges, each label that would lie on another one or on what is `taken` moved outwards until it is free."""
    spread_edges = list(edges)
    texts = {index: edge.text_box for index, edge in enumerate(edges) if edge.text_height}
    for index in sorted(texts, key=lambda index: _MOVING_ORDER.index(edges[index].side)):
        while True:
            others = [each for other, each in texts.items() if other != index]
            blocking = overlapping(texts[index], taken) + overlapping(texts[index], others)
            if not blocking:
                break
            spread_edges[index] = spread_edges[index].moved_past(blocking)
            texts[index] = spread_edges[index].text_box
    return spread_edges


@dataclass(frozen=True)
class Arc:
    """A quarter of an ellipse at a product's corner, from the left operand's columns to the right operand's rows.

    It says that the two lengths are one. Of lengths that differ, a `mismatch`, it runs as far as the shorter one; a
    Break marks the rest.
    """

    start: Point
    end: Point
    clockwise: bool
    mismatch: bool
    is_open: bool = False
    products: str = ""
    state: str = ""

    @property
    def path(self) -> str:
        """The arc as an SVG path."""
        (x1, y1), (x2, y2) = self.start, self.end
        radii = f"{abs(x2 - x1):.1f} {abs(y2 - y1):.1f}"
        return f"M{x1:.1f} {y1:.1f} A{radii} 0 0 {int(self.clockwise)} {x2:.1f} {y2:.1f}"

    @property
    def points(self) -> tuple[Point, ...]:
        """Points along it, from start to end."""
        (x1, y1), (x2, y2) = self.start, self.end
        upright = ((x2 - x1) * (y2 - y1) > 0) == self.clockwise  # whether it sets out up or down
        turns = [math.pi / 2 * step / ARC_POINTS for step in range(ARC_POINTS + 1)]
        if upright:
            return tuple((x2 - (x2 - x1) * math.cos(t), y1 + (y2 - y1) * math.sin(t)) for t in turns)
        return tuple((x1 + (x2 - x1) * math.sin(t), y2 - (y2 - y1) * math.cos(t)) for t in turns)


@dataclass(frozen=True)
class Break:
    """What one of two sides that should be equal has too much: a bracket along it, and "4096 ≠ 128" at `label_at`.

    The bracket runs from where the shorter side ends to the end of the longer one; its hooks point `toward` the matrix.
    """

    start: Point
    end: Point
    toward: Point
    text: str
    label_at: Point = (0.0, 0.0)
    products: str = ""
    state: str = ""

    @property
    def path(self) -> str:
        """The bracket as an SVG path."""
        (x1, y1), (x2, y2), (hook_x, hook_y) = self.start, self.end, (HOOK_PX * each for each in self.toward)
        return (
            f"M{x1 + hook_x:.1f} {y1 + hook_y:.1f} L{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f} "
            f"L{x2 + hook_x:.1f} {y2 + hook_y:.1f}"
        )

    @property
    def text_size(self) -> Size:
        """About how wide and high the text is."""
        return (label_px(self.text), LINE_PX + 2)

    @property
    def text_box(self) -> Rectangle:
        """Where the text stands."""
        (x, y), (width, height) = self.label_at, self.text_size
        return (x - width / 2, y - height / 2, width, height)

    @property
    def bracket_box(self) -> Rectangle:
        """Where the bracket stands."""
        (x1, y1), (x2, y2) = self.start, self.end
        return (min(x1, x2) - 1, min(y1, y2) - 1, abs(x2 - x1) + 2, abs(y2 - y1) + 2)


@dataclass(frozen=True)
class Outline:
    """The size that a matrix would need to be added to another one, drawn around it if it has another size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Sign:
    """A sign between two matrices, such as +, with the middle of it at (x, y), and lines of words above it."""

    text: str
    x: float
    y: float
    products: str = ""
    state: str = ""
    words: tuple[str, ...] = ()

    @property
    def text_box(self) -> Rectangle:
        """Where it stands, with its words."""
        width, above = max([SIGN_SIDE_PX, *map(label_px, self.words)]), LINE_PX * len(self.words)
        return (self.x - width / 2, self.y - SIGN_SIDE_PX / 2 - above, width, SIGN_SIDE_PX + above)

    @property
    def lines(self) -> tuple[tuple[float, str], ...]:
        """Each line of its words with the height that its characters stand at."""
        top = self.text_box[1] + BASELINE_PX
        return tuple((top + LINE_PX * at, line) for at, line in enumerate(self.words))


@dataclass(frozen=True)
class Flow:
    """What a figure has besides if it is one lane of matrices, from the input to the output, product by product.

    A product has the key of its result. Its parts name it in `products`, separated by spaces, and have a `state`: "on"
    if theirs is the product being worked on, the first that isn't fully answered, "done" if it is fully answered,
    or both; every part is on once the whole sheet is filled in.

    lanes: the band of the tokens, or a band for each of two texts. frames: for each product the part of the figure to
    look at; products that are seen together have the same. axes: for each product the lane's number and name, where
    they stand in its frame.
    """

    lanes: tuple[Rectangle, ...]
    frames: dict[str, Rectangle]
    axes: dict[str, Edge]

    @property
    def axis_labels(self) -> tuple[tuple[str, Edge], ...]:
        """The labels of the lane inside the frames, each with its products; without the first, which always stands."""
        products = dict[Edge, list[str]]()
        for key, axis in self.axes.items():
            products.setdefault(axis, []).append(key)
        return tuple((" ".join(keys), axis) for axis, keys in products.items())[1:]


@dataclass
class Sketch:
    """What a layout has placed so far, anywhere; `frame_figure` makes a figure of it.

    pulled: for each head that is drawn on its own, the band from its place in the whole matrix to where it stands.
    is_mirrored: whether it will be, so that its labels need the room that they will have then. is_placed: whether its
    labels already stand free.
    """

    boxes: list[Box] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    outlines: list[Outline] = field(default_factory=list)
    signs: list[Sign] = field(default_factory=list)
    pulled: list[Polygon] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    flow: Flow | None = None
    is_mirrored: bool = False
    is_placed: bool = False


@dataclass(frozen=True)
class MismatchCaption:
    """What does not fit in a figure: a sentence, and what of the sheet it is about.

    about: the boxes that the compared lengths come from ('queries.columns'), then the tensor whose equation breaks.
    """

    sentence: str
    about: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """One drawn product, or several with the same left operand or in a chain, seen in a frame at (x, y).

    alt_text: the figure in words. captions: sentences below it. mismatches: what does not fit. has_scale: whether a
    choice of scales changes it.
    """

    key: str
    x: float
    y: float
    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    arcs: tuple[Arc, ...]
    alt_text: str
    captions: tuple[str, ...]
    mismatches: tuple[MismatchCaption, ...]
    outlines: tuple[Outline, ...] = ()
    signs: tuple[Sign, ...] = ()
    pulled: tuple[Polygon, ...] = ()
    breaks: tuple[Break, ...] = ()
    has_scale: bool = True
    flow: Flow | None = None

    @property
    def has_mismatch(self) -> bool:
        """Whether something in it does not fit, which `mismatches` says."""
        return bool(self.mismatches)

    @property
    def pulled_paths(self) -> tuple[str, ...]:
        """`pulled` as SVG paths."""
        return tuple(map(closed_path, self.pulled))

    @property
    def labels(self) -> frozenset[tuple[Blank | None, str]]:
        """Every side with its label; equal for two drawings of the same numbers at different scales."""
        return frozenset((edge.blank, edge.label) for edge in self.edges)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The keys of the matrices in it, each once, in the order of its boxes."""
        return tuple(dict.fromkeys(box.tensor for box in self.boxes))
