"""The real layer against numpy in float64, against its heads and the table."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.cli import main
from app.forward import run as forward
from app.forward.lines import ForwardError, listing
from app.forward.process import run_sheet
from app.forward.program import BYTES_BY_DTYPE, program, runnable_table
from app.forward.run import bytes_needed, devices_here, execute, run_head
from app.models.architecture import Architecture, Rotary
from app.models.read_config import build_architecture
from app.sheets.variant import Variant
from app.topics.attention_layer import ATTENTION_LAYER
from app.topics.registry import sizes_for, topic_for
from tests.helpers.fake_runner import RunnerInThisProcess
from tests.helpers.shipped import LIBRARY

LAYER = "attention-layer"
COMPUTING_DEVICES = [device for device in devices_here() if device != "meta"]
Floats = NDArray[np.float64]
LLAMA_405B = {
    "model_type": "llama",
    "hidden_size": 16384,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "intermediate_size": 53248,
    "vocab_size": 128256,
    "num_hidden_layers": 126,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
}


def model(family: str, d: int, heads: int, kv_heads: int, **others: Any) -> Architecture:
    config = {
        "model_type": family,
        "hidden_size": d,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": 2 * d,
        "vocab_size": 100,
        "num_hidden_layers": 1,
        "max_position_embeddings": 4096,
    }
    return build_architecture(config | others)


GPT2 = build_architecture({"model_type": "gpt2", "n_embd": 48, "n_head": 4, "n_layer": 1, "vocab_size": 100})
LLAMA = model("llama", 32, 4, 2)
MODELS = {
    "llama": LLAMA,
    "llama, values of another width": replace(LLAMA, d_v=5),
    "llama, only a part rotated, an odd width left": replace(LLAMA, d_h=9, rotary=Rotary(100.0, 6)),
    "llama, one key/value head": model("llama", 32, 4, 1),
    "mistral, window of 30": model("mistral", 64, 4, 2, sliding_window=30),
    "qwen2.5 0.5B": model("qwen2", 896, 14, 2, rope_theta=1000000.0),
    "qwen3": model("qwen3", 48, 4, 2, head_dim=16, rope_theta=1000000.0),
    "gpt2": GPT2,
    "gpt2 with shared keys": replace(GPT2, H=6, G=2),
    "norm without rotation, keys shared": replace(GPT2, H=6, G=2, qk_norm="per-head", qk_norm_eps=1e-6),
    "an encoder": replace(GPT2, causal=False),
}


def rotated(x: Floats, rotary: Rotary) -> Floats:
    """Every pair j and j + half of each position as one complex number, times e to the i times its angle."""
    half = rotary.width // 2
    speeds = np.array([rotary.theta ** (-2 * pair / rotary.width) for pair in range(half)])
    turns = np.exp(1j * np.outer(np.arange(len(x)), speeds))
    pairs = (x[:, :half] + 1j * x[:, half : 2 * half]) * turns
    return np.concatenate([pairs.real, pairs.imag, x[:, 2 * half :]], axis=1)


def reference(a: Architecture, x: Floats, w: dict[str, Floats]) -> dict[str, Floats]:
    """The layer in float64, head by head and row by row, heads cut out by hand: nothing is shared or broadcast."""
    queries, keys, values = x @ w["W_Q"], x @ w["W_K"], x @ w["W_V"]
    weights, context = np.zeros((a.H, len(x), len(x))), np.zeros((len(x), a.H * a.d_v))
    for head in range(a.H):
        shared = head * a.G // a.H
        q = queries[:, head * a.d_h : (head + 1) * a.d_h]
        k = keys[:, shared * a.d_h : (shared + 1) * a.d_h]
        v = values[:, shared * a.d_v : (shared + 1) * a.d_v]
        if a.qk_norm_eps is not None:
            q, k = (m / np.sqrt((m**2).mean(1, keepdims=True) + a.qk_norm_eps) for m in (q, k))
        if a.rotary is not None:
            q, k = rotated(q, a.rotary), rotated(k, a.rotary)
        for row in range(len(x)):
            last = row + 1 if a.causal else len(x)
            first = max(0, row + 1 - a.window) if a.window else 0
            powers = np.exp(q[row] @ k[first:last].T / math.sqrt(a.d_h))
            weights[head, row, first:last] = powers / powers.sum()
        context[:, head * a.d_v : (head + 1) * a.d_v] = weights[head] @ v
    return {"Q": queries, "K": keys, "V": values, "A": weights, "C": context, "O": context @ w["W_O"]}


def relative_error(found: torch.Tensor, expected: Floats) -> float:
    return float(np.linalg.norm(found.cpu().double().numpy() - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("device", COMPUTING_DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_layer_agrees_with_numpy_in_double_precision(name: str, device: str) -> None:
    architecture = MODELS[name]
    variables = execute(program(architecture, 70, device=device, topic=LAYER), device=device).variables
    w = {key: variables[key].cpu().double().numpy() for key in ("X", "W_Q", "W_K", "W_V", "W_O")}
    expected = reference(architecture, w.pop("X"), w)
    errors = {letter: relative_error(variables[letter], matrix) for letter, matrix in expected.items()}
    assert all(error <= 1e-5 for error in errors.values()), errors  # max() would pass over a NaN


@pytest.mark.parametrize("name", ["llama, values of another width", "qwen3", "gpt2 with shared keys"])
def test_a_layer_contains_the_heads_of_the_single_head_program(name: str) -> None:
    a = MODELS[name]
    layer = execute(program(a, 20, topic=LAYER, seed=5)).variables
    total = torch.zeros_like(layer["O"])
    for head in range(a.H):
        own = execute(program(a, 20, head, seed=5)).variables
        shared = head // a.query_heads_per_kv_head
        assert torch.equal(own["X"], layer["X"])
        assert torch.equal(own["W_Q"], layer["W_Q"][:, head * a.d_h : (head + 1) * a.d_h])
        assert torch.equal(own["W_K"], layer["W_K"][:, shared * a.d_h : (shared + 1) * a.d_h])
        assert torch.equal(own["W_V"], layer["W_V"][:, shared * a.d_v : (shared + 1) * a.d_v])
        assert torch.equal(own["W_O"], layer["W_O"][head * a.d_v : (head + 1) * a.d_v])
        torch.testing.assert_close(own["A"], layer["A"][head])
        total += own["O"]
    torch.testing.assert_close(total, layer["O"])


@pytest.mark.parametrize("name", ["llama, values of another width", "qwen3", "gpt2 with shared keys"])
def test_all_heads_of_a_run_have_the_shapes_of_a_sheet_in_three_dimensions(name: str) -> None:
    architecture = MODELS[name]
    variables = execute(program(architecture, 20, topic=LAYER)).variables
    shapes = topic_for("three-dimensions", architecture, 20).shapes(sizes_for("three-dimensions", architecture, 20, 20))
    by_head = {"queries": "Q", "keys": "K", "values": "V", "scores": "S", "weights": "A", "output": "O"}
    by_head |= {
        "queries_by_head": "q",
        "keys_by_head": "k",
        "values_by_head": "v",
        "context": "c",
        "joined_context": "C",
    }
    assert {key: shapes[key] for key in by_head} == {key: tuple(variables[v].shape) for key, v in by_head.items()}


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Any legal small sizes, most of them in no published model."""
    size, flag = st.integers(1, 20), st.booleans()
    groups, shared, d_h = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(size)
    return replace(
        GPT2,
        d=draw(size),
        H=groups * shared,
        G=groups,
        d_h=d_h,
        d_v=draw(size),
        rotary=Rotary(500000.0, 2 * draw(st.integers(1, d_h // 2))) if d_h > 1 and draw(flag) else None,
        qk_norm=draw(st.sampled_from(("", "per-head", "all-heads", "after-rope"))),
        qk_norm_eps=1e-6,
        causal=draw(flag),
        window=draw(st.none() | st.integers(1, 12)),
    )


@given(architectures(), st.integers(1, 20), st.sampled_from(sorted(BYTES_BY_DTYPE)), st.data())
def test_every_layer_has_the_table_s_shapes_and_sound_weights(
    architecture: Architecture, tokens: int, dtype: str, data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, architecture.H - 1))
    run = run_head(architecture, tokens, head=head, device="cpu", dtype=dtype, topic=LAYER)
    table = ATTENTION_LAYER.shapes({**architecture.all_sizes, "N": tokens})
    assert run.shapes == {key: list(shape) for key, shape in table.items()}
    assert run.agrees
    assert (run.head, run.kv_head, run.topic) == (None, None, LAYER)
    assert run.row_sums == pytest.approx((1, 1), abs=1e-5 if dtype == "float32" else 0.03)
    assert run.picture is not None
    assert run.picture.head == head
    weights = np.array(run.picture.cells)
    assert weights.shape == (tokens, tokens)
    if architecture.causal:
        assert not np.triu(weights, 1).any()
        assert not np.tril(weights, -(architecture.window or tokens)).any()


@pytest.mark.parametrize("name", MODELS)
def test_the_shape_beside_a_line_is_the_one_its_variable_has_there(name: str) -> None:
    variables: dict[str, Any] = {}
    for line in run_head(MODELS[name], 7, device="cpu", topic=LAYER).lines:
        exec(line.code, variables)  # noqa: S102 - the lines of program()
        values = [variables[name] for name in line.names]
        assert [tuple(each.shape) for each in values if hasattr(each, "shape")] == list(line.shapes), line.text


def test_the_lines_show_all_heads_and_the_one_that_the_table_asks_for() -> None:
    run = run_head(LLAMA, 7, device="cpu", topic=LAYER, head=3)
    texts = [line.text for line in run.lines]
    assert "Q = X @ W_Q  # (7, 32)" in texts
    assert "K = X @ W_K  # (7, 16)" in texts
    assert "S = (q_shared @ k.mT).view(H, N, N)  # (4, 7, 7)" in texts
    assert "C = c.transpose(0, 1).reshape(N, H * d_v)  # (7, 32)" in texts
    made = {line.makes: line.text for line in run.lines}
    assert (made["scores"], made["weights"]) == ("S_head = S[3]  # (7, 7)", "A_head = A[3]  # (7, 7)")
    block = next(text for text in texts if text.startswith("W_Q")).split("\n")
    assert block[0].endswith("# (32, 32) (32, 32)")
    assert block[1] == "for head in range(H):"


def test_a_tensor_of_another_shape_is_named() -> None:
    lines = program(LLAMA, 5, topic=LAYER)
    variables, plain = execute(lines, {"W_O": torch.ones(32, 9)}).variables, execute(lines).variables
    assert torch.equal(variables["W_Q"], plain["W_Q"])
    assert torch.equal(variables["C"], plain["C"])
    names = {"W_O": "W_O", "output": "O"}
    shapes = {key: list(shape) for key, shape in ATTENTION_LAYER.shapes({**LLAMA.all_sizes, "N": 5}).items()}
    shapes |= {key: list(variables[name].shape) for key, name in names.items()}
    assert forward.disagreements(shapes, *runnable_table(LAYER, LLAMA, 5)) == ("W_O", "output")


@pytest.mark.parametrize("name", ["qwen3", "mistral, window of 30", "gpt2"])
def test_the_program_pasted_elsewhere_gives_the_same_output_bit_by_bit(name: str) -> None:
    lines = run_head(MODELS[name], 40, head=2, device="cpu", seed=11, topic=LAYER).lines
    pasted: dict[str, Any] = {}
    exec(listing(lines), pasted)  # noqa: S102 - this is the test: the shown text is the code that ran
    assert torch.equal(pasted["O"], execute(program(MODELS[name], 40, head=2, seed=11, topic=LAYER)).variables["O"])


def test_a_layer_of_the_largest_model_shows_its_shapes_without_memory() -> None:
    torch.empty(1, device="meta").cos()  # the first use of the meta device loads torch's Python parts
    began = time.process_time()
    run = run_head(build_architecture(LLAMA_405B), 131072, device="meta", dtype="bfloat16", topic=LAYER)
    assert time.process_time() - began < 5
    assert run.agrees
    assert (run.shapes["keys"], run.shapes["weights"]) == ([131072, 1024], [131072, 131072])
    assert "A = torch.softmax(S, dim=-1)  # (128, 131072, 131072)" in [line.text for line in run.lines]
    assert run.needed_bytes > 2 * 128 * 131072**2 * 2
    assert (run.milliseconds, run.peak_bytes, run.row_sums, run.picture) == (None, None, None, None)


def test_a_layer_that_does_not_fit_is_refused_with_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    free = 2 * bytes_needed(GPT2, 1000)
    needed = bytes_needed(GPT2, 1000, topic=LAYER)
    monkeypatch.setattr(forward, "available_bytes", lambda device: free)
    with pytest.raises(ForwardError, match=rf"^This run needs {needed:,} bytes, and cpu has {free:,} free.*meta"):
        run_head(GPT2, 1000, device="cpu", topic=LAYER)
    assert run_head(GPT2, 1000, device="cpu").agrees


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_bytes_needed_are_those_of_the_tensors_left_at_the_end(name: str, dtype: str) -> None:
    architecture = MODELS[name]
    variables = execute(program(architecture, 300, dtype=dtype, topic=LAYER)).variables
    tensors = [value for value in variables.values() if isinstance(value, torch.Tensor)]
    alive = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    assert bytes_needed(architecture, 300, dtype, LAYER) == sum(alive.values())


def test_very_few_tokens_need_the_bytes_of_rotating_and_norming_queries_and_keys() -> None:
    narrow = replace(LLAMA, d=4, H=1, G=1, d_h=1000, d_v=2, rotary=Rotary(10000.0, 1000))
    parameters, angles, values = 4 * 8_020 + 8, 8_000 + 4_000, 8  # in 8 bytes each, and cosines and sines
    # Queries and keys, the queries rotated, both rotated halves of the keys, and the keys joined from them.
    assert bytes_needed(narrow, 1, topic=LAYER) == parameters + angles + values + 5 * 4_000
    normed = replace(narrow, qk_norm="per-head", qk_norm_eps=1e-6)
    parameters += 2 * 4_000  # the gains
    # The same, and the queries and keys before their norms.
    assert bytes_needed(normed, 1, topic=LAYER) == parameters + angles + values + 7 * 4_000
    still = replace(normed, rotary=None)
    # Queries with and without norm; keys, divided by their length, times the gain; and that length.
    assert bytes_needed(still, 1, topic=LAYER) == parameters + values + 5 * 4_000 + 4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process reset its own peak")
@pytest.mark.parametrize(("name", "tokens"), [("llama", 1500), ("norm without rotation, keys shared", 1000)])
def test_the_measured_peak_is_about_the_bytes_needed(name: str, tokens: int) -> None:
    run = run_head(MODELS[name], tokens, device="cpu", topic=LAYER)
    if run.peak_bytes is None:
        pytest.skip("this system does not let a process reset its own peak")
    assert 0.9 < run.peak_bytes / run.needed_bytes < 1.15


def test_sums_are_of_all_heads_and_the_picture_of_one() -> None:
    run = run_head(LLAMA, 150, device="cpu", topic=LAYER, head=2, dtype="bfloat16")
    weights = execute(program(LLAMA, 150, topic=LAYER, head=2, dtype="bfloat16")).variables["A"].double().numpy()
    assert run.picture is not None
    edges = range(0, 150, 2)
    blocks = [[weights[2, r : r + 2, c : c + 2].mean() for c in edges] for r in edges]
    assert np.array(run.picture.cells) == pytest.approx(np.array(blocks), abs=1e-6)
    sums = weights.sum(2)
    assert run.row_sums == pytest.approx((sums.min(), sums.max()), abs=1e-5)


def test_a_layer_s_run_is_plain_data_for_json_even_where_scores_overflow() -> None:
    run = run_head(replace(GPT2, initializer_range=1e11), 5, device="cpu", dtype="float16", topic=LAYER)
    assert (run.row_sums, run.picture, run.notes[-1]) == (None, None, "not-finite")
    assert json.loads(json.dumps(run.as_dict(), allow_nan=False))["head"] is None


def test_a_topic_with_nothing_to_run_is_refused_in_a_sentence() -> None:
    with pytest.raises(ForwardError, match="single-head, bidirectional-head, attention-layer"):
        run_head(GPT2, 5, topic="growth")
    with pytest.raises(ForwardError, match="from 0 to 3"):
        run_head(GPT2, 5, topic=LAYER, head=4)


def sheet_of_a_layer(**changes: Any) -> Variant:
    """The grouped sheet on Qwen2.5 0.5B, 14 query heads on 2 key/value heads, 50 tokens."""
    variant = LIBRARY.variant("layer-mistral-7b", "qwen2.5-0.5b", 50)
    return replace(variant, worksheet=replace(variant.worksheet, **changes))


def test_a_sheet_on_a_layer_runs_the_layer() -> None:
    variant = sheet_of_a_layer()
    result = run_sheet(RunnerInThisProcess(), variant, head=9, device="cpu")
    observed = {row.key: tuple(result.shapes[row.key]) for row in variant.rows}
    assert observed == {
        "input": (50, 896),
        "queries": (50, 896),
        "keys": (50, 128),
        "values": (50, 128),
        "scores": (50, 50),
        "weights": (50, 50),
        "context": (50, 896),
        "output": (50, 896),
    }
    assert result.agrees
    assert observed == {row.key: tuple(map(variant.answer, row.blanks)) for row in variant.rows}


def test_a_simplified_sheet_on_a_layer_runs_the_layer_it_asks_about() -> None:
    variant = sheet_of_a_layer(kv_head_per_query_head=True)
    result = run_sheet(RunnerInThisProcess(), variant, device="meta")
    assert (result.shapes["keys"], result.agrees) == ([50, 896], True)


def test_the_terminal_runs_a_layer(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "qwen2.5-0.5b", "--tokens", "50", "--device", "meta", "--topic", LAYER])
    assert "queries  50 × 896" in capsys.readouterr().out
    main(["run", "qwen2.5-0.5b", "--tokens", "50", "--device", "meta"])
    assert "queries  50 × 64" in capsys.readouterr().out
