"""What the misconceptions predict for one problem, and which of them its sheet cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from app.algebra.expression import Expression, ExpressionError, Formula
from app.algebra.parser import MAX_VALUE
from app.misconceptions.catalogue import FORMULA_SYMBOLS, MISCONCEPTIONS, Misconception, Prediction
from app.misconceptions.slips import is_single_slip
from app.shapes.consistency import Values
from app.shapes.problem import Problem
from app.shapes.table import Blank, Count

PROBLEMS_REMEMBERED = 4096


@dataclass(frozen=True)
class Expectation:
    """The blanks of one sheet that a misconception fills in wrongly, each with the number it writes.

    `transposed` are the tensors whose rows and columns it swaps, "*" for all of them. `prediction` is that of the
    catalogue, None for one of the author's own misconceptions.
    """

    misconception: str
    wrong_answers: Mapping[Blank, int]
    transposed: tuple[str, ...] = ()
    prediction: Prediction | None = None


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def expectations(problem: Problem) -> tuple[Expectation, ...]:
    """Every misconception that shows on this sheet, once for each different way it fills it in.

    The author's own come first, so that the sheet filled in alike by another one too is put down to them; then those of
    the catalogue, in its order. A misconception that would write only right numbers here has none.
    """
    own = tuple(_own_expectations(problem)) if problem.own_misconceptions else ()
    applicable = (m for m in MISCONCEPTIONS if problem.topic in m.predictions and m.applies_to(problem.architecture))
    return (*own, *(expectation for each in applicable for expectation in _expectations_of(each, problem)))


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def _expectations_by_answer(problem: Problem) -> Mapping[tuple[Blank, int], list[int]]:
    """For each wrong number in a blank, the places in `expectations` of those that predict it."""
    by_answer: dict[tuple[Blank, int], list[int]] = {}
    for place, expectation in enumerate(expectations(problem)):
        for answer in expectation.wrong_answers.items():
            by_answer.setdefault(answer, []).append(place)
    return by_answer


def confirmed_expectations(problem: Problem, values: Values) -> list[tuple[Expectation, frozenset[Blank]]]:
    """The expectations that agree with `values` in some blank, in catalogue order, each with these blanks."""
    by_answer, expected = _expectations_by_answer(problem), expectations(problem)
    blanks: dict[int, list[Blank]] = {}
    for answer in values.items():
        for place in by_answer.get(answer, ()):
            blanks.setdefault(place, []).append(answer[0])
    return [(expected[place], frozenset(blanks[place])) for place in sorted(blanks)]


def _own_expectations(problem: Problem) -> Iterator[Expectation]:
    """One Expectation for each of the author's own misconceptions that shows on this sheet.

    None for one of which some size comes to no number that can be written into a box.
    """
    for key, overrides in problem.own_misconceptions.items():
        written = {blank: own_number(problem, blank, size) for blank, size in overrides.items()}
        wrong_answers = {b: number for b, number in written.items() if number is not None and number != problem.key[b]}
        if wrong_answers and None not in written.values():
            yield Expectation(key, wrong_answers)


def own_number(problem: Problem, blank: Blank, size: Expression) -> int | None:
    """The number that an author's own misconception writes into a blank of the sheet, which may be the right one.

    None if it is no whole number from 1 to MAX_VALUE (a count from 0), as d/7 is not where d is 4096, or if a symbol
    has no size in this model. `size` may use the sheet's sizes and FORMULA_SYMBOLS.
    """
    try:
        number = Formula(in_sizes(size, problem, blank)).number(problem.sizes)
    except (ExpressionError, ZeroDivisionError):  # it is divided by a sum, or by nothing
        return None
    least = 0 if blank.field == "count" else 1
    return number if number is not None and least <= number <= MAX_VALUE else None


def in_sizes(size: Expression, problem: Problem, blank: Blank) -> Expression:
    """What a formula for a blank means in the symbols of the sheet, with FORMULA_SYMBOLS and counts worked out.

    The key of a count that this sheet's table lacks stays, and so has no size. Raises ExpressionError where a formula
    is divided by a sum.
    """
    counts = {key: problem.table.asked.get(key) for key in size.symbols - problem.sizes.keys()}
    meanings = {key: count.total for key, count in counts.items() if isinstance(count, Count)}
    boxes = {symbol: FORMULA_SYMBOLS[symbol](problem, blank) for symbol in size.symbols & FORMULA_SYMBOLS.keys()}
    return size.substitute({**meanings, **boxes}) if meanings or boxes else size


def _expectations_of(misconception: Misconception, problem: Problem) -> list[Expectation]:
    """One Expectation for each way in which a misconception fills in the problem, in the order of its predictions.

    Predictions that change no blank, or the same blanks to the same numbers as an earlier one, have none.
    """
    expected = list[Expectation]()
    for prediction in misconception.predictions[problem.topic]:
        wrong_answers = _wrong_answers(prediction, problem)
        if wrong_answers and all(other.wrong_answers != wrong_answers for other in expected):
            expected.append(Expectation(misconception.key, wrong_answers, prediction.transposed, prediction))
    return expected


def _wrong_answers(prediction: Prediction, problem: Problem) -> dict[Blank, int]:
    """The wrong numbers that a prediction writes, by blank; blanks in which it writes the right number are left out.

    Empty if one of its sizes isn't whole in this model, such as d/H where H does not divide d, or if the model has no
    such size.
    """
    meanings = {symbol: formula.number(problem.sizes) for symbol, formula in prediction.meanings.items()}
    known = {symbol: size for symbol, size in meanings.items() if size is not None}
    if len(known) < len(meanings):
        return {}
    sizes = {**problem.sizes, **known}
    wrong = dict[Blank, int]()
    for blank in _affected_blanks(prediction, problem):
        number = _predicted_number(prediction, problem, blank, sizes)
        if number is None:
            return {}
        if number != problem.key[blank]:
            wrong[blank] = number
    return wrong


def _affected_blanks(prediction: Prediction, problem: Problem) -> Iterable[Blank]:
    """The blanks of the sheet that a prediction may change; some of them may be named twice.

    They are all blanks if it transposes "*"; else those of the tensors it transposes, those with a symbol it
    substitutes, and those it overrides.
    """
    if "*" in prediction.transposed:
        return problem.blanks
    transposed = [blank for blank in problem.blanks if blank.tensor in prediction.transposed]
    asked, symbols = problem.table.asked, prediction.substitutions.keys()
    substituted = [b for b in problem.blanks if symbols and symbols & asked[b.tensor].expression(b.field).symbols]
    names = problem.blanks_by_name
    return (*transposed, *substituted, *(names[name] for name in prediction.overrides if name in names))


def _predicted_number(
    prediction: Prediction, problem: Problem, blank: Blank, substituted: Mapping[str, int]
) -> int | None:
    """The number that a prediction writes into one blank, which may be the right one; None if it isn't whole.

    An override of the blank comes first; else, if the prediction transposes, the right number of the other side; else
    the blank's own expression at the sizes that the prediction has `substituted`.
    """
    if formula := prediction.written.get(str(blank)):
        return replace(formula, expression=in_sizes(formula.expression, problem, blank)).number(problem.sizes)
    if prediction.transposed:
        return problem.key[blank.transposed]
    return Formula(problem.table.asked[blank.tensor].expression(blank.field)).number(substituted)


def wrong_expression(problem: Problem, expected: Expectation, blank: Blank) -> Expression | None:
    """What a misconception writes into a blank that it gets wrong, in the symbols of the sheet: 4·d, or G·d_v.

    None for a number that is no product or sum of them, such as a half that is rounded.
    """
    asked, prediction = problem.table.asked, expected.prediction
    size = asked[blank.tensor].expression(blank.field)
    try:
        if prediction is None:
            size = in_sizes(problem.own_misconceptions[expected.misconception][blank], problem, blank)
        elif formula := prediction.written.get(str(blank)):
            size = in_sizes(formula.expression, problem, blank)
        elif prediction.transposed:
            size = asked[blank.tensor].expression(blank.transposed.field)
        else:
            size = size.substitute({symbol: formula.expression for symbol, formula in prediction.meanings.items()})
    except ExpressionError:  # what is divided by a sum is no product or sum
        return None
    is_known = size.symbols <= problem.sizes.keys() and size.value(problem.sizes) == expected.wrong_answers[blank]
    return size if is_known else None


class Confusion(NamedTuple):
    """A misconception that a sheet can't tell from an `other` one, by keys; None: it leaves the sheet right."""

    misconception: str
    other: str | None


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def cannot_tell_apart(problem: Problem) -> tuple[Confusion, ...]:
    """What this sheet can't tell apart.

    First come the misconceptions that don't show: those that apply to the topic and the model and yet change nothing,
    or a single blank by no more than a slip of a digit. Two others are confused if they fill in the whole sheet alike
    in one of their ways.
    """
    expected = expectations(problem)
    shown = {e.misconception for e in expected if not is_single_slip(problem.key, e.wrong_answers)}
    of_topic = (m.key for m in MISCONCEPTIONS if problem.topic in m.predictions and m.applies_to(problem.architecture))
    hidden = [Confusion(key, None) for key in (*problem.own_misconceptions, *of_topic) if key not in shown]
    return (*hidden, *dict.fromkeys(_alike(expected)))


def _alike(expected: Iterable[Expectation]) -> Iterator[Confusion]:
    """The keys of every two misconceptions with the same wrong answers."""
    for first, second in combinations(expected, 2):
        if first.wrong_answers == second.wrong_answers and first.misconception != second.misconception:
            yield Confusion(first.misconception, second.misconception)


def nearest_expectation(problem: Problem, misconception: str, answers: Values) -> Expectation | None:
    """How a misconception fills in the sheet; of several ways, the one that agrees with most of these answers.

    None if it doesn't show here.
    """

    def agreeing(expected: Expectation) -> int:
        return sum(answers.get(blank) == number for blank, number in expected.wrong_answers.items())

    return max((e for e in expectations(problem) if e.misconception == misconception), key=agreeing, default=None)


def predicted_sheet(problem: Problem, misconception: str, answers: Values) -> Mapping[Blank, int]:
    """A number for every blank, as a misconception fills in the whole sheet in the way that is nearest to the answers.

    If it doesn't show here, the right sheet.
    """
    nearest = nearest_expectation(problem, misconception, answers)
    return {**problem.key, **(nearest.wrong_answers if nearest else {})}
