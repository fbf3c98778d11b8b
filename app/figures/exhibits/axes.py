"""The axes of exhibits: tokens are the words of a sentence, features are numbered, and what is longer is drawn longer.

Tokens of a model that reads no text, such as ViT, are numbered too.

An axis of at most six is drawn cell by cell. A longer one shows its first six cells, then ⋯. Lengths are not to scale,
but equal lengths are equally long, and of two different ones the longer is drawn longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from app.algebra.number_text import format_number
from app.figures.captions import edge_kind, size_name
from app.figures.figures import EdgeKind
from app.figures.typed_shapes import TypedShapes
from app.shapes.table import MATRIX_FIELDS, Blank
from app.translation import gettext as _

CELL_PX = 16.0
NAMED_CELLS = 6  # drawn one by one; the rest of a longer axis is ⋯
MAX_CELLS = 12
ENCODER_WORDS = ("The", "capital", "of", "France", "is", "Paris")
DECODER_WORDS = ("La", "capitale", "de", "la", "France", "est")  # what a decoder writes that reads the other sentence


@dataclass(frozen=True)
class DrawnAxis:
    """One side of a matrix: its length, the length in px, the colour of what it counts, its label and its cells.

    Example: 100 tokens: label "100 tokens", names The, capital … Paris, ⋯.
    """

    length: int
    px: float
    kind: EdgeKind
    label: str
    cell_names: tuple[str, ...]

    def spoken_name(self, cell: int) -> str:
        """A cell's name in a sentence: “France” in quotation marks, 2 as it is."""
        name = self.cell_names[cell]
        return _("the new token") if name == _("new token") else name if name.isdecimal() else f"“{name}”"

    @property
    def label_lines(self) -> tuple[str, ...]:
        """The label on one line, or a long one on two: '1500 encoder' and 'tokens'."""
        first, _space, last = self.label.rpartition(" ")
        return (first, last) if " " in first else (self.label,)

    @property
    def cell_ends(self) -> tuple[float, ...]:
        """Where one cell ends and the next one begins."""
        return tuple(CELL_PX * cell for cell in range(1, min(len(self.cell_names) + 1, round(self.px / CELL_PX))))

    @property
    def names(self) -> tuple[tuple[float, str], ...]:
        """The middle of each cell with its name, and of the rest with ⋯."""
        named = [(CELL_PX * (cell + 0.5), name) for cell, name in enumerate(self.cell_names)]
        rest = CELL_PX * len(self.cell_names)
        return (*named, *([((rest + self.px) / 2, "⋯")] if self.length > len(self.cell_names) else []))


def cells_of(lengths: Iterable[int]) -> Mapping[int, int]:
    """How many cells long each length is drawn: up to six as it is, and longer ones in their order.

    One that is far longer than the one before is drawn more than one cell longer, unless there is no room for that.

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
    """A side of a matrix with its length, coloured and named after what that length counts in this model."""
    length, kind = shapes.lengths[blank], edge_kind(shapes, blank)
    expression = shapes.expression(blank)
    symbols = expression.symbols if expression else frozenset()
    is_named = kind == "tokens" or bool(symbols & {"V", "E"})  # others are features
    name = size_name(shapes, expression) if expression and is_named else _("features") if expression else ""
    names = tuple(str(number) for number in range(1, min(length, NAMED_CELLS) + 1))
    reads_text = shapes.variant.architecture.fixed_tokens is None  # others read image patches or audio frames
    if kind == "tokens" and (symbols == {"M"} or (symbols == {"N"} and reads_text)):  # not the tokens of a window
        names = (DECODER_WORDS if "M" in symbols else ENCODER_WORDS)[:length]
    elif kind == "tokens" and not symbols and "decode-step" in shapes.table.key:
        names = (_("new token"),)
    label = f"{format_number(length)} {name}".strip()
    return DrawnAxis(length, CELL_PX * cells[length], kind, label, names)


def true_lengths(shapes: TypedShapes) -> dict[Blank, int]:
    """The true length of every side of every matrix in the table of these shapes; of what has more sides, none."""
    sizes = shapes.variant.sizes
    matrices = (tensor for tensor in shapes.table.tensors if set(MATRIX_FIELDS) <= set(tensor.fields))
    sides = (Blank(tensor.key, field) for tensor in matrices for field in MATRIX_FIELDS)
    return {side: shapes.table[side.tensor].expression(side.field).size(sizes) for side in sides}
