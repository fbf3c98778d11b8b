"""The rows of a parameter-count sheet: the parameters of a whole model, part by part, as sums of products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture, LayerKind
from app.models.parameter_specs import ModelPart, ParameterSpecs, TensorKind, number_of_parameters
from app.shapes.table import PARTS_SUM, Count, FromParts

_BEFORE_LAYERS = ("embedding", "patch_embedding", "embedding_norm", "embedding_projection")


def parameter_rows(architecture: Architecture) -> tuple[Count, ...]:
    """Counts of parameters: the parts outside the layers, the parts of one layer, totals of layers, and the total."""
    stack = architecture.stacks[0]
    kinds = stack.kinds
    outside = {row: _leaf(row, specs) for row, specs in architecture.outside_rows.items()}
    # ALBERT runs the same stored layers several times; L counts the layers that it runs.
    layers = Expression.symbol("L") if stack.spec.count == "L" else Expression.number(kinds[0].layers)
    in_layers = _rows_of_layers(kinds, layers)
    before, after = (
        [row for row in outside.values() if (row.key in _BEFORE_LAYERS) is is_before] for is_before in (True, False)
    )
    total = added_up("total", [*before, in_layers["all_layers"], *after])
    return (*outside.values(), *in_layers.values(), total, *_rows_of_used(kinds, total))


def _rows_of_layers(kinds: Sequence[LayerKind], layers: Expression) -> dict[str, Count]:
    if any("mixer" in kind.rows for kind in kinds):
        return _rows_of_mixing_layers(kinds)
    mixed = any(kind.has_experts for kind in kinds) and len(kinds) > 1
    by_kind = [_rows_of_layer(kind, mixed=mixed) for kind in kinds]
    rows = {key: row for rows in by_kind for key, row in rows.items()}
    if len(kinds) == 1:
        return {**rows, "all_layers": added_up("all_layers", _summands(rows), times=layers)}
    if not mixed:
        return {**{key: row for key, row in rows.items() if key != "norms"}, **_totals_with_norms(kinds)}
    totals = {
        key: added_up(key, _summands(rows), times=Expression.number(kind.layers))
        for kind, rows in zip(kinds, by_kind, strict=True)
        for key in ["expert_layers" if kind.has_experts else "dense_layers"]
    }
    return {**rows, **totals, "all_layers": added_up("all_layers", list(totals.values()))}


def _rows_of_mixing_layers(kinds: Sequence[LayerKind]) -> dict[str, Count]:
    # Each part has a row, and all layers are the sum of the parts, each as often as there are layers with it.
    mixed = len({kind.has_experts for kind in kinds}) > 1
    rows, layers = dict[str, Count](), Counter[str]()
    for kind in kinds:
        of_kind = _rows_of_layer(kind, mixed=mixed)
        rows |= of_kind
        layers.update(dict.fromkeys((row.key for row in _summands(of_kind)), kind.layers))
    total = sum((rows[key].total * count for key, count in layers.items()), ZERO)
    parts = sum((Expression.symbol(key) * count for key, count in layers.items()), ZERO)
    formula = " + ".join(f"{count} · {{{key}}}" for key, count in layers.items())
    return {**rows, "all_layers": Count("all_layers", total, formula, FromParts(parts, tuple(layers)))}


def _rows_of_layer(kind: LayerKind, *, mixed: bool) -> dict[str, Count]:
    rows = dict[str, Count]()
    for row, specs in kind.rows.items():
        if row == "experts":
            parameters = number_of_parameters(specs).substitute({"E": Expression.number(1)})
            rows["one_expert"] = Count("one_expert", parameters, _summands_in_words(specs))
            rows[row] = added_up(row, [rows["one_expert"]], times=Expression.symbol("E"))
        else:
            key = "dense_feed_forward" if mixed and row == "feed_forward" else row
            rows[key] = _leaf(key, specs)
    return rows


def _summands(rows: Mapping[str, Count]) -> list[Count]:
    return [row for key, row in rows.items() if key != "one_expert"]


def _totals_with_norms(kinds: Sequence[LayerKind]) -> dict[str, Count]:
    norms = sum((number_of_parameters(kind.rows.get("norms", ())) * kind.layers for kind in kinds), ZERO)
    layers = (number_of_parameters(kind.parameters) for kind in kinds)
    all_layers = sum((layer * kind.layers for layer, kind in zip(layers, kinds, strict=True)), ZERO)
    L, attention, feed_forward, all_norms = map(Expression.symbol, ("L", "attention", "feed_forward", "all_norms"))
    made_from = FromParts(L * attention + L * feed_forward + all_norms, ("attention", "feed_forward", "all_norms"))
    formula = "{L} · ({attention} + {feed_forward}) + {all_norms}"
    return {
        "all_norms": Count("all_norms", norms, _summands_in_words(kinds[-1].rows["norms"])),
        "all_layers": Count("all_layers", all_layers, formula, made_from),
    }


def _rows_of_used(kinds: Sequence[LayerKind], total: Count) -> Iterator[Count]:
    routed = sum((number_of_parameters(kind.rows.get("experts", ())) * kind.layers for kind in kinds), ZERO)
    if routed != ZERO:
        used = routed.substitute({"E": Expression.symbol("k")})
        unused_experts = (Expression.symbol("E") - Expression.symbol("k")) * sum(
            kind.layers for kind in kinds if kind.has_experts
        )
        made_from = FromParts(
            Expression.symbol("total") - Expression.symbol("one_expert") * unused_experts, ("total", "one_expert")
        )
        yield Count("used", total.total - routed + used, "{total} − {unused-experts}", made_from)


def _leaf(key: str, specs: ParameterSpecs) -> Count:
    return Count(key, number_of_parameters(specs), _summands_in_words(specs))


def added_up(key: str, rows: Sequence[Count], times: Expression | None = None) -> Count:
    """A row that sums other rows, `times` as often if given."""
    total = sum((row.total for row in rows), ZERO)
    keys = tuple(row.key for row in rows)
    formula = " + ".join(f"{{{key}}}" for key in keys)
    if times is None:
        return Count(key, total, formula, FromParts(PARTS_SUM, keys))
    factor = f"{{{times}}}" if times.symbols else str(times)
    formula = f"{factor} · ({formula})" if len(keys) > 1 else f"{factor} · {formula}"
    return Count(key, total * times, formula, FromParts(times * PARTS_SUM, keys))


def _summands_in_words(specs: ParameterSpecs) -> str:
    kinds = [spec.kind for spec in specs]
    matrices = "matrix" if kinds.count("matrix") == 1 else "matrices"
    if specs[0].part == ModelPart.ATTENTION:  # except latent attention, whose formulas differ
        matrices = "attention-matrices"
    names: Mapping[TensorKind, str] = {"table": "tables", "matrix": matrices, "scale": "scales", "bias": "biases"}
    return " + ".join(f"{{{name}}}" for kind, name in names.items() if kind in kinds)
