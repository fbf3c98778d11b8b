"""Each requirement of a topic admits some models and refuses others, with a sentence that says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.sheets.library import Library
from app.topics import requirements
from app.topics.layer_heads import CACHE_OF_ALL_LAYERS, SEVERAL_HEADS
from app.topics.registry import TOPICS, refusal
from app.topics.requirements import KV_CACHE, NO_MASK, ONE_STACK, Requirement, TopicError, require, unmet
from tests.helpers.every_family import architectures
from tests.helpers.tables_cases import of_tables

ALL = {
    requirement: topic
    for topic, required in [
        *((key, topic.requirements) for key, topic in TOPICS.items()),
        ("heads", SEVERAL_HEADS),
        ("cache", CACHE_OF_ALL_LAYERS),
    ]
    for requirement in required
}

SHORT = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, "n_positions": 10}


@pytest.fixture
def models(library: Library) -> tuple[Architecture, ...]:
    """Those of every family and of the library; one with a single head, as multi-head, without pairs, and short."""
    odd = {"model_type": "gpt_neox", "hidden_size": 60, "num_attention_heads": 3, "rotary_pct": 0.25}
    more = {"num_hidden_layers": 2, "vocab_size": 100, "intermediate_size": 240}
    shipped = (model.architecture for model in library.models.values())
    one_head = replace(library.model("gpt2").architecture, H=1, G=1)
    simplified = library.model("mistral-7b").architecture.as_multi_head()
    made = (build_architecture({**odd, **more}, "Odd"), build_architecture(SHORT, "Short"))
    unlike = replace(made[1], attention_problem="Short attends to nothing.")
    return (*architectures(), *shipped, one_head, simplified, unlike, *made, *of_tables())


@pytest.mark.parametrize("requirement", ALL, ids=ALL.values())
def test_a_requirement_admits_some_models_and_refuses_others(
    requirement: Requirement, models: tuple[Architecture, ...]
) -> None:
    reasons = [unmet([requirement], a, tokens) for a in models for tokens in (1, 10, 3000, 2**24)]
    refused = [reason for reason in reasons if reason]
    assert None in reasons
    assert refused
    assert not [reason for reason in refused if "{" in reason or not reason.endswith(".")]


def test_no_requirement_is_without_a_topic() -> None:
    assert {each for each in vars(requirements).values() if isinstance(each, Requirement)} <= ALL.keys()


def test_the_first_requirement_that_is_not_met_is_the_reason(models: tuple[Architecture, ...]) -> None:
    t5, gpt2 = (next(a for a in models if a.family == family) for family in ("t5", "gpt2"))
    assert unmet((ONE_STACK, KV_CACHE), gpt2, 10) is None
    assert unmet((ONE_STACK, NO_MASK), t5, 10) == unmet((ONE_STACK,), t5, 10) is not None
    assert unmet((NO_MASK, ONE_STACK), gpt2, 10) == unmet((NO_MASK,), gpt2, 10) is not None
    require((ONE_STACK, KV_CACHE), gpt2, 10)
    with pytest.raises(TopicError):
        require((KV_CACHE, NO_MASK), gpt2, 10)


@pytest.mark.parametrize(("positions", "is_possible"), [(10, False), (19, False), (20, True)])
def test_several_new_tokens_need_positions_after_a_cached_one(positions: int, is_possible: bool) -> None:
    assert (refusal("cache-tensor", build_architecture({**SHORT, "n_positions": positions}), 1) is None) == is_possible
