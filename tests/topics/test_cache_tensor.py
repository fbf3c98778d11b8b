"""The cache of a layer, and of all layers, equals that of transformers' own models, and numpy's number of bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from app.topics.problem import Problem, problem_for
from app.topics.registry import refusal, topic_for
from tests.helpers.every_family import TOKENS, possible
from tests.helpers.shipped import LIBRARY, MODELS

Shape = tuple[int, ...]
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers", "decoder_layers")


def problem_of(model: str, tokens: int = TOKENS) -> tuple[Problem, dict[str, Shape]]:
    problem = problem_for("cache-tensor", MODELS[model], (), tokens)
    return problem, problem.table.shapes(problem.sizes)


def two_layers(model: str, class_name: str) -> Any:
    """A model of the library with two layers, and without memory for its numbers (torch's meta device)."""
    fields = json.loads(LIBRARY.models[model].config)
    fields |= {name: 2 for name in LAYER_COUNTS if name in fields}
    fields.pop("layer_types", None)
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    config._attn_implementation = "eager"  # which returns the weights
    with torch.device("meta"):
        model_class = getattr(transformers, class_name)
        return getattr(model_class, "from_config", model_class)(config).eval()


def ids(batch: int, tokens: int) -> torch.Tensor:
    return torch.zeros((batch, tokens), dtype=torch.long, device="meta")


def shapes_in(tensors: Any) -> set[Shape]:
    return {tuple(each.shape) for each in tensors}


# Multi-head and grouped queries, a head dimension that the config sets, and windows that are not full.
@pytest.mark.parametrize("model", ["gpt2", "qwen3-0.6b", "gemma-2-2b"])
def test_a_decoder_keeps_what_transformers_keeps(model: str) -> None:
    problem, shapes = problem_of(model)
    cache: Any = transformers.DynamicCache()
    sizes, network = problem.sizes, two_layers(model, "AutoModelForCausalLM")
    with torch.no_grad():
        network(ids(sizes["B"], TOKENS), past_key_values=cache, use_cache=True)
        keys, values = [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]
        result = network(ids(sizes["B"], sizes["m"]), past_key_values=cache, output_attentions=True)
    assert (shapes_in(keys), shapes_in(values)) == ({shapes["cached_keys"]}, {shapes["cached_values"]})
    assert shapes_in(layer.keys for layer in cache.layers) == {shapes["keys"]}
    assert shapes_in(layer.values for layer in cache.layers) == {shapes["values"]}
    assert shapes_in(result.attentions) == {shapes["scores"]}
    numbers = sum(each.numel() for each in (*keys, *values)) * sizes["L"] // 2
    assert {count.key: count.size("count", sizes) for count in problem.table.counts} == {
        "cached_numbers": numbers,
        "cache_bytes": np.empty(numbers, dtype=np.float16).nbytes,
    }


@pytest.mark.parametrize(
    ("model", "class_name"),
    [("t5-small", "T5ForConditionalGeneration"), ("whisper-tiny", "WhisperForConditionalGeneration")],
)
def test_a_decoder_also_keeps_the_keys_of_the_encoder(model: str, class_name: str) -> None:
    problem, shapes = problem_of(model)
    sizes, network = problem.sizes, two_layers(model, class_name)
    cache: Any = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
    encoded = (torch.zeros((sizes["B"], sizes["N_enc"], sizes["d"]), device="meta"),)
    with torch.no_grad():
        for name, tokens in (("cached_keys", TOKENS), ("keys", sizes["m"])):
            result = network(
                encoder_outputs=encoded,
                decoder_input_ids=ids(sizes["B"], tokens),
                past_key_values=cache,
                output_attentions=True,
            )
            assert shapes_in(layer.keys for layer in cache.self_attention_cache.layers) == {shapes[name]}
            assert shapes_in(layer.keys for layer in cache.cross_attention_cache.layers) == {shapes["cross_keys"]}
    assert shapes_in(result.decoder_attentions) == {shapes["scores"]}
    assert shapes_in(result.cross_attentions) == {shapes["cross_scores"]}
    both = [*cache.self_attention_cache.layers, *cache.cross_attention_cache.layers]
    added = 2 * sizes["B"] * sizes["H"] * sizes["m"] * sizes["d_h"]  # since the count
    numbers = sum(layer.keys.numel() + layer.values.numel() for layer in both) // 2 - added
    assert problem.table.askable["cached_numbers"].size("count", sizes) == sizes["L"] * numbers


@pytest.mark.parametrize("tokens", [4095, 4096, 5000])
def test_a_full_window_keeps_what_transformers_keeps(tokens: int) -> None:
    problem, shapes = problem_of("mistral-7b", tokens)
    layer: Any = transformers.cache_utils.StaticSlidingWindowLayer(max_cache_len=4096, sliding_window=4096)
    before, new = (
        torch.zeros((problem.sizes["B"], problem.sizes["G"], count, problem.sizes["d_h"]), device="meta")
        for count in (tokens, problem.sizes["m"])
    )
    layer.update(before, before)
    assert tuple(layer.keys[:, :, :tokens].shape) == shapes["cached_keys"]
    used, _values = layer.update(new, new)
    assert tuple(used.shape) == shapes["keys"]


def test_new_tokens_have_room_in_every_model() -> None:
    for a in possible("cache-tensor"):
        problem = problem_for("cache-tensor", a, (), TOKENS)
        sizes = problem.sizes
        assert TOKENS + sizes["m"] <= a.max_decoder_tokens, a.name
        assert all(TOKENS + sizes["m"] <= run.chunk for run in a.stacks[-1].runs if run.chunk), a.name
        assert sizes["m"] not in {TOKENS, sizes["B"], sizes["H"], sizes["G"], sizes["L"]}, a.name
        assert sizes.get("N_enc", 1) <= a.max_tokens, a.name


@pytest.mark.parametrize(
    ("model", "tokens", "reason"),
    [
        ("bert-base", 50, "without a KV cache"),
        ("vit-base", 197, "without a KV cache"),
        ("deepseek-v3", 50, "latent vector"),
        ("gpt2", 1010, "choose at most 1,005 tokens"),
        ("gemma-2-2b", 5000, "not all layers"),
    ],
)
def test_other_caches_are_refused(model: str, tokens: int, reason: str) -> None:
    """Encoders keep nothing, latent attention keeps no keys, and layers with and without a full window differ."""
    assert reason in (refusal("cache-tensor", MODELS[model], tokens) or "")


def test_one_new_token_meets_as_many_keys_as_in_a_decoding_step() -> None:
    for model, tokens in (("llama-3.2-1b", 80), ("mistral-7b", 4095), ("mistral-7b", 5000), ("t5-small", 40)):
        problem, _shapes = problem_of(model, tokens)
        sizes = {**problem.sizes, "m": 1}
        step = topic_for("decode-step", MODELS[model], tokens).shapes(sizes)
        assert problem.table.shapes(sizes)["scores"][-2:] == step["scores"]
