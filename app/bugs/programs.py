"""The programs that bugs are hidden in: short, right, and written like the code of a run.

Some lines and inputs exist only for some models. Parameters are stored as torch stores them, out × in, except in the
program of one head.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.algebra.expression import Expression
from app.bugs.running import parsed
from app.models.architecture import Architecture

Condition = Literal["always", "causal", "padded", "grouped"]
_HOLDS: Mapping[Condition, Callable[[Architecture], bool]] = {
    "always": lambda _architecture: True,
    "causal": lambda architecture: architecture.causal,
    "padded": lambda architecture: not architecture.causal and architecture.input == "text",
    "grouped": lambda architecture: architecture.G < architecture.H,
}
Shape = tuple[Expression, ...]


@dataclass(frozen=True)
class CodeLine:
    """A line of code with a condition on the model, and the key that bugs use for it."""

    key: str
    code: str
    condition: Condition = "always"


@dataclass(frozen=True, eq=False)
class CodeProgram:
    """A right program: the shapes of its inputs, in symbols, and its lines."""

    key: str
    given: Mapping[str, str]
    lines: tuple[CodeLine, ...]
    traced: tuple[str, ...]
    output: str
    scores: str = "S"
    weights: str = "A"
    stored: bool = True
    symbols: tuple[str, ...] = ("B", "N", "H", "G", "d_h", "d")
    two_texts: bool = False
    decodes: bool = False
    rotary: bool = False

    def lines_for(self, architecture: Architecture) -> tuple[CodeLine, ...]:
        """The lines for a model, with H for G if each query head has its own keys and values."""
        lines = (line for line in self.lines if _HOLDS[line.condition](architecture))
        return tuple(replace(line, code=for_model(line.code, architecture)) for line in lines)

    def inputs_for(self, architecture: Architecture, used: str) -> tuple[tuple[str, Shape], ...]:
        """The shapes of the inputs and parameters whose names occur in the text `used`."""
        words = set(re.findall(r"\w+", used))
        texts = {name: for_model(text, architecture) for name, text in self.given.items() if name in words}
        return tuple((name, tuple(map(Expression.parse, text.split(",")))) for name, text in texts.items())


def for_model(text: str, architecture: Architecture) -> str:
    """Code or a shape, with H for G in a model whose query heads don't share keys and values."""
    return text if architecture.G < architecture.H else re.sub(r"\bG\b", "H", text)


_MASK = CodeLine("mask", 'S = S.masked_fill(position > position[:, None], float("-inf"))', "causal")
_PADDING = 'S = S.masked_fill(padding[:, None, None, :], float("-inf"))'
_WEIGHTS = CodeLine("A", "A = S.softmax(dim=-1)")
_SCORES = CodeLine("S", "S = q @ k.mT / d_h**0.5")
_SHARED = (
    CodeLine("k_shared", "k = k.repeat_interleave(H // G, dim=1)", "grouped"),
    CodeLine("v_shared", "v = v.repeat_interleave(H // G, dim=1)", "grouped"),
)
_BACK = (
    CodeLine("C", "C = (A @ v).transpose(1, 2).reshape(B, N, H * d_h)"),
    CodeLine("O", "O = C @ W_O.T"),
)
_STORED = {"W_Q": "H*d_h, d", "W_K": "G*d_h, d", "W_V": "G*d_h, d", "W_O": "d, H*d_h"}

ONE_HEAD = CodeProgram(
    "one-head",
    {"X": "N, d", "position": "N", "W_Q": "d, d_h", "W_K": "d, d_h", "W_V": "d, d_h", "W_O": "d_h, d"},
    (
        CodeLine("Q", "Q = X @ W_Q"),
        CodeLine("K", "K = X @ W_K"),
        CodeLine("V", "V = X @ W_V"),
        CodeLine("S", "S = Q @ K.T / d_h**0.5"),
        _MASK,
        _WEIGHTS,
        CodeLine("C", "C = A @ V"),
        CodeLine("O", "O = C @ W_O"),
    ),
    traced=("Q", "K", "S", "A", "C"),
    output="O",
    stored=False,
    symbols=("N", "d_h", "d"),
)
LAYER = CodeProgram(
    "layer",
    {"X": "B, N, d", "position": "N", "padding": "B, N", **_STORED},
    (
        CodeLine("q", "q = (X @ W_Q.T).view(B, N, H, d_h).transpose(1, 2)"),
        CodeLine("k", "k = (X @ W_K.T).view(B, N, G, d_h).transpose(1, 2)"),
        CodeLine("v", "v = (X @ W_V.T).view(B, N, G, d_h).transpose(1, 2)"),
        *_SHARED,
        _SCORES,
        _MASK,
        CodeLine("padding", _PADDING, "padded"),
        _WEIGHTS,
        *_BACK,
    ),
    traced=("q", "k", "k_shared", "S", "C"),
    output="O",
)
ROTARY = CodeProgram(
    "rotary",
    {"X": "B, N, d", "position": "N", "padding": "B, N", "cos": "N, d_h/2", "sin": "N, d_h/2", "W_Q": _STORED["W_Q"],
     "W_K": _STORED["W_K"]},
    (
        CodeLine("q", "q = (X @ W_Q.T).view(B, N, H, d_h).transpose(1, 2)"),
        CodeLine("k", "k = (X @ W_K.T).view(B, N, G, d_h).transpose(1, 2)"),
        CodeLine("q_halves", "q1, q2 = q.chunk(2, dim=-1)"),
        CodeLine("q_rotated", "q = torch.cat((q1 * cos - q2 * sin, q2 * cos + q1 * sin), dim=-1)"),
        CodeLine("k_halves", "k1, k2 = k.chunk(2, dim=-1)"),
        CodeLine("k_rotated", "k = torch.cat((k1 * cos - k2 * sin, k2 * cos + k1 * sin), dim=-1)"),
        _SHARED[0],
        _SCORES,
        _MASK,
        CodeLine("padding", _PADDING, "padded"),
        _WEIGHTS,
    ),
    traced=("q", "q_halves", "q_rotated", "k_shared", "S"),
    output="A",
    rotary=True,
)  # fmt: skip
DECODING = CodeProgram(
    "decoding",
    {"x": "B, 1, d", "K_cache": "B, G, N, d_h", "V_cache": "B, G, N, d_h", **_STORED},
    (
        CodeLine("q", "q = (x @ W_Q.T).view(B, 1, H, d_h).transpose(1, 2)"),
        CodeLine("k", "k = (x @ W_K.T).view(B, 1, G, d_h).transpose(1, 2)"),
        CodeLine("v", "v = (x @ W_V.T).view(B, 1, G, d_h).transpose(1, 2)"),
        CodeLine("K", "k = torch.cat((K_cache, k), dim=2)"),
        CodeLine("V", "v = torch.cat((V_cache, v), dim=2)"),
        *_SHARED,
        _SCORES,
        _WEIGHTS,
        CodeLine("C", "C = (A @ v).transpose(1, 2).reshape(B, 1, H * d_h)"),
        CodeLine("O", "o = C @ W_O.T"),
    ),
    traced=("q", "K", "V", "S", "C"),
    output="O",
    decodes=True,
)
DECODING_AT_ONCE = CodeProgram(
    "decoding-at-once",
    {**DECODING.given, "mask": "N + 1, N + 1"},
    (
        *DECODING.lines[:5],
        *_SHARED,
        CodeLine("C", "C = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[N:, :N + 1])"),
        CodeLine("merged", "C = C.transpose(1, 2).reshape(B, 1, H * d_h)"),
        CodeLine("O", "o = C @ W_O.T"),
    ),
    traced=("q", "K", "V", "C", "merged"),
    output="O",
    scores="",
    weights="",
    decodes=True,
)
FUSED = CodeProgram(
    "fused",
    {"X": "B, N, d", "position": "N", "padding": "B, N", "W_QKV": "(H + 2*G)*d_h, d", "W_O": _STORED["W_O"]},
    (
        CodeLine("QKV", "QKV = X @ W_QKV.T"),
        CodeLine("split", "Q, K, V = QKV.split((H * d_h, G * d_h, G * d_h), dim=-1)"),
        CodeLine("q", "q = Q.view(B, N, H, d_h).transpose(1, 2)"),
        CodeLine("k", "k = K.view(B, N, G, d_h).transpose(1, 2)"),
        CodeLine("v", "v = V.view(B, N, G, d_h).transpose(1, 2)"),
        *_SHARED,
        _SCORES,
        _MASK,
        CodeLine("padding", _PADDING, "padded"),
        _WEIGHTS,
        *_BACK,
    ),
    traced=("QKV", "split", "q", "k", "S"),
    output="O",
)
CROSS = CodeProgram(
    "cross",
    {"X": "B, M, d", "E": "B, N, d", "padding": "B, N", "W_Q": "H*d_h, d", "W_K": "H*d_h, d", "W_V": "H*d_h, d",
     "W_O": "d, H*d_h"},
    (
        CodeLine("q", "q = (X @ W_Q.T).view(B, M, H, d_h).transpose(1, 2)"),
        CodeLine("k", "k = (E @ W_K.T).view(B, N, H, d_h).transpose(1, 2)"),
        CodeLine("v", "v = (E @ W_V.T).view(B, N, H, d_h).transpose(1, 2)"),
        _SCORES,
        CodeLine("padding", _PADDING, "padded"),
        _WEIGHTS,
        CodeLine("C", "C = (A @ v).transpose(1, 2).reshape(B, M, H * d_h)"),
        CodeLine("O", "O = C @ W_O.T"),
    ),
    traced=("q", "k", "S", "A", "C"),
    output="O",
    symbols=("B", "N", "M", "H", "d_h", "d"),
    two_texts=True,
)  # fmt: skip

PROGRAMS: Mapping[str, CodeProgram] = {
    program.key: program for program in (ONE_HEAD, LAYER, ROTARY, DECODING, DECODING_AT_ONCE, FUSED, CROSS)
}
for _program in PROGRAMS.values():
    for _line in _program.lines:
        parsed(_line.code)
