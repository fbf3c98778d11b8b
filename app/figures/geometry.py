"""Points and rectangles of a drawing in pixels, x to the right and y down."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import NamedTuple


class Point(NamedTuple):
    """A point, or a distance in both directions."""

    x: float
    y: float

    def moved(self, x: float, y: float) -> Point:
        return Point(self.x + x, self.y + y)


ORIGIN = Point(0.0, 0.0)
Polygon = tuple[tuple[float, float], ...]  # its corners; plain pairs, since a drawing has hundreds


def moved(polygon: Polygon, x: float, y: float) -> Polygon:
    return tuple((corner_x + x, corner_y + y) for corner_x, corner_y in polygon)


class Rect(NamedTuple):
    """A rectangle: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @classmethod
    def around(cls, rects: Iterable[Rect], margin: float = 0.0) -> Rect:
        """The smallest rectangle around all of these, with a margin on each side; ValueError if there are none."""
        xs, ys, widths, heights = zip(*rects, strict=True)
        x, y = min(xs) - margin, min(ys) - margin
        return cls(x, y, max(map(add, xs, widths)) + margin - x, max(map(add, ys, heights)) + margin - y)

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> Point:
        return Point(self.x + self.width / 2, self.y + self.height / 2)

    def moved(self, x: float, y: float) -> Rect:
        return Rect(self.x + x, self.y + y, self.width, self.height)

    def at_least(self, width: float, height: float) -> Rect:
        """The rectangle, grown around its centre to this width and height if it is smaller."""
        more_x, more_y = max(0.0, width - self.width) / 2, max(0.0, height - self.height) / 2
        return Rect(self.x - more_x, self.y - more_y, self.width + 2 * more_x, self.height + 2 * more_y)

    def overlapping(self, others: Iterable[Rect]) -> list[Rect]:
        """The rectangles among `others` that share more than an edge with this one."""
        x, y, width, height = self
        right, bottom = x + width, y + height
        return [o for o in others if x < o[0] + o[2] and o[0] < right and y < o[1] + o[3] and o[1] < bottom]

    def holds(self, other: Rect) -> bool:
        """Whether the other rectangle is inside this one, edges included."""
        inside_x = self.x <= other.x and other.right <= self.right
        return inside_x and self.y <= other.y and other.bottom <= self.bottom
