"""GGUF files: weights against transformers' modules, the permutation of Q and K, the index, and damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from app.checkpoints.checkpoint import Checkpoint, CheckpointError
from app.checkpoints.sources import open_checkpoint
from tests.helpers.small_checkpoints import permuted, small_model, write_gguf


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(path, [path.parent])


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_each_head_has_the_weights_of_transformers_module(family: str, tmp_path: Path) -> None:
    """With G < H; in llama, whose rows are permuted, the rows as they lie or put back by H heads are others."""
    model = small_model(family, **({"attention_bias": False, "mlp_bias": False} if family == "llama" else {}))
    checkpoint = opened(write_gguf(model, tmp_path / "model.gguf"))
    layer, width = model.model.layers[1].self_attn, 24 if family == "qwen3" else 16
    projections = (layer.q_proj, layer.k_proj, layer.v_proj)
    for head in range(4):
        got = checkpoint.head_weights(1, head).tensors
        for letter, module, number in zip("QKV", projections, (head, head // 2, head // 2), strict=True):
            rows = slice(number * width, (number + 1) * width)
            assert torch.equal(got[f"W_{letter}"], module.weight[rows].T)
            assert (f"b_{letter}" in got) == (module.bias is not None)
            if module.bias is not None:
                assert torch.equal(got[f"b_{letter}"], module.bias[rows])
        assert torch.equal(got["W_O"], layer.o_proj.weight[:, head * width : (head + 1) * width].T)
    k = layer.k_proj.weight
    if family == "llama":
        as_it_lies, by_query_heads = permuted(k, 2), permuted(permuted(k, 2), 4)
        assert not any(torch.equal(checkpoint.layer_weights(1).W_K, wrong.T) for wrong in (as_it_lies, by_query_heads))
    assert torch.equal(checkpoint.layer_weights(1).W_K, k.T)


def test_rows_that_cut_through_a_permuted_head_are_put_in_order_first(tmp_path: Path) -> None:
    """Any rows of a tensor are those of the whole tensor."""
    model = small_model("llama", attention_bias=False, mlp_bias=False)
    checkpoint = opened(write_gguf(model, tmp_path / "model.gguf"))
    whole = checkpoint.tensor("blk.0.attn_q.weight")
    assert torch.equal(checkpoint.tensor("blk.0.attn_q.weight", slice(5, 37), slice(3, 9)), whole[5:37, 3:9])


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type"),
        ({"llama.expert_count": 8}, "llama.expert_count"),
        ({"general.type": "adapter"}, "general.type"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length"),
        ({"split.count": 3}, "split.count"),
        ({"llama.attention.head_count": [4, 4]}, "num_attention_heads"),
    ],
)
def test_metadata_that_a_run_cannot_follow_is_refused_by_name(
    stated: dict[str, object], named: str, tmp_path: Path
) -> None:
    """Scaling, experts, adapters, files in parts."""
    model = small_model("llama", attention_bias=False, mlp_bias=False)
    with pytest.raises(CheckpointError, match=named):
        opened(write_gguf(model, tmp_path / "model.gguf", **stated))
