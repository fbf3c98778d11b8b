"""The words of a figure: the label, name and colour of an edge, the alt text, the captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from app.algebra.expression import ONE, Expression
from app.algebra.number_text import format_number
from app.figures.parts import Box, EdgeKind, MismatchCaption
from app.figures.shapes import (
    PartMismatch,
    TypedShapes,
    hidden_rows,
    is_causal,
    shared_limits,
    some_layers_hide_more,
)
from app.shapes.consistency import DimensionMismatch, typed_source_of
from app.shapes.operation import Repeat, Softmax
from app.shapes.table import Blank
from app.sheets.prose import write_formula
from app.topics.topic import FigurePlan

_KINDS: dict[str, EdgeKind] = {
    "N": "tokens",
    "M": "tokens",
    "W": "tokens",
    "m": "tokens",
    "N_enc": "tokens",
    "C": "tokens",
    "n_side": "tokens",
    "d": "model",
}


def axis_name(shapes: TypedShapes, blank: Blank) -> str:
    """What a typed length counts: "tokens", "embedding" …; "" if it equals none of the sheet's sizes."""
    expression = shapes.expression(blank) if blank.tensor in shapes.variant.worksheet.rows else None
    return size_name(shapes, expression) if expression else ""


def size_name(shapes: TypedShapes, expression: Expression) -> str:
    """What a size counts in this topic: "tokens", or the name of several heads' width with their number."""
    name = shapes.variant.wording.axis_name(shapes.variant.worksheet.topic, str(expression))
    heads = [
        shapes.written(shapes.variant.sizes[symbol], Expression.symbol(symbol))
        for symbol in ("H", "G")
        if symbol in expression.symbols
    ]
    return name.format(heads=heads[0] if heads else "")


def edge_kind(shapes: TypedShapes, blank: Blank) -> EdgeKind:
    """The colour of a side, which says what its length counts, even if it doesn't fit; "unknown" without a length."""
    if blank not in shapes.lengths:
        return "unknown"
    expression = shapes.expression(blank)
    return "other" if expression == ONE and shapes.repeats_sides else _kind(expression)


def _kind(expression: Expression | None) -> EdgeKind:
    symbols = expression.symbols if expression else frozenset()
    if {"N", "E"} <= symbols:  # one expert's tokens
        return "tokens"
    if {"d_h", "d_v"} & symbols:
        return "head"
    kinds = {_KINDS.get(symbol, "other") for symbol in symbols} or {"tokens" if expression else "other"}
    return kinds.pop() if len(kinds) == 1 else "other"


def head_label(shapes: TypedShapes, tensor: str) -> tuple[str, EdgeKind, str]:
    """Label, colour and name of one head's side: the typed width of all heads divided by their number."""
    width = shapes.head_width(tensor)
    if width is None:
        return ("?", "unknown", "")
    typed = shapes.variant.sizes
    head_sizes = map(Expression.symbol, ("d_h", "d_v") if shapes.names_sizes else ())
    size = next((each for each in head_sizes if each.size(typed) == width), None)
    if width.denominator != 1 or (size is None and shapes.meanings):
        return (f"{shapes.label(Blank(tensor, 'columns'))}/{shapes.heads_label(tensor)}", _kind(size), "")
    return (shapes.written(int(width), size), _kind(size), size_name(shapes, size) if size else "")


def _title(shapes: TypedShapes, plan: FigurePlan) -> str:
    equations = "; ".join(_equation(shapes, key) for key in plan.results if shapes.table[key].made_by)
    words = shapes.variant.figure_wording(plan.key).title
    return f"{words}: {equations}" if equations else words


def _equation(shapes: TypedShapes, key: str) -> str:
    if key in shapes.variant.table.by_key:
        return f"{shapes.letter(key)} = {write_formula(shapes.variant, key)}"
    made_by = shapes.table[key].made_by
    factors = [shapes.letter(operand) for operand in made_by.operands] if made_by else []
    return f"{shapes.letter(key)} = {' · '.join(factors)}"


def alt_text(shapes: TypedShapes, plan: FigurePlan, boxes: Sequence[Box]) -> str:
    """The figure in words, for screen readers: its title, and each matrix with its lengths.

    Example: 'Scores: S = Q · Kᵀ. Q 100 × 128, K 100 × ?, S 100 × 100.' A matrix that is drawn twice is named once. A
    length that is not known is "?". Shapes are in brackets, '(8, 100, 64)', if the table has tensors with more than two
    sides.
    """
    sign, brackets = (", ", "({})") if shapes.table.has_more_sides else (" × ", "{}")
    sizes = {box.tensor: sign.join(map(shapes.label, shapes.table[box.tensor].sides)) for box in boxes}
    matrices = (f"{shapes.letter(tensor)} {brackets.format(size)}" for tensor, size in sizes.items())
    return f"{_title(shapes, plan)}. {', '.join(matrices)}."


def captions(shapes: TypedShapes, plan: FigurePlan, boxes: Sequence[Box]) -> Iterator[str]:
    """Yield the sentences below a figure: what it shows, repeated decks, the mask, shared keys."""
    variant, wording = shapes.variant, shapes.variant.wording
    yield variant.figure_wording(plan.key).caption
    if any(isinstance(shapes.table[key].made_by, Repeat) for key in plan.results):
        yield wording.say("captions", "deck-repeated")
    if rows := max((hidden_rows(shapes, box.tensor) for box in boxes), default=0):
        yield from (wording.say("captions", key) for key in mask_captions(shapes, rows))
    if (product := shapes.product_by_head(plan)) and all(map(shapes.heads, product.operands)):
        query_heads, key_heads = map(shapes.heads, product.operands)
        if query_heads == key_heads:
            yield wording.say("captions", "own-keys")
        elif not variant.worksheet.in_letters:
            form = "shared-keys" if key_heads > 1 else "shared-by-all"
            yield wording.say("captions", form, query_heads=query_heads // key_heads)


def mask_captions(shapes: TypedShapes, rows: int) -> Iterator[str]:
    """Yield the keys of the sentences about which weights of `rows` tokens are hidden."""
    if is_causal(shapes):
        yield "mask"
    reach, chunk = shared_limits(shapes)
    if min(reach or rows, chunk or rows) < rows:
        yield ("window" if is_causal(shapes) else "window-both-ways") if reach else "chunk"
    elif some_layers_hide_more(shapes, rows):
        yield "some-layers"


def mismatch_captions(shapes: TypedShapes, plan: FigurePlan) -> Iterator[MismatchCaption]:
    """Yield a sentence, with its boxes, for each mismatch in a figure; only typed lengths are mentioned."""
    letters = shapes.variant.typeset_letters
    for mismatch in shapes.mismatches_in(plan.results):
        sides = (mismatch.left, mismatch.right, *mismatch.parts)
        yield MismatchCaption(_mismatch_caption(shapes, mismatch), _about(shapes, mismatch.at, sides), letters)
    for part in shapes.part_mismatches:
        if part.result in plan.results:
            sides = tuple(blank for blank, _ in part.sides)
            yield MismatchCaption(_part_caption(shapes, part), _about(shapes, part.result, sides), letters)


def _about(shapes: TypedShapes, result: str, sides: Iterable[Blank]) -> tuple[str, ...]:
    asked = frozenset(shapes.variant.worksheet.rows)
    typed = {blank: length for blank, length in shapes.lengths.items() if blank.tensor in asked}
    source_of = typed_source_of(shapes.table, typed, asked)
    boxes = (str(source_of.get(side, side)) for side in sides)
    return tuple(dict.fromkeys((*boxes, result)))


def _mismatch_caption(shapes: TypedShapes, mismatch: DimensionMismatch) -> str:
    if mismatch.parts:
        return _merged_caption(shapes, mismatch)
    words = dict[str, str]()
    for name, blank in (("first", mismatch.left), ("second", mismatch.right)):
        words[name] = shapes.letter(blank.tensor)
        words[f"{name}_length"] = shapes.label(blank)
        words[f"{name}_axis"] = _axis_word(shapes, blank)
    same = shapes.variant.axis(mismatch.left) == shapes.variant.axis(mismatch.right)
    key = "added" if mismatch.added else "same-field" if same else "other-field"
    if same and isinstance(shapes.table[mismatch.at].made_by, Softmax):
        key = "softmax"
    if shapes.variant.has_dimensions:
        key = f"dimensions{'-added' if mismatch.added else '-broadcast' if mismatch.broadcast else ''}"
    say = shapes.variant.wording.say
    return say("drawing", key, equation="" if mismatch.added else _equation(shapes, mismatch.at), **words)


def _axis_word(shapes: TypedShapes, blank: Blank) -> str:
    one = shapes.variant.wording.axes[shapes.variant.column_of(blank)].one
    return one if one and shapes.label(blank) == "1" else shapes.variant.axis(blank)


def _merged_caption(shapes: TypedShapes, mismatch: DimensionMismatch) -> str:
    whole, part = mismatch.left, mismatch.right
    product = " · ".join(map(shapes.label, mismatch.parts))
    if not shapes.variant.worksheet.in_letters:
        product += f" = {format_number(prod(shapes.lengths[part] for part in mismatch.parts))}"
    return shapes.variant.wording.say(
        "drawing",
        "merged",
        equation=_equation(shapes, mismatch.at),
        product=product,
        first=shapes.letter(whole.tensor),
        first_length=shapes.label(whole),
        first_axis=shapes.variant.axis(whole),
        second=shapes.letter(part.tensor),
    )


def _part_caption(shapes: TypedShapes, mismatch: PartMismatch) -> str:
    blanks = [blank for blank, _ in mismatch.sides]
    letters, lengths = [shapes.letter(b.tensor) for b in blanks], [shapes.label(b) for b in blanks]
    widths = [_head_width(shapes, blank) for blank in blanks] if mismatch.kind != "joined" else []
    return shapes.variant.wording.say(
        "drawing",
        mismatch.kind,
        equation=_equation(shapes, mismatch.result),
        axis=shapes.variant.axis(blanks[0]),
        letters=letters,
        lengths=lengths,
        head_widths=widths,
        heads=shapes.heads_label(blanks[0].tensor) if widths else "",
    )


def _head_width(shapes: TypedShapes, blank: Blank) -> str:
    quotient = f"{shapes.label(blank)}/{shapes.heads_label(blank.tensor)}"
    label = head_label(shapes, blank.tensor)[0]
    return quotient + (f" = {label}" if label != quotient else "")
