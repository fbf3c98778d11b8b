"""All shapes of an Architecture for a number of tokens, as the JSON object that the terminal prints and tests read.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> shapes(gpt2, 100)["decode"]["keys"], shapes(gpt2, 1024)["decode"]
([101, 64], None)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.models.architecture import Architecture
from app.shapes.table import TensorTable
from app.topics.attention_layer import ATTENTION_LAYER
from app.topics.cross_attention import CROSS_ATTENTION
from app.topics.decode_step import decode_step_table
from app.topics.registry import check_decoder_tokens
from app.topics.requirements import ATTENTION, require
from app.topics.single_head import SINGLE_HEAD
from app.topics.whole_model import whole_model_table

HEAD_ROWS = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
STEP_ROWS = HEAD_ROWS[1:]
LAYER_ROWS = ("queries", "keys", "values", "output")
# Token ids are numbers, not rows; logits depend on the head that a model class adds.
OUTSIDE_MODEL = frozenset({"tokens", "logits", "last_logits"})
Shape = list[int]


def shapes(architecture: Architecture, tokens: int, decoder_tokens: int | None = None) -> dict[str, Any]:
    """Every shape for N tokens as [rows, columns]: one head, its layer, a decode step and the whole model."""
    require((ATTENTION,), architecture, tokens)
    sizes = {**architecture.all_sizes, "N": architecture.check_tokens(tokens)}
    checked_decoder_tokens = check_decoder_tokens(architecture, tokens, decoder_tokens)
    described = {
        "family": architecture.family,
        "tokens": tokens,
        "sizes": architecture.sizes,
        "causal": architecture.causal,
        "tied_embeddings": architecture.tied_embeddings,
        "head": _shapes_of(SINGLE_HEAD, HEAD_ROWS, sizes),
        "layer": _shapes_of(ATTENTION_LAYER, LAYER_ROWS, sizes),
        "decode": decode_step_shapes(architecture, tokens),
        "model": {"name": architecture.name, **model_shapes(architecture, tokens, checked_decoder_tokens)},
    }
    if architecture.encoder_decoder:
        described["causal"] = {"encoder_self": architecture.causal, "decoder_self": True, "cross": False}
        decoder_sizes = {**architecture.decoder_sizes, "N": tokens, "M": checked_decoder_tokens}
        described["cross"] = _shapes_of(CROSS_ATTENTION, HEAD_ROWS, decoder_sizes)
    return described


def decode_step_shapes(architecture: Architecture, tokens: int) -> dict[str, Shape] | None:
    """[rows, columns] by tensor for one head and one more token after `tokens` cached ones."""
    table = decode_step_table(architecture, tokens)
    if table is None:
        return None
    sizes = {**architecture.decoder_sizes, "N": tokens, "W": architecture.window or tokens + 1}
    return _shapes_of(table, STEP_ROWS, sizes)


def model_shapes(architecture: Architecture, tokens: int, decoder_tokens: int) -> dict[str, Shape | None]:
    """[rows, columns] of each activation from embedded tokens to logits, by tensor; one layer stands for all."""
    table, logits = whole_model_table(architecture), architecture.task_head.logits
    length = decoder_tokens if architecture.encoder_decoder else tokens
    known = {**architecture.decoder_sizes, "N": length}
    keys = [
        tensor.key
        for tensor in table.activations
        # A layer with attention may have no feed-forward block, and so no d_ff.
        if tensor.key not in OUTSIDE_MODEL and all(dim.symbols <= known.keys() for dim in tensor.shape)
    ]
    described: dict[str, Shape | None] = {**_shapes_of(table, keys, known)}
    sizes = {**architecture.all_sizes, "N": tokens, "M": decoder_tokens}
    described["logits"] = [dim.size(sizes) for dim in logits] if logits else None
    return described


def _shapes_of(table: TensorTable, keys: Iterable[str], sizes: Mapping[str, int]) -> dict[str, Shape]:
    return {key: [dim.size(sizes) for dim in table[key].shape] for key in keys}
