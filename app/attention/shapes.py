"""The shapes of a model for a given number of tokens, read off the tables: what `attention-shapes shapes --json` prints.

>>> from .architecture import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> shapes_json(gpt2, 100)["decode"]["keys"], shapes_json(gpt2, 1024)["decode"]
([101, 64], None)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .architecture import Architecture, TokensError
from .tensors import (
    ATTENTION_LAYER,
    CROSS_ATTENTION,
    DECODE_STEP,
    PLAIN_WHOLE_MODEL,
    SINGLE_HEAD,
    WHOLE_MODEL,
    WINDOWED_DECODE_STEP,
    Topic,
)

HEAD_ROWS = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
STEP_ROWS = HEAD_ROWS[1:]
LAYER_ROWS = ("queries", "keys", "values", "output")
Shape = list[int]


def shapes_json(architecture: Architecture, tokens: int, decoder_tokens: int | None = None) -> dict[str, Any]:
    """Every shape of the model for N tokens (of an encoder-decoder: N encoded, M = `decoder_tokens` decoded ones).

    Raises TokensError where a position table is shorter. M defaults to N, or to the decoder's table if that is shorter.
    """
    sizes = {**architecture.symbols, "N": architecture.check_tokens(tokens)}
    result: dict[str, Any] = {
        "model": architecture.name,
        "family": architecture.family,
        "tokens": tokens,
        "sizes": architecture.sizes,
        "causal": causal_parts(architecture) if architecture.encoder_decoder else architecture.causal,
        "tied_embeddings": architecture.tied_embeddings,
        "head": _rows(SINGLE_HEAD, HEAD_ROWS, sizes),
        "layer": _rows(ATTENTION_LAYER, LAYER_ROWS, sizes),
        "decode": decode_shapes(architecture, tokens),
    }
    asked = check_decoder_tokens(architecture, tokens, decoder_tokens) if architecture.encoder_decoder else tokens
    result["model_tensors"] = model_shapes(architecture, {**sizes, "M": asked})
    if architecture.encoder_decoder:
        result["decoder_tokens"] = asked
        result["cross"] = _rows(CROSS_ATTENTION, HEAD_ROWS, {**architecture.decoder_symbols, "N": tokens, "M": asked})
    return result


def causal_parts(architecture: Architecture) -> dict[str, bool]:
    """Which of the three kinds of attention of an encoder-decoder hide later tokens."""
    return {"encoder_self": architecture.causal, "decoder_self": True, "cross": False}


def check_decoder_tokens(architecture: Architecture, tokens: int, decoder_tokens: int | None) -> int:
    """The number of decoder tokens; raises TokensError where the decoder's position table is shorter."""
    most = architecture.max_decoder_tokens
    if decoder_tokens is None:
        return min(tokens, most)
    if 1 <= decoder_tokens <= most:
        return decoder_tokens
    raise TokensError(f"Decoder tokens must be a whole number from 1 to {most:,}.")


def decode_topic(architecture: Architecture, tokens: int) -> Topic | None:
    """The table of one more token after `tokens` cached ones; None where there is no cache or no position left."""
    decodes = architecture.cache and (architecture.causal or architecture.encoder_decoder)
    if not decodes or tokens + 1 > architecture.max_decoder_tokens:
        return None
    full = architecture.window is not None and tokens + 1 > architecture.window
    return WINDOWED_DECODE_STEP if full else DECODE_STEP


def decode_shapes(architecture: Architecture, tokens: int) -> dict[str, Shape] | None:
    """The shapes of that step in one head of the first layer."""
    topic = decode_topic(architecture, tokens)
    if topic is None:
        return None
    sizes = {**architecture.decoder_symbols, "N": tokens, "W": architecture.window or tokens + 1}
    return _rows(topic, STEP_ROWS, sizes)


def model_topic(architecture: Architecture) -> Topic:
    """The table of the whole model, with or without a gate in the feed-forward block."""
    return WHOLE_MODEL if architecture.gated else PLAIN_WHOLE_MODEL


def model_shapes(architecture: Architecture, sizes: Mapping[str, int]) -> dict[str, Shape | None]:
    """From tokens to logits; of an encoder-decoder, the decoder's M tokens. "logits" is None without an output head."""
    rows = {**sizes, "N": sizes["M"]} if architecture.encoder_decoder else sizes
    keys = [t.key for t in model_topic(architecture).activations if t.key not in {"tokens", "logits", "last_logits"}]
    shapes: dict[str, Shape | None] = dict(_rows(model_topic(architecture), keys, {**rows, "V": rows.get("V", 1)}))
    logits = architecture.head.logits
    shapes["logits"] = [dim.size(sizes) for dim in logits] if logits else None
    return shapes


def _rows(topic: Topic, keys: Iterable[str], sizes: Mapping[str, int]) -> dict[str, Shape]:
    return {key: [dim.size(sizes) for dim in topic[key].shape] for key in keys}
