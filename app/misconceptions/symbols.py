"""What the catalogue's formulas may use besides a sheet's sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from app.algebra.expression import ZERO, Expression
from app.models.parameter_specs import number_of_parameters
from app.shapes.table import Blank
from app.topics.problem import Problem
from app.topics.rotary_pairs import other_partner

# The blank's right size, and the size of the other side of the same matrix: teachers may use these too.
BOX_SYMBOLS: Mapping[str, Callable[[Problem, Blank], Expression]] = {
    "right": Problem.expression,
    "other_side": lambda problem, blank: problem.expression(blank.transposed),
}


def _kv_heads(problem: Problem, _blank: Blank) -> Expression:
    """How many key/value heads the real model has, even if a sheet gives each query head one."""
    real = problem.architecture.real_G
    return Expression.symbol("G") if real is None else Expression.number(real)


def _kv_head_in_turn(problem: Problem, _blank: Blank) -> Expression:
    """The key/value head that head j would read if heads took turns."""
    return Expression.number(problem.sizes["j"] % problem.sizes["G"])


def _output_biases(problem: Problem, _blank: Blank) -> Expression:
    """How many output projections have a bias, 0 or 1."""
    return Expression.number(int("o" in problem.architecture.biases))


def _lm_head(problem: Problem, _blank: Blank) -> Expression:
    return number_of_parameters(problem.architecture.outside_rows.get("output_head", ()))


def _norms_in_layers(problem: Problem, _blank: Blank) -> Expression:
    kinds = problem.architecture.kinds
    return sum((number_of_parameters(kind.rows.get("norms", ())) * kind.layers for kind in kinds), ZERO)


def _norm_at_end(problem: Problem, _blank: Blank) -> Expression:
    return number_of_parameters(problem.architecture.outside_rows.get("final_norm", ()))


def _other_partner(problem: Problem, _blank: Blank) -> Expression:
    """The partner of a dimension in the other convention of rotary pairs."""
    return other_partner(problem.architecture)


def _model_of_one_expert(problem: Problem, _blank: Blank) -> Expression:
    """The parameters of a model with one expert in each layer and no router."""
    used = problem.expression(Blank("used", "count")).substitute({"k": Expression.number(1)})
    layers = Expression.symbol("L_exp" if "L_exp" in problem.sizes else "L")
    return used - layers * problem.expression(Blank("router", "count"))


_NOT_WHOLE = Expression.number(Fraction(1, 2))  # a formula with it doesn't apply to the sheet


def _billions_of_one_expert(problem: Problem, blank: Blank) -> Expression:
    """The whole billions of that model's parameters, as in the 7 of "8x7B"."""
    number = _model_of_one_expert(problem, blank).size(problem.sizes)
    return Expression.number(number // 10**9 * 10**9) if number >= 10**9 else _NOT_WHOLE


def _prefill_of_next(problem: Problem, _blank: Blank) -> Expression:
    """The operations of attention for N + 1 tokens at once."""
    return problem.expression(Blank("prefill_flops", "count")).substitute({"N": Expression.parse("N + 1")})


FORMULA_SYMBOLS: Mapping[str, Callable[[Problem, Blank], Expression]] = {
    **BOX_SYMBOLS,
    "kv_heads": _kv_heads,
    "kv_head_in_turn": _kv_head_in_turn,
    "output_biases": _output_biases,
    "lm_head": _lm_head,
    "norms_in_layers": _norms_in_layers,
    "norm_at_end": _norm_at_end,
    "other_partner": _other_partner,
    "model_of_one_expert": _model_of_one_expert,
    "billions_of_one_expert": _billions_of_one_expert,
    "prefill_of_next": _prefill_of_next,
}
