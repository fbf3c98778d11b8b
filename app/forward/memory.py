"""The most bytes that a program keeps alive at once, computed from the table's shapes before anything runs.

As in a notebook, every tensor stays until the end, so the end is the widest moment unless there are very few tokens:
then it can be an earlier one, at which a step holds helper tensors of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.forward.program import BYTES_BY_DTYPE, RUNNABLE, is_layer
from app.forward.rope import rotated_pairs
from app.models.architecture import Architecture
from app.shapes.tables import SINGLE_HEAD

COMPUTED_LAST = ("scores", "weights", "context", "output")  # not there yet while queries and keys are made
BYTES_OF_NORM = 12  # a number: RMSNorm holds a copy, the squares and the result, each in 4 bytes
BYTES_OF_POSITION = 8  # also of an angle


def bytes_needed(architecture: Architecture, tokens: int, dtype: str = "float32", topic: str = SINGLE_HEAD.key) -> int:
    """The most bytes alive at once while the program of this topic runs: its tensors, the positions and RoPE's angles.

    The mask is left out: it takes one byte a score, is gone before the weights are made, and never decides.
    """
    element = BYTES_BY_DTYPE[dtype]
    shapes = RUNNABLE[topic].shapes({**architecture.all_sizes, "N": tokens})
    cells = {key: math.prod(shape) for key, shape in shapes.items()}
    # Per pair that is rotated: the angle in 8 bytes, cosine and sine in the program's own number format.
    angles = tokens * rotated_pairs(architecture) * (BYTES_OF_POSITION + 2 * element)
    peak = _layer_peak if is_layer(topic) else _head_peak
    return BYTES_OF_POSITION * tokens + angles + peak(architecture, cells, element)


def _head_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    """The most bytes one head's tensors take at once: at the end, or while the keys are rotated or normed.

    `cells` is how many numbers each tensor holds, by the table's key; `element` the bytes of one number.
    """
    rotates, norms = rotated_pairs(architecture) > 0, architecture.qk_norm_eps is not None
    # Everything in the table; and the halves Q1, Q2, K1, K2 keep the unrotated queries and keys alive.
    at_the_end = sum(cells.values()) + rotates * (cells["queries"] + cells["keys"])
    before_scores = at_the_end - sum(cells[key] for key in COMPUTED_LAST)
    alive_at = {
        "the end": at_the_end * element,
        "rotating the keys": (before_scores + rotates * cells["keys"]) * element,  # two half results, not yet joined
        "norming the keys": before_scores * element + norms * cells["keys"] * BYTES_OF_NORM,
    }
    return max(alive_at.values())


def _layer_peak(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    """The most bytes a whole layer's tensors take at once: at the end, or while queries or keys are rotated or normed.

    `cells` is how many numbers each tensor of the table holds, by its key, with one head's scores and weights where the
    layer has them H times; `element` is the bytes of one number.
    """
    rotates, norms = rotated_pairs(architecture) > 0, architecture.qk_norm_eps is not None
    queries, keys = cells["queries"], cells["keys"]
    # The context is kept twice, head by head (c) and side by side (C).
    last = architecture.H * (cells["scores"] + cells["weights"]) + 2 * cells["context"] + cells["output"]
    rotated = rotates * (queries + keys)
    normed = norms * (queries + keys)
    before_scores = sum(count for key, count in cells.items() if key not in COMPUTED_LAST) + rotated + normed
    if architecture.query_heads_per_kv_head > 1 and not rotates and not norms:
        before_scores += queries  # q_shared: a copy here, but only another view after rotation or a norm
    alive_at = {
        "the end": (before_scores + last) * element,
        # Queries go first: while they are rotated or normed, the same results for the keys are not there yet.
        "rotating the queries": (before_scores - keys + rotates * queries) * element,
        "rotating the keys": (before_scores + rotates * keys) * element,
        "norming the queries": (before_scores - rotated - keys) * element + norms * queries * BYTES_OF_NORM,
        "norming the keys": (before_scores - rotated) * element + norms * keys * BYTES_OF_NORM,
    }
    return max(alive_at.values())
