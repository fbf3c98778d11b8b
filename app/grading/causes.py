"""The causes of a sheet's wrong boxes: each costs one box, and the other boxes that it explains follow.

A cause is a misconception, with the boxes that it predicts; sides in the wrong order, wherever the same two are; or a
wrong number in place of a right one, with all that is worked out from it. Of the ways to explain a sheet, the one that
loses least counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, combinations, islice, permutations, product
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from app.misconceptions.diagnosis import Diagnosis, worked_out_with_both
from app.misconceptions.predictions import PROBLEMS_REMEMBERED, Expectation, confirmed_expectations, expectations
from app.shapes.consistency import Values
from app.shapes.table import DIMENSIONS, Blank, Count, FromParts, Tensor
from app.topics.problem import Problem

# One cause for so many typed boxes, rounded up, is likely; more are a guess. For each more, two boxes stop following. A
# typo, a number that is nowhere else on the sheet, isn't counted, so it costs its own box and no other.
BOXES_PER_CAUSE = 5
LOST_PER_GUESS = 2
# A number in place of several right ones explains nothing, unless most of its boxes, six to one, are for one of these.
BOXES_PER_STRAY = 5
STRAYS = 1  # other wrong boxes that may hold a number that a misconception explains
MOST_PAIRED = 6  # misconceptions that are tried in pairs
# How many ways of working a number out are tried per equation, and how many numbers are kept per quantity.
MOST_COMBINATIONS, MOST_NUMBERS = 32, 8
ROUNDS = 2  # passes through the equations; they are in order, so one is nearly always enough
STEPS_BACK, MOST_SOURCES = 3, 16  # from a number back to its possible sources, and how many are tried in each step

# What boxes ask for: all sides with the same right number ask for one quantity, and so do all counts. A count that is
# the same for every model, such as 2 times as many, is a quantity of its own. Sides in the wrong order are also one.
Quantity = tuple[str, int] | Blank | Set[int]
WithinRounding = Callable[[Blank, int], bool]


@dataclass(frozen=True)
class Cause:
    """The box that a cause `costs`, and the `others` that follow, in the order of the sheet.

    `misconception` is its key if the cause is a diagnosed misconception.
    """

    costs: Blank
    others: tuple[Blank, ...] = ()
    misconception: str = ""


def find_causes(
    problem: Problem,
    values: Values,
    diagnosis: Diagnosis | None = None,
    within_rounding: WithinRounding = lambda _blank, _number: False,
    points: Mapping[Blank, int] = MappingProxyType({}),
) -> tuple[Cause, ...]:
    """The causes of the wrong `values` with which the sheet loses least, in the order of the boxes that they cost."""
    wrong = {b: values[b] for b in problem.blanks if b in values and values[b] != problem.answers[b]}
    if len(wrong) < 2 or len(set(values.values())) == 1:  # the same number everywhere is a guess
        return tuple(map(Cause, wrong))
    diagnosed = (diagnosis.key, *diagnosis.also) if diagnosis else ()
    sheet = _Sheet(problem, values, wrong, within_rounding, points)
    best = sheet.best_explanation(diagnosed)
    is_diagnosed = {each.misconception for each in best.held} == {*diagnosed}
    causes = list[Cause]()
    for group in best.groups:
        boxes = sorted(group.boxes, key=problem.blanks.index)
        costs = max(boxes, key=sheet.worth)  # the first of the dearest
        others = tuple(blank for blank in boxes if blank != costs)
        causes.append(Cause(costs, others, group.misconception if is_diagnosed else ""))
    return tuple(sorted(causes, key=lambda cause: problem.blanks.index(cause.costs)))


def worked_out(
    problem: Problem, values: Values, within_rounding: WithinRounding = lambda _blank, _number: False
) -> frozenset[Blank]:
    """The wrong blanks that are right given the student's other answers."""
    wrong = {b: number for b, number in values.items() if number != problem.answers[b]}
    right_numbers = {number for blank, number in values.items() if blank not in wrong}
    sources = dict[Blank, Set[Blank]]()  # of the blanks found, all wrong ones that they come from

    def add(blank: Blank, given: Set[Blank]) -> None:
        known = given & wrong.keys()
        sources[blank] = known.union(*(sources[source] for source in known & sources.keys()))

    for blank, upstream in problem.upstream_blanks.items():
        typed = upstream & values.keys()
        if blank in wrong and typed & wrong.keys() and {values[source] for source in typed} == {wrong[blank]}:
            add(blank, typed)
    # What isn't asked is worked out from what is typed.
    known = {**{b: n for b, n in _right_numbers(problem).items() if b.tensor not in problem.asked}, **values}
    for equation in _equations(problem):
        result, given = equation.result, equation.given
        number = equation.number([known[b] for b in given]) if known.keys() >= {*given} else None
        if result.tensor not in problem.asked:
            known.pop(result)
            if number is not None:
                known[result] = number
            continue
        if number is None or result not in wrong or any(result in sources.get(blank, ()) for blank in given):
            continue
        if wrong[result] == number or within_rounding(result, number):
            add(result, {*given})
    return frozenset(blank for blank in sources if right_numbers - {wrong[blank]})


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


class _Given(NamedTuple):
    """A wrong number for a quantity, and the boxes that have it; it may show only in what follows from it."""

    quantity: Quantity
    number: int
    boxes: tuple[Blank, ...] = ()


class _Group(NamedTuple):
    """The boxes with one cause, the wrong numbers that it gives, and the key of the misconception that it is."""

    boxes: list[Blank]
    gives: Sequence[_Given]
    misconception: str = ""


class _Explanation(NamedTuple):
    """The causes if these misconceptions are held, and the points that they cost."""

    held: tuple[Expectation, ...]
    groups: list[_Group]
    lost: int


class _Sheet:
    """The answers to a problem: all typed values, and the wrong ones."""

    def __init__(
        self,
        problem: Problem,
        values: Values,
        wrong: Values,
        within_rounding: WithinRounding,
        points: Mapping[Blank, int],
    ) -> None:
        self.problem, self.values, self.wrong = problem, values, wrong
        self.within_rounding, self.points = within_rounding, points
        self.right = _right_numbers(problem)
        self.most = -(-len(values) // BOXES_PER_CAUSE)
        self._times = Counter([*values.values(), *problem.answers.values()])

    def worth(self, blank: Blank) -> int:
        return self.points.get(blank, 1)

    def best_explanation(self, diagnosed: Sequence[str]) -> _Explanation:
        """The explanation that loses least; of equals, the diagnosed one, else the first."""
        candidates = self._candidates(self.values)
        known = product(*([each for each in candidates if each.misconception == key] for key in diagnosed))
        ways = chain(known if diagnosed else (), self._held_at_once(candidates))
        best = self.explanation(next(ways))
        for held in ways:
            if self._least_lost(held) < best.lost:
                best = min(best, self.explanation(held), key=lambda each: each.lost)
        return best

    def _held_at_once(self, candidates: Sequence[Expectation]) -> Iterator[tuple[Expectation, ...]]:
        yield ()
        yield from ((expectation,) for expectation in candidates)
        yield from combinations(candidates[:MOST_PAIRED], 2)
        for transposing in (expectation for expectation in candidates if expectation.transposed):
            back = {_meant(blank, transposing): number for blank, number in self.values.items()}
            others = [each for each in self._candidates(back) if each not in candidates]
            yield from ((transposing, each) for each in others[:MOST_PAIRED])

    def _candidates(self, values: Values) -> list[Expectation]:
        """The misconceptions that may explain several wrong boxes, those that explain most first."""
        right = self.problem.answers.items() & values.items()
        corrected = {blank for blank, _number in right}
        explained = {id(each): (each, 0) for each in expectations(self.problem) if _moves_several(each)}
        for each, blanks in confirmed_expectations(self.problem, dict(values.items() - right)):
            explained[id(each)] = each, len(blanks)
        several = [
            (each, boxes)
            for each, boxes in explained.values()
            if boxes + len(corrected & each.wrong_answers.keys()) > 1
        ]
        return [each for each, _boxes in sorted(several, key=lambda one: -one[1])]

    def _least_lost(self, held: tuple[Expectation, ...]) -> int:
        """A bound that is quick to find: one box for each misconception, and one for each other wrong size."""
        if self.points:
            return 0
        if any(each.transposed for each in held):
            return len(held)
        predicted = {blank for each in held for blank in each.wrong_answers}
        return len(held) + len({given for blank, given in self._certain.items() if blank not in predicted})

    @cached_property
    def _certain(self) -> Mapping[Blank, tuple[Quantity, int]]:
        """The wrong boxes whose numbers don't follow from others, each with its quantity and number."""
        given = {blank: (self._quantity(blank, blank), number) for blank, number in self.wrong.items()}
        return {blank: each for blank, each in given.items() if each[0] not in _results(self.problem)}

    @cached_property
    def _swapped(self) -> Mapping[Blank, Set[int]]:
        """The wrong sides in each other's place, with their right numbers; one of two may be right already."""
        directions = defaultdict[Set[int], dict[Blank, int]](dict)
        for key in dict.fromkeys(blank.tensor for blank in self.wrong if blank.field in DIMENSIONS):
            for one, other in permutations((b for b in self.values if b.tensor == key), 2):
                numbers = self.right[one], self.right[other]
                if self.values[one] == numbers[1] != numbers[0] and self.values[other] in numbers:
                    directions[frozenset(numbers)][one] = numbers[1]
        return {b: pair for pair, boxes in directions.items() if pair == {*boxes.values()} for b in boxes}

    def _quantity(self, blank: Blank, meant: Blank) -> Quantity:
        """What a box asks for whose number was meant for `meant`."""
        return self._swapped[blank] if blank == meant and blank in self._swapped else _quantities(self.problem)[meant]

    def explanation(self, held: tuple[Expectation, ...]) -> _Explanation:
        """The causes if exactly these misconceptions are held."""
        predicted = self._predicted(held)
        given = self._given(held, predicted)
        silent = self._silent(held, given)
        explaining = set(map(id, predicted.values()))  # a misconception that explains no box gives no number
        expected = [self._expected(each) if id(each) in explaining else [] for each in held]
        free = [*chain(*expected)] if any(each.quantity in _results(self.problem) for each in given) else []
        kept = self._with_hidden(self._without_following(given, free, silent), free, silent)
        groups = [
            _Group([blank for blank in predicted if predicted[blank] is each], numbers, each.misconception)
            for each, numbers in zip(held, expected, strict=True)
        ]
        for each in kept:
            together = [[*each.boxes]] if silent.isdisjoint(each.boxes) else [[blank] for blank in each.boxes]
            groups += [_Group(boxes, [each]) for boxes in together]
        groups = self._paid(groups)
        self._add_following(groups)
        return _Explanation(held, groups, sum(max(map(self.worth, group.boxes)) for group in groups))

    def _paid(self, groups: Iterable[_Group]) -> list[_Group]:
        """The groups, with boxes taken out, of the smallest first, if there are too many causes."""
        groups = sorted((group for group in groups if group.boxes), key=lambda group: len(group.boxes))
        causes = sum(len(group.boxes) > 1 or not self._is_typo(group.boxes[0]) for group in groups)
        to_pay = LOST_PER_GUESS * max(causes - self.most, 0)
        paid = list[_Group]()
        for group in groups:
            now = min(to_pay, len(group.boxes) - 1)
            to_pay -= now
            paid += [_Group([blank], group.gives) for blank in group.boxes[:now]]
            paid.append(group._replace(boxes=group.boxes[now:]))
        return paid

    def _is_typo(self, blank: Blank) -> bool:
        """Whether the number is nowhere else on the sheet."""
        return self._times[self.wrong[blank]] == 1

    def _predicted(self, held: tuple[Expectation, ...]) -> dict[Blank, Expectation]:
        """The wrong blanks that misconceptions held at once explain, each with the first that does."""
        predicted = dict[Blank, Expectation]()
        for expectation in held:
            others = [each for each in held if each.transposed and each is not expectation]
            for blank, number in self.wrong.items():
                places = [blank, *(_meant(blank, transposing) for transposing in others)]
                if any(expectation.wrong_answers.get(place) == number for place in places):
                    predicted.setdefault(blank, expectation)
        if len(held) > 1:
            for blank in worked_out_with_both(self.problem, self.wrong, *held):
                predicted.setdefault(blank, held[0])
        left = [number for blank, number in self.wrong.items() if blank not in predicted]
        return {blank: e for blank, e in predicted.items() if left.count(self.wrong[blank]) <= STRAYS}

    def _given(self, held: Iterable[Expectation], predicted: Iterable[Blank]) -> list[_Given]:
        """The wrong numbers that no misconception predicts, with the boxes that have them."""
        transposing = next((each for each in held if each.transposed), None)
        boxes = defaultdict[tuple[Quantity, int], list[Blank]](list)
        for blank in (each for each in self.wrong if each not in predicted):
            meant = _meant(blank, transposing) if transposing else blank
            quantity = self._quantity(blank, meant)
            boxes[quantity, 0 if isinstance(quantity, frozenset) else self.wrong[blank]].append(blank)
        return [_Given(*each, tuple(blanks)) for each, blanks in boxes.items()]

    def _expected(self, held: Expectation) -> list[_Given]:
        """The wrong numbers that a misconception predicts, unless something else is typed there."""
        typed_otherwise = {blank for blank, _number in self.wrong.items() - held.wrong_answers.items()}
        return [
            _Given(_quantities(self.problem)[blank], number)
            for blank, number in held.wrong_answers.items()
            if blank not in typed_otherwise
        ]

    def _silent(self, held: Iterable[Expectation], given: Iterable[_Given]) -> Set[Blank]:
        """The wrong blanks whose number earns nothing by following."""
        sure = {number for blank, number in self.values.items() if blank not in self.wrong}
        if len(sure) < 2:  # otherwise there is a right number besides each typed one
            sure |= {expected.number for each in held for expected in self._expected(each)}
        silent = {blank for blank, number in self.wrong.items() if sure <= {number}}
        places = defaultdict[int, list[Sequence[Blank]]](list)
        for each in given:
            if not isinstance(each.quantity, frozenset):
                places[each.number].append(each.boxes)
        for several in places.values():  # a number in place of several right ones
            largest = max(several, key=len)
            others = [blank for boxes in several if boxes is not largest for blank in boxes]
            silent.update(others if BOXES_PER_STRAY * len(others) < len(largest) else (*others, *largest))
        return silent

    def _without_following(self, given: list[_Given], free: Sequence[_Given], silent: Set[Blank]) -> list[_Given]:
        """The given numbers without those that follow from the others, or from `free` ones."""
        kept = given
        for each in self._following(given, (*given, *free), silent):
            others = [other for other in kept if other is not each]
            if self._following([each], (*others, *free), silent):
                kept = others
        return kept

    def _following(self, given: Iterable[_Given], sources: Iterable[_Given], silent: Set[Blank]) -> list[_Given]:
        results = _results(self.problem)
        possible = [each for each in given if each.quantity in results and silent.isdisjoint(each.boxes)]
        worked_out = self._led_to(sources) if possible else {}
        return [each for each in reversed(possible) if self._is_among(each, worked_out)]

    def _with_hidden(self, kept: list[_Given], free: Sequence[_Given], silent: Set[Blank]) -> list[_Given]:
        """The given numbers with a hidden one in place of several that follow from it."""
        while len(kept) > 1 and (fewer := self._with_one_hidden(kept, free, silent)):
            kept = fewer
        return kept

    def _with_one_hidden(self, kept: list[_Given], free: Sequence[_Given], silent: Set[Blank]) -> list[_Given]:
        results = _results(self.problem)
        frontier = [each for each in kept if each.quantity in results and silent.isdisjoint(each.boxes)]
        tried = set[_Given]()
        for _step in range(STEPS_BACK if len(frontier) > 1 else 0):
            sources = dict.fromkeys(chain.from_iterable(map(self._sources, frontier)))
            frontier = list(islice((source for source in sources if source not in tried), MOST_SOURCES))
            tried.update(frontier)
            for hidden in frontier:
                if len(self._following(kept, (hidden, *kept, *free), silent)) > 1:
                    others = self._without_following(kept, [hidden, *free], silent)
                    if len(others) < len(kept) - 1:
                        boxes = chain.from_iterable(each.boxes for each in kept if each not in others)
                        return [hidden._replace(boxes=tuple(boxes)), *others]
        return []

    def _sources(self, given: _Given) -> Iterator[_Given]:
        quantities = _quantities(self.problem)
        for equation in _equations(self.problem):
            if equation.result.field != "count" or quantities[equation.result] != given.quantity:
                continue  # only counts share a source with other numbers
            right = [self.right[b] for b in equation.given]
            for numbers in (right, [self.values.get(b, self.right[b]) for b in equation.given]):
                for at, blank in enumerate(equation.given):
                    number = equation.solved(numbers, at, self.right[blank], given.number)
                    if number is not None and number != self.right[blank]:
                        yield _Given(quantities[blank], number)

    def _led_to(self, given: Iterable[_Given]) -> Mapping[Quantity, Set[int]]:
        """The wrong numbers that equations make of the given ones, by quantity."""
        quantities = _quantities(self.problem)
        known = defaultdict[Quantity, dict[int, None]](dict)  # a dict for its order: given numbers first
        for each in given:
            known[each.quantity][each.number] = None
        worked_out = defaultdict[Quantity, set[int]](set)
        for _round in range(ROUNDS):
            for equation in _equations(self.problem):
                options = [[*known[quantities[b]], self.right[b]] for b in equation.given]
                if all(len(numbers) == 1 for numbers in options):
                    continue
                result = quantities[equation.result]
                for numbers in islice(product(*options), MOST_COMBINATIONS):
                    number = equation.number(numbers)
                    if number is not None and number != self.right[equation.result]:
                        worked_out[result].add(number)
                        if len(known[result]) < MOST_NUMBERS:
                            known[result][number] = None
        return worked_out

    def _is_among(self, given: _Given, numbers: Mapping[Quantity, Set[int]]) -> bool:
        """Whether the given number, exact or rounded, is one of `numbers` for its quantity."""
        some = numbers.get(given.quantity, frozenset())
        return given.number in some or any(self.within_rounding(b, n) for b in given.boxes for n in some)

    def _add_following(self, groups: Sequence[_Group]) -> None:
        """Add each box without a group to the first group that leads to its number, or to the first."""
        grouped = {blank for group in groups for blank in group.boxes}
        left = [blank for blank in self.wrong if blank not in grouped]
        numbers = [self._led_to(group.gives) for group in groups] if left else []
        for blank in left:
            given = _Given(_quantities(self.problem)[blank], self.wrong[blank], (blank,))
            at = next((at for at, some in enumerate(numbers) if self._is_among(given, some)), 0)
            groups[at].boxes.append(blank)


def _moves_several(expectation: Expectation) -> bool:
    return len(expectation.transposed) > 1 or "*" in expectation.transposed


def _meant(blank: Blank, transposing: Expectation) -> Blank:
    tensors = transposing.transposed
    return blank.transposed if blank.tensor in tensors or "*" in tensors else blank
