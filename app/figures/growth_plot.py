"""Operations plotted over tokens, both axes logarithmic, through the typed numbers.

A product with N is a line that rises by one decade per decade, one with N² rises by two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.algebra.number_text import format_number
from app.figures.geometry import Point
from app.figures.parts import Edge, EdgeKind, EdgeSide, Figure, MismatchCaption, Sketch, spread
from app.shapes.table import Blank
from app.sheets.variant import Variant

WIDTH_PX, HEIGHT_PX = 210.0, 170.0
MOST_TICKS = 5
# The counts drawn as lines: how steep each is, and the colour of its kind.
LINES: Mapping[str, tuple[int, EdgeKind]] = {"projections_flops": (1, "model"), "pairwise_flops": (2, "head")}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class _Axes:
    """The range of the axes in decades: tokens to the right, operations upwards."""

    tokens: tuple[int, int]
    operations: tuple[int, int]

    def at(self, tokens: float, operations: float) -> Point:
        """A point of the plot in px from its upper left corner."""
        (left, right), (low, high) = self.tokens, self.operations
        x = (math.log10(tokens) - left) / (right - left) * WIDTH_PX
        return Point(x, (high - math.log10(operations)) / (high - low) * HEIGHT_PX)


def growth_plot(variant: Variant, numbers: Mapping[str, int], *, shows_mismatches: bool) -> Figure:
    """A line through each typed count, with the sheet's number of tokens and the typed crossing marked."""
    typed = {key: numbers[key] for key in (*LINES, "crossing") if numbers.get(key, 0) > 0}
    axes, words = _axes(variant.tokens, typed), variant.figure_wording("growth")
    differs = (
        shows_mismatches
        and len(typed) > len(LINES)
        and typed["projections_flops"] * variant.tokens != typed["pairwise_flops"] * typed["crossing"]
    )
    sketch = Sketch(edges=spread([*_scales(variant, axes), *_lines(variant, axes, typed, differs=differs)]))
    mismatches = list[MismatchCaption]()
    if differs:
        sentence = variant.wording.say("drawing", "growth", tokens=format_number(typed["crossing"]))
        mismatches.append(MismatchCaption(sentence, tuple(typed)))
    readings = [
        f"{variant.row_name(key)} {format_number(typed[key]) if key in typed else '?'}" for key in (*LINES, "crossing")
    ]
    return Figure(
        **vars(sketch),
        key="growth",
        frame=sketch.extent,
        alt_text=f"{words.title}. {', '.join(readings)}.",
        captions=(words.caption,),
        mismatches=tuple(mismatches),
        has_scale=False,
    )


def _axes(tokens: int, typed: Mapping[str, int]) -> _Axes:
    lengths = [float(tokens), float(typed.get("crossing", tokens))]
    if all(key in typed for key in LINES):
        lengths.append(tokens * typed["projections_flops"] / typed["pairwise_flops"])
    left = max(0, math.floor(math.log10(min(lengths)) - 0.3))
    right = max(left + 2, math.ceil(math.log10(max(lengths)) + 0.2))
    ends = [
        operations * (10.0**decade / tokens) ** LINES[key][0]
        for key, operations in typed.items() if key in LINES for decade in (left, right)
    ] or [1.0, 100.0]  # fmt: skip
    low, high = math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends)))
    return _Axes((left, right), (low, max(high, low + 1)))


def _scales(variant: Variant, axes: _Axes) -> Iterator[Edge]:
    names = variant.topic_wording.axis_names
    yield replace(_line((0, 0), (0, HEIGHT_PX), "other"), given=True)
    yield replace(_line((0, HEIGHT_PX), (WIDTH_PX, HEIGHT_PX), "other"), given=True)
    for side, (first, last) in (("below", axes.tokens), ("left", axes.operations)):
        for decade in range(first, last + 1, max(1, math.ceil((last - first) / MOST_TICKS))):
            share = (decade - first) / (last - first)
            x, y = (share * WIDTH_PX, HEIGHT_PX) if side == "below" else (0.0, (1 - share) * HEIGHT_PX)
            yield _label(x, y, "below" if side == "below" else "left", f"10{str(decade).translate(RAISED)}", "other")
    yield _label(WIDTH_PX / 2, HEIGHT_PX + 16, "below", "", "other", names["growth-tokens"])
    yield _label(0, 0, "top", "", "other", names["growth-operations"])


def _lines(variant: Variant, axes: _Axes, typed: Mapping[str, int], *, differs: bool) -> Iterator[Edge]:
    names, tokens = variant.topic_wording.axis_names, variant.tokens
    for key, (slope, kind) in LINES.items():
        if key in typed:
            first, last = (
                axes.at(10.0**decade, typed[key] * (10.0**decade / tokens) ** slope) for decade in axes.tokens
            )
            yield _line(first, last, kind, format_number(typed[key]), Blank(key, "count"))
            yield _label(*last, "right", "", kind, names[key.replace("_", "-")])
    x = axes.at(tokens, 1).x
    yield _line((x, 0), (x, HEIGHT_PX), "tokens", format_number(tokens))
    yield _label(x, 0, "top", f"N = {format_number(tokens)}", "tokens")
    if "crossing" in typed:
        x = axes.at(typed["crossing"], 1).x
        kind = "mismatch" if differs else "other"
        yield _line((x, 0), (x, HEIGHT_PX), kind, format_number(typed["crossing"]), Blank("crossing", "count"))
        yield _label(x, 0, "top", format_number(typed["crossing"]), kind)


def _line(
    start: tuple[float, float], end: tuple[float, float], kind: EdgeKind, number: str = "·", blank: Blank | None = None
) -> Edge:
    return Edge(blank, "below", Point(*start), Point(*end), number, kind, shown="line")


def _label(x: float, y: float, side: EdgeSide, label: str, kind: EdgeKind, name: str = "") -> Edge:
    return Edge(None, side, Point(x, y), Point(x, y), label, kind, name)
