"""The key of a variant: every box filled in, how its number comes about, and what likely wrong answers show."""

from __future__ import annotations

from typing import Any

from app.shapes.table import Blank, Count
from app.sheets.worksheet import Row, Variant, format_number

from .mathematics import Pieces, working

MOST_WRONG = 7  # shapes of one row, the most telling first


def key_rows(variant: Variant) -> list[dict[str, Any]]:
    """One entry a row of the sheet: the answers by side, and the wrong shapes with the misconceptions that write
    them.
    """
    return [
        {"blanks": {blank.field: _answer(variant, blank) for blank in row.blanks}, "wrong": _wrong(variant, row)}
        for row in variant.rows
    ]


def given_sizes(variant: Variant) -> list[dict[str, Any]]:
    """The sizes that the answers are made of, in the sheet's letters."""
    used = {symbol for blank in variant.blanks for symbol in variant.dim(blank).symbols} | {"d", "H"}
    pieces = Pieces(variant.worksheet.notation)
    written = {variant.notation.symbols.get(s, s): format_number(n) for s, n in variant.sizes.items() if s in used}
    return [{"symbol": pieces.symbols(name), "number": number} for name, number in written.items()]


def answer_text(variant: Variant, blank: Blank) -> str:
    """What belongs into a box: a number, or on a sheet in letters the letters."""
    if variant.worksheet.answers == "letters":
        return variant.notation.write(variant.dim(blank))
    return format_number(variant.key[blank])


def _answer(variant: Variant, blank: Blank) -> dict[str, Any]:
    asked, side = variant.table.asked[blank.tensor], variant.dim(blank)
    words = asked.formula if isinstance(asked, Count) else ""
    if variant.worksheet.answers == "letters":
        letters = Pieces(variant.worksheet.notation).symbols(variant.notation.write(side))
        return {"number": letters, "working": [f"= {format_number(variant.key[blank])}"]}
    return {"number": [format_number(variant.key[blank])], "working": working(variant, side, words)}


def _wrong(variant: Variant, row: Row) -> list[dict[str, str]]:
    """Each wrong shape of a row once, with every misconception that makes a student write it."""
    misconceptions: dict[tuple[int, ...], list[str]] = {}
    upright = [variant.in_table_orientation(blank) for blank in row.blanks]
    truth = [variant.key[blank] for blank in row.blanks]
    for expected in variant.with_tokens_as_rows.expectations:
        shape = tuple(expected.changed.get(up, true) for up, true in zip(upright, truth, strict=True))
        if shape != tuple(truth) and expected.misconception not in misconceptions.setdefault(shape, []):
            misconceptions[shape].append(expected.misconception)
    shapes = list(misconceptions.items())[:MOST_WRONG]
    names = variant.wording.sections["misconception-names"]
    return [
        {"shape": _shape(shape), "misconception": "; ".join(names[key] for key in found)} for shape, found in shapes
    ]


def _shape(numbers: tuple[int, ...]) -> str:
    joints = ("", " × ", " = ")
    return "".join(joint + format_number(number) for joint, number in zip(joints, numbers, strict=False))
