"""What a drawing consists of: matrices as boxes, their labelled edges, arcs between them, and the figure around them.

svg.py turns it into SVG. The origin is the upper left corner of a figure's left operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any, Literal

from app.figures.geometry import (
    BASELINE_PX,
    LETTER_BASELINE_PX,
    LETTER_LINE_PX,
    LINE_PX,
    ORIGIN,
    SPACE_PX,
    Point,
    Polygon,
    Rect,
    label_px,
    letter_px,
    moved,
)
from app.shapes.table import Blank

# Where an edge's label is. With cards behind one another, "upper" is the slanting side at their upper left corners,
# "lower" the one at their lower right corners.
EdgeSide = Literal["left", "right", "top", "below", "upper", "lower"]
# How much of an edge is drawn: its line and its label; only the line, or only the matrix's letter, because the number
# is elsewhere; or nothing until its box on the sheet has the focus.
EdgeShown = Literal["label", "line", "letter", "focus"]
# What an edge's colour says: its number is one of the sheet's sizes, or another number, or not known yet ("unknown"),
# or doesn't fit the edge it should equal ("mismatch").
EdgeKind = Literal["head", "model", "tokens", "other", "unknown", "mismatch"]

MARGIN_PX = 6.0  # around everything in a figure
CLEAR_PX = 3.0  # between a moved label and what it was moved away from
SIGN_SIDE_PX = 16.0  # the side of a sign's square
HOOK_PX = 4.0  # a bracket's hooks
ARC_POINTS = 8  # points that show whether an arc crosses something
_TURNS = [(math.sin(turn), math.cos(turn)) for turn in (math.pi / 2 * n / ARC_POINTS for n in range(ARC_POINTS + 1))]
VIEW_PX = (250.0, 150.0)  # least width and height of the visible part of a flow
VIEW_MARGIN_PX = 6.0

# Labels at the left and at the top move first, because nothing else is beyond them.
_MOVING_ORDER: tuple[EdgeSide, ...] = ("upper", "left", "top", "lower", "below", "right")


def side_ends(rect: Rect, side: EdgeSide) -> tuple[Point, Point]:
    x, y, width, height = rect
    match side:
        case "left":
            return Point(x, y), Point(x, y + height)
        case "right":
            return Point(x + width, y), Point(x + width, y + height)
        case "top":
            return Point(x, y), Point(x + width, y)
        case _:
            return Point(x, y + height), Point(x + width, y + height)


@dataclass(frozen=True)
class Box:
    """One matrix as drawn."""

    tensor: str
    letter: str
    role: str
    rect: Rect
    hatched: bool = False
    incomplete: bool = False
    masked: tuple[Polygon, ...] = ()
    transposed: bool = False
    strips: int = 0
    groups: tuple[Polygon, ...] = ()
    part: Rect | None = None
    gaps: tuple[Polygon, ...] = ()
    cards: tuple[Point, ...] = ()
    odd_cards: tuple[int, ...] = ()
    is_thinned: bool = False
    products: str = ""

    @property
    def depth(self) -> Point:
        """How far right and up its last card is."""
        return self.cards[-1] if self.cards else ORIGIN

    @property
    def extent(self) -> Rect:
        """The rectangle around it and its cards."""
        if not self.cards:
            return self.rect
        right, up = self.depth
        return Rect(self.rect.x, self.rect.y - up, self.rect.width + right, self.rect.height + up)

    @property
    def card_rects(self) -> tuple[Rect, ...]:
        x, y, width, height = self.rect
        return (self.rect, *[Rect(x + right, y - up, width, height) for right, up in self.cards])

    @property
    def card_polygons(self) -> tuple[Polygon, ...]:
        """The visible part of each card behind the front one: above and right of the card before it."""
        return tuple(starmap(_visible_card, pairwise(self.card_rects)))

    @property
    def rules(self) -> tuple[Polygon, ...]:
        """The lines between its strips: upright, or level if `strips` is negative."""
        x, y, width, height = self.rect
        if self.strips < 0:
            step = height / -self.strips
            return tuple([((x, y + n * step), (x + width, y + n * step)) for n in range(1, -self.strips)])
        step = width / max(self.strips, 1)
        return tuple([((x + n * step, y), (x + n * step, y + height)) for n in range(1, self.strips)])

    @property
    def symbol(self) -> str:
        """Its letter, with ᵀ if it is drawn transposed."""
        return f"{self.letter}ᵀ" if self.transposed else self.letter

    @property
    def letter_fits(self) -> bool:
        """Whether the letter fits inside; otherwise it is next to a label."""
        return self.rect.height >= LETTER_LINE_PX - 2 and self.rect.width >= letter_px(self.symbol) + 4

    def moved(self, x: float, y: float) -> Box:
        if not (x or y):
            return self
        names = ("masked", "groups", "gaps")
        inside: dict[str, Any] = {
            name: tuple([moved(a, x, y) for a in areas]) for name in names if (areas := getattr(self, name))
        }
        return replace(self, rect=self.rect.moved(x, y), part=self.part and self.part.moved(x, y), **inside)


def _visible_card(front: Rect, card: Rect) -> Polygon:
    left, top, right, bottom = card.x, card.y, card.right, card.bottom
    inner_x, inner_y = front.right, front.y
    if inner_x <= left or inner_y >= bottom:  # nothing covers it
        return ((left, top), (right, top), (right, bottom), (left, bottom))
    return ((left, inner_y), (left, top), (right, top), (right, bottom), (inner_x, bottom), (inner_x, inner_y))


@dataclass(frozen=True)
class Edge:
    """One labelled side of a box: the line, the length typed for it or "?", and what this length counts."""

    blank: Blank | None
    side: EdgeSide
    start: Point
    end: Point
    label: str
    kind: EdgeKind
    name: str = ""
    letter: str = ""
    shift: float = 0.0
    shown: EdgeShown = "label"
    given: bool = False
    products: str = ""

    @property
    def text_width(self) -> float:
        """The approximate width in px of the label's widest line."""
        if self.shown != "label":
            return letter_px(self.letter) if self.shown == "letter" else 0.0
        space = SPACE_PX if self.letter and self.label else 0.0
        return max(letter_px(self.letter) + space + label_px(self.label), label_px(self.name))

    @property
    def line_height(self) -> float:
        """The height of the number's line in px; 0 without a number or a letter."""
        return LETTER_LINE_PX if self.letter else LINE_PX if self.label else 0.0

    @property
    def text_height(self) -> float:
        """The height of the label in px: a line for the number, and one for the name."""
        if self.shown != "label":
            return self.line_height if self.shown == "letter" else 0.0
        return self.line_height + LINE_PX * bool(self.name)

    @cached_property
    def text_box(self) -> Rect:
        """The rectangle of the label, outside the middle of its side, `shift` px further away."""
        width, height, (x1, y1), (x2, y2) = self.text_width, self.text_height, self.start, self.end
        x, y = (x1 + x2 - width) / 2, (y1 + y2 - height) / 2
        match self.side:
            case "below":
                y = y1 + 5 + self.shift
            case "left":
                x = x1 - 7 - width - self.shift
                y = y2 - height if y2 - y1 < height else y
            case "right":
                x = x1 + 7 + self.shift
                y = y1 if y2 - y1 < height else y
            case "top":
                y = y1 - 5 - height - self.shift
            case "upper":
                x, y = (x1 + x2) / 2 - 3 - width, (y1 + y2) / 2 - 1 - height - self.shift
            case "lower":
                x, y = (x1 + x2) / 2 + 6 + self.shift, (y1 + y2) / 2 + 2
        return Rect(x, y, width, height)

    @property
    def anchor(self) -> Literal["start", "middle", "end"]:
        """Which end of the label's lines is at its place."""
        if self.side in ("top", "below"):
            return "middle"
        return "end" if self.side in ("left", "upper") else "start"

    @property
    def label_at(self) -> Point:
        """The point on the number's base line where it starts, ends or has its middle, by its anchor."""
        x, y, width, _ = self.text_box
        baseline = LETTER_BASELINE_PX if self.letter else BASELINE_PX
        return Point(x + {"start": 0.0, "middle": width / 2, "end": width}[self.anchor], y + baseline)

    @property
    def name_y(self) -> float:
        return self.text_box.y + self.line_height + BASELINE_PX

    def moved(self, x: float, y: float) -> Edge:
        if not (x or y):
            return self
        return replace(self, start=self.start.moved(x, y), end=self.end.moved(x, y))

    def moved_past(self, others: Sequence[Rect]) -> Edge:
        """A copy of the edge with its label moved outwards, CLEAR_PX past all of these rectangles."""
        text = self.text_box
        match self.side:
            case "left":
                further = text.right - min(other.x for other in others)
            case "right" | "lower":
                further = max(other.right for other in others) - text.x
            case "top" | "upper":
                further = text.bottom - min(other.y for other in others)
            case _:
                further = max(other.bottom for other in others) - text.y
        return replace(self, shift=self.shift + further + CLEAR_PX)


def spread(edges: Iterable[Edge], taken: Sequence[Rect] = ()) -> tuple[Edge, ...]:
    """The edges, with labels moved outwards until they overlap neither each other nor the `taken` rectangles."""
    spread_edges = list(edges)
    texts = {index: edge.text_box for index, edge in enumerate(spread_edges) if edge.text_height}
    for index in sorted(texts, key=lambda index: _MOVING_ORDER.index(spread_edges[index].side)):
        text = texts.pop(index)
        while blocking := text.overlapping([*taken, *texts.values()]):
            spread_edges[index] = spread_edges[index].moved_past(blocking)
            text = spread_edges[index].text_box
        texts[index] = text
    return tuple(spread_edges)


@dataclass(frozen=True)
class Arc:
    """A quarter of an ellipse at a product's corner, between two equal lengths: the left operand's columns and the
    right one's rows.
    """

    start: Point
    end: Point
    clockwise: bool
    mismatch: bool
    is_open: bool = False
    products: str = ""

    @property
    def points(self) -> Polygon:
        """ARC_POINTS + 1 points from start to end, for labels to keep away from."""
        (x1, y1), (x2, y2) = self.start, self.end
        upright = ((x2 - x1) * (y2 - y1) > 0) == self.clockwise  # whether it starts out up or down
        if upright:
            return tuple([(x2 - (x2 - x1) * cos, y1 + (y2 - y1) * sin) for sin, cos in _TURNS])
        return tuple([(x1 + (x2 - x1) * sin, y2 - (y2 - y1) * cos) for sin, cos in _TURNS])

    def moved(self, x: float, y: float) -> Arc:
        return replace(self, start=self.start.moved(x, y), end=self.end.moved(x, y))


@dataclass(frozen=True)
class MismatchBracket:
    """A bracket along the excess of a side over its partner, with "4096 ≠ 128" at `label_at`."""

    start: Point
    end: Point
    toward: Point
    text: str
    label_at: Point = ORIGIN
    products: str = ""

    @property
    def text_box(self) -> Rect:
        width, height = label_px(self.text), LINE_PX + 2
        return Rect(self.label_at.x - width / 2, self.label_at.y - height / 2, width, height)

    @property
    def bracket_box(self) -> Rect:
        (x1, y1), (x2, y2) = self.start, self.end
        return Rect(min(x1, x2) - 1, min(y1, y2) - 1, abs(x2 - x1) + 2, abs(y2 - y1) + 2)

    def moved(self, x: float, y: float) -> MismatchBracket:
        """The bracket moved right and down; its label isn't placed yet."""
        return replace(self, start=self.start.moved(x, y), end=self.end.moved(x, y)) if x or y else self


@dataclass(frozen=True)
class Pulled:
    """The band to a head drawn outside its matrix, from its place in the matrix."""

    corners: Polygon
    products: str = ""

    def moved(self, x: float, y: float) -> Pulled:
        return replace(self, corners=moved(self.corners, x, y))


@dataclass(frozen=True)
class Sign:
    """A sign between two matrices, such as +, with its middle `at` a point, and lines of words above it."""

    text: str
    at: Point
    products: str = ""
    words: tuple[str, ...] = ()

    @property
    def text_box(self) -> Rect:
        """The rectangle around the sign and its words."""
        width, above = max([SIGN_SIDE_PX, *map(label_px, self.words)]), LINE_PX * len(self.words)
        return Rect(self.at.x - width / 2, self.at.y - SIGN_SIDE_PX / 2 - above, width, SIGN_SIDE_PX + above)

    @property
    def lines(self) -> tuple[tuple[float, str], ...]:
        """Each line of its words with the y of its base line."""
        top = self.text_box.y + BASELINE_PX
        return tuple((top + LINE_PX * at, line) for at, line in enumerate(self.words))

    def moved(self, x: float, y: float) -> Sign:
        return replace(self, at=self.at.moved(x, y))


@dataclass(frozen=True)
class Flow:
    """What a figure has only if it is a lane of matrices, from the input to the output, product by product.

    A product has the key of its result.
    """

    lanes: tuple[Rect, ...]
    frames: dict[str, Rect]
    axes: dict[str, Edge]
    states: dict[str, str] = field(default_factory=dict)

    @property
    def axis_labels(self) -> tuple[tuple[str, Edge], ...]:
        """The lane's labels, each with the keys of its products, separated by spaces."""
        products = dict[Edge, list[str]]()
        for key, axis in self.axes.items():
            products.setdefault(axis, []).append(key)
        return tuple((" ".join(keys), axis) for axis, keys in products.items())[1:]

    def __add__(self, other: Flow) -> Flow:
        first = next(iter(other.axes.values()))
        axes = {key: axis for key, axis in other.axes.items() if axis != first}
        return Flow(self.lanes + other.lanes, self.frames | other.frames, self.axes | axes, self.states | other.states)

    def moved(self, x: float, y: float) -> Flow:
        frames = {key: frame.moved(x, y) for key, frame in self.frames.items()}
        axes = {key: axis.moved(x, y) for key, axis in self.axes.items()}
        return Flow(tuple(lane.moved(x, y) for lane in self.lanes), frames, axes, self.states)


def view_of(rects: Iterable[Rect]) -> Rect:
    """The part of a flow around these rectangles with VIEW_MARGIN_PX, rounded to 0.1 px."""
    return Rect(*(round(side, 1) for side in Rect.around(rects, VIEW_MARGIN_PX).at_least(*VIEW_PX)))


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """What is drawn; two sketches can be added.

    outlines: around a matrix that can't be added to another, the size it would need.
    """

    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    arcs: tuple[Arc, ...] = ()
    outlines: tuple[Rect, ...] = ()
    signs: tuple[Sign, ...] = ()
    pulled: tuple[Pulled, ...] = ()
    brackets: tuple[MismatchBracket, ...] = ()
    flow: Flow | None = None

    def __add__(self, other: Sketch) -> Sketch:
        both = ((name, first, vars(other)[name]) for name, first in vars(self).items())
        return Sketch(**{name: first + second if first and second else first or second for name, first, second in both})

    def moved(self, x: float, y: float) -> Sketch:
        if not (x or y):
            return self
        names = ("boxes", "edges", "arcs", "outlines", "signs", "pulled", "brackets")
        parts = {name: tuple([part.moved(x, y) for part in getattr(self, name)]) for name in names}
        return Sketch(**parts, flow=self.flow and self.flow.moved(x, y))

    def states(self, working: str, is_done: Callable[[str], bool]) -> dict[str, str]:
        """The states of its parts (see Flow), by their `products`: "on", "done", "on done" or ""."""
        kinds = (self.boxes, self.edges, self.arcs, self.signs, self.brackets)
        states = dict[str, str]()
        for products in {part.products for parts in kinds for part in parts}:
            keys = products.split()
            words = (("on", not working or working in keys), ("done", any(map(is_done, keys))))
            states[products] = " ".join(word for word, holds in words if holds)
        return states

    @property
    def extent(self) -> Rect:
        """The rectangle around everything, labels included, with MARGIN_PX around it."""
        return Rect.around(self._rects(), MARGIN_PX)

    def _rects(self) -> Iterator[Rect]:
        yield from (box.extent for box in self.boxes)
        yield from self.outlines
        yield from (edge.text_box for edge in self.edges)
        yield from self.flow.lanes if self.flow else ()
        yield from (Rect(*point, 0.0, 0.0) for arc in self.arcs for point in (arc.start, arc.end))
        yield from (rect for each in self.brackets for rect in (each.bracket_box, each.text_box))
        yield from (sign.text_box for sign in self.signs)

    @property
    def obstacles(self) -> list[Rect]:
        """The rectangles that no label may cover: matrices, signs, outlines, and points along arcs."""
        taken = [rect for box in self.boxes for rect in box.card_rects]
        taken += [sign.text_box for sign in self.signs]
        for x, y, width, height in self.outlines:
            taken += [Rect(x, end - 1, width, 2.0) for end in (y, y + height)]
            taken += [Rect(end - 1, y, 2.0, height) for end in (x, x + width)]
        return taken + [Rect(x - 1.5, y - 1.5, 3.0, 3.0) for arc in self.arcs for x, y in arc.points]


@dataclass(frozen=True)
class MismatchCaption:
    """A mismatch in a figure: a sentence, and the sheet's boxes that it is about."""

    sentence: str
    about: tuple[str, ...]
    letters: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Figure(Sketch):
    """A sketch in its frame, with its texts: one product, or several with the same left operand or in a chain."""

    key: str
    frame: Rect
    alt_text: str
    captions: tuple[str, ...]
    explanations: tuple[str, ...] = ()
    mismatches: tuple[MismatchCaption, ...] = ()
    is_chart: bool = False  # bars or lines of counts, not matrices

    @property
    def labels(self) -> frozenset[tuple[Blank | None, str]]:
        """Every side with its label; equal for two drawings of the same numbers at different scales."""
        return frozenset((edge.blank, edge.label) for edge in self.edges)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The keys of its matrices, each once, in the order of its boxes."""
        return tuple(dict.fromkeys(box.tensor for box in self.boxes))
