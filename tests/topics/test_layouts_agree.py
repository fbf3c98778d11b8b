"""The two sets of shapes in symbols agree, for every family and every table with parameters.

A topic's table has the matrices that activations are multiplied by; a family's layout has what a model stores. They are
compared by place and shape, whatever a tensor is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

import pytest

from app.algebra.expression import ZERO, Expression
from app.models.architecture import Architecture
from app.models.parameter_specs import Bucket, ParameterSpecs
from app.shapes.table import TensorTable
from app.topics.registry import TOPICS, refusal, sizes_for, topic_for
from app.topics.topic import MODEL_SYMBOLS
from tests.helpers.every_family import TOKENS, architectures

Matrix = tuple[Expression, ...]  # rows and columns in the orientation of x·W; of experts, E before them

ONE_HEAD = ("single-head", "bidirectional-head", "decode-step", "cross-attention", "head-parameters")
ALL_HEADS = ("attention-layer", "three-dimensions", "four-dimensions", "head-parameters", "layer-parameters")
FEED_FORWARD = ("layer-parameters", "whole-model")

# The keys of parameters in tables. Of the first four, how many heads of each a layer has.
HEADS = {"W_Q": "H", "W_K": "G", "W_V": "G", "W_O": "H"}
LATENTS = ("W_DQ", "W_UQ", "W_DKV", "W_KR", "W_UK", "W_UV")
BLOCK = ("W_gate", "W_up", "W_down")
KERNELS = {"W_patch", "W_conv", "W_stride"}
OF_DECODER = {"H": "H_dec", "G": "H_dec", "d_h": "d_h_dec", "d_v": "d_h_dec"}  # beside an encoder, in its layout
# Two sizes that a layout may write as one where its models have them alike.
ALIKE = (("G", "H"), ("d_v", "d_h"), ("H_dec", "H"), ("d_h_dec", "d_h"))


def tables(topic: str) -> Iterator[tuple[Architecture, TensorTable]]:
    """The topic's table for each model that it is true of."""
    for a in architectures():
        if refusal(topic, a, TOKENS) is None:
            yield a, topic_for(topic, a, TOKENS)


def layers(topic: str) -> Iterator[tuple[Architecture, TensorTable, ParameterSpecs]]:
    """The same, with what a layer of the stack stores that the topic is about, for each kind of layer."""
    for a, table in tables(topic):
        runs = a.stacks[-1 if TOPICS[topic].uses_decoder else 0].runs
        yield from ((a, table, run.parameters) for run in runs if run.has_self_attention)


def stored(specs: ParameterSpecs, bucket: Bucket, sides: int = 2) -> list[Matrix]:
    """The tensors of a bucket with so many sides, in the order in which they are stored."""
    return [spec.in_out_shape for spec in specs if spec.bucket == bucket and len(spec.in_out_shape) == sides]


def projections(specs: ParameterSpecs, topic: str) -> list[Matrix]:
    """Those of attention; of cross-attention in the bucket "other", without a table of relative positions there."""
    if topic != "cross-attention":
        return stored(specs, "attention")
    return [shape for shape in stored(specs, "other") if str(shape[0]) != "n_buckets"]


def asked(table: TensorTable, keys: Iterable[str], prefix: str = "") -> list[Matrix]:
    """The table's own matrices of these keys."""
    return [table[prefix + key].shape for key in keys if prefix + key in table.by_key]


def of_all_heads(table: TensorTable) -> list[Matrix]:
    """The table's projections of one head side by side, as often as the layer has such heads; of W_O one on another."""
    widened = list[Matrix]()
    for key, symbol in HEADS.items():
        (rows, columns), heads = table[key].shape, Expression.symbol(symbol)
        widened.append((rows * heads, columns) if key == "W_O" else (rows, columns * heads))
    return widened


def joined(matrices: Iterable[Matrix]) -> list[Matrix]:
    """Matrices with the same rows as one: the same whether they are stored apart or side by side."""
    columns = dict[Expression, Expression]()
    for rows, width in matrices:
        columns[rows] = columns.get(rows, ZERO) + width
    return sorted(columns.items(), key=str)


def assert_agree(topic: str, a: Architecture, of_table: list[Matrix], of_layout: list[Matrix]) -> None:
    """The same matrices in the same order, or the same side by side: in this model's sizes, and in symbols."""
    if len(of_table) != len(of_layout):
        of_table, of_layout = joined(of_table), joined(of_layout)
    assert numbers(of_table, sizes_for(topic, a, TOKENS, TOKENS)) == numbers(of_layout, a.all_sizes), (topic, a.name)
    own = renamed(of_table, OF_DECODER) if TOPICS[topic].uses_decoder and a.encoder_decoder else of_table
    alike = {old: new for old, new in ALIKE if a.all_sizes.get(old) == a.all_sizes.get(new)}
    assert renamed(own, alike) == renamed(of_layout, alike), (topic, a.name)


def numbers(matrices: list[Matrix], sizes: Mapping[str, int]) -> list[list[int]]:
    return [[side.size(sizes) for side in matrix] for matrix in matrices]


def renamed(matrices: Iterable[Matrix], names: Mapping[str, str]) -> list[Matrix]:
    new = {old: Expression.symbol(name) for old, name in names.items()}
    return [tuple(side.substitute(new) for side in matrix) for matrix in matrices]


@pytest.mark.parametrize("topic", ONE_HEAD)
def test_the_heads_of_a_layer_have_its_projections(topic: str) -> None:
    for a, table, layer in layers(topic):
        assert_agree(topic, a, of_all_heads(table), projections(layer, topic))


@pytest.mark.parametrize("topic", ALL_HEADS)
def test_the_projections_of_a_layer_are_stored(topic: str) -> None:
    for a, table, layer in layers(topic):
        prefix = "layer_" if topic == "head-parameters" else ""
        wanted = [*asked(table, HEADS, prefix), *asked(table, LATENTS)]
        assert_agree(topic, a, wanted, projections(layer, topic))


@pytest.mark.parametrize("topic", FEED_FORWARD)
def test_the_matrices_of_the_feed_forward_block_are_stored(topic: str) -> None:
    for a, table, layer in layers(topic):
        assert_agree(topic, a, asked(table, BLOCK), stored(layer, "mlp"))


def test_an_expert_is_a_slice_of_what_is_stored() -> None:
    for a, table, layer in layers("experts"):
        if of_experts := stored(layer, "mlp", sides=3):
            assert {str(experts) for experts, *_ in of_experts} == {"E"}, a.name
            width = of_experts[-1][1]  # which layouts call d_ff or d_exp
            own = renamed(asked(table, BLOCK), {"d_exp": str(width)})
            assert_agree("experts", a, own, [(rows, columns) for _, rows, columns in of_experts])
            assert table["W_router"].shape in stored(layer, "mlp"), a.name


def test_the_embedding_and_the_lm_head_are_stored() -> None:
    for a, table in tables("whole-model"):
        embedding = stored(a.base_parameters, "embedding")[0]
        assert_agree("whole-model", a, [table["embedding"].shape], [embedding])
        head = stored(a.head_parameters, "output_head") or [embedding[::-1]]
        assert_agree("whole-model", a, [table["output_head"].shape], head)


def test_the_kernels_and_the_classifier_are_stored() -> None:
    for a, table in tables("text-to-loss"):
        shapes = {spec.stored_shape for spec in a.base_parameters}
        assert {table[key].shape for key in KERNELS & table.by_key.keys()} <= shapes, a.name
        if a.input == "image":
            assert_agree("text-to-loss", a, [table["classifier"].shape], stored(a.head_parameters, "other"))


def test_a_token_meets_each_stored_number_of_a_layer_once() -> None:
    for a, table, layer in layers("costs"):
        sizes = sizes_for("costs", a, TOKENS, TOKENS)
        flops = {count.key: count.size("count", sizes) for count in table.counts if count.unit == "operations"}
        projected = sum(flops[f"{key}_flops"] for key in ("queries", "keys", "values", "output"))
        counts = {bucket: sum(map(prod, numbers(stored(layer, bucket), sizes))) for bucket in ("attention", "mlp")}
        assert projected == 2 * TOKENS * counts["attention"], a.name
        assert flops["feed_forward_flops"] == 2 * TOKENS * counts["mlp"], a.name


def test_no_table_with_parameters_is_left_out() -> None:
    compared = {*HEADS, *(f"layer_{key}" for key in HEADS), *LATENTS, *BLOCK, "W_router", "embedding", "output_head"}
    compared |= {*KERNELS, "classifier"}
    topics = {*ONE_HEAD, *ALL_HEADS, *FEED_FORWARD, "experts", "text-to-loss"}
    known = {tensor for topic in topics for table in TOPICS[topic].tables for tensor in table.tensors}
    for topic, spec in TOPICS.items():
        tensors = [t for table in spec.tables for t in table.tensors if not t.stored_as]
        learned = [t for t in tensors if t.parameter and not t.made_by]
        of_models = {t for t in learned if all(side.symbols <= MODEL_SYMBOLS for side in t.shape)}
        assert {tensor.key for tensor in of_models} <= compared
        assert topic in topics or of_models <= known
