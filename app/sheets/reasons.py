"""Why the answers of a row are right, read off the operation that makes its tensor, or off the formula of its count.

The sentences are in the wording's section "reasons": one for each kind of operation, under the name of its class, and
one for each count and each tensor that needs its own, under its key; a topic may have others under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from app.algebra.expression import Expression, ExpressionError
from app.algebra.number_text import format_number
from app.shapes.operation import Concat, Matmul, Operation, SelectRows, axes_in
from app.shapes.table import MATRIX_FIELDS, Blank, Count, OneOf, Tensor
from app.sheets.code_text import code_reason
from app.sheets.formulas import write_formula
from app.sheets.notation import ONE_NAME, Notation, without_own_name
from app.sheets.variant import Variant

# Phrases that stay in a formula whose sizes are written as numbers: "2 · 100 · 4096 · 128, for each of 32 heads".
_KEPT_PHRASES = ("for-each-of", "heads", "matrices", "rounded-down", "rounded-up", "byte", "bytes")
_NAME = re.compile(r"\{([\w-]+)\}")
_NUMBER = re.compile(r"\d+(?:,\d{3})*")
MAX_SIZES_OF_CASE = 5
CaseForm = Literal["working", "row", "side"]
# Small numbers for sizes, unlike each other where models may have them so: what is divided comes to a whole number. The
# second and third are for sheets that have a number of the first as an answer.
_CASE = {
    "N": 6, "M": 5, "B": 5, "W": 4, "i": 3, "j": 2, "f": 1, "d": 12, "H": 4, "G": 2, "d_h": 8, "d_v": 10, "d_ff": 20,
    "d_rot": 4, "d_nope": 6, "d_rope": 2, "r_kv": 7, "r_q": 9, "r": 3, "V": 50, "L": 3, "L_exp": 2, "P": 30, "T": 2,
    "E": 4, "k": 2, "d_exp": 14, "n_sh": 2, "d_sh": 15, "d_dense": 16, "d_emb": 5, "d_pool": 11, "d_proj": 13, "p": 3,
    "c": 3, "labels": 7, "params": 100, "active": 70, "rest": 40, "m": 3, "g": 21, "N_enc": 7, "percent": 150,
    "I": 33, "n_side": 11, "bands": 16, "C": 25,
}  # fmt: skip
_SMALL_SIZES = tuple({symbol: factor * size for symbol, size in _CASE.items()} for factor in (1, 3, 5))


class Reason(NamedTuple):
    """Why a row is right: `text` names no numbers but the row's; `working` has those that they are worked out from.
    The working is "" where there is nothing to work out.
    """

    text: str
    working: str


def row_reason(variant: Variant, key: str) -> Reason:
    """The reason of a row of the sheet, in its notation; in symbols on a sheet answered in symbols.

    Example: for the keys of LLaMA 7B, "100 × 128: one row for each token, and as many columns as W_K" and "(100 × 4096)
    · (4096 × 128) = 100 × 128".
    """
    return _Writer(variant, variant.sizes, in_letters=variant.worksheet.answers == "letters").reason(key)


class SmallCase(NamedTuple):
    """A row with other numbers, small enough for working it out by hand. `sizes`: the number of each size, or of
    another count that it is worked out from, by symbol or key.
    """

    sizes: Mapping[str, int]
    text: str
    is_side: bool = False


def small_case(variant: Variant, blank: Blank) -> SmallCase | None:
    """The row of a box in small numbers, none of which is a right answer on this sheet."""
    asked = {format_number(number) for number in variant.problem.answers.values()}
    shared = {symbol: ONE_NAME[symbol] for symbol in without_own_name(variant.sizes)}
    forms: tuple[CaseForm, ...] = ("working", "row", "side")
    for form in forms if variant.worksheet.answers == "numbers" else forms[1:]:
        for sizes in _SMALL_SIZES:
            numbers = {symbol: sizes[shared.get(symbol, symbol)] for symbol in sizes}  # G is H without grouped queries
            case = _Writer(variant, numbers, in_letters=False).small_case(blank, form)
            if case and asked.isdisjoint([*_NUMBER.findall(case.text), *map(format_number, case.sizes.values())]):
                return case
    return None


@dataclass(frozen=True)
class _Writer:
    """Puts the reasons of one sheet together, with `numbers` for its sizes or, `in_letters`, with symbols. `numbers`
    may also have the keys of counts that others are worked out from, in place of what these come to.
    """

    variant: Variant
    numbers: Mapping[str, int]
    in_letters: bool

    def reason(self, key: str) -> Reason:
        """The reason of a row, as `row_reason` says: of a program's row, of a question, of a count, else of a
        tensor.
        """
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
        size = self.variant.text.size_in_words(str(length)) or self.variant.notation.write(length)
        if self.variant.has_dimensions:
            return self._say("dimension-given-side", axis=self.variant.axis(side), size=size)
        return self._say("given-side", length=self.variant.wording.axes[self.variant.column_of(side)].size, size=size)

    def _parameter(self, tensor: Tensor) -> str:
        read, written = map(self._vector, tensor.shape)
        return self._say("parameter", read=read, written=written)

    def _vector(self, length: Expression) -> str:
        meaning = self.variant.text.size_in_words(str(length))
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
        # Of the left operand's last two sides, that which is not in the result is summed over.
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
        total = self._total(count)
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
            if count.rounded != "never" and count.total.value(self.numbers) != total:
                text = f"{text}, {phrases[f'rounded-{count.rounded}']}"
        return f"{text} = {format_number(total)}" if text != format_number(total) else ""

    def _names(self, formula: str) -> list[str]:
        names = [name for name in _NAME.findall(formula) if name not in _KEPT_PHRASES]
        return names if all(map(self._named, names)) else []

    def _named(self, name: str) -> str:
        if name in self.numbers:
            return format_number(self.numbers[name])
        entry = self.variant.table.askable.get(name) or self.variant.table.by_key.get(name)
        if entry is None:
            return ""
        return format_number(self._total(entry) if isinstance(entry, Count) else entry.size("count", self.numbers))

    def _total(self, count: Count) -> int:
        made_from = count.made_from
        if made_from and self.numbers.keys() >= set(made_from.parts):
            total = made_from.number(self.numbers, {part: self.numbers[part] for part in made_from.parts})
            if total is not None:
                return total
        return count.size("count", self.numbers)

    # A small case

    def small_case(self, blank: Blank, form: CaseForm) -> SmallCase | None:
        """The row of a box with these numbers, in one form; None if a size isn't whole, and as `_case` says."""
        entry = self.variant.table.sized(blank.tensor)
        try:
            if isinstance(entry, Count):
                return self._count_in_small(entry, form)
            return self._tensor_in_small(entry, blank, form)
        except ExpressionError:
            return None

    def _tensor_in_small(self, tensor: Tensor, blank: Blank, form: CaseForm) -> SmallCase | None:
        if blank.field == "count":
            whole = tensor.expression("count")
            text = self._equation(tensor.shape, " · ", whole) if form == "working" else self._amount(whole)
            return self._case(whole.symbols, text)
        if form == "side":
            length = self.variant.wording.axes[self.variant.column_of(blank)].length
            case = self._case(self._expression(blank).symbols, length.format(length=self._length(blank)))
            return case and case._replace(is_side=True)
        # The last two sides alone would not be the shape of a tensor with more.
        is_product = isinstance(tensor.made_by, Matmul) and form == "working" and len(tensor.shape) == 2
        sides = [group[0] for group in tensor.equal_sides.values()] if is_product else tensor.sides
        shape = self._written([self._length(side) for side in tensor.sides])
        symbols = {symbol for side in sides for symbol in self._expression(side).symbols}
        return self._case(symbols, self._working(tensor) if is_product else shape)

    def _count_in_small(self, count: Count, form: CaseForm) -> SmallCase | None:
        names = self._names(count.formula)
        if form != "working" or not names:
            result = format_number(count.size("count", self.numbers))
            return self._case(count.total.symbols, (form == "working" and self._sum(count)) or result)
        table = self.variant.table.askable
        parts = dict.fromkeys(name for name in names if name in table and table[name].expression("count").symbols)
        numbers = {**self.numbers, **{part: 10 * at for at, part in enumerate(reversed(parts), start=2)}}
        writer = replace(self, numbers=numbers)
        return writer._case(names, writer._sum(count) or format_number(writer._total(count)))

    def _case(self, names: Iterable[str], text: str) -> SmallCase | None:
        sharing = without_own_name(self.variant.sizes)
        used = {ONE_NAME[name] if name in sharing else name for name in names}
        sizes = {name: number for name, number in self.numbers.items() if name in used}
        return SmallCase(sizes, text) if 0 < len(sizes) <= MAX_SIZES_OF_CASE else None

    # Words and numbers

    def _amount(self, length: Expression) -> str:
        return self.variant.notation.write(length) if self.in_letters else format_number(length.size(self.numbers))

    def _in_numbers(self, expression: Expression, more: Mapping[str, str] = {}) -> str:
        sizes = {symbol: format_number(size) for symbol, size in self.numbers.items()}
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
    """The key of an operation's sentence: the name of its class, for products and concatenations with their kind."""
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
