"""The bytes that a head moves, which a GPU's time is compared with, against a count by hand."""

from __future__ import annotations

import pytest

from app.models.read_config import read_config
from simulation.moved_bytes import bytes_moved

LLAMA = (
    '{"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4, "vocab_size": 99, "intermediate_size": 64,'
    ' "num_hidden_layers": 1, "max_position_embeddings": 64}'
)


@pytest.mark.slow
def test_bytes_moved_are_those_of_each_operation() -> None:
    model, n = read_config(LLAMA), 1000
    once, twice, thrice = (bytes_moved(model, times * n, "bfloat16") for times in (1, 2, 3))
    assert (thrice - 2 * twice + once) / (2 * n * n) == 2 + (2 + 2) + 1 + (1 + 2 + 2) + (2 + 2) + 2
