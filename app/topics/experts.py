"""The table of a mixture of experts: the shapes in its router and one expert, and what layer and model store.

>>> from app.models.read_config import read_config
>>> mixtral = read_config(
...     '{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,'
...     ' "num_hidden_layers": 32, "vocab_size": 32000}'
... )
>>> sizes = expert_sizes(mixtral)
>>> sizes["d_exp"], sizes["L_exp"]
(14336, 32)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from app.algebra.expression import Expression
from app.models.architecture import Architecture, LayerKind
from app.models.parameter_count import parameter_counts
from app.models.parameter_specs import inner_width, number_of_parameters
from app.shapes.operation import AddExperts, LargestWeights, Matmul, SelectRows
from app.shapes.parameter_inventory import experts_inventory
from app.shapes.table import PARTS_SUM, Count, FromParts, TensorTable, learned, tensor
from app.topics.parameter_rows import added_up, parameter_rows
from app.topics.requirements import NAMED_PARTS, ONE_STACK, Requirement
from app.topics.single_head import INPUT
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

IN_ONE_EXPERT = ("expert_input", "expert_hidden", "expert_output")  # have a row for each token routed to the expert
OF_LAYER = ("router", "one_expert", "experts", "shared_experts")  # rows of a parameter-count sheet

EXPERTS = TensorTable(
    "experts",
    (
        INPUT,
        learned("W_router", "d, E", "score", counted=False, letter="W_r"),
        tensor("router_logits", "R", "N, E", "score", Matmul("input W_router", "n d, d e -> n e")),
        tensor("chosen", "P", "N, k", "score", LargestWeights("router_logits", "n e -> n k")),
        learned("W_gate", "d, d_exp", "hidden", counted=False),
        learned("W_up", "d, d_exp", "hidden", counted=False),
        learned("W_down", "d_exp, d", "hidden", counted=False),
        tensor("expert_input", "X_e", "N*k/E, d", "input", SelectRows("input", "n d -> m d")),
        tensor("expert_hidden", "B_e", "N*k/E, d_exp", "hidden",
               Matmul("expert_input W_up", "m d, d f -> m f", gated_by="W_gate")),
        tensor("expert_output", "Y_e", "N*k/E, d", "output", Matmul("expert_hidden W_down", "m f, f d -> m d")),
        tensor("output", "O", "N, d", "output", AddExperts("expert_output", "m d -> n d")),
    ),
    asks_parameters=True,
)  # fmt: skip


_EXPERTS = Requirement(
    lambda architecture, _tokens: architecture.has_experts,
    N_("{model} has no mixture of experts: choose a model that has one, such as Mixtral 8x7B."),
)
_GATED_EXPERTS_ALIKE = Requirement(
    lambda architecture, _tokens: [_are_gated(kind) for kind in architecture.kinds if kind.has_experts] == [True],
    N_(
        "The experts of {model} are not gated feed-forward blocks of one size in all layers: choose a model such "
        "as Mixtral 8x7B."
    ),
)


def experts_table(architecture: Architecture, tokens: int) -> TensorTable:
    """The shapes of a layer with experts, with the counts of `_counts`, under the key "experts"."""
    counts = _counts(architecture)
    if tokens % even_tokens(architecture) == 0:
        return replace(EXPERTS, counts=counts)
    tensors = tuple(tensor for tensor in EXPERTS.tensors if tensor.key not in IN_ONE_EXPERT)
    output = replace(tensors[-1], made_by=AddExperts("input", "n d -> n d"))
    return replace(EXPERTS, key="uneven-experts", tensors=(*tensors[:-1], output), counts=counts)


def even_tokens(architecture: Architecture) -> int:
    """The fewest tokens that can be spread evenly over all experts: E/gcd(E, k), or 1 without experts."""
    sizes = architecture.all_sizes
    return sizes["E"] // gcd(sizes["E"], sizes["k"]) if architecture.has_experts else 1


def expert_sizes(architecture: Architecture) -> Mapping[str, int]:
    """The sizes that only this table uses: d_exp, an expert's inner width; L_exp, the layers with experts; rest."""
    kind = _kind_with_experts(architecture)
    if kind is None:
        return {}
    sizes = architecture.all_sizes
    routed = kind.layers * number_of_parameters(kind.rows["experts"]).size(sizes)
    rest = parameter_counts(architecture).total - routed
    return {"d_exp": inner_width(kind.rows["experts"]).size(sizes), "L_exp": kind.layers, "rest": rest}


def _kind_with_experts(architecture: Architecture) -> LayerKind | None:
    return next((kind for kind in architecture.kinds if kind.has_experts), None)


def _are_gated(kind: LayerKind) -> bool:
    experts = kind.rows["experts"]
    matrices = number_of_parameters(spec for spec in experts if spec.kind == "matrix")
    return matrices == Expression.parse("3*E*d") * inner_width(experts)


def _counts(architecture: Architecture) -> tuple[Count, ...]:
    kind = _kind_with_experts(architecture)
    assert kind is not None  # noqa: S101 - `requires` has refused the others
    rows = {row.key: row for row in parameter_rows(architecture)}
    expert_width = {str(inner_width(kind.rows["experts"])): Expression.symbol("d_exp")}
    layer = {key: replace(rows[key], total=rows[key].total.substitute(expert_width)) for key in OF_LAYER if key in rows}
    layer["chosen_experts"] = added_up("chosen_experts", [layer["one_expert"]], times=Expression.symbol("k"))
    layers = "L" if kind.layers == architecture.L else "L_exp"
    others = [layer[key] for key in ("router", "shared_experts") if key in layer]
    stored, active = layer["experts"], layer["chosen_experts"]
    return (
        *layer.values(),
        added_up("block_stored", [*others, stored]),
        added_up("block_active", [*others, active]),
        _in_all_layers("total", stored, layers),
        _in_all_layers("used", active, layers),
    )


def _in_all_layers(key: str, experts: Count, layers: str) -> Count:
    factor, rest = Expression.symbol(layers), Expression.symbol("rest")
    formula = f"{{{layers}}} · {{{experts.key}}} + {{all-else}}"
    return Count(key, factor * experts.total + rest, formula, FromParts(factor * PARTS_SUM + rest, (experts.key,)))


_ROUTER = FigurePlan("router", "input", ("router_logits",))

TOPIC = Topic(
    "experts",
    "parameters",
    experts_table,
    (ONE_STACK, _EXPERTS, _GATED_EXPERTS_ALIKE, NAMED_PARTS),
    about_attention=False,
    extra_sizes=lambda architecture, _tokens: expert_sizes(architecture),
    token_step=even_tokens,
    inventory=lambda architecture: experts_inventory(architecture, expert_sizes(architecture)),
    tables=(EXPERTS,),
    counts="router one_expert experts shared_experts chosen_experts block_stored block_active total used",
    extra_symbols="L_exp rest",
    figures={
        EXPERTS.key: (
            _ROUTER,
            FigurePlan("expert-up", "expert_input", ("expert_hidden",)),
            FigurePlan("expert-down", "expert_hidden", ("expert_output",)),
        ),
    },
)
