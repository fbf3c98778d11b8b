"""Reads a table from its text and says what it means for one config: all tensors, and the heads of every layer.

>>> evaluate("2·d//H if not gated else up(d, 64)", {"d": 100, "H": 8, "gated": False})
25
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

Values = Mapping[str, Any]
Meaning = Callable[[Values], Any]
Shape = tuple[int, ...]

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: Fraction(x) / Fraction(y),
    ast.FloorDiv: lambda x, y: x // y,
    ast.Mod: lambda x, y: x % y,
    ast.Eq: lambda x, y: x == y,
    ast.NotEq: lambda x, y: x != y,
    ast.Lt: lambda x, y: None not in (x, y) and x < y,
    ast.LtE: lambda x, y: None not in (x, y) and x <= y,
    ast.Gt: lambda x, y: None not in (x, y) and x > y,
    ast.GtE: lambda x, y: None not in (x, y) and x >= y,
    ast.Is: lambda x, y: x is y,
    ast.IsNot: lambda x, y: x is not y,
    ast.In: lambda x, y: x in (y or ()),
    ast.NotIn: lambda x, y: x not in (y or ()),
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "up": lambda x, multiple: -(-x // multiple) * multiple,
    "int": int,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
}


class Unreadable(ValueError):
    """A config that a table can't be used for: a field that must be stated, or a value that isn't known."""


def evaluate(expression: str, values: Values) -> Any:
    """An expression or a condition of the grammar, for these values."""
    result = _meaning(expression)(values)
    if isinstance(result, Fraction):
        return int(result) if result.denominator == 1 else result
    return result


@cache
def _meaning(expression: str) -> Meaning:
    return _compile(ast.parse(expression.replace("·", "*"), mode="eval").body)


def _compile(node: ast.expr) -> Meaning:
    match node:
        case ast.Constant(value=value):
            return lambda _values: value
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id="i")):
            return lambda values: values[name][values["i"]] if values["i"] < len(values[name]) else None
        case ast.BinOp(left=left, op=op, right=right):
            x, y, operator = _compile(left), _compile(right), _OPERATORS[type(op)]
            return lambda values: operator(x(values), y(values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            x, y, operator = _compile(left), _compile(right), _OPERATORS[type(op)]
            return lambda values: operator(x(values), y(values))
        case ast.BoolOp(op=ast.And(), values=parts):
            all_of = [_compile(part) for part in parts]
            return lambda values: all(part(values) for part in all_of)
        case ast.BoolOp(op=ast.Or(), values=parts):
            some_of = [_compile(part) for part in parts]
            return lambda values: any(part(values) for part in some_of)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = _compile(operand)
            return lambda values: not truth(values)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _compile(operand)
            return lambda values: -number(values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, first, second = _compile(test), _compile(body), _compile(orelse)
            return lambda values: first(values) if condition(values) else second(values)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            inputs, function = [_compile(argument) for argument in arguments], _FUNCTIONS[name]
            return lambda values: function(*(value(values) for value in inputs))
        case _:
            raise ValueError(f"not in the grammar: {ast.unparse(node)}")


@dataclass
class Section:
    """A heading, its columns, and its rows."""

    heading: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def stack(self) -> str:
        return self.heading[1].split(" × ")[0] if self.heading[0] == "layers" else ""


@dataclass
class Table:
    """One table: its sections, in the order of the file."""

    sections: list[Section] = field(default_factory=list)

    def rows(self, heading: str) -> list[tuple[str, ...]]:
        return [row for section in self.sections if section.heading[0] == heading for row in section.rows]

    @property
    def classes(self) -> list[str]:
        return next(section.heading[1].split() for section in self.sections if section.heading[0] == "class")

    def values(self, config: Values) -> dict[str, Any]:
        """The values of all names, from the fields of a config."""
        values = dict[str, Any]()
        rules = dict[str, str]()
        for symbol, fields, absent, *more in self.rows("sizes"):
            names = fields.split()
            name = names[0] if symbol == "-" else symbol
            stated = next((config[n] for n in names if n in config and config[n] not in ("auto", -1)), "absent")
            null = next((cell.removeprefix("null ") for cell in more), absent if not absent.isdigit() else "refused")
            if stated is None or stated == "absent":
                rules[name] = absent if stated == "absent" else null
            else:
                values[name] = len(stated) if isinstance(stated, list) else stated
        for name, *tie in self.rows("text part"):
            if name == "tie_word_embeddings":  # probes state the same for the whole file and for its part
                is_tied = "true" in tie if tie[0] != "both" else tie[1:] == ["true", "true"]
                values[name] = config.get(name, is_tied) if len(tie) > 1 else tie[0] == "always"
        for name, default, *_ in [*self.rows("switches"), *self.rows("numbers")]:
            values[name] = json.loads(default) if config.get(name) is None else config[name]
        for name, default, words in self.rows("words"):
            values[name] = config.get(name, None if default == "none" else default)
            if values[name] is not None and values[name] not in words.split():
                raise Unreadable(f"{name} is {values[name]}")
        for name, only in self.rows("fixed"):
            if name in config and config[name] != json.loads(only):
                raise Unreadable(f"{name} is {config[name]}")
        for name, absent, *known in self.rows("lists"):
            if isinstance(config.get(name), list | tuple):
                aliases = dict(word.split("=") for word in " ".join(known).split() if "=" in word)
                values[name] = [aliases.get(item, item) for item in config[name]]
            elif absent.startswith("["):
                values[name] = json.loads(absent)
        _resolve(values, rules)
        values |= {
            n: list(range(values["L"])) for n, absent, *_ in self.rows("lists") if absent == "all" and n not in values
        }
        for name, absent, *_ in self.rows("lists"):
            if name not in values:
                values[name] = _words(absent, values)
        return values

    def depth(self, stack: str, values: Values) -> int:
        """The number of layers of a stack."""
        counts = [s.heading[1].split(" × ")[1] for s in self.sections if s.heading[0] == "layers" and s.stack == stack]
        return whole(evaluate(counts[0], values)) if counts else 1

    def heads(self, values: Values) -> dict[tuple[str, int], Heads]:
        """The heads of every layer with N×N scores, by module and number of the layer."""
        found = dict[tuple[str, int], Heads]()
        for stack, *columns in self.rows("attention"):
            if stack == "none":
                continue
            module, heads, kv_heads, width, value_width, scale, mask, *more = columns
            for i in range(self.depth(stack, values)):
                here = {**values, "i": i}
                if not all(evaluate(cell[3:], here) for cell in more if cell.startswith("if ")):
                    continue
                sizes = tuple(whole(evaluate(x, here)) for x in (heads, kv_heads, width, value_width))
                windows = [_window(cell, here) for cell in more if cell.startswith(("window ", "chunk "))]
                found[module, i] = Heads(sizes, float(evaluate(scale, here)), mask, next(iter(windows), None))
        return found

    def tensors(self, values: Values) -> dict[tuple[str, int, str], tuple[int, Shape]]:
        """How many tensors of each name a layer has, and their shape; layer 0 of "" is outside the layers."""
        found = dict[tuple[str, int, str], tuple[int, Shape]]()
        for section in self.sections:
            if section.heading[0] not in ("layers", "outside the layers"):
                continue
            layers = 1
            if section.heading[0] == "layers":
                if len(section.heading) > 2 and not evaluate(section.heading[2].removeprefix("if "), values):
                    continue
                layers = whole(evaluate(section.heading[1].split(" × ")[1], values))
            for i in range(layers):
                here = {**values, "i": i}
                for row in section.rows:
                    found |= {(section.stack, i, name): what for name, what in _tensors_of(row, here).items()}
        return found


@dataclass
class Heads:
    """The heads of one layer: how many, key/value heads, width of queries and keys, and of values."""

    sizes: tuple[int, ...]
    scale: float
    mask: str
    window: int | None


def _window(cell: str, values: Values) -> int | None:
    rule, _, condition = cell.partition(" ")[2].partition(" if ")
    size = evaluate(rule, values) if not condition or evaluate(condition, values) else None
    return None if size is None else whole(size)


def whole(number: Any) -> int:
    if type(number) is not int:
        raise Unreadable(f"{number} isn't a whole number")
    return number


def _resolve(values: dict[str, Any], rules: dict[str, str]) -> None:
    """Apply rules whose sizes are known, until none is left."""
    while rules:
        ready = [name for name, rule in rules.items() if not names_in(rule) & rules.keys()]
        if not ready:
            raise Unreadable(f"{', '.join(rules)} depend on each other")
        for name in ready:
            rule = rules.pop(name)
            if rule in ("stated", "refused"):
                raise Unreadable(f"{name} must be stated")
            values[name] = None if rule == "none" else whole(evaluate(rule, values))


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'", "", expression)))


def _words(cases: str, values: Values) -> list[str | None]:
    """One word for each layer, by cases such as "full if i % 2 == 0; sliding"."""
    if cases == "stated":
        raise Unreadable("a list must be stated")
    words = list[str | None]()
    for i in range(values["L"]):
        for case in cases.split("; "):
            word, _, condition = case.partition(" if ")
            if not condition or evaluate(condition, {**values, "i": i}):
                words.append(word)
                break
        else:
            words.append(None)
    return words


def _tensors_of(row: tuple[str, ...], values: Values) -> dict[str, tuple[int, Shape]]:
    _role, names, axes, *more = row
    if any(cell.startswith("in ") or (cell.startswith("if ") and not evaluate(cell[3:], values)) for cell in more):
        return {}
    shape = () if axes == "()" else tuple(whole(evaluate(axis, values)) for axis in axes.split(" × "))
    copies = next((whole(evaluate(cell[7:], values)) for cell in more if cell.startswith("copies ")), 1)
    biased = any(cell == "bias" or (cell.startswith("bias if ") and evaluate(cell[8:], values)) for cell in more)
    if not copies or 0 in shape:
        return {}
    first, *others = names.split()
    parent = first.rpartition(".")[0]
    found = dict[str, tuple[int, Shape]]()
    for name in [first, *(f"{parent}.{other}" if parent else other for other in others)]:
        found[name if "bare" in more else f"{name}.weight"] = (copies, shape)
        if biased:
            found[f"{name}.bias"] = (copies, shape[-1:] if "in-out" in more else shape[:1])
    return found


def parse(text: str) -> list[Table]:
    """The tables of a file."""
    tables = list[Table]()
    condition = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        columns = tuple(re.split(r" {2,}", line.strip()))
        if not line.startswith(" "):
            if columns[0] in ("class", "refused"):
                tables.append(Table())
            tables[-1].sections.append(Section(columns))
        elif line.startswith("    "):
            tables[-1].sections[-1].rows.append((*columns, condition))
        elif columns[0].startswith("if "):
            condition = columns[0]
        else:
            tables[-1].sections[-1].rows.append(columns)
    return tables
