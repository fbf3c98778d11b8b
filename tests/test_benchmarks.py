"""Benchmarks that few machines can run are tried here on what every machine has."""

from __future__ import annotations

import torch

from app.models.read_config import build_architecture
from benchmarks.head import LLAMA_7B, bytes_moved, report_gpu


def test_bytes_moved_are_those_of_each_operation() -> None:
    """For each score in bfloat16: Q·Kᵀ writes 2 bytes, scaling reads and writes them, the mask is written (1 byte),
    then read and applied (2 read, 2 written), the softmax reads and writes, A·V reads.
    """
    model, n = build_architecture(LLAMA_7B), 1000
    once, twice, thrice = (bytes_moved(model, times * n, "bfloat16") for times in (1, 2, 3))
    assert (thrice - 2 * twice + once) / (2 * n * n) == 2 + (2 + 2) + 1 + (1 + 2 + 2) + (2 + 2) + 2


def test_the_report_of_a_gpu_says_so_without_one_and_runs_on_any_device() -> None:
    """Two lines on the device and the count, then one a size; a size that does not fit is named and left out."""
    if not torch.cuda.is_available():
        assert list(report_gpu()) == ["no GPU here: nothing was measured"]
    _name, _count, small, huge = report_gpu("cpu", (16, 2**24))
    assert "N     16: ours" in small
    assert "left out" in huge
