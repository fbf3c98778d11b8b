"""One warm child runs the heads of the web app: it is kept, killed, replaced, and never shows its insides."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.forward.lines import ForwardError
from app.forward.process import HeadRunner, not_run
from app.jobs.jobs import JobStoppedError
from app.models.read_config import build_architecture

LLAMA = build_architecture(
    {
        "model_type": "llama",
        "hidden_size": 16,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 32,
        "vocab_size": 100,
        "num_hidden_layers": 1,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    }
)
LONG = 8192  # tokens whose N × N weights take long enough to be interrupted, and 0.6 GB


@pytest.fixture(scope="module")
def shared_runner() -> Iterator[HeadRunner]:
    runner = HeadRunner(start_limit_s=600, time_limit_s=600)
    yield runner
    runner.close()


@pytest.fixture
def runner(shared_runner: HeadRunner) -> Iterator[HeadRunner]:
    yield shared_runner
    shared_runner.time_limit_s = 600


def child() -> int | None:
    return next((process.pid for process in multiprocessing.active_children()), None)


def in_the_background(runner: HeadRunner) -> tuple[threading.Thread, list[ForwardError]]:
    """A long run in a thread of its own, waited for until its child is at work."""
    caught: list[ForwardError] = []

    def work() -> None:
        try:
            runner.run(LLAMA, LONG)
        except ForwardError as problem:
            caught.append(problem)

    runner.run(LLAMA, 2)
    thread = threading.Thread(target=work)
    thread.start()
    while runner._idle.qsize() == len(runner._children):
        time.sleep(0.01)
    time.sleep(0.1)
    return thread, caught


def test_a_run_gives_plain_data(runner: HeadRunner) -> None:
    run = runner.run(LLAMA, 7, head=3, seed=5)
    assert (run.shapes["scores"], run.kv_head, run.seed, run.agrees) == ([7, 7], 1, 5, True)


def test_a_real_head_runs_in_the_child(runner: HeadRunner) -> None:
    reports: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        reports.append((done, total))

    first = runner.run_real_head("smollm2", "The cat sat.", layer=2, head=0, report=report)
    again = runner.run_real_head("smollm2", "The cat sat.", layer=2, head=8, report=report)
    assert reports == [(0, 2), (1, 2), (2, 2), (0, 0)]
    assert (first.kv_head, again.kv_head, first.arrays["scores"].shape) == (0, 2, (4, 4))


def test_a_checkpoint_outside_the_listed_folders_is_refused_in_words(runner: HeadRunner, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    for source, layer in ((tmp_path / "model.gguf", 0), ("smollm2", 30)):
        with pytest.raises(ForwardError, match=r"\.$"):
            runner.run_real_head(source, "The cat sat.", layer=layer, head=0)
    assert child() is not None


def test_two_runs_use_the_same_child(runner: HeadRunner) -> None:
    runner.run(LLAMA, 2)
    first = child()
    runner.run(LLAMA, 3)
    assert first is not None
    assert child() == first


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_stopped_and_the_next_one_works(runner: HeadRunner) -> None:
    runner.run(LLAMA, 2)
    first = child()
    runner.time_limit_s = 0.05
    with pytest.raises(ForwardError) as stopped:
        runner.run(LLAMA, LONG)
    assert (stopped.value.reason, child()) == ("too-long", None)
    runner.time_limit_s = 600
    assert runner.run(LLAMA, 2).agrees
    assert child() != first


@pytest.mark.slow
def test_a_real_head_is_cancelled_while_the_layers_below_run(runner: HeadRunner) -> None:
    layers = list[int]()

    def check() -> None:
        if layers and layers[-1] >= 2:
            raise JobStoppedError

    with pytest.raises(JobStoppedError):
        runner.run_real_head(
            "smollm2", "The cat sat.", layer=29, head=0, check=check, report=lambda done, _: layers.append(done)
        )
    assert (layers, child()) == ([0, 1, 2], None)
    assert runner.run_real_head("smollm2", "The cat sat.", layer=0, head=0).tokens


@pytest.mark.slow
def test_a_real_head_that_takes_too_long_is_stopped_with_a_sentence_that_helps(runner: HeadRunner) -> None:
    runner.run_real_head("smollm2", "The cat", layer=0, head=0)
    runner.time_limit_s, layers = 1.0, list[int]()

    def report(done: int, _total: int) -> None:
        layers.append(done)
        time.sleep(1.1)

    with pytest.raises(ForwardError) as stopped:
        runner.run_real_head("smollm2", "The cat sat.", layer=29, head=0, report=report)
    assert (stopped.value.reason, child()) == ("too-long", None)
    assert layers in ([], [0])  # a busy machine does not come to the second
    assert "layer" in str(stopped.value)
    assert "meta" not in str(stopped.value)


@contextmanager
def held_run(runner: HeadRunner) -> Iterator[threading.Thread]:
    """A run in a thread of its own that has taken its child, and keeps it within the block."""
    gate, looks = threading.Event(), list[float]()

    def hold() -> None:
        looks.append(time.monotonic())
        if len(looks) > 1:  # its child has been taken
            gate.wait(600)

    thread = threading.Thread(target=lambda: runner.run(LLAMA, 2, check=hold))
    thread.start()
    try:
        while len(looks) < 2:
            time.sleep(0.01)
        yield thread
    finally:
        gate.set()
        thread.join()


@pytest.mark.slow
def test_as_many_run_at_a_time_as_there_are_children(runner: HeadRunner) -> None:
    looks = itertools.count(1)

    def give_up() -> None:
        if next(looks) > 5:  # without a child
            raise TimeoutError

    with held_run(runner), pytest.raises(TimeoutError):
        runner.run(LLAMA, 2, check=give_up)
    two = HeadRunner(children=2, start_limit_s=600)
    try:
        with held_run(two) as thread:
            assert two.run(LLAMA, 2).agrees
            assert thread.is_alive()
    finally:
        two.close()


def test_the_device_of_runs_that_name_none(runner: HeadRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    device, name = runner.describe_device()
    assert name
    assert runner.run(LLAMA, 2).device == device
    assert runner.run(LLAMA, 2, device="meta").device == "meta"
    monkeypatch.setattr(runner, "_device", "meta")
    assert runner.run(LLAMA, 2).device == "meta"


@pytest.mark.slow
def test_a_child_that_is_killed_fails_the_run_and_not_the_next(runner: HeadRunner) -> None:
    thread, caught = in_the_background(runner)
    pid = child()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    thread.join()
    assert [problem.reason for problem in caught] == ["stopped"]
    assert runner.run(LLAMA, 2).agrees


def test_a_refusal_comes_through_with_its_sentence(runner: HeadRunner) -> None:
    with pytest.raises(ForwardError, match=r"^The head must be a whole number from 0 to 3\.$"):
        runner.run(LLAMA, 2, head=4)
    assert child() is not None


def test_a_fault_in_the_child_shows_nothing_of_its_insides(runner: HeadRunner) -> None:
    runner.run(LLAMA, 2)
    first = child()
    with pytest.raises(ForwardError) as stopped:
        runner.run(replace(LLAMA, d_h=0), 2)
    assert str(stopped.value) == str(not_run("stopped"))
    assert runner.run(LLAMA, 2).agrees
    assert child() == first


@pytest.mark.slow
def test_a_child_that_has_nothing_to_do_is_ended() -> None:
    runner = HeadRunner(idle_limit_s=0.1, start_limit_s=600)
    before = {process.pid for process in multiprocessing.active_children()}
    runner.run(LLAMA, 2)
    for _ in range(1200):
        if (left := {process.pid for process in multiprocessing.active_children()}) == before:
            break
        time.sleep(0.05)
    assert left == before
    runner.close()
    with pytest.raises(ForwardError):
        runner.run(LLAMA, 2)
