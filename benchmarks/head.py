"""One head of LLaMA 7B through the app's own lines against plain torch by hand, in time and in memory.

`python -m benchmarks.head` prints the figures; `--layer` adds the 32-head module of the transformers library.
Both versions get the same tensors in the same process, in turn, each first in every second round. The ratio is the
median of the ratios of single rounds, because another program that slows the machine slows both halves of a round.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from app.forward.devices import peak_bytes_since, start_memory_count
from app.forward.memory_needed import bytes_needed
from app.forward.program import program
from app.forward.run import execute
from app.models.architecture import Architecture
from app.models.read_config import build_architecture

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


def report(layer: bool = False) -> list[str]:
    """The lines to print: the CPU in float32, CUDA in float32 and bfloat16 where there is a GPU."""
    architecture = build_architecture(LLAMA_7B, "LLaMA 7B")
    lines = [f"torch {torch.__version__}, {torch.get_num_threads()} threads; milliseconds are medians"]
    lines += [_row(architecture, tokens, "cpu", "float32", rounds) for tokens, rounds in ROUNDS.items()]
    if torch.cuda.is_available():
        sizes = (100, 512, 2048, 4096, 16384, 32768)
        lines.append(torch.cuda.get_device_name())
        lines += [_row(architecture, n, "cuda", dtype, 11) for dtype in ("float32", "bfloat16") for n in sizes]
    return lines + ([_layer_row(tokens) for tokens in (100, 512, 2048)] if layer else [])


def by_hand(given: dict[str, Any], cos: Any, sin: Any) -> tuple[Any, ...]:
    """One head as a careful person writes it, q to output; returns every tensor, since a notebook keeps them all.

    `given` holds X (N, d), W_Q and W_K (d, d_h), W_V (d, d_v) and W_O (d_v, d), in this order; cos, sin: (N, d_h/2).
    """
    x, w_q, w_k, w_v, w_o = given.values()
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    scores = (q @ k.T).div_(q.shape[1] ** 0.5)
    later = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).triu_(1)
    weights = torch.softmax(scores.masked_fill_(later, float("-inf")), dim=-1)
    context = weights @ v
    return q, k, v, scores, weights, context, context @ w_o


def _rotate(x: Any, cos: Any, sin: Any) -> Any:
    """RoPE for x (N, d_h): its left and right halves rotated against each other; cos, sin: (N, d_h/2)."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def _row(architecture: Architecture, tokens: int, device: str, dtype: str, rounds: int) -> str:
    """One line: median times of both versions and of their ratio, and the peak memory; asserts equal outputs."""
    lines = program(architecture, tokens, dtype=dtype, device=device)
    run = execute(lines, device=device, rehearsed=True)
    needed, peak, variables = bytes_needed(architecture, tokens, dtype), run.peak_bytes, run.variables
    given = {name: variables[name] for name in GIVEN}
    tables = (variables["cos"], variables["sin"])
    assert torch.equal(variables["O"], by_hand(given, *tables)[-1])
    del run, variables

    def mine() -> float:
        return execute(lines, given, device=device).milliseconds or 0.0

    def hand() -> float:
        return _milliseconds(lambda: by_hand(given, *tables), device)

    pairs = [_pair(mine, hand, ours_first=bool(turn % 2)) for turn in range(rounds)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    base = _bytes_by_hand(given, tables, device)
    measured = f"peak {peak or 0:>13,} B ({(peak or 0) / needed:.2f} of needed, {_ratio(peak, base)} of by hand)"
    times = f"ours {ours:9.2f} ms, by hand {theirs:9.2f} ms, ratio {ratio:.3f}"
    return f"{device} {dtype:8} N {tokens:>6,}: {times}; needed {needed:>13,} B, {measured}"


def _pair(ours: Callable[[], float], theirs: Callable[[], float], ours_first: bool) -> tuple[float, float]:
    """The times of one round, ours before theirs, whichever was run first."""
    if ours_first:
        mine = ours()
        return mine, theirs()
    hand = theirs()
    return ours(), hand


def _bytes_by_hand(given: dict[str, Any], tables: tuple[Any, Any], device: str) -> int | None:
    """Peak bytes of the version by hand, plus those of its inputs, as ours makes them itself; None if not counted."""
    start = start_memory_count(device)
    tensors = by_hand(given, *tables)
    took = peak_bytes_since(device, start)
    del tensors
    return None if took is None else took + sum(t.numel() * t.element_size() for t in (*given.values(), *tables))


def _ratio(ours: int | None, theirs: int | None) -> str:
    return f"{ours / theirs:.2f}" if ours and theirs else "?"


def _milliseconds(work: Callable[[], object], device: str) -> float:
    """Wall time of some work, the GPU waited for, without the time to free its result."""
    start_memory_count(device)  # both versions begin with the allocator's spare memory given back
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
    """One line: the median time of a whole 32-head layer of the transformers library on the CPU."""
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(**{**LLAMA_7B, "num_hidden_layers": 1}, attn_implementation="eager")
    layer, x = llama.LlamaAttention(config, layer_idx=0).eval(), torch.randn(1, tokens, config.hidden_size)
    with torch.no_grad():
        rotary = llama.LlamaRotaryEmbedding(config)(x, torch.arange(tokens)[None])
        mask = torch.full((1, 1, tokens, tokens), float("-inf")).triu_(1)
        took = [_milliseconds(lambda: layer(x, rotary, mask), "cpu") for _ in range(3)]
    return f"cpu float32  N {tokens:>6,}: LlamaAttention of transformers, 32 heads: {statistics.median(took):9.2f} ms"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layer", action="store_true", help="add the 32-head module of the transformers library")
    print("\n".join(report(parser.parse_args().layer)))
