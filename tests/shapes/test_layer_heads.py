"""A layer's heads: decks as numpy makes them, the cache by hand, and the models that have no such heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.algebra.expression import Expression
from app.shapes.layer_heads import LayerHeads, cache_bytes, cache_refusal, possible_kv_heads, require_heads
from app.shapes.requirements import TopicError
from app.shapes.table import TensorTable
from app.shapes.tables import ATTENTION_LAYER, GROUPED_HEADS
from app.shapes.topics import sizes_for
from app.sheets.library import Library

TOKENS = 5


@pytest.mark.parametrize("model", ["llama-3.2-1b", "qwen2.5-0.5b", "gpt2-xl", "gemma-2-2b", "llama-3.1-405b"])
def test_decks_are_what_numpy_makes_of_the_slabs(library: Library, model: str) -> None:
    """Split, transpose, repeat each key/value head for its readers, multiply; back to one matrix at the end."""
    architecture = library.model(model).architecture
    heads = LayerHeads(ATTENTION_LAYER, sizes_for("attention-layer", architecture, TOKENS, TOKENS))
    slabs = {key: np.zeros(heads.slab(key), np.int8) for key in ("queries", "keys", "values")}
    decks = {key: slab.reshape(TOKENS, heads.count(key), -1).transpose(1, 0, 2) for key, slab in slabs.items()}
    assert {key: deck.shape for key, deck in decks.items()} == {key: heads.deck(key) for key in slabs}
    repeated = {key: np.repeat(decks[key], heads.shared_by, axis=0) for key in ("keys", "values")}
    scores = decks["queries"] @ repeated["keys"].transpose(0, 2, 1)
    assert scores.shape == heads.deck("scores") == heads.deck("weights")
    context = scores @ repeated["values"]
    assert context.shape == heads.deck("context")
    assert context.transpose(1, 0, 2).reshape(TOKENS, -1).shape == heads.slab("context")
    by_head = {"queries": "queries_by_head", "keys": "keys_by_head", "scores": "scores", "context": "context"}
    sheet = GROUPED_HEADS.shapes(heads.sizes)
    assert {key: heads.deck(key) for key in by_head} == {key: sheet[name] for key, name in by_head.items()}


@pytest.mark.parametrize("model", ["llama-3.2-1b", "llama-7b", "smollm2-135m"])
def test_query_heads_read_the_key_head_that_repeating_gives_them(library: Library, model: str) -> None:
    """The `repeat` of numpy repeats each element in place, as `repeat_kv` of transformers does with heads."""
    architecture = library.model(model).architecture
    for count in possible_kv_heads(architecture.H):
        sizes = {**sizes_for("attention-layer", architecture, TOKENS, TOKENS), "G": count}
        heads = LayerHeads(ATTENTION_LAYER, sizes)
        repeated = np.repeat(np.arange(count), architecture.H // count)
        assert [heads.read_by(head) for head in range(architecture.H)] == repeated.tolist()
        readers = [head for key in range(count) for head in heads.readers_of(key)]
        assert readers == list(range(architecture.H))


def test_decks_are_read_off_the_table() -> None:
    """With an entry of the table changed, the deck changes."""
    sizes = {"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64}
    wider = replace(ATTENTION_LAYER["keys"], shape=(Expression.parse("d"), Expression.parse("H*d_v")))
    tensors = tuple(wider if tensor.key == "keys" else tensor for tensor in ATTENTION_LAYER.tensors)
    assert LayerHeads(ATTENTION_LAYER, sizes).deck("keys") == (8, 60, 64)
    assert LayerHeads(TensorTable("changed", tensors), sizes).deck("keys") == (32, 2048, 64)
    with pytest.raises(KeyError):
        LayerHeads(ATTENTION_LAYER, sizes).deck("output")


def test_the_cache_by_hand(library: Library) -> None:
    """Llama 3.2 1B: 16 layers · 60 tokens · 8 heads · (64 + 64) numbers · 2 bytes; an eighth with one head."""
    architecture = library.model("llama-3.2-1b").architecture
    sizes = sizes_for("attention-layer", architecture, 60, 60)
    assert cache_refusal(architecture, 60) is None
    assert cache_bytes(architecture, 60, sizes) == 16 * 60 * 8 * 128 * 2 == 1_966_080
    assert cache_bytes(architecture, 60, {**sizes, "G": 1}) == 1_966_080 // 8


def test_models_without_such_heads_or_cache_are_refused_with_a_reason(library: Library) -> None:
    """Latent attention and one head alone have no decks; encoders and an encoder-decoder's first stack no cache."""
    refused = [key for key, model in library.models.items() if model.architecture.extra.get("r_kv")]
    assert refused
    one_head = replace(library.model("gpt2").architecture, H=1, G=1, d_h=768)
    for architecture in (*(library.model(key).architecture for key in refused), one_head):
        with pytest.raises(TopicError, match="hoose"):
            require_heads(architecture, TOKENS)
    for key in ("bert-base", "t5-small", "whisper-tiny"):
        architecture = library.model(key).architecture
        assert architecture.name in (cache_refusal(architecture, TOKENS) or "")
    assert cache_refusal(library.model("mixtral-8x7b").architecture, TOKENS) is None  # experts cache nothing
