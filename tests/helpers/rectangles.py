"""Whether rectangles in drawings cover each other."""

from __future__ import annotations

from app.figures.geometry import Rect


def touch(a: Rect, b: Rect) -> bool:
    """Whether two rectangles overlap by more than rounding."""
    overlap_x, overlap_y = min(a.right, b.right) - max(a.x, b.x), min(a.bottom, b.bottom) - max(a.y, b.y)
    return overlap_x > 1e-6 and overlap_y > 1e-6
