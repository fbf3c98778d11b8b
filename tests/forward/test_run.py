"""The real head against numpy in float64 and against the table; test_against_transformers.py has the families."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
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

from app.forward import run as forward
from app.forward.lines import ForwardError, listing
from app.forward.program import BYTES_BY_DTYPE, notes, program, runnable_table
from app.forward.run import HEAD_RUNS, bytes_needed, devices_here, execute, run_head
from app.models.architecture import Architecture, Rotary
from app.models.read_config import build_architecture
from app.topics.single_head import SINGLE_HEAD

Floats = NDArray[np.float64]
COMPUTING_DEVICES = [device for device in devices_here() if device != "meta"]
WEIGHTS = ("X", "W_Q", "W_K", "W_V", "W_O")
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
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


GPT2 = build_architecture({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257})
SMALL_GPT2 = replace(GPT2, d=32, H=4, G=4, d_h=8, d_v=8)
MODELS = {
    "llama": model("llama", 32, 4, 2),
    "llama 7B": model("llama", 4096, 32, 32),
    "llama3 scaling": model("llama", 64, 4, 2, rope_theta=10000.0, rope_scaling=LLAMA3),
    "llama 3.2 1B": model(
        "llama",
        2048,
        32,
        8,
        rope_theta=500000.0,
        rope_scaling=LLAMA3 | {"factor": 32.0, "original_max_position_embeddings": 8192},
    ),
    "linear scaling": model("llama", 32, 4, 2, rope_scaling={"type": "linear", "factor": 4}),
    "mistral, window of 30": model("mistral", 64, 4, 2, sliding_window=30),
    "qwen2": model("qwen2", 896, 14, 2, rope_theta=1000000.0),
    "qwen3": model("qwen3", 48, 4, 2, head_dim=16, rope_theta=1000000.0),
    "qwen3 0.6B": model("qwen3", 1024, 16, 8, head_dim=128, rope_theta=1000000.0),
    "gpt2": GPT2,
    "small gpt2": SMALL_GPT2,
}


def rotation_speeds(rotary: Rotary) -> Floats:
    """Radians a position, pair by pair; scaling "llama3" as its three cases of a wavelength."""
    speeds = []
    for pair in range(rotary.width // 2):
        speed = rotary.theta ** (-2 * pair / rotary.width)
        kind = rotary.scaling.get("rope_type") or rotary.scaling.get("type")
        if kind == "linear":
            speed /= rotary.scaling["factor"]
        if kind == "llama3":
            turns = rotary.scaling["original_max_position_embeddings"] * speed / (2 * math.pi)
            low, high = rotary.scaling["low_freq_factor"], rotary.scaling["high_freq_factor"]
            slow = speed / rotary.scaling["factor"]
            if turns < low:
                speed = slow
            elif turns <= high:
                speed = slow + (speed - slow) * (turns - low) / (high - low)
        speeds.append(speed)
    return np.array(speeds)


def rotated(x: Floats, rotary: Rotary) -> Floats:
    """Every pair as one complex number, times e to the i times its angle."""
    half = rotary.width // 2
    pairs = x[:, :half] + 1j * x[:, half : 2 * half]
    pairs = pairs * np.exp(1j * np.arange(len(x))[:, None] * rotation_speeds(rotary)[None, :])
    return np.concatenate([pairs.real, pairs.imag, x[:, 2 * half :]], axis=1)


def reference(architecture: Architecture, x: Floats, w: dict[str, Floats]) -> dict[str, Floats]:
    """The same head in float64, row by row over the tokens a row may look at."""
    q, k, v = x @ w["W_Q"], x @ w["W_K"], x @ w["W_V"]
    if architecture.qk_norm_eps is not None:
        q, k = (m / np.sqrt((m**2).mean(1, keepdims=True) + architecture.qk_norm_eps) for m in (q, k))
    if architecture.rotary is not None:
        q, k = rotated(q, architecture.rotary), rotated(k, architecture.rotary)
    weights = np.zeros((len(x), len(x)))
    for row in range(len(x)):
        last = row + 1 if architecture.causal else len(x)
        first = max(0, row + 1 - architecture.window) if architecture.window else 0
        powers = np.exp(q[row] @ k[first:last].T / math.sqrt(architecture.d_h))
        weights[row, first:last] = powers / powers.sum()
    context = weights @ v
    return {"Q": q, "K": k, "V": v, "A": weights, "C": context, "O": context @ w["W_O"]}


def relative_error(found: torch.Tensor, expected: Floats) -> float:
    return float(np.linalg.norm(found.cpu().double().numpy() - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("device", COMPUTING_DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_head_agrees_with_numpy_in_double_precision(name: str, device: str) -> None:
    architecture = MODELS[name]
    lines = program(architecture, 100, head=architecture.H - 1, device=device)
    variables = execute(lines, device=device).variables
    given = {key: variables[key].cpu().double().numpy() for key in ("X", "W_Q", "W_K", "W_V", "W_O")}
    expected = reference(architecture, given.pop("X"), given)
    errors = {letter: relative_error(variables[letter], matrix) for letter, matrix in expected.items()}
    assert all(error <= 1e-5 for error in errors.values()), errors  # max() would pass over a NaN


def test_a_bidirectional_head_masks_nothing() -> None:
    architecture = replace(SMALL_GPT2, causal=False)
    variables = execute(program(architecture, 20)).variables
    given = {key: variables[key].double().numpy() for key in ("X", "W_Q", "W_K", "W_V", "W_O")}
    assert relative_error(variables["O"], reference(architecture, given.pop("X"), given)["O"]) <= 1e-5
    assert variables["A"].min() > 0


def test_query_heads_of_one_group_share_keys_and_values_and_nothing_else() -> None:
    first, second, third = (execute(program(MODELS["llama"], 9, head)).variables for head in (0, 1, 2))
    assert torch.equal(first["X"], third["X"])
    assert torch.equal(first["K"], second["K"])
    assert torch.equal(first["V"], second["V"])
    assert not torch.equal(first["Q"], second["Q"])
    assert not torch.equal(first["W_O"], second["W_O"])
    assert not torch.equal(first["K"], third["K"])


def test_all_random_tensors_of_a_run_are_drawn_apart() -> None:
    variables = execute(program(GPT2, 768, head=1)).variables
    starts = set()
    for seed, head in itertools.product(range(9), range(4)):
        drawn = execute(program(SMALL_GPT2, 32, head=head, seed=seed)).variables
        starts |= {round(float(drawn[name].flatten()[0] / drawn[name].std()), 5) for name in WEIGHTS[head > 0 :]}
    assert len(starts) == 9 * (4 * 4 + 1)  # a seed's input is the same for all its heads
    assert float(variables["X"].std()) == pytest.approx(1, rel=0.01)
    assert float(variables["W_K"].std()) == pytest.approx(0.02, rel=0.02)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Any legal small sizes, most of them in no published model."""
    size, flag = st.integers(1, 24), st.booleans()
    groups, shared, d_h = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(size)
    theta, pairs = st.sampled_from([100.0, 500000.0]), st.integers(1, max(1, d_h // 2))
    rotary = Rotary(draw(theta), 2 * draw(pairs), adjacent_pairs=draw(flag)) if d_h > 1 and draw(flag) else None
    return replace(
        SMALL_GPT2,
        d=draw(size),
        H=groups * shared,
        G=groups,
        d_h=d_h,
        d_v=draw(size),
        rotary=rotary,
        qk_norm=draw(st.sampled_from(("", "per-head", "after-rope"))),
        qk_norm_eps=1e-6,
        causal=draw(flag),
        window=draw(st.none() | st.integers(1, 12)),
    )


@pytest.mark.parametrize("device", COMPUTING_DEVICES)
@given(architectures(), st.integers(1, 24), st.sampled_from(sorted(BYTES_BY_DTYPE)), st.data())
def test_every_head_has_the_table_s_shapes_and_sound_weights(
    device: str, architecture: Architecture, tokens: int, dtype: str, data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, architecture.H - 1))
    run = run_head(architecture, tokens, head=head, device=device, dtype=dtype)
    table = SINGLE_HEAD.shapes({"N": tokens, **{s: n for s, n in architecture.sizes.items() if n}})
    assert run.shapes == {key: list(shape) for key, shape in table.items()}
    assert run.agrees
    assert run.row_sums == pytest.approx((1, 1), abs=1e-5 if dtype == "float32" else 0.03)
    assert run.picture is not None
    weights = np.array(run.picture.cells)
    assert weights.shape == (tokens, tokens)
    if architecture.causal:
        assert not np.triu(weights, 1).any()
        assert not np.tril(weights, -(architecture.window or tokens)).any()


def test_every_line_that_makes_a_tensor_carries_its_shape() -> None:
    run = run_head(MODELS["llama"], 7, device="cpu")
    texts = [line.text for line in run.lines]
    assert "Q = X @ W_Q  # (7, 8)" in texts
    assert "S = Q @ K.T  # (7, 7)" in texts
    assert "Q1, Q2 = Q.split(4, dim=-1)  # (7, 4) (7, 4)" in texts
    assert {line.makes for line in run.lines if line.shapes} - {None} == {tensor.key for tensor in SINGLE_HEAD.tensors}


def test_a_tensor_of_another_shape_is_named() -> None:
    given = {"W_Q": torch.ones(32, 9), "W_K": torch.ones(32, 9), "b_Q": torch.ones(9), "b_K": torch.ones(9)}
    variables = execute(program(SMALL_GPT2, 5), given).variables
    shapes = {tensor.key: list(variables[tensor.letter].shape) for tensor in SINGLE_HEAD.tensors}
    assert forward.disagreements(shapes, *runnable_table("single-head", SMALL_GPT2, 5)) == (
        "W_Q",
        "W_K",
        "queries",
        "keys",
    )


@pytest.mark.parametrize("device", COMPUTING_DEVICES)
def test_the_program_pasted_elsewhere_gives_the_same_output_bit_by_bit(device: str) -> None:
    for architecture in (MODELS["llama3 scaling"], MODELS["qwen3"], MODELS["mistral, window of 30"]):
        lines = run_head(architecture, 40, head=3, device=device, seed=11).lines
        pasted: dict[str, Any] = {}
        exec(listing(lines), pasted)  # noqa: S102 - this is the test: the shown text is the code that ran
        again = execute(program(architecture, 40, head=3, device=device, seed=11), device=device).variables
        assert torch.equal(pasted["O"], again["O"])


def test_nothing_written_in_a_config_enters_the_program() -> None:
    hostile = 'x"\nimport os'
    scaling = {"rope_type": "linear", "factor": 2.0, hostile: hostile}
    architecture = replace(model("llama", 8, 2, 1, rope_scaling=scaling), name=hostile)
    assert "import os" not in listing(program(architecture, 4))
    assert notes(architecture, 4) == ("keys-shared", "rope-scaling:linear")
    with pytest.raises(ForwardError, match="not modelled"):
        program(model("llama", 8, 2, 1, rope_scaling={"rope_type": hostile}), 4)
    with pytest.raises(ForwardError, match="factor"):
        program(model("llama", 8, 2, 1, rope_scaling={"type": "linear", "factor": "2) or exit("}), 4)
    with pytest.raises(ValueError, match="format code"):
        program(replace(SMALL_GPT2, d="exit()"), 4)  # type: ignore[arg-type]


def test_notes_say_what_a_reader_should_know() -> None:
    yarn = model("llama", 8, 2, 2, rope_scaling={"type": "yarn", "factor": 4.0})
    assert notes(yarn, 9) == ("rope-scaling:yarn",)
    assert notes(MODELS["mistral, window of 30"], 30) == ("keys-shared",)
    assert notes(MODELS["mistral, window of 30"], 31) == ("keys-shared", "window:30")
    assert notes(GPT2, 9) == ("output-bias",)
    assert notes(GPT2, 9, "attention-layer") == ()


def test_a_head_of_the_largest_model_shows_its_shapes_without_memory() -> None:
    architecture = model("llama", 16384, 128, 8, rope_scaling=LLAMA3, max_position_embeddings=131072)
    torch.empty(1, device="meta").cos()  # the first use of the meta device loads torch's Python parts
    began = time.process_time()
    run = run_head(architecture, 131072, head=127, device="meta", dtype="bfloat16")
    assert time.process_time() - began < 5
    assert (run.shapes["scores"], run.shapes["output"]) == ([131072, 131072], [131072, 16384])
    assert run.agrees
    assert (run.milliseconds, run.peak_bytes, run.row_sums, run.picture) == (None, None, None, None)


def test_a_head_that_does_not_fit_is_refused_with_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = bytes_needed(GPT2, 1000)
    free = int(needed / 0.9) - 2
    monkeypatch.setattr(forward, "available_bytes", lambda device: free)
    with pytest.raises(ForwardError, match=rf"{needed:,} bytes, and cpu has {free:,} free.*meta"):
        run_head(GPT2, 1000, device="cpu")
    free += 3
    assert run_head(GPT2, 1000, device="cpu").agrees


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen3 0.6B", "mistral, window of 30"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_bytes_needed_are_those_of_the_tensors_left_at_the_end(name: str, dtype: str) -> None:
    architecture = MODELS[name]
    variables = execute(program(architecture, 300, dtype=dtype)).variables
    alive = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in variables.values() if _is_tensor(t)}
    assert bytes_needed(architecture, 300, dtype) == sum(alive.values())


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def test_very_few_tokens_need_the_bytes_of_rotating_their_queries_and_keys() -> None:
    narrow = replace(MODELS["llama"], d=4, H=1, G=1, d_h=1000, d_v=2, rotary=Rotary(10000.0, 1000))
    parameters, angles = 4 * 8_020 + 8, 8_000 + 4_000  # in 8 bytes each, and cosines and sines
    # Queries and keys, the queries rotated, both rotated halves of the keys, and the keys joined from them.
    assert bytes_needed(narrow, 1) == parameters + angles + 5 * 4_000
    normed = replace(narrow, qk_norm="per-head", qk_norm_eps=1e-6)
    # Two gains; queries with their norm, and rotated; keys, divided by their length, times the gain; and that length.
    assert bytes_needed(normed, 1) == parameters + 2 * 4_000 + angles + 5 * 4_000 + 4


@pytest.mark.parametrize(("measured", "reported"), [(2_200_000, None), (12_300_000, 12_300_000)])
def test_no_peak_is_reported_that_the_tensors_do_not_fit_in(
    monkeypatch: pytest.MonkeyPatch, measured: int, reported: int | None
) -> None:
    monkeypatch.setattr("app.forward.run.peak_bytes_since", lambda _device, _start: measured)
    assert run_head(MODELS["llama 7B"], 100, device="cpu").peak_bytes == reported


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process reset its own peak")
@pytest.mark.parametrize(("name", "tokens"), [("llama", 3000), ("llama 7B", 97)])
def test_the_measured_peak_is_about_the_bytes_needed(name: str, tokens: int) -> None:
    run = run_head(MODELS[name], tokens, device="cpu")
    if run.peak_bytes is None:
        pytest.skip("this system does not let a process reset its own peak")
    assert 0.9 < run.peak_bytes / run.needed_bytes < 1.15
    assert run.milliseconds is not None
    assert 0.1 < run.milliseconds < 10_000


def test_the_picture_is_the_mean_of_each_block_of_weights() -> None:
    lines = program(SMALL_GPT2, 250)
    weights = execute(lines).variables["A"].double().numpy()
    picture = run_head(SMALL_GPT2, 250, device="cpu").picture
    assert picture is not None
    edges = range(0, 250, 3)
    blocks = [[weights[r : r + 3, c : c + 3].mean() for c in edges] for r in edges]
    assert picture.side == 3
    assert np.array(picture.cells) == pytest.approx(np.array(blocks), abs=1e-6)


def test_a_run_is_plain_data_for_json() -> None:
    run = run_head(replace(SMALL_GPT2, initializer_range=1e11), 5, device="cpu", dtype="float16")
    assert (run.row_sums, run.picture, run.notes[-1]) == (None, None, "not-finite")
    again = json.loads(json.dumps(run.as_dict(), allow_nan=False))
    assert again["lines"][0]["text"] == "import torch"
    assert HEAD_RUNS.validate_python(again) == run
    assert json.loads(json.dumps(run_head(GPT2, 100, device="cpu").as_dict(), allow_nan=False))["picture"]["side"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"head": 12}, "from 0 to 11"),
        ({"head": -1}, "from 0 to 11"),
        ({"tokens": 0}, "from 1 to 1,024"),
        ({"tokens": 1025}, "from 1 to 1,024"),
        ({"tokens": "7"}, "whole number"),
        ({"dtype": "float64"}, "float32, bfloat16, float16"),
        ({"device": "tpu"}, "cpu, cuda, mps, meta"),
        ({"seed": -1}, "from 0 to"),
    ],
)
def test_an_argument_out_of_its_range_is_refused_in_a_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ForwardError, match=says):
        run_head(replace(GPT2, C=1024), **({"tokens": 5} | options))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_here_is_refused_with_those_that_are() -> None:
    with pytest.raises(ForwardError, match=r"no cuda device: choose one of .*cpu, meta"):
        run_head(GPT2, 5, device="cuda")


def test_importing_the_module_loads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, app.forward.run, app.forward.process; print(*({'torch', 'numpy', 'psutil'} & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
