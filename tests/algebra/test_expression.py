"""Symbols for sizes: read from text once, multiplied and added in symbols, and sized at the end."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.algebra.expression import ZERO, Expression, ExpressionError, Formula

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
    assert Expression.parse(written(terms)).size(SIZES) == counted(terms)


@given(SUMS)
def test_order_makes_no_difference(terms: list[list[str]]) -> None:
    """The same terms in any order, their factors in any order, are the same expression."""
    assert Expression.parse(written([term[::-1] for term in terms[::-1]])) == Expression.parse(written(terms))


@given(SUMS, SUMS)
def test_products_and_sums_have_the_sizes_of_products_and_sums(first: list[list[str]], second: list[list[str]]) -> None:
    a, b = Expression.parse(written(first)), Expression.parse(written(second))
    assert (a * b).size(SIZES) == counted(first) * counted(second)
    assert (a + b).size(SIZES) == counted(first) + counted(second)


@given(SUMS)
def test_a_printed_expression_reads_back_as_itself(terms: list[list[str]]) -> None:
    expression = Expression.parse(written(terms))
    assert Expression.parse(str(expression)) == expression


def test_two_symbols_of_one_length_are_two_expressions() -> None:
    sizes = {"N": 128, "d_h": 128}
    assert Expression.parse("N").size(sizes) == Expression.parse("d_h").size(sizes) == 128
    assert Expression.parse("N") != Expression.parse("d_h")


def test_like_terms_are_added_up() -> None:
    assert str(Expression.parse("N + 1 + N + 2")) == "2*N + 3"
    assert str(Expression.parse("d_h*G")) == "G*d_h"


def test_an_expression_knows_its_symbols() -> None:
    assert Expression.parse("G*d_h + 1").symbols == {"G", "d_h"}


@pytest.mark.parametrize(
    "text",
    ["", "N*", "N+", "(N", "4 096", "²", "N d", "2d", "(N)(d)", "__import__('os')", "9**9", "1.5", "d/"],
)
def test_anything_else_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        Expression.parse(text)
    assert refused.value.pattern == text


@given(SUMS, SUMS)
def test_differences_and_brackets_are_read(first: list[list[str]], second: list[list[str]]) -> None:
    a, b = written(first), written(second)
    assert Expression.parse(f"({a})*({a} - ({b}))").value(SIZES) == counted(first) * (counted(first) - counted(second))
    assert Expression.parse("d^2 - -1") == Expression.parse("d*d + 1")


def test_a_size_is_whole_or_rounded_on_purpose() -> None:
    half = Expression.parse("N/2")
    with pytest.raises(ExpressionError, match=r"9/2 is not a whole number in '1/2\*N'"):
        half.size({"N": 9})
    assert (half.size({"N": 9}, "down"), half.size({"N": 9}, "up"), half.size({"N": 8})) == (4, 5, 4)
    formulas = map(Formula.parse, ("N/2", "floor(N/2)", "ceil(N/2)", "floor((N - 1)*(N + 1)/3)", "N/Z"))
    assert [formula.number({"N": 9, "Z": 0}) for formula in formulas] == [None, 4, 5, 26, None]
    with pytest.raises(ExpressionError, match="no size for E"):
        Formula.parse("N*E").number({"N": 9})


def test_a_symbol_without_a_size_is_named() -> None:
    with pytest.raises(ExpressionError, match=r"no size for d_h in 'G\*d_h' \(sizes given: G=2\)") as refused:
        Expression.parse("G*d_h").size({"G": 2})
    assert refused.value.sizes == {"G": 2}


@given(SUMS, PRODUCTS)
def test_quotients_and_differences_are_exact(terms: list[list[str]], product: list[str]) -> None:
    a, b = Expression.parse(written(terms)), Expression.parse(written([product]))
    assert (a / b).value(SIZES) == Fraction(counted(terms), counted([product]))
    assert (a / b * b, a - a) == (a, ZERO)


@given(SUMS, st.fractions(min_value=1, max_value=99, max_denominator=9))
def test_numbers_are_operands_on_either_side(terms: list[list[str]], number: Fraction) -> None:
    a, as_expression = Expression.parse(written(terms)), Expression.number(number)
    assert (a + number, number + a, a - number) == (a + as_expression, as_expression + a, a - as_expression)
    assert (number - a, a * number, number * a) == (as_expression - a, a * as_expression, as_expression * a)
    assert (a / number, number / Expression.symbol("N")) == (a / as_expression, as_expression / Expression.symbol("N"))


def test_what_is_divided_by_is_cancelled() -> None:
    d, H = Expression.symbol("d"), Expression.symbol("H")
    assert (d * d / d, str(d * d / (d * H))) == (d, "d/H")
    with pytest.raises(ExpressionError, match="cannot divide by a sum"):
        d / (d + H)
    with pytest.raises(ZeroDivisionError):
        d / ZERO


@given(SUMS, PRODUCTS)
def test_a_symbol_can_be_replaced_by_what_it_means(terms: list[list[str]], product: list[str]) -> None:
    meaning = Expression.parse(written([product]))
    replaced = Expression.parse(written(terms)).substitute({"N": meaning})
    assert replaced.value(SIZES) == Expression.parse(written(terms)).value({**SIZES, "N": counted([product])})


def test_a_product_can_be_written_as_one_symbol() -> None:
    product = Expression.parse("H*d_h")
    folded = Expression.parse("2*H*H*d_h*d_h*N + H*d + d_h*H").fold(product, "d")
    assert folded == Expression.parse("2*d*d*N + H*d + d")


def test_a_sum_of_many_starts_at_zero() -> None:
    assert sum((Expression.parse(text) for text in ("N", "d", "N")), ZERO) == Expression.parse("2*N + d")
    assert (sum((), ZERO), str(ZERO), ZERO.size({})) == (ZERO, "0", 0)
