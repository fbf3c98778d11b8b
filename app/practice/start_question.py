"""The question on the start page: which shape has Kᵀ, if Q is tokens × width and their product is tokens × tokens?"""

from __future__ import annotations

from typing import Literal

from app.sheets.answers import read_number

Verdict = Literal["", "right", "turned", "rows", "columns", "unreadable"]


def judge(rows: str, columns: str, tokens: int, width: int, *, is_typing: bool = False) -> Verdict:
    """What is said about the two typed sides; "" until both have a number, and while the last one is being typed."""
    sides = tuple(read_number(text, unit="side") for text in (rows, columns))
    if None in sides:
        return ""
    if sides == (width, tokens):
        return "right"
    if is_typing and str(width).startswith(rows.strip()) and str(tokens).startswith(columns.strip()):
        return ""
    if not all(isinstance(side, int) for side in sides):
        return "unreadable"
    if sides == (tokens, width):
        return "turned"
    return "rows" if sides[0] != width else "columns"
