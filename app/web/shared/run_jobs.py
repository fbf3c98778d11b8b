"""Runs with random numbers as jobs: what is queued, and how it runs when its turn comes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from app.classes.frozen.frozen_run import sheet_of_run
from app.exchange.imported_models import library_with_model
from app.forward.head_run import (
    HeadNotRun,
    check_runnable,
    parts_of_sheet,
    run_architecture,
    run_sheet,
    why_not_run,
)
from app.forward.lines import ForwardError
from app.forward.memory_needed import bytes_needed
from app.forward.program import BYTES_BY_DTYPE
from app.forward.run import HeadRun
from app.machine.jobs import Job, JobFailedError, JobLimits, JobRefusedError, Result, Task
from app.machine.work_queue import Client
from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.sheets.variant import Variant
from app.translation import gettext as _
from app.web.shared.runners import living_runners
from app.web.shared.services import Services

log = logging.getLogger("attention_shapes")

# Two runs for each of 500 students, and some more. A warm one takes at most a quarter of a second on one core.
RUN_LIMITS = JobLimits(total=1_100, visitors=14, visitor=7, member=6)
GPUS = ("cuda", "mps")


def why_not_queued(refusal: JobRefusedError) -> str:
    """Why a run wasn't queued: too many of this client's, or too many in total."""
    if refusal.reason == "yours":
        return _("Several of your runs are in progress: wait for one of them, or cancel one.")
    return why_not_run("busy")


def queue_run(
    services: Services,
    client: Client,
    key: str,
    variant: Variant,
    options: Mapping[str, Any],
    along: Callable[[], object],
) -> Job:
    """Queue a run of a sheet under this key, and return its job; raises JobRefusedError.

    `along` stores what belongs to it in the same transaction.
    """
    architecture, tokens, of_sheet = parts_of_sheet(variant)
    needs = _needs(services, architecture, tokens, {**of_sheet, **options})
    return services.jobs.submit("run", client, key, {}, options, along=along, **needs)


def run_queued_head(services: Services, task: Task) -> Result:
    """Run a queued run's head, and return a function that stores its result; nothing is stored here."""
    if "tokens" in task.arguments:
        return _run_asked(services, task)
    run = services.store.find_run(task.job.key)
    if run is None:  # its activity was deleted
        return b""
    store = partial(services.store.finish_run, run.id)
    try:
        variant = sheet_of_run(services.library, services.store, run)
        result = run_sheet(services.runner, variant, check=task.check, **task.arguments)
    except HeadNotRun as failure:
        problem = str(failure)
        raise JobFailedError(problem, failure.reason, partial(store, None, problem)) from None
    if not result.agrees:
        log.error("PyTorch contradicts the answer key: %s", differing_shapes(result))
    return partial(store, result.as_dict())


def check_asked(services: Services, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What an API run needs from a runner, for `Jobs.submit`.

    Raises HeadNotRun for what can't be run, WorksheetError for an unknown model, and ConfigError for an unusable
    config.
    """
    architecture, tokens, options = _parts_asked(services, arguments)
    check_runnable(architecture, tokens, options["topic"], options["decoder_tokens"])
    return _needs(services, architecture, tokens, options)


def differing_shapes(result: HeadRun) -> str:
    """The keys of the matrices whose shape in torch differs from the table's, each with torch's shape.

    Example: 'scores (99, 100), weights (99, 100)'
    """
    return ", ".join(f"{key} {shape_text(result.shapes[key])}" for key in result.disagreements)


def shape_text(shape: Iterable[int]) -> str:
    """A shape as Python writes it: '(100, 128)'."""
    return f"({', '.join(map(str, shape))})"


def _run_asked(services: Services, task: Task) -> bytes:
    architecture, tokens, options = _parts_asked(services, task.arguments)
    result = run_architecture(services.runner, architecture, tokens, check=task.check, **options)
    return json.dumps(result.as_dict()).encode()


def _parts_asked(services: Services, arguments: Mapping[str, Any]) -> tuple[Architecture, int, dict[str, Any]]:
    options = dict(arguments)
    key, config, tokens = options.pop("model"), options.pop("config"), options.pop("tokens")
    if key is None:
        return build_architecture(json.loads(config)), tokens, options
    return library_with_model(services.library, services.store, key).model(key).architecture, tokens, options


def _needs(services: Services, architecture: Architecture, tokens: int, options: Mapping[str, Any]) -> dict[str, Any]:
    if not services.settings.runners:
        return {}
    runners, device, dtype = living_runners(services, "run"), options["device"], options["dtype"]
    is_there = device in GPUS and device in {runner.device_kind for runner in runners}
    needed = 0
    if dtype in BYTES_BY_DTYPE and device != "meta":
        with suppress(ForwardError):
            needed = bytes_needed(architecture, tokens, dtype, options["topic"], options.get("decoder_tokens"))
    largest = max((runner.memory_bytes for runner in runners), default=0)
    return {"device": device if is_there else "", "memory_bytes": needed if needed <= largest else 0}
