"""The small language of rules and conditions in a family's table: arithmetic, comparisons, `and`, `or`, `if … else`.

Names stand for sizes and fields of a config; `i` is the number of a layer, from 0; `·` is written for `*`.

>>> rule = parse_rule("up(2·d_ff/3, 64) if i < first_dense else d_ff")
>>> rule.value({"d_ff": 100, "first_dense": 2}, 0), rule.value({"d_ff": 100, "first_dense": 2}, 2)
(128, 100)
>>> parse_rule("r_q is not None and r_q > 1000").holds({"r_q": None})
False
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from app.algebra.expression import Expression
from app.refusal import Refusal

Names = Mapping[str, Any]
Evaluate = Callable[[Names, int], Any]


class RuleError(ValueError):
    """A rule that the grammar doesn't have, or that has no value for a config's numbers."""


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule or condition: its text, the names in it, and whether it depends on the layer."""

    text: str
    names: frozenset[str]
    of_layer: bool
    evaluate: Evaluate
    node: ast.expr

    def value(self, names: Names, layer: int = 0) -> Any:
        """The number (whole if it can be), word or None that the rule gives; raises RuleError."""
        return _whole(self._evaluated(names, layer))

    def holds(self, names: Names, layer: int = 0) -> bool:
        """Whether the condition is true; raises RuleError."""
        return bool(self._evaluated(names, layer))

    def _evaluated(self, names: Names, layer: int) -> Any:
        try:
            return self.evaluate(names, layer)
        except Refusal:  # of a value that the config states wrongly
            raise
        except (TypeError, ZeroDivisionError, IndexError, OverflowError, ValueError) as error:
            raise RuleError(f"“{self.text}”: {error}") from None

    def expression(self) -> Expression:
        """The rule in symbols; raises RuleError unless it is made of sums, products and quotients."""
        return _expression(self.node, self.text)


@lru_cache(maxsize=4096)
def parse_rule(text: str) -> Rule:
    """Read a rule or condition; raises RuleError for anything that isn't in the grammar."""
    try:
        node = ast.parse(text.replace("·", "*"), mode="eval").body
    except (SyntaxError, ValueError):
        raise RuleError(f"cannot read “{text}”") from None
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return Rule(text, frozenset(names - {"i", *_FUNCTIONS}), "i" in names, _compiled(node, text), node)


def _round_up(number: Any, multiple: Any) -> Any:
    return math.ceil(Fraction(number) / multiple) * multiple


def _divide(first: Any, second: Any) -> Any:
    return first / second if isinstance(first, float) or isinstance(second, float) else Fraction(first) / second


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def is_true(first: Any, second: Any) -> bool:
        return first is not None and second is not None and compare(first, second)

    return is_true


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "up": _round_up,
    "int": int,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "first": lambda items, item: items.index(item) if item in items else None,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _compared(operator.lt),
    ast.LtE: _compared(operator.le),
    ast.Gt: _compared(operator.gt),
    ast.GtE: _compared(operator.ge),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in (items or ()),
    ast.NotIn: lambda item, items: item not in (items or ()),
}


def _compiled(node: ast.expr, text: str) -> Evaluate:
    match node:
        case ast.Constant(value=int() | float() | str() | None as constant):
            return lambda _names, _layer: constant
        case ast.Name(id="i"):
            return lambda _names, layer: layer
        case ast.Name(id=name):
            return lambda names, _layer: names[name]
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            at = _compiled(index, text)
            return lambda names, layer: names[name][at(names, layer)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _compiled(operand, text)
            return lambda names, layer: not inner(names, layer)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compiled(operand, text)
            return lambda names, layer: -inner(names, layer)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            calculate, first, second = _OPERATORS[type(op)], _compiled(left, text), _compiled(right, text)
            return lambda names, layer: calculate(first(names, layer), second(names, layer))
        case ast.BoolOp(op=op, values=values):
            parts = [_compiled(value, text) for value in values]
            join = all if isinstance(op, ast.And) else any
            return lambda names, layer: join(part(names, layer) for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            compare, first, second = _COMPARISONS[type(op)], _compiled(left, text), _compiled(right, text)
            return lambda names, layer: compare(first(names, layer), second(names, layer))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, yes, no = (_compiled(part, text) for part in (test, body, orelse))
            return lambda names, layer: yes(names, layer) if asked(names, layer) else no(names, layer)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            function, inner_parts = _FUNCTIONS[name], [_compiled(argument, text) for argument in arguments]
            return lambda names, layer: function(*(part(names, layer) for part in inner_parts))
    raise RuleError(f"“{text}” has {type(node).__name__}, which the grammar doesn’t have")


def _expression(node: ast.expr, text: str) -> Expression:
    match node:
        case ast.Constant(value=int() as number):
            return Expression.number(number)
        case ast.Name(id=name):
            return Expression.symbol(name)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
            calculate = operator.truediv if isinstance(op, ast.Div) else _OPERATORS[type(op)]
            result: Expression = calculate(_expression(left, text), _expression(right, text))
            return result
    raise RuleError(f"“{text}” is not a sum of products")


def _whole(value: Any) -> Any:
    is_whole = isinstance(value, Fraction) and value.denominator == 1
    return value.numerator if is_whole else value
