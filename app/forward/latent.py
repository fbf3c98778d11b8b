"""The lines of a layer with latent attention (MLA; DeepSeek-AI, arXiv:2405.04434), from the input to the output.

A token's keys and values in all heads come from one latent vector of r_kv numbers. Positions are in a rotary key of
d_rope numbers, shared by all heads and appended to the d_nope numbers of each head's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.forward.draws import gain, random_normal, size_lines
from app.forward.lines import ProgramLine, made_line
from app.forward.rope import apply_rope
from app.forward.scores import score_lines
from app.models.architecture import Architecture
from app.shapes.table import TensorTable

LATENT_NORM_EPS = 1e-6  # for both norms of latent vectors, whatever the config's "rms_norm_eps" is


def latent_parameter_lines(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    """Yield two lines per parameter of the table, in order, then one for each gain of a latent norm."""
    for tensor in (tensor for tensor in table.tensors if tensor.parameter):
        shape = ", ".join(str(length).replace("*", " * ") for length in tensor.shape)
        yield ProgramLine(f'draw_for("{tensor.letter}")')
        yield ProgramLine(f"{tensor.letter} = {random_normal(a, shape)}", tensor.key, (tensor.letter,))
    yield gain("g_KV", "r_kv")
    if a.has_latent_queries:
        yield gain("g_Q", "r_q")


def latent_size_lines(a: Architecture, sizes: Mapping[str, int], dtype: str, device: str) -> Iterator[ProgramLine]:
    """Yield lines that set the sizes of latent attention, then device and dtype; r_q only for latent queries."""
    yield ProgramLine("", comment="Sizes: tokens, embedding dimension, heads, head dimensions, latent and rotary parts")
    symbols = "N, d, H, d_h, d_v, r_kv, d_nope, d_rope" + (", r_q" if a.has_latent_queries else "")
    yield from size_lines(symbols, sizes, dtype, device)


def latent_layer_lines(a: Architecture, table: TensorTable, tokens: int) -> Iterator[ProgramLine]:
    """Yield the layer's timed lines: latents and cache, Q, K and V of all heads, then each head up to its context c."""
    yield ProgramLine("", comment="One latent vector and one rotary key for each token: all that the cache keeps")
    yield _line(f"C_KV = torch.rms_norm(X @ W_DKV, (r_kv,), g_KV, eps={LATENT_NORM_EPS!r})", "latent")
    yield made_line(table, "rotary_key")
    yield from apply_rope(a.rotary, "K_R", a.extra["d_rope"], "rotary_key")
    yield _line("cache = torch.cat((C_KV, K_R), dim=1)", "cache")
    yield ProgramLine("", comment="Queries, keys and values of all heads, concatenated")
    if a.has_latent_queries:
        yield _line(f"C_Q = torch.rms_norm(X @ W_DQ, (r_q,), g_Q, eps={LATENT_NORM_EPS!r})", "latent_queries")
    yield made_line(table, "queries")
    yield made_line(table, "plain_keys")
    yield made_line(table, "values")
    yield _line("K = torch.cat((K_C.view(N, H, d_nope), K_R[:, None].expand(N, H, d_rope)), dim=2)", None)
    yield _line("K = K.view(N, H * d_h)", "keys")
    yield ProgramLine("", comment="Head by head; a query's rotary part comes last, as in the keys")
    yield _line("q = Q.view(N, H, d_h).transpose(0, 1)")
    yield ProgramLine("q_C, q_R = q.split((d_nope, d_rope), dim=2)", names=("q_C", "q_R"), timed=True)
    yield from apply_rope(a.rotary, "q_R", a.extra["d_rope"])
    yield _line("q = torch.cat((q_C, q_R), dim=2)")
    yield _line("k = K.view(N, H, d_h).transpose(0, 1)")
    yield _line("v = V.view(N, H, d_v).transpose(0, 1)")
    yield _line("S = q @ k.mT")
    yield from score_lines(a, tokens, layer=True, makes=None)
    yield _line("c = A @ v")


def _line(code: str, makes: str | None = None) -> ProgramLine:
    return ProgramLine(code, makes, (code.split(" ")[0],), timed=True)
