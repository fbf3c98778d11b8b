"""Runs with random numbers as jobs: what is queued, and how it runs when its turn comes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from app.classes.frozen.frozen_run import sheet_of_run
from app.exchange.imported_models import library_with_model
from app.forward.lines import ForwardError
from app.forward.process import not_run, run_architecture, run_sheet
from app.forward.program import runnable_table
from app.forward.run import HeadRun
from app.jobs.jobs import JobFailedError, Task, queue_name
from app.machine.work_queue import Client
from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.store.jobs import Job, JobLimits, JobRefusedError, Result, no_worker
from app.translation import gettext as _
from app.web.shared.services import Services

log = logging.getLogger("attention_shapes")

# Two runs for each of 500 students, and some more. A warm one takes at most a quarter of a second on one core.
RUN_LIMITS = JobLimits(total=1_100, visitors=14, visitor=7, member=6)
GPUS = ("cuda", "mps")


def why_not_queued(refusal: JobRefusedError) -> str:
    """Why a run wasn't queued: too many of this client's, too many in total, or no worker."""
    if refusal.reason == "no-worker":
        return no_worker()
    if refusal.reason == "yours":
        return _("Several of your runs are in progress: wait for one of them, or cancel one.")
    return str(not_run("busy"))


def queue_run(
    services: Services,
    client: Client,
    key: str,
    options: Mapping[str, Any],
    along: Callable[[], object],
) -> Job:
    """Queue the run of a sheet with this key, and return its job; raises JobRefusedError.

    `along` stores what belongs to it in the same transaction.
    """
    return services.jobs.submit("run", client, key, {}, options, part=part_of_run(services, options), along=along)


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
    except ForwardError as failure:
        problem = str(failure)
        raise JobFailedError(problem, failure.reason, partial(store, None, problem)) from None
    if not result.agrees:
        log.error("PyTorch contradicts the answer key: %s", differing_shapes(result))
    return partial(store, result.as_dict())


def check_asked(services: Services, arguments: Mapping[str, Any]) -> None:
    """Check what an API run asks for.

    Raises ForwardError for what can't be run, WorksheetError for an unknown model, and ConfigError for an unusable
    config.
    """
    architecture, tokens, options = _parts_asked(services, arguments)
    runnable_table(options["topic"], architecture, tokens, options["decoder_tokens"])


def part_of_run(services: Services, options: Mapping[str, Any]) -> str:
    """The part of the queue for a run's options: a GPU's name if somebody chose it and a worker has it."""
    device = options["device"]
    return device if device in GPUS and services.jobs.serves(queue_name("run", device)) else ""


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
