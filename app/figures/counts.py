"""Figures of sheets that count: bars to scale, and a plot of what grows with the tokens.

In a sum, each part's bar starts where the one above ends. A plot has logarithmic axes: a count with N is a line that
rises by one decade per decade, one with N² rises by two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.figures.geometry import Point, Rect
from app.figures.parts import Box, Edge, EdgeKind, EdgeSide, Figure, MismatchCaption, Sketch, side_ends, spread
from app.figures.shapes import Answers
from app.shapes.table import Blank, Count
from app.sheets.answers import Answer
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from app.topics.topic import Growth

LONGEST_PX, UNKNOWN_PX, MIN_PX = 175.0, 24.0, 1.5
BAR_PX, ROW_PX = 15.0, 26.0
PLOT_WIDTH_PX, PLOT_HEIGHT_PX = 210.0, 170.0
MOST_TICKS = 5
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class CountPlan:
    """The counts in one figure: `parts` times `factor` add up to `whole`; without `whole`, counts of one kind."""

    key: str
    parts: tuple[str, ...]
    whole: Count | None = None
    factor: int = 1

    @property
    def rows(self) -> tuple[str, ...]:
        return (*self.parts, self.whole.key) if self.whole else self.parts


def count_plans(variant: Variant) -> tuple[CountPlan, ...]:
    """The figures of a sheet's counts: one for each sum that is asked together with all its parts."""
    asked = variant.problem.asked
    if variant.worksheet.in_letters:
        return ()
    if figures := TOPICS[variant.worksheet.topic].count_figures:
        keys = [count.key for count in variant.table.counts if count.key in asked]
        plans = (CountPlan(each.key, tuple(key for key in keys if key in each.counts)) for each in figures)
        return tuple(sorted((plan for plan in plans if plan.rows), key=lambda plan: keys.index(plan.rows[0])))
    return tuple(_sums(variant.table.counts, asked, variant.sizes))


def _sums(counts: Sequence[Count], asked: frozenset[str], sizes: Mapping[str, int]) -> Iterator[CountPlan]:
    asked &= {count.key for count in counts}
    for count in counts:
        total = count.made_from
        if total is None or "parts" not in total.formula.symbols:
            continue
        if count.key in asked and len(total.parts) > 1 and asked.issuperset(total.parts):
            factor = total.formula.substitute({"parts": Expression.number(1)}).size(sizes)
            yield CountPlan("parts", total.parts, count, factor)


def draw_counts(
    variant: Variant, answers: Answers, longest: Mapping[str, int] | None = None, *, shows_mismatches: bool = True
) -> tuple[Figure, ...]:
    """The bars of a counting sheet, each figure on its own linear scale."""
    numbers = _typed_counts(answers)
    scales = longest or longest_bars(variant, answers)
    growth = TOPICS[variant.worksheet.topic].growth if not variant.worksheet.in_letters else None
    plots = (_GrowthPlot(variant, growth, numbers, shows_mismatches).figure(),) if growth else ()
    bars = (
        _figure(variant, plan, numbers, scales[plan.rows[-1]], shows_mismatches=shows_mismatches)
        for plan in count_plans(variant)
    )
    return (*plots, *bars)


def longest_bars(variant: Variant, answers: Answers) -> dict[str, int]:
    """The number that fills each figure's width, by the key of its last row; {} on a sheet in letters."""
    numbers = _typed_counts(answers)
    longest = dict[str, int]()
    for plan in count_plans(variant):
        lengths = [numbers.get(key, 0) for key in plan.rows]
        added = plan.factor * sum(numbers.get(key, 0) for key in plan.parts) if plan.whole else 0
        longest[plan.rows[-1]] = max(*lengths, added, 1)
    return longest


def _typed_counts(answers: Answers) -> dict[str, int]:
    counts = {blank.tensor: answer for blank, answer in answers.items() if blank.field == "count"}
    return {key: answer.value if isinstance(answer, Answer) else answer for key, answer in counts.items()}


def _figure(
    variant: Variant, plan: CountPlan, numbers: Mapping[str, int], longest: int, *, shows_mismatches: bool
) -> Figure:
    boxes, edges, outlines = list[Box](), list[Edge](), list[Rect]()
    told = plan.factor if plan.whole and plan.whole.key in numbers else 1
    x, px = 0.0, LONGEST_PX / longest
    known = [numbers[key] * plan.factor for key in plan.parts if key in numbers]
    is_complete = plan.whole is not None and len(known) == len(plan.parts) and plan.whole.key in numbers
    differs = shows_mismatches and is_complete and sum(known) != numbers[plan.rows[-1]]
    for index, key in enumerate(plan.rows):
        is_part = plan.whole is not None and key != plan.whole.key
        width = max(MIN_PX, numbers[key] * (plan.factor if is_part else 1) * px) if key in numbers else UNKNOWN_PX
        rect = Rect(x if is_part else 0.0, index * ROW_PX, width, BAR_PX)
        role = "output" if key in numbers and plan.whole and not is_part else "hidden"
        needed = rect._replace(x=0.0, width=sum(known) * px) if differs and not is_part else None
        box = Box(key, "", role, rect, incomplete=key not in numbers)
        boxes.append(box)
        edges += _labels(variant, box, numbers, told if is_part else 1, needed)
        outlines += [needed] if needed else []
        x += width if is_part else 0.0
    sketch = Sketch(boxes=tuple(boxes), edges=tuple(edges), outlines=tuple(outlines))
    words, whole = variant.figure_wording(plan.key), variant.row_name(plan.rows[-1])
    rows = ", ".join(f"{variant.row_name(key)} {_number(numbers, key)}" for key in plan.rows)
    return Figure(
        **vars(sketch),
        key=plan.key,
        is_chart=True,
        frame=sketch.extent,
        alt_text=f"{words.title.format(whole=whole)}. {rows}.",
        captions=(words.caption.format(whole=whole),),
        mismatches=(MismatchCaption(variant.wording.say("drawing", "parts", whole=whole), plan.rows),)
        if differs
        else (),
    )


def _labels(
    variant: Variant, box: Box, numbers: Mapping[str, int], factor: int, outline: Rect | None
) -> tuple[Edge, Edge]:
    kind: EdgeKind = "mismatch" if outline else "other" if box.tensor in numbers else "unknown"
    shift = max(0.0, outline.right - box.rect.right) if outline else 0.0
    start = Point(0.0, box.rect.y), Point(0.0, box.rect.bottom)
    name = variant.row_name(box.tensor)
    number = _number(numbers, box.tensor) + (f" × {factor}" if factor > 1 else "")
    return (
        Edge(None, "left", *start, "", "unknown", name),
        Edge(Blank(box.tensor, "count"), "right", *side_ends(box.rect, "right"), number, kind, shift=shift),
    )


def _number(numbers: Mapping[str, int], key: str) -> str:
    return format_number(numbers[key]) if key in numbers else "?"


# What grows with the tokens


@dataclass(frozen=True)
class _GrowthPlot:
    """A line through each typed count, with the sheet's number of tokens and the typed crossing marked."""

    variant: Variant
    growth: Growth
    numbers: Mapping[str, int]
    shows_mismatches: bool

    def figure(self) -> Figure:
        variant, words = self.variant, self.variant.figure_wording("growth")
        sketch = Sketch(edges=spread([*self._scales(), *self._lines()]))
        mismatches = list[MismatchCaption]()
        if self.differs:
            sentence = variant.wording.say("drawing", "growth", tokens=self._number(self.growth.crossing))
            mismatches.append(MismatchCaption(sentence, self.keys))
        readings = (f"{variant.row_name(key)} {self._number(key)}" for key in self.keys)
        return Figure(
            **vars(sketch),
            key="growth",
            is_chart=True,
            frame=sketch.extent,
            alt_text=f"{words.title}. {', '.join(readings)}.",
            captions=(words.caption,),
            mismatches=tuple(mismatches),
        )

    @cached_property
    def keys(self) -> tuple[str, str, str]:
        return self.growth.linear, self.growth.squared, self.growth.crossing

    @cached_property
    def lines(self) -> Mapping[str, tuple[int, EdgeKind]]:
        """The typed counts drawn as lines: how steep each is, and its colour."""
        lines: Mapping[str, tuple[int, EdgeKind]] = {self.growth.linear: (1, "model"), self.growth.squared: (2, "head")}
        return {key: line for key, line in lines.items() if key in self.typed}

    @cached_property
    def typed(self) -> Mapping[str, int]:
        return {key: self.numbers[key] for key in self.keys if self.numbers.get(key, 0) > 0}

    def _number(self, key: str) -> str:
        return format_number(self.typed[key]) if key in self.typed else "?"

    @cached_property
    def differs(self) -> bool:
        """Whether the typed crossing isn't where the typed counts are equal."""
        if not self.shows_mismatches or len(self.typed) < len(self.keys):
            return False
        linear, squared, crossing = (self.typed[key] for key in self.keys)
        return linear * self.variant.tokens != squared * crossing

    # Axes, in decades: tokens to the right, operations upwards

    @cached_property
    def tokens(self) -> tuple[int, int]:
        lengths = [float(self.variant.tokens), float(self.typed.get(self.growth.crossing, self.variant.tokens))]
        if len(self.lines) > 1:
            linear, squared = (self.typed[key] for key in self.lines)
            lengths.append(self.variant.tokens * linear / squared)
        left = max(0, math.floor(math.log10(min(lengths)) - 0.3))
        return left, max(left + 2, math.ceil(math.log10(max(lengths)) + 0.2))

    @cached_property
    def operations(self) -> tuple[int, int]:
        ends = [self._operations(key, decade) for key in self.lines for decade in self.tokens] or [1.0, 100.0]
        low, high = math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends)))
        return low, max(high, low + 1)

    def _operations(self, key: str, decade: int) -> float:
        slope, _kind = self.lines[key]
        return self.typed[key] * (10.0**decade / self.variant.tokens) ** slope

    def _at(self, tokens: float, operations: float) -> Point:
        (left, right), (low, high) = self.tokens, self.operations
        x = (math.log10(tokens) - left) / (right - left) * PLOT_WIDTH_PX
        return Point(x, (high - math.log10(operations)) / (high - low) * PLOT_HEIGHT_PX)

    def _scales(self) -> Iterator[Edge]:
        names = self.variant.topic_wording.axis_names
        yield replace(_line((0, 0), (0, PLOT_HEIGHT_PX), "other"), given=True)
        yield replace(_line((0, PLOT_HEIGHT_PX), (PLOT_WIDTH_PX, PLOT_HEIGHT_PX), "other"), given=True)
        sides: tuple[tuple[EdgeSide, tuple[int, int]], ...] = (("below", self.tokens), ("left", self.operations))
        for side, (first, last) in sides:
            for decade in range(first, last + 1, max(1, math.ceil((last - first) / MOST_TICKS))):
                share = (decade - first) / (last - first)
                x, y = (share * PLOT_WIDTH_PX, PLOT_HEIGHT_PX) if side == "below" else (0, (1 - share) * PLOT_HEIGHT_PX)
                yield _label(x, y, side, f"10{str(decade).translate(RAISED)}", "other")
        yield _label(PLOT_WIDTH_PX / 2, PLOT_HEIGHT_PX + 16, "below", "", "other", names["growth-tokens"])
        yield _label(0, 0, "top", "", "other", names["growth-operations"])

    def _lines(self) -> Iterator[Edge]:
        names = self.variant.topic_wording.axis_names
        for key, (_slope, kind) in self.lines.items():
            first, last = (self._at(10.0**decade, self._operations(key, decade)) for decade in self.tokens)
            yield _line(first, last, kind, self._number(key), Blank(key, "count"))
            yield _label(*last, "right", "", kind, names[key.replace("_", "-")])
        x, tokens = self._at(self.variant.tokens, 1).x, format_number(self.variant.tokens)
        yield _line((x, 0), (x, PLOT_HEIGHT_PX), "tokens", tokens)
        yield _label(x, 0, "top", f"N = {tokens}", "tokens")
        crossing = self.growth.crossing
        if crossing in self.typed:
            x, kind = self._at(self.typed[crossing], 1).x, "mismatch" if self.differs else "other"
            yield _line((x, 0), (x, PLOT_HEIGHT_PX), kind, self._number(crossing), Blank(crossing, "count"))
            yield _label(x, 0, "top", self._number(crossing), kind)


def _line(
    start: tuple[float, float], end: tuple[float, float], kind: EdgeKind, number: str = "·", blank: Blank | None = None
) -> Edge:
    return Edge(blank, "below", Point(*start), Point(*end), number, kind, shown="line")


def _label(x: float, y: float, side: EdgeSide, label: str, kind: EdgeKind, name: str = "") -> Edge:
    return Edge(None, side, Point(x, y), Point(x, y), label, kind, name)
