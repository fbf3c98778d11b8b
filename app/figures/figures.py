"""Matrices as boxes: a product is drawn in the corner layout, left operand beside the result, right operand above it.

Lengths come from what was typed (or from the truth, where a key is drawn), on one scale for the whole sheet, so that
one symbol has one length everywhere. This module makes geometry in pixels; templates turn it into SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from app.shapes.consistency import DimensionMismatch, Values, infer_unasked_lengths, mismatches
from app.shapes.table import MATRIX_FIELDS, Blank, Tensor, TensorTable
from app.sheets.worksheet import Notation, Variant, format_number

ScaleName = Literal["root", "true"]
MAX_SIDE_PX, UNKNOWN_SIDE_PX, MIN_SIDE_PX = 210.0, 42.0, 4.0
LEFT, TOP, RIGHT, BOTTOM = 62.0, 26.0, 58.0, 24.0  # px around a figure, for its labels
CORNER, BETWEEN = 12.0, 62.0  # px between the left operand and the corner, and between results
WIDEST = 600.0  # px a figure may take
TURNED = 40.0  # px more to the left of a mirrored figure, for labels that stood above


@dataclass(frozen=True)
class Picture:
    """Which matrices stand in one figure: the left operand, and the results to its right."""

    key: str
    left: str
    results: tuple[str, ...]


_SCORES = Picture("scores", "queries", ("scores", "weights"))
_OUTPUT = Picture("output", "weights", ("context", "output"))
_HEAD = (Picture("projections", "input", ("queries", "keys", "values")), _SCORES, _OUTPUT)
_QUERIES = Picture("projections", "input", ("queries",))
_LOGITS = (Picture("down", "hidden", ("fed_forward",)), Picture("logits", "final", ("logits",)))
# By table: what cannot be drawn as products of matrices, such as a sum of parameters, has no pictures.
PICTURES: Mapping[str, tuple[Picture, ...]] = {
    "single-head": _HEAD,
    "bidirectional-head": _HEAD,
    "attention-layer": _HEAD,
    "decode-step": (Picture("projections", "input", ("queries", "new_key", "new_value")), _SCORES, _OUTPUT),
    "windowed-decode-step": (_QUERIES, _SCORES, _OUTPUT),
    "cross-attention": (_QUERIES, Picture("encoder", "encoded", ("keys", "values")), _SCORES, _OUTPUT),
    "whole-model": (Picture("feed-forward", "normed_residual", ("gate", "up")), *_LOGITS),
    "plain-whole-model": (Picture("feed-forward", "normed_residual", ("up",)), *_LOGITS),
}
MASKED = frozenset({"single-head", "attention-layer"})


@dataclass(frozen=True)
class Box:
    """A matrix as drawn: `hatched` ones belong to the model, `open` ones lack a side, `masked` ones hide a triangle."""

    tensor: str
    letter: str
    role: str
    x: float
    y: float
    width: float
    height: float
    hatched: bool = False
    open: bool = False
    masked: bool = False
    transposed: bool = False
    mirrored: bool = False

    @property
    def center(self) -> tuple[float, float]:
        return (self.x + self.width / 2, self.y + self.height / 2)

    @property
    def masked_corner(self) -> str:
        """The triangle that the causal mask hides of the weights, as an SVG path: upper right, or mirrored."""
        right, bottom = self.x + self.width, self.y + self.height
        corner = f"{self.x:.1f} {bottom:.1f}" if self.mirrored else f"{right:.1f} {self.y:.1f}"
        return f"M{self.x:.1f} {self.y:.1f} L{corner} L{right:.1f} {bottom:.1f} Z"

    @property
    def letter_fits(self) -> bool:
        """Whether the letter fits inside."""
        base, _, below = self.letter.partition("_")
        return self.height >= 15 and self.width >= 6 + 9 * len(base) + 6 * len(below)


@dataclass(frozen=True)
class Edge:
    """One labelled side of a box. `kind` says which given size its number equals, or that it is unknown or a gap."""

    blank: Blank
    side: Literal["left", "right", "top", "bottom", "under"]  # under: the bottom of the left operand
    x1: float
    y1: float
    x2: float
    y2: float
    label: str
    kind: str
    letter: str = ""  # of a box too small to hold it

    @property
    def label_too_wide(self) -> bool:
        """Whether the label is wider than its side, so that it must not reach over the corner to its neighbour's."""
        return self.side in ("bottom", "under") and self.x2 - self.x1 < 9 * len(self.label) + (18 if self.letter else 0)

    @property
    def label_at(self) -> tuple[float, float]:
        x, y = (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2
        if self.label_too_wide:
            x = self.x2 if self.side == "under" else self.x1
        away = {
            "left": (-7.0, 4.0),
            "right": (7.0, 4.0),
            "top": (0.0, -7.0),
            "bottom": (0.0, 16.0),
            "under": (0.0, 16.0),
        }[self.side]
        return (x + away[0], y + away[1])


@dataclass(frozen=True)
class Arc:
    """The swept quarter circle that carries the left operand's columns to the right operand's rows; broken at a gap."""

    start: tuple[float, float]
    end: tuple[float, float]
    radius: float
    clockwise: bool
    mismatch: bool

    @property
    def path(self) -> str:
        (x1, y1), (x2, y2), r = self.start, self.end, self.radius
        return f"M{x1:.1f} {y1:.1f} A{r:.1f} {r:.1f} 0 0 {int(self.clockwise)} {x2:.1f} {y2:.1f}"


@dataclass(frozen=True)
class Outline:
    """The size that a matrix would need to be added to another, drawn around it where the two differ."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Figure:
    """One drawn product or chain of products, `width` × `height` px, with sentences below it."""

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
        return self.width > 420

    @property
    def shapes(self) -> frozenset[tuple[Blank, str]]:
        """What the figure says of each side, however it is scaled."""
        return frozenset((edge.blank, edge.label) for edge in self.edges)

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(box.tensor for box in self.boxes))


def draw_figures(variant: Variant, values: Values, scale: ScaleName = "root") -> tuple[Figure, ...]:
    """The figures of a sheet, drawn from the numbers in `values` alone: the truth is never looked at."""
    return _pen(variant, values, scale).figures()


def draw_side_by_side(
    variant: Variant, one: Values, other: Values, scale: ScaleName = "root"
) -> tuple[tuple[Figure, Figure], ...]:
    """The figures in which two ways of filling in a sheet differ, in pairs, all of them on one scale."""
    pens = [_pen(variant, values, scale) for values in (one, other)]
    unit = min(pen.unit for pen in pens)
    for pen in pens:
        pen.unit = unit
    pairs = zip(*(pen.figures() for pen in pens), strict=True)
    return tuple((left, right) for left, right in pairs if left.shapes != right.shapes)


def _pen(variant: Variant, values: Values, scale: ScaleName) -> _Pen:
    asked = frozenset(variant.worksheet.rows)
    upright = {variant.in_table_orientation(blank): value for blank, value in values.items()}
    known = {**upright, **infer_unasked_lengths(variant.table, upright, asked)}
    return _Pen(variant, known, mismatches(variant.table, known), scale, PICTURES.get(variant.table.key, ()))


def _measure(scale: ScaleName) -> Callable[[int], float]:
    return math.sqrt if scale == "root" else float


@dataclass
class _Pen:
    """Knows the numbers and the scale of one sheet while its figures are laid out."""

    variant: Variant
    known: Values
    gaps: list[DimensionMismatch]
    scale: ScaleName
    pictures: tuple[Picture, ...]
    unit: float = field(init=False)

    def __post_init__(self) -> None:
        measure = _measure(self.scale)
        given = [self.variant.tokens, self.variant.architecture.d, *self.known.values()]
        self.unit = MAX_SIDE_PX / measure(max(given))
        widest = max((self._natural_width(picture) for picture in self.pictures), default=0.0)
        self.unit *= min(1.0, WIDEST / max(widest, 1.0))

    def figures(self) -> tuple[Figure, ...]:
        figures = tuple(map(self.figure, self.pictures))
        return tuple(map(_turned, figures)) if self.variant.worksheet.tokens_are == "columns" else figures

    @property
    def table(self) -> TensorTable:
        return self.variant.table

    @property
    def notation(self) -> Notation:
        return self.variant.notation

    def letter(self, key: str) -> str:
        return self.notation.letter(key, self.table[key].letter)

    def length(self, blank: Blank) -> float:
        value = self.known.get(blank)
        return UNKNOWN_SIDE_PX if value is None else max(MIN_SIDE_PX, self.unit * _measure(self.scale)(value))

    def size(self, key: str) -> tuple[float, float]:
        """Width and height of a matrix as it stands, in px."""
        return (self.length(Blank(key, "columns")), self.length(Blank(key, "rows")))

    def _natural_width(self, picture: Picture) -> float:
        return self.size(picture.left)[0] + sum(self.column_width(key) for key in picture.results)

    def above(self, result: str) -> Tensor | None:
        """The right operand of a product, None where the result is made from one matrix."""
        equation = self.table[result].equation
        return self.table[equation.operands[1]] if equation and len(equation.operands) == 2 else None

    def transposed(self, result: str) -> bool:
        """Whether the right operand is turned round: its columns are summed away, as those of the keys are."""
        equation = self.table[result].equation
        assert equation is not None  # noqa: S101 - every result of a picture has one
        right = equation.operand_labels[1]
        return right[1] not in equation.result_labels

    def size_above(self, result: str) -> tuple[float, float]:
        tensor = self.above(result)
        if tensor is None:
            return (0.0, 0.0)
        width, height = self.size(tensor.key)
        return (height, width) if self.transposed(result) else (width, height)

    def column_width(self, result: str) -> float:
        return max(self.size(result)[0], self.size_above(result)[0], self.size_needed(result)[0])

    def size_needed(self, result: str) -> tuple[float, float]:
        """The size a result would need to be added to what came in, where the two differ; nothing elsewhere."""
        needed = {gap.second[0].field: gap.first[0] for gap in self.gaps if gap.added and gap.result == result}
        if not needed:
            return (0.0, 0.0)
        return (
            self.length(needed.get("columns", Blank(result, "columns"))),
            self.length(needed.get("rows", Blank(result, "rows"))),
        )

    def outlines(self, boxes: Iterable[Box]) -> Iterator[Outline]:
        """What came in, laid over what leaves, where the one cannot be added to the other."""
        for box in boxes:
            width, height = self.size_needed(box.tensor)
            if width:
                yield Outline(box.x, box.y, width, height)

    def figure(self, picture: Picture) -> Figure:
        top = max(self.size_above(key)[1] for key in picture.results)
        base = TOP + top + CORNER
        widths = [self.column_width(key) for key in picture.results]
        left = self.size(picture.left)
        first = LEFT + left[0] + CORNER
        starts = list(accumulate((width + BETWEEN for width in widths[:-1]), initial=first))
        boxes = [self.box(picture.left, LEFT, base)]
        edges = [*self.edges(boxes[0], "left", "under")]
        for key, x in zip(picture.results, starts, strict=True):
            for box, sides in self.column(key, x, base):
                boxes.append(box)
                edges += self.edges(box, *sides)
        outlines = tuple(self.outlines(boxes))
        bottom = max(*(box.y + box.height for box in boxes), *(o.y + o.height for o in outlines))
        return Figure(
            picture.key,
            starts[-1] + widths[-1] + RIGHT,
            bottom + BOTTOM,
            tuple(boxes),
            tuple(edges),
            tuple(self.arcs(picture, boxes)),
            self.described(picture, boxes),
            tuple(self.captions(picture)),
            bool(self.gaps_in(picture)),
            outlines,
        )

    def column(self, result: str, x: float, base: float) -> Iterable[tuple[Box, tuple[str, str]]]:
        """The result at the foot of its column, and the right operand above it."""
        above = self.above(result)
        if above is not None:
            height = self.size_above(result)[1]
            yield self.box(above.key, x, base - CORNER - height, self.transposed(result)), ("right", "top")
        yield self.box(result, x, base), ("right", "bottom")

    def box(self, key: str, x: float, y: float, transposed: bool = False) -> Box:
        tensor = self.table[key]
        width, height = self.size(key)[::-1] if transposed else self.size(key)
        missing = any(Blank(key, axis) not in self.known for axis in MATRIX_FIELDS)
        masked = key == "weights" and self.table.key in MASKED and self.variant.architecture.causal
        letter = self.letter(key)
        return Box(key, letter, tensor.role, x, y, width, height, tensor.parameter, missing, masked, transposed)

    def edges(self, box: Box, upright: str, flat: str) -> list[Edge]:
        """The labelled upright side and the labelled flat side of a box."""
        rows, columns = Blank(box.tensor, "rows"), Blank(box.tensor, "columns")
        tall, wide = (columns, rows) if box.transposed else (rows, columns)
        x = box.x if upright == "left" else box.x + box.width
        y = box.y if flat == "top" else box.y + box.height
        return [
            self.edge(tall, upright, (x, box.y, x, box.y + box.height)),
            replace(
                self.edge(wide, flat, (box.x, y, box.x + box.width, y)),
                letter="" if box.letter_fits else self.letter(box.tensor),
            ),
        ]

    def edge(self, blank: Blank, side: str, line: tuple[float, float, float, float]) -> Edge:
        value = self.known.get(blank)
        label = "?" if value is None else format_number(value)
        return Edge(blank, side, *line, label, self.kind(blank, value))  # type: ignore[arg-type]  # one of four sides

    def kind(self, blank: Blank, value: int | None) -> str:
        """Colour follows the number that was typed, not the place it was typed in, so that it gives nothing away."""
        if value is None:
            return "unknown"
        if any(gap.second[0] == blank for gap in self.gaps):
            return "mismatch"
        a = self.variant.architecture
        sizes = {a.d_h: "head", a.d: "model", self.variant.tokens: "tokens"}
        return sizes.get(value, "other")

    def arcs(self, picture: Picture, boxes: list[Box]) -> Iterable[Arc]:
        """One arc, at the first product: later right operands are made to fit, or stand behind other boxes."""
        above = self.above(picture.results[0])
        equation = self.table[picture.results[0]].equation
        if above is None or equation is None:
            return
        left, right = boxes[0], boxes[1]
        inner = Blank(right.tensor, "columns" if right.transposed else "rows")
        outer = Blank(left.tensor, "columns")
        meet = any({inner, outer} <= set(blanks) for blanks in equation.blanks(picture.results[0]).values())
        if not meet or inner not in self.known or outer not in self.known:
            return
        pivot = (right.x - CORNER / 2, left.y - CORNER / 2)
        if self.known[inner] == self.known[outer]:
            yield _sweep(pivot, left.width + CORNER / 2, 180, 90, mismatch=False)
        else:
            yield _sweep(pivot, left.width + CORNER / 2, 180, 118, mismatch=True)
            radius, room = right.height + CORNER / 2, left.width + LEFT / 2
            reach = min(62.0, math.degrees(math.asin(min(1.0, room / radius))))  # no further left than the figure
            yield _sweep(pivot, radius, 90, 90 + reach, mismatch=True)

    def described(self, picture: Picture, boxes: list[Box]) -> str:
        """The figure in words, for whoever cannot see it: its title, and each matrix with its two lengths."""
        axes = [self.variant.in_table_orientation(Blank("", axis)).field for axis in MATRIX_FIELDS]
        sides = {box.letter: [self.known.get(Blank(box.tensor, axis)) for axis in axes] for box in boxes}
        shapes = (
            f"{key} {' × '.join('?' if n is None else format_number(n) for n in pair)}" for key, pair in sides.items()
        )
        return f"{self.variant.wording.say('drawing-titles', picture.key)}. {', '.join(shapes)}."

    def gaps_in(self, picture: Picture) -> list[DimensionMismatch]:
        return [gap for gap in self.gaps if gap.result in picture.results]

    def captions(self, picture: Picture) -> Iterable[str]:
        say = self.variant.wording.say
        if not self.gaps_in(picture):
            sheet = self.variant.worksheet
            told = sheet.topic if sheet.tokens_are == "rows" else "turned"
            yield str(self.variant.wording.sections["captions"][told][picture.key])
        for gap in self.gaps_in(picture):
            names = {f"{side}_letter": self.letter(end[0].tensor).replace("_", "")
                     for side, end in (("first", gap.first), ("second", gap.second))}  # fmt: skip
            blanks = {
                "first": self.variant.in_table_orientation(gap.first[0]),
                "second": self.variant.in_table_orientation(gap.second[0]),
            }
            axes = {f"{side}_axis": say("axes", blank.field) for side, blank in blanks.items()}
            yield say(
                "drawing",
                "added" if gap.added else "mismatch",
                first=format_number(gap.first[1]),
                second=format_number(gap.second[1]),
                **names,
                **axes,
            )


def _sweep(pivot: tuple[float, float], radius: float, start: float, end: float, *, mismatch: bool) -> Arc:
    """An arc around the corner, from one angle to another (degrees, anticlockwise from the right)."""

    def at(angle: float) -> tuple[float, float]:
        return (pivot[0] + radius * math.cos(math.radians(angle)), pivot[1] - radius * math.sin(math.radians(angle)))

    return Arc(at(start), at(end), radius, start > end, mismatch)


_TURNED_SIDES = {"left": "top", "under": "right", "right": "bottom", "bottom": "right", "top": "left"}


def _turned(figure: Figure) -> Figure:
    """The figure of the transposed product: (A·B)ᵀ = Bᵀ·Aᵀ is its mirror image, with rows for columns."""

    def point(x: float, y: float) -> tuple[float, float]:
        return (y + TURNED, x)

    def box(b: Box) -> Box:
        x, y = point(b.x, b.y)
        return replace(b, x=x, y=y, width=b.height, height=b.width, mirrored=True)

    def edge(e: Edge) -> Edge:
        (x1, y1), (x2, y2) = point(e.x1, e.y1), point(e.x2, e.y2)
        side = _TURNED_SIDES[e.side]
        return replace(e, blank=_other(e.blank), side=side, x1=x1, y1=y1, x2=x2, y2=y2)  # type: ignore[arg-type]

    def arc(a: Arc) -> Arc:
        return replace(a, start=point(*a.start), end=point(*a.end), clockwise=not a.clockwise)

    def outline(o: Outline) -> Outline:
        return Outline(*point(o.x, o.y), o.height, o.width)

    return replace(
        figure,
        width=figure.height + TURNED + RIGHT,
        height=figure.width,
        boxes=tuple(map(box, figure.boxes)),
        edges=tuple(map(edge, figure.edges)),
        arcs=tuple(map(arc, figure.arcs)),
        outlines=tuple(map(outline, figure.outlines)),
    )


def _other(blank: Blank) -> Blank:
    return Blank(blank.tensor, MATRIX_FIELDS[1 - MATRIX_FIELDS.index(blank.field)])
