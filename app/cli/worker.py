"""The command `worker`: do what servers with PostgreSQL leave to workers, on this machine, until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from app import __version__
from app.checkpoints.files import ListedCheckpoint, listed_checkpoints
from app.forward.lines import ForwardError
from app.forward.process import HeadRunner
from app.forward.run import device_name
from app.jobs.jobs import QUEUES, queue_name
from app.logs import configure_logging
from app.settings import Settings
from app.store import Store
from app.store.jobs import JobKind, Worker
from app.translation import gettext as _

from .database import report_database_errors
from .serve import start_metrics
from .terminal import Commands, InputError, read_settings, variable, whole_number

MAX_CONCURRENCY, MAX_WORKER_NAME = 16, 100
SHARES = 20  # processes among which the connections are divided: a worker needs few
CHILD_KEPT_S = 24 * 3600.0  # a worker has no other use for its memory
EXIT_LIMIT_S = 10.0  # after the first signal: a hanging database would hold up the process


def add_to(commands: Commands) -> None:
    """Add the command `worker`, which has no --json."""
    about = _("Run heads and make large handouts for servers with PostgreSQL, which leave them to workers.")
    worker = commands.add("worker", _run, about, printable=False)
    queues = ",".join(QUEUES.values())
    worker.add_argument(
        "--queues",
        default=queues,
        help=_("what it does (default {queues}); runs:cuda has the runs for which somebody chose CUDA").format(
            queues=queues
        ),
    )
    worker.add_argument("--device", choices=("cpu", "mps", "cuda"), help=_("default: CUDA, else MPS, else CPU"))
    worker.add_argument("--concurrency", default="1", help=_("how many jobs of each kind at a time (default 1)"))
    worker.add_argument("--name", help=_("its name on the operators’ page (default: this machine’s, and a number)"))


def _run(parsed: argparse.Namespace) -> None:
    settings = read_settings()
    concurrency = whole_number(parsed.concurrency, "--concurrency")
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InputError(_("--concurrency must be from 1 to {most}.").format(most=MAX_CONCURRENCY))
    name = f"{socket.gethostname()}-{os.getpid()}" if parsed.name is None else parsed.name.strip()
    if not name.isprintable() or not 0 < len(name) <= MAX_WORKER_NAME:
        raise InputError(_("--name must be 1 to {most} printable characters.").format(most=MAX_WORKER_NAME))
    parts = read_queues(parsed.queues)
    if not settings.database.startswith("postgresql"):
        problem = _("A worker needs the servers’ PostgreSQL: set {variable} to its postgresql:// address.")
        raise InputError(problem.format(variable=variable("database_url")))
    if parsed.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    configure_logging()
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="attention-shapes-worker-")))
        if settings.metrics:
            start_metrics(settings, folder / "metrics")
        heads = HeadRunner(
            idle_limit_s=CHILD_KEPT_S,
            checkpoint_folders=settings.weight_folders,
            children=concurrency,
            device=parsed.device,
        )
        opened.callback(heads.close)
        checkpoints = listed_checkpoints(settings.weight_folders) if "head" in parts else ()
        queues = engine_queues(parts, checkpoints)
        device, about_device = describe_device(parts, parsed.device, heads)
        worker = Worker(name, [each for names in queues.values() for each in names], device, about_device,
                        [offered(each) for each in checkpoints], __version__)  # fmt: skip
        with report_database_errors(settings):
            store = Store(settings.database, folder, SHARES, role="worker")
            opened.callback(store.close)
            store.jobs.sign_on(worker)  # so that servers queue jobs from now on
        asyncio.run(_serve(settings, store, heads, worker, queues, concurrency))


def read_queues(text: str) -> dict[JobKind, list[str]]:
    """The parts of each kind in a text such as "runs,runs:cuda": {"run": ["", "cuda"]}."""
    kinds, parts = {name: kind for kind, name in QUEUES.items()}, dict[JobKind, list[str]]()
    for name in text.split(","):
        word, _colon, part = name.strip().partition(":")
        if word not in kinds or (part and word != "runs"):
            problem = _("--queues must be some of {names}, separated by commas, not “{name}”.")
            raise InputError(problem.format(name=name[:30], names=", ".join([*kinds, "runs:cuda", "runs:mps"])))
        parts.setdefault(kinds[word], []).append(part)
    return parts


def engine_queues(
    parts: Mapping[JobKind, Sequence[str]], checkpoints: Sequence[ListedCheckpoint]
) -> Mapping[JobKind, Sequence[str]]:
    """The engine's queues of each kind: heads have one for each checkpoint."""
    keys = {**parts, "head": [each.key for each in checkpoints]}
    return {kind: [queue_name(kind, part) for part in keys[kind]] for kind in parts if keys[kind]}


def offered(checkpoint: ListedCheckpoint) -> dict[str, object]:
    """A checkpoint as servers list it, without its file's path."""
    return {name: value for name, value in asdict(checkpoint).items() if name != "source"}


def describe_device(parts: Mapping[JobKind, Sequence[str]], device: str | None, heads: HeadRunner) -> tuple[str, str]:
    """A worker's device and its name for people; loads torch unless the worker makes only handouts."""
    if list(parts) == ["handout"]:
        return "cpu", device_name("cpu")
    try:
        return heads.describe_device()
    except ForwardError as problem:
        sentence = _("PyTorch cannot be loaded: install it on this machine, or only make handouts: --queues handouts.")
        if problem.reason == "refused":
            sentence = _("PyTorch finds no device {device} on this machine: choose another, or leave --device out.")
        raise InputError(sentence.format(device=device)) from None


async def _serve(
    settings: Settings,
    store: Store,
    heads: HeadRunner,
    worker: Worker,
    queues: Mapping[JobKind, Sequence[str]],
    concurrency: int,
) -> None:
    """Do jobs until SIGTERM or Ctrl-C; a second signal ends the process at once."""
    from app.jobs.engine import EngineJobs, serve_queues
    from app.main import worker_services  # which loads the app

    jobs, stop = EngineJobs(store.jobs, worker.name), asyncio.Event()
    services = worker_services(settings, store, heads, jobs)

    def end() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()
        late = threading.Timer(EXIT_LIMIT_S, os._exit, [0])
        late.daemon = True
        late.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    sentence = _("Worker {name} takes {queues} on {device} ({device_name}), {count} of each kind at a time.")
    names = ", ".join(QUEUES[kind] for kind in queues)
    print(sentence.format(name=worker.name, queues=names, device=worker.device, device_name=worker.device_name,
                          count=concurrency), flush=True)  # fmt: skip
    try:
        await serve_queues(jobs, settings.database, worker, queues, concurrency, stop)
    finally:
        services.printer.close()
