"""Answers as typed, read in the way that one sheet asks for: as numbers, or as symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from app.algebra.expression import Expression
from app.shapes.problem import Problem
from app.sheets.notation import Notation
from app.sheets.numbers import Unreadable, read_answer
from app.sheets.symbols import read_symbols


@dataclass(frozen=True)
class Typed:
    """What an answer was read as: its number and, on a sheet in letters, the expression it was computed from."""

    value: int
    meaning: Expression | None = None


@dataclass(frozen=True)
class AnswerReader:
    """Reads the answers of one sheet: whole numbers, or `in_letters` expressions in the symbols of the notation."""

    problem: Problem
    notation: Notation
    in_letters: bool

    def read(self, text: str) -> Typed | Unreadable | None:
        """What a text means on this sheet; None for an empty one, Unreadable with a reason for one that is no length.

        On a sheet in numbers it is a number without a meaning in symbols; in letters, an expression and its size on
        this sheet, which must come to a whole number from 1 up.
        """
        if not self.in_letters:
            number = read_answer(text)
            return Typed(number) if isinstance(number, int) else number
        meaning = read_symbols(text, self.symbol_by_name)
        if not isinstance(meaning, Expression):
            return meaning
        value = meaning.value(self.problem.sizes)
        if value.denominator != 1 or value < 1:
            return Unreadable("no-length")
        return Typed(int(value), meaning)

    def means(self, typed: Typed, length: Expression) -> bool:
        """Whether an answer equals a length: one in numbers by its size, one in letters by its meaning in this model.

        By meaning, H·d_h is d where every head has d/H numbers, but N is not d_h even where both are 64.
        """
        if typed.meaning is None:
            return typed.value == length.size(self.problem.sizes)
        identities = self._model_identities
        return typed.meaning.substitute(identities) == length.substitute(identities)

    @cached_property
    def symbol_by_name(self) -> dict[str, str]:
        """The symbol of every name that may be written: the symbols themselves, and the notation's names, which win."""
        written = {self.notation.symbols.get(symbol, symbol): symbol for symbol in reversed([*self.problem.sizes])}
        return {symbol: symbol for symbol in self.problem.sizes} | written

    def are_identical(self, first: str, second: str) -> bool:
        """Whether two symbols are one by the making of this model, as G and H are without grouped queries."""
        first_meaning, second_meaning = (
            Expression.symbol(symbol).substitute(self._model_identities) for symbol in (first, second)
        )
        return first_meaning == second_meaning

    @cached_property
    def _model_identities(self) -> Mapping[str, Expression]:
        """Replacements for symbols that are redundant in this model: d by H·d_h, G by H, d_v by d_h, if equal."""
        a, symbol = self.problem.architecture, Expression.symbol
        identities = {
            "d": (a.d == a.H * a.d_h, symbol("H") * symbol("d_h")),
            "G": (a.G == a.H, symbol("H")),
            "d_v": (a.d_v == a.d_h, symbol("d_h")),
        }
        return {name: meaning for name, (holds, meaning) in identities.items() if holds}
