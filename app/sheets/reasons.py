"""Why the answers of a row are right, read off its tensor's operation or its count's formula.

The sentences are in the wording's section "reasons": one for each kind of operation, under its class's name, and one
under its key for each count and each special tensor. A topic may have its own under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.shapes.operation import Concat, Matmul, Operation, SelectRows, axes_in
from app.shapes.table import MATRIX_FIELDS, Blank, Count, OneOf, Tensor
from app.sheets import prose
from app.sheets.code_text import code_reason
from app.sheets.notation import Notation
from app.sheets.prose import write_formula
from app.sheets.variant import Variant

# Phrases that stay in a formula whose sizes are written as numbers: "2 · 100 · 4096 · 128, for each of 32 heads".
_KEPT_PHRASES = ("for-each-of", "heads", "matrices", "rounded-down", "rounded-up", "byte", "bytes")
_NAME = re.compile(r"\{([\w-]+)\}")
_NUMBER = re.compile(r"\d+(?:,\d{3})*")


class Reason(NamedTuple):
    """Why a row is right: `text` names no numbers but the row's; `working` has the numbers behind them, if any."""

    text: str
    working: str


def row_reason(sheet: Variant, key: str) -> Reason:
    """The reason of a row of the sheet, in its notation; in symbols on a sheet answered in symbols.

    Example: for the keys of LLaMA 7B, "100 × 128: one row for each token, and as many columns as W_K" and "(100 × 4096)
    · (4096 × 128) = 100 × 128".
    """
    if not sheet.has_topic:
        return Reason("", "")
    if sheet.problem.case:
        return _of_code(sheet, key)
    if isinstance(sheet.table.askable.get(key), OneOf):
        return Reason(_say(sheet, key), "")
    entry = sheet.table.sized(key)
    if isinstance(entry, Count):
        return Reason(_say(sheet, key), _sum(sheet, entry))
    shape = [_length(sheet, side) for side in entry.sides]
    has_own = key in sheet.topic_wording.reasons or key in sheet.wording.sheets["reasons"]
    text = _say(sheet, key) if has_own else _made(sheet, entry)
    return Reason(f"{_written(sheet, shape)}: {text}", _working(sheet, entry))


def _of_code(sheet: Variant, key: str) -> Reason:
    text, entry = code_reason(sheet, key), sheet.table.askable[key]
    if isinstance(entry, Tensor):
        text = f"{_written(sheet, [_length(sheet, side) for side in entry.sides])}: {text}"
    return Reason(text, "")


# The text


def _say(sheet: Variant, sentence: str, **words: str) -> str:
    sides = [Blank("", field) for field in MATRIX_FIELDS]
    axes = {str(side.field): sheet.axis(side) for side in sides}
    ones = dict(zip(("row", "column"), (_one(sheet, side) for side in sides), strict=True))
    words = {**sheet.letters, **axes, **ones, **words}
    of_topic = sheet.topic_wording.reasons.get(sentence)
    return of_topic.format(**words) if of_topic else sheet.wording.say("reasons", sentence, **words)


def _made(sheet: Variant, tensor: Tensor) -> str:
    operation = tensor.made_by
    if operation is None:
        if tensor.parameter:
            return _parameter(sheet, tensor)
        return _say(sheet, "given", sides=_and(sheet, [_given_side(sheet, side) for side in tensor.sides]))
    is_batched = len(tensor.shape) > len(MATRIX_FIELDS)
    sides = [] if is_batched else [_side(sheet, tensor, side) for side in tensor.sides]
    pairs = zip(tensor.sides, operation.sides, operation.operand_sides[0], strict=False)
    moved = [sheet.axis(side) for side, new, old in pairs if new != old]  # by a transpose
    words = {"sides": _and(sheet, sides), "moved": _and(sheet, moved)}
    letters = [sheet.letters[key] for key in operation.operands]
    return _say(sheet, sentence_of(operation, is_batched), first=letters[0], second=letters[-1], **words)


def _side(sheet: Variant, tensor: Tensor, side: Blank) -> str:
    source = next(group[0] for group in tensor.equal_sides.values() if side in group)
    if source == side:
        return _say(sheet, "heads-joined", axis=sheet.axis(side))
    if (thing := _thing(sheet, source)) and not sheet.has_dimensions:
        return _say(sheet, "one-for-each", one=_one(sheet, side), thing=thing)
    form = "same-side" if source.field == side.field else "other-side"
    words = {
        "axis": sheet.axis(side),
        "source": sheet.letters[source.tensor],
        "other": sheet.axis(source),
    }
    return _say(sheet, f"dimension-{form}" if sheet.has_dimensions else form, **words)


def _given_side(sheet: Variant, side: Blank) -> str:
    length = sheet.table[side.tensor].expression(side.field)
    is_tokens = str(length) in ("N", "M") or not length.symbols
    if is_tokens and (thing := _thing(sheet, side)) and not sheet.has_dimensions:
        return _say(sheet, "one-for-each", one=_one(sheet, side), thing=thing)
    size = prose.size_in_words(sheet, str(length)) or sheet.notation.write(length)
    if sheet.has_dimensions:
        return _say(sheet, "dimension-given-side", axis=sheet.axis(side), size=size)
    return _say(sheet, "given-side", length=sheet.wording.axes[sheet.column_of(side)].size, size=size)


def _parameter(sheet: Variant, tensor: Tensor) -> str:
    read, written = (_vector(sheet, length) for length in tensor.shape)
    return _say(sheet, "parameter", read=read, written=written)


def _vector(sheet: Variant, length: Expression) -> str:
    meaning = prose.size_in_words(sheet, str(length))
    if not meaning and not sheet.worksheet.in_letters:
        meaning = sheet.notation.write(length)
    return _say(sheet, "vector-with-meaning" if meaning else "vector", length=_amount(sheet, length), meaning=meaning)


def _thing(sheet: Variant, side: Blank) -> str:
    things = sheet.wording.topic_section(sheet.worksheet.topic, "row-things")
    return things.get(side.tensor, "") if side.field == "rows" else ""


# The working


def _working(sheet: Variant, tensor: Tensor) -> str:
    operation = tensor.made_by
    if isinstance(operation, Matmul):
        return _multiplied(sheet, tensor, operation)
    if tensor.parameter:
        return _equation(sheet, tensor.shape, " · ", tensor.expression("count")) if tensor.counted else ""
    if isinstance(operation, Concat):
        return _concatenated(sheet, tensor, operation)
    for merged, parts in tensor.merged_sides.items():
        return _equation(sheet, [_expression(sheet, part) for part in parts], " · ", _expression(sheet, merged))
    if operation is not None and not isinstance(operation, SelectRows):
        return ""
    sums = (f"{_in_numbers(sheet, length)} = {_amount(sheet, length)}" for length in tensor.shape)
    return next((each for each in sums if not sheet.worksheet.in_letters and re.search(r"[/+]", each)), "")


def _multiplied(sheet: Variant, tensor: Tensor, operation: Matmul) -> str:
    lengths = {axis: _expression(sheet, group[0]) for axis, group in tensor.equal_sides.items()}
    left, result = operation.operand_sides[0], operation.sides
    of_one_head = {side: _in_one_head(side, lengths[side]) for side in (*left, *result)}
    # The left operand's last two sides: the one that isn't in the result is summed over.
    rows, columns = result[-2:]
    summed = next(side for side in left[-2:] if side not in result)
    first, second, product = (
        " × ".join(_in_brackets(_amount(sheet, of_one_head[side])) for side in shape)
        for shape in ((rows, summed), (summed, columns), (rows, columns))
    )
    text = f"({first}) · ({second}) = {product}"
    if not operation.is_by_head:
        return text
    joined = [side for side in result if "(" in side]
    heads = [lengths[side] / of_one_head[side] for side in joined]
    sums = [_equation(sheet, [h, of_one_head[s]], " · ", lengths[s]) for s, h in zip(joined, heads, strict=True)]
    return "; ".join(filter(None, [_say(sheet, "in-each-head", product=text), *sums]))


def _concatenated(sheet: Variant, tensor: Tensor, operation: Concat) -> str:
    place = next(at for at, side in enumerate(operation.sides) if side not in operation.operand_sides[0])
    sides = [operand[place] for operand in operation.operand_sides]
    tensors = [sheet.table[key] for key in operation.operands]
    parts = [_in_one_head(side, each.shape[place]) for side, each in zip(sides, tensors, strict=True)]
    whole = tensor.shape[place]
    if not operation.is_by_head:
        return _equation(sheet, parts, " + ", whole)
    heads = whole / _in_one_head(operation.sides[place], whole)
    added = " + ".join(_amount(sheet, part) for part in parts)
    return f"{_amount(sheet, heads)} · ({added}) = {_amount(sheet, whole)}"


def _sum(sheet: Variant, count: Count) -> str:
    if sheet.worksheet.in_letters:
        formula, answer = write_formula(sheet, count.key), sheet.notation.write(count.total)
        return f"{formula} = {answer}" if formula not in ("", answer) else ""
    phrases = sheet.wording.sheets["formulas"]
    total = count.size("count", sheet.sizes)
    if _names(sheet, count.formula):
        numbers = {
            name: phrases[name] if name in _KEPT_PHRASES else _named(sheet, name)
            for name in _NAME.findall(count.formula)
        }
        text = _NAME.sub(lambda match: numbers[match[1]], count.formula)
    else:
        made_from = count.made_from
        parts = {part: _named(sheet, part) for part in made_from.parts} if made_from else {}
        worked_out = made_from.formula if made_from else count.total
        text = _in_numbers(sheet, worked_out, {"parts": " + ".join(parts.values()), **parts})
        if count.rounded != "never" and count.total.value(sheet.sizes) != total:
            text = f"{text}, {phrases[f'rounded-{count.rounded}']}"
    return f"{text} = {format_number(total)}" if text != format_number(total) else ""


def _names(sheet: Variant, formula: str) -> list[str]:
    names = [name for name in _NAME.findall(formula) if name not in _KEPT_PHRASES]
    return names if all(_named(sheet, name) for name in names) else []


def _named(sheet: Variant, name: str) -> str:
    sizes = sheet.sizes
    if name in sizes:
        return format_number(sizes[name])
    entry = sheet.table.askable.get(name) or sheet.table.by_key.get(name)
    return format_number(entry.size("count", sizes)) if entry else ""


# Words and numbers


def _amount(sheet: Variant, length: Expression) -> str:
    return sheet.notation.write(length) if sheet.worksheet.in_letters else format_number(length.size(sheet.sizes))


def _in_numbers(sheet: Variant, expression: Expression, more: Mapping[str, str] = {}) -> str:
    sizes = {symbol: format_number(size) for symbol, size in sheet.sizes.items()}
    return Notation({}, {**sizes, **more}).write(expression).replace("·", " · ")


def _equation(sheet: Variant, parts: Sequence[Expression], sign: str, whole: Expression) -> str:
    if sheet.worksheet.in_letters:
        return ""
    return f"{sign.join(_in_brackets(_amount(sheet, part)) for part in parts)} = {_amount(sheet, whole)}"


def _expression(sheet: Variant, side: Blank) -> Expression:
    return sheet.table[side.tensor].expression(side.field)


def _length(sheet: Variant, side: Blank) -> str:
    return _amount(sheet, _expression(sheet, side))


def _written(sheet: Variant, shape: list[str]) -> str:
    if sheet.has_dimensions:
        comma = "," if len(shape) == 1 else ""
        return f"({', '.join(length.replace(',', '') for length in shape)}{comma})"
    return " × ".join(map(_in_brackets, shape))


def _one(sheet: Variant, side: Blank) -> str:
    return sheet.wording.axes[sheet.column_of(side)].one


def _and(sheet: Variant, parts: list[str]) -> str:
    *most, last = parts or [""]
    return sheet.wording.say("hints", "and", before=", ".join(most), after=last) if most else last


def sentence_of(operation: Operation, is_batched: bool) -> str:
    """The key of an operation's sentence: its class's name, with the kind for products and concatenations."""
    kind = ""
    if isinstance(operation, Matmul):
        is_of_one_head = operation.is_by_head and not any("(" in side for side in operation.sides)
        forms = {
            "batched": is_batched,
            "by-head": is_of_one_head,
            "rotated": operation.rotated,
            "gated": bool(operation.gated_by),
        }
        kind = next((f"-{form}" for form, fits in forms.items() if fits), "")
    elif isinstance(operation, Concat):
        kind = "-row" if operation.appends_row else "-by-head" if operation.is_by_head else ""
    return f"{type(operation).__name__}{kind}"


def _in_one_head(side: str, length: Expression) -> Expression:
    return length / Expression.symbol(axes_in(side)[0].upper()) if "(" in side else length


def _in_brackets(text: str) -> str:
    return f"({text})" if " + " in text or " − " in text else text
