"""A misconception: what it makes a student write on each topic's sheets, in symbols.

A blank that a misconception doesn't mention keeps its right number, so a misconception's sheet is the right one with a
few blanks changed. A row is checked when it is made, which for the catalogue is on import: an unknown topic, symbol,
row or box raises a CatalogueError.

>>> Misconception("no-softmax", 99, {"single-head": (Prediction({"weights.colums": "1"}),)})
Traceback (most recent call last):
app.misconceptions.misconception.CatalogueError: The misconception “no-softmax” (on single-head): there is no box \
“weights.colums”.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from app.algebra.expression import ZERO, Expression, ExpressionError, Formula
from app.models.architecture import Architecture
from app.models.parameter_specs import number_of_parameters
from app.shapes.table import Blank
from app.topics.problem import Problem
from app.topics.registry import TOPICS
from app.topics.rotary_pairs import other_partner

# What any formula may use besides sizes: the blank's right size, and the size of the other side of the same matrix.
BOX_SYMBOLS: Mapping[str, Callable[[Problem, Blank], Expression]] = {
    "right": Problem.expression,
    "other_side": lambda problem, blank: problem.expression(blank.transposed),
}
# What the catalogue's formulas may also use: how many key/value heads the real model has, even if a sheet gives each
# query head one; the key/value head that head j would read if heads took turns; how many output projections have a
# bias, 0 or 1; the parameters of the LM head, of the norms in all layers and of the norm after them; the partner of a
# dimension in the other convention of rotary pairs; the parameters of a model with one expert in each layer, without a
# router, and the whole billions of them; and the operations of attention for N + 1 tokens at once, on a sheet on
# growth.
FORMULA_SYMBOLS: Mapping[str, Callable[[Problem, Blank], Expression]] = {
    **BOX_SYMBOLS,
    "kv_heads": lambda problem, _blank: _kv_heads(problem.architecture),
    "kv_head_in_turn": lambda problem, _blank: Expression.number(problem.sizes["j"] % problem.sizes["G"]),
    "output_biases": lambda problem, _blank: Expression.number(int("o" in problem.architecture.biases)),
    "lm_head": lambda problem, _blank: number_of_parameters(problem.architecture.outside_rows.get("output_head", ())),
    "norms_in_layers": lambda problem, _blank: _norms_in_layers(problem.architecture),
    "norm_at_end": lambda problem, _blank: number_of_parameters(
        problem.architecture.outside_rows.get("final_norm", ())
    ),
    "other_partner": lambda problem, _blank: other_partner(problem.architecture),
    "model_of_one_expert": lambda problem, _blank: _model_of_one_expert(problem),
    "billions_of_one_expert": lambda problem, _blank: _whole_billions(_model_of_one_expert(problem), problem.sizes),
    "prefill_of_next": lambda problem, _blank: problem.expression(Blank("prefill_flops", "count")).substitute(
        {"N": Expression.parse("N + 1")}
    ),
}


def _kv_heads(architecture: Architecture) -> Expression:
    return Expression.symbol("G") if architecture.real_G is None else Expression.number(architecture.real_G)


def _norms_in_layers(architecture: Architecture) -> Expression:
    kinds = architecture.kinds
    return sum((number_of_parameters(kind.rows.get("norms", ())) * kind.layers for kind in kinds), ZERO)


_NOT_WHOLE = Expression.number(Fraction(1, 2))  # a formula with it doesn't apply to the sheet


def _model_of_one_expert(problem: Problem) -> Expression:
    used = problem.expression(Blank("used", "count")).substitute({"k": Expression.number(1)})
    layers = Expression.symbol("L_exp" if "L_exp" in problem.sizes else "L")
    return used - layers * problem.expression(Blank("router", "count"))


def _whole_billions(parameters: Expression, sizes: Mapping[str, int]) -> Expression:
    number = parameters.size(sizes)
    return Expression.number(number // 10**9 * 10**9) if number >= 10**9 else _NOT_WHOLE


class CatalogueError(ValueError):
    """A misconception that names something its topics' sheets lack, or reuses a number or key."""


@dataclass(frozen=True)
class Prediction:
    """One way in which a misconception fills in a sheet: either `transposed`, or `overrides` and `substitutions`.

    `overrides` give blanks, by name, another size: {"scores.columns": "d_h"}.
    """

    overrides: Mapping[str, str | Formula] = field(default_factory=dict)
    substitutions: Mapping[str, str] = field(default_factory=dict)
    transposed: tuple[str, ...] = ()
    compared: int = 0

    @cached_property
    def written(self) -> Mapping[str, Formula]:
        """What `overrides` write, by blank name; raises ExpressionError."""
        return {blank: Formula.parse(size) if isinstance(size, str) else size for blank, size in self.overrides.items()}

    @cached_property
    def meanings(self) -> Mapping[str, Formula]:
        """The formula that `substitutions` put in place of each symbol; raises ExpressionError."""
        return {symbol: Formula.parse(size) for symbol, size in self.substitutions.items()}


@dataclass(frozen=True)
class Misconception:
    """One row of the catalogue: its key, its number, and its predictions for each topic and for which models."""

    key: str
    number: int
    predictions: Mapping[str, tuple[Prediction, ...]] = field(default_factory=dict)
    applies_to: Callable[[Architecture], bool] = lambda _architecture: True

    def __post_init__(self) -> None:
        topics_of = dict[int, tuple[Prediction, list[str]]]()
        for topic, predictions in self.predictions.items():
            for prediction in predictions:
                topics_of.setdefault(id(prediction), (prediction, []))[1].append(topic)
        for prediction, topics in topics_of.values():
            where = f"“{self.key}” (on {', '.join(topics)})"
            try:
                unknown = next(_unknown_names(prediction, topics), None)
            except ExpressionError as error:
                raise CatalogueError(f"The misconception {where}: {error}.") from None
            if unknown:
                raise CatalogueError(f"The misconception {where}: there is no {unknown}.")

    @property
    def topics(self) -> tuple[str, ...]:
        """The keys of the topics where it can show."""
        return tuple(self.predictions)


def _unknown_names(prediction: Prediction, topics: Iterable[str]) -> Iterator[str]:
    yield from (f"topic “{topic}”" for topic in topics if topic not in TOPICS)
    specs = [TOPICS[topic] for topic in topics if topic in TOPICS]
    boxes = frozenset[str]().union(*(spec.boxes for spec in specs))
    symbols = FORMULA_SYMBOLS.keys() | frozenset[str]().union(*(spec.symbols for spec in specs))
    formulas = (*prediction.written.values(), *prediction.meanings.values())
    used = frozenset(prediction.substitutions).union(*(formula.expression.symbols for formula in formulas))
    yield from (f"symbol “{symbol}”" for symbol in sorted(used - symbols))
    yield from (f"box “{box}”" for box in prediction.overrides if box not in boxes)
    rows = {"*"}.union(*(spec.rows for spec in specs))
    yield from (f"row “{row}”" for row in prediction.transposed if row not in rows)
