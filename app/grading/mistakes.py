"""The mistakes of a sheet: the fewest that lead to exactly its wrong boxes.

Each costs one box; the others follow. A mistake is either a wrong number with all that follows from it, or a
misconception with all the boxes that it predicts. What follows from a number is the same number in boxes with the same
right answer, and the products, views and totals worked out from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, combinations, islice, product, takewhile
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from app.grading.follow_through import WithinRounding
from app.misconceptions.diagnosis import Diagnosis, worked_out_with_both
from app.misconceptions.predictions import PROBLEMS_REMEMBERED, Expectation, confirmed_expectations, expectations
from app.shapes.consistency import Values
from app.shapes.table import Blank, Count, FromParts, Tensor
from app.topics.problem import Problem

BOXES_PER_MISTAKE = 5  # typed boxes per mistake; with fewer, finding mistakes is guessing
BOXES_ELSEWHERE = 1  # other wrong boxes that may hold a number that a misconception explains
# How many ways of working a number out are tried per equation, and how many numbers are kept per quantity.
MOST_COMBINATIONS, MOST_NUMBERS = 64, 8
ROUNDS = 2  # passes through the equations; they are in order, so one is nearly always enough
BRANCHES = 3  # the most numbers that are worked out from the same one
STEPS_BACK = 3  # from a number back to its possible source

# What boxes ask for: all sides with the same right number ask for one quantity, and so do all counts. A count that is
# the same for every model, such as 2 times as many, is a quantity of its own.
Quantity = tuple[str, int] | Blank


@dataclass(frozen=True)
class Mistake:
    """One mistake: the box that it `costs`, and the `others` that it makes wrong, in the order of the sheet.

    `misconception` is its key if the mistake is a diagnosed misconception.
    """

    costs: Blank
    others: tuple[Blank, ...] = ()
    misconception: str = ""


@dataclass(frozen=True)
class _Equation:
    """How the number of `result` is worked out from the numbers of `given`; None if it isn't whole."""

    result: Blank
    given: tuple[Blank, ...]
    number: Callable[[Sequence[int]], int | None]

    def solved(self, numbers: Sequence[int], at: int, right: int, result: int) -> int | None:
        """The number at place `at` for which the equation gives `result`, or None."""

        def worked_out(number: int) -> int | None:
            return self.number([*numbers[:at], number, *numbers[at + 1 :]])

        step = max(right, 1)
        low, high = worked_out(step), worked_out(2 * step)
        if low is None or high is None or low == high:
            return None
        near = round(step + Fraction(result - low, high - low) * step)
        return next(
            (number for number in (near, near - 1, near + 1) if number >= 0 and worked_out(number) == result), None
        )


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _equations(problem: Problem) -> tuple[_Equation, ...]:
    table = problem.table
    equations = list[_Equation]()
    for key, row in table.askable.items():
        if isinstance(row, Tensor) and "count" in row.fields:
            equations.append(_Equation(Blank(key, "count"), row.sides, prod))
        elif isinstance(row, Count) and row.made_from:
            parts = tuple(part for part in row.made_from.parts if part in table.askable)
            total = _total(row.made_from, parts, problem.sizes)
            equations.append(_Equation(Blank(key, "count"), tuple(Blank(part, "count") for part in parts), total))
    for result, merged_sides in table.merged_sides.items():
        for merged, merged_parts in merged_sides.items():
            if merged.tensor == result:
                equations.append(_Equation(merged, merged_parts, prod))
            else:  # a side that is split
                for side in merged_parts:
                    others = tuple(other for other in merged_parts if other != side)
                    equations.append(_Equation(side, (merged, *others), _quotient))
    equations += [_Equation(side, joined, sum) for side, joined in table.joined_sides.items()]
    return tuple(equations)


def _total(
    made_from: FromParts, parts: tuple[str, ...], sizes: Mapping[str, int]
) -> Callable[[Sequence[int]], int | None]:
    return lambda numbers: made_from.number(sizes, dict(zip(parts, numbers, strict=True)))


def _quotient(numbers: Sequence[int]) -> int | None:
    divisor = prod(numbers[1:])
    return numbers[0] // divisor if divisor and numbers[0] % divisor == 0 else None


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _results(problem: Problem) -> Set[Quantity]:
    return {_quantities(problem)[equation.result] for equation in _equations(problem)}


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _right_numbers(problem: Problem) -> Mapping[Blank, int]:
    blanks = {blank for equation in _equations(problem) for blank in (equation.result, *equation.given)}
    rows = {**problem.table.by_key, **problem.table.askable}
    return {blank: rows[blank.tensor].size(blank.field, problem.sizes) for blank in (*problem.blanks, *blanks)}


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _quantities(problem: Problem) -> Mapping[Blank, Quantity]:
    rows = {**problem.table.by_key, **problem.table.askable}

    def quantity(blank: Blank, number: int) -> Quantity:
        if blank.field != "count":
            return ("side", number)
        return ("count", number) if rows[blank.tensor].expression("count").symbols else blank

    return {blank: quantity(blank, number) for blank, number in _right_numbers(problem).items()}


def find_mistakes(
    problem: Problem,
    values: Values,
    diagnosis: Diagnosis | None = None,
    within_rounding: WithinRounding = lambda _blank, _number: False,
    points: Mapping[Blank, int] = MappingProxyType({}),
) -> tuple[Mistake, ...]:
    """The fewest mistakes that lead to the wrong `values`, in the order of the boxes that they cost."""
    wrong = {b: values[b] for b in problem.blanks if b in values and values[b] != problem.answers[b]}
    if not wrong:
        return ()
    if len(wrong) == 1:
        return (Mistake(next(iter(wrong))),)
    sheet = _Sheet(problem, values, wrong, within_rounding)
    best = sheet.best_causes((diagnosis.key, *diagnosis.also) if diagnosis else (), points)
    mistakes = sheet.mistakes(best or sheet.each_box_alone(), points)
    if not (best and diagnosis and best.misconceptions == {diagnosis.key, *diagnosis.also}):
        mistakes = [replace(mistake, misconception="") for mistake in mistakes]
    return tuple(sorted(mistakes, key=lambda mistake: problem.blanks.index(mistake.costs)))


class _Given(NamedTuple):
    """A wrong number for a quantity, and the boxes that have it; it may show only in what follows from it."""

    quantity: Quantity
    number: int
    boxes: tuple[Blank, ...] = ()


@dataclass(frozen=True)
class _Causes:
    """Causes of the wrong boxes: misconceptions `held`, and wrong numbers `given` in boxes that these don't explain."""

    held: tuple[Expectation, ...]
    given: tuple[_Given, ...]

    @property
    def number(self) -> int:
        return len(self.held) + len(self.given)

    @property
    def misconceptions(self) -> frozenset[str]:
        return frozenset(expectation.misconception for expectation in self.held)


@dataclass(frozen=True, eq=False)
class _Sheet:
    """The answers to a problem: all typed values, and the wrong ones."""

    problem: Problem
    values: Values
    wrong: Values
    within_rounding: WithinRounding

    def best_causes(self, diagnosed: Sequence[str], points: Mapping[Blank, int]) -> _Causes | None:
        """The fewest causes that explain all wrong boxes or, if boxes have `points`, the cheapest."""
        best: _Causes | None = None
        most = -(-len(self.values) // BOXES_PER_MISTAKE) if len(set(self.values.values())) > 1 else 0
        candidates = self._candidates(self.values)
        known = product(*([each for each in candidates if each.misconception == key] for key in diagnosed))
        others = takewhile(lambda held: len(held) <= most, self.held_at_once(candidates))
        for held in chain(known if diagnosed else (), others):
            causes = self.causes(held, most)
            if causes and not points:
                best, most = causes, causes.number - 1
            elif causes and (best is None or self.lost(causes, points) < self.lost(best, points)):
                best = causes
            if most == 0:
                break
        return best

    def lost(self, causes: _Causes, points: Mapping[Blank, int]) -> int:
        return sum(points.get(mistake.costs, 1) for mistake in self.mistakes(causes, points))

    def held_at_once(self, candidates: Sequence[Expectation]) -> Iterator[tuple[Expectation, ...]]:
        """Yield the misconceptions that may be held at once: none, one or two candidates."""
        yield ()
        yield from ((expectation,) for expectation in candidates)
        yield from combinations(candidates, 2)
        for transposing in (expectation for expectation in candidates if expectation.transposed):
            back = {_meant(blank, transposing): number for blank, number in self.values.items()}
            yield from ((transposing, each) for each in self._candidates(back) if each not in candidates)

    def _candidates(self, values: Values) -> list[Expectation]:
        right = self.problem.answers.items() & values.items()
        corrected = {blank for blank, _number in right}
        confirmed = confirmed_expectations(self.problem, dict(values.items() - right))
        moving = [
            (e, frozenset[Blank]()) for e in expectations(self.problem) if len(e.transposed) > 1 or "*" in e.transposed
        ]
        candidates = {
            id(e): e
            for e, explained in (*confirmed, *moving)
            if len(explained) + len(corrected & e.wrong_answers.keys()) > 1
        }
        return list(candidates.values())

    def causes(self, held: tuple[Expectation, ...], most: int) -> _Causes | None:
        """The causes of the wrong boxes if exactly these misconceptions are held; None for more than `most` causes."""
        explained = self.explained_by(held)
        transposing = next((e for e in held if e.transposed), None)
        boxes = dict[tuple[Quantity, int], list[Blank]]()
        silent, quantities, results = self.silent(transposing, held), _quantities(self.problem), _results(self.problem)
        for blank, number in self.wrong.items():
            if blank not in explained:
                meant = _meant(blank, transposing) if transposing else blank
                boxes.setdefault((blank if blank in silent else quantities[meant], number), []).append(blank)
        certain = sum(quantity not in results for quantity, _number in boxes)
        if len(held) + certain > most:
            return None
        given = [_Given(*each, tuple(blanks)) for each, blanks in boxes.items()]
        has_totals = certain < len(given)
        expected = [number for each in held for number in self.expected_by(each, ("count",))] if has_totals else []
        causes = _Causes(held, self.fewest(given, expected, silent, most))
        return causes if causes.number <= most else None

    def each_box_alone(self) -> _Causes:
        """The causes without misconceptions: each wrong box is one, except a total that follows."""
        given = [_Given(self.quantity(blank), number, (blank,)) for blank, number in self.wrong.items()]
        rows = self.problem.table.askable
        totals = {key for key, row in rows.items() if isinstance(row, Count) and row.made_from}
        silent = self.silent(None, ()) | {blank for blank in self.wrong if blank.tensor not in totals}
        return _Causes((), self.fewest(given, [], silent, len(given)))

    def expected_by(self, held: Expectation, fields: Sequence[str] | None = None) -> list[_Given]:
        """The wrong numbers that a misconception predicts for boxes with one of these fields (None: any field)."""
        typed_otherwise = {blank for blank, _number in self.wrong.items() - held.wrong_answers.items()}
        return [
            _Given(self.quantity(blank), number)
            for blank, number in held.wrong_answers.items()
            if blank not in typed_otherwise and (fields is None or blank.field in fields)
        ]

    def explained_by(self, held: tuple[Expectation, ...]) -> dict[Blank, Expectation]:
        """The wrong blanks that misconceptions held at once explain, each with the first that does."""
        explained = dict[Blank, Expectation]()
        for expectation in held:
            for blank, _number in expectation.wrong_answers.items() & self.wrong.items():
                explained.setdefault(blank, expectation)
            for transposing in (e for e in held if e.transposed and e is not expectation):
                for blank, number in self.wrong.items():
                    if expectation.wrong_answers.get(_meant(blank, transposing)) == number:
                        explained.setdefault(blank, expectation)
        if len(held) > 1:
            both = worked_out_with_both(self.problem, self.wrong, *held)
            explained.update((blank, held[0]) for blank in both if blank not in explained)
        left = [number for blank, number in self.wrong.items() if blank not in explained] if explained else []
        return {blank: e for blank, e in explained.items() if left.count(self.wrong[blank]) <= BOXES_ELSEWHERE}

    def silent(self, transposing: Expectation | None, held: Iterable[Expectation]) -> Set[Blank]:
        """The wrong blanks whose number earns nothing by following."""
        sure = self._right_numbers
        if len(sure) <= 1:  # otherwise there is a right number besides the typed ones
            sure = sure.union(given.number for each in held for given in self.expected_by(each))
        moved = transposing.transposed if transposing else ()
        if (moved, sure) not in self._silent:
            quantities = {b: self.quantity(_meant(b, transposing) if transposing else b) for b in self.wrong}
            places = defaultdict[int, set[Quantity]](set)
            for blank, number in self.wrong.items():
                places[number].add(quantities[blank])
            self._silent[moved, sure] = {
                blank for blank, number in self.wrong.items() if not sure - {number} or len(places[number]) > 1
            }
        return self._silent[moved, sure]

    @cached_property
    def _right_numbers(self) -> frozenset[int]:
        return frozenset(number for blank, number in self.values.items() if blank not in self.wrong)

    @cached_property
    def _silent(self) -> dict[tuple[tuple[str, ...], frozenset[int]], Set[Blank]]:
        return {}

    def quantity(self, blank: Blank) -> Quantity:
        """The quantity that a blank asks for: all sides, or all counts, with the same right number."""
        return _quantities(self.problem)[blank]

    def fewest(self, given: list[_Given], free: Sequence[_Given], silent: Set[Blank], most: int) -> tuple[_Given, ...]:
        """The given numbers without the ones that follow from others or from `free` ones."""
        kept = self._without_following(given, free, silent)
        while 1 < len(kept) <= most + BRANCHES and (fewer := self._with_hidden(kept, free, silent)):
            kept = fewer
        return tuple(kept)

    def _without_following(self, given: list[_Given], free: Sequence[_Given], silent: Set[Blank]) -> list[_Given]:
        kept = given
        for each in self._following(given, (*given, *free), silent):
            others = [other for other in kept if other is not each]
            if self._following([each], (*others, *free), silent):
                kept = others
        return kept

    def _following(self, given: Iterable[_Given], sources: Iterable[_Given], silent: Set[Blank]) -> list[_Given]:
        results = _results(self.problem)
        possible = [each for each in given if each.quantity in results and silent.isdisjoint(each.boxes)]
        worked_out = self.led_to(sources) if possible else {}
        return [each for each in reversed(possible) if self.is_among(each, worked_out)]

    def _with_hidden(self, kept: list[_Given], free: Sequence[_Given], silent: Set[Blank]) -> list[_Given]:
        frontier = [each for each in kept if each.quantity in _results(self.problem) and silent.isdisjoint(each.boxes)]
        tried = set[_Given]()
        for _step in range(STEPS_BACK if len(frontier) > 1 else 0):
            frontier = [hidden for hidden in dict.fromkeys(chain(*map(self._sources, frontier))) if hidden not in tried]
            tried.update(frontier)
            for hidden in frontier:
                if len(self._following(kept, (hidden, *kept, *free), silent)) > 1:
                    fewer = [hidden, *self._without_following(kept, [hidden, *free], silent)]
                    if len(fewer) < len(kept):
                        return fewer
        return []

    def _sources(self, given: _Given) -> Iterator[_Given]:
        right = _right_numbers(self.problem)
        for equation in _equations(self.problem):
            if equation.result.field != "count" or self.quantity(equation.result) != given.quantity:
                continue  # only counts share a source with other numbers
            for numbers in ([right[b] for b in equation.given], [self.values.get(b, right[b]) for b in equation.given]):
                for at, blank in enumerate(equation.given):
                    number = equation.solved(numbers, at, right[blank], given.number)
                    if number is not None and number != right[blank]:
                        yield _Given(self.quantity(blank), number)

    def led_to(self, given: Iterable[_Given]) -> Mapping[Quantity, Set[int]]:
        """The wrong numbers that equations make of the given ones, by quantity."""
        right, quantities = _right_numbers(self.problem), _quantities(self.problem)
        known = defaultdict[Quantity, dict[int, None]](dict)  # a dict for its order: given numbers first
        for each in given:
            known[quantities[each.quantity] if isinstance(each.quantity, Blank) else each.quantity][each.number] = None
        worked_out = defaultdict[Quantity, set[int]](set)
        for _round in range(ROUNDS):
            for equation in _equations(self.problem):
                options = [[*known[quantities[b]], right[b]] for b in equation.given]
                if all(len(numbers) == 1 for numbers in options):
                    continue
                result = quantities[equation.result]
                for numbers in islice(product(*options), MOST_COMBINATIONS):
                    number = equation.number(numbers)
                    if number is not None and number != right[equation.result]:
                        worked_out[result].add(number)
                        if len(known[result]) < MOST_NUMBERS:
                            known[result][number] = None
        return worked_out

    def is_among(self, given: _Given, numbers: Mapping[Quantity, Set[int]]) -> bool:
        """Whether the given number, exact or rounded, is one of `numbers` for its quantity."""
        some = numbers.get(given.quantity, frozenset())
        return given.number in some or any(self.within_rounding(b, n) for b in given.boxes for n in some)

    def mistakes(self, causes: _Causes, points: Mapping[Blank, int]) -> list[Mistake]:
        """The causes as mistakes, misconceptions first; a cause without a box is left out."""
        explained = self.explained_by(causes.held)
        groups: list[list[Blank]] = [
            *([blank for blank in explained if explained[blank] is each] for each in causes.held),
            *(list(each.boxes) for each in causes.given),
        ]
        seeds = [*(self.expected_by(each) for each in causes.held), *([each] for each in causes.given)]
        for at, each in enumerate(causes.held):
            if not groups[at]:  # a transposing one, where others explain its boxes: the boxes that it moves
                _move_one(each, groups, at)
        ungrouped = self.wrong.keys() - {blank for group in groups for blank in group}
        led_to = [self.led_to(each) for each in seeds] if ungrouped else []
        for blank in sorted(ungrouped, key=self.problem.blanks.index):
            given = _Given(self.quantity(blank), self.wrong[blank], (blank,))
            groups[next((at for at, numbers in enumerate(led_to) if self.is_among(given, numbers)), 0)].append(blank)
        keys = [*(each.misconception for each in causes.held), *("" for _each in causes.given)]
        return [self.mistake(key, group, points) for key, group in zip(keys, groups, strict=True) if group]

    def mistake(self, misconception: str, group: Iterable[Blank], points: Mapping[Blank, int]) -> Mistake:
        boxes = sorted(group, key=self.problem.blanks.index)
        costs = max(boxes, key=lambda blank: points.get(blank, 1))
        return Mistake(costs, tuple(blank for blank in boxes if blank != costs), misconception)


def _meant(blank: Blank, transposing: Expectation) -> Blank:
    tensors = transposing.transposed
    return blank.transposed if blank.tensor in tensors or "*" in tensors else blank


def _move_one(transposing: Expectation, groups: Sequence[list[Blank]], to: int) -> None:
    for group in groups:
        moved = [blank for blank in group if _meant(blank, transposing) != blank]
        if moved and len(group) > 1:
            group.remove(moved[-1])
            groups[to].append(moved[-1])
            return
