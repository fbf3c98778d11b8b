"""A model's number of parameters as a sum of products, in symbols and in numbers, read off its tensors.

>>> from app.models.read_config import build_architecture
>>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 3}
>>> formula = parameter_formula(build_architecture({"model_type": "llama", "vocab_size": 10, **sizes}))
>>> formula.symbols
'V·d + L·(4·d·d + 3·d·d_ff + 2·d) + d + V·d'
>>> formula.numbers
'10·8 + 3·(4·8·8 + 3·8·16 + 2·8) + 8 + 10·8'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from app.algebra.expression import ZERO, Expression, Term
from app.algebra.number_text import format_number
from app.models.architecture import Architecture, LayerStack
from app.models.parameter_count import LAYER_BUCKETS, active_count
from app.models.parameter_specs import Bucket, ParameterSpec, ParameterSpecs, number_of_parameters

# Sizes that are equal in many models: the first is then written as the second, which keeps the sum short.
SYNONYMS = (("d_v", "d_h"), ("G", "H"), ("H_dec", "H"), ("d_h_dec", "d_h"), ("d_ff_dec", "d_ff"), ("d_emb", "d"))
# The width of all heads together is written as d in models where they are equal.
HEADS_AND_WIDTHS = (("H", "d_h"), ("H_dec", "d_h_dec"))
_SYMBOL = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Equality:
    """Two ways to write the same size of this model; the formula uses the second: H·d_h = d."""

    first: str
    second: str
    size: int


@dataclass(frozen=True)
class BucketSum:
    """How many numbers all tensors of one bucket hold, outside the layers or in one layer."""

    bucket: Bucket
    expression: Expression
    symbols: str
    numbers: str
    count: int
    active: int


@dataclass(frozen=True)
class Summand:
    """One summand of the formula: tensors outside the layers, or all layers with the same tensors.

    `layers` is the number of layers, 0 for tensors outside; `multiplier` is that number in symbols.
    """

    buckets: tuple[BucketSum, ...]
    symbols: str
    numbers: str
    count: int
    layers: int = 0
    multiplier: str = ""
    decoder: bool = False

    @property
    def total(self) -> int:
        """The number of parameters of this summand in all its layers."""
        return self.count * (self.layers or 1)

    @property
    def bucket(self) -> str:
        """The purpose of tensors outside the layers; "layers" for layers."""
        return "layers" if self.layers else self.buckets[0].bucket


@dataclass(frozen=True)
class ParameterFormula:
    """The whole sum, summand by summand, and the equalities that shortened it.

    `position_products` are the products that count positions ("P·d"), each with the rows of its tables; empty if no
    parameter depends on the longest input.
    """

    summands: tuple[Summand, ...]
    symbols: str
    numbers: str
    total: int
    equalities: tuple[Equality, ...]
    position_products: Mapping[str, int]


def parameter_formula(architecture: Architecture) -> ParameterFormula:
    """A model's parameters, each tensor once, as V·d + L·(…) + d + V·d in symbols and in numbers."""
    writer = _Writer(architecture)
    outside = architecture.outside_parameters
    summands = (
        *_outside_summand(writer, outside, "embedding"),
        *(summand for stack in architecture.stacks for summand in _layer_summands(writer, stack)),
        *_outside_summand(writer, outside, "other"),
        *_outside_summand(writer, outside, "output_head"),
    )
    lengths = length_symbols(architecture)
    terms = {term for summand in summands for bucket in summand.buckets for term in bucket.expression.terms}
    position_terms = sorted((term for term in terms if lengths.intersection(term.symbols)), key=_most_symbols_first)
    rows = {
        _with_dots(term): int(term.factor * prod(architecture.all_sizes[s] for s in term.symbols if s in lengths))
        for term in position_terms
    }
    return ParameterFormula(
        summands=summands,
        symbols=" + ".join(summand.symbols for summand in summands),
        numbers=" + ".join(summand.numbers for summand in summands),
        total=sum(summand.total for summand in summands),
        equalities=tuple(writer.equalities_used.values()),
        position_products=rows,
    )


def length_symbols(architecture: Architecture) -> frozenset[str]:
    """The symbols for the length of this model's input: C, P, P_dec and all sizes that follow from C by rule."""
    follow_from_c = (source.symbol for source in architecture.size_sources if "C" in _SYMBOL.findall(source.rule))
    return frozenset({"C", "P", "P_dec", *follow_from_c})


def in_numbers(rule: str, sizes: Mapping[str, int]) -> str:
    """A product, sum or quotient with each size as its number.

    Example: "4*d + V/H" -> "4·768 + 50,257/12"
    """
    return _SYMBOL.sub(lambda match: format_number(sizes[match[0]]) if match[0] in sizes else match[0], rule).replace(
        "*", "·"
    )


class _Writer:
    """Writes expressions in one model's sizes, with one name for equal sizes, and collects the equalities it used."""

    def __init__(self, architecture: Architecture) -> None:
        self.sizes = architecture.all_sizes
        self.equalities_used = dict[str, Equality]()
        self._renames = {
            first: Expression.symbol(second)
            for first, second in SYNONYMS
            if first in self.sizes and self.sizes[first] == self.sizes.get(second)
        }
        pairs = ((Expression.symbol(heads), Expression.symbol(width)) for heads, width in HEADS_AND_WIDTHS)
        products = ((heads * width).substitute(self._renames) for heads, width in pairs)
        self._as_wide_as_model = [
            product
            for product in dict.fromkeys(products)
            if product.symbols <= self.sizes.keys() and product.size(self.sizes) == self.sizes["d"]
        ]

    def bucket_sum(self, bucket: Bucket, parameters: Sequence[ParameterSpec]) -> BucketSum:
        """The numbers in these tensors, added up in symbols and in numbers, with how many one token uses."""
        total = sum((self._shorten_term(term) for term in number_of_parameters(parameters).terms), ZERO)
        symbols = " + ".join(_with_dots(term) for term in sorted(total.terms, key=_most_symbols_first))
        active = sum(active_count(spec, spec.count.size(self.sizes), self.sizes) for spec in parameters)
        return BucketSum(bucket, total, symbols, in_numbers(symbols, self.sizes), total.size(self.sizes), active)

    def _shorten_term(self, term: Term) -> Expression:
        for symbol in term.symbols:
            if symbol in self._renames:
                self._note_equality(symbol, str(self._renames[symbol]))
        product = Expression((term,)).substitute(self._renames)
        for heads in self._as_wide_as_model:
            folded = product.fold(heads, "d")
            if folded != product:
                self._note_equality(_with_dots(heads.terms[0]), "d")
            product = folded
        return product

    def _note_equality(self, first: str, second: str) -> None:
        self.equalities_used.setdefault(first, Equality(first, second, self.sizes[second]))


def _outside_summand(writer: _Writer, parameters: ParameterSpecs, wanted: Bucket) -> Iterator[Summand]:
    named: tuple[Bucket, ...] = ("embedding", "output_head")
    chosen = [spec for spec in parameters if spec.bucket == wanted or (wanted == "other" and spec.bucket not in named)]
    if chosen:
        bucket = writer.bucket_sum(wanted, chosen)
        yield Summand((bucket,), bucket.symbols, bucket.numbers, bucket.count)


def _layer_summands(writer: _Writer, stack: LayerStack) -> Iterator[Summand]:
    for kind in stack.kinds:
        by_bucket = {bucket: [spec for spec in kind.parameters if spec.bucket == bucket] for bucket in LAYER_BUCKETS}
        buckets = tuple(writer.bucket_sum(bucket, specs) for bucket, specs in by_bucket.items() if specs)
        multiplier = stack.spec.count if len(stack.kinds) == 1 else str(kind.layers)
        yield Summand(
            buckets,
            _times("" if kind.layers == 1 else multiplier, [bucket.symbols for bucket in buckets]),
            _times("" if kind.layers == 1 else format_number(kind.layers), [bucket.numbers for bucket in buckets]),
            sum(bucket.count for bucket in buckets),
            kind.layers,
            multiplier,
            stack.spec.decoder,
        )


def _times(multiplier: str, sums: Sequence[str]) -> str:
    whole = " + ".join(in_brackets(text, len(sums)) for text in sums)
    return f"{multiplier}·({whole})" if multiplier else f"({whole})"


def in_brackets(text: str, parts: int) -> str:
    """A sum in brackets, "(4·d·d + 4·d)", if there are several `parts`; any other text as it is."""
    return f"({text})" if " + " in text and parts > 1 else text


def _most_symbols_first(term: Term) -> tuple[object, ...]:
    return (-len(term.symbols), term.symbols, term.factor)


def _with_dots(term: Term) -> str:
    return str(term).replace("*", "·")
