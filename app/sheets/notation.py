"""How sheets write tensors and symbols: one Notation for each kind of course.

>>> [notation.write(Expression.parse("H*d_h")) for notation in NOTATIONS.values()]
['H·d_head', 'h·d_h', 'n_heads·head_dim']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from app.algebra.expression import Expression, Term


@dataclass(frozen=True)
class Notation:
    """How one kind of course writes things: `letters` by tensor key, and `symbols` for those of the tables.

    `_` starts a subscript. Tensors and symbols that it doesn't name keep the table's own.
    """

    letters: Mapping[str, str]
    symbols: Mapping[str, str]

    def letter(self, key: str, own: str) -> str:
        """The letter of a tensor by its key: this notation's, or else `own`, the table's."""
        return self.letters.get(key, own)

    def write(self, expression: Expression) -> str:
        """An expression as text in this notation's names, with a dot for times: 'H·d_head' for H*d_h in the classic.

        Terms that become alike are added up: with d_h and d_v both written d_head, d_h + d_v is '2·d_head'.
        """
        factors: dict[tuple[str, ...], int | Fraction] = {}
        order: dict[tuple[str, ...], tuple[str, ...]] = {}  # the first order in which these names were multiplied
        for term in expression.terms:
            names = tuple(self.symbols.get(symbol, symbol) for symbol in term.symbols)
            sorted_names = tuple(sorted(names))
            order.setdefault(sorted_names, names)
            factors[sorted_names] = factors.get(sorted_names, 0) + term.factor
        return " + ".join(str(Term(factor, order[names])).replace("*", "·") for names, factor in factors.items())


_CODE = {"input": "x", "queries": "q", "keys": "k", "values": "v", "scores": "scores", "weights": "attn",
         "context": "ctx", "output": "out", "W_Q": "wq", "W_K": "wk", "W_V": "wv", "W_O": "wo"}  # fmt: skip
_CLASSIC = {"d": "d_model", "d_h": "d_head", "d_v": "d_head", "G": "H_kv"}
_LECTURE = {"N": "T", "H": "h", "G": "h_kv"}
_FRAMEWORK = {"N": "seq_len", "d": "hidden_size", "H": "n_heads", "G": "n_kv_heads", "d_h": "head_dim",
              "d_v": "head_dim", "d_ff": "intermediate_size", "V": "vocab_size", "L": "n_layers"}  # fmt: skip
_PRIMED = {"input": "E", "W_Q": "W'_Q", "W_K": "W'_K", "W_V": "W'_V", "W_O": "W'_O"}
NOTATIONS: Mapping[str, Notation] = {
    "classic": Notation({}, _CLASSIC),
    "lecture": Notation(_PRIMED, _LECTURE),
    "framework": Notation(_CODE, _FRAMEWORK),
}
