"""The number of a model's parameters as a sum of products, in symbols and in numbers, read off its tensors.

>>> from app.models.read_config import build_architecture
>>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 3}
>>> found = parameter_formula(build_architecture({"model_type": "llama", "vocab_size": 10, **sizes}))
>>> found.symbols
'V·d + L·(4·d·d + 3·d·d_ff + 2·d) + d + V·d'
>>> found.numbers
'10·8 + 3·(4·8·8 + 3·8·16 + 2·8) + 8 + 10·8'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

from app.algebra.expression import Expression, Term
from app.models.architecture import Architecture, LayerStack
from app.models.parameter_count import LAYER_BUCKETS
from app.models.parameter_specs import Bucket, ParameterSpec

# A size that is written as another where the model has them equal, so that the sum stays short; see `Equality`.
EQUAL = (("d_v", "d_h"), ("G", "H"), ("H_dec", "H"), ("d_h_dec", "d_h"), ("d_ff_dec", "d_ff"), ("d_emb", "d"))
ALL_HEADS = (("H", "d_h"), ("H_dec", "d_h_dec"))  # side by side they are as wide as the model, in most of them
_WORD = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Equality:
    """Two ways to write one size of this model, of which the sum uses the second: H·d_h = d."""

    first: str
    second: str
    size: int


@dataclass(frozen=True)
class BucketSum:
    """All tensors of one bucket, outside the layers or in one layer: how many numbers, in symbols and counted."""

    bucket: Bucket
    dim: Expression
    symbols: str
    numbers: str
    count: int


@dataclass(frozen=True)
class Summand:
    """One summand of the sum: tensors outside the layers, or layers that hold the same tensors.

    `layers` is how many layers those are, 0 outside; `times` that number in symbols. `decoder` tells the layers of a
    decoder that reads an encoder from the encoder's.
    """

    pieces: tuple[BucketSum, ...]
    symbols: str
    numbers: str
    count: int
    layers: int = 0
    times: str = ""
    decoder: bool = False

    @property
    def total(self) -> int:
        return self.count * (self.layers or 1)

    @property
    def bucket(self) -> str:
        """What tensors outside the layers are for; "layers" for layers."""
        return "layers" if self.layers else self.pieces[0].bucket


@dataclass(frozen=True)
class ParameterFormula:
    """The whole sum, part by part, and the equalities that shortened it.

    `length` holds the products that count positions: empty where no parameter knows how long the input is.
    """

    parts: tuple[Summand, ...]
    symbols: str
    numbers: str
    total: int
    equalities: tuple[Equality, ...]
    length: tuple[str, ...]


def parameter_formula(architecture: Architecture) -> ParameterFormula:
    """The parameters of a model, each tensor once, as V·d + L·(…) + d + V·d."""
    writer = _Writer(architecture)
    outside = architecture.outside_parameters
    parts = (
        *_outside(writer, outside, "embedding"),
        *(part for layers in architecture.stacks for part in _kinds(writer, layers)),
        *_outside(writer, outside, "other"),
        *_outside(writer, outside, "output_head"),
    )
    dims = [piece.dim for part in parts for piece in part.pieces]
    counted = {term for dim in dims for term in dim.terms if length_symbols(architecture) & set(term.symbols)}
    return ParameterFormula(
        parts=parts,
        symbols=" + ".join(part.symbols for part in parts),
        numbers=" + ".join(part.numbers for part in parts),
        total=sum(part.total for part in parts),
        equalities=writer.used(),
        length=tuple(writer.term(term) for term in sorted(counted, key=_order)),
    )


def length_symbols(architecture: Architecture) -> frozenset[str]:
    """The symbols of this model that say how long its input may be: C, and the sizes of tables that follow from C."""
    found = {"C", "P", "P_dec"}
    for reading in architecture.size_sources:
        named = set(_WORD.findall(reading.rule))
        if "C" in named:
            found.add(reading.symbol)
    return frozenset(found)


def in_numbers(rule: str, sizes: Mapping[str, int]) -> str:
    """A product, sum or quotient with each symbol as its number: '4*d' becomes '4·768'."""
    return _WORD.sub(lambda match: _plain(sizes[match[0]]), rule).replace("*", "·")


class _Writer:
    """Writes sizes of one architecture, the same way throughout, and remembers which equalities it used."""

    def __init__(self, architecture: Architecture) -> None:
        self.sizes = architecture.all_sizes
        size = self.sizes.get
        self.same = {a: b for a, b in EQUAL if a in self.sizes and size(a) == size(b)}
        heads = {tuple(self.same.get(part, part) for part in pair) for pair in ALL_HEADS}
        self.pairs = [pair for pair in sorted(heads) if self._wide(pair)]
        self.seen = dict[str, Equality]()

    def _wide(self, pair: tuple[str, ...]) -> bool:
        heads, width = (self.sizes.get(part, 0) for part in pair)
        return heads * width == self.sizes["d"]

    def used(self) -> tuple[Equality, ...]:
        return tuple(self.seen.values())

    def short(self, dim: Expression) -> Expression:
        """The dim with equal sizes under one name, so that like terms meet."""
        terms = [Term(term.factor, tuple(self._short(term.symbols))) for term in dim.terms]
        return reduce(add, (Expression((term,)) for term in terms))

    def _short(self, symbols: Iterable[str]) -> list[str]:
        symbols = list(symbols)
        for symbol in symbols:
            if symbol in self.same:
                self._use(symbol, self.same[symbol])
        kept = [self.same.get(symbol, symbol) for symbol in symbols]
        for heads, width in self.pairs:
            while heads in kept and width in kept:
                kept.remove(heads)
                kept.remove(width)
                kept.append("d")
                self._use(f"{heads}·{width}", "d")
        return kept

    def _use(self, first: str, second: str) -> None:
        self.seen.setdefault(first, Equality(first, second, self.sizes[second]))

    def symbols(self, dim: Expression) -> str:
        return " + ".join(self.term(term) for term in sorted(dim.terms, key=_order))

    def numbers(self, dim: Expression) -> str:
        return " + ".join(in_numbers(self.term(term), self.sizes) for term in sorted(dim.terms, key=_order))

    def term(self, term: Term) -> str:
        return str(term).replace("*", "·")

    def piece(self, bucket: Bucket, weights: Iterable[ParameterSpec]) -> BucketSum:
        dim = self.short(reduce(add, (weight.count for weight in weights)))
        return BucketSum(bucket, dim, self.symbols(dim), self.numbers(dim), dim.size(self.sizes))


def _outside(writer: _Writer, weights: Iterable[ParameterSpec], wanted: str) -> Iterable[Summand]:
    """The one part that all tensors outside the layers for one purpose make, none where there are none."""
    named = {"embedding", "output_head"}
    chosen = [w for w in weights if w.bucket == wanted or (wanted == "other" and w.bucket not in named)]
    if chosen:
        piece = writer.piece(chosen[0].bucket if wanted in named else "other", chosen)
        yield Summand((piece,), piece.symbols, piece.numbers, piece.count)


def _kinds(writer: _Writer, layers: LayerStack) -> Iterable[Summand]:
    """The layers of one stack, those with the same tensors together, in the order in which they first come."""
    kinds = dict[tuple[ParameterSpec, ...], int]()
    for run in layers.runs:
        kinds[run.parameters] = kinds.get(run.parameters, 0) + run.count
    for held, count in kinds.items():
        times = layers.spec.count if len(kinds) == 1 else str(count)
        yield _layer_part(writer, held, count, times, layers.spec.decoder)


def _layer_part(writer: _Writer, held: tuple[ParameterSpec, ...], count: int, times: str, decoder: bool) -> Summand:
    chosen = {bucket: [w for w in held if w.bucket == bucket] for bucket in LAYER_BUCKETS}
    pieces = tuple(writer.piece(bucket, weights) for bucket, weights in chosen.items() if weights)
    each = reduce(add, (piece.dim for piece in pieces))
    return Summand(
        pieces,
        f"{times}·({writer.symbols(each)})",
        f"{_plain(count)}·({writer.numbers(each)})",
        sum(piece.count for piece in pieces),
        count,
        times,
        decoder,
    )


def _order(term: Term) -> tuple[object, ...]:
    """The products of most symbols first, as they count most."""
    return (-len(term.symbols), term.symbols, term.factor)


def _plain(number: int) -> str:
    return str(number) if number < 10_000 else f"{number:,}"
