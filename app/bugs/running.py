"""Runs a program's lines on the tensors of `tensors.py`, up to the first that raises.

Only `torch.cat`, `F.scaled_dot_product_attention`, `float` and the names in METHODS can be called. A line is parsed and
walked through, never run as Python code.

>>> run(["S = Q @ Q.T"], {"Q": CodeTensor.of_shape((10, 64))}).last["S"].shape
(10, 10)
>>> run(["S = Q @ Q"], {"Q": CodeTensor.of_shape((10, 64))}).raised_at
1
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import EllipsisType
from typing import Any, TypeAlias

from app.bugs.tensors import CodeTensor, TensorError, cat, scaled_dot_product_attention

Value: TypeAlias = Any  # a tensor, a number, or a tuple of them
METHODS = frozenset({
    "chunk", "masked_fill", "permute", "repeat", "repeat_interleave", "reshape", "softmax", "split", "transpose",
    "unsqueeze", "view",
})  # fmt: skip
ATTRIBUTES = frozenset({"T", "mT"})
_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Value]] = {
    ast.MatMult: operator.matmul,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Pow: operator.pow,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_SIGNS: Mapping[type[ast.AST], Callable[[Any], Value]] = {ast.USub: operator.neg, ast.Invert: operator.invert}


class CodeError(ValueError):
    """Raised for a line in the bank that this interpreter can't run."""


@dataclass(frozen=True)
class CodeRun:
    """A run of a program: the variables after each line and at the end, and the error, if any.

    `raised_at` counts lines from 1; 0 means that none raised.
    """

    made: tuple[Mapping[str, CodeTensor], ...]
    last: Mapping[str, Value] = field(repr=False)
    error: TensorError | None = None
    raised_at: int = 0


def run(lines: Sequence[str], given: Mapping[str, Value]) -> CodeRun:
    """Run the lines up to the first TensorError, which is part of the result."""
    variables, made = dict(given), list[Mapping[str, CodeTensor]]()
    for number, line in enumerate(lines, 1):
        statement = parsed(line)
        try:
            value = _evaluate(statement.value, variables)
            names = _names(statement.targets[0])
            if len(names) > 1 and len(value) < len(names):
                problem = f"not enough values to unpack (expected {len(names)}, got {len(value)})"
                raise TensorError(problem, name="ValueError")
            if 1 < len(names) < len(value):
                raise TensorError(f"too many values to unpack (expected {len(names)})", name="ValueError")
        except TensorError as error:
            return CodeRun(tuple(made), variables, error, number)
        new = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
        variables |= new
        made.append(new)
    return CodeRun(tuple(made), variables)


@lru_cache(4096)
def parsed(line: str) -> ast.Assign:
    """The syntax tree of a line; raises CodeError unless it is a single assignment."""
    try:
        [statement] = ast.parse(line).body
    except (SyntaxError, ValueError) as error:
        raise CodeError(f"“{line}” is not one line of Python: {error}") from None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise CodeError(f"“{line}” assigns nothing")
    return statement


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _evaluate(node: ast.expr, variables: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=int() | float() | str() | None | EllipsisType() as value):
            return value
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPERATORS[type(op)](_evaluate(left, variables), _evaluate(right, variables))
        case ast.UnaryOp(op=op, operand=operand):
            return _SIGNS[type(op)](_evaluate(operand, variables))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(_evaluate(part, variables) for part in parts)
        case ast.Subscript(value=value, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return _evaluate(value, variables)[tuple(_index(part, variables) for part in parts)]
        case ast.Attribute(value=value, attr=name) if name in ATTRIBUTES:
            return getattr(_evaluate(value, variables), name)
        case ast.Call(func=func, args=args, keywords=keywords):
            values = [_evaluate(arg, variables) for arg in args]
            by_name = {str(keyword.arg): _evaluate(keyword.value, variables) for keyword in keywords}
            match func:
                case ast.Attribute(value=ast.Name(id="torch"), attr="cat"):
                    return cat(*values, **by_name)
                case ast.Attribute(value=ast.Name(id="F"), attr="scaled_dot_product_attention"):
                    return scaled_dot_product_attention(*values, **by_name)
                case ast.Name(id="float"):
                    return float(*values)
                case ast.Attribute(value=value, attr=name) if name in METHODS:
                    return getattr(_evaluate(value, variables), name)(*values, **by_name)
    raise CodeError(f"“{ast.unparse(node)}” is not among the words of the programs")


def _index(node: ast.expr, variables: Mapping[str, Value]) -> Value:
    if not isinstance(node, ast.Slice):
        return _evaluate(node, variables)
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if part is None else _evaluate(part, variables) for part in parts))
