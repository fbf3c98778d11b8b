"""Answers in symbols, such as T × d/h: read from typed text into expressions, which are compared by meaning.

>>> names = {"d": "d", "h": "H", "T": "N"}
>>> read_symbols("d/h", names) == read_symbols("2*d / (2*h)", names)
True
>>> read_symbols("d/q", names)
Unreadable(reason='unknown-letter', detail='q')
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.algebra.expression import Expression, ExpressionError
from app.algebra.parser import CannotReadError, ExpressionParser, Unreadable, normalize_signs, printable

MAX_CHARACTERS = 100
MAX_TERMS = 50
_TOKEN = re.compile(r"[A-Za-zΑ-Ωα-ω][A-Za-z_']*|\d+|[-+*/()]| ")
_ONE = Expression.number(1)


def read_symbols(text: str, names: Mapping[str, str]) -> Expression | Unreadable | None:
    """The expression that a typed text means; None for an empty box, Unreadable if it is no length in symbols.

    `names` gives the symbol that each name stands for on this sheet: {"T": "N"}. Refused are other names, other
    characters than arithmetic has, texts of more than MAX_CHARACTERS, sums of more than MAX_TERMS products, division by
    a sum, and numbers without a symbol, except 1.
    """
    try:
        return _read_expression(text, names)
    except CannotReadError as error:
        return error.unreadable


def _read_expression(text: str, names: Mapping[str, str]) -> Expression | None:
    """The expression that a typed text means, with `names` as the symbol of each name; None for a blank text.

    Raises CannotReadError for other names or characters, broken arithmetic, division by a sum, a text or sum that is
    too long, and a number without a symbol, except 1.
    """
    if not text.strip():
        return None
    if len(text) > MAX_CHARACTERS:
        raise CannotReadError("too-long")
    tokens = _tokens(normalize_signs(text))
    try:
        meaning = ExpressionParser(tokens, lambda token: _atom(token, names), _check_terms).value()
    except ExpressionError:  # what is divided by a sum is no length of a matrix
        raise CannotReadError("incomplete") from None
    if not meaning.symbols and meaning != _ONE:
        raise CannotReadError("numbers")
    return meaning


def _tokens(text: str) -> list[str]:
    """The names, numbers, operators and brackets of a text, in order; any other character raises CannotReadError."""
    tokens, at = list[str](), 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise CannotReadError("sign", printable(text[at]))
        tokens.append(token.group())
        at = token.end()
    return [token for token in tokens if token.strip()]


def _atom(token: str, names: Mapping[str, str]) -> Expression | None:
    """The expression of one number or name; None for an operator or bracket.

    `names` gives the symbol that each name stands for; a name that isn't among them raises CannotReadError.
    """
    if token.isdigit():
        return Expression.number(int(token))
    if not token[:1].isalpha():
        return None
    if token not in names:
        raise CannotReadError("unknown-letter", token)
    return Expression.symbol(names[token])


def _check_terms(meaning: Expression) -> Expression:
    """The expression itself; raises CannotReadError if it has more than MAX_TERMS terms."""
    if len(meaning.terms) > MAX_TERMS:
        raise CannotReadError("too-long")
    return meaning
