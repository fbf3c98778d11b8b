"""The lines of a program between Q·Kᵀ and the attention weights: scale, position bias, softcap, mask, softmax.

A line is written only if the model computes it: T5's scores aren't scaled, Gemma 2's are capped. All lines work for the
scores S of one head, (N, N), and of a layer, (H, N, N).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from app.forward.lines import ProgramLine, helper
from app.models.alibi import STRENGTH
from app.models.architecture import Architecture

MAX_DISTANCE = 128  # T5's "relative_attention_max_distance": larger distances share a bucket


def unmasked(a: Architecture) -> Architecture:
    """The same attention with no key hidden from any query."""
    return replace(a, causal=False, window=None, chunk=None)


def needs_positions(a: Architecture) -> bool:
    """Whether lines of the scores read `position`: for a causal mask, a window or ALiBi, but not for T5's bias."""
    return a.causal or a.window is not None or a.position_bias == "alibi"


def position_bias_lines(a: Architecture, head: int | None) -> Iterator[ProgramLine]:
    """Yield lines that prepare what is added to the scores by the distance of query and key, if anything."""
    if a.position_bias == "relative":
        yield ProgramLine("", comment="Relative position bias: distances of query and key are sorted into buckets")
        yield from _bucket_lines(a.extra["n_buckets"])
        yield helper("bias = b_P[..., bucket]")
    if a.position_bias == "alibi":
        yield ProgramLine("", comment="ALiBi: a fixed slope for each head, so that near keys count more")
        if head is not None:
            yield ProgramLine(f"slope = {a.alibi_slopes[head]!r}")
        elif a.H & (a.H - 1) == 0:  # a power of two of heads has a formula
            yield helper(f"slope = 2.0 ** (-{STRENGTH} * torch.arange(1, H + 1, device=device) / H)")
        else:
            yield helper(f"slope = torch.tensor({list(a.alibi_slopes)!r}, device=device)")


def _bucket_lines(buckets: int) -> Iterator[ProgramLine]:
    half, exact = buckets // 2, buckets // 2 // 2
    yield helper("distance = torch.arange(1 - N, N, device=device)", "position of the key minus that of the query")
    growth = f"(distance.abs() / {exact:d}).log() / {math.log(MAX_DISTANCE / exact)!r} * {half - exact:d}"
    yield helper(f"far = ({exact:d} + ({growth}).long()).clamp(max={half - 1:d})", f"for distances from {exact:d} on")
    yield helper(f"bucket = torch.where(distance.abs() < {exact:d}, distance.abs(), far) + {half:d} * (distance > 0)")


def score_lines(
    a: Architecture, tokens: int, *, layer: bool = False, makes: str | None = None
) -> Iterator[ProgramLine]:
    """Yield the timed lines that turn S = Q·Kᵀ into the attention weights A, in the order of the model's module."""
    scale = a.score_scale
    if scale.kind == "inverse-sqrt":
        yield _on_scores("S /= d_h**0.5")
    if scale.kind == "yarn":
        yield _on_scores(f"S *= {float(scale.number)!r} / d_h**0.5", "with YaRN’s constant for long inputs")
    if scale.kind == "root":
        yield _on_scores(f"S /= {float(scale.number)!r}**0.5", f'"{scale.field}" in place of d_h')
    if scale.kind == "stated":
        yield _on_scores(f"S *= {float(scale.factor)!r}", f'as "{scale.field}" says')
    if a.position_bias == "relative":
        # Row i of the scores takes the distances from -i to N - 1 - i: a slice of `bias` that starts at N - 1 - i.
        yield _on_scores("S += bias.unfold(-1, N, 1).flip(-2)", "row i: the distances from -i to N - 1 - i")
    if a.position_bias == "alibi":
        # Lacks slope · (position of the query), which is the same number in a whole row and doesn't change the softmax.
        yield _on_scores("S += slope[:, None, None] * position" if layer else "S += slope * position", "ALiBi")
    if a.score_softcap is not None:
        cap = repr(float(a.score_softcap))
        yield _on_scores(f"S = S.div_({cap}).tanh_().mul_({cap})", f"softcap: {cap} · tanh(S / {cap})")
    yield from mask_lines(a, tokens)
    if a.has_sinks:
        column = f"{'sink[:, None, None]' if layer else 'sink'}.expand(*S.shape[:-1], 1)"
        code = f"A = torch.softmax(torch.cat((S, {column}), dim=-1), dim=-1)[..., :-1]"
        yield ProgramLine(code, makes, ("A",), "the sink takes a share", timed=True)
    else:
        yield ProgramLine("A = torch.softmax(S, dim=-1)", makes, ("A",), timed=True)


def mask_lines(a: Architecture, tokens: int) -> Iterator[ProgramLine]:
    """Yield lines that set hidden scores in S to -inf: later tokens, and tokens outside the window or chunk."""
    # Compared, not subtracted: a difference of positions would be an N × N table of 8-byte numbers.
    if a.causal:
        yield _mask("position > position[:, None]", "no later token")
    if has_window(a, tokens) and a.causal:
        yield _mask(f"position[:, None] >= position + {a.window:d}", "nor one before the window")
    elif has_window(a, tokens):
        side = ((a.window or 1) - 1) // 2
        yield _mask(f"position > position[:, None] + {side:d}", "none after the window")
        yield _mask(f"position[:, None] > position + {side:d}", "nor before it")
    if has_chunks(a, tokens):
        yield _mask(f"position // {a.chunk:d} < position[:, None] // {a.chunk:d}", "nor one of an earlier chunk")


def has_window(a: Architecture, tokens: int) -> bool:
    """Whether a window hides any of `tokens` tokens: shorter than `tokens` if causal, otherwise than 2·tokens - 1."""
    return a.window is not None and a.window < (tokens if a.causal else 2 * tokens - 1)


def has_chunks(a: Architecture, tokens: int) -> bool:
    """Whether the text is longer than one chunk of a model that attends within chunks."""
    return a.chunk is not None and a.chunk < tokens


def _mask(condition: str, comment: str) -> ProgramLine:
    return _on_scores(f'S.masked_fill_({condition}, float("-inf"))', comment)


def _on_scores(code: str, comment: str = "") -> ProgramLine:
    return ProgramLine(code, None, ("S",), comment, timed=True)
