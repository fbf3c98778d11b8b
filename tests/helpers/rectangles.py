"""Rectangles in drawings: whether two of them cover each other."""

from __future__ import annotations

from app.figures.geometry import Rect


def touch(a: Rect, b: Rect) -> bool:
    """Whether two rectangles share more than half a pixel."""
    overlap_x, overlap_y = min(a.right, b.right) - max(a.x, b.x), min(a.bottom, b.bottom) - max(a.y, b.y)
    return overlap_x > 0.5 and overlap_y > 0.5
