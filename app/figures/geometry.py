"""Points, rectangles and widths of texts in pixels, x to the right and y down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


# Widths of texts, never less than in a browser, so that they can be placed without one. A browser test measures them.
# Numbers and names are in Figtree, letters in Libertinus italic, in one size however large the figure is.

LABEL_PX, LETTER_PX, SUBSCRIPT_PX = 12.0, 17.0, 11.0  # type sizes, as in drawing.css
LINE_PX, LETTER_LINE_PX = 14.0, 19.0  # heights of a line of a label, without and with a matrix's letter
BASELINE_PX, LETTER_BASELINE_PX = 11.0, 13.0  # from a line's top to its baseline
SPACE_PX = 4.0  # between a letter and the number after it


def _table(*groups: tuple[float, str]) -> Mapping[str, float]:
    return {character: width for width, characters in groups for character in characters}


# Widths in em; the second number of _WIDTHS is for any other lower-case or upper-case character.
_LABEL = _table(
    (0.28, " ,.:;'|!ijl"),
    (0.48, "frst()-/·"),
    (0.57, "acekvxz"),
    (0.88, "mwM≠"),
    (1.02, "W"),
    (0.64, "0123456789+?=×−"),
)
_LETTER = _table(
    (0.36, "'.,il "), (0.5, "acehorst"), (0.6, "0123456789"), (0.85, "mwNH"), (0.92, "M"), (1.08, "W"), (0.68, "fdxyu")
)
_SUBSCRIPT = _table((0.35, "'.,ijlt "), (0.5, "0123456789"), (0.85, "mwMNH"), (1.02, "W"))


def label_px(text: str) -> float:
    """The width of a number or a name: 33.3 px for "4,096"."""
    return LABEL_PX * _em(text, _LABEL, 0.62, 0.82)


def letter_px(letter: str) -> float:
    """The width of a matrix's letter with its subscript and ᵀ: W_Q, K_8ᵀ."""
    base, _, below = letter.removesuffix("ᵀ").partition("_")
    raised = SUBSCRIPT_PX * 0.7 if letter.endswith("ᵀ") else 0.0
    return LETTER_PX * _em(base, _LETTER, 0.59, 0.8) + SUBSCRIPT_PX * _em(below, _SUBSCRIPT, 0.6, 0.78) + raised


def _em(text: str, widths: Mapping[str, float], lower: float, upper: float) -> float:
    return sum(widths.get(c, lower if c.islower() else upper if c.isascii() else 1.0) for c in text)
