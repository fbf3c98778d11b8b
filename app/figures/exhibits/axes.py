"""The axes of exhibits: tokens are the words of a sentence, features are numbered.

Tokens of a model that reads no text, such as ViT, are also numbered. An axis of at most six is drawn cell by cell; a
longer one shows its first six cells, then ⋯. Lengths aren't to scale, but equal lengths are drawn equal, and longer
ones longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from app.figures.parts import EdgeKind
from app.figures.shapes import TypedShapes
from app.figures.words import edge_kind, size_name
from app.shapes.table import Blank
from app.translation import gettext as _

CELL_PX = 16.0
NAMED_CELLS = 6  # drawn one by one; the rest of a longer axis is ⋯
MAX_CELLS = 12
ENCODER_WORDS = ("The", "capital", "of", "France", "is", "Paris")
# what the decoder writes while it reads the other sentence
DECODER_WORDS = ("La", "capitale", "de", "la", "France", "est")


@dataclass(frozen=True)
class DrawnAxis:
    """One side of a matrix: its length (as number, text and px), the colour and name of what it counts, and its cells.

    Example: 100 tokens: text "100" ("N" on a sheet in letters), name "tokens", names of cells The, capital … Paris.
    """

    length: int
    text: str
    px: float
    kind: EdgeKind
    name: str
    cell_names: tuple[str, ...]

    def spoken_name(self, cell: int) -> str:
        """A cell's name in a sentence: “France” in quotation marks, a number as it is, or "the new token"."""
        name = self.cell_names[cell]
        return _("the new token") if name == _("new token") else name if name.isdecimal() else f"“{name}”"

    @property
    def label_lines(self) -> tuple[str, ...]:
        """What it counts on one line, '100 tokens', or on two if the name has several words: '1500 encoder' and
        'tokens'.
        """
        if not self.name or not self.text.replace(",", "").isdecimal():
            return tuple(filter(None, (self.text, self.name)))
        first, _space, last = f"{self.text} {self.name}".rpartition(" ")
        return (first, last) if " " in first else (f"{first} {last}",)

    @property
    def cell_ends(self) -> tuple[float, ...]:
        """The positions where one cell ends and the next begins."""
        return tuple(CELL_PX * cell for cell in range(1, min(len(self.cell_names) + 1, round(self.px / CELL_PX))))

    @property
    def names(self) -> tuple[tuple[float, str], ...]:
        """The middle of each named cell with its name, and ⋯ for the rest of the axis, if any."""
        named = [(CELL_PX * (cell + 0.5), name) for cell, name in enumerate(self.cell_names)]
        rest = CELL_PX * len(self.cell_names)
        return (*named, *([((rest + self.px) / 2, "⋯")] if self.length > len(self.cell_names) else []))


def cells_of(lengths: Iterable[int]) -> Mapping[int, int]:
    """How many cells long each length is drawn: up to six as it is, longer ones from 7 on, in their order.

    >>> cells_of([100, 128, 128, 4096])
    {100: 7, 128: 8, 4096: 11}
    """
    longer = sorted({length for length in lengths if length > NAMED_CELLS})
    cells = {length: length for length in sorted(set(lengths)) if length <= NAMED_CELLS}
    steps = [1 + (after >= 4 * before) + (after >= 16 * before) for before, after in pairwise(longer)]
    if NAMED_CELLS + 1 + sum(steps) > MAX_CELLS:
        steps = [1] * len(steps)
    for at, length in enumerate(longer):
        cells[length] = NAMED_CELLS + 1 + sum(steps[:at])
    return cells


def drawn_axis(shapes: TypedShapes, blank: Blank, cells: Mapping[int, int]) -> DrawnAxis:
    """A side of a matrix with its length, coloured and named after what that length counts in this model.

    Raises KeyError for a side without a length.
    """
    length, kind = shapes.lengths[blank], edge_kind(shapes, blank)
    expression = shapes.expression(blank)
    symbols = expression.symbols if expression else frozenset()
    is_named = kind == "tokens" or bool(symbols & {"V", "E"})  # others are features
    name = size_name(shapes, expression) if expression and is_named else _("features") if expression else ""
    names = tuple(str(number) for number in range(1, min(length, NAMED_CELLS) + 1))
    reads_text = shapes.variant.architecture.fixed_tokens is None  # others read image patches or audio frames
    if kind == "tokens" and (symbols == {"M"} or (symbols == {"N"} and reads_text)):  # except the tokens of a window
        names = (DECODER_WORDS if "M" in symbols else ENCODER_WORDS)[:length]
    elif kind == "tokens" and not symbols and shapes.is_of_new_token:
        names = (_("new token"),)
    return DrawnAxis(length, shapes.label(blank), CELL_PX * cells[length], kind, name, names)


def true_lengths(shapes: TypedShapes) -> dict[Blank, int]:
    """The true length of every side of every tensor in these shapes' table."""
    sizes = shapes.variant.sizes
    sides = (side for tensor in shapes.table.tensors for side in tensor.sides)
    return {side: shapes.table[side.tensor].expression(side.field).size(sizes) for side in sides}
