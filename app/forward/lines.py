"""One line of a generated torch program, and a whole program as text.

>>> ProgramLine("Q = X @ W_Q", "queries", ("Q",), shapes=((100, 128),)).text
'Q = X @ W_Q  # (100, 128)'
>>> print(listing((ProgramLine("", comment="The head itself"), ProgramLine("S = Q @ K.T"))), end="")
<BLANKLINE>
# The head itself
S = Q @ K.T
"""

from __future__ import annotations

from dataclasses import dataclass


class ForwardError(ValueError):
    """A head or layer that can't be run; the message says what to change."""


@dataclass(frozen=True)
class ProgramLine:
    """One line of the program. A line without code is a heading; a whole `for` loop is one line."""

    code: str
    makes: str | None = None
    names: tuple[str, ...] = ()
    comment: str = ""
    timed: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def text(self) -> str:
        """The line with shapes, then comment, after its first row of code: 'Q = X @ W_Q # (100, 128)'."""
        remarks = " ".join(remark for remark in (*map(str, self.shapes), self.comment) if remark)
        first_row, *loop_body = self.code.split("\n")
        commented = "  ".join(part for part in (first_row, remarks and f"# {remarks}") if part)
        return "\n".join([commented, *loop_body])


def helper(code: str, comment: str = "", *, timed: bool = False) -> ProgramLine:
    """The line that makes a helper variable, named by the first word of its code."""
    return ProgramLine(code, None, (code.split(" ")[0],), comment, timed)


def listing(lines: tuple[ProgramLine, ...]) -> str:
    """The whole program as text, ready to paste into a notebook."""
    return "".join(f"{line.text}\n" if line.code else f"\n{line.text}\n" for line in lines)
