"""The products of a table that can be slid together: of whole matrices, or of one head.

Of tensors with more than two sides, one slice is multiplied: the last two sides, as with PyTorch's @.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from app.algebra.expression import Expression
from app.figures.shapes import TypedShapes
from app.shapes.operation import Matmul
from app.shapes.table import MATRIX_FIELDS, Blank, TensorTable, side_fields
from app.sheets.variant import Variant
from app.translation import gettext as _

_HEADS = ("H", "G")


class UnmultipliableError(ValueError):
    """Typed lengths that don't give a single head; the message says which, and what to do."""


@dataclass(frozen=True)
class Product:
    """One product of a table: result = left · right; `transposed` names the operand read transposed, as Kᵀ, if any."""

    result: str
    left: str
    right: str
    transposed: str
    sliced: tuple[str, ...]

    @property
    def blanks(self) -> tuple[Blank, Blank, Blank, Blank]:
        """The left operand's rows and columns as multiplied, then the right one's."""
        sides = []
        for key in (self.left, self.right):
            fields = MATRIX_FIELDS[::-1] if key == self.transposed else MATRIX_FIELDS
            sides += [Blank(key, field) for field in fields]
        return (sides[0], sides[1], sides[2], sides[3])


def products_of(table: TensorTable) -> tuple[Product, ...]:
    """The products of a table in the order of computation, with the operand that is read transposed, as K in Q·Kᵀ."""
    products = list[Product]()
    for tensor in table.tensors:
        made_by = tensor.made_by
        if isinstance(made_by, Matmul) and made_by.is_plain:
            left, right = made_by.operands
            keys = (left, right, tensor.key)
            with_slices = [key for key in keys if len(table[key].shape) > len(MATRIX_FIELDS) or made_by.is_by_head]
            transposed = right if made_by.is_transposed else ""
            products.append(Product(tensor.key, left, right, transposed, tuple(with_slices)))
    return tuple(products)


def multiplied(shapes: TypedShapes, product: Product) -> TypedShapes:
    """The shapes of the multiplied matrices: the sheet's, or one slice's for sliced tensors.

    Example: of queries that are 60 × 896 in 14 heads, 60 × 64. Without slices, the very same object. With them, a copy
    whose table has only the operands, the result and the weights, without operations, and their last two sides as rows
    and columns; `compared` and `mismatches` stay those of the whole tensors. Raises UnmultipliableError if the typed
    widths can't be split into heads, or the operands have different numbers of them.
    """
    if not product.sliced:
        return shapes
    _require_equal_slices(shapes, product)
    weights = ("weights",) if "weights" in shapes.table.by_key else ()
    keys = tuple(dict.fromkeys((product.left, product.right, product.result, *weights)))
    sides = dict[Blank, tuple[Expression, Fraction | None, Expression | None]]()
    for tensor in (shapes.table[key] for key in keys):
        last = side_fields(len(tensor.shape))[-2:]
        splits = tensor.key in product.sliced and last == MATRIX_FIELDS  # heads side by side in the columns
        for field, slice_field in zip(MATRIX_FIELDS, last, strict=True):
            sides[Blank(tensor.key, field)] = _of_slice(shapes, Blank(tensor.key, slice_field), splits=splits)
    tensors = (
        replace(shapes.table[key], shape=tuple(sides[Blank(key, field)][0] for field in MATRIX_FIELDS), made_by=None)
        for key in keys
    )
    table = TensorTable(shapes.table.key, tuple(tensors))
    lengths = {blank: int(length) for blank, (_side, length, _meaning) in sides.items() if length is not None}
    meanings = {blank: meaning for blank, (_side, _length, meaning) in sides.items() if meaning is not None}
    return replace(shapes, table=table, lengths=lengths, meanings=meanings)


def has_every_side(shapes: TypedShapes, product: Product) -> bool:
    """Whether all sides of both operands (or of one slice) are known; in letters, whether they have a meaning."""
    try:
        multiplied_shapes = multiplied(shapes, product)
    except UnmultipliableError:
        return False
    known = multiplied_shapes.meanings if shapes.variant.worksheet.answers == "letters" else multiplied_shapes.lengths
    return all(blank in known for blank in product.blanks)


def products_on(variant: Variant) -> tuple[Product, ...]:
    """A sheet's products that can be shown once its boxes are right, in the order of computation."""
    shapes = TypedShapes.of(variant, variant.problem.answers, shows_mismatches=False).with_facts()
    return tuple(product for product in products_of(variant.table) if has_every_side(shapes, product))


def slices(shapes: TypedShapes, product: Product) -> tuple[str, int]:
    """What a slice of a product is ("head", "text" or "head of a text") and the number of slices; ("", 1) without
    slices.
    """
    if not product.sliced:
        return "", 1
    result, sizes = shapes.table[product.result], shapes.variant.sizes
    leading = result.shape[: -len(MATRIX_FIELDS)]
    if not leading:
        return "head", sizes["H"]
    count = prod(length.size(sizes) for length in leading)
    if len(leading) > 1:
        return "head of a text", count
    return ("text" if "B" in leading[0].symbols else "head"), count


def _of_slice(
    shapes: TypedShapes, blank: Blank, *, splits: bool
) -> tuple[Expression, Fraction | None, Expression | None]:
    side = shapes.table[blank.tensor].expression(blank.field)
    length, meaning = shapes.lengths.get(blank), shapes.meanings.get(blank)
    heads = next((symbol for symbol in _HEADS if symbol in side.symbols), "") if splits else ""
    if not heads:
        return side, None if length is None else Fraction(length), meaning
    symbol = Expression.symbol(heads)
    if length is not None and length % shapes.variant.sizes[heads]:
        sentence = _("{letter} cannot be split into {heads} heads: correct its width on your sheet first.")
        heads_written = shapes.written(shapes.variant.sizes[heads], symbol)
        raise UnmultipliableError(sentence.format(letter=shapes.letter(blank.tensor), heads=heads_written))
    of_one = None if length is None else Fraction(length, shapes.variant.sizes[heads])
    return side / symbol, of_one, meaning / symbol if meaning else None


def _require_equal_slices(shapes: TypedShapes, product: Product) -> None:
    leading = [
        [shapes.lengths.get(Blank(key, field)) for field in side_fields(len(shapes.table[key].shape))[:-2]]
        for key in (product.left, product.right)
    ]
    differ = len(leading[0]) != len(leading[1]) or any(
        1 not in pair and len({*pair}) > 1 for pair in zip(*leading, strict=False)
    )
    if all(leading) and None not in (*leading[0], *leading[1]) and differ:
        sentence = _(
            "The first dimensions of {left} and {right} differ, so their heads cannot be multiplied one by one: "
            "correct them on your sheet first."
        )
        left, right = shapes.letter(product.left), shapes.letter(product.right)
        raise UnmultipliableError(sentence.format(left=left, right=right))
