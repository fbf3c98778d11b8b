"""What the misconceptions predict for one problem, and which of them its sheet cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from app.algebra.expression import ONE, Expression, ExpressionError
from app.algebra.parser import MAX_VALUE
from app.misconceptions.catalogue import BLANK_SYMBOLS, MISCONCEPTIONS, MODEL_SYMBOLS, Misconception, Prediction
from app.misconceptions.slips import is_single_slip
from app.models.architecture import Architecture
from app.shapes.consistency import Values
from app.shapes.problem import Problem
from app.shapes.table import Blank

PROBLEMS_REMEMBERED = 4096

_N = Expression.symbol("N")
# Those of MODEL_SYMBOLS and BLANK_SYMBOLS that symbols of the sheet can say for every blank.
_IN_SYMBOLS: Mapping[str, Expression] = {
    "one": ONE,
    "four_d": Expression.parse("4*d"),
    "d_per_head": Expression.parse("d/H"),
    "d_per_kv_head": Expression.parse("d/G"),
    "kv_heads": Expression.symbol("G"),
    "W_O_change": Expression.parse("G*d*d_v") - Expression.parse("H*d*d_v"),
    "two_thirds_d": Expression.parse("2*d/3"),
    "half_square": Expression.parse("N*N/2"),
    "without_W_O": -Expression.parse("H*d_v*d"),
    "square_W_QKV": (Expression.symbol("d_h") - Expression.symbol("d")) * Expression.parse("H*d_h + G*d_h + G*d_v"),
    "square_W_O": (Expression.symbol("d_v") - Expression.symbol("d")) * Expression.parse("H*d_v"),
    "without_lm_head": -Expression.parse("V*d"),
    "without_W_gate": -Expression.parse("d*d_ff"),
    "without_expert_gate": -Expression.parse("d*d_exp"),
    "triangle": (_N * _N + _N) * Fraction(1, 2),
    "from_last": _N - Expression.symbol("i") + ONE,
    "other_models": Expression.parse("E*rest") - Expression.symbol("rest"),
    "other_active_models": Expression.parse("k*rest") - Expression.symbol("rest"),
}


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
    sizes = {**problem.sizes, **_model_sizes(problem.architecture)}
    applicable = (m for m in MISCONCEPTIONS if problem.topic in m.predictions and m.applies_to(problem.architecture))
    return (*own, *(expectation for each in applicable for expectation in _expectations_of(each, problem, sizes)))


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
    has no size in this model. `size` may use the sheet's sizes and BLANK_SYMBOLS.
    """
    own = {symbol: BLANK_SYMBOLS[symbol](problem, blank) for symbol in size.symbols & BLANK_SYMBOLS.keys()}
    try:
        value = size.value({**problem.sizes, **own} if own else problem.sizes)
    except (ExpressionError, ZeroDivisionError):
        return None
    least = 0 if blank.field == "count" else 1
    return int(value) if value.denominator == 1 and least <= value <= MAX_VALUE else None


def _expectations_of(misconception: Misconception, problem: Problem, sizes: Mapping[str, int]) -> list[Expectation]:
    """One Expectation for each way in which a misconception fills in the problem, in the order of its predictions.

    Predictions that change no blank, or the same blanks to the same numbers as an earlier one, have none. `sizes` are
    the sizes of all symbols, the model's included.
    """
    expected = list[Expectation]()
    for prediction in misconception.predictions[problem.topic]:
        wrong_answers = _wrong_answers(prediction, problem, sizes)
        if wrong_answers and all(other.wrong_answers != wrong_answers for other in expected):
            expected.append(Expectation(misconception.key, wrong_answers, prediction.transposed, prediction))
    return expected


def _wrong_answers(prediction: Prediction, problem: Problem, sizes: Mapping[str, int]) -> dict[Blank, int]:
    """The wrong numbers that a prediction writes, by blank; blanks in which it writes the right number are left out.

    Empty if one of its symbols has no size in this model, such as d_per_head where H does not divide d.
    """
    try:
        substituted = {**sizes, **{symbol: sizes[other] for symbol, other in prediction.substitutions.items()}}
        written = {
            blank: _predicted_number(prediction, problem, blank, substituted)
            for blank in _affected_blanks(prediction, problem)
        }
    except (ExpressionError, KeyError):
        return {}
    return {blank: number for blank, number in written.items() if number != problem.key[blank]}


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


def _predicted_number(prediction: Prediction, problem: Problem, blank: Blank, sizes: Mapping[str, int]) -> int:
    """The number that a prediction writes into one blank, which may be the right one.

    An override of the blank comes first; else, if the prediction transposes, the right number of the other side; else
    the blank's own expression at `sizes`, in which the substituted symbols have their new size.
    """
    if override := prediction.overrides.get(str(blank)):
        size = Expression.parse(override)
        own = {symbol: BLANK_SYMBOLS[symbol](problem, blank) for symbol in size.symbols & BLANK_SYMBOLS.keys()}
        return size.size({**sizes, **own} if own else sizes)
    if prediction.transposed:
        return problem.key[blank.transposed]
    return problem.table.asked[blank.tensor].expression(blank.field).size(sizes)


def wrong_expression(problem: Problem, expected: Expectation, blank: Blank) -> Expression | None:
    """What a misconception writes into a blank that it gets wrong, in the symbols of the sheet: 4·d, or G·d_v.

    None for a number that is no product or sum of them, such as a half that is rounded.
    """
    asked, prediction = problem.table.asked, expected.prediction
    right = asked[blank.tensor].expression(blank.field)
    if prediction is None:
        size = problem.own_misconceptions[expected.misconception][blank]
    elif override := prediction.overrides.get(str(blank)):
        size = Expression.parse(override)
    elif prediction.transposed:
        size = asked[blank.tensor].expression(blank.transposed.field)
    else:
        size = right.substitute(
            {symbol: Expression.symbol(other) for symbol, other in prediction.substitutions.items()}
        )
    other_side = asked[blank.tensor].expression(blank.transposed.field)
    of_blank = {
        "right": right,
        "other_side": other_side,
        "half": right * Fraction(1, 2),
        "one_less": right - ONE,
        "less_N": right - _N,
        "less_m": right - Expression.symbol("m"),
    }
    try:
        size = size.substitute({**_IN_SYMBOLS, **of_blank})
    except ExpressionError:
        return None
    is_known = size.symbols <= problem.sizes.keys() and size.value(problem.sizes) == expected.wrong_answers[blank]
    return size if is_known else None


def _model_sizes(architecture: Architecture) -> dict[str, int]:
    """The MODEL_SYMBOLS that are whole numbers for this model."""
    sizes = {symbol: size_of(architecture) for symbol, size_of in MODEL_SYMBOLS.items()}
    return {symbol: size for symbol, size in sizes.items() if size is not None}


@lru_cache(maxsize=PROBLEMS_REMEMBERED)
def cannot_tell_apart(problem: Problem) -> tuple[tuple[str, str], ...]:
    """Pairs of keys of misconceptions that this sheet can't tell apart; (key, "right") for one that doesn't show on it.

    The latter come first: those that apply to the topic and the model and yet change nothing, or a single blank by no
    more than a slip of a digit. Two others are a pair if they fill in the whole sheet alike in one of their ways.
    """
    expected = expectations(problem)
    shown = {e.misconception for e in expected if not is_single_slip(problem.key, e.wrong_answers)}
    of_topic = (m.key for m in MISCONCEPTIONS if problem.topic in m.predictions and m.applies_to(problem.architecture))
    hidden = [(key, "right") for key in (*problem.own_misconceptions, *of_topic) if key not in shown]
    return (*hidden, *dict.fromkeys(_alike(expected)))


def _alike(expected: Iterable[Expectation]) -> Iterator[tuple[str, str]]:
    """The keys of every two misconceptions with the same wrong answers."""
    for first, second in combinations(expected, 2):
        if first.wrong_answers == second.wrong_answers and first.misconception != second.misconception:
            yield first.misconception, second.misconception


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
