"""The rows of a parameter-count sheet: the parameters of a whole model, part by part, as sums of products."""

from __future__ import annotations

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_specs import Bucket, ParameterSpecs
from app.shapes.table import PARTS_SUM, Count, FromParts

# The parts of the whole model, and of one layer.
MODEL_PARTS = ("embedding", "all_layers", "final_norm", "output_head")
LAYER_PARTS = ("attention", "feed_forward", "norms")


def parameter_rows(architecture: Architecture) -> tuple[Count, ...]:
    """Counts of parameters: embedding, all layers, final norm, output head; attention, feed-forward, norms; the total.

    Attention, feed-forward and norms are those of one layer, and all layers are L times their sum: right only for
    models whose layers are alike. A part without parameters has no row.
    """
    in_layer, outside = architecture.stacks[0].runs[-1].parameters, architecture.outside_parameters
    all_layers = _sum(in_layer) * Expression.parse("L")
    model = {
        "embedding": (_sum(outside, "embedding"), "{embedding-parts}"),
        "all_layers": (all_layers, ""),
        "final_norm": (_sum(outside, "other"), "{final-norm-parts}"),
        "output_head": (_sum(outside, "output_head"), "{output-head-parts}"),
    }
    layer = {
        "attention": (_sum(in_layer, "attention", "attention_norms"), "{attention-parts}"),
        "feed_forward": (_sum(in_layer, "mlp"), "{feed-forward-parts}"),
        "norms": (_sum(in_layer, "norms", "other"), "{norms-parts}"),
    }
    total = sum((parameters for parameters, _ in model.values()), ZERO)
    rows = {**model, **layer, "total": (total, "")}
    made_from = {
        "all_layers": FromParts(Expression.parse("L*parts"), LAYER_PARTS),
        "total": FromParts(PARTS_SUM, MODEL_PARTS),
    }
    nonzero = {key: row for key, row in rows.items() if row[0] != ZERO}
    sum_of = {
        key: " + ".join(f"{{{part}}}" for part in made.parts if part in nonzero) for key, made in made_from.items()
    }
    formulas = {"all_layers": f"{{L}} · ({sum_of['all_layers']})", "total": sum_of["total"]}
    return tuple(
        Count(key, parameters, formulas.get(key, formula), made_from.get(key))
        for key, (parameters, formula) in nonzero.items()
    )


def _sum(parameters: ParameterSpecs, *buckets: Bucket) -> Expression:
    """The parameters of these tensors added up: those in the named buckets, or all if none is named."""
    return sum((spec.count for spec in parameters if not buckets or spec.bucket in buckets), ZERO)
