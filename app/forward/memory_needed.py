"""The most bytes that a program keeps alive at once, computed from the table's shapes before anything runs.

As in a notebook, every tensor stays until the end, so the peak is at the end. With very few tokens it can be earlier,
while a step holds helper tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.forward.program import BYTES_BY_DTYPE, architecture_of, is_layer, run_sizes, runnable_table
from app.forward.rope import rotated_pairs
from app.models.architecture import Architecture, LayerKind
from app.shapes.operation import Transpose, View
from app.topics.attention_layer import TOPIC as LAYER_TOPIC
from app.topics.registry import TOPICS
from app.topics.single_head import SINGLE_HEAD

COMPUTED_LAST = ("scores", "weights", "context", "output")  # not there yet while queries and keys are made
BYTES_OF_NORM = 12  # per number: RMSNorm holds a copy, the squares and the result, each in 4 bytes
BYTES_OF_POSITION = 8  # and per angle, distance or bucket of a relative position bias


def bytes_needed(
    architecture: Architecture,
    tokens: int,
    dtype: str = "float32",
    topic: str = SINGLE_HEAD.key,
    decoder_tokens: int | None = None,
) -> int:
    """The most bytes alive at once while a topic's program runs in `dtype`.

    Raises ForwardError if the topic can't run with this model and these tokens, KeyError for an unknown `dtype`.
    """
    element, program = BYTES_BY_DTYPE[dtype], TOPICS[topic].program
    a = architecture_of(topic, architecture)
    table = runnable_table(topic, architecture, tokens)
    shapes = table.shapes(run_sizes(topic, architecture, tokens, decoder_tokens))
    views = {tensor.key for tensor in table.tensors if isinstance(tensor.made_by, View | Transpose)}
    cells = {key: 0 if key in views else math.prod(shape) for key, shape in shapes.items()}
    if program == "one-more-token":  # the input of the cache, and the unrotated keys of the cache and of the new token
        cells["input"] = (tokens + 1) * a.d
        cells["keys"] += (tokens + 1) * a.d_h * (rotated_pairs(a) > 0)
    # Per rotated pair: the angle in 8 bytes, cosine and sine in the program's number format.
    angles = tokens * rotated_pairs(a) * (BYTES_OF_POSITION + 2 * element)
    if program == "layer":
        peak = _latent_peak(a, cells, element) if a.has_latent_attention else _layer_peak(a, cells, element)
    elif program == "split-heads":
        peak = _split_heads_peak(a, cells, element)
    else:
        peak = _head_peak(a, cells, element)
    vectors = _vector_bytes(a, tokens, is_layer(topic), element)
    return BYTES_OF_POSITION * tokens + angles + vectors + peak


def bytes_of_real_head(architecture: Architecture, tokens: int, layer: int, dtype: str = "float32") -> int:
    """The most bytes that a run of a checkpoint's head takes, while computing a layer below or at the end."""
    a, element = architecture, BYTES_BY_DTYPE[dtype]
    shown = 4 * (tokens * (3 * a.d + 2 * a.d_h + 2 * a.d_v) + 2 * tokens**2) + tokens**2
    head = bytes_needed(a, tokens, dtype) + shown + 2 * a.H * tokens**2
    if not layer:
        return head
    parameters = max(_parameters_of(a, kind) for kind in a.kinds)
    inner = 3 * tokens * a.d_ff * element
    attention = bytes_needed(a, tokens, dtype, LAYER_TOPIC.key)
    return max(head, parameters * (4 + element * (dtype != "float32")) + inner + attention)


def bytes_of_layers(architecture: Architecture) -> int:
    """The bytes of all layers' parameters in float32."""
    return 4 * sum(kind.layers * _parameters_of(architecture, kind) for kind in architecture.kinds)


def _parameters_of(architecture: Architecture, kind: LayerKind) -> int:
    return sum(spec.count.size(architecture.all_sizes) for spec in kind.parameters)


def _vector_bytes(a: Architecture, tokens: int, layer: bool, element: int) -> int:
    heads, groups = (a.H, a.G) if layer else (1, 1)
    widths = {"q": heads * a.d_h, "k": groups * a.d_h, "v": groups * a.d_v, "o": layer * a.d}
    numbers = sum(widths[letter] for letter in a.biases)
    if a.qk_norm in ("per-head", "all-heads"):
        numbers += widths["q"] + widths["k"] if a.qk_norm == "all-heads" else 2 * a.d_h
    if a.position_bias != "relative":
        return numbers * element
    distances = 2 * tokens - 1
    return (numbers + heads * (a.extra["n_buckets"] + distances)) * element + 3 * distances * BYTES_OF_POSITION


def _head_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    rotates, norms = rotated_pairs(architecture) > 0, bool(architecture.qk_norm)
    # Everything in the table; also, the halves Q1, Q2, K1, K2 keep the unrotated queries and keys alive.
    at_the_end = sum(cells.values()) + rotates * (cells["queries"] + cells["keys"])
    before_scores = at_the_end - sum(cells[key] for key in COMPUTED_LAST)
    with_sink = architecture.has_sinks
    alive_at = {
        "the end": at_the_end * element,
        "the softmax": (before_scores + (2 + with_sink) * cells["scores"]) * element,  # S with a sink is a copy
        "rotating the keys": (before_scores + rotates * cells["keys"]) * element,  # two half results, not yet joined
        "norming the keys": before_scores * element + norms * cells["keys"] * BYTES_OF_NORM,
    }
    return max(alive_at.values())


def _layer_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    rotates, norms = rotated_pairs(architecture) > 0, bool(architecture.qk_norm)
    queries, keys = cells["queries"], cells["keys"]
    scores = architecture.H * cells["scores"]
    # The context is kept twice, head by head (c) and concatenated (C).
    last = 2 * scores + 2 * cells["context"] + cells["output"]
    rotated = rotates * (queries + keys)
    normed = norms * (queries + keys)
    before_scores = sum(count for key, count in cells.items() if key not in COMPUTED_LAST) + rotated + normed
    if architecture.query_heads_per_kv_head > 1 and not rotates and not norms:
        before_scores += queries  # q_shared: a copy here, but only another view after rotation or a norm
    with_sink = architecture.has_sinks
    alive_at = {
        "the end": (before_scores + last) * element,
        "the softmax": (before_scores + (2 + with_sink) * scores) * element,  # S with a sink is a copy
        # Queries go first: while they are rotated or normed, the same results for the keys aren't there yet.
        "rotating the queries": (before_scores - keys + rotates * queries) * element,
        "rotating the keys": (before_scores + rotates * keys) * element,
        "norming the queries": (before_scores - rotated - keys) * element + norms * queries * BYTES_OF_NORM,
        "norming the keys": (before_scores - rotated) * element + norms * keys * BYTES_OF_NORM,
    }
    return max(alive_at.values())


def _split_heads_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    changes = (rotated_pairs(architecture) > 0) + bool(architecture.qk_norm)
    copies = changes * (cells["queries"] + cells["keys"])
    at_the_end = sum(cells.values()) + copies
    later = cells["context"] + cells["joined_context"] + cells["output"]
    return max(at_the_end, at_the_end - later + architecture.has_sinks * cells["scores"]) * element


def _latent_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    rotary_part = cells["rotary_key"] * architecture.H
    once = sum(count for key, count in cells.items() if key not in ("scores", "weights"))
    again = cells["rotary_key"] + cells["queries"] + rotary_part + cells["context"]
    return (once + again + 2 * architecture.H * cells["scores"]) * element
