"""How sheets write tensors and symbols: one Notation for each kind of course, and the symbols of one sheet.

>>> [notation.write(Expression.parse("H*d_h")) for notation in NOTATIONS.values()]
['H·d_head', 'h·d_h']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Literal

from app.algebra.expression import Expression, ExpressionError
from app.shapes.table import TensorTable
from app.topics.problem import Problem

# Symbols that are written as another one if the model makes the two equal: without grouped queries, G is H.
ONE_NAME = {"G": "H", "d_v": "d_h", "d_rot": "d_h"}
VALUES_REMEMBERED = 512
_Names = tuple[tuple[str, ...], tuple[str, ...]]  # factors and divisors


def without_own_name(sizes: Mapping[str, int]) -> frozenset[str]:
    """The symbols written as another symbol in a model of these sizes: those in ONE_NAME that are equal.

    >>> sorted(without_own_name({"H": 32, "G": 8, "d_h": 128, "d_v": 128}))
    ['d_v']
    """
    return frozenset(symbol for symbol, other in ONE_NAME.items() if sizes.get(symbol) == sizes[other])


@dataclass(frozen=True)
class Notation:
    """How one kind of course writes things: `letters` by the tables' letter, and `symbols` by the tables' symbol.

    `_` starts a subscript.
    """

    letters: Mapping[str, str]
    symbols: Mapping[str, str]
    unequal_widths: Mapping[str, str] = field(default_factory=dict)

    def for_sizes(self, sizes: Mapping[str, int]) -> Notation:
        symbols = self.symbols if sizes["d_h"] == sizes["d_v"] else {**self.symbols, **self.unequal_widths}
        shared = {symbol: symbols.get(ONE_NAME[symbol], ONE_NAME[symbol]) for symbol in without_own_name(sizes)}
        return Notation(self.letters, {**symbols, **shared})

    def symbol(self, in_table: str) -> str:
        """A table symbol's name in this notation, by default the symbol itself."""
        return self.symbols.get(in_table, in_table)

    def letters_in(self, table: TensorTable) -> dict[str, str]:
        """The letter of every tensor and count of a table by key: the table's own unless this notation has another.

        A letter that the table uses for something else is left to it.
        """
        entries = {**table.by_key, **table.askable}
        taken = {entry.letter for entry in entries.values()}
        letters = {own: ours for own, ours in self.letters.items() if ours not in taken}
        return {key: letters.get(entry.letter, entry.letter) for key, entry in entries.items()}

    def write(self, expression: Expression) -> str:
        """An expression as text in this notation's names: 'H·d_head' for H*d_h in the classic one."""
        factors: dict[_Names, int | Fraction] = {}
        order: dict[_Names, _Names] = {}  # the order in which these names were first multiplied
        for term in expression.terms:
            names = _cancelled(map(self.symbol, term.symbols), map(self.symbol, term.divisors))
            alike = (tuple(sorted(names[0])), tuple(sorted(names[1])))
            order.setdefault(alike, names)
            factors[alike] = factors.get(alike, 0) + term.factor
        positive_first = sorted(factors.items(), key=lambda term: term[1] < 0)
        return add_up((factor, order[names][0], order[names][1]) for names, factor in positive_first)


def _cancelled(factors: Iterable[str], divisors: Iterable[str]) -> _Names:
    above, below = list(factors), list[str]()
    for name in divisors:
        if name in above:
            above.remove(name)
        else:
            below.append(name)
    return tuple(above), tuple(below)


def add_up(terms: Iterable[tuple[int | Fraction, Sequence[str], Sequence[str]]], dot: str = "·") -> str:
    """A sum as text; each term is a number with its factors and divisors.

    >>> add_up([(Fraction(1, 2), ["N", "N"], []), (Fraction(-1, 2), ["N"], [])])
    'N·N/2 − N/2'
    >>> add_up([(Fraction(3, 2), ["d", "d_ff"], ["H", "d_h"])])
    '3·d·d_ff/(2·H·d_h)'
    """
    text = ""
    for number, factors, divisors in terms:
        above, below = abs(Fraction(number)).as_integer_ratio()
        product = dot.join([*([f"{above:,}"] if above != 1 or not factors else []), *factors])
        sign = (" − " if number < 0 else " + ") if text else "−" if number < 0 else ""
        under = [*([f"{below:,}"] if below != 1 else []), *divisors]
        divisor = f"/({dot.join(under)})" if len(under) > 1 else "".join(f"/{name}" for name in under)
        text += sign + product + divisor
    return text


_CLASSIC = {"d": "d_model", "d_h": "d_head", "G": "H_kv"}
_LECTURE = {"N": "T", "H": "h", "G": "h_kv", "T": "n_types", "E": "n_exp"}  # T: BERT's token types
_PRIMED = {"X": "E", "x": "e", "x'": "e'", "W_Q": "W'_Q", "W_K": "W'_K", "W_V": "W'_V", "W_O": "W'_O"}
NotationKey = Literal["classic", "lecture"]
NOTATIONS: Mapping[NotationKey, Notation] = {
    "classic": Notation({}, _CLASSIC, {"d_h": "d_k", "d_v": "d_v"}),
    "lecture": Notation(_PRIMED, _LECTURE),
}
IN_CODE = Notation({}, {})  # for programs with a bug, which name sizes as the tables do
# Other names for a symbol, each readable on sheets where it can't mean anything else.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "N": ("n", "T", "t", "seq_len"),
    "M": ("m",),
    "B": ("b", "batch_size", "bsz"),
    "d": ("D", "d_model", "hidden_size", "n_embd"),
    "H": ("h", "n_heads", "n_head", "num_heads"),
    "G": ("H_kv", "h_kv", "n_kv_heads", "num_kv_heads"),
    "d_h": ("d_head", "head_dim", "d_k", "d_q", "d_qk", "qk_head_dim"),
    "d_v": ("d_head", "head_dim", "v_head_dim"),
    "d_ff": ("d_mlp", "intermediate_size", "ffn_dim"),
    "d_exp": ("d_ff", "moe_intermediate_size"),
    "E": ("num_experts", "n_experts"),
    "k": ("top_k",),
    "V": ("vocab_size",),
    "L": ("n_layers", "n_layer", "num_layers"),
}


@dataclass(frozen=True, eq=False)
class SheetSymbols:
    """The symbols that one sheet's answers may use, their names, and which expressions its model makes equal."""

    problem: Problem
    notation: Notation
    in_letters: bool

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """The symbols of the sheet's answers, and d, H and d_h, in the order of the sizes."""
        asked = {symbol for blank in self.problem.blanks for symbol in self.problem.expression(blank).symbols}
        always = {"d", "H", "d_h", *(("N", "G", "d_nope", "d_rope") if self.in_letters else ())}
        return tuple(symbol for symbol in self.problem.sizes if symbol in asked | always)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The symbols in the sheet's notation, each once, N and M first."""
        tokens_first = sorted(self.in_order, key=lambda symbol: symbol not in ("N", "M"))
        return tuple(dict.fromkeys(map(self.notation.symbol, tokens_first)))

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """The symbol that each readable name stands for: the notation's names come before any others."""
        names: dict[str, str] = {self.notation.symbol(symbol): symbol for symbol in reversed(self.in_order)}
        for kind in ({symbol: (symbol,) for symbol in self.in_order}, OTHER_NAMES):
            meant = dict[str, list[str]]()
            for symbol in self.in_order:
                for name in kind.get(symbol, ()):
                    meant.setdefault(name, []).append(symbol)
            for name, symbols in meant.items():
                if all(self.are_identical(symbols[0], other) for other in symbols):
                    names.setdefault(name, symbols[0])
        for name, symbol in [*names.items()]:
            names.setdefault(name.replace("_", ""), symbol)
        return names

    @cached_property
    def size_by_name(self) -> Mapping[str, int]:
        return {name: self.problem.sizes[symbol] for name, symbol in self.by_name.items()}

    def are_identical(self, first: str, second: str) -> bool:
        """Whether two symbols are always equal in this model, as G and H are without grouped queries."""
        return self.canonical(Expression.symbol(first)) == self.canonical(Expression.symbol(second))

    def are_equal(self, typed: Expression, length: Expression) -> bool:
        """Whether a typed expression means a length; it may have a size's number in place of its symbol.

        Expressions are equal if their values are, where symbols have numbers unlike any size. That is far cheaper than
        writing them alike.
        """
        here, anywhere = frozenset[str](), frozenset(self.problem.sizes)
        if _values(self, typed, here) != _values(self, length, here):
            return False
        if _values(self, typed, anywhere) == _values(self, length, anywhere):
            return True
        if all(term.factor == 1 for term in typed.terms):
            return False
        # Numbers may stand for all sizes but those of the input and, where these aren't in the answer, one other.
        others = typed.symbols.union(length.symbols, ("d", "H", "d_h", "d_rope")) & self.problem.sizes.keys()
        for free in [frozenset("NM"), *(frozenset(("N", "M", symbol)) for symbol in sorted(others))]:
            for independent in self._independent:
                values = _values(self, typed, free, independent)
                if values[0] != values[1] and values == _values(self, length, free, independent):
                    return True
        return False

    @cached_property
    def _independent(self) -> tuple[frozenset[str], ...]:
        """Which of d and d_ff may have numbers or keep symbols of their own, though others determine them."""
        ways = [frozenset[str](), frozenset(["d"])]
        if "d_ff" in self.identities:
            ways += [frozenset(["d_ff"]), frozenset(["d", "d_ff"])]
        return tuple(ways)

    def canonical(self, expression: Expression) -> Expression:
        """The expression in symbols that this model doesn't make equal, so that equal values are equal expressions."""
        return _substituted(expression, self.identities)

    @cached_property
    def identities(self) -> Mapping[str, Expression]:
        """The symbols that this model makes equal to others, with what they are equal to."""
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


@lru_cache(VALUES_REMEMBERED)
def _values(
    symbols: SheetSymbols, expression: Expression, free: frozenset[str], independent: frozenset[str] = frozenset()
) -> tuple[Fraction, ...]:
    """Two values of an expression: each symbol has its size, or two numbers unlike any size if it is `free`.

    What the model makes equal stays equal, except for `independent` symbols. Where heads share d, it follows from H and
    d_h; if d is independent, d_h follows from d and H.
    """
    return tuple(expression.value(sizes) for sizes in _sizes(symbols, free, independent))


@lru_cache(VALUES_REMEMBERED)
def _sizes(
    symbols: SheetSymbols, free: frozenset[str], independent: frozenset[str]
) -> tuple[Mapping[str, int | Fraction], ...]:
    both = list[Mapping[str, int | Fraction]]()
    for turn in range(2):
        sizes: dict[str, int | Fraction] = {
            symbol: _unlike_sizes(symbol, turn) if symbol in free else size
            for symbol, size in symbols.problem.sizes.items()
        }
        meanings = {name: meaning for name, meaning in symbols.identities.items() if name not in independent}
        if "d" in symbols.identities and "d" in independent:
            sizes["d_h"] = Fraction(sizes["d"]) / sizes["H"]
        both.append({**sizes, **{symbol: meaning.value(sizes) for symbol, meaning in meanings.items()}})
    return tuple(both)


def _unlike_sizes(symbol: str, turn: int) -> int:
    return 10**9 + int(sha256(f"{symbol} {turn}".encode()).hexdigest()[:8], base=16)


def _substituted(expression: Expression, form: Mapping[str, Expression]) -> Expression:
    try:
        return expression.substitute(form)
    except ExpressionError:
        return expression
