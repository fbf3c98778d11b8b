"""Follow-through: answers that are wrong by the key but right given the student's own earlier answers.

The first mistake costs its box; what was worked out from it correctly costs nothing unless the activity marks
otherwise. Five ways of following are recognized: a length carried along an equation, a product of sides, a side that is
split or merged, a side that is joined from two, and a total of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from app.shapes.consistency import Values
from app.shapes.table import Blank, Count, Tensor
from app.topics.problem import Problem

WithinRounding = Callable[[Blank, int], bool]


def follow_through(
    problem: Problem, values: Values, within_rounding: WithinRounding = lambda _blank, _number: False
) -> dict[Blank, Blank | None]:
    """The wrong blanks that count as follow-through, each with the blank whose mistake it repeats.

    Example: queries 90 × 128 and keys 90 × 128 after an input of 100 rows: keys.rows repeats queries.rows, and scores
    of 90 × 90 follow, in both fields.
    """
    wrong = {blank: value for blank, value in values.items() if value != problem.answers[blank]}
    right_numbers = {value for blank, value in values.items() if blank not in wrong}
    counted = {
        **dict(_carried_lengths(problem.upstream_blanks, values, wrong)),
        **dict.fromkeys(_products_of_sides(problem, values, wrong, within_rounding)),
        **dict.fromkeys(_merged_and_split_sides(problem, values, wrong)),
        **dict.fromkeys(_joined_sides(problem, values, wrong)),
        **dict.fromkeys(_totals_of_parts(problem, values, wrong, within_rounding)),
    }
    return {blank: repeated for blank, repeated in counted.items() if right_numbers - {wrong[blank]}}


def _carried_lengths(
    upstream: Mapping[Blank, frozenset[Blank]], values: Values, wrong: Values
) -> Iterator[tuple[Blank, Blank | None]]:
    first_mistakes = list[Blank]()  # wrong, without following from another answer
    for blank, sources in upstream.items():  # in the order of computation
        if (value := wrong.get(blank)) is None:
            continue
        right_sources = {source for source in sources if source in values and source not in wrong}
        siblings = (mistake for mistake in first_mistakes if upstream[mistake] & right_sources)
        alike = [other for other in (*sorted(sources), *siblings) if wrong.get(other) == value]
        if not alike:
            first_mistakes.append(blank)
        elif any(values.get(source, value) != value for source in sources):
            yield blank, alike[0]  # another source of this box holds a different number
        else:
            yield blank, None


def _products_of_sides(
    problem: Problem, values: Values, wrong: Values, within_rounding: WithinRounding
) -> Iterator[Blank]:
    for blank in wrong:
        tensor = problem.table.askable[blank.tensor]
        if blank.field == "count" and isinstance(tensor, Tensor) and values.keys() >= set(tensor.sides):
            product = prod(values[side] for side in tensor.sides)
            if values[blank] == product or within_rounding(blank, product):
                yield blank


def _merged_and_split_sides(problem: Problem, values: Values, wrong: Values) -> Iterator[Blank]:
    for result, merged_sides in problem.table.merged_sides.items():
        for merged, parts in merged_sides.items():
            is_typed = merged in wrong and values.keys() >= set(parts)
            if not is_typed or values[merged] != prod(values[part] for part in parts):
                continue
            wrong_parts = [part for part in parts if part in wrong]
            if merged.tensor == result:
                yield merged
            elif len(wrong_parts) == 1:
                yield wrong_parts[0]


def _joined_sides(problem: Problem, values: Values, wrong: Values) -> Iterator[Blank]:
    for side, (first, second) in problem.table.joined_sides.items():
        if side in wrong and first in values and second in values and values[side] == values[first] + values[second]:
            yield side


def _totals_of_parts(
    problem: Problem, values: Values, wrong: Values, within_rounding: WithinRounding
) -> Iterator[Blank]:
    for blank, value in wrong.items():
        total = _total_as_typed(problem, values, blank)
        if total is not None and (value == total or within_rounding(blank, total)):
            yield blank


def _total_as_typed(problem: Problem, values: Values, blank: Blank) -> int | None:
    count = problem.table.askable[blank.tensor]
    if not isinstance(count, Count) or count.made_from is None:
        return None
    keys = [key for key in count.made_from.parts if key in problem.table.askable]
    typed = {key: _part_as_typed(problem, values, Blank(key, "count")) for key in keys}
    known = {key: number for key, number in typed.items() if number is not None}
    if not known or len(known) < len(keys):
        return None
    return count.made_from.number(problem.sizes, known)


def _part_as_typed(problem: Problem, values: Values, blank: Blank) -> int | None:
    if blank.tensor in problem.asked:
        return values.get(blank)
    count = problem.table.askable[blank.tensor]
    if isinstance(count, Count) and count.made_from:
        return _total_as_typed(problem, values, blank)
    return count.size("count", problem.sizes)
