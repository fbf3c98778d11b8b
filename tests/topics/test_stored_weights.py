"""Names, shapes and slices of stored parameters, against the modules of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.topics.registry import refusal, sizes_for, topic_for
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.families_cases import CASES
from tests.helpers.reference import built, by_pattern, running
from tests.helpers.slow import one_in

TOPIC = "stored-weights"
# Families whose queries, keys and values are one matrix, and some in which they are three.
FAMILIES = (
    "gpt2", "falcon", "phi3", "qwen3", "gpt_neox", "bloom", "mpt", "gpt_bigcode", "persimmon", "openai-gpt",
    "modernbert", "bert", "deberta",
)  # fmt: skip
# Persimmon rotates half of a head, which must be an even number to run. In DeBERTa, positions meet keys as well.
OTHER_SIZES: Mapping[str, Mapping[str, object]] = {
    "persimmon": {"num_attention_heads": 6},
    "deberta": {"relative_attention": False, "position_biased_input": True},
}
CONFIGS = [
    (model_type, {**config, **OTHER_SIZES.get(model_type, {})}, name)
    for at in (0, -1)
    for model_type in FAMILIES
    for case in CASES
    if case.model_type == model_type
    for config, name in [[*case.configs()][at]]
]
Slice = tuple[str, int, int, int]  # the parameter, then dim, start and length


def answers(a: Architecture) -> dict[str, int]:
    """The right number for every count of the model's sheet, by key."""
    sizes = sizes_for(TOPIC, a, TOKENS, TOKENS)
    return {count.key: count.size("count", sizes) for count in topic_for(TOPIC, a, TOKENS).counts}


@pytest.mark.parametrize(("family", "config", "name"), one_in(6, CONFIGS))
def test_names_and_shapes_are_those_of_transformers(family: str, config: Mapping[str, Any], name: str) -> None:
    a = build_architecture({**config, "architectures": [name]}, family)
    stored = {pattern.partition("{i}.")[2]: shapes for pattern, shapes in by_pattern(built(config, name)).items()}
    table = topic_for(TOPIC, a, TOKENS)
    for key, shape in table.shapes(sizes_for(TOPIC, a, TOKENS, TOKENS)).items():
        assert set(stored[table[key].stored_as]) == {shape}, (family, key)


def slices(a: Architecture) -> dict[str, Slice]:
    """The slices of the queries that read head j's keys, of these keys and values, and of those heads' output."""
    table, key, share = topic_for(TOPIC, a, TOKENS), answers(a), a.H // a.G
    names = {t.letter.removeprefix("W_"): t.stored_as for t in table.tensors}
    j = sizes_for(TOPIC, a, TOKENS, TOKENS)["j"] if a.G == 1 else 0  # a lone key/value head is read from head 0 on
    q, k, v = (names.get("QKV", names.get(letter, "")) for letter in "QKV")
    length = key["q_length"]
    return {
        "q": (q, key["q_dim"], key["q_start"] - j * length, share * length),
        "k": (k, key["q_dim"], key["k_start"], length),
        "v": (v, key["q_dim"], key["v_start"], a.d_v),
        "o": (names["O"], key["o_dim"], key["o_start"] - j * a.d_v, share * a.d_v),
    }


@torch.no_grad()
def fill(model: Any, where: Slice, *, at_random: bool) -> None:
    """Zeros, or random numbers, in a slice of the first layer's weight; outputs of a module also lose their bias."""
    name, dim, start, length = where
    parameters = {key: p for key, p in model.named_parameters() if key.endswith(f".{name}")}
    first = min(parameters, key=len)
    weight = parameters[first]
    weight.narrow(dim, start, length).normal_() if at_random else weight.narrow(dim, start, length).zero_()
    bias = dict(model.named_parameters()).get(first.replace(".weight", ".bias"))
    if bias is not None and not at_random and len(bias) == weight.shape[dim]:
        bias.narrow(0, start, length).zero_()


@torch.no_grad()
def loud(config: Mapping[str, Any], name: str, a: Architecture) -> Any:
    """The running model with matrices of attention so large that each head changes what the layers make."""
    model = running(config, name)
    names = tuple(f".{tensor.stored_as}" for tensor in topic_for(TOPIC, a, TOKENS).tensors)
    for key, weight in model.named_parameters():
        if key.endswith(names):
            weight.normal_()
    return model


@torch.no_grad()
def output(model: Any) -> torch.Tensor:
    """The last layer's vectors of seven tokens."""
    hidden = model(torch.arange(1, 8)[None], output_hidden_states=True).hidden_states[-1]
    assert isinstance(hidden, torch.Tensor)
    return hidden


@pytest.mark.parametrize(("family", "config", "name"), one_in(4, CONFIGS))
def test_the_slices_of_a_head_are_where_transformers_reads_them(
    family: str, config: Mapping[str, Any], name: str
) -> None:
    a = build_architecture({**config, "architectures": [name]}, family)
    of_head = slices(a)
    for silent, unread in ("qk", "vo"):
        model = loud(config, name, a)
        before = output(model)
        fill(model, of_head[silent], at_random=False)
        silenced = output(model)
        assert not torch.allclose(before, silenced, atol=1e-4), (family, silent)
        fill(model, of_head[unread], at_random=True)
        assert torch.allclose(silenced, output(model), atol=1e-4), (family, unread)
        model = loud(config, name, a)
        fill(model, of_head[unread], at_random=True)
        assert not torch.allclose(before, output(model), atol=1e-4), (family, unread)


def test_the_chosen_head_is_one_of_the_model_and_not_the_first() -> None:
    for a in possible(TOPIC):
        j, key = sizes_for(TOPIC, a, TOKENS, TOKENS)["j"], answers(a)
        assert 0 < j < a.H, a.name
        if 1 < a.G < a.H:
            readers = [head for head in range(a.H) if head // (a.H // a.G) == key["kv_head"]]
            assert readers[0] == j
        else:
            assert "kv_head" not in key


def test_codegen_and_simplified_heads_are_refused() -> None:
    assert "order" in (refusal(TOPIC, _all("codegen")[0], TOKENS) or "")
    grouped = next(a for a in _all("qwen3") if a.G < a.H)
    assert refusal(TOPIC, grouped, TOKENS) is None
    assert refusal(TOPIC, grouped.as_multi_head(), TOKENS)


def _all(family: str) -> list[Architecture]:
    return [
        build_architecture({**config, "architectures": [name]}, family)
        for case in CASES
        if case.model_type == family
        for config, name in case.configs()
    ]
