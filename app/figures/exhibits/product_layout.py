"""The places of everything while two matrices are slid together, and the parts drawn there.

The right operand is above the place of the result; the left one is next to that place, or below it while it is apart.
The inner sides meet in the corner between them, which is empty at the upper left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal

from app.algebra.number_text import format_number
from app.figures.exhibits.axes import CELL_PX, DrawnAxis, cells_of, drawn_axis
from app.figures.exhibits.frames import DrawnMark, FrameDrawing, Part, PathMark, RectangleMark, TextMark
from app.figures.exhibits.products import Product
from app.figures.lettering import LABEL_PX, label_px
from app.figures.shapes import TypedShapes
from app.sheets.reading import Answer
from app.translation import gettext as _

CORNER_GAP_PX = 14.0  # between an operand and the place of the result
TRAVEL_PX = 58.0  # how far below its place the left operand starts
BOUNCE_PX = 16.0  # how far it springs back if it doesn't fit
WORDS_PX = 60.0  # the least room left of the left operand, for its rows' names
LABEL_LINE_PX = 15.0  # from one line of a label to the next
HEADING_PX = 48.0  # above the right operand, for its columns' slanted names


@dataclass(frozen=True)
class ProductLayout:
    """One product whose four lengths are known.

    An operand is shown "apart", then "met" or "bounced", where the inner sides have lost their labels, then "pencil",
    where they are gone.
    """

    shapes: TypedShapes
    product: Product

    @cached_property
    def axes(self) -> tuple[DrawnAxis, DrawnAxis, DrawnAxis, DrawnAxis]:
        """Rows and columns of the left operand, then of the right one, as they are multiplied, on one scale."""
        blanks = self.product.blanks
        cells = cells_of([self.shapes.lengths[blank] for blank in blanks])
        first, second, third, fourth = (drawn_axis(self.shapes, blank, cells) for blank in blanks)
        return (first, second, third, fourth)

    @property
    def rows(self) -> DrawnAxis:
        return self.axes[0]

    @property
    def columns(self) -> DrawnAxis:
        return self.axes[3]

    @property
    def fits(self) -> bool:
        """Whether the inner sides are equal; on a sheet in letters, whether they mean the same."""
        inner, inner_rows = self.product.blanks[1:3]
        if inner not in self.shapes.meanings:
            return self.axes[1].length == self.axes[2].length
        typed = Answer(self.axes[1].length, self.shapes.meanings[inner])
        return self.shapes.variant.reader.is_equivalent(typed, self.shapes.meanings[inner_rows])

    @cached_property
    def letters(self) -> Mapping[str, str]:
        """The letters of "left", "right" and "result", with ᵀ for a transposed operand."""
        product = self.product
        keys = {"left": product.left, "right": product.right, "result": product.result}
        return {name: self.letter(key) + "ᵀ" * (key == product.transposed) for name, key in keys.items()}

    def letter(self, tensor: str) -> str:
        """The letter of a tensor; a sliced tensor has its first head's, K_1."""
        letter = self.shapes.letter(tensor)
        return f"{letter.partition('_')[0]}_1" if tensor in self.product.sliced else letter

    @cached_property
    def cell(self) -> tuple[int, int]:
        """The row and column, from 0, of the cell that the visitor is asked for."""
        asking, asked = self.rows.cell_names, self.columns.cell_names
        token = asking.index("France") if "France" in asking else min(3, len(asking) - 1)
        return token, min(1, len(asked) - 1)

    @property
    def in_letters(self) -> bool:
        return self.shapes.variant.worksheet.answers == "letters"

    @property
    def has_sink(self) -> bool:
        """Whether an attention sink takes a share of every softmax."""
        return self.shapes.variant.architecture.has_sinks

    # Places

    @property
    def left_x(self) -> float:
        """The left end of the left operand, with room for its rows' names and label."""
        return max(WORDS_PX, _label_px(self.rows) + 8)

    @property
    def x(self) -> float:
        """The left end of the result and of the right operand."""
        return self.left_x + self.axes[1].px + CORNER_GAP_PX

    @property
    def top(self) -> float:
        """The upper end of the right operand, with room above for a longer side that swings up beside it."""
        return HEADING_PX + max(0.0, self.axes[1].px - self.axes[2].px)

    @property
    def y(self) -> float:
        """The upper end of the result, and of the left operand once it has moved up."""
        return self.top + self.axes[2].px + CORNER_GAP_PX

    def drawing(self, *parts: Part) -> FrameDrawing:
        """A drawing with these parts, from back to front; its alt text names both operands with their sizes."""
        left, right = (" × ".join(axis.text for axis in self.axes[at : at + 2]) for at in (0, 2))
        words = _("{left} is {left_size}, {right} is {right_size}.")
        alt_text = words.format(**self.letters, left_size=left, right_size=right)
        labels = max(_label_px(self.rows), _label_px(self.columns))
        width = self.x + self.columns.px + 8 + labels
        below = 26 + LABEL_LINE_PX * (len(self.rows.label_lines) - 1)
        return FrameDrawing(width, self.y + self.rows.px + TRAVEL_PX + below, alt_text, parts)

    # Parts

    def left(self, how: str = "", data: Mapping[str, str] | None = None, *, letter: str | None = None) -> Part:
        """The left operand with its rows' names and label, shown as `how` says."""
        rows, columns = self.axes[:2]
        marks = list(self._body(self.product.left, columns, rows, "rows", letter))
        marks += [TextMark(-8, place + 4, name, "word", "end") for place, name in rows.names]
        marks += _label(-8, rows.px + 20, rows, "end")
        if how != "pencil":
            marks.append(PathMark(f"M0 0V{rows.px:.1f}", f"side {rows.kind}"))
            marks.append(PathMark(f"M0 0H{columns.px:.1f}", f"side {columns.kind}"))
        if how == "apart":
            marks += _label(columns.px / 2, -9 - LABEL_LINE_PX * (len(columns.label_lines) - 1), columns, "middle")
        y = self.y + {"apart": TRAVEL_PX, "bounced": BOUNCE_PX}.get(how, 0.0)
        return Part("left", tuple(marks), self.left_x, y, self._css(self.product.left, how), data or {})

    def right(self, how: str = "", *, letter: str | None = None) -> Part:
        """The right operand with its columns' label and names (slanted for tokens), shown as `how` says."""
        rows, columns = self.axes[2:]
        marks = list(self._body(self.product.right, columns, rows, "columns", letter))
        marks += [
            TextMark(place, -8, name, "word", "start", turn=-50 if columns.kind == "tokens" else 0)
            for place, name in columns.names
        ]
        marks += _label(columns.px + 8, 10, columns)
        if how != "pencil":
            marks.append(PathMark(f"M0 0H{columns.px:.1f}", f"side {columns.kind}"))
            marks.append(PathMark(f"M0 0V{rows.px:.1f}", f"side {rows.kind}"))
        if how == "apart":
            marks += _label(-12, rows.px / 2, rows, "end")
        return Part("right", tuple(marks), self.x, self.top, self._css(self.product.right, how))

    def result(self, how: str = "", letter: str | None = None, data: Mapping[str, str] | None = None) -> Part:
        """The result in its place with its labels; `how` is its class: "empty", "full", "masked" or "sums"."""
        rows, columns = self.rows, self.columns
        marks = list(
            self._body(self.product.result, columns, rows, "both" if how else "", letter, low=how in ("masked", "sums"))
        )
        marks += _label(columns.px / 2, rows.px + 20, columns, "middle")
        if how == "sums":
            row_sum = "<1" if self.has_sink else "1"
            marks.append(TextMark(columns.px + 8, -6, "Σ", "axis other"))
            marks += [TextMark(columns.px + 8, place + 4, row_sum, "size other") for place, _name in rows.names]
        else:
            marks += _label(columns.px + 8, rows.px / 2 + 4, rows)
        return Part("result", tuple(marks), self.x, self.y, self._css(self.product.result, how), data or {})

    def outer_sides(self) -> tuple[Part, Part]:
        """The operands' outer sides, drawn without labels along the left and upper side of the result's place."""
        rows, columns = self.rows, self.columns
        return (
            Part("rows-side", (PathMark(f"M0 0V{rows.px:.1f}", f"side {rows.kind}"),), self.x, self.y),
            Part("columns-side", (PathMark(f"M0 0H{columns.px:.1f}", f"side {columns.kind}"),), self.x, self.y),
        )

    def swung(self) -> tuple[Part, Part]:
        """The left operand's inner side swinging to the right one's: its path, and the side at its end."""
        columns = self.axes[1]
        kind = columns.kind if self.fits else "mismatch"
        x, y = self.x - CORNER_GAP_PX / 2, self.y - CORNER_GAP_PX
        way = f"M{-columns.px:.1f} 0A{columns.px:.1f} {columns.px:.1f} 0 0 1 0 {-columns.px:.1f}"
        return (
            Part("swing", (PathMark(way, "thin"),), x, y),
            Part("swung", (PathMark(f"M0 0V{-columns.px:.1f}", f"side {kind}"),), x, y),
        )

    def equal_label(self) -> Part:
        """The label that both inner sides are equal, 128 = 128; in letters it has two lines."""
        sides = " = ".join(axis.text for axis in self.axes[1:3])
        x, y = self.x - CORNER_GAP_PX - 10, self.y - CORNER_GAP_PX - self.axes[2].px / 2
        if self.in_letters:
            lines = (
                _length(0, -15, self.axes[1].text, "size right"),
                _length(0, 3, f"= {self.axes[2].text}", "size right"),
            )
            return Part("verdict", lines, x, y)
        return Part("verdict", (TextMark(0, 0, sides, "size right", "end"),), x, y)

    def overhang(self) -> Part:
        """The difference between the inner sides: a bracket along the excess of the longer one."""
        left, right = self.axes[1], self.axes[2]
        if self.in_letters:
            x, y = self.x - CORNER_GAP_PX - 10, self.y - CORNER_GAP_PX - right.px / 2
            lines = (_length(0, -15, left.text, "size mismatch"), _length(0, 0, f"≠ {right.text}", "size mismatch"))
            return Part("verdict", lines, x, y)
        over = abs(left.px - right.px)
        text = format_number(abs(left.length - right.length))
        marks = (
            PathMark(f"M4 0H0V{-over:.1f}H4", "side bracket mismatch"),
            TextMark(-8, -over / 2 - 2, text, "size mismatch", "end"),
            TextMark(-8, -over / 2 + 14, _("left over"), "axis mismatch", "end"),
        )
        y = self.y - CORNER_GAP_PX - min(left.px, right.px)
        return Part("verdict", marks, self.x - CORNER_GAP_PX / 2 - 10, y)

    def strips(self) -> tuple[Part, Part, Part]:
        """The row and column whose dot product fills the asked cell, each with its matrix's letter, and that cell."""
        letters = [
            TextMark(columns.px / 2, rows.px / 2, self.letters[side], "letter", "middle", is_symbol=True)
            for side, rows, columns in (("left", *self.axes[:2]), ("right", *self.axes[2:]))
        ]
        row, column = (CELL_PX * at for at in self.cell)
        across = RectangleMark(0, row, self.axes[1].px, CELL_PX, "strip")
        down = RectangleMark(column, 0, CELL_PX, self.axes[2].px, "strip")
        cell = RectangleMark(column, row, CELL_PX, CELL_PX, "chosen")
        return (
            Part("row-strip", (across, letters[0]), self.left_x, self.y, self._css(self.product.left)),
            Part("column-strip", (down, letters[1]), self.x, self.top, self._css(self.product.right)),
            Part("cell", (cell,), self.x, self.y, self._css(self.product.result)),
        )

    def hidden(self, is_hidden: Callable[[int, int], bool], text: str) -> Part:
        """What a mask hides of the result: named cells one by one, each with `text` in it, and an area in the rest."""
        named = len(self.columns.cell_names)
        side = CELL_PX * named
        rest = self.columns.px - side
        marks = list[DrawnMark]()
        for row, column in product(range(len(self.rows.cell_names)), range(named)):
            if is_hidden(row, column):
                marks.append(RectangleMark(CELL_PX * column, CELL_PX * row, CELL_PX, CELL_PX, "hides"))
                marks.append(TextMark(CELL_PX * (column + 0.5), CELL_PX * (row + 0.5) + 3, text, "entry", "middle"))
        if rest and is_hidden(0, named):
            marks.append(PathMark(f"M{side:.1f} 0h{rest:.1f}v{side + rest:.1f}l{-rest:.1f} {-rest:.1f}z", "hides"))
        return Part("hidden", tuple(marks), self.x, self.y)

    def _body(
        self,
        tensor: str,
        columns: DrawnAxis,
        rows: DrawnAxis,
        cells: str,
        letter: str | None,
        *,
        low: bool = False,
    ) -> Iterator[DrawnMark]:
        yield RectangleMark(0, 0, columns.px, rows.px, "body")
        if self.shapes.table[tensor].parameter:
            yield RectangleMark(0, 0, columns.px, rows.px, "over")
        lines = [f"M0 {end:.1f}H{columns.px:.1f}" for end in rows.cell_ends if cells in ("rows", "both")]
        lines += [f"M{end:.1f} 0V{rows.px:.1f}" for end in columns.cell_ends if cells in ("columns", "both")]
        if lines:
            yield PathMark("".join(lines), "grid")
        if letter is None:
            letter = self.letter(tensor) + "ᵀ" * (tensor == self.product.transposed)
        if letter:
            place = (0.3, 0.7) if low else (0.5, 0.5)
            x, y = (share * side for share, side in zip(place, (columns.px, rows.px), strict=True))
            yield TextMark(x, y, letter, "letter", "middle", is_symbol=True)

    def _css(self, tensor: str, how: str = "") -> str:
        return f"{self.shapes.table[tensor].role} {how}".strip()


def _label(x: float, y: float, axis: DrawnAxis, anchor: Literal["start", "middle", "end"] = "start") -> list[TextMark]:
    return [
        replace(_length(x, y + LABEL_LINE_PX * at, line, f"size {axis.kind}"), anchor=anchor)
        for at, line in enumerate(axis.label_lines)
    ]


def _length(x: float, y: float, text: str, css: str) -> TextMark:
    return TextMark(x, y, text, css, "end", is_symbol=re.fullmatch(r"[^_]*_\w+", text) is not None)


def _label_px(axis: DrawnAxis) -> float:
    return max(map(label_px, axis.label_lines)) * 13 / LABEL_PX
