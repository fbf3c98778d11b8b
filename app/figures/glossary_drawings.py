"""The tiny drawings of the glossary, 120 × 64, with the fills, hatching and edge colours of a sheet's figures.

They illustrate a term, not a model's sizes: solid boxes are activations, hatched ones parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.shapes.table import Role
from app.translation import N_

DRAWING_WIDTH, DRAWING_HEIGHT = 120, 64


@dataclass(frozen=True)
class DrawnBox:
    """A matrix or vector: its upper left corner, its size, its role, and a letter in its middle.

    `fill` is "solid" for an activation, "hatched" for a parameter, "masked" for scores hidden above the diagonal.
    """

    role: Role
    x: float
    y: float
    width: float
    height: float
    letter: str = ""
    fill: Literal["solid", "hatched", "masked"] = "solid"

    @property
    def center(self) -> tuple[float, float]:
        return (self.x + self.width / 2, self.y + self.height / 2)

    @property
    def masked_path(self) -> str:
        return f"M{self.x} {self.y}h{self.width}v{self.height}z"


@dataclass(frozen=True)
class DrawnEdge:
    """One side of a matrix in the colour of what it counts: tokens, embedding dimension (model) or head dimension."""

    kind: Literal["tokens", "model", "head"]
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class DrawnText:
    """A sign or a word around its middle."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class DrawnLine:
    """A thin line that joins two things, as an SVG path."""

    path: str


GlossaryDrawing = tuple[DrawnBox | DrawnEdge | DrawnText | DrawnLine, ...]
_Box, _Edge, _Text, _Line = DrawnBox, DrawnEdge, DrawnText, DrawnLine


def _parameter(role: Role, x: float, y: float, width: float, height: float, letter: str = "") -> DrawnBox:
    return DrawnBox(role, x, y, width, height, letter, "hatched")


# By the term's key in the glossary.
GLOSSARY_DRAWINGS: Mapping[str, GlossaryDrawing] = {
    "shape": (_Box("input", 30, 8, 70, 40, "X"), _Edge("tokens", 24, 8, 24, 48), _Edge("model", 30, 54, 100, 54)),
    "dimension": (
        _Box("score", 42, 18, 60, 40),
        _Box("score", 36, 12, 60, 40),
        _Box("score", 30, 6, 60, 40),
        *(_Text(x, y, number) for x, y, number in ((108, 12, "0"), (22, 26, "1"), (60, 53, "2"))),
    ),
    "token": (
        *(_Box("input", 4 + 38 * i, 22, 34, 20) for i in range(3)),
        *(_Text(21 + 38 * i, 32, word) for i, word in enumerate(("un", "break", "able"))),
    ),
    "vocabulary": (
        *(_Box("input", 40, 2 + 15 * i, 40, 13) for i in range(4)),
        *(_Text(60, 9 + 15 * i, word) for i, word in enumerate(("a", "the", "cat", "…"))),
    ),
    "embedding": (
        _parameter("input", 8, 4, 40, 56, "E"),
        _Line("M48 24H70"),
        _Box("input", 70, 20, 40, 8),
        _Edge("model", 70, 32, 110, 32),
    ),
    "embedding-dimension": (_Box("input", 15, 10, 90, 36, "X"), _Edge("model", 15, 52, 105, 52)),
    "config": (
        *(_Text(60, 14 + 18 * i, line) for i, line in enumerate(("d = 4096", "H = 32", "L = 32"))),
        _Line("M22 2H98V62H22Z"),
    ),
    "parameter": (_parameter("query", 8, 10, 46, 44, "W"), _Box("input", 66, 10, 46, 44, "X")),
    "head": (
        _Box("input", 4, 12, 36, 40, "X"),
        *(_Line(f"M40 32L62 {y + 8}") for y in (2, 24, 46)),
        *(_Box("value", 62, y, 20, 16) for y in (2, 24, 46)),
    ),
    "multi-head-attention": (
        *(_Box("value", 4, y, 18, 16) for y in (2, 24, 46)),
        *(_Line(f"M22 {y + 8}L{52 + 18 * i} 24") for i, y in enumerate((2, 24, 46))),
        *(_Box("value", 44 + 18 * i, 24, 18, 16) for i in range(3)),
        _Text(109, 32, "· W"),
    ),
    "head-dimension": (_Box("query", 44, 6, 32, 44, "Q"), _Edge("head", 44, 56, 76, 56)),
    "query": (_Box("query", 34, 26, 52, 12, "q"), _Line("M86 32H112M106 27L112 32L106 37")),
    "key": (*(_Box("key", 34, y, 52, 10) for y in (6, 20, 34, 48)),),
    "value": (*(_Box("value", 34, y, 52, 10) for y in (6, 20, 34, 48)),),
    "dot-product": (
        _Box("query", 4, 27, 44, 10, "q"),
        _Text(56, 32, "·"),
        _Box("key", 64, 10, 10, 44, "k"),
        _Text(86, 32, "="),
        _Box("score", 98, 27, 10, 10),
    ),
    "scores": (_Box("query", 6, 26, 26, 32, "Q"), _Box("key", 42, 2, 32, 20, "Kᵀ"), _Box("score", 42, 26, 32, 32, "S")),
    "mask": (_Box("score", 36, 8, 48, 48, "", "masked"),),
    "weights": (_Box("score", 6, 10, 44, 44, "S"), _Text(60, 32, "→"), _Box("score", 70, 10, 44, 44, "A")),
    "context": (
        _Box("score", 4, 22, 36, 36, "A"),
        _Box("value", 48, 2, 24, 16, "V"),
        _Box("value", 48, 22, 24, 36, "C"),
    ),
    "output-projection": (
        _Box("value", 4, 32, 34, 28, "C"),
        _parameter("output", 46, 2, 66, 26, "W_O"),
        _Box("output", 46, 32, 66, 28, "O"),
    ),
    "projection": (
        _Box("input", 4, 34, 60, 26, "X"),
        _parameter("query", 72, 2, 26, 28, "W"),
        _Box("query", 72, 34, 26, 26, "Q"),
    ),
    "grouped-query-attention": (
        *(_Box("query", 4 + 29 * i, 4, 24, 20) for i in range(4)),
        *(_Line(f"M{16 + 29 * i} 24L{31 + 58 * (i // 2)} 40") for i in range(4)),
        *(_Box("key", 19 + 58 * i, 40, 24, 20) for i in range(2)),
    ),
    "kv-cache": (
        _Box("key", 12, 4, 40, 42, "K"),
        _Box("value", 68, 4, 40, 42, "V"),
        _Box("key", 12, 50, 40, 10),
        _Box("value", 68, 50, 40, 10),
    ),
    "prefill": (
        *(_Box("input", 4 + 16 * i, 8, 14, 16) for i in range(5)),
        _Line("M40 28V36"),
        *(_Box("key", 4 + 16 * i, 40, 14, 16) for i in range(5)),
        _Box("output", 98, 40, 14, 16),
        _Line("M86 48H94"),
    ),
    "sliding-window": (
        *(_Box("input", 4 + 16 * i, 24, 14, 16) for i in range(3)),
        *(_Box("key", 52 + 16 * i, 24, 14, 16) for i in range(4)),
        _Line("M52 48V52H114V48"),
    ),
    "encoder-decoder": (
        *(_Box("input", 6 + 17 * i, 40, 14, 14) for i in range(3)),
        _Line("M13 40Q30 14 47 40M13 40Q21 26 30 40M30 40Q38 26 47 40"),
        *(_Box("output", 70 + 17 * i, 40, 14, 14) for i in range(3)),
        _Line("M77 40Q85 26 94 40M94 40Q102 26 111 40"),
    ),
    "cross-attention": (
        *(_Box("query", 26 + 24 * i, 4, 20, 12) for i in range(3)),
        *(_Line(f"M{36 + 24 * i} 16L{28 + 21 * j} 48") for i in range(3) for j in range(4)),
        *(_Box("key", 20 + 21 * i, 48, 16, 12) for i in range(4)),
    ),
    "position": (
        *(_Box("input", 10 + 26 * i, 30, 22, 22) for i in range(4)),
        *(_Text(21 + 26 * i, 20, str(i)) for i in range(4)),
    ),
    "rope": (_Line("M60 32m-26 0a26 26 0 1 0 52 0a26 26 0 1 0 -52 0M60 32H86M60 32L78 14M74 32A14 14 0 0 0 70 22"),),
    "context-length": (
        *(_Box("input", 6 + 16 * i, 24, 13, 16) for i in range(4)),
        _Line("M70 24H114V40H70"),
        _Edge("tokens", 6, 48, 114, 48),
    ),
    "latent-attention": (
        _Box("key", 48, 4, 24, 16),
        _Line("M54 20L26 40M66 20L94 40"),
        _Box("key", 4, 40, 44, 20, "K"),
        _Box("value", 72, 40, 44, 20, "V"),
    ),
    "layer": (
        _Box("score", 30, 4, 60, 22),
        _Text(60, 15, N_("attention")),
        _Box("hidden", 30, 38, 60, 22),
        _Text(60, 49, "MLP"),
        _Line("M60 26V38"),
    ),
    "feed-forward": (
        _Box("input", 6, 20, 24, 24),
        _Line("M30 20L42 8M30 44L42 56M78 8L90 20M78 56L90 44"),
        _Box("hidden", 42, 8, 36, 48),
        _Box("output", 90, 20, 24, 24),
    ),
    "swiglu": (
        _Box("hidden", 4, 14, 40, 36),
        _Text(24, 32, N_("gate")),
        _Text(60, 32, "×"),
        _Box("hidden", 76, 14, 40, 36),
        _Text(96, 32, N_("up")),
    ),
    "mixture-of-experts": (
        _Box("input", 48, 2, 24, 12),
        _Line("M56 14L44 40M64 14L104 40"),
        *(_Box("hidden", 4 + 30 * i, 40, 24, 20) for i in range(4)),
    ),
    "rank": (
        _Box("hidden", 4, 12, 8, 40),
        _Box("hidden", 18, 12, 40, 8),
        _Text(68, 32, "="),
        _Box("hidden", 76, 12, 40, 40),
    ),
    "lora": (
        _parameter("query", 4, 10, 44, 44, "W_Q"),
        _Text(58, 32, "+"),
        _parameter("hidden", 68, 10, 6, 44),
        _parameter("hidden", 76, 10, 40, 6),
    ),
    "residual": (_Line("M6 32H114M20 32Q24 6 60 6T100 32"), _Box("hidden", 40, 20, 40, 24, "f"), _Text(100, 48, "+")),
    "norm": (
        *(_Box("input", 8 + 10 * i, 32 - h, 8, h) for i, h in enumerate((6, 28, 12, 20))),
        _Text(60, 22, "→"),
        *(_Box("input", 72 + 10 * i, 32 - h, 8, h) for i, h in enumerate((4, 20, 9, 14))),
        _Edge("model", 72, 38, 110, 38),
    ),
    "logits": (*(_Box("output", 8 + 13 * i, 56 - h, 9, h) for i, h in enumerate((8, 20, 12, 44, 6, 16, 28, 10))),),
    "lm-head": (
        _Box("output", 4, 34, 34, 26, "Y"),
        _parameter("output", 46, 2, 68, 28, "W_out"),
        _Box("output", 46, 34, 68, 26, "Z"),
    ),
    "loss": (
        *(_Box("input", 6 + 37 * i, 4, 34, 20) for i in range(3)),
        *(_Text(23 + 37 * i, 14, word) for i, word in enumerate(("the", "cat", "sat"))),
        *(_Line(f"M{23 + 37 * i} 26V38") for i in range(3)),
        *(_Box("output", 6 + 37 * i, 40, 34, 20) for i in range(3)),
        *(_Text(23 + 37 * i, 50, word) for i, word in enumerate(("cat", "sat", "on"))),
    ),
    "bias": (_Box("query", 20, 4, 48, 40, "Q"), _Text(80, 24, "+"), _parameter("query", 20, 50, 48, 8)),
    "batch": (*(_Box("input", 40 - 12 * i, 4 + 9 * i, 64, 36, "X" if i == 2 else "") for i in range(3)),),
    "view": (
        _Box("query", 4, 22, 48, 20),
        _Text(62, 32, "→"),
        *(_Box("query", 72 + 12 * i, 22, 10, 20) for i in range(4)),
    ),
    "broadcasting": (
        *(_Box("score", 4 + 34 * i, 4, 28, 28, "S") for i in range(3)),
        _Box("score", 38, 36, 28, 26, "M", "masked"),
        *(_Line(f"M52 36L{18 + 34 * i} 32") for i in range(3)),
    ),
    "einsum": (
        _Box("query", 4, 12, 28, 40, "q e"),
        _Box("key", 42, 12, 28, 40, "k e"),
        _Text(79, 32, "→"),
        _Box("score", 88, 17, 30, 30, "q k"),
    ),
    "transpose": (_Box("key", 10, 6, 24, 52, "K"), _Text(46, 32, "→"), _Box("key", 58, 20, 52, 24, "Kᵀ")),
    "concatenate": (
        *(_Box("value", 4 + 22 * i, 14, 14, 36) for i in range(2)),
        _Text(54, 32, "→"),
        *(_Box("value", 70 + 18 * i, 14, 18, 36) for i in range(2)),
    ),
    "flops": (
        _Box("input", 4, 32, 38, 28, "a×b"),
        _Box("input", 50, 4, 30, 24, "b×c"),
        _Box("input", 50, 32, 30, 28, "a×c"),
    ),
    "arithmetic-intensity": (
        _parameter("query", 4, 14, 40, 36, "W"),
        _Text(56, 32, "→"),
        *(_Box("input", 68, 8 + 10 * i, 44, 6) for i in range(5)),
    ),
}
