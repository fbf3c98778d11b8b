"""What a written table says of one config, by the app's own reader: all tensors, and the heads of every layer.

>>> evaluate("2·d//H if not gated else up(d, 64)", {"d": 100, "H": 8, "gated": False})
25
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.algebra.expression import ExpressionError
from app.models.config_fields import ConfigError
from app.models.grammar import RuleError, parse_rule
from app.models.table import AttentionLine, Conditions, FamilyTable, Limit, TableStack, TableTensor, parse_tables
from app.models.table_values import TableValues

Values = Mapping[str, Any]
Shape = tuple[int, ...]
# The stack and the layer of a tensor, and its name there; and how many there are, and their shape.
Tensors = dict[tuple[str, int, str], tuple[int, Shape]]
# What a table raises for a config that it can't be used for.
UNREADABLE = (ConfigError, RuleError, ExpressionError, TypeError)


@dataclass
class Heads:
    """The heads of one layer: how many, key/value heads, width of queries and keys, and of values."""

    sizes: tuple[int, ...]
    scale: float | None
    mask: str
    window: int | None


def parse(text: str) -> tuple[FamilyTable, ...]:
    """The tables of a file; none if its type is refused."""
    return parse_tables("", text).tables


def evaluate(rule: str, values: Values) -> Any:
    """An expression or a condition for these values, of which `i` is the number of a layer."""
    return parse_rule(rule).value(values, values.get("i", 0))


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'", "", expression)))


def whole(number: Any) -> int:
    if type(number) is not int:
        raise RuleError(f"{number} isn't a whole number")
    return number


def values_of(table: FamilyTable, config: Values) -> TableValues:
    """The values of all names, from the fields of a config."""
    values = TableValues(table, {name: list(x) if isinstance(x, tuple) else x for name, x in config.items()}, "")
    if part := table.text_part:  # probes state the same for the whole file and for its part
        is_tied = all(part.tied) if part.tie == "both" else any(part.tied)
        stated = config.get("tie_word_embeddings", is_tied)
        values["tie_word_embeddings"] = part.tie == "always" if part.tie in ("always", "never") else stated
    return values


def tensors(table: FamilyTable, values: Values) -> Tensors:
    """Every tensor; layer 0 of "" is outside the layers."""
    outside = TableStack("", parse_rule("1"), (), table.outside)
    found = Tensors()
    for stack in (outside, *table.stacks):
        if _hold(stack.when, values, 0):
            for i in range(whole(stack.count.value(values))):
                found |= {(stack.name, i, name): what for name, what in _of_layer(stack.tensors, values, i)}
    return found


def _of_layer(some: tuple[TableTensor, ...], values: Values, i: int) -> Iterator[tuple[str, tuple[int, Shape]]]:
    for tensor in some:
        if not tensor.classes and _hold(tensor.when, values, i):
            copies, *shape = (size.size(values) for size in (tensor.spec.copies, *tensor.spec.stored_shape))
            if copies and 0 not in shape:
                yield tensor.spec.name, (copies, tuple(shape))


def heads(table: FamilyTable, values: Values) -> dict[tuple[str, int], Heads]:
    """The heads of every layer with N×N scores, by module and number of the layer."""
    depths = {stack.name: whole(stack.count.value(values)) for stack in table.stacks}
    return {
        (line.module, i): _heads(line, values, i)
        for line in table.attention
        for i in range(depths.get(line.stack, 1))
        if _hold(line.when, values, i)
    }


def _heads(line: AttentionLine, values: Values, i: int) -> Heads:
    sizes = tuple(whole(rule.value(values, i)) for rule in (line.heads, line.kv_heads, line.d_h, line.d_v))
    limits = (_keys(limit, values, i) for limit in (line.window, line.chunk))
    scale = None if line.scale is None else float(line.scale.value(values, i))
    return Heads(sizes, scale, line.mask, next((keys for keys in limits if keys is not None), None))


def _keys(limit: Limit | None, values: Values, i: int) -> int | None:
    if limit is None or not _hold(limit.when, values, i):
        return None
    # A window without a size is none.
    return None if any(values[name] is None for name in limit.length.names) else whole(limit.length.value(values, i))


def _hold(conditions: Conditions, values: Values, i: int) -> bool:
    return all(rule.holds(values, i) for rule in conditions)
