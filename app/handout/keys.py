"""The key of a variant: every box filled in, how its number comes about, and what likely wrong answers show."""

from __future__ import annotations

from typing import Any

from app.shapes.tensors import Amount, Place
from app.sheets.worksheet import Row, Variant, plain

from .mathematics import Pieces, working

MOST_WRONG = 7  # shapes of one row, the most telling first


def key_rows(variant: Variant) -> list[dict[str, Any]]:
    """One entry a row of the sheet: the answers by side, and the wrong shapes with the beliefs that write them."""
    return [
        {"places": {place.axis: _answer(variant, place) for place in row.places}, "wrong": _wrong(variant, row)}
        for row in variant.rows
    ]


def given_sizes(variant: Variant) -> list[dict[str, Any]]:
    """The sizes that the answers are made of, in the sheet's letters."""
    used = {symbol for place in variant.blanks for symbol in variant.side(place).symbols} | {"d", "H"}
    pieces = Pieces(variant.worksheet.notation)
    written = {variant.notation.symbols.get(s, s): plain(n) for s, n in variant.sizes.items() if s in used}
    return [{"symbol": pieces.symbols(name), "number": number} for name, number in written.items()]


def answer_text(variant: Variant, place: Place) -> str:
    """What belongs into a box: a number, or on a sheet in letters the letters."""
    if variant.worksheet.answers == "letters":
        return variant.notation.write(variant.side(place))
    return plain(variant.key[place])


def _answer(variant: Variant, place: Place) -> dict[str, Any]:
    asked, side = variant.topic.asked[place.tensor], variant.side(place)
    words = asked.text if isinstance(asked, Amount) else ""
    if variant.worksheet.answers == "letters":
        letters = Pieces(variant.worksheet.notation).symbols(variant.notation.write(side))
        return {"number": letters, "working": [f"= {plain(variant.key[place])}"]}
    return {"number": [plain(variant.key[place])], "working": working(variant, side, words)}


def _wrong(variant: Variant, row: Row) -> list[dict[str, str]]:
    """Each wrong shape of a row once, with every belief that makes a student write it."""
    beliefs: dict[tuple[int, ...], list[str]] = {}
    upright = [variant.upright(place) for place in row.places]
    truth = [variant.key[place] for place in row.places]
    for expected in variant.standing.expectations:
        shape = tuple(expected.changed.get(up, true) for up, true in zip(upright, truth, strict=True))
        if shape != tuple(truth) and expected.belief not in beliefs.setdefault(shape, []):
            beliefs[shape].append(expected.belief)
    shapes = list(beliefs.items())[:MOST_WRONG]
    names = variant.wording.sections["belief-names"]
    return [{"shape": _shape(shape), "belief": "; ".join(names[key] for key in found)} for shape, found in shapes]


def _shape(numbers: tuple[int, ...]) -> str:
    joints = ("", " × ", " = ")
    return "".join(joint + plain(number) for joint, number in zip(joints, numbers, strict=False))
