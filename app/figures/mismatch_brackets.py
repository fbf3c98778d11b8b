"""Marks where a product or a sum breaks: a bracket along the excess of the longer side, with both lengths.

Nothing says which length is wrong; the longer side has the bracket because its excess is visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import prod

from app.figures.geometry import LINE_PX, Point, Rect, label_px
from app.figures.parts import Box, MismatchBracket, Sketch, side_ends, spread
from app.figures.pen import SLANT, Pen
from app.shapes.consistency import DimensionMismatch
from app.shapes.table import Blank

BRACKET_PX = 6.0  # between a side and its bracket
MIN_BRACKET_PX = 6.0
ROOM_PX = 3.0  # at either end of a label, whose width is an estimate
AWAY_PX = 5.0  # between a side of cards and its bracket
LEAST_PX = 8.0  # the least length of such a bracket
STEP_PX = 3.0  # step by which a label moves away from its bracket until it is free


@dataclass(frozen=True)
class Side:
    """The rows or columns of a box as drawn, with the length written there: "4096"."""

    box: Box
    vertical: bool
    label: str
    labelled_before: bool = False  # on the left of the box, or above it

    @property
    def px(self) -> float:
        return self.box.rect.height if self.vertical else self.box.rect.width


def brackets_of(pen: Pen, mismatch: DimensionMismatch, sketch: Sketch) -> tuple[MismatchBracket, ...]:
    """The bracket of two sides that should be equal but differ; () if one of them isn't drawn."""
    first, second = (list(_sides(pen, blank, sketch)) for blank in (mismatch.left, mismatch.right))
    if mismatch.added and sketch.outlines:
        x, y, *_ = second[0].box.rect
        needed = replace(second[0].box, rect=Rect(x, y, *sketch.outlines[0][2:]))
        first = [replace(second[0], box=needed, label=pen.shapes.label(mismatch.left))]
    pairs = sorted(product(first, second), key=lambda pair: _distance(*pair))
    return tuple(_bracket_between(*pair) for pair in pairs[:1])


def joined_brackets(pen: Pen, joined: Box, parts: Iterable[str]) -> tuple[MismatchBracket, ...]:
    """The bracket of a matrix that should be as wide as its `parts` together: "512 + 64 ≠ 600"."""
    blanks, whole = [Blank(key, "columns") for key in parts], Blank(joined.tensor, "columns")
    lengths = [pen.shapes.lengths.get(blank, 0) for blank in blanks]
    typed = pen.shapes.lengths.get(whole)
    if not pen.shapes.shows_mismatches or typed is None or not all(lengths) or sum(lengths) == typed:
        return ()
    needed = replace(joined, rect=joined.rect._replace(width=pen.sizes.scale.px(sum(lengths))))
    added = " + ".join(map(pen.shapes.label, blanks))
    return (_bracket_between(Side(needed, False, added), Side(joined, False, pen.shapes.label(whole))),)


def _bracket_between(first: Side, second: Side) -> MismatchBracket:
    short, long = sorted((first, second), key=lambda side: side.px)
    rect, away = long.box.rect, first.vertical != second.vertical
    text = f"{long.label} ≠ {short.label}"
    end = max(long.px, short.px + MIN_BRACKET_PX)
    is_after = long.labelled_before and not away  # right of the box, or below it
    if long.vertical:
        x = rect.right + BRACKET_PX if is_after else rect.x - BRACKET_PX
        base, sign = (rect.bottom, -1) if away else (rect.y, 1)
        ends = (Point(x, base + sign * short.px), Point(x, base + sign * end))
        return MismatchBracket(*ends, Point(-1.0 if is_after else 1.0, 0.0), text)
    y = rect.bottom + BRACKET_PX if is_after else rect.y - BRACKET_PX
    base, sign = (rect.right, -1) if away else (rect.x, 1)
    ends = (Point(base + sign * short.px, y), Point(base + sign * end, y))
    return MismatchBracket(*ends, Point(0.0, -1.0 if is_after else 1.0), text)


def _sides(pen: Pen, blank: Blank, sketch: Sketch) -> Iterator[Side]:
    for box in sketch.boxes:
        if box.tensor == blank.tensor and (blank.field == "rows" or box.letter == pen.shapes.letter(box.tensor)):
            vertical = (blank.field == "rows") != box.transposed
            ends = side_ends(box.rect, "left" if vertical else "top")
            before = any((edge.start, edge.end) == ends for edge in sketch.edges)
            yield Side(box, vertical, pen.shapes.label(blank), before)


def _distance(first: Side, second: Side) -> float:
    (x1, y1), (x2, y2) = first.box.rect.centre, second.box.rect.centre
    return abs(x1 - x2) + abs(y1 - y2)


def card_brackets(pen: Pen, mismatches: Iterable[DimensionMismatch], sketch: Sketch) -> Iterator[MismatchBracket]:
    """Yield a bracket, at the longer one if it is drawn, for each pair of sides that should be equal but differ."""
    shapes, boxes = pen.shapes, {box.tensor: box for box in reversed(sketch.boxes)}  # the first one of each tensor
    for mismatch in mismatches:
        parts = mismatch.parts or (mismatch.right,)  # the last of several merged sides stands for their product
        length = prod(shapes.lengths[part] for part in parts)
        pair = [
            (shapes.lengths[mismatch.left], mismatch.left, shapes.label(mismatch.left)),
            (length, mismatch.right, " · ".join(map(shapes.label, parts))),
        ]
        (short, other, shorter), (long, side, longer) = sorted(pair, key=lambda each: each[0])
        drawn = next((blank for blank in (side, other) if blank.tensor in boxes), None)
        if drawn:
            share = pen.sizes.scale.px(short) / pen.sizes.scale.px(long)
            is_lower = any(edge.blank == drawn and edge.side == "lower" for edge in sketch.edges)
            ends = _along(pen, drawn, boxes[drawn.tensor], is_lower=is_lower)
            yield _along_side(*ends, share, f"{longer} ≠ {shorter}", mismatch.at)


def _along(pen: Pen, blank: Blank, box: Box, *, is_lower: bool) -> tuple[Point, Point, Point]:
    sides, rect = pen.sides_of(box.tensor), box.rect
    if blank in (sides.cards, sides.texts):
        sign = -1.0 if is_lower else 1.0
        toward = Point(sign * SLANT.y, sign * SLANT.x)  # the direction to the cards
        first, last = pen.ends(box, blank, "lower" if is_lower else "upper")
        away = (-toward.x * AWAY_PX, -toward.y * AWAY_PX)
        return first.moved(*away), last.moved(*away), toward
    if (blank == sides.columns) != box.transposed:
        y = rect.bottom + AWAY_PX
        return Point(rect.x, y), Point(rect.right, y), Point(0.0, -1.0)
    x = rect.x - AWAY_PX
    return Point(x, rect.bottom), Point(x, rect.y), Point(1.0, 0.0)


def _along_side(start: Point, end: Point, toward: Point, share: float, text: str, result: str) -> MismatchBracket:
    length = math.hypot(end.x - start.x, end.y - start.y)
    along = (abs(toward.y), -abs(toward.x))  # to the right or up, as all sides run
    begin = length * min(share, 1.0)
    if length - begin < LEAST_PX:
        begin = max(0.0, length - LEAST_PX)
    first, last = (start.moved(along[0] * at, along[1] * at) for at in (begin, max(length, begin + LEAST_PX)))
    return MismatchBracket(first, last, toward, text, products=result)


def with_free_labels(sketch: Sketch) -> Sketch:
    """The sketch with its labels moved outwards until they are free, and its brackets' labels placed."""
    lines = [each.bracket_box for each in sketch.brackets]
    taken, placed = sketch.obstacles, list[MismatchBracket]()
    edges = spread(sketch.edges, taken + lines if sketch.flow else taken)
    taken += [*(edge.text_box for edge in edges), *lines]
    for each in sketch.brackets:
        free = _first_free(label_places(each), taken)
        taken.append(free)
        placed.append(replace(each, label_at=free.centre))
    return replace(sketch, edges=edges, brackets=tuple(placed))


def _first_free(places: Iterable[Rect], taken: Sequence[Rect]) -> Rect:
    in_the_way = list[Rect]()  # earlier places, which are mostly in the way of the next ones as well
    for x, y, width, height in places:
        label = Rect(x - ROOM_PX, y, width + 2 * ROOM_PX, height)
        if label.overlapping(in_the_way):
            continue
        if not (blocking := label.overlapping(taken)):
            return Rect(x, y, width, height)
        in_the_way += blocking
    raise AssertionError("there is always a place further away")


def label_places(each: MismatchBracket) -> Iterator[Rect]:
    """Yield, endlessly, places for a bracket's label, alternating beside the bracket and beyond its end."""
    (x1, y1), (x2, y2), (to_x, to_y) = each.start, each.end, each.toward
    width, height = label_px(each.text), LINE_PX + 2
    along_x, along_y = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    half = max(abs(x2 - x1) + abs(y2 - y1), abs(along_x) * width + abs(along_y) * height + 8) / 2
    away, beyond = (abs(to_x) * width + abs(to_y) * height) / 2, (abs(along_x) * width + abs(along_y) * height) / 2
    x1, y1 = x1 + along_x * half, y1 + along_y * half
    for distance in count(0.0, STEP_PX):
        beside, further = 6 + distance + away, 4 + distance + beyond
        yield Rect(x1 - to_x * beside - width / 2, y1 - to_y * beside - height / 2, width, height)
        yield Rect(x2 + along_x * further - width / 2, y2 + along_y * further - height / 2, width, height)
