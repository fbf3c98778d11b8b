"""A model's parameters as one bar to scale: the parts outside the layers, then layer after layer.

A piece is one bucket of one summand of the formula, so the bar and the formula are the same sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.models.parameter_formula import BucketSum, ParameterFormula

BAR_LENGTH = 1000.0  # the whole model


@dataclass(frozen=True)
class BarPiece:
    """One bucket of one summand: a stripe per layer, or one stripe outside the layers.

    `starts` are where its stripes begin, `width` is each one's width, and `active` the share that a token uses.
    """

    bucket: BucketSum
    starts: tuple[float, ...]
    width: float
    active: float

    @property
    def outline(self) -> str:
        """Its stripes as the path of an SVG one unit high."""
        return "".join(f"M{start:.3f} 0h{self.width:.4f}v1h-{self.width:.4f}z" for start in self.starts)

    @property
    def idle(self) -> str:
        """An SVG path for the part of its stripes that a token isn't routed to; "" if there is none."""
        height = 1 - self.active
        return "".join(
            f"M{start:.3f} 0h{self.width:.4f}v{height:.4f}h-{self.width:.4f}z" for start in self.starts if height > 0
        )


@dataclass(frozen=True)
class BarGroup:
    """One summand of the formula in the bar: where it starts and ends, and its pieces."""

    start: float
    end: float
    pieces: tuple[BarPiece, ...]

    @property
    def left_percent(self) -> float:
        """Where it starts, in per cent of the bar."""
        return 100 * self.start / BAR_LENGTH

    @property
    def width_percent(self) -> float:
        """How long it is, in per cent of the bar."""
        return 100 * (self.end - self.start) / BAR_LENGTH


def parameter_bar(formula: ParameterFormula) -> Iterator[BarGroup]:
    """Yield a group for each summand of a formula, from left to right, as long as its share of BAR_LENGTH."""
    scale, before = BAR_LENGTH / formula.total, 0
    for summand in formula.summands:
        pieces, offset = list[BarPiece](), before
        for bucket in summand.buckets:
            starts = tuple((offset + layer * summand.count) * scale for layer in range(summand.layers or 1))
            pieces.append(BarPiece(bucket, starts, bucket.count * scale, bucket.active / bucket.count))
            offset += bucket.count
        yield BarGroup(before * scale, (before + summand.total) * scale, tuple(pieces))
        before += summand.total
