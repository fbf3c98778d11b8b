"""What the misconceptions predict for one problem, and which of them its sheet can't distinguish."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from app.algebra.expression import DividedBySumError, Expression, Formula
from app.algebra.parser import MAX_VALUE
from app.misconceptions.catalogue import MISCONCEPTIONS, Prediction
from app.misconceptions.slips import is_single_slip
from app.misconceptions.symbols import FORMULA_SYMBOLS
from app.shapes.consistency import Values
from app.shapes.table import Blank, Count
from app.topics.find_the_bug import BugTable, misconception_of
from app.topics.problem import Problem

PROBLEMS_REMEMBERED = 4096
_KEYS = frozenset(each.key for each in MISCONCEPTIONS)
log = logging.getLogger("attention_shapes")


@dataclass(frozen=True)
class Expectation:
    """One prediction applied to one sheet: the blanks it gets wrong, with their numbers."""

    misconception: str
    wrong_answers: Mapping[Blank, int]
    prediction: Prediction

    @property
    def transposed(self) -> tuple[str, ...]:
        """The tensors whose rows and columns it swaps; "*" means all."""
        return self.prediction.transposed


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def expectations(problem: Problem) -> tuple[Expectation, ...]:
    """Every misconception that shows on this sheet, once for each different way in which it fills it in."""
    expected = list[Expectation]()
    for key, predictions in _predictions_on(problem).items():
        ways = list[Mapping[Blank, int]]()
        for prediction in predictions:
            try:
                wrong_answers = _wrong_answers(prediction, problem)
            except Exception:  # a sheet is graded without the diagnosis rather than not at all
                name = problem.architecture.name
                log.exception("misconception: %s (%s, %s)", key, problem.topic, name)
                continue
            if wrong_answers and wrong_answers not in ways:
                ways.append(wrong_answers)
                expected.append(Expectation(key, wrong_answers, prediction))
    return tuple(expected)


def _predictions_on(problem: Problem) -> dict[str, tuple[Prediction, ...]]:
    predictions: dict[str, tuple[Prediction, ...]] = {
        key: (Prediction({str(blank): Formula(size) for blank, size in sizes.items()}),)
        for key, sizes in problem.author_misconceptions.items()
    }
    for each in MISCONCEPTIONS:
        if problem.topic in each.predictions and each.applies_to(problem.architecture):
            predictions[each.key] = each.predictions[problem.topic]
    if isinstance(problem.table, BugTable):
        for place, reason in enumerate(problem.table.reasons, start=1):
            key = misconception_of(reason)
            if key in _KEYS and reason != problem.table.right_reason:
                prediction = Prediction({"why.choice": Formula(Expression.number(place))})
                predictions[key] = (*predictions.get(key, ()), prediction)
    return predictions


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _expectations_by_answer(problem: Problem) -> Mapping[tuple[Blank, int], list[int]]:
    by_answer: dict[tuple[Blank, int], list[int]] = {}
    for place, expectation in enumerate(expectations(problem)):
        for answer in expectation.wrong_answers.items():
            by_answer.setdefault(answer, []).append(place)
    return by_answer


def confirmed_expectations(problem: Problem, values: Values) -> list[tuple[Expectation, frozenset[Blank]]]:
    """The expectations whose wrong number is in `values` for at least one blank, each with these blanks."""
    by_answer, expected = _expectations_by_answer(problem), expectations(problem)
    blanks: dict[int, list[Blank]] = {}
    for answer in values.items():
        for place in by_answer.get(answer, ()):
            blanks.setdefault(place, []).append(answer[0])
    return [(expected[place], frozenset(blanks[place])) for place in sorted(blanks)]


def number_written(problem: Problem, blank: Blank, formula: Formula) -> int | None:
    """The number that a formula gives for a blank, perhaps the right one.

    Raises ExpressionError for a symbol without a size on this sheet.
    """
    meanings = _meanings(formula.expression, problem, blank)
    number = formula.number({**problem.sizes, **{name: size.value(problem.sizes) for name, size in meanings.items()}})
    least = 0 if blank.field == "count" else 1
    return number if number is not None and least <= number <= MAX_VALUE else None


def _meanings(size: Expression, problem: Problem, blank: Blank) -> dict[str, Expression]:
    counts = {key: count for key, count in problem.table.askable.items() if isinstance(count, Count)}
    return {
        symbol: FORMULA_SYMBOLS[symbol](problem, blank) if symbol in FORMULA_SYMBOLS else counts[symbol].total
        for symbol in size.symbols - problem.sizes.keys()
        if symbol in FORMULA_SYMBOLS or symbol in counts
    }


def _wrong_answers(prediction: Prediction, problem: Problem) -> dict[Blank, int]:
    sizes = dict(problem.sizes)
    for symbol, formula in prediction.substitutions.items():
        if (meant := formula.number(problem.sizes)) is None:
            return {}
        sizes[symbol] = meant
    # Only blanks that it may change are looked at, some of them twice.
    transposed, substituted, names = prediction.transposed, prediction.substitutions.keys(), problem.blanks_by_name
    affected = [b for b in problem.blanks if b.tensor in transposed or "*" in transposed]
    affected += [b for b in problem.blanks if substituted and substituted & problem.expression(b).symbols]
    affected += [names[name] for name in prediction.overrides if name in names]
    wrong = dict[Blank, int]()
    for blank in affected:
        if override := prediction.overrides.get(str(blank)):
            number = number_written(problem, blank, override)
        elif transposed:
            number = problem.answers[blank.transposed]
        else:
            number = Formula(problem.expression(blank)).number(sizes)
        if number is None:
            return {}
        if number != problem.answers[blank]:
            wrong[blank] = number
    return wrong


def wrong_expression(problem: Problem, expected: Expectation, blank: Blank) -> Expression | None:
    """What a misconception writes into a blank that it gets wrong, in the sheet's symbols: 4·d, or G·d_v.

    Raises KeyError for a blank that it gets right.
    """
    prediction = expected.prediction
    size = problem.expression(blank)
    meanings: Mapping[str, Expression] = {
        symbol: meant.expression for symbol, meant in prediction.substitutions.items()
    }
    if formula := prediction.overrides.get(str(blank)):
        size, meanings = formula.expression, _meanings(formula.expression, problem, blank)
    elif prediction.transposed:
        size = problem.expression(blank.transposed)
    try:
        size = size.substitute(meanings)
    except DividedBySumError:
        return None
    return size if size.value(problem.sizes) == expected.wrong_answers[blank] else None


class Confusion(NamedTuple):
    """A misconception and the `other` one that fills in a sheet the same way, by keys; None if it doesn't show."""

    misconception: str
    other: str | None


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def cannot_tell_apart(problem: Problem) -> tuple[Confusion, ...]:
    """The misconceptions that don't show on this sheet, then the pairs that it can't distinguish."""
    expected = expectations(problem)
    shown = {e.misconception for e in expected if not is_single_slip(problem.answers, e.wrong_answers)}
    hidden = [Confusion(key, None) for key in _predictions_on(problem) if key not in shown]
    alike = (
        Confusion(first.misconception, second.misconception)
        for first, second in combinations(expected, 2)
        if first.wrong_answers == second.wrong_answers and first.misconception != second.misconception
    )
    return (*hidden, *dict.fromkeys(alike))


def nearest_expectation(problem: Problem, misconception: str, answers: Values) -> Expectation | None:
    """How a misconception fills in the sheet, in the way closest to these answers."""

    def agreeing(expected: Expectation) -> int:
        return sum(answers.get(blank) == number for blank, number in expected.wrong_answers.items())

    return max((e for e in expectations(problem) if e.misconception == misconception), key=agreeing, default=None)


def predicted_sheet(problem: Problem, misconception: str, answers: Values) -> Mapping[Blank, int]:
    """A number for every blank, as a misconception fills in the whole sheet in the way closest to the answers."""
    nearest = nearest_expectation(problem, misconception, answers)
    return {**problem.answers, **(nearest.wrong_answers if nearest else {})}
