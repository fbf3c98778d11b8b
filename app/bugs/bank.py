"""The bank of bugs: one row each, with the wrong form of one line of a program, and the line to be filled in instead.

A repair is written as the right line with its blanks in guillemets: «H*d_h» is a size, «-1» a dimension, and
«view|reshape» a word to choose, the first of which is right. Filled with these, it must be the program's line, or do
the same. A row is checked when this module is imported.

>>> BUGS["keys-not-transposed"].repair.parts
('S = Q @ K.transpose(', ', ', ') / d_h**0.5')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from app.algebra.expression import Expression, ExpressionError
from app.bugs.programs import PROGRAMS, CodeProgram
from app.bugs.running import CodeError, parsed

BlankKind = Literal["size", "dimension", "word"]
_BLANK = re.compile("«(.*?)»")


class BankError(ValueError):
    """A row of the bank that names something its program lacks, or that cannot be read."""


@dataclass(frozen=True)
class RepairBlank:
    """A blank of a repair: for a size in symbols or numbers, for a whole number, or for one of these words."""

    kind: BlankKind
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepairForm:
    """A line to be filled in: its text around the blanks, the blanks, and one right filling."""

    parts: tuple[str, ...]
    blanks: tuple[RepairBlank, ...]
    example: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> RepairForm:
        """Read "Q.«view|reshape»(«H*d_h», «-1»)"; raises ExpressionError for a size that is no arithmetic."""
        pieces = _BLANK.split(text)
        right = pieces[1::2]
        blanks = tuple(
            RepairBlank("word", tuple(blank.split("|")))
            if "|" in blank
            else RepairBlank("dimension" if blank.lstrip("-").isdigit() else "size")
            for blank in right
        )
        for blank, form in zip(right, blanks, strict=True):
            if form.kind == "size":
                Expression.parse(blank)
        return RepairForm(tuple(pieces[::2]), blanks, tuple(blank.partition("|")[0] for blank in right))

    def filled_with(self, texts: Sequence[str]) -> str:
        """The line with these texts in its blanks."""
        return self.parts[0] + "".join(f"{text}{part}" for text, part in zip(texts, self.parts[1:], strict=True))


@dataclass(frozen=True)
class Bug:
    """One bug: the line of a program that it changes, what stands there instead, and what would repair it.

    `line` is the key of the line. `loud` says whether a program with it raises: a model where it is otherwise is
    refused. `misconception` is the key of the catalogue's row that it shows, "" if it is none of these. `beliefs` are
    keys of BELIEFS, wrong reasons for what is seen; the others are those of bugs in other lines of the program. A row
    without a line is a program with nothing wrong.
    """

    key: str
    program_key: str
    line: str = ""
    wrong: str = ""
    loud: bool = True
    repaired: str = ""
    misconception: str = ""
    beliefs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.program_key not in PROGRAMS:
            self._refuse(f"there is no program “{self.program_key}”")
        if not self.line:
            return
        if self.line not in self.program.by_key:
            self._refuse(f"the program “{self.program_key}” has no line “{self.line}”")
        if self.wrong == self.program.by_key[self.line].code:
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
        """The right program."""
        return PROGRAMS[self.program_key]

    @cached_property
    def repair(self) -> RepairForm:
        """The line to be filled in."""
        return RepairForm.parse(self.repaired)

    def _refuse(self, problem: str) -> None:
        raise BankError(f"The bug “{self.key}”: {problem}.")


# What somebody may believe who looks for the bug in the wrong place: never the reason, with the misconception of the
# catalogue that it belongs to.
BELIEFS: Mapping[str, str] = {
    "softmax-drops-dimension": "softmax-collapses",
    "scores-of-features": "transposed-product",
    "one-projection-per-head": "head-as-wide-as-model",
    "mask-changes-shape": "mask-per-token",
    "batch-not-multiplied": "batch-merged-with-heads",
    "view-moves-numbers": "view-heads-first",
    "heads-share-values": "all-kv-heads-in-one",
    "scale-changes-shape": "root-for-its-number",
}

_SPLIT_Q = "q = (X @ W_Q.T).view(«B», «N», «H», «d_h»).transpose(«1», «2»)"
_SPLIT_K = "k = (X @ W_K.T).view(«B», «N», «G», «d_h»).transpose(«1», «2»)"
_MERGE = "C = (A @ v).transpose(«1», «2»).reshape(«B», «N», «H*d_h»)"
_MASK = 'S = S.masked_fill(position «>|<|>=|<=» position[:, None], «float("-inf")|0|1»)'

_ROWS = (
    # One head
    Bug("keys-not-transposed", "one-head", "S", "S = Q @ K / d_h**0.5", True,
        "S = Q @ K.transpose(«0», «1») / d_h**0.5", "keys-already-transposed",
        ("scores-of-features", "scale-changes-shape")),
    Bug("softmax-over-queries", "one-head", "A", "A = S.softmax(dim=0)", False, "A = S.softmax(dim=«-1»)",
        "", ("softmax-drops-dimension",)),
    Bug("scaled-by-model-width", "one-head", "S", "S = Q @ K.T / d**0.5", False, "S = Q @ K.T / «d_h»**0.5",
        "scale-by-model-width", ("scale-changes-shape",)),
    Bug("mask-inverted", "one-head", "mask", 'S = S.masked_fill(position < position[:, None], float("-inf"))', False,
        _MASK, "mask-hides-earlier", ("mask-changes-shape",)),
    Bug("nothing-wrong-in-head", "one-head", beliefs=("scores-of-features", "softmax-drops-dimension",
        "scale-changes-shape")),
    # A layer
    Bug("heads-split-by-view", "layer", "q", "q = (X @ W_Q.T).view(B, H, N, d_h)", False, _SPLIT_Q,
        "view-heads-first", ("one-projection-per-head",)),
    Bug("heads-not-moved", "layer", "q", "q = (X @ W_Q.T).view(B, N, H, d_h)", True, _SPLIT_Q,
        "heads-attend-to-heads", ("batch-not-multiplied",)),
    Bug("merged-without-transpose", "layer", "C", "C = (A @ v).reshape(B, N, H * d_h)", False, _MERGE,
        "merged-without-transpose", ("one-projection-per-head",)),
    Bug("layer-keys-not-transposed", "layer", "S", "S = q @ k / d_h**0.5", True,
        "S = q @ k.transpose(«-2», «-1») / d_h**0.5", "keys-already-transposed",
        ("scale-changes-shape", "batch-not-multiplied")),
    Bug("nothing-wrong-in-layer", "layer", beliefs=("one-projection-per-head", "batch-not-multiplied",
        "softmax-drops-dimension")),
)  # fmt: skip


def _by_key(rows: Sequence[Bug]) -> Mapping[str, Bug]:
    """The rows by key; raises BankError if two have the same."""
    by_key = {bug.key: bug for bug in rows}
    for bug in rows:
        if by_key[bug.key] is not bug:
            raise BankError(f"Two bugs have the key “{bug.key}”.")
    return by_key


BUGS = _by_key(_ROWS)
