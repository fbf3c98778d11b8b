"""Slide it together: a product as a gesture, from two matrices apart to the result, for any product of a table.

The right operand stands above the place of the result and the left one comes from below. Where they meet at the
corner, the left one's inner side, its columns, swings up to the right one's inner side, its rows: equal ones close and
disappear, and the outer sides become the sides of the result. Of unequal ones the overhang remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from app.algebra.number_text import format_number
from app.figures.exhibits.axes import DrawnAxis, cells_of, drawn_axis
from app.figures.exhibits.frames import (
    DrawnMark,
    Exhibit,
    Frame,
    FrameDrawing,
    Part,
    PathMark,
    RectangleMark,
    TextMark,
)
from app.figures.typed_shapes import TypedShapes
from app.shapes.table import Blank, BlankField, TensorTable
from app.translation import gettext as _

CORNER_GAP_PX = 14.0  # between an operand and the place of the result
TRAVEL_PX = 58.0  # how far below its place the left operand begins
BOUNCE_PX = 16.0  # how far it springs back from one that it does not fit
WORDS_PX = 60.0  # left of the left operand, for the names of its rows
HEADING_PX = 48.0  # above the right operand, for the names of its columns, which stand aslant
SIDE_LABEL_PX = 74.0  # right of the result, for its rows


@dataclass(frozen=True)
class Product:
    """One product of a table: result = left · right, where right is read transposed, as Kᵀ, or as it is."""

    result: str
    left: str
    right: str
    transposed: bool

    @property
    def blanks(self) -> tuple[Blank, Blank, Blank, Blank]:
        """The left operand's rows and columns, then the right one's rows and columns as it is multiplied."""
        fields: tuple[BlankField, BlankField] = ("columns", "rows") if self.transposed else ("rows", "columns")
        rows, columns = (Blank(self.right, field) for field in fields)
        return (Blank(self.left, "rows"), Blank(self.left, "columns"), rows, columns)


def products_of(table: TensorTable) -> tuple[Product, ...]:
    """Every tensor of a table that is the plain product of two others, in the order of computation.

    Not those that are computed head by head, looked up or put together: their formula says more than "a · b".
    """
    found = list[Product]()
    for tensor in table.tensors:
        if tensor.equation and len(tensor.equation.operands) == 2:
            left, right = tensor.equation.operands
            plain = f"{{{left}}} · {{{right}}}"
            if tensor.equation.formula in (plain, f"{plain}ᵀ"):
                found.append(Product(tensor.key, left, right, tensor.equation.formula.endswith("ᵀ")))
    return tuple(found)


def slide_exhibit(shapes: TypedShapes, product: Product) -> Exhibit:
    """The frames of a product with the lengths of these shapes, all four of which must be known."""
    stage = _Stage(shapes, product)
    steps = list(stage.steps())
    frames = tuple(Frame(number, *step) for number, step in enumerate(steps, 1))
    return Exhibit("slide", _("Slide it together"), stage.about, frames)


Step = tuple[str, str, FrameDrawing, str]  # key, sentence, drawing, question


# Long because every frame of one product is drawn here, on the same places.
@dataclass(frozen=True)
class _Stage:
    """One product with its lengths, and where everything stands: x and y of the left operand, of the right one (`top`)
    and of the result.
    """

    shapes: TypedShapes
    product: Product

    @cached_property
    def axes(self) -> tuple[DrawnAxis, DrawnAxis, DrawnAxis, DrawnAxis]:
        """The sides of the left operand and of the right one as it is multiplied, on one scale."""
        blanks = self.product.blanks
        cells = cells_of([self.shapes.lengths[blank] for blank in blanks])
        first, second, third, fourth = (drawn_axis(self.shapes, blank, cells) for blank in blanks)
        return (first, second, third, fourth)

    @property
    def fits(self) -> bool:
        """Whether the inner sides are equal."""
        return self.axes[1].length == self.axes[2].length

    @cached_property
    def letters(self) -> Mapping[str, str]:
        """The letters of left, right (with its ᵀ) and result."""
        right = self.shapes.letter(self.product.right) + ("ᵀ" if self.product.transposed else "")
        return {
            "left": self.shapes.letter(self.product.left),
            "right": right,
            "result": self.shapes.letter(self.product.result),
        }

    @property
    def about(self) -> str:
        """What the product is, in letters and the model's name."""
        sentence = _("{result} = {left} · {right} in {model}, with {tokens} tokens.")
        variant = self.shapes.variant
        return sentence.format(**self.letters, model=variant.model.name, tokens=format_number(variant.tokens))

    # Places

    @property
    def left_x(self) -> float:
        return WORDS_PX

    @property
    def x(self) -> float:
        """The left end of the result and of the right operand."""
        return self.left_x + self.axes[1].px + CORNER_GAP_PX

    @property
    def top(self) -> float:
        """The upper end of the right operand, with room above it for a longer side that swings up beside it."""
        return HEADING_PX + max(0.0, self.axes[1].px - self.axes[2].px)

    @property
    def y(self) -> float:
        """The upper end of the result and of the left operand once it is there."""
        return self.top + self.axes[2].px + CORNER_GAP_PX

    @property
    def width(self) -> float:
        return self.x + self.axes[3].px + SIDE_LABEL_PX

    @property
    def height(self) -> float:
        return self.y + max(self.axes[0].px + TRAVEL_PX, self.axes[0].px) + 26

    # Frames

    def steps(self) -> Iterator[Step]:
        """Every frame in order: apart, meeting, and if the inner sides are equal the result."""
        rows, columns, inner_rows, inner_columns = (format_number(axis.length) for axis in self.axes)
        sizes = {"rows": rows, "columns": columns, "inner_rows": inner_rows, "inner_columns": inner_columns}
        apart = _("{left} is {rows} × {columns}, {right} is {inner_rows} × {inner_columns}. Move {left} up to {right}.")
        yield "apart", apart.format(**self.letters, **sizes), self._apart(), ""
        if not self.fits:
            yield "bounce", self._overhang_sentence(), self._bounced(), ""
            return
        meet = _("{columns} meets {inner_rows}: the inner sides are equal, so they close.")
        yield "meet", meet.format(**sizes), self._meeting(), ""
        left = _("The inner sides are gone. The outer sides are the sides of {result}: {rows} × {inner_columns}.")
        yield "result", left.format(**self.letters, **sizes), self._result(), ""

    def _overhang_sentence(self) -> str:
        """Why two matrices cannot be multiplied, and by how much one inner side is longer."""
        columns, rows = self.axes[1].length, self.axes[2].length
        sentence = _(
            "{left} has {columns} columns, but {right} has {rows} rows: {overhang} are left over. {left} bounces off."
        )
        overhang = format_number(abs(columns - rows))
        return sentence.format(
            **self.letters, columns=format_number(columns), rows=format_number(rows), overhang=overhang
        )

    def _frame(self, *parts: Part) -> FrameDrawing:
        """A drawing of the stage with these parts; in words, the three letters with their sizes."""
        sizes = " × ".join
        left, right = (sizes(format_number(a.length) for a in self.axes[i : i + 2]) for i in (0, 2))
        words = _("{left} is {left_size}, {right} is {right_size}.")
        alt_text = words.format(**self.letters, left_size=left, right_size=right)
        return FrameDrawing(self.width, self.height, alt_text, parts)

    def _apart(self) -> FrameDrawing:
        """The left operand below its place, with the distance to it for the script."""
        y = self.y + TRAVEL_PX
        label = _("Move {left} up to {right}").format(**self.letters)
        return self._frame(*self._right(), *self._left(y, {"moves": f"{-TRAVEL_PX:g}", "label": label}))

    def _meeting(self) -> FrameDrawing:
        """The left operand in its place, its inner side swung up beside the other one."""
        return self._frame(
            *self._right(css="met"), *self._left(self.y, css="met"), self._swung("equal"), self._equal_label()
        )

    def _bounced(self) -> FrameDrawing:
        """The left operand just off its place, and what one inner side has too much."""
        return self._frame(
            *self._right(css="met"),
            *self._left(self.y + BOUNCE_PX, css="met"),
            self._swung("mismatch"),
            self._overhang(),
        )

    def _result(self) -> FrameDrawing:
        """The operands in pencil, and the result between their outer sides."""
        return self._frame(
            *self._right(css="pencil"), *self._left(self.y, css="pencil"), self._product_part(), *self._outer_sides()
        )

    # Parts

    def _left(self, y: float, data: Mapping[str, str] | None = None, css: str = "") -> Iterator[Part]:
        """The left operand with the names of its rows, its inner side on top: without its label once both have "met",
        and gone in pencil.
        """
        rows, columns = self.axes[0], self.axes[1]
        marks: list[DrawnMark] = [*self._body(self.product.left, columns, rows, rows_named=True)]
        marks += [TextMark(-8, place + 4, name, "word", "end") for place, name in rows.names]
        marks.append(TextMark(-8, rows.px + 20, rows.label, f"size {rows.kind}", "end"))
        if css != "pencil":
            marks.append(PathMark(f"M0 0V{rows.px:.1f}", f"side {rows.kind}"))
            marks.append(PathMark(f"M0 0H{columns.px:.1f}", f"side inner {columns.kind}"))
        if not css:
            marks.append(TextMark(columns.px / 2, -9, columns.label, f"size {columns.kind}", "middle"))
        yield Part("left", tuple(marks), self.left_x, y, self._css(self.product.left, css), data or {})

    def _right(self, css: str = "") -> Iterator[Part]:
        """The right operand with the names of its columns; its inner side at the left, as that of the left operand."""
        rows, columns = self.axes[2], self.axes[3]
        marks: list[DrawnMark] = [*self._body(self.product.right, columns, rows, rows_named=False)]
        marks += [TextMark(place, -8, name, "word", "start", turn=-50) for place, name in columns.names]
        marks.append(TextMark(columns.px + 6, 10, columns.label, f"size {columns.kind}"))
        if css != "pencil":
            marks.append(PathMark(f"M0 0H{columns.px:.1f}", f"side {columns.kind}"))
            marks.append(PathMark(f"M0 0V{rows.px:.1f}", f"side inner {rows.kind}"))
        if not css:
            marks.append(TextMark(-12, rows.px / 2, rows.label, f"size {rows.kind}", "end"))
        yield Part("right", tuple(marks), self.x, self.top, self._css(self.product.right, css))

    def _product_part(self) -> Part:
        """The result in its place."""
        rows, columns = self.axes[0], self.axes[3]
        marks = (
            *self._body(self.product.result, columns, rows, rows_named=True),
            TextMark(columns.px + 8, rows.px / 2, rows.label, f"size {rows.kind}"),
            TextMark(columns.px / 2, rows.px + 20, columns.label, f"size {columns.kind}", "middle"),
        )
        return Part("result", marks, self.x, self.y, self._css(self.product.result))

    def _outer_sides(self) -> Iterator[Part]:
        """The outer sides at the result."""
        rows, columns = self.axes[0], self.axes[3]
        yield Part("rows-side", (PathMark(f"M0 0V{rows.px:.1f}", f"side {rows.kind}"),), self.x, self.y)
        yield Part("columns-side", (PathMark(f"M0 0H{columns.px:.1f}", f"side {columns.kind}"),), self.x, self.y)

    def _swung(self, how: str) -> Part:
        """The left operand's inner side upright in the corner, beside the right operand's, from the corner upwards."""
        columns = self.axes[1]
        kind = columns.kind if how == "equal" else "mismatch"
        marks = (
            PathMark(f"M{-columns.px:.1f} 0A{columns.px:.1f} {columns.px:.1f} 0 0 1 0 {-columns.px:.1f}", "thin"),
            PathMark(f"M0 0V{-columns.px:.1f}", f"side {kind}"),
        )
        return Part("swung", marks, self.x - CORNER_GAP_PX / 2, self.y - CORNER_GAP_PX, data={"how": how})

    def _equal_label(self) -> Part:
        """That both inner sides are equal: 128 = 128."""
        sides = " = ".join(format_number(axis.length) for axis in self.axes[1:3])
        x, y = self.x - CORNER_GAP_PX - 10, self.y - CORNER_GAP_PX - self.axes[2].px / 2
        return Part("verdict", (TextMark(0, 0, sides, "size right", "end"),), x, y)

    def _overhang(self) -> Part:
        """A bracket along what one inner side has too much, with the number."""
        left, right = self.axes[1], self.axes[2]
        over = abs(left.px - right.px)
        text = format_number(abs(left.length - right.length))
        marks = (
            PathMark(f"M4 0H0V{-over:.1f}H4", "side bracket mismatch"),
            TextMark(-8, -over / 2 - 2, text, "size mismatch", "end"),
            TextMark(-8, -over / 2 + 14, _("left over"), "axis mismatch", "end"),
        )
        y = self.y - CORNER_GAP_PX - min(left.px, right.px)
        return Part("verdict", marks, self.x - CORNER_GAP_PX / 2 - 10, y)

    def _body(self, tensor: str, columns: DrawnAxis, rows: DrawnAxis, *, rows_named: bool) -> Iterator[DrawnMark]:
        """The area of a matrix: hatched if it is a parameter, with lines between the cells of its named side."""
        yield RectangleMark(0, 0, columns.px, rows.px, "body")
        if self.shapes.table[tensor].parameter:
            yield RectangleMark(0, 0, columns.px, rows.px, "over")
        lines = [f"M0 {end:.1f}H{columns.px:.1f}" for end in rows.cell_ends] if rows_named else []
        lines += [] if rows_named else [f"M{end:.1f} 0V{rows.px:.1f}" for end in columns.cell_ends]
        yield PathMark("".join(lines) or "M0 0", "grid")
        letter = self.letters["right"] if tensor == self.product.right else self.shapes.letter(tensor)
        yield TextMark(columns.px / 2, rows.px / 2, letter, "letter", "middle", is_symbol=True)

    def _css(self, tensor: str, css: str = "") -> str:
        return f"{self.shapes.table[tensor].role} {css}".strip()
