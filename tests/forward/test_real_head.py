"""A real head against transformers' eager attention, in every family, and with SmolLM2's weights."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from app.checkpoints.checkpoint import Checkpoint, LayerWeights
from app.checkpoints.files import open_checkpoint
from app.checkpoints.gguf import GgufFile
from app.forward.lines import ForwardError
from app.forward.real_head import (
    SAVED,
    HiddenStates,
    RealHead,
    embeddings,
    hidden_state,
    likelihood,
    run_layer,
    run_real_head,
    save_npz,
)
from tests.helpers.real_checkpoints import letters, observe, relative_error, saved_checkpoint
from tests.helpers.shipped import LIBRARY
from tests.helpers.small_checkpoints import FAMILY_CONFIGS, random_fields, small_model, write_gguf

TEXT = "it sees the cat because"  # longer than the windows of the small models
MAX_ERROR = 1e-4
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("gpt_neox", {"use_parallel_residual": False}),
    ("gemma2", {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.0}),
    ("qwen2", {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}}),
    ("llama", {"hidden_act": "gelu", "tie_word_embeddings": True}),
    *((family, random_fields(family, seed)) for seed in range(6) for family in FAMILY_CONFIGS),
]
# What a config may state and transformers' classes of the family don't read.
IGNORED: list[tuple[str, dict[str, Any]]] = [
    *((family, {"partial_rotary_factor": 0.5}) for family in ("llama", "mistral", "qwen2", "qwen3", "gemma2")),
    *((family, {"layer_types": ["sliding_attention", "full_attention"]}) for family in ("llama", "phi3", "gpt_neox")),
]
SENTENCE = "The cat sat on the mat because it was tired, and then the cat sat on the mat again."


@pytest.fixture(scope="module")
def smollm2() -> Checkpoint:
    return open_checkpoint("smollm2", [])


@pytest.mark.parametrize(
    ("family", "stated", "first_layer"),
    [
        *((family, {}, 1) for family in FAMILY_CONFIGS),
        *((family, stated, 1) for family, stated in IGNORED),
        *(pytest.param(family, stated, 0, marks=pytest.mark.slow) for family, stated in VARIANTS),
    ],
)
def test_every_head_equals_transformers(family: str, stated: dict[str, Any], first_layer: int, tmp_path: Path) -> None:
    """What each layer receives, the weights of each head, the sum of their outputs, and the likelihood of the text."""
    model = small_model(family, **stated)
    checkpoint, states = saved_checkpoint(model, tmp_path), HiddenStates()
    a, ids = checkpoint.architecture, [token.id for token in letters(TEXT)]
    observed = observe(model, ids)
    for layer in range(first_layer, a.L):
        state = hidden_state(checkpoint, ids, layer, states=states)
        assert relative_error(state, observed.inputs[layer]) < MAX_ERROR
        bias = checkpoint.layer_weights(layer).b_O
        total = torch.zeros(len(ids), a.d) if bias is None else bias.expand(len(ids), a.d).clone()
        for head in range(a.H):
            run = run_real_head(checkpoint, TEXT, layer=layer, head=head, states=states)
            expected = observed.weights[layer][head]
            assert relative_error(run.arrays["weights"], expected) < MAX_ERROR
            assert relative_error(run.layer_weights[head].astype(np.float32), expected) < 1e-3
            np.testing.assert_array_equal(run.mask, expected > 0)
            total += torch.from_numpy(run.arrays["output"])
        assert relative_error(total, observed.outputs[layer]) < MAX_ERROR
    assert likelihood(checkpoint, TEXT, states=states) == pytest.approx(observed.likelihood, rel=MAX_ERROR)


def head_by_head(w: LayerWeights) -> LayerWeights:
    """The matrices of a fused one that lies head by head, read as if it lay matrix by matrix."""
    by_head = [matrix.reshape(len(matrix), 4, -1) for matrix in (w.W_Q, w.W_K, w.W_V)]
    queries, keys, values = torch.stack(by_head, 2).flatten(1).chunk(3, 1)
    return replace(w, W_Q=queries, W_K=keys, W_V=values)


def swapped(matrix: torch.Tensor) -> torch.Tensor:
    """The columns of two key heads in the wrong order."""
    return matrix.view(len(matrix), 2, -1).flip(1).flatten(1)


def without_offset(w: LayerWeights) -> LayerWeights:
    return replace(w, attention_norm=replace(w.attention_norm, scale=w.attention_norm.scale - 1))


# For each family a mistake that changes no shape.
MISREAD: dict[str, Callable[[LayerWeights], LayerWeights]] = {
    "llama": lambda w: replace(w, W_K=swapped(w.W_K)),
    "mistral": lambda w: replace(w, W_O=w.W_O.T),
    "qwen2": lambda w: replace(w, b_K=None if w.b_K is None else 0 * w.b_K),
    "qwen3": lambda w: replace(w, g_Q=None if w.g_Q is None else torch.ones_like(w.g_Q)),
    "gpt2": lambda w: replace(w, W_Q=w.W_Q.T),
    "gpt_neox": head_by_head,
    "phi3": lambda w: replace(w, W_K=w.W_V, W_V=w.W_K),
    "gemma2": without_offset,
}


@pytest.mark.parametrize("family", FAMILY_CONFIGS)
def test_weights_that_are_misread_are_noticed(family: str, tmp_path: Path) -> None:
    model = small_model(family)
    checkpoint, ids = saved_checkpoint(model, tmp_path), [token.id for token in letters(TEXT)]
    weights, expected = checkpoint.layer_weights(0), observe(model, ids).inputs[1]
    x = embeddings(checkpoint, ids)
    assert relative_error(run_layer(checkpoint, 0, weights, x).detach(), expected) < MAX_ERROR
    assert relative_error(run_layer(checkpoint, 0, MISREAD[family](weights), x), expected) > 10 * MAX_ERROR


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_a_gguf_file_gives_the_same_head(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"attention_bias": False, "mlp_bias": False} if family == "llama" else {}
    model = small_model(family, **plain)
    checkpoint = open_checkpoint(write_gguf(model, tmp_path / "model.gguf"), [tmp_path])
    checkpoint._tokenize = letters
    observed = observe(model, [token.id for token in letters(TEXT)])
    for head in range(4):
        run = run_real_head(checkpoint, TEXT, layer=1, head=head)
        assert relative_error(run.arrays["weights"], observed.weights[1][head]) < MAX_ERROR
    assert likelihood(checkpoint, TEXT) == pytest.approx(observed.likelihood, rel=MAX_ERROR)
    if family == "llama":
        monkeypatch.setattr(checkpoint._file, "is_permuted", lambda _name: False)
        run = run_real_head(checkpoint, TEXT, layer=1, head=3)
        assert relative_error(run.arrays["weights"], observed.weights[1][3]) > 100 * MAX_ERROR


def test_a_head_of_smollm2_by_hand(smollm2: Checkpoint) -> None:
    run = run_real_head(smollm2, SENTENCE, layer=0, head=4)
    a, ids = smollm2.architecture, [token.id for token in run.tokens]
    file, every = cast("GgufFile", smollm2._file), slice(None)

    def stored(name: str) -> np.ndarray:
        tensor: np.ndarray = file.read_as_stored(f"blk.0.{name}.weight", every, every).double().numpy()
        return tensor

    x = smollm2.embedding_rows(ids).double().numpy()
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + smollm2.norm_eps) * stored("attn_norm")
    width, kv_head = a.d_h, 4 // 3
    angle = np.outer(np.arange(len(ids)), 100_000.0 ** (-np.arange(0, width, 2) / width))

    def rotated(rows: np.ndarray) -> np.ndarray:
        pairs = (x @ rows.T)[:, 0::2] + 1j * (x @ rows.T)[:, 1::2]
        turned: np.ndarray = pairs * np.exp(1j * angle)
        return turned

    queries = rotated(stored("attn_q")[4 * width : 5 * width])
    keys = rotated(stored("attn_k")[kv_head * width : (kv_head + 1) * width])
    scores = (queries @ keys.conj().T).real / np.sqrt(width)
    hidden = np.triu(np.ones_like(scores, dtype=bool), 1)
    powers = np.exp(np.where(hidden, -np.inf, scores))
    weights = powers / powers.sum(-1, keepdims=True)
    context = weights @ x @ stored("attn_v")[kv_head * width : (kv_head + 1) * width].T
    output = context @ stored("attn_output")[:, 4 * width : 5 * width].T
    for name, expected in {"input": x, "scores": scores, "weights": weights, "output": output}.items():
        assert relative_error(run.arrays[name], expected) < MAX_ERROR


@pytest.mark.slow
def test_it_looks_at_the_cat_most_in_four_heads_only(smollm2: Checkpoint) -> None:
    sheet, states = LIBRARY.worksheets["it-attends-smollm2"], HiddenStates()
    words = [token.text.strip("␣ ") for token in smollm2.tokens(sheet.sentence)]
    it, cat = words.index("it"), words.index("cat")
    a = smollm2.architecture
    weights = {
        (layer, head): run_real_head(smollm2, sheet.sentence, layer=layer, head=head, states=states).arrays["weights"]
        for layer in range(a.L)
        for head in range(a.H)
    }
    most = [place for place, each in weights.items() if each[it].argmax() == cat]
    [question] = sheet.questions
    assert f"{100 * weights[sheet.layer, sheet.head][it, cat]:.0f} %" in question.text
    assert f"{len(most)} of the {a.L * a.H} heads" in question.text
    assert (sheet.layer, sheet.head) in most


def test_the_lines_shown_are_the_lines_that_ran_without_random_numbers(tmp_path: Path) -> None:
    checkpoint = saved_checkpoint(small_model("qwen3"), tmp_path)
    run = run_real_head(checkpoint, TEXT, layer=1, head=2)
    code = "\n".join(line.code for line in run.lines)
    assert not any(word in code for word in ("rand", "normal", "seed", "zeros", "ones("))
    tensors = dict(checkpoint.head_weights(1, 2).tensors) | {"X": torch.from_numpy(run.arrays["input"])}
    variables: dict[str, Any] = {"tensors": {name: tensor.to(run.device) for name, tensor in tensors.items()}}
    exec(code, variables)  # noqa: S102 - the program that the app wrote
    for name, key in {"Q": "queries", "K": "keys", "A": "weights", "O": "output"}.items():
        np.testing.assert_allclose(variables[name].cpu(), run.arrays[key], rtol=1e-5, atol=1e-6)
    assert {line.makes: line.shapes for line in run.lines}["queries"] == ((len(TEXT), 24),)


def test_scores_are_those_before_the_mask(tmp_path: Path) -> None:
    run = run_real_head(saved_checkpoint(small_model("mistral"), tmp_path), TEXT, layer=0, head=1)
    masked = np.where(run.mask, run.arrays["scores"], -np.inf)
    expected = torch.softmax(torch.from_numpy(masked), -1)
    assert np.isfinite(run.arrays["scores"]).all()
    assert run.arrays["scores"][0, -1] == pytest.approx(run.arrays["queries"][0] @ run.arrays["keys"][-1] / 4, rel=1e-4)
    assert relative_error(run.arrays["weights"], expected) < MAX_ERROR


def test_the_layers_below_run_once_for_a_sentence_and_memory_is_bounded(tmp_path: Path) -> None:
    checkpoint = saved_checkpoint(small_model("llama"), tmp_path)
    reports: list[tuple[int, int]] = []
    ids = [token.id for token in letters(TEXT)]
    states = HiddenStates(3 * 4 * len(ids) * 64, max_weight_bytes=0)
    first = run_real_head(checkpoint, TEXT, layer=1, head=0, states=states, report=lambda *pair: reports.append(pair))
    again = run_real_head(checkpoint, TEXT, layer=1, head=0, states=states, report=lambda *pair: reports.append(pair))
    assert reports == [(0, 1), (1, 1), (0, 0)]
    np.testing.assert_array_equal(first.arrays["output"], again.arrays["output"])
    for text in ("another one", "one more of them"):
        hidden_state(checkpoint, [token.id for token in letters(text)], 2, states=states)
    assert states.bytes <= states.max_bytes


def test_another_sentence_reads_no_weights_of_a_small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = saved_checkpoint(small_model("llama"), tmp_path)
    read: list[int] = []
    from_file = checkpoint.layer_weights

    def note(layer: int) -> LayerWeights:
        read.append(layer)
        return from_file(layer)

    monkeypatch.setattr(checkpoint, "layer_weights", note)
    for states, expected in ((HiddenStates(), [0, 1]), (HiddenStates(max_weight_bytes=1000), [0, 1, 0, 1])):
        read.clear()
        outputs = [hidden_state(checkpoint, ids, 2, states=states) for ids in ([1, 2, 3], [1, 2, 4])]
        assert read == expected
        np.testing.assert_array_equal(outputs[0][:2], outputs[1][:2])


def test_a_run_is_stored_and_read_again(smollm2: Checkpoint) -> None:
    run = run_real_head(smollm2, "Zoë’s 😀 cat", layer=0, head=8)
    again = RealHead.from_bytes(run.to_bytes())
    for name in ("tokens", "parts", "lines", "checkpoint", "revision", "layer", "head", "kv_head", "dtype"):
        assert getattr(again, name) == getattr(run, name)
    assert again.architecture.all_sizes == run.architecture.all_sizes
    assert again.as_dict() == run.as_dict()
    np.testing.assert_array_equal(again.layer_weights, run.layer_weights)
    file = io.BytesIO()
    save_npz(run, file)
    with np.load(io.BytesIO(file.getvalue())) as saved:
        assert set(saved.files) == {"tokens", *SAVED}
        assert saved["tokens"].tolist() == [token.id for token in run.tokens]
        assert {str(saved[name].dtype) for name in SAVED} == {"float32"}


@pytest.mark.parametrize(
    "changed",
    [
        {"text": ""},
        {"text": "x" * 65},
        {"most_tokens": 3},
        {"layer": 2},
        {"head": 4},
        {"device": "meta"},
        {"device": "tpu"},
        {"dtype": "int8"},
        {"usable_share": 1e-9},
    ],
)
def test_what_cannot_run_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"text": TEXT, "layer": 1, "head": 0, **changed}

    def report(_done: int, _total: int) -> None:
        raise AssertionError("a layer has run")

    with pytest.raises(ForwardError):
        run_real_head(
            saved_checkpoint(small_model("gpt2"), tmp_path), arguments.pop("text"), report=report, **arguments
        )


def test_a_text_too_long_for_the_positions_is_told_both_numbers(tmp_path: Path) -> None:
    checkpoint = saved_checkpoint(small_model("gpt2"), tmp_path)
    for most in (10, 4096):
        with pytest.raises(ForwardError, match=r"\b80 tokens.*\b64\b"):
            run_real_head(checkpoint, "x" * 80, layer=0, head=0, most_tokens=most)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_a_refusal(number: float, tmp_path: Path) -> None:
    model = small_model("llama")
    with torch.no_grad():
        model.model.layers[1].self_attn.q_proj.weight[0, 0] = number  # head 0's
    checkpoint = saved_checkpoint(model, tmp_path)
    for head in (0, 3):
        with pytest.raises(ForwardError, match="infinite"):
            run_real_head(checkpoint, TEXT, layer=1, head=head, device="cpu")
    assert np.isfinite(run_real_head(checkpoint, TEXT, layer=0, head=0, device="cpu").arrays["output"]).all()


def test_memory_that_runs_out_all_the_same_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_arguments: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr("app.forward.real_head.run_layer", run_out)
    with pytest.raises(ForwardError, match="bytes"):
        run_real_head(saved_checkpoint(small_model("llama"), tmp_path), TEXT, layer=1, head=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_other_number_formats_are_near(dtype: str, tmp_path: Path) -> None:
    checkpoint = saved_checkpoint(small_model("qwen2"), tmp_path)
    exact, run = (run_real_head(checkpoint, TEXT, layer=1, head=1, dtype=name) for name in ("float32", dtype))
    assert 0 < relative_error(run.arrays["weights"], exact.arrays["weights"]) < 0.1
