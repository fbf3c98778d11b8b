"""The most bytes a program keeps alive at once, computed from the table's shapes before anything runs."""

from __future__ import annotations

import math

from .architecture import Architecture
from .lines import pairs
from .program import DTYPES
from .tensors import SINGLE_HEAD


def bytes_needed(architecture: Architecture, tokens: int, dtype: str = "float32") -> int:
    """The most bytes alive at once while the program runs, from the table's shapes and the rotary numbers.

    As in a notebook, every tensor stays until the end, so that is the widest moment unless N is very small. The mask,
    one byte a weight, is gone before the weights are made and never decides.
    """
    element = DTYPES[dtype]
    cells = {key: math.prod(shape) for key, shape in SINGLE_HEAD.shapes({**architecture.symbols, "N": tokens}).items()}
    half = tokens * pairs(architecture)
    # Beside the table: positions, angles, cosines and sines, and the queries and keys from before they were turned.
    kept = 8 * tokens + half * (8 + 2 * element) + (cells["queries"] + cells["keys"] if half else 0) * element
    not_yet_made = sum(cells[key] for key in ("scores", "weights", "context", "output")) * element
    turning = cells["keys"] * element if half else 0  # two half results, while they are put side by side
    norm = cells["keys"] * 12 if architecture.qk_norm_eps is not None else 0  # in 4 bytes: copy, squares, result
    return sum(cells.values()) * element + kept + max(0, turning - not_yet_made, norm - not_yet_made)
