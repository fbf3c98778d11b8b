"""Rectangles in drawings: whether two of them cover each other."""

from __future__ import annotations

from app.figures.figure import Rectangle


def touch(a: Rectangle, b: Rectangle) -> bool:
    """Whether two rectangles share more than half a pixel."""
    return all(a[i] + a[i + 2] > b[i] + 0.5 and b[i] + b[i + 2] > a[i] + 0.5 for i in (0, 1))
