"""One line of a generated torch program, and a whole program as text.

>>> line = ProgramLine("Q1, Q2 = Q.split(64, dim=-1)", shapes=((100, 64), (100, 64)))
>>> line.names, line.text
(('Q1', 'Q2'), 'Q1, Q2 = Q.split(64, dim=-1)  # (100, 64) (100, 64)')
>>> print(listing((heading("The head itself"), ProgramLine("S = Q @ K.T"))), end="")
<BLANKLINE>
# The head itself
S = Q @ K.T
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_CHANGES = re.compile(r"(\w+(?:, \w+)*) [-+*/]?= |(\w+)\.\w+_\(")  # "Q1, Q2 = ", "S /= ", "S.masked_fill_("


NotRunReason = Literal["refused", "busy", "too-long", "stopped"]


class ForwardError(ValueError):
    """A head or layer that wasn't run; `str()` is the sentence to show."""

    def __init__(self, sentence: str, reason: NotRunReason = "refused") -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass(frozen=True)
class ProgramLine:
    """One line of the program. A line without code is a heading; a whole `for` loop is one line.

    `makes` is the table's key of the tensor that it makes; only `timed` lines count as the head's time.
    """

    code: str
    makes: str | None = None
    comment: str = ""
    timed: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that the first row of code sets or changes in place."""
        found = _CHANGES.match(self.code)
        return tuple((found[1] or found[2]).split(", ")) if found else ()

    @property
    def text(self) -> str:
        """The line with shapes, then comment, after its first row of code: 'Q = X @ W_Q  # (100, 128)'."""
        remarks = " ".join(remark for remark in (*map(str, self.shapes), self.comment) if remark)
        first_row, *loop_body = self.code.split("\n")
        commented = "  ".join(part for part in (first_row, remarks and f"# {remarks}") if part)
        return "\n".join([commented, *loop_body])


def heading(text: str) -> ProgramLine:
    return ProgramLine("", comment=text)


def listing(lines: Sequence[ProgramLine]) -> str:
    """The whole program as text, ready to paste into a notebook."""
    return "".join(f"{line.text}\n" if line.code else f"\n{line.text}\n" for line in lines)
