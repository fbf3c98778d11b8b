"""The answer key of a variant: every box filled in, its working, and what likely mistakes mean."""

from __future__ import annotations

from typing import Any

from app.algebra.number_text import format_number
from app.handout.symbol_pieces import Piece, split_expression, split_sentence, write_working
from app.misconceptions.predictions import expectations
from app.shapes.table import Blank, Count
from app.sheets import prose
from app.sheets.code_text import answer_in_words, option_label
from app.sheets.prose import formula_pieces, step_of
from app.sheets.reasons import row_reason
from app.sheets.variant import Row, Variant

MAX_WRONG_SHAPES = 6  # per row, most telling first, so that a key fits on a page


def key_rows(variant: Variant) -> list[dict[str, Any]]:
    """One entry per row of the sheet, with its filled-in boxes and its likely mistakes."""
    return [
        {"blanks": _filled_boxes(variant, row), "reason": _reason(variant, row), "wrong": _wrong_shapes(variant, row)}
        for row in variant.rows
    ]


def used_sizes(variant: Variant) -> list[dict[str, Any]]:
    """The symbol and number of d, H and each size in an answer's expression, in the order of the sizes."""
    used = {symbol for blank in variant.blanks for symbol in variant.expression(blank).symbols} | {"d", "H"}
    written = {variant.notation.symbol(s): format_number(n) for s, n in variant.sizes.items() if s in used}
    return [{"symbol": split_expression(symbol), "number": number} for symbol, number in written.items()]


def _filled_boxes(variant: Variant, row: Row) -> dict[str, Any]:
    if row.is_question:
        return {"count": {"number": [answer_in_words(variant, row.key)], "working": []}}
    return {variant.column_of(blank): _filled_box(variant, blank) for blank in row.blanks}


def _filled_box(variant: Variant, blank: Blank) -> dict[str, Any]:
    entry, dim = variant.table.askable[blank.tensor], variant.expression(blank)
    if variant.worksheet.in_letters:
        symbols = split_expression(variant.notation.write(dim))
        return {"number": symbols, "working": [f"= {format_number(variant.answer(blank))}"]}
    formula = formula_pieces(variant, blank.tensor) if isinstance(entry, Count) else ()
    return {"number": [format_number(variant.answer(blank))], "working": write_working(variant, dim, formula)}


def _reason(variant: Variant, row: Row) -> list[Piece]:
    letters = frozenset({*variant.letters.values(), *variant.symbols.written}) - {"A", "a"}  # articles
    step = step_of(variant, row.key)
    sentences = (step.why, step.reason) if step else row_reason(variant, row.key)
    return split_sentence(" ".join(sentences), letters)


def _wrong_shapes(variant: Variant, row: Row) -> list[dict[str, str]]:
    misconceptions: dict[tuple[int, ...], list[str]] = {}
    truth = [variant.answer(blank) for blank in row.blanks]
    for expected in expectations(variant.problem):
        shape = tuple(expected.wrong_answers.get(blank, size) for blank, size in zip(row.blanks, truth, strict=True))
        if shape != tuple(truth) and expected.misconception not in misconceptions.setdefault(shape, []):
            misconceptions[shape].append(expected.misconception)
    return [
        {
            "shape": _shape_text(variant, row, shape),
            "misconception": "; ".join(prose.misconception_name(variant, key) for key in keys),
        }
        for shape, keys in list(misconceptions.items())[:MAX_WRONG_SHAPES]
    ]


def _shape_text(variant: Variant, row: Row, numbers: tuple[int, ...]) -> str:
    if row.fields == ("choice",):
        return option_label(variant, row.key, numbers[0])
    sides = [number for number, field in zip(numbers, row.fields, strict=True) if field != "count"]
    counted = [format_number(number) for number in numbers[len(sides) :]]
    return " = ".join(filter(None, [" × ".join(map(format_number, sides)), *counted]))
