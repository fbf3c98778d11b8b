"""Each topic is one Topic: what it refuses, which table it means for a model, what can be drawn and run."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product

import pytest
import transformers

from app.models.read_config import build_architecture
from app.topics.registry import TOPICS, possible_tokens, sizes_for, topic_for
from app.topics.requirements import TopicError
from tests.helpers import every_family
from tests.helpers.every_family import architectures, are_possible
from tests.helpers.families_cases import CASES, Case
from tests.helpers.shipped import MODELS
from tests.helpers.tables_cases import of_tables

TOKENS = 100


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_refused_or_has_a_size_for_every_symbol(topic: str) -> None:
    for model in MODELS.values():
        with suppress(TopicError):
            table = topic_for(topic, model, TOKENS)
            assert table.askable
            assert are_possible(table, sizes_for(topic, model, TOKENS, TOKENS))


FIELD_NAME = re.compile("[a-z]{3,}(_[a-z]+)+")  # of a size for which sheets have no symbol


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_knows_its_boxes_and_symbols(topic: str) -> None:
    spec, counts = TOPICS[topic], set[str]()
    shipped = product(MODELS.values(), (7, 32, TOKENS, 10_000))
    for architecture, tokens in (*shipped, *product((*architectures(), *of_tables()), (every_family.TOKENS,))):
        length = possible_tokens(topic, architecture, tokens)
        with suppress(TopicError):
            table = topic_for(topic, architecture, length)
            counts |= {count.key for count in table.counts}
            assert spec.boxes >= {f"{key}.{field}" for key, entry in table.askable.items() for field in entry.fields}
            if not architecture.shapes_only:  # a model read by a table has sizes of its own besides
                sizes = sizes_for(topic, architecture, length, 10)
                assert spec.symbols >= {symbol for symbol in sizes if not FIELD_NAME.fullmatch(symbol)}
    assert counts == set(spec.counts.split())


def test_a_batch_is_no_other_side() -> None:
    for architecture, tokens in product(MODELS.values(), range(2, 40)):
        sizes = sizes_for("four-dimensions", architecture, tokens, tokens)
        assert sizes["B"] not in {tokens, *(sizes[symbol] for symbol in ("d", "H", "G", "d_h", "d_v"))}


# What a sum of the walk through the whole model is multiplied by in Granite, and embeddings in XGLM and BART.
MULTIPLIERS = {"embedding_multiplier", "residual_multiplier", "scale_embedding"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)
def test_a_walk_leaves_no_multiplier_out(case: Case) -> None:
    if MULTIPLIERS.isdisjoint(transformers.CONFIG_MAPPING[case.model_type]().to_dict()):
        return
    config, name = next(case.configs())
    with pytest.raises(TopicError):
        topic_for("whole-model", build_architecture({**config, "architectures": [name]}, "The model"), 20)


def test_heads_and_layers_can_be_run() -> None:
    assert [key for key, spec in TOPICS.items() if spec.runs] == [
        "single-head",
        "bidirectional-head",
        "attention-layer",
        "three-dimensions",
        "four-dimensions",
        "decode-step",
        "cross-attention",
    ]


def test_only_cross_attention_reads_two_texts() -> None:
    assert [key for key, spec in TOPICS.items() if spec.reads_two_texts] == ["cross-attention"]
    assert [key for key, spec in TOPICS.items() if spec.uses_decoder] == [
        "decode-step",
        "cross-attention",
        "cache-tensor",
        "text-to-loss",
    ]


def formula(topic: str, model: str, key: str) -> str:
    """How the table of a topic computes a tensor for a model."""
    return topic_for(topic, MODELS[model], TOKENS).formula(key)


def test_attention_weights_are_computed_as_the_model_does() -> None:
    assert formula("single-head", "gpt2", "weights") == "softmax({scaled-scores} + {mask}), {each-query}"
    assert formula("single-head", "t5-small", "weights") == "softmax({scores} + {position-bias}), {each-query}"
    assert formula("cross-attention", "t5-small", "weights") == "softmax({scores}), {each-query}"
    assert "{score-scale} · {scaled-scores}" in formula(
        "attention-layer", "deepseek-v2-lite", "weights"
    )  # with yarn's mscale²


def test_positions_are_added_to_embeddings_from_a_table() -> None:
    assert formula("whole-model", "gpt2", "embedded") == "{lookup} + {position-rows}"
    assert formula("whole-model", "llama-7b", "embedded") == "{lookup}"
