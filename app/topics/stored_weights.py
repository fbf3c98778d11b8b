"""What the file holds: a layer's stored attention parameters, and the slice of each that belongs to one head.

nn.Linear stores its weight as out × in and computes x · Wᵀ; GPT-2's Conv1D stores in × out. Names, shapes and the order
in a fused matrix are those of the family's layout.

>>> from app.models.read_config import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> table, sizes = stored_weights(gpt2, 100), {**gpt2.all_sizes, "j": 3}
>>> [(tensor.stored_as, table.shapes(sizes)[tensor.key]) for tensor in table.tensors]
[('attn.c_attn.weight', (768, 2304)), ('attn.c_proj.weight', (768, 768))]
>>> [table.askable[key].size("count", sizes) for key in ("q_start", "k_start", "v_start")]
[192, 960, 1728]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.algebra.expression import ONE, ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_specs import FusedOrder, ModelPart, ParameterSpec, ParameterSpecs, parse_shape
from app.shapes.operation import Matmul
from app.shapes.table import PARTS_SUM, Count, FromParts, Role, Tensor, TensorTable, tensor
from app.topics.requirements import ATTENTION_OF_ONE_SHAPE, MORE_THAN_ONE_HEAD, OWN_PROJECTIONS, Requirement
from app.topics.topic import FigurePlan, Topic
from app.translation import N_

# The matrices in a layout's order: letter and role, then the key and letter of what each computes.
_SEPARATE: tuple[tuple[str, Role, str, str], ...] = (
    ("W_Q", "query", "queries", "q"),
    ("W_K", "key", "keys", "k"),
    ("W_V", "value", "values", "v"),
    ("W_O", "output", "output", "o"),
)
_FUSED: tuple[tuple[str, Role, str, str], ...] = (("W_QKV", "hidden", "fused", "qkv"), _SEPARATE[-1])
# The parameter that begins a stored matrix, by its row.
FIRST_PARAMETER = {**{f"stored_{letter}": letter for letter, *_ in _SEPARATE}, "stored_W_QKV": "W_Q"}
_CONV1D = "conv1d-weights"
# What the exhibit of a real head asks for, except rows that the model lacks.
FILE_OF_ONE_HEAD = ("stored_W_Q", "stored_W_K", "stored_W_QKV", "stored_W_O", "q_start", "kv_head", "k_start", "o_dim")
OF_SHARED_HEAD = ("kv_head", "k_start")  # j·G/H is only a whole number for the first of the heads that share

_J, _H, _G, _D_H, _D_V = map(Expression.symbol, ("j", "H", "G", "d_h", "d_v"))


def fused_order(architecture: Architecture) -> FusedOrder:
    """The order of all heads' queries, keys and values in the layer's fused matrix; "" without one."""
    order = architecture.attention_matrices[0].fused if architecture.attention_matrices else ""
    return "by-matrix" if order == "by-head" and architecture.G == 1 else order


def chosen_head(architecture: Architecture) -> int:
    """The query head j, from 0, that a sheet asks about; 0 only if no other head will do."""
    heads, kv_heads = architecture.H, architecture.G
    share = heads // kv_heads if kv_heads > 1 else 1
    taken = {architecture.d, heads, kv_heads, architecture.d_h, architecture.d_v}

    def rank(head: int) -> tuple[bool, bool, int]:
        looks_in_turn = share > 1 and head % kv_heads in (head // share, head)
        return (head in taken, looks_in_turn, abs(head // share - heads // share // 3 - 1))

    return min(range(share, heads, share), key=rank, default=0)


def stored_weights(architecture: Architecture, _tokens: int) -> TensorTable:
    """The stored matrices of one layer's attention, then the first index and length of head j's slices."""
    table = _table_of(architecture.attention_matrices)
    return replace(table, counts=tuple(_slices(architecture, is_conv1d=table.key == _CONV1D)))


@dataclass(frozen=True)
class HeadSlice:
    """One head's slice of a stored matrix, for torch.narrow."""

    dim: int
    start: int
    length: int


def head_slices(architecture: Architecture, head: int) -> Mapping[str, HeadSlice]:
    """The slices of the stored matrices for any query head, by "Q", "K", "V" and "O"."""
    a = architecture
    after_first = head % a.query_heads_per_kv_head  # of the heads that share keys and values
    sizes = {**a.all_sizes, "j": head - after_first}
    at = {count.key: count.size("count", sizes) for count in stored_weights(a, 1).counts}
    return {
        "Q": HeadSlice(at["q_dim"], at["q_start"] + after_first * a.d_h, a.d_h),
        "K": HeadSlice(at["q_dim"], at["k_start"], a.d_h),
        "V": HeadSlice(at["q_dim"], at["v_start"], a.d_v),
        "O": HeadSlice(at["o_dim"], at["o_start"] + after_first * a.d_v, a.d_v),
    }


def _table_of(specs: ParameterSpecs) -> TensorTable:
    kinds = _SEPARATE if len(specs) == len(_SEPARATE) else _FUSED
    tensors = (
        Tensor(
            f"stored_{letter}",
            letter,
            spec.stored_shape,
            role,
            parameter=True,
            counted=False,
            stored_as=spec.name.replace("{j}", "0"),  # the first, of a layer that has several
        )
        for (letter, role, _key, _letter), spec in zip(kinds, specs, strict=True)
    )
    is_conv1d = specs[0].stored_shape == specs[0].in_out_shape
    key = _CONV1D if is_conv1d else "separate-weights" if kinds is _SEPARATE else "fused-weights"
    return TensorTable(key, tuple(tensors))


def _slices(architecture: Architecture, *, is_conv1d: bool) -> Iterator[Count]:
    is_shared = 1 < architecture.G < architecture.H
    if is_shared:
        yield _index("kv_head", _J * _G / _H, "{j} · {G}/{H}")
    yield replace(_index("q_dim", ONE if is_conv1d else ZERO, hint="dim-of-heads"), dims=2)
    starts = _starts(architecture, "{kv_head}" if is_shared else "{j}" if architecture.G > 1 else "")
    for key, (start, formula, made_from) in starts.items():
        yield _index(f"{key}_start", start, formula, made_from if is_shared else None, "begin-with-head-zero")
        if key == "q":
            yield Count("q_length", _D_H, "{d_h}", unit="entries")
    yield replace(_index("o_dim", ZERO if is_conv1d else ONE, hint="dim-of-heads"), dims=2)
    yield _index("o_start", _J * _D_V, "{j} · {d_v}", hint="begin-with-head-zero")


def _starts(architecture: Architecture, kv: str) -> dict[str, tuple[Expression, str, FromParts | None]]:
    order = fused_order(architecture)
    kv_head = _J * _G / _H if kv else ZERO
    if order == "by-head":  # as many groups as key heads: the queries that share a key and a value, then these two
        queries, in_words = _H / _G * _D_H, "{d_h}" if kv == "{j}" else "{H}/{G} · {d_h}"
        group, begin = queries + _D_H + _D_V, f"{kv} · ({in_words} + {{d_h}} + {{d_v}})"
        in_group = {
            "q": (ZERO, begin),
            "k": (queries, f"{begin} + {in_words}"),
            "v": (queries + _D_H, f"{begin} + {in_words} + {{d_h}}"),
        }
        return {
            key: (kv_head * group + offset, formula, FromParts(PARTS_SUM * group + offset, ("kv_head",)))
            for key, (offset, formula) in in_group.items()
        }
    offsets = {"k": (ZERO, ""), "v": (ZERO, "")}
    if order:
        offsets = {"k": (_H * _D_H, "{H} · {d_h}"), "v": (_H * _D_H + _G * _D_H, "({H} + {G}) · {d_h}")}
    starts: dict[str, tuple[Expression, str, FromParts | None]] = {"q": (_J * _D_H, "{j} · {d_h}", None)}
    for key, width in (("k", _D_H), ("v", _D_V)):
        offset, before = offsets[key]
        block = f"{kv} · {{{width}}}" if kv else ""
        formula = " + ".join(filter(None, (before, block)))
        starts[key] = (offset + kv_head * width, formula, FromParts(offset + PARTS_SUM * width, ("kv_head",)))
    return starts


def _index(key: str, total: Expression, formula: str = "", made_from: FromParts | None = None, hint: str = "") -> Count:
    return Count(key, total, formula, made_from, unit="index", hint=hint)


def _with_activations(table: TensorTable) -> TensorTable:
    is_conv1d = table.key == _CONV1D
    weight = "i o" if is_conv1d else "o i"
    tensors = [tensor("input", "x", "N, d", "input"), tensor("context", "c", "N, H*d_v", "value")]
    kinds = _SEPARATE if len(table.tensors) == len(_SEPARATE) else _FUSED
    for stored, (_letter, role, key, letter) in zip(table.tensors, kinds, strict=True):
        width, operand = stored.columns if is_conv1d else stored.rows, "context" if key == "output" else "input"
        product = Matmul(f"{operand} {stored.key}", f"n i, {weight} -> n o")
        tensors += [stored, tensor(key, letter, f"N, {width}", role, product)]
    return table.with_only(tensors)


def _stored(name: str, rows: str, columns: str, *, is_conv1d: bool = False) -> ParameterSpec:
    in_out = parse_shape(rows, columns)
    return ParameterSpec(name, in_out, in_out if is_conv1d else in_out[::-1], ModelPart.ATTENTION, "matrix")


def _fused(*, is_conv1d: bool) -> ParameterSpecs:
    qkv = _stored("qkv", "d", "H*d_h + G*d_h + G*d_v", is_conv1d=is_conv1d)
    return (qkv, _stored("o", "H*d_v", "d", is_conv1d=is_conv1d))


# Each model has its own names; these are the three forms, for drawing and for checks.
_SEPARATE_SPECS = (
    _stored("q", "d", "H*d_h"),
    _stored("k", "d", "G*d_h"),
    _stored("v", "d", "G*d_v"),
    _stored("o", "H*d_v", "d"),
)
_TABLES = tuple(map(_table_of, (_SEPARATE_SPECS, _fused(is_conv1d=False), _fused(is_conv1d=True))))
_OUTPUT_FIGURE = FigurePlan("stored-output", "context", ("output",))
_FUSED_FIGURES = (FigurePlan("stored-fused", "input", ("fused",)), _OUTPUT_FIGURE)
_SEPARATE_FIGURES = (FigurePlan("stored-in", "input", ("queries", "keys", "values")), _OUTPUT_FIGURE)

_HEADS_AS_STORED = Requirement(
    lambda architecture, _tokens: architecture.kv_heads == architecture.G,
    N_(
        "This sheet gives each query head of {model} its own keys and values, which no file holds: choose a worksheet "
        "that leaves the key/value heads as they are, or a model such as GPT-2."
    ),
)
_KNOWN_ORDER = Requirement(
    lambda architecture, _tokens: fused_order(architecture) != "in-parts",
    N_(
        "{model} stores queries, values and keys of a few heads at a time in one matrix, an order that this sheet does "
        "not have: choose a model such as GPT-2 or Pythia 160M."
    ),
)


TOPIC = Topic(
    "stored-weights",
    "parameters",
    stored_weights,
    (OWN_PROJECTIONS, ATTENTION_OF_ONE_SHAPE, MORE_THAN_ONE_HEAD, _HEADS_AS_STORED, _KNOWN_ORDER),
    extra_sizes=lambda architecture, _tokens: {"j": chosen_head(architecture)},
    extra_symbols="j",
    tables=_TABLES,
    counts="kv_head q_dim q_start q_length k_start v_start o_dim o_start",
    figures={
        table.key: _SEPARATE_FIGURES if len(table.tensors) == len(_SEPARATE) else _FUSED_FIGURES for table in _TABLES
    },
    drawn_with={table.key: _with_activations(table) for table in _TABLES},
)
