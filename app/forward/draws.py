"""The lines of a program that draw its inputs and parameters at random.

Every draw is seeded by the seed and a name, such as "query head 3". So random streams never overlap, and a layer
contains exactly the heads that run separately, number by number.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.forward.lines import ProgramLine, helper
from app.models.architecture import Architecture
from app.shapes.table import TensorTable


def import_lines() -> Iterator[ProgramLine]:
    """Yield what every program with random numbers starts with: import torch and crc32, a heading, and `draw_for`."""
    yield ProgramLine("import torch")
    yield ProgramLine("from zlib import crc32")
    yield ProgramLine("", comment="Random numbers that depend on the seed and on what they are for")
    yield ProgramLine('def draw_for(name):\n    torch.manual_seed(crc32(f"{seed} {name}".encode()))')


def input_lines(shape: str, name: str = "X", makes: str | None = None, comment: str = "") -> Iterator[ProgramLine]:
    """Yield the line that seeds the draw, and the one that draws an input from a standard normal."""
    yield ProgramLine(f'draw_for("{makes or "input"}")')
    yield ProgramLine(f"{name} = torch.randn({shape}, device=device, dtype=dtype)", makes, (name,), comment)


def parameter_lines(a: Architecture, table: TensorTable, head: int | None) -> Iterator[ProgramLine]:
    """Yield the lines that draw the parameters of a head with its key/value head, or of a whole layer."""
    if head is not None:
        yield from _query_parameter_lines(a, head)
        yield from _key_value_parameter_lines(a, head // a.query_heads_per_kv_head)
    elif a.has_latent_attention:
        yield from _latent_parameter_lines(a, table)
    else:
        yield from _layer_parameter_lines(a)


def _query_parameter_lines(a: Architecture, head: int) -> Iterator[ProgramLine]:
    yield ProgramLine('draw_for(f"query head {head}")', comment=f"query head {head:d}")
    yield _matrix_line(a, "W_Q", "d, d_h")
    yield _matrix_line(a, "W_O", "d_v, d")
    yield from _bias_lines(a, "q", "d_h")
    yield from _gain_line(a, "Q", "d_h")
    if a.has_sinks:
        yield ProgramLine('draw_for(f"sink of head {head}")')
        yield ProgramLine(f"sink = {_random_normal(a, '')}", names=("sink",), comment="a learned score without a key")
    if a.position_bias == "relative":
        yield ProgramLine('draw_for(f"position bias of head {head}")')
        buckets = f"{a.extra['n_buckets']:d}"
        yield helper(f"b_P = {_random_normal(a, buckets)}", "one learned number for each bucket of distances")


def _key_value_parameter_lines(a: Architecture, kv_head: int) -> Iterator[ProgramLine]:
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


def _layer_parameter_lines(a: Architecture) -> Iterator[ProgramLine]:
    yield ProgramLine(
        "W_Q, W_O = X.new_empty(d, H * d_h), X.new_empty(H * d_v, d)\n"
        "for head in range(H):\n"
        '    draw_for(f"query head {head}")\n'
        f"    W_Q.view(d, H, d_h)[:, head] = {_random_normal(a, 'd, d_h')}\n"
        f"    W_O.view(H, d_v, d)[head] = {_random_normal(a, 'd_v, d')}",
        names=("W_Q", "W_O"),
    )
    yield ProgramLine(
        "W_K, W_V = X.new_empty(d, G * d_h), X.new_empty(d, G * d_v)\n"
        "for kv_head in range(G):\n"
        '    draw_for(f"key/value head {kv_head}")\n'
        f"    W_K.view(d, G, d_h)[:, kv_head] = {_random_normal(a, 'd, d_h')}\n"
        f"    W_V.view(d, G, d_v)[:, kv_head] = {_random_normal(a, 'd, d_v')}",
        names=("W_K", "W_V"),
    )
    for letter, width in (("q", "H * d_h"), ("k", "G * d_h"), ("v", "G * d_v"), ("o", "d")):
        yield from _bias_lines(a, letter, width)
    all_heads = a.qk_norm == "all-heads"
    yield from _gain_line(a, "Q", "H * d_h" if all_heads else "d_h")
    yield from _gain_line(a, "K", "G * d_h" if all_heads else "d_h")
    if a.has_sinks:
        draw = f'    draw_for(f"sink of head {{head}}")\n    sink[head] = {_random_normal(a, "")}'
        yield helper(
            f"sink = X.new_empty(H)\nfor head in range(H):\n{draw}", "for each head, a learned score without a key"
        )
    if a.position_bias == "relative":
        buckets = f"{a.extra['n_buckets']:d}"
        draw = f'    draw_for(f"position bias of head {{head}}")\n    b_P[head] = {_random_normal(a, buckets)}'
        code = f"b_P = X.new_empty(H, {buckets})\nfor head in range(H):\n{draw}"
        yield helper(code, "for each head, one learned number for each bucket of distances")


def _latent_parameter_lines(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    for tensor in (tensor for tensor in table.tensors if tensor.parameter):
        shape = ", ".join(str(length).replace("*", " * ") for length in tensor.shape)
        yield ProgramLine(f'draw_for("{tensor.letter}")')
        yield ProgramLine(f"{tensor.letter} = {_random_normal(a, shape)}", tensor.key, (tensor.letter,))
    yield _gain("g_KV", "r_kv")
    if a.has_latent_queries:
        yield _gain("g_Q", "r_q")


def _random_normal(a: Architecture, shape: str) -> str:
    size = f"({shape},)" if shape and "," not in shape else f"({shape})"
    return f"torch.normal(0.0, {float(a.initializer_range)!r}, {size}, device=device, dtype=dtype)"


def _gain(name: str, width: str) -> ProgramLine:
    return helper(f"{name} = torch.ones({width}, device=device, dtype=dtype)", "the gain of a norm starts at 1")


def _matrix_line(a: Architecture, name: str, shape: str) -> ProgramLine:
    return ProgramLine(f"{name} = {_random_normal(a, shape)}", name, (name,))


def _bias_lines(a: Architecture, projection: str, width: str) -> Iterator[ProgramLine]:
    if projection in a.biases:
        yield helper(f"b_{projection.upper()} = torch.zeros({width}, device=device, dtype=dtype)", "a bias starts at 0")


def _gain_line(a: Architecture, letter: str, width: str) -> Iterator[ProgramLine]:
    if a.qk_norm in ("per-head", "all-heads"):
        yield _gain(f"g_{letter}", width)
