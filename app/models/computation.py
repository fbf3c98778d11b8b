"""Reads data/computation.toml: how models compute, beyond the shapes in the tables of their types."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from app.models.architecture import EmbeddingScale, InputKind, NormKind, QKNorm
from app.models.grammar import Rule, parse_rule
from app.models.parameter_specs import FusedOrder
from app.translation import N_

COMPUTATION_FILE = Path(__file__).parents[2] / "data" / "computation.toml"
NOT_MODELLED: Mapping[str, str] = {
    "clipping": N_("queries, keys and values clipped to a stated range"),
    "scaled-alibi": N_("ALiBi scaled by 1/√d_h"),
    "scores-by-layer": N_("scores divided by the number of the layer"),
    "scaled-queries": N_("queries scaled up with their position"),
    "other-range": N_("a relative position bias over another range than 128 tokens"),
}
_ALWAYS, _NEVER, _NOTHING, _HEAD_WIDTH = map(parse_rule, ("1 == 1", "1 == 0", "''", "d_h"))


@dataclass(frozen=True)
class RotaryRule:
    """How a type states its rotary positions (RoPE).

    `width` are the numbers of a query that may rotate, of which `share` do; a type without it ignores that field.
    `theta` is the base of the angles by default, `local_theta` in layers with a window.
    """

    width: Rule = _HEAD_WIDTH
    share: float | None = None
    share_field: str = "partial_rotary_factor"
    theta: float = 10_000.0
    theta_field: str = "rope_theta"
    local_theta: float | None = None
    local_theta_field: str = "rope_theta"
    scaled_locally: bool = False
    when: Rule = _ALWAYS
    adjacent: Rule = _NEVER
    only_windowed: bool = False  # if there are windows


@dataclass(frozen=True)
class Omission:
    """What sheets leave out of a model, and when it has it."""

    noun: str
    when: Rule


@dataclass(frozen=True)
class Computation:
    """What is known of how models of one type compute; of a type without a `norm_placement`, next to nothing."""

    norm: NormKind = "norm"
    norm_placement: Rule | None = None
    qk_norm: QKNorm = ""
    rotary: RotaryRule | None = None
    position_bias: Rule = _NOTHING
    scale: str = ""
    embedding_scale: EmbeddingScale = ""
    scales_residuals: bool = False
    has_larger_alibi_slopes: bool = False
    has_no_cache: bool = False
    has_widths_of_meta: bool = False
    ignores_is_causal: bool = False
    may_have_separate_head: bool = False
    counts_from_padding: bool = False
    is_sparse: bool = False
    scales_queries: Rule = _NEVER
    has_no_final_norm: Rule = _NEVER
    input: InputKind = "text"
    fixed_tokens: str = ""
    further_sizes: Mapping[str, Rule] = field(default_factory=dict)
    fused: FusedOrder = ""
    omissions: tuple[Omission, ...] = ()

    @property
    def is_known(self) -> bool:
        return self.norm_placement is not None

    @property
    def fields(self) -> frozenset[str]:
        """The names that its rules ask for."""
        rules = [self.norm_placement, self.position_bias, self.scales_queries, self.has_no_final_norm]
        rules += [each.when for each in self.omissions]
        if self.rotary:
            rules += [self.rotary.when, self.rotary.adjacent]
        return frozenset[str]().union(*(rule.names for rule in rules if rule))


_RULES = {"norm_placement", "position_bias", "scales_queries", "has_no_final_norm"}


def computation_of(model_type: str) -> Computation:
    """What is known of how models of this type compute."""
    return _computations().get(model_type, Computation())


@cache
def default_fields() -> Mapping[str, Any]:
    """The fields that no table has, with their defaults."""
    fields: Mapping[str, Any] = _concerns()["fields"]
    return fields


@cache
def _concerns() -> Mapping[str, Any]:
    return tomllib.loads(COMPUTATION_FILE.read_text("utf-8"))


@cache
def _computations() -> Mapping[str, Computation]:
    known = defaultdict[str, dict[str, Any]](dict)
    omissions = defaultdict[str, tuple[Omission, ...]](tuple)
    for concern, values in _concerns().items():
        match concern:
            case "fields":
                continue
            case "rotary":
                for row in values:
                    rule = _rotary_rule(row)
                    known |= {name: {**known[name], "rotary": rule} for name in row["types"].split()}
            case "further_sizes":
                for row in values:
                    rules = {symbol: parse_rule(rule) for symbol, rule in row.items() if symbol != "types"}
                    known |= {name: {**known[name], concern: rules} for name in row["types"].split()}
            case "not_modelled":
                for row in values:
                    when = parse_rule(row["when"]) if "when" in row else _ALWAYS
                    for name in row["types"].split():
                        omissions[name] += (Omission(NOT_MODELLED[row["what"]], when),)
            case "flags":
                for flag, types in values.items():
                    known |= {name: {**known[name], flag: True} for name in types.split()}
            case _:
                for text, types in values.items():
                    value = parse_rule(text) if concern in _RULES else text
                    known |= {name: {**known[name], concern: value} for name in types.split()}
    return {name: Computation(**values, omissions=omissions[name]) for name, values in known.items()}


def _rotary_rule(row: Mapping[str, Any]) -> RotaryRule:
    rules = {name: parse_rule(row[name]) for name in ("width", "when", "adjacent") if name in row}
    return RotaryRule(**{name: value for name, value in row.items() if name != "types"} | rules)
