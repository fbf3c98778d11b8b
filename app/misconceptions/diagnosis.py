"""Which one or two misconceptions explain a whole sheet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

from app.misconceptions.predictions import Expectation, confirmed_expectations, expectations
from app.misconceptions.slips import is_single_slip, is_slip_in
from app.shapes.consistency import Values
from app.shapes.table import Blank
from app.topics.problem import Problem

# The cost of each in a fit. Two misconceptions that leave nothing open are likelier than one that predicts a wrong
# number where the right one is. A blank that follows from a slip is cheap but not free, because a misconception that
# explains both is likelier.
FOLLOWING_COST = 0.6
SLIP_COST, SECOND_MISCONCEPTION_COST, CONTRADICTED_COST, UNEXPLAINED_COST = 1.0, 1.5, 1.6, 2.0


@dataclass(frozen=True)
class Diagnosis:
    """The misconception that explains a sheet, the wrong blanks that it explains, and in `also` a second one,
    if any.
    """

    key: str
    explains: tuple[Blank, ...]
    also: tuple[str, ...] = ()
    message: str = ""
    about: tuple[Blank, ...] = ()


@dataclass(frozen=True)
class _Answers:
    """The answers to a problem: all typed values, the wrong ones, and which of these follow from other answers."""

    problem: Problem
    values: Values
    wrong: Values
    following: frozenset[Blank] = frozenset()

    @property
    def candidates(self) -> list[tuple[Expectation, frozenset[Blank]]]:
        """The expectations that explain a wrong blank not following from others, with the blanks explained."""
        confirmed = confirmed_expectations(self.problem, self.wrong)
        return [
            (e, explained)
            for e, explained in confirmed
            if not explained <= self.following and _can_be_said(e, self.problem, self.values)
        ]


@dataclass(frozen=True)
class _Fit:
    """How well misconceptions held together explain a sheet: what they explain, and at what cost.

    `unseen` counts predicted wrong numbers that the answers don't show.
    """

    held: tuple[Expectation, ...]
    explained: frozenset[Blank]
    cost: float
    unseen: int

    @property
    def misconceptions(self) -> frozenset[str]:
        """The keys of the misconceptions held."""
        return frozenset(expectation.misconception for expectation in self.held)

    @property
    def rank(self) -> tuple[float, int, int, int]:
        """A sort key, smallest first: lower cost, then fewer misconceptions, more blanks explained, fewer unseen."""
        return (self.cost, len(self.held), -len(self.explained), self.unseen)


def diagnose(problem: Problem, values: Values, following: Collection[Blank] = ()) -> Diagnosis | None:
    """The one or two misconceptions that best explain the typed `values`, or None."""
    wrong = {blank: number for blank, number in values.items() if number != problem.answers[blank]}
    if not wrong or is_single_slip(problem.answers, wrong):
        return None
    answers = _Answers(problem, values, wrong, frozenset(following))
    fits = [*_fits_alone(answers)]
    if not any(fit.cost == 0 for fit in fits):  # two misconceptions only if no single one explains everything
        fits += _fits_of_two(answers)
        fits += _fits_transposed(answers)
    best = min(fits, key=lambda fit: fit.rank, default=None)
    if best is None:
        return None
    alike = (fit for fit in fits if fit.rank == best.rank and fit.explained == best.explained)
    # A rival explanation: each head's four matrices as d_h × d_h, and a single head counted for the layer, where d is
    # H·d_h.
    has_rival = any(fit.misconceptions != best.misconceptions for fit in alike)
    if has_rival and best.misconceptions.isdisjoint(problem.author_misconceptions):
        return None
    first, *others = sorted(best.held, key=lambda e: -sum(blank in best.explained for blank in e.wrong_answers))
    explains = tuple(blank for blank in problem.blanks if blank in best.explained)

    def is_predicted(blank: Blank, expectation: Expectation) -> bool:
        return expectation.wrong_answers.get(blank) == values[blank]

    about = tuple(
        blank
        for blank in explains
        if is_predicted(blank, first) or not any(is_predicted(blank, other) for other in others)
    )
    return Diagnosis(first.misconception, explains, tuple(other.misconception for other in others), about=about)


def _can_be_said(expectation: Expectation, problem: Problem, values: Values) -> bool:
    if not expectation.prediction.compared:
        return True
    oriented = 0
    for rows in (blank for blank in problem.blanks if blank.field == "rows"):
        typed, right = ((side.get(rows), side.get(rows.transposed)) for side in (values, problem.answers))
        if None not in typed and right[0] != right[1]:  # a square matrix has no orientation
            is_turned = typed == (right[1], right[0])
            oriented += is_turned == (rows.tensor in expectation.transposed or "*" in expectation.transposed)
    return oriented >= expectation.prediction.compared


def _fits_alone(answers: _Answers) -> Iterator[_Fit]:
    for expectation, explained in answers.candidates:
        yield from _fit(answers, (expectation,), explained)


def _fits_of_two(answers: _Answers) -> Iterator[_Fit]:
    problem, wrong = answers.problem, answers.wrong
    for (first, by_first), (second, by_second) in combinations(answers.candidates, 2):
        if first.misconception == second.misconception or by_first <= by_second or by_second <= by_first:
            continue
        explained = by_first.union(by_second, worked_out_with_both(problem, wrong, first, second))
        unexplained = [sum(b in wrong and b not in explained for b in e.wrong_answers) for e in (first, second)]
        if 2 * unexplained[0] < len(first.wrong_answers) and 2 * unexplained[1] < len(second.wrong_answers):
            yield from _fit(answers, (first, second), explained)


def _fits_transposed(answers: _Answers) -> Iterator[_Fit]:
    problem, values = answers.problem, answers.values
    for transposing in (e for e in expectations(problem) if e.transposed and _can_be_said(e, problem, values)):
        # The blank that each number was meant for, and the sheet with every number put there.
        tensors = transposing.transposed
        meant = {b: b.transposed if b.tensor in tensors or "*" in tensors else b for b in values}
        moved = {blank for blank in values if values.get(meant[blank]) != values[blank]}
        if not any(values[blank] == problem.answers[meant[blank]] for blank in moved):
            continue  # nothing shows that it is transposed
        back = {meant[blank]: number for blank, number in values.items()}
        wrong = {blank: number for blank, number in back.items() if number != problem.answers[blank]}
        # Blanks that are right as typed, before anything is transposed back.
        contradicted = sum(values.get(blank) == problem.answers[blank] for blank in transposing.wrong_answers)
        for fit in _fits_alone(_Answers(problem, back, wrong)):
            (other,) = fit.held
            # A number is accounted for if it is right where it was meant, or explained there.
            accounted = {blank for blank in values if meant[blank] not in wrong or meant[blank] in fit.explained}
            explained = frozenset(blank for blank in accounted if values[blank] != problem.answers[blank])
            mostly = 2 * len(moved - accounted) < len(moved) and contradicted <= len(explained) // 2
            by_other = {blank for blank, number in other.wrong_answers.items() if values.get(blank) == number}
            if mostly and explained - by_other and other.misconception != transposing.misconception:
                yield _Fit((transposing, other), explained, fit.cost + SECOND_MISCONCEPTION_COST, fit.unseen)


def worked_out_with_both(problem: Problem, wrong: Values, first: Expectation, second: Expectation) -> Iterator[Blank]:
    """Yield the wrong counts that follow from both misconceptions together: errors added or factors multiplied."""
    for blank in first.wrong_answers.keys() & second.wrong_answers.keys() & wrong.keys():
        right, by_first, by_second = problem.answers[blank], first.wrong_answers[blank], second.wrong_answers[blank]
        added, multiplied = by_first + by_second - right, by_first * by_second
        if blank.field == "count" and (wrong[blank] == added or wrong[blank] * right == multiplied):
            yield blank


def _fit(answers: _Answers, held: tuple[Expectation, ...], explained: frozenset[Blank]) -> Iterator[_Fit]:
    problem, values, wrong = answers.problem, answers.values, answers.wrong
    if len(explained) == 1 and is_single_slip(problem.answers, {blank: wrong[blank] for blank in explained}):
        return
    predicted = {blank for e in held for blank in e.wrong_answers}
    contradicted = sum(blank in values and blank not in wrong for blank in predicted)
    unexplained_blanks = wrong.keys() - explained
    following = unexplained_blanks & (answers.following - predicted)
    left = unexplained_blanks - following
    if len(left) - 1 > len(explained) // 3 or contradicted > len(explained) // 2:
        return
    # What a slipped blank may have been meant to hold: its predicted numbers, or the right one.
    meant = {b: [e.wrong_answers[b] for e in held if b in e.wrong_answers] or [problem.answers[b]] for b in left}
    slips = [(wrong[b], number) for b in left for number in meant[b] if is_slip_in(b, wrong[b], number)]
    slipped = bool(slips)
    # Any digit is a slip of any other, so a misconception that explains it is likelier.
    slip_cost = SLIP_COST if any(min(slip) > 9 for slip in slips) else UNEXPLAINED_COST
    unexplained = len(left) - slipped
    if unexplained > len(explained) // 3:
        return
    cost = (
        slip_cost * slipped
        + FOLLOWING_COST * len(following)
        + CONTRADICTED_COST * contradicted
        + UNEXPLAINED_COST * unexplained
        + SECOND_MISCONCEPTION_COST * (len(held) - 1)
    )
    unseen = sum(values.get(blank) != number for e in held for blank, number in e.wrong_answers.items())
    yield _Fit(held, explained, cost, unseen)
