"""GGUF files: weights against transformers' modules, the permutation of Q and K, the index, and damaged files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from app.checkpoints.checkpoint import Checkpoint, CheckpointError
from app.checkpoints.files import SMOLLM2, listed_checkpoints, open_checkpoint, smollm2_file
from app.checkpoints.gguf import read_index
from tests.helpers.small_checkpoints import permuted, small_model, write_gguf


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(path, [path.parent])


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_each_head_has_the_weights_of_transformers_module(family: str, tmp_path: Path) -> None:
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
    model = small_model("llama", attention_bias=False, mlp_bias=False)
    checkpoint = opened(write_gguf(model, tmp_path / "model.gguf"))
    whole = checkpoint.tensor("blk.0.attn_q.weight")
    assert torch.equal(checkpoint.tensor("blk.0.attn_q.weight", slice(5, 37), slice(3, 9)), whole[5:37, 3:9])


LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 8192}


def test_the_rope_factors_of_llama_3_are_recognized(tmp_path: Path) -> None:
    model = small_model("llama", attention_bias=False, mlp_bias=False, rope_parameters=LLAMA3)
    path = write_gguf(model, tmp_path / "model.gguf")
    rotary = opened(path).architecture.rotary
    assert rotary is not None
    assert {**rotary.scaling, "rope_theta": rotary.theta} == LLAMA3
    model.model.rotary_emb.inv_freq[3] *= 0.9
    with pytest.raises(CheckpointError, match="rope_freqs"):
        opened(write_gguf(model, path))


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type"),
        ({"llama.expert_count": 8}, "llama.expert_count"),
        ({"general.type": "adapter"}, "general.type"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length"),
        ({"split.count": 3}, "split.count"),
        ({"llama.attention.head_count": [4, 4]}, "num_attention_heads"),
        ({"llama.attention.key_length": 15}, "odd"),
    ],
)
def test_metadata_that_a_run_cannot_follow_is_refused_by_name(
    stated: dict[str, Any], named: str, tmp_path: Path
) -> None:
    model = small_model("llama", attention_bias=False, mlp_bias=False)
    with pytest.raises(CheckpointError, match=named):
        opened(write_gguf(model, tmp_path / "model.gguf", **stated))


def test_a_file_in_pieces_has_the_weights_of_the_whole(tmp_path: Path) -> None:
    model = small_model("qwen2")
    whole = opened(write_gguf(model, tmp_path / "model.gguf"))
    (tmp_path / "pieces").mkdir()
    first = write_gguf(model, tmp_path / "pieces" / "model.gguf", split_after=9)
    pieces = sorted(first.parent.iterdir())
    assert len(pieces) == 3
    for checkpoint in (opened(first), open_checkpoint(first.parent, [first.parent])):
        for layer in (0, 1):
            ours, theirs = (vars(each.layer_weights(layer)) for each in (checkpoint, whole))
            same = [torch.equal(ours[name], theirs[name]) for name in ours if isinstance(ours[name], torch.Tensor)]
            assert all(same)
            assert len(same) > 8
        assert torch.equal(checkpoint.output_rows(slice(5, 9)), whole.output_rows(slice(5, 9)))
    assert [(each.name, each.source) for each in listed_checkpoints([first.parent]) if each.key != SMOLLM2] == [
        ("model", str(first))
    ]
    with pytest.raises(CheckpointError):
        opened(pieces[1])
    pieces[2].write_bytes(pieces[1].read_bytes())
    with pytest.raises(CheckpointError):
        opened(first)
    pieces[2].unlink()
    with pytest.raises(CheckpointError):
        opened(first)


def test_a_file_in_pieces_is_listed_once_its_last_piece_has_come(tmp_path: Path) -> None:
    first = write_gguf(small_model("qwen2"), tmp_path / "model.gguf", split_after=9)
    last = max(tmp_path.iterdir())
    last.rename(tmp_path / "unfinished")
    assert [each.key for each in listed_checkpoints([tmp_path])] == [SMOLLM2]
    (tmp_path / "unfinished").rename(last)
    assert [each.source for each in listed_checkpoints([tmp_path])][1:] == [str(first)]


def test_the_header_is_walked_once(tmp_path: Path) -> None:
    path = smollm2_file()
    assert path is not None
    index = read_index(path)
    started = time.process_time()
    assert read_index(path) is index
    assert time.process_time() - started < 0.1
    changed = write_gguf(small_model("qwen2"), tmp_path / "model.gguf")
    first = read_index(changed)
    write_gguf(small_model("qwen3"), changed)
    assert read_index(changed) is not first
