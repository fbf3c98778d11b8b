"""The most bytes a program keeps alive at once, computed from the table's shapes before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from app.forward.lines import pairs
from app.forward.program import DTYPES, RUNNABLE, is_layer
from app.models.architecture import Architecture
from app.shapes.tensors import SINGLE_HEAD


def bytes_needed(architecture: Architecture, tokens: int, dtype: str = "float32", topic: str = SINGLE_HEAD.key) -> int:
    """The most bytes alive at once while the program runs, from the table's shapes and the rotary numbers.

    As in a notebook, every tensor stays until the end, so that is the widest moment unless N is very small. The mask,
    one byte a weight of one head, is gone before the weights are made and never decides.
    """
    element = DTYPES[dtype]
    shapes = RUNNABLE[topic].shapes({**architecture.symbols, "N": tokens})
    cells = {key: math.prod(shape) for key, shape in shapes.items()}
    # Positions, angles, cosines and sines.
    beside = 8 * tokens + tokens * pairs(architecture) * (8 + 2 * element)
    count = _layer_bytes if is_layer(topic) else _head_bytes
    return beside + count(architecture, cells, element)


def _head_bytes(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    turns, norms = pairs(architecture) > 0, architecture.qk_norm_eps is not None
    # Beside the table: the queries and keys from before they were turned.
    kept = sum(cells.values()) + turns * (cells["queries"] + cells["keys"])
    not_yet_made = sum(cells[key] for key in ("scores", "weights", "context", "output")) * element
    turning = turns * cells["keys"] * element  # two half results, while they are put side by side
    norm = norms * cells["keys"] * 12  # in 4 bytes: copy, squares, result
    return kept * element + max(0, turning - not_yet_made, norm - not_yet_made)


def _layer_bytes(architecture: Architecture, cells: Mapping[str, int], element: int) -> int:
    """The table has scores and weights of one head, the layer of all H; its context is kept head by head as well."""
    turns, norms = pairs(architecture) > 0, architecture.qk_norm_eps is not None
    queries, keys = cells["queries"], cells["keys"]
    last = ("scores", "weights", "context", "output")
    later = architecture.H * (cells["scores"] + cells["weights"]) + 2 * cells["context"] + cells["output"]
    earlier = sum(count for key, count in cells.items() if key not in last) + (turns + norms) * (queries + keys)
    if architecture.query_heads_per_kv_head > 1 and not turns and not norms:
        earlier += queries  # put head by head, so that keys can be shared; after another step they lie so already
    not_turned = turns * (queries + keys)
    narrow = (
        (turns * queries - keys - later) * element,  # two half results, while they are put side by side
        (turns * keys - later) * element,
        12 * norms * queries - (keys + not_turned + later) * element,  # in 4 bytes: copy, squares, result
        12 * norms * keys - (not_turned + later) * element,
    )
    return (earlier + later) * element + max(0, *narrow)
