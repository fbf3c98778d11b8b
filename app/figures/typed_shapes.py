"""The lengths that one drawing of a sheet knows: what was typed, what follows from it, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from app.shapes.consistency import DimensionMismatch, Values, infer_unasked_lengths, mismatches
from app.shapes.table import MATRIX_FIELDS, Blank
from app.sheets.variant import Variant


@dataclass(frozen=True)
class TypedShapes:
    """A sheet with the lengths known on it, in the table's orientation (tokens as rows). The key is never looked at.

    lengths: what was typed, and for matrices the sheet does not ask for (W_Q) what the typed lengths make them.
    mismatches: the sides that should be equal and are not, in the order of computation.
    """

    variant: Variant
    lengths: Values
    mismatches: tuple[DimensionMismatch, ...]

    @classmethod
    def of(cls, variant: Variant, typed: Values) -> TypedShapes:
        """The lengths typed into a sheet's boxes, those that follow for rows it does not ask for, and the mismatches.

        `typed` is keyed by the sheet's own boxes, the result by the table's: they differ where tokens are columns.
        """
        asked = frozenset(variant.worksheet.rows)
        lengths = {variant.in_table_orientation(blank): value for blank, value in typed.items()}
        lengths |= infer_unasked_lengths(variant.table, lengths, asked)
        return cls(variant, lengths, tuple(mismatches(variant.table, lengths)))

    def is_complete(self, tensor: str) -> bool:
        """Whether both rows and columns of a matrix are known."""
        return all(Blank(tensor, field) in self.lengths for field in MATRIX_FIELDS)

    def letter(self, tensor: str) -> str:
        """The letter of a matrix in this sheet's notation."""
        return self.variant.notation.letter(tensor, self.variant.table[tensor].letter)

    def mismatches_in(self, results: tuple[str, ...]) -> list[DimensionMismatch]:
        """The mismatches in the equations that make these matrices."""
        return [mismatch for mismatch in self.mismatches if mismatch.result in results]
