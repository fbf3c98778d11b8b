"""Reads typed answers the way that one sheet asks for: as numbers, or as symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from app.algebra.expression import Expression, ExpressionError
from app.algebra.parser import CannotReadError, normalize_signs
from app.misconceptions.symbols import BOX_SYMBOLS
from app.names import without_unseen
from app.shapes.table import Blank, Count, Joint, JointPart, OneOf, WrittenPattern
from app.sheets.notation import OTHER_NAMES, Notation
from app.sheets.numbers import MAX_VALUE, BoxUnit, Unreadable, check_least, read_answer, rounding_margin
from app.sheets.symbols import read_symbols
from app.topics.problem import Problem

MAX_BOX_TEXT = 200  # stored characters per box, twice as many as can be read
FORMULAS_REMEMBERED = 1024
_WHOLE = re.compile(r"-?[0-9]{1,3}")


@dataclass(frozen=True)
class Answer:
    """What an answer was read as: its number and, on a sheet in letters, the expression behind it.

    `margin` is by how much the true number may differ from one that was typed rounded, such as 13.5 GB.
    """

    value: int
    meaning: Expression | None = None
    margin: int = 0


@dataclass(frozen=True)
class AnswerReader:
    """Reads one sheet's answers: whole numbers or, `in_letters`, expressions in the notation's symbols."""

    problem: Problem
    notation: Notation
    in_letters: bool

    def read(self, blank: Blank, text: str) -> Answer | Unreadable | None:
        """What a text in that box means; None for an empty one, Unreadable with a reason for an unreadable one."""
        text = without_unseen(text)
        entry = self.problem.table.askable.get(blank.tensor)
        try:
            if isinstance(entry, WrittenPattern):
                return Answer(entry.number_of(text)) if text.strip() else None
            if isinstance(entry, OneOf):
                return _read_option(text, entry)
            if isinstance(entry, Joint) and (part := _read_part(text, entry.part(blank.field))):
                return part
            if isinstance(entry, Count) and entry.dims and (dimension := _read_negative_dimension(text, entry.dims)):
                return dimension
            if self.in_letters:
                return self._read_letters(blank, text)
        except CannotReadError as error:
            return error.unreadable
        box = self.unit(blank)
        number = read_answer(text, self._size_by_name, box)
        return Answer(number, margin=rounding_margin(text, box)) if isinstance(number, int) else number

    def unit(self, blank: Blank) -> BoxUnit:
        """What a box's number counts: "side" for rows and columns, otherwise the count's unit, such as "bytes"."""
        entry = self.problem.table.askable.get(blank.tensor)
        return "side" if blank.field != "count" else entry.unit if isinstance(entry, Count) else "parameters"

    def _read_letters(self, blank: Blank, text: str) -> Answer | Unreadable | None:
        meaning = read_symbols(text, self.symbol_by_name)
        if isinstance(meaning, Unreadable) and meaning.reason == "unknown-letter":
            return replace(meaning, symbols=", ".join(self.written_symbols))
        if not isinstance(meaning, Expression):
            return meaning
        value = meaning.value(self.problem.sizes)
        if value.denominator != 1:
            return Unreadable("no-length")
        if value > MAX_VALUE:
            return Unreadable("too-large")
        return Answer(check_least(int(value), self.unit(blank)), meaning)

    def read_formula(self, text: str) -> Expression | Unreadable | None:
        """What an author's formula for a box means in the sheet's symbols; None if empty, or Unreadable."""
        meaning = _read_formula(without_unseen(text), self._symbol_in_formulas)
        if isinstance(meaning, Unreadable) and meaning.reason == "unknown-letter":
            return replace(meaning, symbols=", ".join((*self.written_symbols, *BOX_SYMBOLS)))
        return meaning

    @cached_property
    def _symbol_in_formulas(self) -> tuple[tuple[str, str], ...]:
        sizes = self.problem.sizes
        others = {**{symbol: symbol for symbol in sizes}, **{self.notation.symbol(symbol): symbol for symbol in sizes}}
        return tuple({**others, **self.symbol_by_name, **{name: name for name in BOX_SYMBOLS}}.items())

    def is_equivalent(self, typed: Answer, length: Expression) -> bool:
        """Whether an answer equals a length: by its number, or in letters by its value in this model."""
        if typed.meaning is None:
            return typed.value == length.size(self.problem.sizes)
        sizes = self.problem.sizes
        if typed.meaning.value(sizes) != length.value(sizes):
            return False  # what follows replaces sizes by equal expressions, which changes no value
        if self.canonical(typed.meaning) == self.canonical(length):
            return True
        has_number = any(term.factor != 1 for term in typed.meaning.terms)
        return has_number and self._means_with_numbers(typed.meaning, length)

    def canonical(self, expression: Expression) -> Expression:
        """The expression in symbols that this model doesn't make equal, so that equal values are equal expressions."""
        return _substituted(expression, self._model_identities)

    def _means_with_numbers(self, meaning: Expression, length: Expression) -> bool:
        sizes, symbol = self.problem.sizes, Expression.symbol
        identities = self._model_identities
        forms = [identities]
        if "d" in identities:
            head, others = symbol("d") / symbol("H"), {name: size for name, size in identities.items() if name != "d"}
            forms.append({"d_h": head, **{n: head if size == symbol("d_h") else size for n, size in others.items()}})
        for form in forms:
            first, second = _substituted(meaning, form), _substituted(length, form)
            numbers = {name: Expression.number(sizes[name]) for name in (first.symbols | second.symbols) - {"N", "M"}}
            # What is equal with some sizes as numbers stays equal with more, so as many are tried as leave a symbol.
            left = first.substitute(numbers)
            if left.symbols and left == second.substitute(numbers):
                return True
            for remaining in () if left.symbols or len(numbers) < 2 else sorted(numbers):
                others = {name: number for name, number in numbers.items() if name != remaining}
                left = first.substitute(others)
                if left.symbols and left == second.substitute(others):
                    return True
        return False

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols on the sheet, in the order of the sizes: the symbols of its answers, and d, H and d_h."""
        asked = {symbol for blank in self.problem.blanks for symbol in self.problem.expression(blank).symbols}
        always = {"d", "H", "d_h", *(("N", "G", "d_nope", "d_rope") if self.in_letters else ())}
        return tuple(symbol for symbol in self.problem.sizes if symbol in asked | always)

    @cached_property
    def written_symbols(self) -> tuple[str, ...]:
        """The names of `symbols` in the sheet's notation, each once, N and M first."""
        in_order = sorted(self.symbols, key=lambda symbol: symbol not in ("N", "M"))
        return tuple(dict.fromkeys(map(self.notation.symbol, in_order)))

    @cached_property
    def symbol_by_name(self) -> Mapping[str, str]:
        """The symbol of every name that may be written for a size in `symbols`."""
        names: dict[str, str] = {self.notation.symbol(symbol): symbol for symbol in reversed(self.symbols)}
        for kind in ({symbol: (symbol,) for symbol in self.symbols}, OTHER_NAMES):
            meant = dict[str, list[str]]()
            for symbol in self.symbols:
                for name in kind.get(symbol, ()):
                    meant.setdefault(name, []).append(symbol)
            for name, symbols in meant.items():
                if all(self.are_identical(symbols[0], other) for other in symbols):
                    names.setdefault(name, symbols[0])
        for name, symbol in [*names.items()]:
            names.setdefault(name.replace("_", ""), symbol)
        return names

    @cached_property
    def _size_by_name(self) -> Mapping[str, int]:
        return {name: self.problem.sizes[symbol] for name, symbol in self.symbol_by_name.items()}

    def are_identical(self, first: str, second: str) -> bool:
        """Whether two symbols are always equal in this model, as G and H are without grouped queries."""
        return self.canonical(Expression.symbol(first)) == self.canonical(Expression.symbol(second))

    @cached_property
    def _model_identities(self) -> Mapping[str, Expression]:
        sizes, symbol = self.problem.sizes, Expression.symbol
        is_split = sizes["d"] == sizes["H"] * sizes["d_h"]
        width = symbol("H") * symbol("d_h") if is_split else symbol("d")
        four_d = any(s.symbol == "d_ff" and s.rule == "4*d" for s in self.problem.architecture.size_sources)
        identities = {
            "d_ff": (four_d and sizes["d_ff"] == 4 * sizes["d"], width * 4),
            "d_rot": (sizes.get("d_rot") == sizes["d_h"], symbol("d_h")),
            "d_nope": ("d_nope" in sizes, symbol("d_h") - symbol("d_rope")),
            "d": (is_split, symbol("H") * symbol("d_h")),
            "G": (sizes["G"] == sizes["H"], symbol("H")),
            "d_v": (sizes["d_v"] == sizes["d_h"], symbol("d_h")),
        }
        return {name: meaning for name, (holds, meaning) in identities.items() if holds}


def _read_option(text: str, question: OneOf) -> Answer | Unreadable | None:
    if not text.strip():
        return None
    number = next((option for option in question.options if text.strip() == str(option)), None)
    return Unreadable("no-option", ", ".join(map(str, question.options))) if number is None else Answer(number)


def _read_part(text: str, part: JointPart) -> Answer | Unreadable | None:
    written = normalize_signs(text).strip()
    if not written:
        return None
    if part.kind == "word":
        place = next((at for at, word in enumerate(part.words, start=1) if text.strip() in (word, str(at))), None)
        return Unreadable("no-option", ", ".join(part.words)) if place is None else Answer(place)
    if _WHOLE.fullmatch(written.replace(" ", "")) and (part.kind == "dimension" or written == "-1"):
        return Answer(int(written.replace(" ", "")))
    return Unreadable("no-dimension", text.strip()) if part.kind == "dimension" else None


def _read_negative_dimension(text: str, dims: int) -> Answer | Unreadable | None:
    written = normalize_signs(text).replace(" ", "")
    if not (_WHOLE.fullmatch(written) and int(written) < 0):
        return None
    number = dims + int(written)
    return Answer(number) if number >= 0 else Unreadable("no-dimension", text.strip())


def _substituted(expression: Expression, form: Mapping[str, Expression]) -> Expression:
    try:
        return expression.substitute(form)
    except ExpressionError:
        return expression


@lru_cache(FORMULAS_REMEMBERED)
def _read_formula(text: str, names: tuple[tuple[str, str], ...]) -> Expression | Unreadable | None:
    return read_symbols(text, dict(names), of_author=True)
