"""Bars for sheets that only count: parts to scale below each other, each where the one before ends, and their whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.figures.figure import Box, Edge, EdgeKind, Figure, MismatchCaption, Outline, Sketch
from app.figures.frame import frame_of
from app.figures.growth_plot import growth_plot
from app.figures.typed_shapes import Answers
from app.shapes.table import Blank, Count
from app.sheets.reading import Typed
from app.sheets.variant import Variant

LONGEST_PX, UNKNOWN_PX, MIN_PX = 175.0, 24.0, 1.5
BAR_PX, ROW_PX = 15.0, 26.0
# By topic: how the keys of the counts of one kind end, its figure's key, and that of the other kind.
_KINDS = {"costs": ("_flops", "operations", "bytes"), "feed-forward-width": ("_parameters", "blocks", "widths")}


@dataclass(frozen=True)
class CountPlan:
    """Which counts stand in one figure: those that are added up to `whole`, or without one any of one unit."""

    key: str
    parts: tuple[str, ...]
    whole: Count | None = None
    factor: int = 1

    @property
    def rows(self) -> tuple[str, ...]:
        """The counts from top to bottom."""
        return (*self.parts, self.whole.key) if self.whole else self.parts


def count_plans(variant: Variant) -> tuple[CountPlan, ...]:
    """One figure for each sum of several counts; where there are no sums, one for each of two kinds of numbers.

    Of costs these are operations and bytes, of a feed-forward width the steps to it, and parameters.

    A sheet in letters has none, because its bars would say nothing.
    """
    asked = variant.problem.asked
    if variant.worksheet.answers == "letters":
        return ()
    if kinds := _KINDS.get(variant.worksheet.topic):
        ending, first, second = kinds
        keys = [count.key for count in variant.table.counts if count.key in asked and count.key != "multiples"]
        ending_so = tuple(key for key in keys if key.endswith(ending))
        plans = (CountPlan(first, ending_so), CountPlan(second, tuple(key for key in keys if key not in ending_so)))
        return tuple(sorted((plan for plan in plans if plan.rows), key=lambda plan: keys.index(plan.rows[0])))
    return tuple(_sums(variant.table.counts, asked, variant.sizes))


def _sums(counts: Sequence[Count], asked: frozenset[str], sizes: Mapping[str, int]) -> Iterator[CountPlan]:
    """The counts that are asked and worked out from the sum of several others that are all asked."""
    for count in counts:
        total = count.made_from
        if total is None or "parts" not in total.formula.symbols:
            continue
        if count.key in asked and len(total.parts) > 1 and asked.issuperset(total.parts):
            factor = total.formula.substitute({"parts": Expression.number(1)}).size(sizes)
            yield CountPlan("parts", total.parts, count, factor)


def draw_counts(
    variant: Variant, answers: Answers, longest: Mapping[str, int] | None = None, *, tells_mismatches: bool = True
) -> tuple[Figure, ...]:
    """The bars of a sheet that counts, on a scale of its own each, which is true and not of square roots; plots first.

    `longest` is the number that fills the width, by the last row of the figure, where that is not its own largest.
    Without `tells_mismatches`, nothing is said of parts that do not add up, or of lines that meet elsewhere.
    """
    numbers = {
        blank.tensor: answer.value if isinstance(answer, Typed) else answer
        for blank, answer in answers.items()
        if blank.field == "count"
    }
    scales = longest or longest_bars(variant, answers)
    is_plotted = variant.table.key == "growth" and variant.worksheet.answers == "numbers"
    plotted = {key: number for key, number in numbers.items() if number}  # a logarithmic axis has no 0
    plots = (growth_plot(variant, plotted, tells_mismatches=tells_mismatches),) if is_plotted else ()
    bars = (
        _figure(variant, plan, numbers, scales[plan.rows[-1]], tells_mismatches=tells_mismatches)
        for plan in count_plans(variant)
    )
    return (*plots, *bars)


def longest_bars(variant: Variant, answers: Answers) -> dict[str, int]:
    """The number that fills the width of each figure, by the key of its last row."""
    numbers = {blank.tensor: answer.value if isinstance(answer, Typed) else answer for blank, answer in answers.items()}
    longest = dict[str, int]()
    for plan in count_plans(variant):
        lengths = [numbers.get(key, 0) for key in plan.rows]
        added = plan.factor * sum(numbers.get(key, 0) for key in plan.parts) if plan.whole else 0
        longest[plan.rows[-1]] = max(*lengths, added, 1)
    return longest


def _figure(
    variant: Variant, plan: CountPlan, numbers: Mapping[str, int], longest: int, *, tells_mismatches: bool
) -> Figure:
    """One figure: a bar for each row with its name on the left and its number on the right."""
    sketch, x, px = Sketch(), 0.0, LONGEST_PX / longest
    known = [numbers[key] * plan.factor for key in plan.parts if key in numbers]
    is_complete = plan.whole is not None and len(known) == len(plan.parts) and plan.whole.key in numbers
    differs = tells_mismatches and is_complete and sum(known) != numbers[plan.rows[-1]]
    for index, key in enumerate(plan.rows):
        is_part = plan.whole is not None and key != plan.whole.key
        length = numbers.get(key, 0) * (plan.factor if is_part else 1)
        box = Box(key, "", "hidden", x if is_part else 0.0, index * ROW_PX, UNKNOWN_PX, BAR_PX, incomplete=True)
        if key in numbers:
            box = Box(key, "", "hidden" if is_part or not plan.whole else "output", box.x, box.y, 0.0, BAR_PX)
            box = _with_width(box, max(MIN_PX, length * px))
        sketch.boxes.append(box)
        sketch.edges += _labels(
            variant,
            box,
            numbers,
            plan.factor if is_part else 1,
            outline_px=0.0 if is_part or not differs else sum(known) * px,
        )
        x += box.width if is_part else 0.0
    if differs:
        last = sketch.boxes[-1]
        sketch.outlines.append(Outline(0.0, last.y, sum(known) * px, BAR_PX))
    return _framed(variant, plan, sketch, numbers, differs=differs)


def _with_width(box: Box, width: float) -> Box:
    """The box with this width."""
    return Box(box.tensor, box.letter, box.role, box.x, box.y, width, box.height)


def _labels(
    variant: Variant, box: Box, numbers: Mapping[str, int], factor: int, *, outline_px: float
) -> tuple[Edge, Edge]:
    """The name on the left of all bars, with its factor, and the number on the right of this one or of its outline."""
    number = format_number(numbers[box.tensor]) if box.tensor in numbers else "?"
    times = f" × {factor}" if factor > 1 else ""
    kind: EdgeKind = "mismatch" if outline_px else "unknown" if number == "?" else "other"
    right, bottom = box.x + box.width, box.y + BAR_PX
    shift = max(0.0, outline_px - right)
    return (
        Edge(None, "left", 0.0, box.y, 0.0, bottom, "", "unknown", variant.row_name(box.tensor) + times),
        Edge(Blank(box.tensor, "count"), "right", right, box.y, right, bottom, number, kind, shift=shift),
    )


def _framed(variant: Variant, plan: CountPlan, sketch: Sketch, numbers: Mapping[str, int], *, differs: bool) -> Figure:
    """The figure with its texts."""
    say, whole = variant.wording.say, variant.row_name(plan.rows[-1])
    title = say("drawing-titles", plan.key, whole=whole)
    rows = ", ".join(
        f"{variant.row_name(key)} {format_number(numbers[key]) if key in numbers else '?'}" for key in plan.rows
    )
    x, y, width, height = frame_of(sketch)
    return Figure(
        key=plan.key,
        x=x,
        y=y,
        width=width,
        height=height,
        boxes=tuple(sketch.boxes),
        edges=tuple(sketch.edges),
        arcs=(),
        alt_text=f"{title}. {rows}.",
        captions=(say("captions", plan.key, whole=whole),),
        mismatches=(MismatchCaption(say("drawing", "parts", whole=whole), plan.rows),) if differs else (),
        outlines=tuple(sketch.outlines),
        has_scale=False,
    )
