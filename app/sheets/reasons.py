"""Why the answers of a row are right, read off its tensor's operation or its count's formula.

The sentences are in the wording's section "reasons": one for each kind of operation, under its class's name, and one
under its key for each count and each special tensor. A topic may have its own under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def row_reason(variant: Variant, key: str) -> Reason:
    """The reason of a row of the sheet, in its notation; in symbols on a sheet answered in symbols.

    Example: for the keys of LLaMA 7B, "100 × 128: one row for each token, and as many columns as W_K" and "(100 × 4096)
    · (4096 × 128) = 100 × 128".
    """
    return _Writer(variant).reason(key) if variant.has_topic else Reason("", "")


@dataclass(frozen=True)
class _Writer:
    """Puts the reasons of one sheet together."""

    variant: Variant

    @property
    def in_letters(self) -> bool:
        return self.variant.worksheet.answers == "letters"

    def reason(self, key: str) -> Reason:
        """The reason of a row: a program's, a question's, a count's or a tensor's."""
        if self.variant.problem.case:
            return self._of_code(key)
        if isinstance(self.variant.table.askable.get(key), OneOf):
            return Reason(self._say(key), "")
        entry = self.variant.table.sized(key)
        if isinstance(entry, Count):
            return Reason(self._say(key), self._sum(entry))
        shape = [self._length(side) for side in entry.sides]
        has_own = key in self.variant.topic_wording.reasons or key in self.variant.wording.sheets["reasons"]
        text = self._say(key) if has_own else self._made(entry)
        return Reason(f"{self._written(shape)}: {text}", self._working(entry))

    def _of_code(self, key: str) -> Reason:
        text, entry = code_reason(self.variant, key), self.variant.table.askable[key]
        if isinstance(entry, Tensor):
            text = f"{self._written([self._length(side) for side in entry.sides])}: {text}"
        return Reason(text, "")

    # The text

    def _say(self, sentence: str, **words: str) -> str:
        sides = [Blank("", field) for field in MATRIX_FIELDS]
        axes = {str(side.field): self.variant.axis(side) for side in sides}
        ones = dict(zip(("row", "column"), map(self._one, sides), strict=True))
        words = {**self.variant.letters, **axes, **ones, **words}
        of_topic = self.variant.topic_wording.reasons.get(sentence)
        return of_topic.format(**words) if of_topic else self.variant.wording.say("reasons", sentence, **words)

    def _made(self, tensor: Tensor) -> str:
        operation = tensor.made_by
        if operation is None:
            if tensor.parameter:
                return self._parameter(tensor)
            return self._say("given", sides=self._and([self._given_side(side) for side in tensor.sides]))
        is_batched = len(tensor.shape) > len(MATRIX_FIELDS)
        sides = [] if is_batched else [self._side(tensor, side) for side in tensor.sides]
        pairs = zip(tensor.sides, operation.sides, operation.operand_sides[0], strict=False)
        moved = [self.variant.axis(side) for side, new, old in pairs if new != old]  # by a transpose
        words = {"sides": self._and(sides), "moved": self._and(moved)}
        letters = [self.variant.letters[key] for key in operation.operands]
        return self._say(sentence_of(operation, is_batched), first=letters[0], second=letters[-1], **words)

    def _side(self, tensor: Tensor, side: Blank) -> str:
        source = next(group[0] for group in tensor.equal_sides.values() if side in group)
        if source == side:
            return self._say("heads-joined", axis=self.variant.axis(side))
        if (thing := self._thing(source)) and not self.variant.has_dimensions:
            return self._say("one-for-each", one=self._one(side), thing=thing)
        form = "same-side" if source.field == side.field else "other-side"
        words = {
            "axis": self.variant.axis(side),
            "source": self.variant.letters[source.tensor],
            "other": self.variant.axis(source),
        }
        return self._say(f"dimension-{form}" if self.variant.has_dimensions else form, **words)

    def _given_side(self, side: Blank) -> str:
        length = self.variant.table[side.tensor].expression(side.field)
        is_tokens = str(length) in ("N", "M") or not length.symbols
        if is_tokens and (thing := self._thing(side)) and not self.variant.has_dimensions:
            return self._say("one-for-each", one=self._one(side), thing=thing)
        size = prose.size_in_words(self.variant, str(length)) or self.variant.notation.write(length)
        if self.variant.has_dimensions:
            return self._say("dimension-given-side", axis=self.variant.axis(side), size=size)
        return self._say("given-side", length=self.variant.wording.axes[self.variant.column_of(side)].size, size=size)

    def _parameter(self, tensor: Tensor) -> str:
        read, written = map(self._vector, tensor.shape)
        return self._say("parameter", read=read, written=written)

    def _vector(self, length: Expression) -> str:
        meaning = prose.size_in_words(self.variant, str(length))
        if not meaning and not self.in_letters:
            meaning = self.variant.notation.write(length)
        return self._say("vector-with-meaning" if meaning else "vector", length=self._amount(length), meaning=meaning)

    def _thing(self, side: Blank) -> str:
        things = self.variant.wording.topic_section(self.variant.worksheet.topic, "row-things")
        return things.get(side.tensor, "") if side.field == "rows" else ""

    # The working

    def _working(self, tensor: Tensor) -> str:
        operation = tensor.made_by
        if isinstance(operation, Matmul):
            return self._multiplied(tensor, operation)
        if tensor.parameter:
            return self._equation(tensor.shape, " · ", tensor.expression("count")) if tensor.counted else ""
        if isinstance(operation, Concat):
            return self._concatenated(tensor, operation)
        for merged, parts in tensor.merged_sides.items():
            return self._equation(list(map(self._expression, parts)), " · ", self._expression(merged))
        if operation is not None and not isinstance(operation, SelectRows):
            return ""
        sums = (f"{self._in_numbers(length)} = {self._amount(length)}" for length in tensor.shape)
        return next((each for each in sums if not self.in_letters and re.search(r"[/+]", each)), "")

    def _multiplied(self, tensor: Tensor, operation: Matmul) -> str:
        lengths = {axis: self._expression(group[0]) for axis, group in tensor.equal_sides.items()}
        left, result = operation.operand_sides[0], operation.sides
        of_one_head = {side: _in_one_head(side, lengths[side]) for side in (*left, *result)}
        # The left operand's last two sides: the one that isn't in the result is summed over.
        rows, columns = result[-2:]
        summed = next(side for side in left[-2:] if side not in result)
        first, second, product = (
            " × ".join(_in_brackets(self._amount(of_one_head[side])) for side in shape)
            for shape in ((rows, summed), (summed, columns), (rows, columns))
        )
        text = f"({first}) · ({second}) = {product}"
        if not operation.is_by_head:
            return text
        joined = [side for side in result if "(" in side]
        heads = [lengths[side] / of_one_head[side] for side in joined]
        sums = [self._equation([h, of_one_head[s]], " · ", lengths[s]) for s, h in zip(joined, heads, strict=True)]
        return "; ".join(filter(None, [self._say("in-each-head", product=text), *sums]))

    def _concatenated(self, tensor: Tensor, operation: Concat) -> str:
        place = next(at for at, side in enumerate(operation.sides) if side not in operation.operand_sides[0])
        sides = [operand[place] for operand in operation.operand_sides]
        tensors = [self.variant.table[key] for key in operation.operands]
        parts = [_in_one_head(side, each.shape[place]) for side, each in zip(sides, tensors, strict=True)]
        whole = tensor.shape[place]
        if not operation.is_by_head:
            return self._equation(parts, " + ", whole)
        heads = whole / _in_one_head(operation.sides[place], whole)
        added = " + ".join(map(self._amount, parts))
        return f"{self._amount(heads)} · ({added}) = {self._amount(whole)}"

    def _sum(self, count: Count) -> str:
        if self.in_letters:
            formula, answer = write_formula(self.variant, count.key), self.variant.notation.write(count.total)
            return f"{formula} = {answer}" if formula not in ("", answer) else ""
        phrases = self.variant.wording.sheets["formulas"]
        total = count.size("count", self.variant.sizes)
        if self._names(count.formula):
            numbers = {
                name: phrases[name] if name in _KEPT_PHRASES else self._named(name)
                for name in _NAME.findall(count.formula)
            }
            text = _NAME.sub(lambda match: numbers[match[1]], count.formula)
        else:
            made_from = count.made_from
            parts = {part: self._named(part) for part in made_from.parts} if made_from else {}
            worked_out = made_from.formula if made_from else count.total
            text = self._in_numbers(worked_out, {"parts": " + ".join(parts.values()), **parts})
            if count.rounded != "never" and count.total.value(self.variant.sizes) != total:
                text = f"{text}, {phrases[f'rounded-{count.rounded}']}"
        return f"{text} = {format_number(total)}" if text != format_number(total) else ""

    def _names(self, formula: str) -> list[str]:
        names = [name for name in _NAME.findall(formula) if name not in _KEPT_PHRASES]
        return names if all(map(self._named, names)) else []

    def _named(self, name: str) -> str:
        sizes = self.variant.sizes
        if name in sizes:
            return format_number(sizes[name])
        entry = self.variant.table.askable.get(name) or self.variant.table.by_key.get(name)
        return format_number(entry.size("count", sizes)) if entry else ""

    # Words and numbers

    def _amount(self, length: Expression) -> str:
        return (
            self.variant.notation.write(length) if self.in_letters else format_number(length.size(self.variant.sizes))
        )

    def _in_numbers(self, expression: Expression, more: Mapping[str, str] = {}) -> str:
        sizes = {symbol: format_number(size) for symbol, size in self.variant.sizes.items()}
        return Notation({}, {**sizes, **more}).write(expression).replace("·", " · ")

    def _equation(self, parts: Sequence[Expression], sign: str, whole: Expression) -> str:
        if self.in_letters:
            return ""
        return f"{sign.join(_in_brackets(self._amount(part)) for part in parts)} = {self._amount(whole)}"

    def _expression(self, side: Blank) -> Expression:
        return self.variant.table[side.tensor].expression(side.field)

    def _length(self, side: Blank) -> str:
        return self._amount(self._expression(side))

    def _written(self, shape: list[str]) -> str:
        if self.variant.has_dimensions:
            comma = "," if len(shape) == 1 else ""
            return f"({', '.join(length.replace(',', '') for length in shape)}{comma})"
        return " × ".join(map(_in_brackets, shape))

    def _one(self, side: Blank) -> str:
        return self.variant.wording.axes[self.variant.column_of(side)].one

    def _and(self, parts: list[str]) -> str:
        *most, last = parts or [""]
        return self.variant.wording.say("hints", "and", before=", ".join(most), after=last) if most else last


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
