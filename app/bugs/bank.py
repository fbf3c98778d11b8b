"""The bank of bugs: for each, one wrong line of a program and a line to fill in instead.

A repair is the right line with its blanks in guillemets: «H*d_h» is a size, «-1» a dimension, and «view|reshape» a word
to choose, of which the first is right. Filled in, it must do the same as the program's line. Rows are checked when this
module is imported.

>>> BUGS["keys-not-transposed"].repair.parts
('S = Q @ K.transpose(', ', ', ') / d_h**0.5')
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from app.algebra.expression import Expression, ExpressionError
from app.bugs.programs import PROGRAMS, CodeLine, CodeProgram
from app.bugs.running import CodeError, parsed

BlankKind = Literal["size", "dimension", "word"]
BugKind = Literal["any", "loud", "silent"]
BugChoice = Literal["one", "any", "loud", "silent", "all"]
_BLANK = re.compile("«(.*?)»")


class BankError(ValueError):
    """A row of the bank that can't be read or names something its program lacks."""


@dataclass(frozen=True)
class RepairBlank:
    """A blank of a repair: a size, a whole number, or a choice of words."""

    kind: BlankKind
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepairForm:
    """A line to fill in: the text around its blanks, the blanks, and one right filling."""

    parts: tuple[str, ...]
    blanks: tuple[RepairBlank, ...]
    example: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> RepairForm:
        """Read a line whose blanks are filled in correctly: "Q.«view|reshape»(«H*d_h», «-1»)".

        Raises ExpressionError for a size that can't be read.
        """
        pieces, blanks = _BLANK.split(text), list[RepairBlank]()
        for right in pieces[1::2]:
            if "|" in right:
                blanks.append(RepairBlank("word", tuple(right.split("|"))))
            elif right.lstrip("-").isdigit():
                blanks.append(RepairBlank("dimension"))
            else:
                Expression.parse(right)
                blanks.append(RepairBlank("size"))
        return RepairForm(tuple(pieces[::2]), tuple(blanks), tuple(right.partition("|")[0] for right in pieces[1::2]))

    def filled_with(self, texts: Sequence[str]) -> str:
        return self.parts[0] + "".join(f"{text}{part}" for text, part in zip(texts, self.parts[1:], strict=True))


@dataclass(frozen=True)
class Bug:
    """One bug: the line of a program that it changes, the wrong line, and its repair."""

    key: str
    program_key: str
    line: str = ""
    wrong: str = ""
    loud: bool = True
    repaired: str = ""
    beliefs: tuple[str, ...] = ()
    frozen_program: CodeProgram | None = None
    frozen_others: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        if self.frozen_program:
            return  # it was checked when it was frozen, and the bank may have changed since
        if self.program_key not in PROGRAMS:
            self._refuse(f"there is no program “{self.program_key}”")
        if not self.line:
            return
        right = {line.key: line.code for line in self.program.lines}
        if self.line not in right:
            self._refuse(f"the program “{self.program_key}” has no line “{self.line}”")
        if self.wrong == right[self.line]:
            self._refuse("its wrong line is the right one")
        try:
            parsed(self.wrong)
            parsed(self.repair.filled_with(self.repair.example))
        except (CodeError, ExpressionError) as error:
            self._refuse(str(error))
        if not self.repair.blanks:
            self._refuse("its repair has no blanks")
        for belief in self.beliefs:
            if belief not in BELIEFS:
                self._refuse(f"there is no belief “{belief}”")

    @property
    def program(self) -> CodeProgram:
        return self.frozen_program or PROGRAMS[self.program_key]

    @property
    def others(self) -> tuple[tuple[str, str], ...]:
        """The other bugs of the same program, as pairs of key and key of the wrong line, in the bank's order."""
        if self.frozen_others is not None:
            return self.frozen_others
        of_program = (bug for bug in BUGS.values() if bug.program_key == self.program_key and bug.key != self.key)
        return tuple((bug.key, bug.line) for bug in of_program)

    def is_kind(self, kind: BugKind) -> bool:
        """Whether there is a bug of this kind: "loud" stops the program, "silent" doesn't, and "any" is either."""
        return bool(self.line) and (kind == "any" or self.loud == (kind == "loud"))

    @cached_property
    def repair(self) -> RepairForm:
        return RepairForm.parse(self.repaired)

    def _refuse(self, problem: str) -> None:
        raise BankError(f"The bug “{self.key}”: {problem}.")


# What a student may believe who takes a right line for the wrong one, with the catalogue's misconception that says
# exactly this, if any. Choosing another bug's reason shows no misconception: a student who finds fault with a right
# line knows what it should do.
BELIEFS: Mapping[str, str] = {
    "softmax-drops-dimension": "softmax-collapses",
    "head-needs-all-features": "head-as-wide-as-model",
    "one-projection-per-head": "",
    "mask-needs-heads": "",
    "batch-not-multiplied": "",
    "scale-changes-shape": "",
    "one-angle-for-all": "",
    "decode-makes-all-scores": "all-queries-recomputed",
    "texts-are-equally-long": "",
}

_SPLIT_Q = "q = (X @ W_Q.T).view(«B», «N», «H», «d_h»).transpose(«1», «2»)"
_SPLIT_K = "k = (X @ W_K.T).view(«B», «N», «G», «d_h»).transpose(«1», «2»)"
_SPLIT_V = "v = (X @ W_V.T).view(«B», «N», «G», «d_h»).transpose(«1», «2»)"
_MERGE = "C = (A @ v).transpose(«1», «2»).reshape(«B», «N», «H*d_h»)"
_MERGE_CALLS = "C = (A @ v)«.transpose(1, 2).reshape|.transpose(1, 2).view|.reshape|.view»(B, N, H * d_h)"
_MASK = 'S = S.masked_fill(position «>|<|>=|<=» position[:, None], «float("-inf")|0|1»)'
_SCALE = "S = Q @ K.T / «d_h**0.5|d_h|d**0.5|N**0.5|d_h**2»"
_SHARE_CALLS = (
    "«repeat_interleave(H // G, dim=1)|repeat_interleave(H // G, dim=2)|repeat_interleave(H, dim=1)"
    "|repeat(1, H // G, 1, 1)»"
)
_ROTATED = "torch.cat(({0}1 * cos «-|+» {0}2 * sin, {0}2 * cos «+|-» {0}1 * sin), dim=«-1»)"
_PADDING = (
    "S = S.masked_fill(«padding|~padding»[«:, None, None, :|:, None, :, None|:, None, :|:, :, None, None»], "
    'float("-inf"))'
)
_ATTENTION_AT_ONCE = "C = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[«N»:, :«N+1»])"
_SPLIT_QKV = "Q, K, V = QKV.split((«H*d_h», «G*d_h», «G*d_h»), dim=«-1»)"

_ROWS = (
    # One head
    Bug("keys-not-transposed", "one-head", "S", "S = Q @ K / d_h**0.5", True,
        "S = Q @ K.transpose(«0», «1») / d_h**0.5",
        ("scale-changes-shape", "softmax-drops-dimension")),
    Bug("queries-transposed", "one-head", "S", "S = Q.T @ K / d_h**0.5", True,
        "S = «Q|Q.T|K|V» @ «K.T|K|Q|V.T» / d_h**0.5",
        ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("stored-layout", "one-head", "Q", "Q = X @ W_Q.T", True, "Q = X @ «W_Q|W_Q.T|W_O|W_K»",
        ("head-needs-all-features",)),
    Bug("output-projection-transposed", "one-head", "O", "O = C @ W_O.T", True, "O = «C|C.T» @ «W_O|W_O.T|W_V»",
        ("head-needs-all-features", "softmax-drops-dimension")),
    Bug("softmax-over-queries", "one-head", "A", "A = S.softmax(dim=0)", False, "A = S.softmax(dim=«-1»)",
        ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("scaled-by-model-width", "one-head", "S", "S = Q @ K.T / d**0.5", False, "S = Q @ K.T / «d_h»**0.5",
        ("scale-changes-shape", "softmax-drops-dimension")),
    Bug("scaled-by-tokens", "one-head", "S", "S = Q @ K.T / N**0.5", False, _SCALE,
        ("softmax-drops-dimension", "head-needs-all-features")),
    Bug("scaled-without-root", "one-head", "S", "S = Q @ K.T / d_h", False, _SCALE,
        ("scale-changes-shape", "head-needs-all-features")),
    Bug("mask-inverted", "one-head", "mask", 'S = S.masked_fill(position < position[:, None], float("-inf"))', False,
        _MASK, ("mask-needs-heads", "softmax-drops-dimension")),
    Bug("diagonal-masked", "one-head", "mask", 'S = S.masked_fill(position >= position[:, None], float("-inf"))',
        False, _MASK, ("softmax-drops-dimension", "mask-needs-heads")),
    Bug("masked-with-zero", "one-head", "mask", "S = S.masked_fill(position > position[:, None], 0)", False, _MASK,
        ("mask-needs-heads", "scale-changes-shape")),
    Bug("weights-transposed", "one-head", "C", "C = A.T @ V", False, "C = «A|A.T» @ «V|K|Q»",
        ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("keys-as-values", "one-head", "C", "C = A @ K", False, "C = «A|A.T|S» @ «V|K|Q»",
        ("softmax-drops-dimension", "head-needs-all-features")),
    Bug("queries-as-keys", "one-head", "K", "K = X @ W_Q", False, "K = «X|Q» @ «W_K|W_Q|W_V»",
        ("head-needs-all-features", "softmax-drops-dimension")),
    Bug("nothing-wrong-in-head", "one-head", beliefs=("scale-changes-shape", "softmax-drops-dimension",
        "head-needs-all-features")),
    # A layer
    Bug("heads-split-by-view", "layer", "q", "q = (X @ W_Q.T).view(B, H, N, d_h)", False, _SPLIT_Q,
        ("one-projection-per-head", "scale-changes-shape")),
    Bug("heads-not-moved", "layer", "q", "q = (X @ W_Q.T).view(B, N, H, d_h)", True, _SPLIT_Q,
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("wrong-dimensions-transposed", "layer", "v", "v = (X @ W_V.T).view(B, N, G, d_h).transpose(2, 3)", True,
        _SPLIT_V, ("batch-not-multiplied", "one-projection-per-head")),
    Bug("heads-before-batch", "layer", "q", "q = (X @ W_Q.T).view(B, N, H, d_h).transpose(0, 2)", True, _SPLIT_Q,
        ("one-projection-per-head", "scale-changes-shape")),
    Bug("tokens-before-batch", "layer", "k", "k = (X @ W_K.T).view(N, B, G, d_h).permute(1, 2, 0, 3)", False, _SPLIT_K,
        ("one-projection-per-head", "softmax-drops-dimension")),
    Bug("head-width-divided", "layer", "q", "q = (X @ W_Q.T).view(B, N, H, d // H).transpose(1, 2)", True, _SPLIT_Q,
        ("one-projection-per-head", "batch-not-multiplied")),
    Bug("input-cut-into-heads", "layer", "q", "q = (X.view(B, N, H, d // H) @ W_Q.T).transpose(1, 2)", True, _SPLIT_Q,
        ("batch-not-multiplied", "scale-changes-shape")),
    Bug("stored-layout-of-keys", "layer", "k", "k = (X @ W_K).view(B, N, G, d_h).transpose(1, 2)", True,
        "k = (X @ W_K.transpose(«0», «1»)).view(B, N, G, d_h).transpose(1, 2)",
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("square-stored-layout", "layer", "O", "O = C @ W_O", False, "O = C @ W_O.transpose(«0», «1»)",
        ("one-projection-per-head", "scale-changes-shape")),
    Bug("all-heads-in-one-key", "layer", "k", "k = (X @ W_K.T).view(B, N, 1, G * d_h).transpose(1, 2)", True, _SPLIT_K,
        ("batch-not-multiplied", "scale-changes-shape")),
    Bug("keys-tiled", "layer", "k_shared", "k = k.repeat(1, H // G, 1, 1)", False, f"k = k.{_SHARE_CALLS}",
        ("one-projection-per-head", "batch-not-multiplied")),
    Bug("values-tiled", "layer", "v_shared", "v = v.repeat(1, H // G, 1, 1)", False, f"v = v.{_SHARE_CALLS}",
        ("one-projection-per-head", "batch-not-multiplied")),
    Bug("keys-repeated-along-tokens", "layer", "k_shared", "k = k.repeat_interleave(H // G, dim=2)", True,
        "k = k.repeat_interleave(«H/G», dim=«1»)",
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("keys-repeated-too-often", "layer", "k_shared", "k = k.repeat_interleave(H, dim=1)", True,
        "k = k.repeat_interleave(«H/G», dim=«1»)",
        ("batch-not-multiplied", "scale-changes-shape")),
    Bug("layer-keys-not-transposed", "layer", "S", "S = q @ k / d_h**0.5", True,
        "S = q @ k.transpose(«-2», «-1») / d_h**0.5",
        ("scale-changes-shape", "batch-not-multiplied")),
    Bug("batch-and-heads-of-keys", "layer", "S", "S = q @ k.transpose(0, 1) / d_h**0.5", True,
        "S = q @ k.transpose(«-2», «-1») / d_h**0.5",
        ("scale-changes-shape", "one-projection-per-head")),
    Bug("padding-hides-queries", "layer", "padding", 'S = S.masked_fill(padding[:, None, :, None], float("-inf"))',
        False, _PADDING, ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("padding-without-heads", "layer", "padding", 'S = S.masked_fill(padding[:, None, :], float("-inf"))', True,
        _PADDING, ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("padding-inverted", "layer", "padding", 'S = S.masked_fill(~padding[:, None, None, :], float("-inf"))', False,
        _PADDING, ("mask-needs-heads", "softmax-drops-dimension")),
    Bug("softmax-over-heads", "layer", "A", "A = S.softmax(dim=1)", False, "A = S.softmax(dim=«-1»)",
        ("softmax-drops-dimension", "scale-changes-shape")),
    Bug("layer-softmax-over-queries", "layer", "A", "A = S.softmax(dim=-2)", False, "A = S.softmax(dim=«-1»)",
        ("softmax-drops-dimension", "one-projection-per-head")),
    Bug("merged-without-transpose", "layer", "C", "C = (A @ v).reshape(B, N, H * d_h)", False, _MERGE,
        ("one-projection-per-head", "scale-changes-shape")),
    Bug("view-after-transpose", "layer", "C", "C = (A @ v).transpose(1, 2).view(B, N, H * d_h)", True, _MERGE_CALLS,
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("merged-into-model-width", "layer", "C", "C = (A @ v).transpose(1, 2).reshape(B, N, d)", True, _MERGE,
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("nothing-wrong-in-layer", "layer", beliefs=("one-projection-per-head", "batch-not-multiplied",
        "softmax-drops-dimension")),
    # Queries and keys that are rotated
    Bug("rotated-before-heads-move", "rotary", "q", "q = (X @ W_Q.T).view(B, N, H, d_h)", True, _SPLIT_Q,
        ("one-angle-for-all", "batch-not-multiplied")),
    Bug("tokens-halved", "rotary", "q_halves", "q1, q2 = q.chunk(2, dim=1)", True, "q1, q2 = q.chunk(«2», dim=«-1»)",
        ("one-angle-for-all", "batch-not-multiplied")),
    Bug("halves-below-each-other", "rotary", "q_rotated",
        "q = torch.cat((q1 * cos - q2 * sin, q2 * cos + q1 * sin), dim=-2)", True, f"q = {_ROTATED.format('q')}",
        ("one-angle-for-all", "scale-changes-shape")),
    Bug("rotated-backwards", "rotary", "q_rotated",
        "q = torch.cat((q1 * cos + q2 * sin, q2 * cos - q1 * sin), dim=-1)", False, f"q = {_ROTATED.format('q')}",
        ("one-angle-for-all", "scale-changes-shape")),
    Bug("no-rotation", "rotary", "k_rotated",
        "k = torch.cat((k1 * cos - k2 * sin, k2 * cos - k1 * sin), dim=-1)", False, f"k = {_ROTATED.format('k')}",
        ("one-angle-for-all", "softmax-drops-dimension")),
    Bug("neighbours-for-halves", "rotary", "q_halves", "q1, q2 = q[..., 0::2], q[..., 1::2]", False,
        "q1, q2 = q.«chunk(2, dim=-1)|chunk(2, dim=-2)|split(2, dim=-1)|chunk(2, dim=1)»",
        ("one-angle-for-all", "scale-changes-shape")),
    Bug("nothing-wrong-in-rotary", "rotary", beliefs=("one-angle-for-all", "batch-not-multiplied",
        "scale-changes-shape")),
    # A decode step
    Bug("cache-joined-along-heads", "decoding", "K", "k = torch.cat((K_cache, k), dim=1)", True,
        "k = torch.cat((«K_cache|V_cache|k», «k|K_cache|q»), dim=«2»)",
        ("decode-makes-all-scores", "batch-not-multiplied")),
    Bug("values-not-appended", "decoding", "V", "v = torch.cat((V_cache,), dim=2)", True,
        "v = torch.cat((«V_cache|K_cache|v», «v|k|V_cache»), dim=«2»)",
        ("decode-makes-all-scores", "batch-not-multiplied")),
    Bug("keys-cached-as-values", "decoding", "V", "v = torch.cat((K_cache, v), dim=2)", False,
        "v = torch.cat((«V_cache|K_cache|v», «v|k|V_cache»), dim=«2»)",
        ("decode-makes-all-scores", "scale-changes-shape")),
    Bug("all-tokens-as-query", "decoding", "q", "q = (x @ W_Q.T).view(B, N, H, d_h).transpose(1, 2)", True,
        "q = (x @ W_Q.T).view(B, «1|N|N + 1», H, d_h).transpose(«1», «2»)",
        ("one-projection-per-head", "batch-not-multiplied")),
    Bug("softmax-over-new-query", "decoding", "A", "A = S.softmax(dim=-2)", False, "A = S.softmax(dim=«-1»)",
        ("decode-makes-all-scores", "softmax-drops-dimension")),
    Bug("merged-as-all-tokens", "decoding", "C", "C = (A @ v).transpose(1, 2).reshape(B, N, H * d_h)", True,
        "C = (A @ v).transpose(«1», «2»).reshape(B, «1|N|N + 1», H * d_h)",
        ("batch-not-multiplied", "one-projection-per-head")),
    Bug("cache-tiled", "decoding", "k_shared", "k = k.repeat(1, H // G, 1, 1)", False, f"k = k.{_SHARE_CALLS}",
        ("decode-makes-all-scores", "one-projection-per-head")),
    Bug("nothing-wrong-in-decoding", "decoding", beliefs=("decode-makes-all-scores", "one-projection-per-head",
        "batch-not-multiplied")),
    Bug("causal-for-one-query", "decoding-at-once", "C", "C = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        False, _ATTENTION_AT_ONCE,
        ("batch-not-multiplied", "one-projection-per-head", "softmax-drops-dimension")),
    Bug("mask-of-the-cache", "decoding-at-once", "C",
        "C = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:N, :N])", True, _ATTENTION_AT_ONCE,
        ("batch-not-multiplied", "one-projection-per-head", "softmax-drops-dimension")),
    Bug("nothing-wrong-in-decoding-at-once", "decoding-at-once", beliefs=("decode-makes-all-scores",
        "one-projection-per-head", "batch-not-multiplied")),
    # Fused projections
    Bug("fused-in-three-equal-parts", "fused", "split", "Q, K, V = QKV.chunk(3, dim=-1)", True, _SPLIT_QKV,
        ("batch-not-multiplied", "scale-changes-shape", "softmax-drops-dimension")),
    Bug("fused-queries-last", "fused", "split", "Q, K, V = QKV.split((G * d_h, G * d_h, H * d_h), dim=-1)", True,
        _SPLIT_QKV, ("batch-not-multiplied", "one-projection-per-head", "softmax-drops-dimension")),
    Bug("fused-as-many-keys", "fused", "split", "Q, K, V = QKV.split((H * d_h, H * d_h, H * d_h), dim=-1)", True,
        _SPLIT_QKV,
        ("batch-not-multiplied", "one-projection-per-head", "softmax-drops-dimension")),
    Bug("fused-split-along-tokens", "fused", "split", "Q, K, V = QKV.split((H * d_h, G * d_h, G * d_h), dim=1)", True,
        _SPLIT_QKV, ("batch-not-multiplied", "one-projection-per-head", "softmax-drops-dimension")),
    Bug("keys-and-values-swapped", "fused", "split", "Q, V, K = QKV.split((H * d_h, G * d_h, G * d_h), dim=-1)", False,
        "Q, «K, V|V, K» = QKV.split((H * d_h, G * d_h, G * d_h), dim=«-1»)",
        ("one-projection-per-head", "scale-changes-shape", "softmax-drops-dimension")),
    Bug("fused-by-head", "fused", "split", "Q, K, V = QKV.view(B, N, H, 3 * d_h).chunk(3, dim=-1)", False,
        "Q, K, V = QKV«|.view(B, N, H, 3 * d_h)|.view(B, N, 3, H * d_h)».chunk(3, dim=«-1»)",
        ("one-projection-per-head", "batch-not-multiplied", "softmax-drops-dimension")),
    Bug("nothing-wrong-in-fused", "fused", beliefs=("one-projection-per-head", "batch-not-multiplied",
        "softmax-drops-dimension")),
    Bug("keys-of-the-decoder", "cross", "k", "k = (X @ W_K.T).view(B, M, H, d_h).transpose(1, 2)", True,
        "k = («E|X» @ W_K.T).view(«B», «N», «H», «d_h»).transpose(1, 2)",
        ("texts-are-equally-long", "batch-not-multiplied")),
    Bug("keys-cut-for-the-decoder", "cross", "k", "k = (E @ W_K.T).view(B, M, H, d_h).transpose(1, 2)", True,
        "k = («E|X» @ W_K.T).view(«B», «N», «H», «d_h»).transpose(1, 2)",
        ("texts-are-equally-long", "batch-not-multiplied")),
    Bug("values-of-the-decoder", "cross", "v", "v = (X @ W_V.T).view(B, M, H, d_h).transpose(1, 2)", True,
        "v = («E|X» @ W_V.T).view(«B», «N», «H», «d_h»).transpose(1, 2)",
        ("texts-are-equally-long", "batch-not-multiplied")),
    Bug("queries-of-the-encoder", "cross", "q", "q = (E @ W_Q.T).view(B, N, H, d_h).transpose(1, 2)", True,
        "q = («X|E» @ W_Q.T).view(«B», «M», «H», «d_h»).transpose(1, 2)",
        ("texts-are-equally-long", "one-projection-per-head")),
    Bug("merged-as-the-encoder", "cross", "C", "C = (A @ v).transpose(1, 2).reshape(B, N, H * d_h)", True,
        "C = (A @ v).transpose(«1», «2»).reshape(«B», «M», «H*d_h»)",
        ("texts-are-equally-long", "batch-not-multiplied")),
    Bug("scores-across-texts-transposed", "cross", "S", "S = k @ q.mT / d_h**0.5", True,
        "S = «q|k» @ «k.mT|q.mT» / d_h**0.5", ("texts-are-equally-long", "scale-changes-shape")),
    Bug("padding-of-queries", "cross", "padding", 'S = S.masked_fill(padding[:, None, :, None], float("-inf"))', True,
        _PADDING, ("texts-are-equally-long", "softmax-drops-dimension")),
    Bug("nothing-wrong-in-cross", "cross", beliefs=("texts-are-equally-long", "one-projection-per-head",
        "batch-not-multiplied")),
)  # fmt: skip


def _by_key(rows: Sequence[Bug]) -> Mapping[str, Bug]:
    by_key = {bug.key: bug for bug in rows}
    for bug in rows:
        if by_key[bug.key] is not bug:
            raise BankError(f"Two bugs have the key “{bug.key}”.")
    return by_key


BUGS = _by_key(_ROWS)


def bugs_to_deal(bug: Bug, choice: BugChoice) -> tuple[str, ...]:
    """The keys of the bugs that a seed may draw for a sheet about `bug`.

    "any", "loud" and "silent" keep to its program; "all" is the whole bank, programs without a bug included.
    """
    if choice == "one":
        return (bug.key,)
    if choice == "all":
        return tuple(BUGS)
    return tuple(each.key for each in BUGS.values() if each.program_key == bug.program_key and each.is_kind(choice))


def freeze_bug(bug: Bug) -> str:
    """A bug as JSON, with everything that a sheet takes from the bank; `frozen_bug` reads it back."""
    return _as_json(replace(bug, frozen_program=bug.program, frozen_others=bug.others))


@lru_cache(256)
def _as_json(bug: Bug) -> str:
    return json.dumps(asdict(bug))


@lru_cache(256)
def frozen_bug(text: str) -> Bug:
    """The bug that `freeze_bug` wrote, with its program and other bugs as they were then."""
    values = json.loads(text)
    program = values.pop("frozen_program")
    program["lines"] = tuple(CodeLine(**line) for line in program["lines"])
    program |= {name: tuple(program[name]) for name in ("traced", "symbols")}
    return Bug(
        **values
        | {
            "beliefs": tuple(values["beliefs"]),
            "frozen_others": tuple((key, line) for key, line in values["frozen_others"]),
            "frozen_program": CodeProgram(**program),
        }
    )
