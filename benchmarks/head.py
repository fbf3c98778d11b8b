"""One head of LLaMA 7B through the app's lines, against plain torch by hand and the fused kernel, in time and memory.

`python -m benchmarks.head` prints the figures of the CPU; `--gpu` those of a GPU, `--layer` adds the 32-head module of
the transformers library. All versions get the same tensors in the same process, in turn, each first in every second
round. A ratio is the median of the ratios of single rounds, because another program that slows the machine slows all of
a round.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from app.forward.program import program
from app.forward.run import available_bytes, bytes_needed, device_name, execute, peak_bytes_since, start_memory_count
from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from simulation.moved_bytes import bytes_moved

LLAMA_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "num_hidden_layers": 32,
    "max_position_embeddings": 2048,
}
GIVEN = ("X", "W_Q", "W_K", "W_V", "W_O")
ROUNDS = {100: 41, 512: 21, 2048: 21, 4096: 15}
GPU_TOKENS, GPU_ROUNDS = (4096, 8192, 16384, 32768, 65536), 11
MAX_RATIO, MAX_PEAK = 1.1, 1.1  # relative to the time by hand, and to the memory that the tensors need
# between the fused kernel's output and ours, relative to the norm of ours
MAX_DIFFERENCE = {"float32": 1e-5, "bfloat16": 0.02}
LEAST_SHARE, SHARE_FROM = 0.6, 16384  # of the bytes-moved limit, from this number of tokens
COPIED_BYTES = 2**31  # by the copy that shows how fast a GPU's memory is


@dataclass(frozen=True)
class Measured:
    """Medians of a head's times in milliseconds, ours and each other's, and the peaks of memory in bytes (or None)."""

    ours: float
    others: Mapping[str, float]
    ratios: Mapping[str, float]
    needed: int
    peak: int | None
    peak_by_hand: int | None


def report(layer: bool = False) -> Iterator[str]:
    """Yield the lines to print for the CPU in float32: times and ratios, and memory against what the tensors need."""
    architecture = build_architecture(LLAMA_7B, "LLaMA 7B")
    yield f"torch {torch.__version__}, {torch.get_num_threads()} threads; milliseconds are medians"
    for tokens, rounds in ROUNDS.items():
        measured = measure(architecture, tokens, "cpu", "float32", rounds)
        ratio, peak = measured.ratios["by hand"], (measured.peak or 0) / measured.needed
        memory = f"peak {measured.peak or 0:>11,} B, {peak:.2f} of needed, {_over_by_hand(measured)} of by hand"
        verdict = "reached" if ratio <= MAX_RATIO and peak <= MAX_PEAK else "MISSED"
        yield f"cpu float32 N {tokens:>6,}: {_times(measured)}; {memory}: {verdict}"
    if layer:
        yield from map(_layer_row, (100, 512, 2048))


def report_gpu(device: str = "cuda", sizes: tuple[int, ...] = GPU_TOKENS) -> Iterator[str]:
    """Yield the lines to print for a GPU in bfloat16: times, and the share of what its memory's speed allows."""
    if device == "cuda" and not torch.cuda.is_available():
        yield "no GPU here: nothing was measured"
        return
    architecture = build_architecture(LLAMA_7B, "LLaMA 7B")
    speed = copied_bytes_per_second(device, COPIED_BYTES if device == "cuda" else 2**24)
    yield f"{device_name(device)}, torch {torch.__version__}; it copies memory at {speed / 1e9:,.0f} GB/s"
    yield "bytes moved: each operation of the app's lines reads its operands and writes its result once"
    for tokens in sizes:
        needed, free = bytes_needed(architecture, tokens, "bfloat16"), available_bytes(device) or 0
        if 3 * needed > free:
            yield f"{device} bfloat16 N {tokens:>6,}: left out, three times {needed:,} B do not fit into {free:,} B"
            continue
        measured = measure(architecture, tokens, device, "bfloat16", GPU_ROUNDS)
        moved = bytes_moved(architecture, tokens, "bfloat16")
        share = moved / speed / (measured.ours / 1000)
        asked = f", at least {LEAST_SHARE:.0%} asked: {'reached' if share >= LEAST_SHARE else 'MISSED'}"
        yield (
            f"{device} bfloat16 N {tokens:>6,}: {_times(measured)}; {moved:,} bytes moved, {moved / tokens**2:.1f} for "
            f"each score; {share:.0%} of the limit{asked if tokens >= SHARE_FROM else ''}"
        )


def measure(architecture: Architecture, tokens: int, device: str, dtype: str, rounds: int) -> Measured:
    """Time the app's lines, torch by hand and the fused kernel in turn; asserts that their outputs agree."""
    lines = program(architecture, tokens, dtype=dtype, device=device)
    gc.collect()  # tensors of an earlier measurement that were freed in this one would be missing from its peak
    run = execute(lines, device=device, rehearsed=True)
    peak, variables = run.peak_bytes, run.variables
    given = {name: variables[name] for name in GIVEN}
    tables, output = (variables["cos"], variables["sin"]), variables["O"]
    del run, variables
    assert torch.equal(output, by_hand(given, *tables)[-1])
    # The fused kernel adds up in another order, and in bfloat16 rounds elsewhere.
    difference = (fused(given, *tables)[-1].float() - output.float()).norm() / output.float().norm()
    assert difference < MAX_DIFFERENCE[dtype], f"the fused kernel differs by {difference:.2g}"
    del output
    versions: dict[str, Callable[[], float]] = {
        "ours": lambda: execute(lines, given, device=device).milliseconds or 0.0,
        "by hand": lambda: _milliseconds(lambda: by_hand(given, *tables), device),
        "fused": lambda: _milliseconds(lambda: fused(given, *tables), device),
    }
    times = dict[str, list[float]]({name: [] for name in versions})
    for turn in range(rounds):
        for name in versions if turn % 2 else reversed(versions):
            times[name].append(versions[name]())
    medians = {name: statistics.median(values) for name, values in times.items()}
    pairs = {name: zip(times["ours"], times[name], strict=True) for name in ("by hand", "fused")}
    return Measured(
        ours=medians.pop("ours"),
        others=medians,
        ratios={name: statistics.median(ours / theirs for ours, theirs in pairs[name]) for name in pairs},
        needed=bytes_needed(architecture, tokens, dtype),
        peak=peak,
        peak_by_hand=_bytes_by_hand(given, tables, device),
    )


def by_hand(given: dict[str, Any], cos: Any, sin: Any) -> tuple[Any, ...]:
    """One head as a careful person writes it, q to output; returns every tensor, since a notebook keeps them all."""
    x, w_q, w_k, w_v, w_o = given.values()
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    scores = (q @ k.T).div_(q.shape[1] ** 0.5)
    later = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).triu_(1)
    weights = torch.softmax(scores.masked_fill_(later, float("-inf")), dim=-1)
    context = weights @ v
    return q, k, v, scores, weights, context, context @ w_o


def fused(given: dict[str, Any], cos: Any, sin: Any) -> tuple[Any, ...]:
    """The same head with torch's fused kernel, which keeps no N × N tensor; returns every tensor there is."""
    x, w_q, w_k, w_v, w_o = given.values()
    q, k, v = _rotate(x @ w_q, cos, sin), _rotate(x @ w_k, cos, sin), x @ w_v
    attend = torch.nn.functional.scaled_dot_product_attention
    context = attend(q[None, None], k[None, None], v[None, None], is_causal=True)[0, 0]
    return q, k, v, context, context @ w_o


def copied_bytes_per_second(device: str, size: int) -> float:
    """How many bytes a device reads and writes in a second while it copies `size` bytes; the median of 21 copies."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times = [_milliseconds(lambda: target.copy_(source), device) for _ in range(21)]
    return 2 * size / (statistics.median(times) / 1000)


def _rotate(x: Any, cos: Any, sin: Any) -> Any:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def _times(measured: Measured) -> str:
    others = (f"{name} {ms:.2f} ms (ratio {measured.ratios[name]:.3f})" for name, ms in measured.others.items())
    return f"ours {measured.ours:.2f} ms, {', '.join(others)}"


def _over_by_hand(measured: Measured) -> str:
    both = measured.peak and measured.peak_by_hand
    return f"{measured.peak / measured.peak_by_hand:.2f}" if both else "?"  # type: ignore[operator]


def _bytes_by_hand(given: dict[str, Any], tables: tuple[Any, Any], device: str) -> int | None:
    start = start_memory_count(device)
    tensors = by_hand(given, *tables)
    took = peak_bytes_since(device, start)
    del tensors
    return None if took is None else took + sum(t.numel() * t.element_size() for t in (*given.values(), *tables))


def _milliseconds(work: Callable[[], object], device: str) -> float:
    start_memory_count(device)  # all versions begin with the allocator's spare memory given back
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    tensors = work()
    if device == "cuda":
        torch.cuda.synchronize()
    took = (time.perf_counter() - began) * 1000
    del tensors  # giving memory back is not part of the head, on neither side
    return took


def _layer_row(tokens: int) -> str:
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(**{**LLAMA_7B, "num_hidden_layers": 1}, attn_implementation="eager")
    layer, x = llama.LlamaAttention(config, layer_idx=0).eval(), torch.randn(1, tokens, config.hidden_size)
    with torch.no_grad():
        rotary = llama.LlamaRotaryEmbedding(config)(x, torch.arange(tokens)[None])
        mask = torch.full((1, 1, tokens, tokens), float("-inf")).triu_(1)
        took = [_milliseconds(lambda: layer(x, rotary, mask), "cpu") for _ in range(3)]
    return f"cpu float32  N {tokens:>6,}: LlamaAttention of transformers, 32 heads: {statistics.median(took):9.2f} ms"


def main() -> None:
    """Print the report for the CPU, or the GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.head", description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="a GPU instead of the CPU, with up to 65,536 tokens")
    parser.add_argument("--layer", action="store_true", help="add the 32-head module of the transformers library")
    arguments = parser.parse_args()
    for line in report_gpu() if arguments.gpu else report(arguments.layer):
        print(line, flush=True)


if __name__ == "__main__":
    main()
