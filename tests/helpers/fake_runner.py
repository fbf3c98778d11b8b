"""Runners of heads without a child process: one without torch, and one that runs heads in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.forward.process import HeadRunner
from app.forward.real_head import RealHead, Report
from app.forward.run import HEAD_RUNS, HeadRun, run_head
from app.models.architecture import Architecture
from tests.helpers.real_heads import made_up_head


class RunnerInThisProcess(HeadRunner):
    """Runs heads without a child, so that nothing can stop them: `check` isn't called."""

    def run(
        self, architecture: Architecture, tokens: int, *, check: Callable[[], object] = lambda: None, **options: Any
    ) -> HeadRun:
        """Run `run_head` at once."""
        return run_head(architecture, tokens, **options)


class FakeRunner(HeadRunner):
    """Returns a hand-written report at once, and records every call in `calls`."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Architecture, int, dict[str, Any]]] = []
        self.problem: Exception | None = None
        self.changes: dict[str, Any] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.is_at_work = False

    def run(
        self,
        architecture: Architecture,
        tokens: int,
        *,
        check: Callable[[], object] = lambda: None,
        **options: Any,
    ) -> HeadRun:
        """Record the call; raise `problem`, if any, or return `fake_report` with `changes`."""
        self.calls.append((architecture, tokens, options))
        give_up_at = time.monotonic() + 120
        while not self.gate.wait(0.02):
            check()
            assert time.monotonic() < give_up_at
        if self.problem:
            raise self.problem
        return replace(HEAD_RUNS.validate_python(fake_report(architecture, tokens)), **self.changes)

    def run_real_head(
        self,
        source: str | Path,
        text: str,
        *,
        check: Callable[[], object] = lambda: None,
        report: Report = lambda _done, _total: None,
        **options: Any,
    ) -> RealHead:
        """Raise `problem`, if any, or return a head of SmolLM2 with made-up numbers."""
        give_up_at, self.is_at_work = time.monotonic() + 120, True
        try:
            while not self.gate.wait(0.02):
                report(1, 4)
                check()
                assert time.monotonic() < give_up_at
        finally:
            self.is_at_work = False
        if self.problem:
            raise self.problem
        return made_up_head(text, options["layer"], options["head"])


def fake_report(architecture: Architecture, tokens: int) -> dict[str, Any]:
    """The report of a run of one head on the CPU, with its shapes written by hand."""
    a, n = architecture, tokens
    wide = {"input": [n, a.d], "output": [n, a.d], "W_Q": [a.d, a.d_h], "W_K": [a.d, a.d_h], "W_V": [a.d, a.d_v]}
    head = {"queries": [n, a.d_h], "keys": [n, a.d_h], "values": [n, a.d_v], "context": [n, a.d_v], "W_O": [a.d_v, a.d]}
    return {
        "model": a.name,
        "family": a.family,
        "topic": "single-head",
        "tokens": n,
        "head": 0,
        "kv_head": 0,
        "device": "cpu",
        "device_name": "a processor that is not there",
        "dtype": "float32",
        "seed": 0,
        "milliseconds": 5.25,
        "peak_bytes": 6_700_000,
        "needed_bytes": 5_600_000,
        "shapes": {**wide, **head, "scores": [n, n], "weights": [n, n]},
        "agrees": True,
        "disagreements": [],
        "row_sums": [1.0, 1.0],
        "picture": {"head": 0, "side": 1, "cells": [[1.0, 0.0], [0.25, 0.75]]},
        "lines": [
            {
                "code": "Q = X @ W_Q",
                "makes": "queries",
                "comment": "<shape & all>",
                "shapes": [head["queries"]],
            }
        ],
        "notes": [],
    }
