"""An Architecture and a number of tokens as the one JSON object that terminal and tests read.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> shapes(gpt2, 100)["decode"]["keys"], shapes(gpt2, 1024)["decode"]
([101, 64], None)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.models.architecture import Architecture, TokensError
from app.shapes.table import TensorTable
from app.shapes.tables import (
    ATTENTION_LAYER,
    CROSS_ATTENTION,
    DECODE_STEP,
    PLAIN_WHOLE_MODEL,
    SINGLE_HEAD,
    WHOLE_MODEL,
    WINDOWED_DECODE_STEP,
)

HEAD_ROWS = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
STEP_ROWS = HEAD_ROWS[1:]
LAYER_ROWS = ("queries", "keys", "values", "output")
# Tokens are numbers, not rows; logits differ by what a model class puts on top.
OUTSIDE_MODEL = frozenset({"tokens", "logits", "last_logits"})
Shape = list[int]


def shapes(architecture: Architecture, tokens: int, decoder_tokens: int | None = None) -> dict[str, Any]:
    """Every shape for N tokens as [rows, columns]: one head, its layer, a decode step, the whole model.

    An encoder-decoder encodes N tokens and decodes M = `decoder_tokens`: N of them, or as many as the decoder's
    position table holds, where none are given; its head and layer are the encoder's, its decode step the decoder's.
    "causal" is then one answer for each of its three kinds of attention. Raises TokensError.
    """
    sizes = {**architecture.all_sizes, "N": architecture.check_tokens(tokens)}
    decoded = check_decoder_tokens(architecture, tokens, decoder_tokens)
    described = {
        "family": architecture.family,
        "tokens": tokens,
        "sizes": architecture.sizes,
        "causal": causal_parts(architecture) if architecture.encoder_decoder else architecture.causal,
        "tied_embeddings": architecture.tied_embeddings,
        "head": _rows(SINGLE_HEAD, HEAD_ROWS, sizes),
        "layer": _rows(ATTENTION_LAYER, LAYER_ROWS, sizes),
        "decode": decode_shapes(architecture, tokens),
        "model": {"name": architecture.name, **model_shapes(architecture, tokens, decoded)},
    }
    if architecture.encoder_decoder:
        described["cross"] = cross_shapes(architecture, tokens, decoded)
    return described


def causal_parts(architecture: Architecture) -> dict[str, bool]:
    """Which of the three kinds of attention of an encoder-decoder hide later tokens."""
    return {"encoder_self": architecture.causal, "decoder_self": True, "cross": False}


def check_decoder_tokens(architecture: Architecture, tokens: int, decoder_tokens: int | None) -> int:
    """The number of decoder tokens; raises TokensError where there is no decoder, or its position table is shorter."""
    most = architecture.max_decoder_tokens
    if decoder_tokens is None:
        return min(tokens, most)
    if not architecture.encoder_decoder:
        raise TokensError(
            f"{architecture.name} has no encoder and decoder: it reads one text, so leave decoder tokens out."
        )
    if 1 <= decoder_tokens <= most:
        return decoder_tokens
    raise TokensError(f"Decoder tokens must be a whole number from 1 to {most:,}.")


def decode_topic(architecture: Architecture, tokens: int) -> TensorTable | None:
    """The table of one more token after `tokens` cached ones; None where there is no cache or no position left."""
    decodes = architecture.has_kv_cache and (architecture.causal or architecture.encoder_decoder)
    if not decodes or tokens + 1 > architecture.max_decoder_tokens:
        return None
    full = architecture.window is not None and tokens + 1 > architecture.window
    return WINDOWED_DECODE_STEP if full else DECODE_STEP


def decode_shapes(architecture: Architecture, tokens: int) -> dict[str, Shape] | None:
    """The shapes of that step in one head of the first layer."""
    topic = decode_topic(architecture, tokens)
    if topic is None:
        return None
    sizes = {**architecture.decoder_sizes, "N": tokens, "W": architecture.window or tokens + 1}
    return _rows(topic, STEP_ROWS, sizes)


def model_topic(architecture: Architecture) -> TensorTable:
    """The table of the whole model, with or without a gate in the feed-forward block."""
    return WHOLE_MODEL if architecture.gated else PLAIN_WHOLE_MODEL


def model_shapes(architecture: Architecture, tokens: int, decoded: int) -> dict[str, Shape | None]:
    """From tokens to logits; of an encoder-decoder, through its decoder. "logits" is None without an output head."""
    topic, logits = model_topic(architecture), architecture.task_head.logits
    length = decoded if architecture.encoder_decoder else tokens
    keys = [t.key for t in topic.activations if t.key not in OUTSIDE_MODEL]
    found: dict[str, Shape | None] = {**_rows(topic, keys, {**architecture.decoder_sizes, "N": length})}
    sizes = {**architecture.all_sizes, "N": tokens, "M": decoded}
    found["logits"] = [dim.size(sizes) for dim in logits] if logits else None
    return found


def cross_shapes(architecture: Architecture, tokens: int, decoded: int) -> dict[str, Shape]:
    """One head of the decoder that reads the encoder: M tokens ask, N answer."""
    return _rows(CROSS_ATTENTION, HEAD_ROWS, {**architecture.decoder_sizes, "N": tokens, "M": decoded})


def _rows(topic: TensorTable, keys: Iterable[str], sizes: Mapping[str, int]) -> dict[str, Shape]:
    return {key: [dim.size(sizes) for dim in topic[key].shape] for key in keys}
