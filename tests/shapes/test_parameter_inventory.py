"""What a parameter-count sheet tells about a model is enough to count its parameters by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.models.architecture import Architecture
from app.models.parameter_count import parameter_counts
from app.models.read_config import build_architecture
from app.shapes.parameter_inventory import Fact, parameter_inventory
from app.topics.registry import topic_for
from app.topics.requirements import TopicError
from tests.helpers.families_cases import CASES, Case


def countable_models(case: Case) -> Iterator[Architecture]:
    """The family's models that can have a parameter-count sheet."""
    for config, name in case.configs():
        architecture = build_architecture({**config, "architectures": [name]})
        try:
            topic_for("parameter-count", architecture, 10)
        except TopicError:
            continue
        yield architecture


def numbers(fact: object) -> int:
    """The parameters of a module or of one norm, as its phrase names them."""
    assert isinstance(fact, Fact)
    word = fact.words
    if fact.key == "norm":
        return numbers(word["numbers"])
    if fact.key in ("scales", "scales-biases"):
        return number(word["n"]) * (2 if fact.key == "scales-biases" else 1)
    assert fact.key in ("matrix", "matrix-bias")
    return number(word["rows"]) * number(word["columns"]) + (number(word["columns"]) if "bias" in fact.key else 0)


def number(value: object) -> int:
    assert isinstance(value, int)
    return value


def modules(fact: Fact) -> int:
    """The parameters of a list of modules."""
    listed = fact.words["list"]
    assert isinstance(listed, tuple)
    return sum(map(numbers, listed))


def block(fact: Fact, matrices: int, width: int, d: int) -> int:
    """The parameters of a feed-forward block with so many matrices, one of which leads back."""
    biases = fact.words.get("biases", Fact("without-biases"))
    assert isinstance(biases, Fact)
    added = (matrices - 1) * width + d if biases.key == "with-biases" else 0
    return matrices * d * width + added


def counted_by_hand(a: Architecture) -> int:
    """The total as a student works it out: d, H, G, d_h and d_v from the description, all else from the inventory."""
    facts = {fact.key: fact for fact in parameter_inventory(a)}
    tables = [fact for fact in parameter_inventory(a) if fact.key.endswith(("-table", "token-embedding"))]
    value = {key: dict(fact.words) for key, fact in facts.items()}
    total = sum(number(table.words["rows"]) * number(table.words["width"]) for table in tables)
    if "patch-embedding" in facts:
        p, c, d = (number(value["patch-embedding"][s]) for s in "pcd")
        total += p * p * c * d + 2 * d
    for key in ("embedding-norm", "final-norm"):
        total += numbers(value[key]["numbers"]) if key in facts else 0
    for key in ("embedding-projection", "pooler", "head-transform", "task-head"):
        total += modules(facts[key]) if key in facts else 0
    return total + layers_by_hand(a, facts) + lm_head_by_hand(facts)


def lm_head_by_hand(facts: dict[str, Fact]) -> int:
    (head,) = (fact for key, fact in facts.items() if key.startswith("lm-head"))
    if head.key == "lm-head-none":
        return 0
    vocabulary, biases = number(head.words["V"]), int(head.key[-1])
    matrix = vocabulary * number(head.words["width"]) if "untied" in head.key else 0
    return matrix + biases * vocabulary


def layers_by_hand(a: Architecture, facts: dict[str, Fact]) -> int:
    """All layers: as many as have parameters of their own, with and without experts."""
    if "layers-share" in facts or "layers-share-one" in facts:
        (share,) = (fact for key, fact in facts.items() if key.startswith("layers-share"))
        layers = number(share.words["stored"])
    else:
        layers = number(facts["layers"].words["L"])
    mixed = facts.get("layers-mixed") or facts.get("layers-mixed-one")
    with_experts = number(mixed.words["experts"]) if mixed else layers if "expert" in facts else 0
    norms = norms_by_hand(facts, layers)
    in_every_layer = attention_by_hand(a, facts)
    experts = experts_by_hand(facts, a.d) if with_experts else 0
    dense = [fact for key, fact in facts.items() if "feed-forward-" in key]
    plain = block(dense[0], 3 if "gated" in dense[0].key else 2, number(dense[0].words["width"]), a.d) if dense else 0
    return norms + layers * in_every_layer + with_experts * experts + (layers - with_experts) * plain


def norms_by_hand(facts: dict[str, Fact], layers: int) -> int:
    for count in range(1, 5):
        if fact := facts.get(f"norms-{count}"):
            first = next((int(key[-1]) for key in facts if key.startswith("norms-first-")), count)
            return numbers(fact.words["numbers"]) * (count * (layers - 1) + first)
    assert "norms-none" in facts
    return 0


def attention_by_hand(a: Architecture, facts: dict[str, Fact]) -> int:
    """One layer's attention, and its sinks."""
    sinks = a.H if "sinks" in facts else 0
    if "latent-projections" in facts:
        return sinks + latent_attention_by_hand({**facts["latent-projections"].words}, facts)
    q, k, v, o = a.H * a.d_h, a.G * a.d_h, a.G * a.d_v, a.H * a.d_v
    total = sinks + a.d * (q + k + v + o)
    if "all-biases" in facts:
        total += q + k + v + a.d
    if biased := facts.get("some-biases") or facts.get("one-bias"):
        which = biased.words["which"]
        assert isinstance(which, tuple)
        total += sum({"q": q, "k": k, "v": v, "o": a.d}[projection.key[-1]] for projection in which)
    if norms := facts.get("qk-norms") or facts.get("qk-norms-biases"):
        total += number(norms.words["q"]) + number(norms.words["k"])
    return total


def latent_attention_by_hand(sizes: dict[str, object], facts: dict[str, Fact]) -> int:
    size = {symbol: number(value) for symbol, value in sizes.items()}
    d, heads, r_kv, d_rope = size["d"], size["H"], size["r_kv"], size["d_rope"]
    total = d * (r_kv + d_rope) + r_kv + r_kv * heads * (size["d_nope"] + size["d_v"]) + heads * size["d_v"] * d
    if "latent-queries" in facts:
        total += d * size["r_q"] + size["r_q"] + size["r_q"] * heads * size["d_h"]
    else:
        total += d * heads * size["d_h"]
    if "latent-biases" in facts or "direct-latent-biases" in facts:
        total += r_kv + d_rope + d + (size["r_q"] if "latent-biases" in facts else 0)
    return total


def experts_by_hand(facts: dict[str, Fact], d: int) -> int:
    """The feed-forward part of one layer with experts."""
    router = facts.get("router") or facts["router-bias"]
    experts = number(router.words["E"])
    total = d * experts + (experts if router.key == "router-bias" else 0)
    total += experts * block(facts["expert"], 3, number(facts["expert"].words["width"]), d)
    if shared := facts.get("shared-expert"):
        total += block(shared, 3, number(shared.words["width"]), d)
    if shared := facts.get("shared-experts"):
        total += number(shared.words["number"]) * block(shared, 3, number(shared.words["width"]), d)
    return total + (d if "shared-gate" in facts else 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)
def test_the_inventory_is_enough_to_count_every_parameter(case: Case) -> None:
    for architecture in countable_models(case):
        told = [fact.key for fact in parameter_inventory(architecture)]
        assert counted_by_hand(architecture) == parameter_counts(architecture).total, told
