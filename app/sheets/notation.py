"""How sheets write tensors and symbols: one Notation for each kind of course.

>>> [notation.write(Expression.parse("H*d_h")) for notation in NOTATIONS.values()]
['H·d_head', 'h·d_h']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from app.algebra.expression import Expression

# Symbols that are written as another one if the model makes the two equal: without grouped queries, G is H.
ONE_NAME = {"G": "H", "d_v": "d_h", "d_rot": "d_h"}
_Names = tuple[tuple[str, ...], tuple[str, ...]]  # factors and divisors


def without_own_name(sizes: Mapping[str, int]) -> frozenset[str]:
    """The symbols written as another symbol in a model of these sizes: those in ONE_NAME that are equal.

    >>> sorted(without_own_name({"H": 32, "G": 8, "d_h": 128, "d_v": 128}))
    ['d_v']
    """
    return frozenset(symbol for symbol, other in ONE_NAME.items() if sizes.get(symbol) == sizes[other])


@dataclass(frozen=True)
class Notation:
    """How one kind of course writes things: `letters` by tensor key, and `symbols` by the tables' symbol.

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

    def letter(self, key: str, in_table: str) -> str:
        """A tensor's letter in this notation, by default the table's letter `in_table`."""
        return self.letters.get(key, in_table)

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
_PRIMED = {
    "input": "E",
    "all_inputs": "E",
    "token": "e",
    "other_token": "e'",
    "W_Q": "W'_Q",
    "W_K": "W'_K",
    "W_V": "W'_V",
    "W_O": "W'_O",
}
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
