"""Grading one sheet of fourteen boxes: target 200 µs, with a diagnosis 1 ms."""

from __future__ import annotations

import timeit
from collections.abc import Iterator

from app.attention.grading import grade
from app.attention.library import load_library
from app.settings import PROJECT


def report() -> Iterator[str]:
    """Median microseconds for a right sheet, a sheet of products, an unreadable one, and three with mistakes."""
    variant = load_library(PROJECT / "worksheets").variant("llama-7b")
    right = {str(place): str(variant.answer(place)) for place in variant.blanks}
    sheets = {
        "right numbers": right,
        "products with spaces": {place: f"1 * {text} / 1" for place, text in right.items()},
        "unreadable": dict.fromkeys(right, "9**9**9"),
        "one length wrong throughout": {**right, **{place: "128" for place, text in right.items() if text == "100"}},
        "one belief": {**right, **dict.fromkeys(["queries.columns", "keys.columns", "values.columns"], "4096")},
        "two beliefs": {**right, "input.columns": "128", "values.columns": "4096"},
    }
    for name, answers in sheets.items():
        times = sorted(timeit.repeat(lambda a=answers: grade(variant, a), number=100, repeat=21))  # type: ignore[misc]
        yield f"{name}: {times[10] / 100 * 1e6:.0f} µs"
