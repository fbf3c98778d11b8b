"""Answers as typed, read in the way that one sheet asks for: as numbers, or as symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from app.algebra.expression import Expression, ExpressionError
from app.algebra.parser import CannotReadError, normalize_signs
from app.misconceptions.misconception import BOX_SYMBOLS
from app.names import without_unseen
from app.shapes.table import Blank, Count, Joint, JointPart, OneOf, WrittenPattern
from app.sheets.notation import OTHER_NAMES, Notation
from app.sheets.numbers import MAX_VALUE, BoxUnit, Unreadable, check_least, read_answer, rounding_margin
from app.sheets.symbols import read_symbols
from app.topics.problem import Problem

MAX_BOX_TEXT = 200  # characters of one box that are stored, twice as many as can be read
FORMULAS_REMEMBERED = 1024
_WHOLE = re.compile(r"-?[0-9]{1,3}")


@dataclass(frozen=True)
class Answer:
    """What an answer was read as: its number and, on a sheet in letters, the expression it was computed from.

    `margin` is by how much the true number may differ from one that was typed rounded, such as 13.5 GB.
    """

    value: int
    meaning: Expression | None = None
    margin: int = 0


@dataclass(frozen=True)
class AnswerReader:
    """Reads the answers of one sheet: whole numbers, or `in_letters` expressions in the symbols of the notation."""

    problem: Problem
    notation: Notation
    in_letters: bool

    def read(self, blank: Blank, text: str) -> Answer | Unreadable | None:
        """What a text in that box means; None for an empty one, Unreadable with a reason for one that can't be read."""
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
        """What the number of a box counts: "side" for rows and columns, else the unit of the count, such as "bytes".

        The count of a tensor, or of a row that the table lacks, is in "parameters". Every field but "count" is a
        "side", choices and the parts of a line of code as well.
        """
        entry = self.problem.table.askable.get(blank.tensor)
        return "side" if blank.field != "count" else entry.unit if isinstance(entry, Count) else "parameters"

    def _read_letters(self, blank: Blank, text: str) -> Answer | Unreadable | None:
        """What a text means on a sheet in letters; None for an empty one.

        Unreadable if it is no expression, a number alone other than 0 and 1, or if its size on this sheet isn't whole
        or is too large. For an unknown letter, the reason lists the sheet's symbols. Raises CannotReadError if its size
        is smaller than the box takes.
        """
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
        """What an author's formula for a box means, in the symbols of the sheet; None if empty, Unreadable if it can't
        be read.

        It may also use every other size of the model, numbers alone, and BOX_SYMBOLS, such as `right`, the right answer
        of the box: "H*d", "right + 1", "2".
        """
        meaning = _read_formula(without_unseen(text), self._symbol_in_formulas)
        if isinstance(meaning, Unreadable) and meaning.reason == "unknown-letter":
            return replace(meaning, symbols=", ".join((*self.written_symbols, *BOX_SYMBOLS)))
        return meaning

    @cached_property
    def _symbol_in_formulas(self) -> tuple[tuple[str, str], ...]:
        """Every name that an author's formula may contain, with its symbol; what it means to students comes first."""
        sizes = self.problem.sizes
        others = {**{symbol: symbol for symbol in sizes}, **{self.notation.symbol(symbol): symbol for symbol in sizes}}
        return tuple({**others, **self.symbol_by_name, **{name: name for name in BOX_SYMBOLS}}.items())

    def is_equivalent(self, typed: Answer, length: Expression) -> bool:
        """Whether an answer equals a length: one in numbers by its size, one in letters by its meaning in this model.

        By meaning, H·d_h is d if every head has d/H numbers, but N is not d_h even if both are 64. An answer with a
        number in it, a factor other than 1, may have that for a size of the model: d/32 is d_h if there are 32 heads.
        What is equal only by chance is not equivalent: 2·d is not H·d_h if the config states a d_h with which both are
        2048.
        """
        if typed.meaning is None:
            return typed.value == length.size(self.problem.sizes)
        sizes = self.problem.sizes
        if typed.meaning.value(sizes) != length.value(sizes):
            return False  # what follows replaces sizes by what they are, which changes no value
        if self.canonical(typed.meaning) == self.canonical(length):
            return True
        has_number = any(term.factor != 1 for term in typed.meaning.terms)
        return has_number and self._means_with_numbers(typed.meaning, length)

    def canonical(self, expression: Expression) -> Expression:
        """The expression in symbols that this model does not make equal, so that equal meanings are equal."""
        return _substituted(expression, self._model_identities)

    def _means_with_numbers(self, meaning: Expression, length: Expression) -> bool:
        """Whether two expressions are equal once some of the model's sizes are numbers; N and M stay symbols.

        All other sizes become numbers; if then no symbol of the first is left, all but one of them, each in turn. At
        least one symbol must stay, or 4·h would be d_h whenever both are 128. They are compared with d as H·d_h, and
        then with d_h as d/H, if the model has d = H·d_h.
        """
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
        """The symbols that occur on the sheet, in the order of the sizes: those of its answers, and d, H and d_h.

        On a sheet in letters also N and G, which students write where they don't belong, and the parts of a latent
        attention's keys.
        """
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
        """The symbol of every name that may be written for a size in `symbols`.

        The notation's names win, then the symbols of the table, then OTHER_NAMES. A name that the notation gives to two
        symbols means the first of them; another name that could mean two sizes is left out, unless these are always
        equal in this model. Each name may be written without "_" if that is not a name of its own.
        """
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
        """What replaces the symbols that are redundant in this model: H·d_h for d, H for G, d_h for d_v, if equal.

        Likewise d_h for d_rot if all of a head is rotated, and 4·d for d_ff if its family's rule makes it so, as
        4·H·d_h if d is H·d_h. In latent attention d_h − d_rope replaces d_nope.
        """
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
    """The option that was chosen, by its number; None for a blank text, Unreadable, which lists the numbers, for any
    other.

    Spaces at the ends don't matter, but 01 is not 1.
    """
    if not text.strip():
        return None
    number = next((option for option in question.options if text.strip() == str(option)), None)
    return Unreadable("no-option", ", ".join(map(str, question.options))) if number is None else Answer(number)


def _read_part(text: str, part: JointPart) -> Answer | Unreadable | None:
    """What is filled into one part of a line of code; None for a blank text.

    A word is typed as itself or as its place from 1, which is its number; a dimension is a whole number of up to three
    digits, which may be negative. Anything else in their boxes is Unreadable. In the box of a size only -1 is read
    here, which in PyTorch means whatever is left; None for any other text, which the caller reads like any other size.
    Raises CannotReadError for a digit such as ½.
    """
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
    """A dimension that is counted from the last of `dims`, as its number from 0; None for any other text.

    Unreadable if it is counted back beyond the first. Raises CannotReadError for a digit such as ½.
    """
    written = normalize_signs(text).replace(" ", "")
    if not (_WHOLE.fullmatch(written) and int(written) < 0):
        return None
    number = dims + int(written)
    return Answer(number) if number >= 0 else Unreadable("no-dimension", text.strip())


def _substituted(expression: Expression, form: Mapping[str, Expression]) -> Expression:
    """The expression with these symbols replaced; unchanged if it is divided by one that means a sum (d_nope)."""
    try:
        return expression.substitute(form)
    except ExpressionError:
        return expression


@lru_cache(FORMULAS_REMEMBERED)
def _read_formula(text: str, names: tuple[tuple[str, str], ...]) -> Expression | Unreadable | None:
    """What an author's formula means with these names; cached, since every student's sheet has the same."""
    return read_symbols(text, dict(names), of_author=True)
