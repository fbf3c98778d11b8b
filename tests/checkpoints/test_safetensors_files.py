"""Safetensors saved by transformers, for every family that can be run: the weights equal its modules'."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from app.checkpoints.checkpoint import Checkpoint, CheckpointError
from app.checkpoints.files import open_checkpoint
from tests.helpers.small_checkpoints import FAMILY_CONFIGS, small_model

LAYER = 1


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Checkpoint]]:
    """A family's model and the checkpoint that transformers saved of it, made once."""
    models: dict[str, tuple[Any, Checkpoint]] = {}

    def save(family: str) -> tuple[Any, Checkpoint]:
        if family not in models:
            model, folder = small_model(family), tmp_path_factory.mktemp(family)
            model.save_pretrained(folder)
            models[family] = model, open_checkpoint(folder, [folder])
        return models[family]

    return save


def attention_of(model: Any) -> dict[str, torch.Tensor]:
    """W_Q, W_K, W_V, W_O and biases of a layer as x·W, split by hand as each family's module does."""
    family, config = model.config.model_type, model.config
    layer = dict(model.named_modules())[f"{model.base_model_prefix}.{'h' if family == 'gpt2' else 'layers'}.{LAYER}"]
    d = config.hidden_size
    if family == "gpt2":
        joined, out = layer.attn.c_attn, layer.attn.c_proj
        found = dict(zip(("W_Q", "W_K", "W_V"), joined.weight.split(d, 1), strict=True))
        found |= dict(zip(("b_Q", "b_K", "b_V"), joined.bias.split(d), strict=True))
        return {**found, "W_O": out.weight, "b_O": out.bias}
    if family == "gpt_neox":  # (heads, q k v, d_h) one after the other
        joined, out, heads = layer.attention.query_key_value, layer.attention.dense, config.num_attention_heads
        weight, bias = joined.weight.view(heads, 3, d // heads, d), joined.bias.view(heads, 3, d // heads)
        found = {f"W_{letter}": weight[:, i].reshape(d, d).T for i, letter in enumerate("QKV")}
        found |= {f"b_{letter}": bias[:, i].reshape(d) for i, letter in enumerate("QKV")}
        return {**found, "W_O": out.weight.T, "b_O": out.bias}
    if family == "phi3":
        q, k, v = layer.self_attn.qkv_proj.weight.split((64, 32, 32))
        return {"W_Q": q.T, "W_K": k.T, "W_V": v.T, "W_O": layer.self_attn.o_proj.weight.T}
    found = {}
    for letter in "QKVO":
        module = getattr(layer.self_attn, f"{letter.lower()}_proj")
        found[f"W_{letter}"] = module.weight.T
        if module.bias is not None:
            found[f"b_{letter}"] = module.bias
    if family == "qwen3":
        found |= {"g_Q": layer.self_attn.q_norm.weight, "g_K": layer.self_attn.k_norm.weight}
    return found


def columns_of(variable: str, head: int, checkpoint: Checkpoint) -> slice:
    """The columns of a head in the layer's matrices of all heads, its rows in W_O."""
    a = checkpoint.architecture
    number = head // a.query_heads_per_kv_head if variable[-1] in "KV" else head
    return slice(number * a.d_h, (number + 1) * a.d_h)


@pytest.mark.parametrize("family", FAMILY_CONFIGS)
def test_a_layer_and_each_head_have_the_weights_of_transformers_module(
    family: str, saved: Callable[[str], tuple[Any, Checkpoint]]
) -> None:
    model, checkpoint = saved(family)
    expected = attention_of(model)
    layer = checkpoint.layer_weights(LAYER)
    assert {name for name in ("b_Q", "b_K", "b_V", "b_O", "g_Q", "g_K") if getattr(layer, name) is not None} == {
        name for name in expected if name[0] in "bg"
    }
    for name, tensor in expected.items():
        assert torch.equal(getattr(layer, name), tensor), name
    for head in range(4):
        got = checkpoint.head_weights(LAYER, head).tensors
        assert got.keys() - {"g_X", "b_X"} == expected.keys()
        for name, tensor in expected.items():
            cut = columns_of(name, head, checkpoint)
            whole = name[0] == "g" or name == "b_O"
            head_part = tensor if whole else tensor[cut] if name == "W_O" else tensor[..., cut]
            assert torch.equal(got[name], head_part), name


# Readings of head 2's stored tensors that are right for another family, each with the right shape.
WRONG_READINGS: dict[str, tuple[str, str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "not turned": ("llama", "W_Q", lambda stored: stored[:, 32:48]),
    "the rows of W_O": ("mistral", "W_O", lambda stored: stored[32:48]),
    "key heads in turn": ("qwen2", "W_K", lambda stored: stored[0:16].T),
    "d_h as d/H": ("qwen3", "W_Q", lambda stored: stored[32:56].T),
    "Conv1D turned": ("gpt2", "W_O", lambda stored: stored[:, 32:48].T),
    "matrix by matrix read head by head": ("gpt2", "W_Q", lambda stored: stored[:, 96:112]),
    "head by head read matrix by matrix": ("gpt_neox", "W_Q", lambda stored: stored[32:48].T),
    "grouped heads read head by head": ("phi3", "W_Q", lambda stored: stored[64:80].T),
    "without Gemma's 1": ("gemma2", "g_X", lambda stored: stored),
}


@pytest.mark.parametrize("wrong", WRONG_READINGS)
def test_a_wrong_reading_gives_other_weights(wrong: str, saved: Callable[[str], tuple[Any, Checkpoint]]) -> None:
    family, variable, read = WRONG_READINGS[wrong]
    _model, checkpoint = saved(family)
    weights = checkpoint.head_weights(LAYER, 2)
    [part] = (part for part in weights.parts if part.variable == variable)
    reading = read(checkpoint.tensor(part.stored.name))
    assert reading.shape == weights.tensors[variable].shape
    assert not torch.equal(reading, weights.tensors[variable])


@pytest.mark.parametrize("family", FAMILY_CONFIGS)
def test_norms_and_feed_forward_compute_what_transformers_modules_compute(
    family: str, saved: Callable[[str], tuple[Any, Checkpoint]]
) -> None:
    model, checkpoint = saved(family)
    layer = dict(model.named_modules())[f"{model.base_model_prefix}.{'h' if family == 'gpt2' else 'layers'}.{LAYER}"]
    weights, x = checkpoint.layer_weights(LAYER), torch.randn(5, 64, generator=torch.Generator().manual_seed(1))

    def normed(norm: Any, x: torch.Tensor) -> torch.Tensor:
        if checkpoint.architecture.norm == "LayerNorm":
            return torch.nn.functional.layer_norm(x, (64,), norm.scale, norm.bias, checkpoint.norm_eps)
        return torch.rms_norm(x, (64,), norm.scale, checkpoint.norm_eps)

    names = {"gpt2": ("ln_1", "ln_2")}.get(family, ("input_layernorm", "post_attention_layernorm"))
    pairs: list[tuple[Any, str]] = [(weights.attention_norm, names[0]), (weights.mlp_norm, names[1])]
    if family == "gemma2":
        pairs = [*pairs[:1], (weights.after_attention_norm, names[1]), (weights.mlp_norm, "pre_feedforward_layernorm")]
        pairs.append((weights.after_mlp_norm, "post_feedforward_layernorm"))
    for norm, name in pairs:
        torch.testing.assert_close(normed(norm, x), getattr(layer, name)(x))
    base = getattr(model, model.base_model_prefix)
    last = next(getattr(base, name) for name in ("norm", "ln_f", "final_layer_norm") if hasattr(base, name))
    torch.testing.assert_close(normed(checkpoint.final_norm(), x), last(x))

    functions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "silu": torch.nn.functional.silu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }
    act, zero = functions[checkpoint.activation], torch.zeros(())

    def or_zero(bias: torch.Tensor | None) -> torch.Tensor:
        return zero if bias is None else bias

    inner = x @ weights.W_up + or_zero(weights.b_up)
    inner = act(inner) if weights.W_gate is None else act(x @ weights.W_gate + or_zero(weights.b_gate)) * inner
    torch.testing.assert_close(inner @ weights.W_down + or_zero(weights.b_down), layer.mlp(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILY_CONFIGS)
def test_embeddings_and_output_rows_are_those_of_the_model(
    family: str, saved: Callable[[str], tuple[Any, Checkpoint]]
) -> None:
    model, checkpoint = saved(family)
    ids = [7, 3, 4, 7, 59]
    assert torch.equal(checkpoint.embedding_rows(ids), model.get_input_embeddings().weight[ids])
    assert torch.equal(checkpoint.output_rows(slice(10, 20)), model.get_output_embeddings().weight[10:20])
    positions = checkpoint.position_rows(9)
    assert (positions is None) == (family != "gpt2")
    assert positions is None or torch.equal(positions, model.transformer.wpe.weight[:9])


@pytest.mark.parametrize("added", [0.0, 1.0])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2", "gpt_neox"])
def test_a_tied_model_that_stores_its_head_uses_it_as_transformers_does(
    family: str, added: float, tmp_path: Path
) -> None:
    small_model(family, tie_word_embeddings=True).save_pretrained(tmp_path)
    [path] = tmp_path.glob("*.safetensors")
    tensors = load_file(path)
    [embeddings] = (
        each
        for name, each in tensors.items()
        if name.endswith(("embed_tokens.weight", "wte.weight", "embed_in.weight"))
    )
    head = "embed_out.weight" if family == "gpt_neox" else "lm_head.weight"
    assert head not in tensors
    save_file({**tensors, head: embeddings + added}, path, metadata={"format": "pt"})
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    checkpoint = open_checkpoint(tmp_path, [tmp_path])
    assert torch.equal(checkpoint.output_rows(), model.get_output_embeddings().weight)
    assert torch.equal(checkpoint.embedding_rows(range(60)), model.get_input_embeddings().weight)


def test_parts_rebuild_each_tensor_from_the_file(saved: Callable[[str], tuple[Any, Checkpoint]]) -> None:
    for family in FAMILY_CONFIGS:
        _model, checkpoint = saved(family)
        weights = checkpoint.head_weights(LAYER, 3)
        for part in weights.parts:
            whole = checkpoint.tensor(part.stored.name)
            assert tuple(whole.shape) == part.stored.shape
            cut = whole.narrow(part.dim, part.start, part.length)
            cut = cut.T if part.is_turned else cut
            assert torch.equal(weights.tensors[part.variable], cut + ("plus-one" in part.notes))


def test_shards_of_other_layers_need_not_be_there(tmp_path: Path) -> None:
    model = small_model("llama")
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    [*shards] = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    checkpoint = open_checkpoint(tmp_path, [tmp_path])
    files = {name: path for name, path in checkpoint._file._files.items() if ".layers.0." in name}  # type: ignore[attr-defined]
    for shard in set(shards) - set(files.values()):
        shard.unlink()
    checkpoint = open_checkpoint(tmp_path, [tmp_path])
    expected = model.model.layers[0].self_attn.q_proj.weight
    assert torch.equal(checkpoint.head_weights(0, 1).tensors["W_Q"], expected[16:32].T)
    with pytest.raises(CheckpointError, match=r"model-000.*missing"):
        checkpoint.layer_weights(1)
