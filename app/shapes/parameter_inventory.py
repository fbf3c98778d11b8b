"""What a parameter-count sheet tells about its model, as facts with numbers: enough to solve it from its text.

Each Fact is one sentence or phrase of the wording's section "inventory". Sizes that the sheet's description gives
anyway, such as the number of heads, are not repeated.

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

from app.algebra.expression import ZERO
from app.models.architecture import Architecture
from app.models.parameter_specs import ParameterSpec, ParameterSpecs
from app.shapes.experts import expert_sizes
from app.shapes.parameter_parts import LayerKind, layer_kinds, number_of_parameters, outside_parts


@dataclass(frozen=True)
class Fact:
    """A sentence or phrase of the wording, by its key, with what it names.

    A number is written as sheets write numbers, a text stands as it is, a Fact is a phrase, several are a list.
    """

    key: str
    words: Mapping[str, int | str | Fact | tuple[Fact, ...]] = field(default_factory=dict)


def parameter_inventory(architecture: Architecture) -> Iterator[Fact]:
    """What there is to count: embeddings, layers part by part, final norm, LM head and other heads, in this order.

    Only for models that the topic "parameter-count" is true of.
    """
    outside, kinds = outside_parts(architecture), layer_kinds(architecture.stacks[0])
    yield from _embeddings(architecture, outside)
    yield from _layers(architecture, kinds)
    yield from _attention(architecture, kinds[0].parts)
    with_experts, without = (next((k for k in kinds if k.has_experts is has), None) for has in (True, False))
    if without:
        yield _feed_forward(architecture, without.parts["feed_forward"], beside_experts=with_experts is not None)
    if with_experts:
        yield from _experts(architecture, with_experts.parts)
    yield from _norms(architecture, kinds)
    yield from _after_layers(architecture, outside)


def experts_inventory(architecture: Architecture) -> Iterator[Fact]:
    """What a sheet about a mixture of experts tells of it: how many experts, of which size, and what else there is.

    Only for models that the topic "experts" is true of.
    """
    kinds = layer_kinds(architecture.stacks[0])
    kind = next(kind for kind in kinds if kind.has_experts)
    sizes = {**architecture.all_sizes, **expert_sizes(architecture)}
    layers = "experts-in-all-layers" if len(kinds) == 1 else "experts-in-some-layers"
    yield Fact(layers, {symbol: sizes[symbol] for symbol in ("L", "L_exp", "E", "k")})
    if _has_biases(kind.parts["router"]):
        yield Fact("router-biased")
    yield Fact("expert-gated", {"width": sizes["d_exp"], "biases": _with_biases(kind.parts["experts"])})
    yield from _shared_experts(architecture, kind.parts)
    yield Fact("beside-experts-and-shared" if "shared_experts" in kind.parts else "beside-experts", sizes)


def _embeddings(a: Architecture, outside: Mapping[str, ParameterSpecs]) -> Iterator[Fact]:
    """The tables of embeddings one by one, then what stands between them and the first layer."""
    for spec in outside.get("embedding", ()):
        rows, width = (dim.size(a.all_sizes) for dim in spec.in_out_shape[-2:])
        yield Fact(_table_key(spec), {"rows": rows, "width": width})
    if "patch_embedding" in outside:
        yield Fact("patch-embedding", {symbol: a.all_sizes[symbol] for symbol in ("p", "c", "d")})
    if "embedding_norm" in outside:
        yield Fact("embedding-norm", _norm_words(a, outside["embedding_norm"]))
    if "embedding_projection" in outside:
        yield Fact("embedding-projection", {"list": _modules(a, outside["embedding_projection"])})


def _table_key(spec: ParameterSpec) -> str:
    """The sentence on a table of embeddings: of token types, of positions, or of tokens."""
    rows = spec.in_out_shape[-2].symbols
    return "type-table" if "T" in rows else "position-table" if "P" in rows else "token-embedding"


def _layers(a: Architecture, kinds: Sequence[LayerKind]) -> Iterator[Fact]:
    """How many layers there are, and which of them have parameters of their own, or experts."""
    stored = sum(kind.layers for kind in kinds)
    if a.stacks[0].spec.count != "L":
        yield Fact("layers-share-one" if stored == 1 else "layers-share", {"L": a.L, "stored": stored})
        return
    yield Fact("layers", {"L": a.L})
    if any(kind.has_experts for kind in kinds) and len(kinds) > 1:
        experts, dense = (sum(kind.layers for kind in kinds if kind.has_experts is has) for has in (True, False))
        yield Fact("layers-mixed-one" if dense == 1 else "layers-mixed", {"dense": dense, "experts": experts})


def _attention(a: Architecture, layer: Mapping[str, ParameterSpecs]) -> Iterator[Fact]:
    """The projections of attention: which have biases, and which norms stand beside them; then the sinks."""
    if "r_kv" in a.all_sizes:
        yield from _latent_attention(a)
    else:
        some = "one-bias" if len(a.biases) == 1 else "some-biases"
        yield Fact({"": "no-biases", "qkvo": "all-biases"}.get(a.biases, some), _bias_names(a.biases))
        norms = [spec for spec in layer["attention"] if spec.bucket == "attention_norms"]
        if norms:
            sides = {side: _total(a, [s for s in norms if f"{side}_" in s.name]) for side in ("q", "k")}
            yield Fact("qk-norms-biases" if _has_biases(norms) else "qk-norms", sides)
    if "sinks" in layer:
        yield Fact("sinks")


def _bias_names(biases: str) -> Mapping[str, tuple[Fact, ...]]:
    """The projections with a bias as a list of phrases, where some have one and others not."""
    return {"which": tuple(Fact(f"projection-{letter}") for letter in biases)} if biases not in ("", "qkvo") else {}


def _latent_attention(a: Architecture) -> Iterator[Fact]:
    """The projections of latent attention (DeepSeek), with the norms of their latents."""
    yield Fact("latent-queries" if "r_q" in a.all_sizes else "direct-queries", a.all_sizes)
    yield Fact("latent-projections", a.all_sizes)
    biases = "latent-biases" if "r_q" in a.all_sizes else "direct-latent-biases"
    yield Fact(biases if a.biases else "latent-no-biases")


def _feed_forward(a: Architecture, specs: ParameterSpecs, *, beside_experts: bool) -> Fact:
    """The feed-forward block: gated or plain, its inner width and its biases."""
    words: dict[str, int | Fact] = {"d": a.d, "width": _inner_width(a, specs), "biases": _with_biases(specs)}
    key = "feed-forward-gated" if a.gated else "feed-forward-plain"
    return Fact(f"dense-{key}" if beside_experts else key, words)


def _experts(a: Architecture, layer: Mapping[str, ParameterSpecs]) -> Iterator[Fact]:
    """The mixture of experts of a layer: router, experts, and shared experts if there are any."""
    router, experts = layer["router"], layer["experts"]
    sizes = {symbol: a.all_sizes[symbol] for symbol in ("d", "E", "k")}
    yield Fact("router-bias" if _has_biases(router) else "router", sizes)
    yield Fact("expert", {"d": a.d, "width": _inner_width(a, experts), "biases": _with_biases(experts)})
    yield from _shared_experts(a, layer)


def _shared_experts(a: Architecture, layer: Mapping[str, ParameterSpecs]) -> Iterator[Fact]:
    """The experts of a layer that every token goes through, if there are any."""
    if "shared_experts" not in layer:
        return
    shared = layer["shared_experts"]
    width, number = _inner_width(a, shared), a.all_sizes.get("n_sh", 1)
    if number > 1 and not _has_biases(shared):  # stored as one block, which a bias of the last matrix would give away
        yield Fact("shared-experts", {"number": number, "width": width // number})
    else:
        yield Fact("shared-expert", {"width": width, "biases": _with_biases(shared)})
    if any("shared_expert_gate" in spec.name for spec in shared):
        yield Fact("shared-gate", {"d": a.d})


def _norms(a: Architecture, kinds: Sequence[LayerKind]) -> Iterator[Fact]:
    """How many norms a layer has and of which size; the first layer's apart if it has fewer."""
    *first, rest = [kind.parts.get("norms", ()) for kind in kinds]
    if not rest:
        yield Fact("norms-none")
        return
    yield Fact(f"norms-{_number_of_norms(rest)}", _norm_words(a, rest))
    if first and first[0] != rest:
        yield Fact(f"norms-first-{_number_of_norms(first[0])}")


def _after_layers(a: Architecture, outside: Mapping[str, ParameterSpecs]) -> Iterator[Fact]:
    """What follows the last layer: final norm, pooler, LM head with what precedes it, and any other head."""
    if "final_norm" in outside:
        yield Fact("final-norm", _norm_words(a, outside["final_norm"]))
    elif a.norm_placement != "post":
        yield Fact("final-norm-none")
    for part in ("pooler", "head_transform"):
        if part in outside:
            yield Fact(part.replace("_", "-"), {"list": _modules(a, outside[part])})
    yield _lm_head(a, outside.get("output_head", ()))
    if "task_head" in outside:
        yield Fact("task-head", {"list": _modules(a, outside["task_head"])})


def _lm_head(a: Architecture, specs: ParameterSpecs) -> Fact:
    """The LM head: none, tied to the token embedding or a matrix of its own, and its biases."""
    if "V" not in {symbol for dim in a.task_head.logits or () for symbol in dim.symbols}:
        return Fact("lm-head-none")
    matrices = [spec for spec in specs if spec.bucket == "output_head" and len(spec.in_out_shape) == 2]
    biases = len(specs) - len(matrices)
    key = "lm-head-untied" if matrices else "lm-head-tied"
    width = matrices[0].in_out_shape[0].size(a.all_sizes) if matrices else a.d
    return Fact(f"{key}-{biases}", {"width": width, "V": a.all_sizes["V"]})


def _modules(a: Architecture, specs: ParameterSpecs) -> tuple[Fact, ...]:
    """The tensors module by module: a matrix or a norm, each with its bias if it has one."""
    by_module = dict[str, list[ParameterSpec]]()
    for spec in specs:
        by_module.setdefault(spec.name.rpartition(".")[0], []).append(spec)
    return tuple(_module(a, module) for module in by_module.values())


def _module(a: Architecture, specs: Sequence[ParameterSpec]) -> Fact:
    """One matrix or one norm, with or without a bias."""
    weight = specs[0]
    if len(weight.in_out_shape) == 1:
        return Fact("norm", _norm_words(a, specs))
    rows, columns = (dim.size(a.all_sizes) for dim in weight.in_out_shape)
    return Fact("matrix-bias" if len(specs) > 1 else "matrix", {"rows": rows, "columns": columns})


def _norm_words(a: Architecture, norms: Sequence[ParameterSpec]) -> Mapping[str, str | Fact]:
    """What a norm is called, and how many numbers it has: scales, and as many biases if it has any."""
    length = norms[0].in_out_shape[0].size(a.all_sizes)
    numbers = Fact("scales-biases" if _has_biases(norms) else "scales", {"n": length})
    return {"norm": a.norm, "a_norm": Fact(f"a-{a.norm}"), "numbers": numbers}


def _number_of_norms(norms: Iterable[ParameterSpec]) -> int:
    """How many norms these tensors make: as many as there are scales."""
    return sum(not spec.name.endswith("bias") for spec in norms)


def _inner_width(a: Architecture, specs: ParameterSpecs) -> int:
    """The inner width of a feed-forward block or of an expert: the rows of its last matrix."""
    matrices = [s for s in specs if len(s.in_out_shape) == (3 if s.routed else 2) and "gate." not in s.name]
    return matrices[-1].in_out_shape[-2].size(a.all_sizes)


def _has_biases(specs: Iterable[ParameterSpec]) -> bool:
    """Whether one of these tensors is a bias."""
    return any("bias" in spec.name for spec in specs)


def _with_biases(specs: ParameterSpecs) -> Fact:
    """The phrase that says whether matrices have biases."""
    return Fact("with-biases" if _has_biases(specs) else "without-biases")


def _total(a: Architecture, specs: Sequence[ParameterSpec]) -> int:
    """The numbers of these tensors together."""
    total = number_of_parameters(specs)
    return 0 if total == ZERO else total.size(a.all_sizes)
