"""The command `runner`: do the jobs that servers leave to runners, on this machine, until it is stopped."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from app.checkpoints.sources import listed_checkpoints
from app.forward.devices import available_bytes, device_name
from app.forward.lines import ForwardError
from app.forward.process import HeadRunner, RunnerFailed, RunTooLong
from app.logs import configure_logging
from app.machine.jobs import JobKind, JobStoppedError, Runner
from app.metrics import meters
from app.settings import Settings
from app.store import Store
from app.store.database import is_known, revision_of
from app.store.limits import failure_of
from app.translation import gettext as _

from .database import report_database_errors
from .serve import start_metrics
from .terminal import Commands, InputError, read_settings, variable, whole_number

if TYPE_CHECKING:
    from app.machine.jobs import Result, Task, Work

KINDS_BY_OPTION: Mapping[str, JobKind] = {"runs": "run", "handouts": "handout", "heads": "head"}  # as they are typed
MAX_CONCURRENCY, MAX_RUNNER_NAME = 64, 100
SHARES = 20  # processes among which the connections are divided: a runner needs few
SIGN_EVERY_S, RETRY_S = 2.0, 0.5
WAITS_FOR_SIGN_S = 3 * SIGN_EVERY_S  # for another runner of this name to show that it lives
CHILD_KEPT_S = 24 * 3600.0  # a runner has no other use for its memory
EXIT_LIMIT_S = 10.0  # after the first signal: a hanging database would hold up the process
SIGNAL_LAG_S = 0.3  # between a child's end and our own signal, if both get one


def add_to(commands: Commands) -> None:
    """Add the command `runner [--device] [--kinds] [--concurrency] [--name]`, which has no --json."""
    about = _("Do the heads and large handouts that servers with ATTENTION_SHAPES_RUNNERS=true leave to runners.")
    runner = commands.add("runner", _run, about, printable=False)
    runner.add_argument("--device", help=_("cpu, mps, cuda or cuda:NUMBER (default: CUDA, else MPS, else CPU)"))
    runner.add_argument(
        "--kinds", default=",".join(KINDS_BY_OPTION), help=_("what it does (default runs,handouts,heads)")
    )
    runner.add_argument("--concurrency", default="1", help=_("how many jobs of each kind at a time (default 1)"))
    runner.add_argument("--name", help=_("its name on the operators’ page (default: this machine’s, and a number)"))


def _run(parsed: argparse.Namespace) -> None:
    """A second signal ends the process at once."""
    settings, kinds = read_settings(), _kinds(parsed.kinds)
    concurrency = whole_number(parsed.concurrency, "--concurrency")
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InputError(_("--concurrency must be from 1 to {most}.").format(most=MAX_CONCURRENCY))
    name = f"{socket.gethostname()}-{os.getpid()}" if parsed.name is None else parsed.name.strip()
    if not name.isprintable() or not 0 < len(name) <= MAX_RUNNER_NAME:
        raise InputError(_("--name must be 1 to {most} printable characters.").format(most=MAX_RUNNER_NAME))
    if not settings.database.startswith("postgresql"):
        problem = _("A runner needs the servers’ PostgreSQL: set {variable} to its postgresql:// address.")
        raise InputError(problem.format(variable=variable("database_url")))
    device = _choose_device(parsed.device)
    configure_logging()
    with ExitStack() as opened:
        folder = _temporary_folder(opened)
        stopped = _stop_on_signals()
        if settings.metrics:
            start_metrics(settings, folder / "metrics")
        heads = HeadRunner(
            idle_limit_s=CHILD_KEPT_S,
            checkpoint_folders=settings.weight_folders,
            children=concurrency,
            device=device.partition(":")[0] or None,
        )
        opened.callback(heads.close)
        # This machine's weights as servers' pages list them, without their files' paths.
        listed = map(asdict, listed_checkpoints(settings.weight_folders)) if "head" in kinds else ()
        offer = [{name: value for name, value in each.items() if name != "source"} for each in listed]
        runner = Runner(name, kinds, device=device, concurrency=concurrency, checkpoints=offer)
        runner = _with_device(runner, heads, stopped)
        store = _open_store(settings, folder, stopped)
        if store is not None:
            opened.callback(store.close)
            with report_database_errors(settings):
                _check_name(store, name, stopped)
            _do_jobs(settings, store, heads, runner, stopped)


def _kinds(text: str) -> tuple[JobKind, ...]:
    names = [part.strip() for part in text.split(",")]
    if unknown := [each for each in names if each not in KINDS_BY_OPTION]:
        problem = _("--kinds must be some of {names}, separated by commas, not “{name}”.")
        raise InputError(problem.format(name=unknown[0][:30], names=",".join(KINDS_BY_OPTION)))
    return tuple(kind for each, kind in KINDS_BY_OPTION.items() if each in names)


def _choose_device(text: str | None) -> str:
    match = re.fullmatch(r"(cpu|mps|cuda)(?::(\d{1,3}))?", text or "cpu")
    if not match or (match[2] and match[1] != "cuda"):
        raise InputError(_("--device must be cpu, mps, cuda or cuda:NUMBER, not “{text}”.").format(text=str(text)[:30]))
    if text == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif match[2]:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        numbers = seen.split(",") if seen is not None else [str(number) for number in range(1000)]
        os.environ["CUDA_VISIBLE_DEVICES"] = numbers[int(match[2])] if int(match[2]) < len(numbers) else ""
    return text or ""


def _temporary_folder(opened: ExitStack) -> Path:
    try:
        return Path(opened.enter_context(TemporaryDirectory(prefix="attention-shapes-runner-")))
    except OSError as error:
        problem = _("No temporary folder can be made: {reason}. Make room, or name another place in TMPDIR.")
        raise InputError(problem.format(reason=error.strerror)) from None


def _stop_on_signals() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set from now on."""
    stopped = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()
        late = threading.Timer(EXIT_LIMIT_S, os._exit, [0])
        late.daemon = True
        late.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopped


def _with_device(runner: Runner, heads: HeadRunner, stopped: threading.Event) -> Runner:
    if runner.kinds == ("handout",):
        return replace(runner, device="cpu", device_name=device_name("cpu"), memory_bytes=available_bytes("cpu") or 0)

    def check() -> None:
        if stopped.is_set():
            raise SystemExit(0)

    try:
        here = heads.describe_device(check)
    except ForwardError:
        problem = _("PyTorch finds no device {device} on this machine: choose another, or leave --device out.")
        raise InputError(problem.format(device=runner.device)) from None
    except (RunnerFailed, RunTooLong):
        problem = _("PyTorch cannot be loaded: install it on this machine, or do only handouts with --kinds handouts.")
        raise InputError(problem) from None
    device = here.device if here.device != "cuda" or ":" in runner.device else "cuda:0"
    return replace(runner, device=runner.device or device, device_name=here.name, memory_bytes=here.usable_bytes)


def _open_store(settings: Settings, folder: Path, stopped: threading.Event) -> Store | None:
    is_told = False
    while not stopped.is_set():
        with report_database_errors(settings):
            try:
                return Store(settings.database, folder, SHARES, role="runner")
            except SQLAlchemyError as error:
                if failure_of(error) is None:
                    raise
                reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        if not is_told:
            _say(_("The database does not answer; trying until it does: {reason}").format(reason=reason))
        is_told = True
        stopped.wait(RETRY_S)
    return None


def _check_name(store: Store, name: str, stopped: threading.Event) -> None:
    def heard_at() -> object:
        with suppress(SQLAlchemyError):  # the database is gone again: forget other runners, and wait for its return
            return next((each.heard_at for each in store.jobs.runners() if each.name == name and each.is_alive), None)
        return None

    first, give_up_at = heard_at(), time.monotonic() + WAITS_FOR_SIGN_S
    while first and time.monotonic() < give_up_at and not stopped.wait(RETRY_S):
        if heard_at() not in (first, None):
            raise InputError(_("A runner called “{name}” is running: choose another --name.").format(name=name))


def _do_jobs(settings: Settings, store: Store, heads: HeadRunner, runner: Runner, stopped: threading.Event) -> None:
    from app.main import job_kinds, job_services  # which loads the app

    services = job_services(settings, store, heads, runner)
    for kind, (work, limits) in job_kinds(services).items():
        if kind in runner.kinds:
            services.jobs.add_kind(kind, _announced(kind, work, stopped), limits)
    sentence = _("Runner {name} does {kinds} on {device} ({device_name}), {count} of each kind at a time.")
    kinds = ", ".join(option for option, kind in KINDS_BY_OPTION.items() if kind in runner.kinds)
    where = {"device": runner.device, "device_name": runner.device_name}
    description = sentence.format(name=runner.name, kinds=kinds, count=runner.concurrency, **where)
    is_started, is_lost, told = False, False, set[str]()
    try:
        while not stopped.is_set():
            try:
                store.jobs.sign_on(runner)
                notes = _notes_on_versions(store)
            except SQLAlchemyError:
                if not is_lost:
                    _say(_("The database does not answer; trying until it does."))
                is_lost = True
            else:
                if not is_started:
                    services.jobs.start()
                    _say(description)
                if is_lost:
                    _say(_("The database is back."))
                for note in sorted(notes - told):
                    _say(note)
                is_started, is_lost, told = True, False, told | notes
            stopped.wait(RETRY_S if is_lost else SIGN_EVERY_S)
    finally:
        services.jobs.close()
        services.printer.close()


def _notes_on_versions(store: Store) -> set[str]:
    notes = set[str]()
    if store.jobs.count_of_other_forms():
        notes.add(_("Jobs wait that another version of this program has queued: update this runner, or the servers."))
    with store.engine.connect() as connection:
        revision = revision_of(connection)
    if revision is None or not is_known(revision):
        notes.add(_("A newer version of this program has changed the database: update this runner."))
    return notes


def _announced(kind: JobKind, work: Work, stopped: threading.Event) -> Work:
    """After an error, waits up to SIGNAL_LAG_S for a signal to stop. If one comes, the job is requeued
    (JobStoppedError), since the child got the same signal and may have failed because of it.
    """
    taken, ended = _("Job {id} ({kind}) taken."), _("Job {id} ({kind}) {ending} after {seconds:.1f} s.")
    endings = {"done": _("done"), "refused": _("refused"), "failed": _("failed"), "stopped": _("put back or cancelled")}

    def carry_out(task: Task) -> Result:
        began, ending, at_work = time.monotonic(), "failed", meters()
        _say(taken.format(id=task.job.id, kind=kind))
        if at_work:
            at_work.queue.labels(kind, "working").inc()
        try:
            result = work(task)
            ending = "done"
        except JobStoppedError:
            ending = "stopped"
            raise
        except Exception as error:
            reason = getattr(error, "reason", "")
            if reason != "refused" and stopped.wait(SIGNAL_LAG_S):
                ending, task.gives_way = "stopped", True
                raise JobStoppedError from None
            ending = "refused" if isinstance(error, ValueError) and reason in ("", "refused") else "failed"
            raise
        else:
            return result
        finally:
            if at_work:
                at_work.queue.labels(kind, "working").dec()
            seconds = time.monotonic() - began
            _say(ended.format(id=task.job.id, kind=kind, ending=endings[ending], seconds=seconds))

    return carry_out


def _say(line: str) -> None:
    with suppress(OSError, ValueError):
        print(line, flush=True)
