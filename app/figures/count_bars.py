"""Bars for sheets that only count: parts to scale, each starting where the one above ends, and their total."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.figures.geometry import Point, Rect
from app.figures.growth_plot import growth_plot
from app.figures.parts import Box, Edge, EdgeKind, Figure, MismatchCaption, Sketch, side_ends
from app.figures.shapes import Answers
from app.shapes.table import Blank, Count
from app.sheets.answers import Answer
from app.sheets.variant import Variant
from app.topics.registry import TOPICS
from app.topics.topic import Bars

LONGEST_PX, UNKNOWN_PX, MIN_PX = 175.0, 24.0, 1.5
BAR_PX, ROW_PX = 15.0, 26.0
# How the keys of one kind of count end, the key of its figure, and the other kind's key.
KINDS_OF_COUNTS: Mapping[Bars, tuple[str, str, str]] = {
    "operations-and-bytes": ("_flops", "operations", "bytes"),
    "blocks-and-widths": ("_parameters", "blocks", "widths"),
}


@dataclass(frozen=True)
class CountPlan:
    """The counts in one figure: `parts` that add up, times `factor`, to `whole`; without `whole`, counts of
    one kind.
    """

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
    if variant.worksheet.answers == "letters":
        return ()
    if kinds := KINDS_OF_COUNTS.get(TOPICS[variant.worksheet.topic].bars):
        ending, first, second = kinds
        keys = [count.key for count in variant.table.counts if count.key in asked and count.key != "multiples"]
        of_first_kind = tuple(key for key in keys if key.endswith(ending))
        plans = (
            CountPlan(first, of_first_kind),
            CountPlan(second, tuple(key for key in keys if key not in of_first_kind)),
        )
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
    is_plotted = TOPICS[variant.worksheet.topic].bars == "sums-and-growth" and variant.worksheet.answers == "numbers"
    plots = (growth_plot(variant, numbers, shows_mismatches=shows_mismatches),) if is_plotted else ()
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
        frame=sketch.extent,
        alt_text=f"{words.title.format(whole=whole)}. {rows}.",
        captions=(words.caption.format(whole=whole),),
        mismatches=(MismatchCaption(variant.wording.say("drawing", "parts", whole=whole), plan.rows),)
        if differs
        else (),
        has_scale=False,
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
