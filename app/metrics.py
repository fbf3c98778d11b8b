"""What Prometheus reads: counts and times by route and kind, without names and answers; off by default.

With several workers, each writes its numbers to files in a folder, and their parent process adds them up.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client on import


class Meters:
    """All metrics."""

    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge, Histogram  # not at the top: most servers run without it

        self.requests = Counter("shapes_requests", "Requests answered.", ("method", "route", "status"))
        self.request_seconds = Histogram(
            "shapes_request_seconds", "Time to answer a request.", ("route",), buckets=SECONDS
        )
        self.saves = Counter("shapes_saves", "Saves of a sheet that were acknowledged.", ("place",))
        self.queue = Gauge("shapes_queue", "Requests that work or wait in threads of a kind.", ("kind", "state"),
                           multiprocess_mode="livesum")  # fmt: skip
        self.jobs_waiting = Gauge("shapes_jobs_waiting", "Jobs that wait for a worker.", ("queue",),
                                  multiprocess_mode="livemax")  # fmt: skip
        self.oldest_job = Gauge("shapes_oldest_job_seconds", "How long the oldest waiting job has waited.",
                                multiprocess_mode="livemax")  # fmt: skip
        self.workers = Gauge("shapes_workers", "Workers that are alive.", multiprocess_mode="livemax")
        self.job_seconds = Histogram("shapes_job_seconds", "Time of a run or a print job, waiting included.",
                                     ("kind", "outcome"), buckets=SECONDS)  # fmt: skip
        self.database_seconds = Histogram(
            "shapes_database_seconds", "Time of a statement or a commit.", ("kind",), buckets=SECONDS
        )
        self.failures = Counter("shapes_failures", "Bugs, and outages of what the app depends on.", ("kind",))


_meters: Meters | None = None


def switch_on(folder: Path) -> None:
    """Collect metrics in this process and, by an environment variable, in those that it starts from now on.

    Raises OSError if the folder can't be created.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)  # a mounted file system can be emptied, but not removed
    os.environ[FOLDER_VARIABLE] = str(folder)
    join()


def join() -> None:
    """Collect metrics in this process as well, if it or a parent process has called `switch_on`."""
    global _meters
    if FOLDER_VARIABLE in os.environ and _meters is None:
        _meters = Meters()


def meters() -> Meters | None:
    """The metrics of this process, or None."""
    return _meters


def count_failure(kind: str) -> None:
    """Count a failure: "bug", "database", "auto-submit", "grades", "housekeeping", "child", "jobs"."""
    if _meters:
        _meters.failures.labels(kind).inc()


@contextmanager
def timed_job(kind: str, waited_s: float) -> Iterator[None]:
    """Measure the time of the `with`, and before it, as a job of that kind, if metrics are on."""
    began, outcome = perf_counter(), "failed"
    try:
        yield
        outcome = "done"
    finally:
        if _meters:
            _meters.job_seconds.labels(kind, outcome).observe(waited_s + perf_counter() - began)


def serve_metrics(address: str) -> None:
    """Serve the metrics of all processes at an address such as "127.0.0.1:9100" or "[::1]:9100", from a thread.

    Raises OSError if the port is taken, ValueError for an address without a port number.
    """
    import psutil
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    folder, registry = Path(os.environ[FOLDER_VARIABLE]), CollectorRegistry()

    class Living(MultiProcessCollector):
        """The metrics of all processes, without the queues of ended workers."""

        def collect(self) -> Any:
            for path in folder.glob("gauge_live*_*.db"):
                if not psutil.pid_exists(int(path.stem.rpartition("_")[2])):
                    path.unlink(missing_ok=True)
            return super().collect()  # type: ignore[no-untyped-call]  # as its library leaves it

    Living(registry, str(folder))  # type: ignore[no-untyped-call]  # as its library leaves it
    host, _colon, port = address.rpartition(":")
    start_http_server(int(port), host.strip("[]"), registry)
