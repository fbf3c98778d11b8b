"""Where a product or a sum breaks: a bracket along the part of the longer side that has no partner, and both lengths.

Nothing here says which of the two is wrong: the longer one has the bracket because its part is there to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, product

from app.figures.captions import head_label
from app.figures.figure import Box, Break, Rectangle, Sketch, changed, overlapping
from app.figures.frame import obstacles
from app.figures.pen import CORNER_PX, Pen
from app.figures.plans import FigurePlan
from app.shapes.consistency import DimensionMismatch
from app.shapes.table import Blank

BRACKET_PX = CORNER_PX / 2  # between a side and its bracket
MIN_BRACKET_PX = 6.0
ROOM_PX = 3.0  # at either end of a label: its width is an estimate
STEP_PX = 3.0  # by which a label moves away from its bracket until it stands free


@dataclass(frozen=True)
class Side:
    """The rows or columns of a box as drawn, with the length written there: "4096"."""

    box: Box
    vertical: bool
    label: str
    labelled_before: bool = False  # on the left of the box, or above it

    @property
    def px(self) -> float:
        """How long it is drawn."""
        return self.box.height if self.vertical else self.box.width


def breaks_in(pen: Pen, plan: FigurePlan, sketch: Sketch) -> Iterator[Break]:
    """A break for each pair of sides in a figure that should be equal and are not, with tokens as rows.

    A matrix that is drawn twice breaks where it stands next to its partner. An output that cannot be added to the input
    breaks against its outline.
    """
    for mismatch in pen.shapes.mismatches_in(plan.results):
        yield from break_of(pen, mismatch, sketch)


def break_of(pen: Pen, mismatch: DimensionMismatch, sketch: Sketch) -> Iterator[Break]:
    """The break of one such pair; none if the figure doesn't draw both."""
    first, second = (list(_sides(pen, blank, sketch)) for blank, _ in (mismatch.first, mismatch.second))
    if mismatch.added and sketch.outlines:
        outline = sketch.outlines[0]
        needed = changed(second[0].box, width=outline.width, height=outline.height)
        first = [replace(second[0], box=needed, label=pen.shapes.label(mismatch.first[0]))]
    pairs = sorted(product(first, second), key=lambda pair: _distance(*pair))
    yield from (break_between(*pair) for pair in pairs[:1])


def head_breaks(pen: Pen, first: Box, second: Box) -> Iterator[Break]:
    """The break between the widths of two single heads that should be equal, if they are known and are not."""
    widths = {pen.shapes.head_width(box.tensor) for box in (first, second)}
    if pen.shapes.tells_mismatches and len(widths) > 1 and None not in widths:
        sides = (Side(b, b.transposed, head_label(pen.shapes, b.tensor)[0], b.role == "value") for b in (first, second))
        yield break_between(*sides)


def joined_breaks(pen: Pen, joined: Box, parts: Iterable[str]) -> Iterator[Break]:
    """The break of a matrix that should be as wide as its parts side by side: "512 + 64 ≠ 600"."""
    blanks = [Blank(key, "columns") for key in parts]
    lengths = [pen.shapes.lengths.get(blank, 0) for blank in blanks]
    own = pen.shapes.lengths.get(Blank(joined.tensor, "columns"))
    if pen.shapes.tells_mismatches and own is not None and all(lengths) and sum(lengths) != own:
        needed = changed(joined, width=pen.sizes.scale.px(sum(lengths)))
        added = " + ".join(map(pen.shapes.label, blanks))
        yield break_between(
            Side(needed, False, added), Side(joined, False, pen.shapes.label(Blank(joined.tensor, "columns")))
        )


def break_between(first: Side, second: Side) -> Break:
    """The break of two sides that should be equal.

    Inner sides of a product run away from its corner, others from the upper left corner of their boxes.
    """
    short, long = sorted((first, second), key=lambda side: side.px)
    box, away = long.box, first.vertical != second.vertical
    text = f"{long.label} ≠ {short.label}"
    end = max(long.px, short.px + MIN_BRACKET_PX)
    behind = long.labelled_before and not away
    if long.vertical:
        x = box.x + box.width + BRACKET_PX if behind else box.x - BRACKET_PX
        base, sign = (box.y + box.height, -1) if away else (box.y, 1)
        return Break((x, base + sign * short.px), (x, base + sign * end), (-1.0 if behind else 1.0, 0.0), text)
    y = box.y + box.height + BRACKET_PX if behind else box.y - BRACKET_PX
    base, sign = (box.x + box.width, -1) if away else (box.x, 1)
    return Break((base + sign * short.px, y), (base + sign * end, y), (0.0, -1.0 if behind else 1.0), text)


def _sides(pen: Pen, blank: Blank, sketch: Sketch) -> Iterator[Side]:
    """The places where a figure draws a length; the columns of a single head are no length of its matrix."""
    for box in sketch.boxes:
        if box.tensor == blank.tensor and (blank.field == "rows" or box.letter == pen.shapes.letter(box.tensor)):
            vertical = (blank.field == "rows") != box.transposed
            ends = (box.x, box.y, box.x, box.y + box.height) if vertical else (box.x, box.y, box.x + box.width, box.y)
            before = any((edge.x1, edge.y1, edge.x2, edge.y2) == ends for edge in sketch.edges)
            yield Side(box, vertical, pen.shapes.label(blank), before)


def _distance(first: Side, second: Side) -> float:
    """How far two boxes are from each other."""
    (x1, y1), (x2, y2) = first.box.center, second.box.center
    return abs(x1 - x2) + abs(y1 - y2)


def placed_breaks(sketch: Sketch) -> list[Break]:
    """The breaks with their labels placed: beside the bracket, or where that is taken, as near to it as is free."""
    if not sketch.breaks:
        return []
    taken = [*obstacles(sketch), *(edge.text_box for edge in sketch.edges), *(b.bracket_box for b in sketch.breaks)]
    breaks = list[Break]()
    for each in sketch.breaks:
        label = next(box for steps in count() for box in label_places(each, steps * STEP_PX) if _is_free(box, taken))
        x, y, width, height = label
        taken.append(label)
        breaks.append(changed(each, label_at=(x + width / 2, y + height / 2)))
    return breaks


def _is_free(label: Rectangle, taken: Iterable[Rectangle]) -> bool:
    """Whether a label would touch nothing, with some room at either end."""
    x, y, width, height = label
    with_room = (x - ROOM_PX, y, width + 2 * ROOM_PX, height)
    return not overlapping(with_room, taken)


def label_places(each: Break, distance: float) -> Iterator[Rectangle]:
    """Two places for a break's label at a distance: away from the matrix beside its bracket, and beyond its end.

    Beside a short bracket the label reaches beyond the end, never back to where the arc is.
    """
    (x1, y1), (x2, y2), (to_x, to_y) = each.start, each.end, each.toward
    width, height = each.text_size
    along_x, along_y = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    half = max(abs(x2 - x1) + abs(y2 - y1), abs(along_x) * width + abs(along_y) * height + 8) / 2
    away = 6 + distance + (abs(to_x) * width + abs(to_y) * height) / 2
    beside = (x1 + along_x * half - to_x * away, y1 + along_y * half - to_y * away)
    further = 4 + distance + (abs(along_x) * width + abs(along_y) * height) / 2
    beyond = (x2 + along_x * further, y2 + along_y * further)
    for x, y in (beside, beyond):
        yield (x - width / 2, y - height / 2, width, height)
