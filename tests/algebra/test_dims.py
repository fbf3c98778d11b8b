"""Symbols for sizes: read from text once, multiplied and added in symbols, and sized at the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.algebra.dims import Dim, DimError

SIZES = {"N": 100, "d": 4096, "H": 32, "G": 8, "d_h": 128}
SYMBOLS = st.sampled_from(sorted(SIZES))
PRODUCTS = st.lists(st.one_of(SYMBOLS, st.integers(1, 99).map(str)), min_size=1, max_size=4)
SUMS = st.lists(PRODUCTS, min_size=1, max_size=4)


def written(terms: list[list[str]]) -> str:
    return " + ".join("*".join(term) for term in terms)


def counted(terms: list[list[str]]) -> int:
    total = 0
    for term in terms:
        product = 1
        for piece in term:
            product *= SIZES.get(piece) or int(piece)
        total += product
    return total


@given(SUMS)
def test_a_sum_of_products_has_the_size_that_arithmetic_gives(terms: list[list[str]]) -> None:
    """Multiplying and adding the sizes one by one gives what the Dim gives."""
    assert Dim.parse(written(terms)).size(SIZES) == counted(terms)


@given(SUMS)
def test_order_makes_no_difference(terms: list[list[str]]) -> None:
    """The same terms in any order, their factors in any order, are the same Dim."""
    assert Dim.parse(written([term[::-1] for term in terms[::-1]])) == Dim.parse(written(terms))


@given(SUMS, SUMS)
def test_products_and_sums_of_dims_are_those_of_their_sizes(first: list[list[str]], second: list[list[str]]) -> None:
    """size(a·b) = size(a)·size(b), and size(a+b) = size(a)+size(b)."""
    a, b = Dim.parse(written(first)), Dim.parse(written(second))
    assert (a * b).size(SIZES) == counted(first) * counted(second)
    assert (a + b).size(SIZES) == counted(first) + counted(second)


@given(SUMS)
def test_a_printed_dim_reads_back_as_itself(terms: list[list[str]]) -> None:
    """Printing and parsing are inverse to each other."""
    dim = Dim.parse(written(terms))
    assert Dim.parse(str(dim)) == dim


def test_two_dims_of_one_length_are_two_dims() -> None:
    """With N = d_h = 128 the sizes are equal, and N is still not d_h."""
    sizes = {"N": 128, "d_h": 128}
    assert Dim.parse("N").size(sizes) == Dim.parse("d_h").size(sizes) == 128
    assert Dim.parse("N") != Dim.parse("d_h")


def test_like_terms_are_added_up() -> None:
    """N + 1 + N + 2 is 2·N + 3, and prints symbols before numbers."""
    assert str(Dim.parse("N + 1 + N + 2")) == "2*N + 3"
    assert str(Dim.parse("d_h*G")) == "G*d_h"


def test_a_dim_knows_its_symbols() -> None:
    """G·d_h + 1 needs the sizes of G and d_h."""
    assert Dim.parse("G*d_h + 1").symbols == {"G", "d_h"}


@pytest.mark.parametrize("text", ["", "N*", "N+", "N-1", "4 096", "²", "N d", "__import__('os')", "9**9", "1.5", "d/H"])
def test_anything_else_is_refused_with_its_text(text: str) -> None:
    """A Dim is symbols, whole numbers, * and +; the error carries the text that was no Dim."""
    with pytest.raises(DimError) as refused:
        Dim.parse(text)
    assert refused.value.pattern == text


def test_a_symbol_without_a_size_is_named() -> None:
    """The error says which symbol has no size, in which Dim, and which sizes there were."""
    with pytest.raises(DimError, match=r"no size for d_h in 'G\*d_h' \(sizes given: G=2\)") as refused:
        Dim.parse("G*d_h").size({"G": 2})
    assert refused.value.sizes == {"G": 2}
