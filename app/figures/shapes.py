"""The lengths that one drawing of a sheet knows: what was typed, what follows from it, and what doesn't fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal

from app.algebra.expression import ONE, Expression
from app.algebra.number_text import format_number
from app.models.architecture import Architecture
from app.shapes.consistency import DimensionMismatch, Values, mismatches, typed_source_of
from app.shapes.operation import Concat, Matmul, Softmax
from app.shapes.table import Blank, Tensor, TensorTable
from app.sheets import prose
from app.sheets.answers import Answer
from app.sheets.prose import given_matrices, rows_so_far
from app.sheets.variant import Variant
from app.topics.registry import DRAWN_WITH, TOPICS
from app.topics.topic import FigurePlan

Answers = Mapping[Blank, int | Answer]  # what was typed; only a number if nothing was typed, as for the key


@dataclass(frozen=True)
class PartMismatch:
    """Parts of matrices that should be equal but differ, even if the whole matrices may have any width.

    Example: in a layer, queries of 2048 columns are 32 heads of 64, but keys of 2048 columns are 8 heads of 256.
    `sides` are those compared, each with its number of heads; for "joined" matrices, these and then the result, with 1.
    """

    result: str
    kind: Literal["heads", "undivided", "joined"]
    sides: tuple[tuple[Blank, int], ...]


@dataclass(frozen=True)
class TypedShapes:
    """A sheet with the lengths known on it, without using the key."""

    variant: Variant
    table: TensorTable
    lengths: Values
    meanings: Mapping[Blank, Expression]
    compared: Mapping[Blank, int]
    mismatches: tuple[DimensionMismatch, ...]
    names_sizes: bool = True
    shows_mismatches: bool = True
    given: frozenset[str] = frozenset()  # the matrices with sides that the sheet's text or its questions give

    @classmethod
    def of(
        cls,
        variant: Variant,
        answers: Answers,
        names_sizes: bool = True,
        shows_mismatches: bool = True,
        step: str = "",
    ) -> TypedShapes:
        """The lengths typed, given by the questions, or following from these, and the mismatches."""
        stated = _given_in_steps(variant, answers, step)
        if names_sizes and shows_mismatches:
            stated = {**stated, **_stated(variant)}
        table, known = _known(variant, {**answers, **stated})
        given = frozenset(side.tensor for side in stated)
        lengths = {blank: answer.value for blank, answer in known.items()}
        meanings = {blank: answer.meaning for blank, answer in known.items() if answer.meaning is not None}
        compared = _by_meaning(variant, known) if meanings and shows_mismatches else lengths
        differing = tuple(_mismatches(variant, known, compared)) if shows_mismatches else ()
        return cls(variant, table, lengths, meanings, compared, differing, names_sizes, shows_mismatches, given)

    def with_facts(self) -> TypedShapes:
        """A copy with the true lengths of the inputs' unknown sides, for exhibits."""
        asked = [self.table[key] for key in self.variant.worksheet.rows if key in self.table.by_key]
        in_letters = self.variant.worksheet.in_letters
        if not self.names_sizes or in_letters or any(entry.parameter for entry in asked):
            return self
        inputs = {entry.key for entry in self.table.activations if entry.made_by is None}
        sides = [side for key in inputs for side in self.table[key].sides]
        products = [entry.made_by for entry in self.table.tensors if isinstance(entry.made_by, Matmul)]
        inner = [product.operands[1] for product in products if product.operands[0] in inputs]
        sides += [Blank(key, "rows") for key in inner if self.table[key].parameter]
        facts = {blank: self._right_size(blank).size(self.variant.sizes) for blank in sides}
        return replace(self, lengths={**facts, **self.lengths})

    def _right_size(self, blank: Blank) -> Expression:
        return self.table[blank.tensor].expression(blank.field)

    def differ(self, first: Blank, second: Blank) -> bool:
        """Whether the drawing shows that two sides, which should be equal, are known and differ."""
        known = first in self.compared and second in self.compared
        return self.shows_mismatches and known and self.compared[first] != self.compared[second]

    def share_number(self, first: Blank, second: Blank) -> bool:
        """Whether one number is written for two sides, which shows that they are equal."""
        return self.shows_mismatches and self.lengths.get(first) == self.lengths.get(second)

    def is_asked(self, blank: Blank) -> bool:
        """Whether a side has a box on the sheet."""
        return blank.tensor in self.variant.worksheet.rows

    def is_complete(self, tensor: str) -> bool:
        """Whether all sides of a tensor are known."""
        return all(side in self.lengths for side in self.table[tensor].sides)

    def letter(self, tensor: str) -> str:
        """The letter of a matrix in this sheet's notation."""
        return self._letters[tensor]

    @cached_property
    def _letters(self) -> Mapping[str, str]:
        return self.variant.notation.letters_in(self.table)

    def label(self, blank: Blank) -> str:
        """A length as the sheet writes it: a number, or symbols on a sheet in letters; "?" if it isn't known."""
        if blank not in self.lengths:
            return "?"
        return self.written(self.lengths[blank], self.meanings.get(blank))

    def written(self, length: int, meaning: Expression | None) -> str:
        """A length as the sheet writes it; on a sheet in letters, its `meaning`."""
        if not self.variant.worksheet.in_letters:
            return format_number(length)
        return self.variant.notation.write(meaning) if meaning else ""

    def expression(self, blank: Blank) -> Expression | None:
        """What a typed length counts in this model: the first of the sheet's sizes that it equals, or None."""
        if blank not in self.lengths or not self.names_sizes:
            return None
        if blank not in self._named:
            typed = Answer(self.lengths[blank], self.meanings.get(blank))
            sizes = (self._right_size(blank), *self._sizes)
            self._named[blank] = next((each for each in sizes if self.variant.is_equivalent(typed, each)), None)
        return self._named[blank]

    @cached_property
    def _named(self) -> dict[Blank, Expression | None]:
        return {}

    @cached_property
    def _sizes(self) -> tuple[Expression, ...]:
        sides = {length for entry in self.table.tensors for length in entry.shape}
        named = [Expression.symbol(symbol) for symbol in ("N", "M", "d", "d_h", "d_v") if symbol in self.variant.sizes]
        return (*named, *sorted(sides - set(named), key=str))

    @cached_property
    def repeats_sides(self) -> bool:
        """Whether sides of 1 are broadcast somewhere in the table."""
        return any(tensor.made_by.broadcasts for tensor in self.table.tensors if tensor.made_by)

    @property
    def is_of_new_token(self) -> bool:
        """Whether the input is a single token, which attends to cached ones."""
        inputs = [each for each in self.table.activations if each.role == "input" and each.made_by is None]
        return bool(inputs) and all(each.rows == ONE for each in inputs)

    def has_new_row(self, tensor: str) -> bool:
        """Whether a matrix's last row is the new token's, and the others are cached."""
        products = (each.made_by for each in self.table.activations if isinstance(each.made_by, Matmul))
        is_attended_to = any(product.operands[1] == tensor for product in products)
        return self.is_of_new_token and is_attended_to and not self.table[tensor].parameter

    def head_letter(self, tensor: str) -> str:
        """The letter of a matrix's last head: K_8 of 8 heads; on a sheet in letters K_G."""
        return f"{self.letter(tensor).partition('_')[0]}_{self.heads_label(tensor)}"

    def heads_label(self, tensor: str) -> str:
        """The number of heads in a matrix, or its symbol on a sheet in letters."""
        symbol = self._heads_symbol(tensor)
        return self.written(self.variant.sizes[symbol], Expression.symbol(symbol))

    def _heads_symbol(self, tensor: str) -> str:
        columns = self.table[tensor].columns.symbols
        return next((symbol for symbol in ("H", "G") if symbol in columns), "")

    def heads(self, tensor: str) -> int:
        """How many heads are next to each other in an activation's columns; 0 if it isn't made of heads."""
        symbol = self._heads_symbol(tensor)
        return self.variant.sizes[symbol] if symbol and not self.table[tensor].parameter else 0

    def head_width(self, tensor: str) -> Fraction | None:
        """The width of one head: a matrix's known columns divided by its `heads`; None if they aren't known.

        Raises ZeroDivisionError for a matrix with known columns that isn't made of heads.
        """
        columns = self.lengths.get(Blank(tensor, "columns"))
        return None if columns is None else Fraction(columns, self.heads(tensor))

    def product_by_head(self, plan: FigurePlan) -> Matmul | None:
        """The product that a figure of one head of a layer shows."""
        made_by = self.table[plan.results[0]].made_by
        return made_by if isinstance(made_by, Matmul) and made_by.is_by_head else None

    def mismatches_in(self, results: tuple[str, ...]) -> list[DimensionMismatch]:
        """The mismatches in the equations that make these matrices."""
        return [mismatch for mismatch in self.mismatches if mismatch.at in results]

    @cached_property
    def part_mismatches(self) -> tuple[PartMismatch, ...]:
        """Heads that can't be multiplied, and joined matrices whose widths don't add up."""
        shown = self.shows_mismatches and not self.table.has_more_sides
        return tuple(self._part_mismatches()) if shown else ()

    def _part_mismatches(self) -> Iterator[PartMismatch]:
        for tensor in self.table.activations:
            made_by = tensor.made_by
            if isinstance(made_by, Matmul) and made_by.is_by_head:
                sides = {
                    Blank(key, "columns"): (self.heads(key), width)
                    for key in (*made_by.operands, tensor.key)
                    if self.heads(key) and (width := self.head_width(key)) is not None
                }
                for blank, (heads, width) in sides.items():
                    if width.denominator != 1:
                        yield PartMismatch(tensor.key, "undivided", ((blank, heads),))
                if len({width for _, width in sides.values()}) > 1:
                    parts = [(blank, heads) for blank, (heads, _) in sides.items()]
                    yield PartMismatch(tensor.key, "heads", tuple(parts))
        for tensor in self.table.activations:
            if isinstance(tensor.made_by, Concat) and tensor.made_by.joins_columns:
                parts = [(Blank(key, "columns"), 1) for key in (*tensor.made_by.operands, tensor.key)]
                lengths = [self.lengths.get(blank, 0) for blank, _ in parts]
                if all(lengths) and sum(lengths[:-1]) != lengths[-1]:
                    yield PartMismatch(tensor.key, "joined", tuple(parts))


def _known(variant: Variant, answers: Answers) -> tuple[TensorTable, dict[Blank, Answer]]:
    table = DRAWN_WITH.get(variant.table.key, variant.table)
    typed = {blank: _read(variant, blank, answer) for blank, answer in answers.items() if blank.field != "count"}
    if table is not variant.table:
        # A table that adds activations to the sheet's parameters is drawn for one token.
        one_token = Answer(1, ONE if variant.worksheet.in_letters else None)  # the x of x · W
        typed |= {Blank(tensor.key, "rows"): one_token for tensor in table.activations}
    asked = frozenset(variant.worksheet.rows)
    typed |= _repeated_once(variant, table, typed)
    widths = [blank for blank in variant.blanks if variant.expression(blank) == Expression.symbol("d")]
    # Before that, the inputs' width would give these boxes away.
    if typed.keys() >= set(widths or variant.blanks) and table is variant.table:
        inputs = (each for each in table.activations if each.role == "input" and each.made_by is None)
        model_wide = (each.sides[-1] for each in inputs if each.columns == Expression.symbol("d"))
        typed |= {side: _read(variant, side, variant.architecture.d) for side in model_wide if side.tensor not in asked}
    known = {**typed, **dict(_by_head(variant, typed))}
    for _ in range(2):  # the second pass uses what follows from later matrices, as a new key from all keys
        sources = typed_source_of(table, dict.fromkeys(known, 0), asked)
        known = {blank: known[source] for blank, source in sources.items()}
        known = {**_merged(table, known, asked), **known}
    return table, known


def _given_in_steps(variant: Variant, answers: Answers, step: str) -> dict[Blank, Answer]:
    tensors = map(variant.table.by_key.__getitem__, given_matrices(variant, rows_so_far(variant, answers, step)))
    return {side: Answer(tensor.size(side.field, variant.sizes)) for tensor in tensors for side in tensor.sides}


def _stated(variant: Variant) -> dict[Blank, Answer]:
    """The sides of parameters whose sizes are in the sheet's text, unless the sheet asks for parameters."""
    asked, sheet = [variant.table.askable[key] for key in variant.problem.rows], variant.worksheet
    if (
        sheet.in_letters
        or TOPICS[sheet.topic].in_steps
        or any(isinstance(each, Tensor) and each.parameter for each in asked)
    ):
        return {}
    symbols = frozenset[str]().union(*(fact.symbols for fact in prose.stated_facts(variant)))
    symbols |= {"d_v"} if "d_h" in symbols and variant.architecture.d_v == variant.architecture.d_h else set()
    lengths = {
        side: tensor.expression(side.field)
        for tensor in variant.table.tensors
        if tensor.parameter
        for side in tensor.sides
    }
    stated = {Expression.symbol(symbol) for symbol in symbols if symbol in variant.sizes}
    return {side: Answer(length.size(variant.sizes)) for side, length in lengths.items() if length in stated}


def _repeated_once(variant: Variant, table: TensorTable, typed: Mapping[Blank, Answer]) -> dict[Blank, Answer]:
    if not typed.keys() >= {blank for blank in variant.blanks if variant.expression(blank) == ONE}:
        return {}
    one = Answer(1, ONE if variant.worksheet.in_letters else None)
    operations = (tensor.made_by for tensor in table.tensors if tensor.made_by and tensor.made_by.broadcasts)
    keys = {key for operation in operations for key in operation.operands} - {*variant.worksheet.rows}
    sides = (side for key in keys for side in table[key].sides if table[key].expression(side.field) == ONE)
    return dict.fromkeys(sides, one)


def _by_head(variant: Variant, typed: Mapping[Blank, Answer]) -> Iterator[tuple[Blank, Answer]]:
    """Widths of several heads that follow from other heads' widths, where nothing is asked of them."""
    query_heads = Answer(variant.architecture.H, Expression.symbol("H"))
    for tensor in variant.table.activations:
        made_by, whole = tensor.made_by, tensor.sides[-1]
        if not isinstance(made_by, Matmul | Concat) or not made_by.is_by_head:
            continue
        first, second = (variant.table[key].sides[-1] for key in made_by.operands)
        if isinstance(made_by, Concat):  # a part next to each head: a head's other part is what is left of it
            blank, *known = first, whole, second
        elif made_by.operand_sides[1] != made_by.sides and "(" in made_by.sides[-1]:  # a group's values for its heads
            blank, *known = whole, second
        else:
            continue
        if blank.tensor in variant.worksheet.rows or not typed.keys() >= {*known}:
            continue
        source = typed[known[0]]
        if isinstance(made_by, Concat):
            added = _product([query_heads, typed[second]])
            meaning = source.meaning - added.meaning if source.meaning and added.meaning else None
            if source.value > added.value:
                yield blank, Answer(source.value - added.value, meaning)
        elif source.value % variant.architecture.G == 0:
            meaning = source.meaning / Expression.symbol("G") * Expression.symbol("H") if source.meaning else None
            yield blank, Answer(source.value // variant.architecture.G * query_heads.value, meaning)


def _merged(table: TensorTable, known: Mapping[Blank, Answer], asked: frozenset[str]) -> dict[Blank, Answer]:
    merged = dict[Blank, Answer]()
    for sides in table.merged_sides.values():
        for whole, parts in sides.items():
            if whole.tensor not in asked and all(part in known for part in parts):
                merged[whole] = _product([known[part] for part in parts])
    return merged


def _product(parts: Sequence[Answer]) -> Answer:
    meanings = [part.meaning for part in parts if part.meaning is not None]
    return Answer(
        prod(part.value for part in parts), prod(meanings, start=ONE) if len(meanings) == len(parts) else None
    )


def _mismatches(
    variant: Variant, known: Mapping[Blank, Answer], compared: Mapping[Blank, int]
) -> Iterator[DimensionMismatch]:
    table = DRAWN_WITH.get(variant.table.key, variant.table)
    in_letters = variant.worksheet.in_letters
    for each in mismatches(table, compared):
        if not (each.parts and in_letters):
            yield each
    for result, sides in table.merged_sides.items() if in_letters else ():
        for whole, parts in sides.items():
            if known.keys() >= {whole, *parts}:
                factors = [known[part] for part in parts]
                value = prod(factor.value for factor in factors)
                # Sums of many products take long to multiply, so their numbers are compared first.
                meaning = _product(factors).meaning if known[whole].value == value else None
                if meaning is None or not variant.is_equivalent(known[whole], meaning):
                    yield DimensionMismatch(result, whole, parts[-1], parts=parts)


def _read(variant: Variant, blank: Blank, answer: int | Answer) -> Answer:
    if isinstance(answer, Answer) or not variant.worksheet.in_letters:
        return answer if isinstance(answer, Answer) else Answer(answer)
    sides = [length for entry in variant.table.tensors for length in entry.shape]
    candidates = [variant.expression(blank), *sides, *map(Expression.symbol, variant.sizes)]
    meaning = next((each for each in candidates if each.size(variant.sizes) == answer), None)
    if meaning and variant.architecture.d_v == variant.architecture.d_h:
        meaning = meaning.substitute({"d_v": Expression.symbol("d_h")})
    return Answer(answer, meaning)


def _by_meaning(variant: Variant, known: Mapping[Blank, Answer]) -> dict[Blank, int]:
    meanings = [Answer(0), Answer(1, ONE)]

    def number(answer: Answer) -> int:
        for index, meaning in enumerate(meanings):
            if meaning.meaning and answer.meaning and variant.is_equivalent(meaning, answer.meaning):
                return index
        meanings.append(answer)
        return len(meanings) - 1

    return {blank: number(answer) for blank, answer in known.items()}


# What a mask hides of the attention weights


def hidden_rows(shapes: TypedShapes, tensor: str) -> int:
    """How many rows of weights or a mask can have hidden entries; 0 unless they are square."""
    softmax = _softmax(shapes)
    if softmax is None or tensor not in {softmax.key, *(softmax.made_by.operands[1:] if softmax.made_by else ())}:
        return 0
    rows, columns = (shapes.lengths.get(side) for side in shapes.table[tensor].sides[-2:])
    return rows if rows and rows == columns else 0


def is_causal(shapes: TypedShapes) -> bool:
    """Whether later tokens are hidden on this sheet: its topic has a mask, and the model is causal."""
    return TOPICS[shapes.variant.worksheet.topic].masked and shapes.variant.architecture.causal


def has_mask(shapes: TypedShapes) -> bool:
    """Whether a text attends to itself, so that the model's mask applies."""
    weights = _softmax(shapes)
    return weights is not None and weights.rows == weights.columns


def _softmax(shapes: TypedShapes) -> Tensor | None:
    return next((tensor for tensor in shapes.table.tensors if isinstance(tensor.made_by, Softmax)), None)


def shared_limits(shapes: TypedShapes) -> tuple[int | None, int | None]:
    """How far the window reaches, and the size of a chunk, each if it is the same in all layers."""
    limits = set(_limits(shapes.variant.architecture))
    return limits.pop() if len(limits) == 1 and has_mask(shapes) else (None, None)


def some_layers_hide_more(shapes: TypedShapes, rows: int) -> bool:
    """Whether layers differ in window or chunk, and one of these hides something of `rows` tokens."""
    limits = set(_limits(shapes.variant.architecture))
    least = min((limit for limits_of_run in limits for limit in limits_of_run if limit), default=rows)
    return has_mask(shapes) and len(limits) > 1 and least < rows


def _limits(architecture: Architecture) -> Iterator[tuple[int | None, int | None]]:
    for run in (run for stack in architecture.stacks for run in stack.attending):
        yield architecture.reach_of(run.window) if run.window else None, run.chunk
