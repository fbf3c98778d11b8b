"""What a parameter-count sheet says about its model: facts with enough numbers to solve it.

Each Fact is a sentence or phrase in the wording's section "inventory". Sizes in the sheet's description, such as the
number of heads, are not repeated.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> [fact.key for fact in parameter_inventory(gpt2)][:4]
['token-embedding', 'position-table', 'layers', 'all-biases']
>>> next(fact.words["rows"] for fact in parameter_inventory(gpt2) if fact.key == "position-table")
1024
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.models.architecture import Architecture, LayerKind
from app.models.parameter_specs import ModelPart, ParameterSpec, ParameterSpecs, Row, inner_width, number_of_parameters


@dataclass(frozen=True)
class Fact:
    """A sentence or phrase of the wording, by its key, with the words that fill it.

    A word may be a number, a text, another Fact, or several Facts that become a list.
    """

    key: str
    words: Mapping[str, int | str | Fact | tuple[Fact, ...]] = field(default_factory=dict)


def parameter_inventory(architecture: Architecture) -> Iterator[Fact]:
    """Yield the facts to count by: the embeddings, the number of layers, one layer, and everything after the layers."""
    outside, kinds = architecture.outside_rows, architecture.stacks[0].kinds
    yield from _embeddings(architecture, outside)
    yield from _layers(architecture, kinds)
    yield from _mixers(architecture, kinds)
    if attending := next((kind.rows for kind in kinds if "attention" in kind.rows), None):
        yield from _attention(architecture, attending)
    with_experts, without = (next((k for k in kinds if k.has_experts is has), None) for has in (True, False))
    if without and "feed_forward" in without.rows:
        yield _feed_forward(architecture, without.rows["feed_forward"], beside_experts=with_experts is not None)
    if with_experts:
        yield from _experts(architecture, with_experts.rows)
    yield from _norms(architecture, kinds)
    yield from _after_layers(architecture, outside)


def experts_inventory(architecture: Architecture, extra: Mapping[str, int]) -> Iterator[Fact]:
    """Yield the facts that a sheet about a mixture of experts gives about the model."""
    kinds = architecture.stacks[0].kinds
    kind = next(kind for kind in kinds if kind.has_experts)
    sizes = {**architecture.all_sizes, **extra}
    layers = "experts-in-all-layers" if len(kinds) == 1 else "experts-in-some-layers"
    yield Fact(layers, {symbol: sizes[symbol] for symbol in ("L", "L_exp", "E", "k")})
    if _has_biases(kind.rows["router"]):
        yield Fact("router-biased")
    yield Fact("expert-gated", {"width": sizes["d_exp"], "biases": _with_biases(kind.rows["experts"])})
    yield from _shared_experts(architecture, kind.rows)
    yield Fact("beside-experts-and-shared" if "shared_experts" in kind.rows else "beside-experts", sizes)


_TABLES = {
    ModelPart.TOKEN_TABLE: "token-embedding",
    ModelPart.POSITION_TABLE: "position-table",
    ModelPart.TYPE_TABLE: "type-table",
}


def _embeddings(a: Architecture, outside: Mapping[Row, ParameterSpecs]) -> Iterator[Fact]:
    for spec in outside.get("embedding", ()):
        rows, width = (dim.size(a.all_sizes) for dim in spec.in_out_shape[-2:])
        yield Fact(_TABLES[spec.part], {"rows": rows, "width": width})
    if "patch_embedding" in outside:
        yield Fact("patch-embedding", {symbol: a.all_sizes[symbol] for symbol in ("p", "c", "d")})
    if "embedding_norm" in outside:
        yield Fact("embedding-norm", _norm_words(a, outside["embedding_norm"]))
    if "embedding_projection" in outside:
        yield Fact("embedding-projection", {"list": _modules(a, outside["embedding_projection"])})


def _layers(a: Architecture, kinds: Sequence[LayerKind]) -> Iterator[Fact]:
    stored = sum(kind.layers for kind in kinds)
    if a.stacks[0].spec.count != "L":
        yield Fact("layers-share-one" if stored == 1 else "layers-share", {"L": a.L, "stored": stored})
        return
    yield Fact("layers", {"L": a.L})
    if len({kind.has_experts for kind in kinds}) > 1:
        experts, dense = (sum(kind.layers for kind in kinds if kind.has_experts is has) for has in (True, False))
        yield Fact("layers-mixed-one" if dense == 1 else "layers-mixed", {"dense": dense, "experts": experts})


def _attention(a: Architecture, layer: Mapping[Row, ParameterSpecs]) -> Iterator[Fact]:
    if a.has_latent_attention:
        yield from _latent_attention(a)
    else:
        if a.biases in ("", "qkvo"):
            yield Fact("all-biases" if a.biases else "no-biases")
        else:
            which = tuple(Fact(f"projection-{letter}") for letter in a.biases)
            yield Fact("one-bias" if len(which) == 1 else "some-biases", {"which": which})
        sides = {"q": ModelPart.QUERY_NORM, "k": ModelPart.KEY_NORM}
        norms = {side: [spec for spec in layer["attention"] if spec.part == part] for side, part in sides.items()}
        if norms["q"]:
            sizes = {side: number_of_parameters(specs).size(a.all_sizes) for side, specs in norms.items()}
            yield Fact("qk-norms-biases" if _has_biases(norms["q"]) else "qk-norms", sizes)
    if "sinks" in layer:
        yield Fact("sinks")


def _mixers(a: Architecture, kinds: Sequence[LayerKind]) -> Iterator[Fact]:
    mixing = [kind for kind in kinds if "mixer" in kind.rows]
    if not mixing:
        return
    count = number_of_parameters(mixing[0].rows["mixer"]).size(a.all_sizes)
    layers, attending = sum(kind.layers for kind in mixing), len(a.attention_layers)
    key = "mixer-only" if not attending else "mixer-beside" if layers == attending == a.L else "mixer-instead"
    yield Fact(key, {"n": layers, "attending": attending, "count": count})


def _latent_attention(a: Architecture) -> Iterator[Fact]:
    yield Fact("latent-queries" if a.has_latent_queries else "direct-queries", a.all_sizes)
    yield Fact("latent-projections", a.all_sizes)
    yield Fact("latent-norms" if a.has_latent_queries else "latent-norm", a.all_sizes)
    biases = "latent-biases" if a.has_latent_queries else "direct-latent-biases"
    yield Fact(biases if a.biases else "latent-no-biases")


def _feed_forward(a: Architecture, specs: ParameterSpecs, *, beside_experts: bool) -> Fact:
    words: dict[str, int | Fact] = {
        "d": a.d,
        "width": inner_width(specs).size(a.all_sizes),
        "biases": _with_biases(specs),
    }
    key = "feed-forward-gated" if a.gated else "feed-forward-plain"
    return Fact(f"dense-{key}" if beside_experts else key, words)


def _experts(a: Architecture, layer: Mapping[Row, ParameterSpecs]) -> Iterator[Fact]:
    router, experts = layer["router"], layer["experts"]
    sizes = {symbol: a.all_sizes[symbol] for symbol in ("d", "E", "k")}
    yield Fact("router-bias" if _has_biases(router) else "router", sizes)
    yield Fact("expert", {"d": a.d, "width": inner_width(experts).size(a.all_sizes), "biases": _with_biases(experts)})
    yield from _shared_experts(a, layer)


def _shared_experts(a: Architecture, layer: Mapping[Row, ParameterSpecs]) -> Iterator[Fact]:
    if "shared_experts" not in layer:
        return
    shared = layer["shared_experts"]
    width, number = inner_width(shared).size(a.all_sizes), a.all_sizes.get("n_sh", 1)
    if number > 1 and not _has_biases(shared):  # stored as one block; a bias of the last matrix would show that
        yield Fact("shared-experts", {"number": number, "width": width // number})
    else:
        yield Fact("shared-expert", {"width": width, "biases": _with_biases(shared)})
    if any(spec.part == ModelPart.SHARED_GATE for spec in shared):
        yield Fact("shared-gate", {"d": a.d})


def _norms(a: Architecture, kinds: Sequence[LayerKind]) -> Iterator[Fact]:
    *first, rest = [kind.rows.get("norms", ()) for kind in kinds]
    if not rest:
        yield Fact("norms-none")
        return
    yield Fact(f"norms-{_number_of_norms(rest)}", _norm_words(a, rest))
    if first and first[0] != rest:
        yield Fact(f"norms-first-{_number_of_norms(first[0])}")


def _after_layers(a: Architecture, outside: Mapping[Row, ParameterSpecs]) -> Iterator[Fact]:
    if "final_norm" in outside:
        yield Fact("final-norm", _norm_words(a, outside["final_norm"]))
    elif a.norm_placement != "post":
        yield Fact("final-norm-none")
    if "pooler" in outside:
        yield Fact("pooler", {"list": _modules(a, outside["pooler"])})
    if "head_transform" in outside:
        yield Fact("head-transform", {"list": _modules(a, outside["head_transform"])})
    yield _lm_head(a, outside.get("output_head", ()))
    if "task_head" in outside:
        yield Fact("task-head", {"list": _modules(a, outside["task_head"])})


def _lm_head(a: Architecture, specs: ParameterSpecs) -> Fact:
    if not a.has_lm_head:
        return Fact("lm-head-none")
    matrices = [spec for spec in specs if spec.kind == "matrix"]
    biases = len(specs) - len(matrices)
    key = "lm-head-untied" if matrices else "lm-head-tied"
    width = matrices[0].in_out_shape[0].size(a.all_sizes) if matrices else a.d
    return Fact(f"{key}-{biases}", {"width": width, "V": a.all_sizes["V"]})


def _modules(a: Architecture, specs: ParameterSpecs) -> tuple[Fact, ...]:
    modules = list[list[ParameterSpec]]()
    for spec in specs:
        if spec.kind == "bias":
            modules[-1].append(spec)
        else:
            modules.append([spec])
    return tuple(_module(a, module) for module in modules)


def _module(a: Architecture, specs: Sequence[ParameterSpec]) -> Fact:
    if specs[0].kind == "scale":
        return Fact("norm", _norm_words(a, specs))
    rows, columns = (dim.size(a.all_sizes) for dim in specs[0].in_out_shape)
    return Fact("matrix-bias" if len(specs) > 1 else "matrix", {"rows": rows, "columns": columns})


def _norm_words(a: Architecture, norms: Sequence[ParameterSpec]) -> Mapping[str, str | Fact]:
    length = norms[0].in_out_shape[0].size(a.all_sizes)
    numbers = Fact("scales-biases" if _has_biases(norms) else "scales", {"n": length})
    return {"norm": a.norm, "a_norm": Fact(f"a-{a.norm}"), "numbers": numbers}


def _number_of_norms(norms: Iterable[ParameterSpec]) -> int:
    return sum(spec.kind == "scale" for spec in norms)


def _has_biases(specs: Iterable[ParameterSpec]) -> bool:
    return any(spec.kind == "bias" for spec in specs)


def _with_biases(specs: ParameterSpecs) -> Fact:
    return Fact("with-biases" if _has_biases(specs) else "without-biases")


# A model of a table may have tensors that these facts don't tell: its sheet would then ask for what nobody can count.


def is_told_whole(architecture: Architecture) -> bool:
    """Whether every parameter of the model can be counted by the facts of `parameter_inventory`."""
    outside = architecture.outside_rows
    tables = outside.get("embedding", ())
    return (
        all(spec.part in _TABLES and len(spec.in_out_shape) == 2 for spec in tables)
        and "embedding_projection" not in outside
        and all(_is_one_norm(outside.get(row, ())) for row in _OUTSIDE_NORMS)
        and all(_are_modules(outside.get(row, ())) for row in _OUTSIDE_MODULES)
        and _is_one_lm_head(outside.get("output_head", ()))
        and all(_is_told(architecture, kind.rows) for kind in architecture.stacks[0].kinds)
    )


_OUTSIDE_NORMS: tuple[Row, ...] = ("embedding_norm", "final_norm")
_OUTSIDE_MODULES: tuple[Row, ...] = ("pooler", "head_transform")
_MOST_NORMS = 4


def _is_one_norm(specs: ParameterSpecs) -> bool:
    return [spec.kind for spec in specs] in ([], ["scale"], ["scale", "bias"])


def _are_modules(specs: ParameterSpecs) -> bool:
    before = "bias"  # a bias comes after its matrix or scale
    for spec in specs:
        if (spec.kind == "bias" and before == "bias") or spec.kind == "table" or len(spec.in_out_shape) > 2:
            return False
        before = spec.kind
    return True


def _is_one_lm_head(specs: ParameterSpecs) -> bool:
    kinds = [spec.kind for spec in specs]
    return kinds.count("matrix") <= 1 and kinds.count("bias") <= 2 and {*kinds} <= {"matrix", "bias"}


def _is_told(a: Architecture, layer: Mapping[Row, ParameterSpecs]) -> bool:
    E, d = (a.all_sizes.get(symbol, 0) for symbol in ("E", "d"))
    experts, shared = layer.get("experts", ()), layer.get("shared_experts", ())
    blocks = [spec for spec in shared if spec.part != ModelPart.SHARED_GATE]
    norms = layer.get("norms", ())
    lengths = {spec.in_out_shape[-1].size(a.all_sizes) for spec in norms}
    return (
        _is_attention_told(a, layer.get("attention", ()))
        and _biases_of(layer.get("feed_forward", ())) is not None
        and (not experts or (_gated_size(a, experts) == 3 * E * d * inner_width(experts).size(a.all_sizes)))
        and (not blocks or (_gated_size(a, blocks) == 3 * d * inner_width(tuple(blocks)).size(a.all_sizes)))
        and not any(spec.kind == "bias" for spec in (*experts, *blocks))
        and len([spec for spec in layer.get("router", ()) if spec.kind == "matrix"]) == (1 if experts else 0)
        and lengths <= {d}
        and _number_of_norms(norms) <= _MOST_NORMS
        and sum(spec.kind == "bias" for spec in norms) in (0, _number_of_norms(norms))
    )


def _gated_size(a: Architecture, specs: Iterable[ParameterSpec]) -> int:
    return number_of_parameters(spec for spec in specs if spec.kind == "matrix").size(a.all_sizes)


def _is_attention_told(a: Architecture, specs: ParameterSpecs) -> bool:
    norms = [spec for spec in specs if spec.part in (ModelPart.QUERY_NORM, ModelPart.KEY_NORM)]
    projections = tuple(spec for spec in specs if spec not in norms)
    if a.has_latent_attention:
        return all(spec.kind == "matrix" for spec in projections) and all(spec.kind == "scale" for spec in norms)
    named = {spec.name.removesuffix("weight") for spec in projections if spec.kind == "matrix"}
    of_matrices = all(spec.name.removesuffix("bias") in named for spec in projections if spec.kind != "matrix")
    return of_matrices and len(norms) in (0, 2, 4)


def _biases_of(specs: ParameterSpecs) -> int | None:
    matrices = [spec for spec in specs if spec.kind == "matrix"]
    others = [spec for spec in specs if spec.kind != "matrix"]
    named = {spec.name.removesuffix("weight") for spec in matrices}
    are_biases = all(spec.name.removesuffix("bias") in named for spec in others)
    return len(others) if are_biases and len(others) in (0, len(matrices)) else None
