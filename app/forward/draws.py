"""The lines of a program that set the sizes and draw the input and the parameters at random.

Every draw is seeded by the seed and a name, such as "query head 3". So random streams never overlap, and a layer
contains exactly the heads that run separately, number by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.forward.lines import ProgramLine, helper
from app.models.architecture import Architecture


def import_lines() -> Iterator[ProgramLine]:
    """Yield what every program with random numbers starts with: import torch and crc32, a heading, and `draw_for`."""
    yield ProgramLine("import torch")
    yield ProgramLine("from zlib import crc32")
    yield ProgramLine("", comment="Random numbers that depend on the seed and on what they are for")
    yield ProgramLine('def draw_for(name):\n    torch.manual_seed(crc32(f"{seed} {name}".encode()))')


def size_lines(symbols: str, sizes: Mapping[str, int], dtype: str, device: str) -> Iterator[ProgramLine]:
    """Yield three lines: each symbol gets its size ('N, d, d_h, d_v = 100, 768, …'), then `device`, then `dtype`."""
    # The format "d" accepts whole numbers and refuses everything else.
    yield ProgramLine(f"{symbols} = {', '.join(f'{sizes[symbol]:d}' for symbol in symbols.split(', '))}")
    yield ProgramLine(f'device = "{device}"')
    yield ProgramLine(f"dtype = torch.{dtype}")


def input_lines(shape: str = "N, d", makes: str | None = "input", name: str = "X") -> Iterator[ProgramLine]:
    """Yield the line that seeds the draw, and the one that draws an input called `name` from a standard normal."""
    yield ProgramLine(f'draw_for("{makes or "input"}")')
    yield ProgramLine(f"{name} = torch.randn({shape}, device=device, dtype=dtype)", makes, (name,))


def query_parameter_lines(a: Architecture, head: int) -> Iterator[ProgramLine]:
    """Yield lines that make one query head's parameters: a seed for "query head 3", then random W_Q and W_O."""
    yield ProgramLine('draw_for(f"query head {head}")', comment=f"query head {head:d}")
    yield _matrix_line(a, "W_Q", "d, d_h")
    yield _matrix_line(a, "W_O", "d_v, d")
    yield from _bias_lines(a, "q", "d_h")
    yield from _gain_line(a, "Q", "d_h")
    if a.has_sinks:
        yield ProgramLine('draw_for(f"sink of head {head}")')
        yield ProgramLine(f"sink = {random_normal(a, '')}", names=("sink",), comment="a learned score without a key")
    if a.position_bias == "relative":
        yield ProgramLine('draw_for(f"position bias of head {head}")')
        buckets = f"{a.extra['n_buckets']:d}"
        yield helper(f"b_P = {random_normal(a, buckets)}", "one learned number for each bucket of distances")


def key_value_parameter_lines(a: Architecture, kv_head: int) -> Iterator[ProgramLine]:
    """Yield lines that seed torch for a key/value head and draw its W_K and W_V, then b_K, b_V and g_K, if any."""
    group = a.query_heads_per_kv_head
    comment = f"key/value head {kv_head:d}"
    if group > 1:
        comment += f", shared by query heads {kv_head * group:d} to {(kv_head + 1) * group - 1:d}"
    yield ProgramLine('draw_for(f"key/value head {kv_head}")', comment=comment)
    yield _matrix_line(a, "W_K", "d, d_h")
    yield _matrix_line(a, "W_V", "d, d_v")
    yield from _bias_lines(a, "k", "d_h")
    yield from _bias_lines(a, "v", "d_v")
    yield from _gain_line(a, "K", "d_h")


def layer_parameter_lines(a: Architecture) -> Iterator[ProgramLine]:
    """Yield lines that make the parameters of all heads of a layer, each drawn as in that head's own program."""
    yield ProgramLine(
        "W_Q, W_O = X.new_empty(d, H * d_h), X.new_empty(H * d_v, d)\n"
        "for head in range(H):\n"
        '    draw_for(f"query head {head}")\n'
        f"    W_Q.view(d, H, d_h)[:, head] = {random_normal(a, 'd, d_h')}\n"
        f"    W_O.view(H, d_v, d)[head] = {random_normal(a, 'd_v, d')}",
        names=("W_Q", "W_O"),
    )
    yield ProgramLine(
        "W_K, W_V = X.new_empty(d, G * d_h), X.new_empty(d, G * d_v)\n"
        "for kv_head in range(G):\n"
        '    draw_for(f"key/value head {kv_head}")\n'
        f"    W_K.view(d, G, d_h)[:, kv_head] = {random_normal(a, 'd, d_h')}\n"
        f"    W_V.view(d, G, d_v)[:, kv_head] = {random_normal(a, 'd, d_v')}",
        names=("W_K", "W_V"),
    )
    for letter, width in (("q", "H * d_h"), ("k", "G * d_h"), ("v", "G * d_v"), ("o", "d")):
        yield from _bias_lines(a, letter, width)
    all_heads = a.qk_norm == "all-heads"
    yield from _gain_line(a, "Q", "H * d_h" if all_heads else "d_h")
    yield from _gain_line(a, "K", "G * d_h" if all_heads else "d_h")
    if a.has_sinks:
        draw = f'    draw_for(f"sink of head {{head}}")\n    sink[head] = {random_normal(a, "")}'
        yield helper(
            f"sink = X.new_empty(H)\nfor head in range(H):\n{draw}", "for each head, a learned score without a key"
        )
    if a.position_bias == "relative":
        buckets = f"{a.extra['n_buckets']:d}"
        draw = f'    draw_for(f"position bias of head {{head}}")\n    b_P[head] = {random_normal(a, buckets)}'
        code = f"b_P = X.new_empty(H, {buckets})\nfor head in range(H):\n{draw}"
        yield helper(code, "for each head, one learned number for each bucket of distances")


def random_normal(a: Architecture, shape: str) -> str:
    """The code that draws a tensor from a normal distribution whose standard deviation is initializer_range."""
    size = f"({shape},)" if shape and "," not in shape else f"({shape})"
    return f"torch.normal(0.0, {float(a.initializer_range)!r}, {size}, device=device, dtype=dtype)"


def gain(name: str, width: str) -> ProgramLine:
    """The line that makes the gain of an RMSNorm, which starts as ones; `width` is in symbols ('d_h')."""
    return helper(f"{name} = torch.ones({width}, device=device, dtype=dtype)", "the gain of a norm starts at 1")


def _matrix_line(a: Architecture, name: str, shape: str) -> ProgramLine:
    return ProgramLine(f"{name} = {random_normal(a, shape)}", name, (name,))


def _bias_lines(a: Architecture, projection: str, width: str) -> Iterator[ProgramLine]:
    if projection in a.biases:
        yield helper(f"b_{projection.upper()} = torch.zeros({width}, device=device, dtype=dtype)", "a bias starts at 0")


def _gain_line(a: Architecture, letter: str, width: str) -> Iterator[ProgramLine]:
    if a.qk_norm in ("per-head", "all-heads"):
        yield gain(f"g_{letter}", width)
