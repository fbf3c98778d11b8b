"""What a product costs: counted by multiplying matrices number by number, and refused for anything else."""

from __future__ import annotations

import pytest

from app.models.read_config import build_architecture
from app.shapes.table import TensorTable
from app.topics.costs import product_flops
from app.topics.registry import TOPICS, sizes_for, topic_for
from tests.helpers.tables import TABLES

# A length for every symbol, all different, so that no product comes out right by chance.
SYMBOLS = ("N", "G", "W", "d", "H", "M", "d_h", "d_v", "d_ff", "V", "d_rot", "r_q", "r_kv", "d_nope", "d_rope", "B")
OF_TOPICS = " ".join(topic.extra_symbols for topic in TOPICS.values()).split()  # sizes of only one topic
SIZES = {
    **dict.fromkeys(OF_TOPICS, 18),
    **dict(zip(SYMBOLS, range(2, 18), strict=True)),
    "E": 20,
    "k": 30,
    "d_exp": 19,
    "c": 3, "p": 4, "I": 12, "n_side": 3, "bands": 5, "C": 6, "labels": 7,
}  # fmt: skip  # N*k/E is 3, H/G is 2


def operations(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Multiplications and additions of a product, counted one by one; the right matrix is transposed if need be."""
    rows, inner = left
    columns = right[1] if right[0] == inner else right[0]
    return sum(2 for _row in range(rows) for _column in range(columns) for _step in range(inner))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_product_costs_two_operations_for_each_step(table: TensorTable) -> None:
    shapes = table.shapes(SIZES)
    for tensor in table.activations:
        try:
            flops = product_flops(table, tensor.key).size(SIZES)
        except KeyError:
            continue
        assert tensor.made_by
        left, right = (shapes[operand] for operand in tensor.made_by.operands)
        assert flops == operations(left, right), tensor.key


@pytest.mark.parametrize(
    ("table", "key"),
    [("attention-layer", "scores"), ("whole-model", "residual"), ("rotary-pairs", "rotated_keys"),
     ("whole-model", "hidden"), ("decode-step", "keys"), ("single-head", "weights")],
)  # fmt: skip
def test_what_is_no_product_of_two_matrices_has_no_cost(table: str, key: str) -> None:
    with pytest.raises(KeyError):
        product_flops(TABLES[table], key)


def test_a_window_bounds_the_cache() -> None:
    sizes = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6}
    layers = {"num_hidden_layers": 4, "intermediate_size": 20, "vocab_size": 30, "sliding_window": 8}
    gemma = build_architecture({"model_type": "gemma2", **sizes, **layers}, "Gemma")
    for tokens, kept in ((5, 4 * 5), (8, 4 * 8), (50, 2 * 50 + 2 * 8)):
        table = topic_for("costs", gemma, tokens)
        bytes_kept = table.askable["cache_16_bit"].expression("count").size(sizes_for("costs", gemma, tokens, tokens))
        assert bytes_kept == 2 * kept * 2 * (6 + 6)
