"""What the catalogue's formulas may use besides a sheet's sizes, and the conditions under which an entry applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_specs import number_of_parameters
from app.shapes.table import Blank
from app.topics.problem import Problem
from app.topics.rotary_pairs import other_partner
from app.topics.stored_weights import fused_order

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

# What an entry's `when` may require of a model, each also as "not …".
CONDITIONS: Mapping[str, Callable[[Architecture], bool]] = {
    "image": lambda model: model.input == "image",
    "tokens-looked-up": lambda model: model.fixed_tokens is None,
    "context-length": lambda model: model.C is not None,
    "encoder-decoder": lambda model: model.encoder_decoder,
    "causal": lambda model: model.causal,
    "window": lambda model: model.window is not None,
    "latent-attention": lambda model: model.has_latent_attention,
    "several-heads": lambda model: model.H > 1,
    "several-kv-heads": lambda model: model.G > 1,
    "grouped-queries": lambda model: model.G != model.H,
    "grouped-queries-in-real-model": lambda model: model.kv_heads != model.H,
    "heads-split-width": lambda model: model.H * model.d_h == model.d,
    "square-projections": lambda model: model.H * model.d_h == model.d and model.G == model.H,
    "fused-by-head": lambda model: fused_order(model) == "by-head",
    "fused-by-matrix": lambda model: fused_order(model) == "by-matrix",
    "rope": lambda model: model.rotary is not None,
    "part-rotated": lambda model: model.rotary is not None and model.rotary.width < model.d_h,
    "position-table": lambda model: model.has_position_table,
    "tied-embeddings": lambda model: model.tied_embeddings,
    "gated": lambda model: model.gated,
    "four-times-width": lambda model: model.d_ff == 4 * model.d,
    "experts": lambda model: model.has_experts,
    "several-experts-per-token": lambda model: model.all_sizes.get("k", 1) > 1,
}
