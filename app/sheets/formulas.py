"""Formulas of the tables in the letters of one sheet: '{input} · {W_Q}' is "X · W_Q" on one and "E · W'_Q" on another.

Braces name a tensor or count of the table, a size, or a phrase of the wording's section "formulas", which may itself
name tensors. On a sheet whose tokens are columns every matrix is transposed, so factors change places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.shapes.table import Count, Joint, OneOf
from app.sheets.variant import Variant

_NAME = re.compile(r"\{([\w-]+)\}")
_SUM_OF_SIZES = re.compile(r"\(\{(\w+)\} \+ \{(\w+)\}\)")


class FormulaPiece(NamedTuple):
    """A part of a formula as text: a symbol, which is set as mathematics, or the text between symbols."""

    text: str
    is_symbol: bool


def formula_pieces(variant: Variant, key: str) -> tuple[FormulaPiece, ...]:
    """The formula of a tensor or count in the sheet's notation, cut into symbols and text.

    Raises KeyError for an unknown key.

    Example: the scores of a head in the classic notation are "Q", " · ", "K", "ᵀ".
    """
    entry = variant.table.askable.get(key) or variant.table[key]
    if isinstance(entry, OneOf | Joint):
        return ()
    if isinstance(entry, Count):
        return tuple(_pieces(variant, _with_alike_sizes_added(variant, entry.formula)))
    return tuple(_pieces(variant, variant.table.formula(key)))


def write_formula(variant: Variant, key: str) -> str:
    """The pieces of `formula_pieces` as one text, "Q · Kᵀ"; cached, since each drawing of a sheet repeats it."""
    if key not in variant.written_formulas:
        variant.written_formulas[key] = "".join(piece.text for piece in formula_pieces(variant, key))
    return variant.written_formulas[key]


def _with_alike_sizes_added(variant: Variant, formula: str) -> str:
    def added(match: re.Match[str]) -> str:
        first, second = (variant.notation.symbol(name) for name in match.groups())
        return f"2 · {{{match[1]}}}" if first == second else match[0]

    return _SUM_OF_SIZES.sub(added, formula)


def _pieces(variant: Variant, formula: str) -> Iterator[FormulaPiece]:
    phrases = {**variant.wording.sheets["formulas"], "norm": variant.architecture.norm}

    def phrase(match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name in variant.letters or name in variant.sizes else str(phrases.get(name, match[0]))

    for at, text in enumerate(_NAME.split(_NAME.sub(phrase, formula))):
        if at % 2:
            yield _named(variant, text)
        elif text:
            yield FormulaPiece(text, is_symbol=False)


def _named(variant: Variant, name: str) -> FormulaPiece:
    if letter := variant.letters.get(name):
        return FormulaPiece(letter, is_symbol=True)
    if name in variant.table.askable:
        row = variant.row_name(name)
        stays = row[1:2].isupper()  # "LM head"
        return FormulaPiece(row if stays else row[:1].lower() + row[1:], is_symbol=False)
    return FormulaPiece(variant.notation.symbol(name), is_symbol=True)
