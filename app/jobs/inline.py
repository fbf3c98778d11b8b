"""Jobs on one machine, with SQLite: each web process does them in threads, one of each kind at a time."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from app.store.jobs import Job, JobKind

from .jobs import Jobs, note_failure


class InlineJobs(Jobs):
    """Does jobs in this process, those left by an earlier process included."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._threads = defaultdict[JobKind, ThreadPoolExecutor](lambda: ThreadPoolExecutor(1, "jobs"))
        self._working = dict[JobKind, Future[None]]()

    def start(self) -> None:
        """Begin with what an earlier process left."""
        for kind in self.kinds:
            self._wake(kind)

    def submit(self, kind: JobKind, *arguments: Any, **options: Any) -> Job:
        """Queue a job and start it as soon as this process does no other one of its kind."""
        job = super().submit(kind, *arguments, **options)
        self._wake(kind)
        return job

    def find(self, key: str) -> Job | None:
        """The job with this key; if nobody seems to do it, this process will."""
        job = super().find(key)
        if job and not job.ending and (job.kind not in self._working or self._working[job.kind].done()):
            self._wake(job.kind)
        return job

    def tidy(self) -> None:
        """Delete what has expired, and begin with what processes left that have ended."""
        super().tidy()
        self.start()

    def close(self) -> None:
        """Stop the work of this process, put it back, and wait until it has stopped."""
        super().close()
        for thread in self._threads.values():
            thread.shutdown()

    def _wake(self, kind: JobKind) -> None:
        with suppress(RuntimeError):  # closed meanwhile: the job waits for the next process
            self._working[kind] = self._threads[kind].submit(self._work_off, kind)

    def _work_off(self, kind: JobKind) -> None:
        try:
            self.rows.sweep()
            while not self.stopping.is_set() and (job_id := self.rows.first_waiting(kind)):
                self.do(job_id)
        except Exception:
            note_failure()
