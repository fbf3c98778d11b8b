"""Answers in symbols, such as T × d/h: typed text read into expressions, which are compared by value.

>>> names = {"d": "d", "h": "H", "T": "N"}
>>> read_symbols("d/h", names) == read_symbols("2*d / (2*h)", names)
True
>>> read_symbols("d/q", names)
Unreadable(reason='unknown-letter', detail='q', symbols='')
"""

from __future__ import annotations

from collections.abc import Mapping

from app.algebra.expression import ONE, ZERO, Expression, ExpressionError
from app.algebra.parser import MAX_VALUE, CannotReadError, ExpressionParser, Unreadable
from app.sheets.answer_tokens import answer_tokens, number_value, tidy_answer

MAX_CHARACTERS = 2000  # a mixture of experts' parameters, as a sum of products, take up to 1,100
MAX_TERMS, MAX_DEGREE = 50, 50
MAX_STEPS = 1000  # terms of all intermediate sums and products; a right answer takes a tenth of it


def read_symbols(text: str, names: Mapping[str, str], *, of_author: bool = False) -> Expression | Unreadable | None:
    """The expression that a typed text means; None for an empty box, Unreadable if it isn't a length in symbols."""
    if not text.strip():
        return None

    def atom(token: str) -> Expression | None:
        if symbol := names.get(token):
            return Expression.symbol(symbol)
        number = number_value(token)
        return None if number is None else Expression.number(number)

    steps = 0  # a step is a product of any intermediate sum

    def check(meaning: Expression) -> Expression:
        nonlocal steps
        steps += len(meaning.terms)
        if steps > MAX_STEPS or len(meaning.terms) > MAX_TERMS:
            raise CannotReadError("too-long")
        for factor, symbols, divisors in meaning.terms:
            if len(symbols) + len(divisors) > MAX_DEGREE:
                raise CannotReadError("too-long")
            if abs(factor.numerator) > MAX_VALUE or factor.denominator > MAX_VALUE:
                raise CannotReadError("too-large")
        return meaning

    try:
        tokens = answer_tokens(tidy_answer(text, MAX_CHARACTERS), names, prefixes=False)
        meaning = ExpressionParser(tokens, atom, check).value()
    except ExpressionError:  # a quotient by a sum isn't a matrix's length
        return Unreadable("incomplete")
    except CannotReadError as error:
        reason = error.unreadable
        return Unreadable("unknown-letter", reason.detail) if reason.reason == "letters" else reason
    return meaning if meaning.symbols or meaning in (ZERO, ONE) or of_author else Unreadable("numbers")
