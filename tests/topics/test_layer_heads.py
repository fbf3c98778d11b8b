"""A layer's heads: decks as numpy makes them, the cache by hand, and the models that have no such heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.sheets.library import Library
from app.topics.layer_heads import CACHE_OF_ALL_LAYERS, SEVERAL_HEADS, LayerHeads, cache_bytes, possible_kv_heads
from app.topics.registry import sizes_for, topic_for
from app.topics.requirements import TopicError, require, unmet
from app.topics.three_dimensions import GROUPED_THREE_DIMENSIONS
from tests.helpers.tables import with_shapes

TOKENS = 5


@pytest.mark.parametrize("model", ["llama-3.2-1b", "qwen2.5-0.5b", "gpt2-xl", "gemma-2-2b", "llama-3.1-405b"])
def test_decks_are_what_numpy_makes_of_the_slabs(library: Library, model: str) -> None:
    architecture = library.model(model).architecture
    heads = LayerHeads(sizes_for("attention-layer", architecture, TOKENS, TOKENS))
    slabs = {key: np.zeros(heads.slab(key), np.int8) for key in ("queries", "keys", "values")}
    decks = {key: slab.reshape(TOKENS, heads.count(key), -1).transpose(1, 0, 2) for key, slab in slabs.items()}
    assert {key: deck.shape for key, deck in decks.items()} == {key: heads.deck(key) for key in slabs}
    repeated = {key: np.repeat(decks[key], heads.shared_by, axis=0) for key in ("keys", "values")}
    scores = decks["queries"] @ repeated["keys"].transpose(0, 2, 1)
    assert scores.shape == heads.deck("scores") == heads.deck("weights")
    context = scores @ repeated["values"]
    assert context.shape == heads.deck("context")
    assert context.transpose(1, 0, 2).reshape(TOKENS, -1).shape == heads.slab("context")


@pytest.mark.parametrize("model", ["llama-3.2-1b", "llama-7b", "smollm2-135m"])
def test_query_heads_read_the_key_head_that_repeating_gives_them(library: Library, model: str) -> None:
    architecture = library.model(model).architecture
    for count in possible_kv_heads(architecture.H):
        sizes = {**sizes_for("attention-layer", architecture, TOKENS, TOKENS), "G": count}
        heads = LayerHeads(sizes)
        repeated = np.repeat(np.arange(count), architecture.H // count)
        assert [heads.read_by(head) for head in range(architecture.H)] == repeated.tolist()
        readers = [head for key in range(count) for head in heads.readers_of(key)]
        assert readers == list(range(architecture.H))


def test_decks_and_slabs_are_read_off_the_table() -> None:
    sizes = {"N": 60, "d": 2048, "H": 32, "G": 8, "d_h": 64, "d_v": 64}
    changed = {"keys": "d, H*d_v", "keys_by_head": "H, N, d_v + d_v"}
    heads = LayerHeads(sizes, with_shapes(GROUPED_THREE_DIMENSIONS, changed))
    assert (heads.slab("keys"), heads.deck("keys")) == ((2048, 2048), (32, 60, 128))
    assert (heads.slab("queries"), heads.deck("queries")) == ((60, 2048), (32, 60, 64))


def test_slabs_are_those_of_a_sheet_about_the_same_layer(library: Library) -> None:
    compared = 0
    for model in library.models.values():
        try:
            require(SEVERAL_HEADS, model.architecture, TOKENS)
            layer = topic_for("attention-layer", model.architecture, TOKENS)
        except TopicError:
            continue
        heads = LayerHeads(sizes_for("attention-layer", model.architecture, TOKENS, TOKENS))
        shapes = layer.shapes(heads.sizes)
        keys = ("W_Q", "W_K", "W_V", "W_O", "queries", "keys", "values", "context", "output")
        assert {key: heads.slab(key) for key in keys} == {key: shapes[key] for key in keys}
        compared += 1
    assert compared > 20


def test_the_cache_by_hand(library: Library) -> None:
    """Llama 3.2 1B: 16 layers · 60 tokens · 8 heads · (64 + 64) numbers · 2 bytes; an eighth with one head."""
    architecture = library.model("llama-3.2-1b").architecture
    sizes = sizes_for("attention-layer", architecture, 60, 60)
    assert unmet(CACHE_OF_ALL_LAYERS, architecture, 60) is None
    assert cache_bytes(architecture, 60, sizes) == 16 * 60 * 8 * 128 * 2 == 1_966_080
    assert cache_bytes(architecture, 60, {**sizes, "G": 1}) == 1_966_080 // 8


def test_the_cache_of_layers_with_windows_by_hand(library: Library) -> None:
    mistral = library.model("mistral-7b").architecture
    bytes_of_mistral = cache_bytes(mistral, 10_000, sizes_for("attention-layer", mistral, 10_000, 10_000))
    assert bytes_of_mistral == 32 * 4096 * 2 * 8 * 128 * 2
    gpt = library.model("gpt-oss-20b").architecture
    assert cache_bytes(gpt, 200, sizes_for("attention-layer", gpt, 200, 200)) == 12 * 328 * 2 * 8 * 64 * 2


def test_models_without_such_heads_or_cache_are_refused_with_a_reason(library: Library) -> None:
    refused = [key for key, model in library.models.items() if model.architecture.has_latent_attention]
    assert refused
    one_head = replace(library.model("gpt2").architecture, H=1, G=1, d_h=768)
    for architecture in (*(library.model(key).architecture for key in refused), one_head):
        with pytest.raises(TopicError, match="hoose"):
            require(SEVERAL_HEADS, architecture, TOKENS)
    for key in ("bert-base", "t5-small", "whisper-tiny"):
        architecture = library.model(key).architecture
        assert architecture.name in (unmet(CACHE_OF_ALL_LAYERS, architecture, TOKENS) or "")
    assert (
        unmet(CACHE_OF_ALL_LAYERS, library.model("mixtral-8x7b").architecture, TOKENS) is None
    )  # experts cache nothing
