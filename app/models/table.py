"""Reads the tables in data/families: one file for each model type, written by tools/derive, never edited.

Tables in data/families/by-hand are for types that transformers doesn't have, each with its sources, and for the few
that tools/derive can't look at.

A table says which config fields state a model's sizes, what their absence means, which tensors the model has and under
which condition, and what each attention module computes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from app.algebra.expression import ONE, Expression
from app.models.computation import computation_of
from app.models.grammar import Rule, RuleError, parse_rule
from app.models.parameter_specs import HEAD_PARTS, ModelPart, ParameterSpec, TensorKind

FAMILIES_FOLDER = Path(__file__).parents[2] / "data" / "families"
BY_HAND_FOLDER = FAMILIES_FOLDER / "by-hand"
Mask = Literal["causal", "all", "cross"]
Conditions = tuple[Rule, ...]

_COLUMNS = re.compile(r"\s{2,}")
_CLASS_WITH_HEAD = re.compile(r"(\w+?)(?:For\w+|LMHeadModel)")
_CLASS_LINE = re.compile(r"^class  (.*)", re.MULTILINE)
_PARTS = {part.name.lower(): part for part in ModelPart}
_TABLES = {ModelPart.TOKEN_TABLE, ModelPart.POSITION_TABLE, ModelPart.TYPE_TABLE, ModelPart.RELATIVE_TABLE}
# The order of attention's projections on sheets, by the beginning of their names; a fused one is the first.
_PROJECTIONS = ("q", "k", "v")


class TableError(ValueError):
    """A table that can't be read; it says which line."""


@dataclass(frozen=True)
class SizeField:
    """A size or number of the config: its symbol, its fields, and what their absence and null mean.

    A rule of None means that the config must state it.
    """

    symbol: str
    fields: tuple[str, ...]
    absent: Rule | None
    null: Rule | None


@dataclass(frozen=True)
class Switch:
    """A field, under any of its names, that is true or false; `null` is None if the config may not state null."""

    fields: tuple[str, ...]
    absent: Rule
    null: Rule | None


@dataclass(frozen=True)
class WordField:
    """A field that is one of some words."""

    field: str
    absent: str
    known: frozenset[str]


@dataclass(frozen=True)
class ListField:
    """A field, under any of its names, that lists one word for each layer, the numbers of some layers, or some words.

    `known` are the words that a config may state, with the word that conditions use for each. `absent` has the word of
    a layer (or, for numbers, whether it is listed) by condition, the first that holds counting; None if the config must
    state the list.
    """

    fields: tuple[str, ...]
    kind: Literal["layers", "numbers", "words"]
    known: Mapping[str, str]
    absent: tuple[tuple[str, Rule | None], ...] | None = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class TableTensor:
    """One tensor of a table and the conditions under which a model has it.

    `classes` are the only classes that have it; () for all.
    """

    spec: ParameterSpec
    when: Conditions
    classes: tuple[str, ...]


@dataclass(frozen=True)
class TableStack:
    """A stack of layers: the name of its list, its number of layers, and what a layer may have."""

    name: str
    count: Rule
    when: Conditions
    tensors: tuple[TableTensor, ...]


@dataclass(frozen=True)
class Limit:
    """How many keys a token sees in the layers where the condition holds: a window or a chunk."""

    length: Rule
    when: Conditions


@dataclass(frozen=True)
class AttentionLine:
    """One kind of attention with N×N scores, or N×M for "cross": its sizes, scale and mask, and the layers with it.

    `scale` is None if it wasn't seen; with `has_yarn`, YaRN may multiply it by a number more. `alibi` is the condition
    under which ALiBi is added to the scores; None: never.
    """

    stack: str
    module: str
    heads: Rule
    kv_heads: Rule
    d_h: Rule
    d_v: Rule
    scale: Rule | None
    mask: Mask
    window: Limit | None
    chunk: Limit | None
    softcap: Rule | None
    has_sinks: bool
    has_yarn: bool
    alibi: Conditions | None
    when: Conditions


@dataclass(frozen=True)
class TextPart:
    """Where a multimodal file describes its text model: the field, the type, and what absence means there.

    `table` is the type whose table describes it, if any. Otherwise this table does, also if the part has `own_type`.
    `tie` says where "tie_word_embeddings" is read: "outer", "part", "either", "both", "always" or "never". `tied` is
    what its absence means, outside and in the part.
    """

    field: str
    table: str
    own_type: str
    allows_others: bool
    tie: str
    tied: tuple[bool, bool]
    absent: Mapping[str, Any]


@dataclass
class FamilyTable:
    """One table of a file: all that is known of the classes in `classes`."""

    classes: tuple[str, ...]
    sizes: dict[str, SizeField] = field(default_factory=dict)
    numbers: dict[str, SizeField] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    words: dict[str, WordField] = field(default_factory=dict)
    lists: dict[str, ListField] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    harmless: frozenset[str] = frozenset()
    untested: frozenset[str] = frozenset()
    outside: tuple[TableTensor, ...] = ()
    stacks: tuple[TableStack, ...] = ()
    attention: tuple[AttentionLine, ...] = ()
    without_attention: str = ""
    text_part: TextPart | None = None
    base: str = ""  # the class without a head
    encoder: str = ""  # the class without a head and a decoder
    prefix: str = ""  # of its tensors in the other classes
    other_names: dict[str, str] = field(default_factory=dict)  # of sizes in tensors, with their symbols
    # Tensors in the symbols of heads, by the tensor in the table's symbols and its new shape.
    restated: dict[tuple[ParameterSpec, tuple[Expression, ...]], ParameterSpec] = field(default_factory=dict)

    @cached_property
    def axis_symbols(self) -> frozenset[str]:
        """The symbols of the axes of all tensors."""
        tensors = (*self.outside, *(tensor for stack in self.stacks for tensor in stack.tensors))
        return frozenset[str]().union(*(tensor.spec.symbols for tensor in tensors))

    @cached_property
    def may_be_zero(self) -> frozenset[str]:
        """The sizes that may be 0: shared experts, sizes that are 0 by default, and those that a condition asks for."""
        defaults = {line.symbol for line in self.sizes.values() if line.absent and line.absent.text == "0"}
        tensors = (*self.outside, *(tensor for stack in self.stacks for tensor in stack.tensors))
        conditions = {rule for tensor in tensors for rule in tensor.when}
        conditions |= {rule for line in self.attention for rule in line.when}
        conditions |= {rule for words in self.lists.values() for _word, rule in words.absent or () if rule}
        return frozenset(defaults).union({"n_sh"}, *(rule.names for rule in conditions))

    @property
    def counted(self) -> tuple[str, ...]:
        """The classes that the table knows, those without a head last."""
        return (*self.classes, *filter(None, (self.base, self.encoder)))

    @property
    def fields(self) -> frozenset[str]:
        """The config fields that the table knows."""
        lines: tuple[SizeField | Switch | ListField, ...] = (*self.sizes.values(), *self.numbers.values())
        lines += (*self.switches.values(), *self.lists.values())
        stated = (name for line in lines for name in line.fields)
        return self.harmless.union(self.untested, stated, self.words, self.fixed)


@dataclass(frozen=True)
class FamilyFile:
    """The tables of one model type, the most common classes first; none if it is refused for a reason."""

    model_type: str
    tables: tuple[FamilyTable, ...]
    refused: tuple[str, str] | None = None

    def table_of(self, class_name: str) -> FamilyTable | None:
        """The table of a class, or None if no table of this type has it."""
        return next((table for table in self.tables if class_name in table.counted), None)


@cache
def _table_paths() -> Mapping[str, Path]:
    """The file of each model type: written by hand, or else derived."""
    folders = [folder for folder in (FAMILIES_FOLDER, BY_HAND_FOLDER) if folder.is_dir()]
    return {entry.name: Path(entry) for folder in folders for entry in os.scandir(folder) if entry.is_file()}


@cache
def table_names() -> frozenset[str]:
    """The model types that have a table, or a reason why they have none."""
    return frozenset(_table_paths())


@cache
def is_by_hand(model_type: str) -> bool:
    """Whether a model type's table was written by hand because transformers doesn't have the type."""
    path = _table_paths().get(model_type)
    if path is None or path.parent != BY_HAND_FOLDER:
        return False
    return "for transformers" not in path.read_text("utf-8").partition("\n")[0]


@cache
def classes_by_type() -> Mapping[str, tuple[str, ...]]:
    """The classes in each type's tables, none for a type that is refused: the lines that name them are read only."""
    lines = {name: _CLASS_LINE.findall(path.read_text("utf-8")) for name, path in _table_paths().items()}
    return {name: tuple(" ".join(classes).split()) for name, classes in lines.items()}


@cache
def family_file(model_type: str) -> FamilyFile | None:
    """The tables of a model type; None if there is no such file."""
    path = _table_paths().get(model_type)
    return None if path is None else parse_tables(model_type, path.read_text("utf-8"))


def parse_tables(model_type: str, text: str) -> FamilyFile:
    """Read the text of a file of tables; raises TableError."""
    sections = list(_sections(text))
    tables = list[FamilyTable]()
    for number, heading, lines in sections:
        try:
            if heading[0] == "refused":
                return FamilyFile(model_type, (), (heading[1], heading[2] if len(heading) > 2 else ""))
            if heading[0] == "class":
                tables.append(FamilyTable(tuple(heading[1].split())))
            else:
                _read_section(tables[-1], heading, lines)
        except (RuleError, ValueError, IndexError, KeyError) as error:
            wrong = next((line[0] for line in lines if not _can_be_read(heading, line)), number)
            raise TableError(f"{model_type}, line {wrong}: {error}") from error
    for table in tables:
        if not table.base and computation_of(model_type).is_known:
            _find_base(table)
        _use_symbols_of_sheets(table)
    return FamilyFile(model_type, tuple(tables))


def _find_base(table: FamilyTable) -> None:
    # Tests compare the classes of known types with transformers.
    stem = _CLASS_WITH_HEAD.fullmatch(table.classes[0])
    names = [tensor.spec.name for tensor in table.outside if tensor.spec.part not in HEAD_PARTS]
    names += [f"{stack.name}." for stack in table.stacks]
    if stem and names:
        prefix = f"{names[0].partition('.')[0]}."
        table.base, table.prefix = f"{stem[1]}Model", prefix if all(name.startswith(prefix) for name in names) else ""
        if any(name == "encoder.block." for name in names):
            table.encoder = f"{stem[1]}EncoderModel"


def _use_symbols_of_sheets(table: FamilyTable) -> None:
    # H, G, d_h and d_v are sizes of attention with N×N scores. In a table where they are something else, such as the
    # heads of linear attention, tensors call them by the names of their fields.
    lines = [line for line in table.attention if line.mask != "cross"]
    columns = {
        "H": {line.heads.text for line in lines},
        "G": {line.kv_heads.text for line in lines},
        "d_h": {line.d_h.text for line in lines},
        "d_v": {line.d_v.text for line in lines},
    }
    others = [symbol for symbol in columns if symbol in table.axis_symbols and columns[symbol] != {symbol}]
    for symbol in others:
        if symbol in table.sizes:
            table.other_names[table.sizes[symbol].fields[0] if table.sizes[symbol].fields else f"{symbol}_"] = symbol
    # d_ff is the width in the first layer, which may have experts.
    dense, expert = (_inner_widths(table, part) for part in (ModelPart.FEED_FORWARD, ModelPart.EXPERTS))
    if (dense, expert) == ({"d_ff"}, {"d_exp"}):
        table.other_names["d_dense"] = "d_ff"
    elif len(dense) == 1 and expert == {"d_ff"} != dense:
        table.other_names |= {"d_dense": min(dense), "d_exp": "d_ff"}
    names = {symbol: Expression.symbol(name) for name, symbol in table.other_names.items()}
    if names:
        _change_tensors(table, lambda spec: _renamed(spec, names))
    width = _inner_width(table)
    if "d_ff" not in table.sizes and width:
        rule = parse_rule(str(width))
        table.sizes["d_ff"] = SizeField("d_ff", (), rule, rule)
        _change_tensors(table, lambda spec: _with_side(spec, ModelPart.FEED_FORWARD, width, "d_ff"))
    of_positions = [t.spec for t in table.outside if t.spec.part == ModelPart.POSITION_TABLE and t.spec.kind == "table"]
    if "P" not in table.sizes and of_positions and len(of_positions[0].stored_shape) > 1:
        rows = of_positions[0].stored_shape[-2]
        rule = parse_rule(str(rows))
        table.sizes["P"] = SizeField("P", (), rule, rule)
        _change_tensors(table, lambda spec: _with_side(spec, ModelPart.POSITION_TABLE, rows, "P"))
    if table.prefix:
        _change_tensors(table, lambda spec: replace(spec, name=spec.name.removeprefix(table.prefix)))
        table.stacks = tuple(replace(stack, name=stack.name.removeprefix(table.prefix)) for stack in table.stacks)
        table.attention = tuple(replace(line, stack=line.stack.removeprefix(table.prefix)) for line in table.attention)


def _change_tensors(table: FamilyTable, change: Callable[[ParameterSpec], ParameterSpec]) -> None:
    def changed(tensors: Sequence[TableTensor]) -> tuple[TableTensor, ...]:
        return tuple(replace(tensor, spec=change(tensor.spec)) for tensor in tensors)

    table.outside = changed(table.outside)
    table.stacks = tuple(replace(stack, tensors=changed(stack.tensors)) for stack in table.stacks)
    table.__dict__.pop("axis_symbols", None)  # worked out again


def _matrices(table: FamilyTable, part: ModelPart) -> list[ParameterSpec]:
    in_layers = (tensor.spec for stack in table.stacks for tensor in stack.tensors)
    return [spec for spec in in_layers if spec.part == part and spec.kind == "matrix"]


def _inner_widths(table: FamilyTable, part: ModelPart) -> set[str]:
    widths = [spec.in_out_shape[-2] for spec in _matrices(table, part) if len(spec.in_out_shape) > 1]
    return {str(width) for width in widths} - {"d"}


def _inner_width(table: FamilyTable) -> Expression | None:
    matrices = _matrices(table, ModelPart.FEED_FORWARD)
    width = matrices[-1].in_out_shape[-2] if matrices else Expression.symbol("d")
    return width if width.symbols == {"d"} and width != Expression.symbol("d") else None


def _with_side(spec: ParameterSpec, part: ModelPart, side: Expression, symbol: str) -> ParameterSpec:
    if spec.part != part:
        return spec
    in_out, stored = (
        tuple(Expression.symbol(symbol) if axis == side else axis for axis in shape)
        for shape in (spec.in_out_shape, spec.stored_shape)
    )
    return replace(spec, in_out_shape=in_out, stored_shape=stored)


def _renamed(spec: ParameterSpec, names: Mapping[str, Expression]) -> ParameterSpec:
    in_out, stored = (
        tuple(axis.substitute(names) for axis in shape) for shape in (spec.in_out_shape, spec.stored_shape)
    )
    return replace(spec, in_out_shape=in_out, stored_shape=stored, copies=spec.copies.substitute(names))


def _can_be_read(heading: list[str], line: _Line) -> bool:
    try:
        _read_section(FamilyTable(()), heading, [line])
    except (RuleError, ValueError, IndexError, KeyError):
        return False
    return True


# A section: the number of its first line, the columns of its heading, and its lines: number, indentation, columns.
_Line = tuple[int, int, list[str]]


def _sections(text: str) -> Iterator[tuple[int, list[str], list[_Line]]]:
    section: tuple[int, list[str], list[_Line]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = _COLUMNS.split(line.strip())
        if not line.startswith(" "):
            if section:
                yield section
            section = (number, columns, [])
        elif section:
            section[2].append((number, len(line) - len(line.lstrip()), columns))
    if section:
        yield section


def _read_section(table: FamilyTable, heading: list[str], lines: list[_Line]) -> None:
    rows = [columns for _number, _indent, columns in lines]
    match heading[0]:
        case "sizes":
            table.sizes.update((line.symbol, line) for line in map(_size_line, rows))
        case "numbers":
            table.numbers.update((row[0], _number_line(row)) for row in rows)
        case "switches":
            table.switches.update((line.fields[0], line) for line in map(_switch, rows))
        case "words":
            table.words.update((row[0], WordField(row[0], row[1], frozenset(row[2].split()))) for row in rows)
        case "lists":
            table.lists.update((line.fields[0], line) for line in map(_list_field, rows))
        case "fixed":
            table.fixed.update((row[0], json.loads(row[1])) for row in rows)
        case "harmless":
            table.harmless |= {name for row in rows for columns in row for name in columns.split()}
        case "untested":
            table.untested |= {name for row in rows for columns in row for name in columns.split()}
        case "outside the layers":
            table.outside += _with_embedding_first(tuple(_tensors(lines)))
        case "layers":
            name, _times, count = heading[1].partition(" × ")
            table.stacks += (TableStack(name, parse_rule(count), _conditions(heading[2:]), tuple(_tensors(lines))),)
        case "attention":
            if rows[0][0] == "none":
                table.without_attention = " ".join(rows[0][1:])
            else:
                table.attention += tuple(_attention_line(row) for row in rows)
        case "text part":
            table.text_part = _text_part(rows)
        case "base":
            table.base, table.prefix = heading[1], f"{heading[2]}."
        case unknown:
            raise TableError(f"unknown section {unknown}")


def _rule(text: str) -> Rule | None:
    if text == "stated":
        return None
    return parse_rule("None" if text == "none" else text)


def _size_line(row: list[str]) -> SizeField:
    symbol, fields, absent, *null = row
    names = () if fields == "=" else tuple(fields.split())
    return _with_null(names[0] if symbol == "-" else symbol, names, absent, null)


def _number_line(row: list[str]) -> SizeField:
    return _with_null(row[0], (row[0],), row[1], row[2:])


def _with_null(symbol: str, fields: tuple[str, ...], absent: str, null: Sequence[str]) -> SizeField:
    if null:
        if_null = None if null[0] == "null refused" else _rule(null[0].removeprefix("null "))
    else:  # a plain number says nothing about null, which is then refused
        if_null = None if re.fullmatch(r"-?[\d.e+-]+", absent) else _rule(absent)
    return SizeField(symbol, fields, _rule(absent), if_null)


_TRUTH = {"true": "1 == 1", "false": "1 == 0"}


def _switch(row: list[str]) -> Switch:
    absent = parse_rule(_TRUTH.get(row[1], row[1]))
    null = parse_rule(_TRUTH[row[2].removeprefix("null ")]) if len(row) > 2 else None
    return Switch(tuple(row[0].split()), absent, null)


def _list_field(row: list[str]) -> ListField:
    names, absent, *known = row
    fields = tuple(names.split())
    pairs = (word.partition("=") for word in (known[0].split() if known else ()))
    words = {word: meaning or word for word, _is, meaning in pairs}
    if absent.startswith("["):
        return ListField(fields, "words" if words else "numbers", words, numbers=tuple(json.loads(absent)))
    if absent == "stated":
        return ListField(fields, "layers", words, None)
    cases = [case.partition("if ") for case in absent.split("; ")]
    by_condition = tuple((word.strip(), parse_rule(when) if when else None) for word, _if, when in cases)
    return ListField(fields, "layers" if words else "numbers", words, by_condition)


def _conditions(columns: Sequence[str]) -> Conditions:
    return tuple(parse_rule(column.removeprefix("if ")) for column in columns if column.startswith("if "))


def _tensors(lines: Sequence[_Line]) -> Iterator[TableTensor]:
    tensors = list[TableTensor]()
    open_conditions = list[tuple[int, Rule]]()
    for _number, indent, columns in lines:
        while open_conditions and open_conditions[-1][0] >= indent:
            open_conditions.pop()
        if columns[0].startswith("if "):
            open_conditions.append((indent, parse_rule(columns[0].removeprefix("if "))))
        else:
            tensors += _tensors_of_line(columns, tuple(rule for _indent, rule in open_conditions))
    # Sheets ask for queries, keys, values and output in this order.
    projections = iter(sorted((tensor for tensor in tensors if _is_of_attention(tensor)), key=_place_of_projection))
    yield from (next(projections) if _is_of_attention(tensor) else tensor for tensor in tensors)


def _is_of_attention(tensor: TableTensor) -> bool:
    return tensor.spec.part in (ModelPart.ATTENTION, ModelPart.LATENT_ATTENTION, ModelPart.CROSS_ATTENTION)


def _with_embedding_first(tensors: tuple[TableTensor, ...]) -> tuple[TableTensor, ...]:
    # A tied matrix is listed where its class has it first, which may be the LM head. It counts as the embedding.
    embedding = next((t for t in tensors if t.spec.part == ModelPart.TOKEN_TABLE and _texts(t.when) == {_UNTIED}), None)
    heads = (t for t in tensors if t.spec.part == ModelPart.OUTPUT_HEAD and t.spec.kind == "matrix" and not t.when)
    head = next((t for t in heads if embedding and t.spec.stored_shape == embedding.spec.stored_shape), None)
    if embedding is None or head is None:
        return tensors
    swapped = {embedding: replace(embedding, when=()), head: replace(head, when=embedding.when)}
    once = (tensor for tensor in tensors if tensor is embedding or tensor.spec.name != embedding.spec.name)
    return tuple(swapped.get(tensor, tensor) for tensor in once)


_UNTIED = "not tie_word_embeddings"


def _texts(conditions: Conditions) -> set[str]:
    return {rule.text for rule in conditions}


def _place_of_projection(tensor: TableTensor) -> int:
    leaf = tensor.spec.name.removesuffix(".weight").removesuffix(".bias").rpartition(".")[2].lower()
    is_fused = any(word in leaf for word in ("qkv", "query_key_value", "c_attn", "w_pack"))
    if is_fused:
        return 0
    starts = leaf.removeprefix("w").lstrip("_")[:1]
    return _PROJECTIONS.index(starts) + 1 if starts in _PROJECTIONS else len(_PROJECTIONS) + 1


def _tensors_of_line(columns: Sequence[str], outer: Conditions) -> Iterator[TableTensor]:
    role, names, shape, *rest = columns
    part = _PARTS[role]
    axes = tuple(_side(axis.strip()) for axis in shape.split(" × ")) if shape != "()" else ()
    copies, is_bare, is_in_out, bias = ONE, False, False, None
    classes: tuple[str, ...] = ()
    for column in rest:
        word, _space, text = column.partition(" ")
        match word:
            case "copies":
                copies = parse_rule(text).expression()
            case "in-out":
                is_in_out = True
            case "bare":
                is_bare = True
            case "bias":
                bias = _conditions([text])
            case "in":
                classes = tuple(text.split())
            case "if":
                pass
            case _:
                raise TableError(f"unknown column {column}")
    when = (*outer, *_conditions(rest))
    first, *others = names.split(" ")
    prefix = first.rpartition(".")[0]
    for name in (first, *(f"{prefix}.{other}" if prefix else other for other in others)):
        full_name = name if is_bare else f"{name}.weight"
        spec = _spec(full_name, axes, part, copies, is_in_out=is_in_out)
        yield TableTensor(spec, when, classes)
        if bias is not None:
            length = axes[-1] if is_in_out else axes[0]
            bias_spec = ParameterSpec(f"{name}.bias", (length,), (length,), part, "bias", copies=copies)
            yield TableTensor(bias_spec, (*when, *bias), classes)


def _side(text: str) -> Expression:
    rule = parse_rule(text)
    try:
        return rule.expression()
    except RuleError:  # rounded, which no sum of products is: a size called by its rule
        return Expression.symbol(f"({text})")


def _spec(
    name: str, axes: tuple[Expression, ...], part: ModelPart, copies: Expression, *, is_in_out: bool
) -> ParameterSpec:
    kind = _kind(name, axes, part)
    in_out = axes
    if kind == "matrix" and len(axes) == 2 and not is_in_out:
        in_out = axes[::-1]
    elif kind == "matrix" and part == ModelPart.EXPERTS and len(axes) == 3 and not is_in_out:
        in_out = (axes[0], *_in_out_of_expert(name, axes[1:]))
    return ParameterSpec(name, in_out, axes, part, kind, copies=copies, is_conv1d=is_in_out)


def _kind(name: str, axes: tuple[Expression, ...], part: ModelPart) -> TensorKind:
    if name.endswith(("bias", "_b")):
        return "bias"
    if part in (ModelPart.QUERY_NORM, ModelPart.KEY_NORM):
        return "scale"
    if part in _TABLES or "relative_attention_bias" in name:
        return "table"
    if len(axes) < 2:
        is_norm = "norm" in part.name.lower() or "norm" in name.lower() or re.search(r"(^|\.)ln", name)
        return "scale" if is_norm else "bias"
    return "matrix"


def _in_out_of_expert(name: str, sides: tuple[Expression, ...]) -> tuple[Expression, ...]:
    # Experts in one tensor are stored either way round. One side is d: the width that goes in, or that comes out of
    # the last matrix.
    width = Expression.symbol("d")
    is_last = any(word in name for word in ("down", "w2", "output", "wo"))
    return sides if (sides[-1] if is_last else sides[0]) == width else sides[::-1]


def _attention_line(row: list[str]) -> AttentionLine:
    stack, module, *rules = row[:7]
    heads, kv_heads, d_h, d_v = map(parse_rule, rules[:4])
    rest = [column.partition(" ") for column in row[8:]]
    found = {word: text for word, _space, text in rest}
    return AttentionLine(
        stack=stack,
        module=module,
        heads=heads,
        kv_heads=kv_heads,
        d_h=d_h,
        d_v=d_v,
        scale=None if rules[4] == "unknown" else parse_rule(rules[4]),
        mask=_mask(row[7]),
        window=_limit(found["window"]) if "window" in found else None,
        chunk=_limit(found["chunk"]) if "chunk" in found else None,
        softcap=parse_rule(found["softcap"]) if "softcap" in found else None,
        has_sinks="sinks" in found,
        has_yarn="yarn" in found,
        alibi=_conditions([found["alibi"]]) if "alibi" in found else None,
        when=_conditions(row[8:]),
    )


def _mask(word: str) -> Mask:
    masks: Mapping[str, Mask] = {"causal": "causal", "all": "all", "cross": "cross"}
    return masks[word]


def _limit(text: str) -> Limit:
    length, _if, when = text.partition(" if ")
    return Limit(parse_rule(length), (parse_rule(when),) if when else ())


def _text_part(rows: Sequence[list[str]]) -> TextPart:
    lines = {row[0]: row[1] for row in rows if row[0] != "absent"}
    tie, *absent_tie = next((row[1:] for row in rows if row[0] == "tie_word_embeddings"), ["part", "false"])
    words = [word == "true" for text in absent_tie for word in text.split()] or [False]
    absent = (" ".join(row[1:]).partition(" ") for row in rows if row[0] == "absent")
    return TextPart(
        field=lines["field"],
        table=lines.get("table", ""),
        own_type=lines.get("type", ""),
        allows_others=lines.get("others", "yes") == "yes",
        tie=tie,
        tied=(words[0], words[-1]),
        absent={name: json.loads(value) for name, _space, value in absent},
    )
