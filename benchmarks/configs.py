"""Reading a config.json and answering any question about it: target 5 ms, against building it with transformers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from app.models.parameter_count import parameters_json
from app.models.read_config import build_architecture
from app.settings import PROJECT
from app.topics.shapes_json import shapes

ROUNDS = 21


def report() -> Iterator[str]:
    """The fastest and slowest of sixteen models, then three of them against building the model with transformers."""
    records = json.loads((PROJECT / "tests" / "data" / "transformers_shapes.json").read_text(encoding="utf-8"))
    ours = {record["name"]: _median_ms(lambda r=record: _answer_everything(r["config"])) for record in records}  # type: ignore[misc]
    slowest = max(ours, key=lambda name: ours[name])
    yield f"ours: {min(ours.values()):.2f} to {ours[slowest]:.2f} ms a model (slowest: {slowest})"
    for name in ("gpt2", "llama-7b", "llama-2-70b"):
        record = next(record for record in records if record["name"] == name)
        built = min(_build_ms(record["config"], record["expected"]["model_class"]) for _ in range(3))
        yield f"{name}: ours {ours[name]:.2f} ms, transformers {built:,.0f} ms, ratio {built / ours[name]:,.0f}"


def _answer_everything(config: dict[str, Any]) -> None:
    architecture = build_architecture(config)
    shapes(architecture, 100)
    parameters_json(architecture)


def _median_ms(work: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times)[ROUNDS // 2]


def _build_ms(config: dict[str, Any], class_name: str) -> float:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
    import torch
    import transformers

    kind = transformers.CONFIG_MAPPING[config["model_type"]]
    start = time.perf_counter()
    with torch.device("meta"):
        model = getattr(transformers, class_name)(kind.from_dict(dict(config)))
    assert sum(parameter.numel() for parameter in model.parameters()) > 0
    return 1000 * (time.perf_counter() - start)
