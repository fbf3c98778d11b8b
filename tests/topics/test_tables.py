"""The tables of one head and of one layer, against the transformers library and against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.shapes.table import Blank, Tensor
from app.topics.attention_layer import ATTENTION_LAYER
from app.topics.single_head import SINGLE_HEAD

COVERED = {"llama", "qwen2", "qwen3", "mistral", "gpt2"}
HEAD_KEYS = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")
TOKENS = (1, 7, 100, 2048)
Oracle = dict[str, dict[str, Any]]


def covered(oracle: Oracle) -> dict[str, tuple[Architecture, dict[str, Any]]]:
    """The models of the reference whose families the project promises to read, with what was observed of them."""
    return {
        name: (build_architecture(entry["config"], name), entry["expected"])
        for name, entry in oracle.items()
        if entry["model_type"] in COVERED
    }


def sizes(architecture: Architecture, tokens: int) -> dict[str, int]:
    return {"N": tokens, **{symbol: size for symbol, size in architecture.sizes.items() if size is not None}}


def test_the_reference_holds_every_promised_family(oracle: Oracle) -> None:
    assert len(covered(oracle)) == 7
    assert {entry["model_type"] for entry in oracle.values()} >= COVERED


@pytest.mark.parametrize("tokens", TOKENS)
def test_shapes_inside_a_head_are_those_that_transformers_computes(oracle: Oracle, tokens: int) -> None:
    for name, (architecture, expected) in covered(oracle).items():
        count = min(tokens, expected["max_positions"] or tokens)
        observed = expected["activations"][str(count)]
        table = SINGLE_HEAD.shapes(sizes(architecture, count))
        wanted = {key: tuple(observed["head_output" if key == "output" else key]) for key in HEAD_KEYS}
        assert {key: table[key] for key in HEAD_KEYS} == wanted, name


@pytest.mark.parametrize("tokens", TOKENS)
def test_shapes_of_a_layer_are_those_of_its_projections(oracle: Oracle, tokens: int) -> None:
    for name, (architecture, expected) in covered(oracle).items():
        count = min(tokens, expected["max_positions"] or tokens)
        observed = {
            key: tuple(shape[1:]) for key, shape in expected["activations"][str(count)]["projection_outputs"].items()
        }
        table = ATTENTION_LAYER.shapes(sizes(architecture, count))
        if "c_attn" in observed:
            assert sum(table[key][1] for key in ("queries", "keys", "values")) == observed["c_attn"][1]
            assert table["output"] == observed["c_proj"]
            continue
        for key, projection in zip(("queries", "keys", "values", "output"), "qkvo", strict=True):
            assert table[key] == observed[f"{projection}_proj"], (name, key)


def test_parameter_matrices_of_a_head_are_those_of_transformers(oracle: Oracle) -> None:
    for name, (architecture, expected) in covered(oracle).items():
        table = SINGLE_HEAD.shapes(sizes(architecture, 100))
        assert {key: list(table[key]) for key in expected["weights_per_head"]} == expected["weights_per_head"], name


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (6, 2), (8, 1)])
def test_numpy_makes_the_shapes_of_a_grouped_layer(heads: int, groups: int) -> None:
    n, d, d_h, d_v = 5, 11, 3, 2
    x = np.ones((n, d))
    q, k, v = x @ np.ones((d, heads * d_h)), x @ np.ones((d, groups * d_h)), x @ np.ones((d, groups * d_v))
    share = heads // groups
    scores = [q[:, h * d_h : (h + 1) * d_h] @ k[:, h // share * d_h : (h // share + 1) * d_h].T for h in range(heads)]
    mixed = [scores[h] @ v[:, h // share * d_v : (h // share + 1) * d_v] for h in range(heads)]
    context = np.concatenate(mixed, axis=1)
    output = context @ np.ones((heads * d_v, d))
    table = ATTENTION_LAYER.shapes({"N": n, "d": d, "H": heads, "G": groups, "d_h": d_h, "d_v": d_v})
    assert {key: table[key] for key in ("queries", "keys", "values", "scores", "weights", "context", "output")} == {
        "queries": q.shape,
        "keys": k.shape,
        "values": v.shape,
        "scores": scores[0].shape,
        "weights": scores[0].shape,
        "context": context.shape,
        "output": output.shape,
    }


def test_a_layer_with_one_head_is_that_head() -> None:
    given = {"N": 7, "d": 12, "H": 1, "G": 1, "d_h": 5, "d_v": 4}
    assert ATTENTION_LAYER.shapes(given) == SINGLE_HEAD.shapes(given)


def test_a_tensor_gives_its_sides_by_axis() -> None:
    tensor: Tensor = SINGLE_HEAD["W_Q"]
    assert (str(tensor.expression("rows")), str(tensor.expression("columns"))) == ("d", "d_h")
    assert ([str(side) for side in tensor.shape], tensor.parameter) == (["d", "d_h"], True)
    assert str(Blank("W_Q", "rows")) == "W_Q.rows"
