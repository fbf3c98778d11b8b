"""The words of a figure: the label, name and colour of an edge, the alt text, the captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from app.algebra.expression import ONE, Expression
from app.algebra.number_text import format_number
from app.figures.figure import Box, EdgeKind, MismatchCaption
from app.figures.mask import hidden_rows, is_causal, shared_limits, some_layers_hide_more
from app.figures.typed_shapes import PartMismatch, TypedShapes
from app.shapes.consistency import DimensionMismatch, typed_source_of
from app.shapes.operation import Softmax
from app.shapes.table import Blank
from app.sheets.formulas import write_formula
from app.topics.registry import FIGURE_PLANS
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
    """What a typed length counts: "tokens", "embedding" …; "" without a length, and for one that is no size here.

    It follows the number that was typed, not the box it was typed into, and so gives no answer away. "" for the sides
    of matrices that the sheet doesn't ask for.
    """
    expression = shapes.expression(blank) if blank.tensor in shapes.variant.worksheet.rows else None
    return size_name(shapes, expression) if expression else ""


def size_name(shapes: TypedShapes, expression: Expression) -> str:
    """What a size counts in this topic: "tokens", or for the width of several heads a name with their number.

    The number is the model's H if the size has that symbol, else its G; on a sheet in letters, the symbol itself. "" if
    the wording has no name for the size.
    """
    name = shapes.variant.wording.axis_name(shapes.variant.worksheet.topic, str(expression))
    heads = [
        shapes.written(shapes.variant.sizes[symbol], Expression.symbol(symbol))
        for symbol in ("H", "G")
        if symbol in expression.symbols
    ]
    return name.format(heads=heads[0] if heads else "")


def token_names(shapes: TypedShapes) -> Iterator[str]:
    """Yield what numbers of tokens are called on this sheet: N, M and W, in this order, those that it has."""
    yield from (size_name(shapes, Expression.symbol(symbol)) for symbol in "NMW" if symbol in shapes.variant.sizes)


def edge_kind(shapes: TypedShapes, blank: Blank) -> EdgeKind:
    """The colour of a side, by what its length counts: "unknown" without a length, whether or not the length fits.

    It follows the number that was typed, not the box it was typed into: "tokens", "model" (d), "head" (the width of one
    head or several), or "other", also if the drawing names no sizes. So 128 has the colour of the head dimension in
    every box; a number that is several sizes at once counts as the right one of this side, if that is among them. A
    side of 1 is one token, or "other" where sides of 1 are repeated.
    """
    if blank not in shapes.lengths:
        return "unknown"
    expression = shapes.expression(blank)
    return "other" if expression == ONE and shapes.repeats_sides else _kind(expression)


def _kind(expression: Expression | None) -> EdgeKind:
    """What a length counts, for its colour; "other" for None.

    Tried in order: "tokens" if it has both N and E, which are the tokens of an expert; "head" if it has d_h or d_v;
    "tokens" if it has no symbol, such as 1; what all its symbols count by _KINDS, if that is one kind; else "other".
    """
    symbols = expression.symbols if expression else frozenset()
    if {"N", "E"} <= symbols:  # the tokens of one expert
        return "tokens"
    if {"d_h", "d_v"} & symbols:
        return "head"
    kinds = {_KINDS.get(symbol, "other") for symbol in symbols} or {"tokens" if expression else "other"}
    return kinds.pop() if len(kinds) == 1 else "other"


def head_label(shapes: TypedShapes, tensor: str) -> tuple[str, EdgeKind, str]:
    """The label, colour and name of the side of one head: the typed width of all heads divided by their number.

    It is ("64", "head", its name) if the drawing names sizes and the width of a head is d_h or d_v, in symbols on a
    sheet in letters; ("?", "unknown", "") without a width; ("100/32", "other", "") for a width that cannot be split
    evenly and, on a sheet in letters, for any other width. Else it is the number with the colour "other" and no name.
    """
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
    """A figure's title and the equations of its results, if any is not given: 'Weights: A = softmax(S/√d_h)'."""
    equations = "; ".join(_equation(shapes, key) for key in plan.results if shapes.table[key].made_by)
    words = shapes.variant.figure_wording(plan.key).title
    return f"{words}: {equations}" if equations else words


def _equation(shapes: TypedShapes, key: str) -> str:
    """How a matrix is computed, in the letters of the sheet: 'S = Q · Kᵀ'.

    A matrix that the drawn table has and the sheet's does not is the product of its operands, with nothing transposed,
    in reverse order if tokens are columns.
    """
    if key in shapes.variant.table.by_key:
        return f"{shapes.letter(key)} = {write_formula(shapes.variant, key)}"
    made_by = shapes.table[key].made_by
    factors = [shapes.letter(operand) for operand in made_by.operands] if made_by else []
    in_order = factors if shapes.variant.worksheet.tokens_are == "rows" else factors[::-1]
    return f"{shapes.letter(key)} = {' · '.join(in_order)}"


def alt_text(shapes: TypedShapes, plan: FigurePlan, boxes: Sequence[Box]) -> str:
    """The figure in words, for screen readers: its title, and each matrix with its lengths.

    Example: 'Scores: S = Q · Kᵀ. Q 100 × 128, K 100 × ?, S 100 × 100.' A matrix that is drawn twice is named once. On a
    sheet whose tokens are columns, the lengths are in reverse order. A length that is not known is "?". Shapes are in
    brackets, '(8, 100, 64)', if the table has tensors with more than two sides.
    """
    order = -1 if shapes.variant.worksheet.tokens_are == "columns" else 1
    sign, brackets = (", ", "({})") if shapes.table.has_more_sides else (" × ", "{}")
    sizes = {box.tensor: sign.join(map(shapes.label, shapes.table[box.tensor].sides[::order])) for box in boxes}
    matrices = (f"{shapes.letter(tensor)} {brackets.format(size)}" for tensor, size in sizes.items())
    return f"{_title(shapes, plan)}. {', '.join(matrices)}."


def captions(shapes: TypedShapes, plan: FigurePlan, boxes: Sequence[Box]) -> Iterator[str]:
    """Yield the sentences below a figure: what it shows, that a deck is repeated, what its mask hides, who shares keys.

    Only the first is always there. What the mask hides is said once the weights, or the mask, are typed as a square.
    Only a figure of the scores of one head says who shares keys: each query head has its own, this many query heads
    share one key head, or all share one. The latter two are left out on a sheet in letters.
    """
    variant, wording = shapes.variant, shapes.variant.wording
    yield variant.figure_wording(plan.key).caption
    if any(key.startswith("repeated") for key in plan.results):
        yield wording.say("captions", "deck-repeated")
    if rows := max((hidden_rows(shapes, box.tensor) for box in boxes), default=0):
        yield from (wording.say("captions", key) for key in mask_captions(shapes, rows))
    if plan.layout == "head-scores":
        query_heads, key_heads = shapes.heads("queries"), shapes.heads("keys")
        if query_heads == key_heads:
            yield wording.say("captions", "own-keys")
        elif variant.worksheet.answers != "letters":
            form = "shared-keys" if key_heads > 1 else "shared-by-all"
            yield wording.say("captions", form, query_heads=query_heads // key_heads)


def mask_captions(shapes: TypedShapes, rows: int) -> Iterator[str]:
    """Yield the keys of the sentences on which of the weights of `rows` tokens are hidden.

    First "mask" for a causal mask. Then, if all layers have the same limit and it hides something, "window" (causal),
    "window-both-ways" (not causal) or, for a chunk without a window, "chunk"; or "some-layers" if layers differ and one
    of their limits hides something. Only "mask" can come if the scores are not of a text with itself.
    """
    if is_causal(shapes):
        yield "mask"
    reach, chunk = shared_limits(shapes)
    if min(reach or rows, chunk or rows) < rows:
        yield ("window" if is_causal(shapes) else "window-both-ways") if reach else "chunk"
    elif some_layers_hide_more(shapes, rows):
        yield "some-layers"


def mismatch_captions(shapes: TypedShapes, plan: FigurePlan) -> Iterator[MismatchCaption]:
    """Yield a sentence for each thing in a figure that does not fit, with the typed lengths alone, and its boxes.

    First come the sides that should be equal and are not in the equations of the figure's results. If the figure draws
    no products, these are left out for a result that another figure of this table draws as a product, except where
    sides are added. Then come heads that cannot be multiplied and joined matrices that do not add up. Nothing if
    `shapes` compare no lengths.
    """
    letters = shapes.variant.typeset_letters
    others = [other for other in FIGURE_PLANS[shapes.table.key] if other is not plan and other.draws_products]
    drawn_elsewhere = {result for other in others for result in other.results if not plan.draws_products}
    for mismatch in shapes.mismatches_in(plan.results):
        if mismatch.added or mismatch.at not in drawn_elsewhere:
            sides = (mismatch.left, mismatch.right, *mismatch.parts)
            yield MismatchCaption(_mismatch_caption(shapes, mismatch), _about(shapes, mismatch.at, sides), letters)
    for part in shapes.part_mismatches:
        if part.result in plan.results:
            sides = tuple(blank for blank, _ in part.sides)
            yield MismatchCaption(_part_caption(shapes, part), _about(shapes, part.result, sides), letters)


def _about(shapes: TypedShapes, result: str, sides: Iterable[Blank]) -> tuple[str, ...]:
    """The boxes that the lengths of these sides come from, by their names on the sheet, then `result`; each once.

    A side whose length comes from no box has its own name.
    """
    asked = frozenset(shapes.variant.worksheet.rows)
    typed = {blank: length for blank, length in shapes.lengths.items() if blank.tensor in asked}
    source_of = typed_source_of(shapes.table, typed, asked)
    boxes = (shapes.variant.box(source_of.get(side, side)) for side in sides)
    return tuple(dict.fromkeys((*boxes, result)))


def _mismatch_caption(shapes: TypedShapes, mismatch: DimensionMismatch) -> str:
    """Why two sides must be equal: 'Q has 128 columns but K has 4096: for S = Q · Kᵀ they must match.'."""
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
    """The sheet's word after a length: "1 row", "3 rows"."""
    one = shapes.variant.wording.axes[shapes.variant.column_of(blank)].one
    return one if one and shapes.label(blank) == "1" else shapes.variant.axis(blank)


def _merged_caption(shapes: TypedShapes, mismatch: DimensionMismatch) -> str:
    """Why a side must be the product of others: 'In Q, dim 1 is 896, but Q_view has 14 · 60 = 840: …'.

    On a sheet in letters the product is not computed.
    """
    whole, part = mismatch.left, mismatch.right
    product = " · ".join(map(shapes.label, mismatch.parts))
    if shapes.variant.worksheet.answers != "letters":
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
    """The sentence on heads that cannot be multiplied, or on joined matrices that do not add up, by the kind.

    It can name the equation, the axis of the first side, and the letters and lengths of all sides; unless the kind is
    "joined", also the width of a head of each and the number of heads of the first.
    """
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
    """The width of one head, worked out: '2048/8 = 256'; only the quotient if it is not a whole number."""
    quotient = f"{shapes.label(blank)}/{shapes.heads_label(blank.tensor)}"
    label = head_label(shapes, blank.tensor)[0]
    return quotient + (f" = {label}" if label != quotient else "")
