"""Print jobs as files: one queue for every process on this machine, whose progress any of them can read."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.translation import gettext as _

PRINT_JOB_TTL_S = 3600  # a PDF holds names of students, so it is deleted within the hour
HEARTBEAT_S = 5  # between two signs of life of a job's process
ABANDONED_AFTER_S = 90  # without a sign of life: the job's process is gone
_JOB_KEY = re.compile(r"[\w-]{24}", re.ASCII)


@dataclass
class PrintJob:
    """One large handout while it waits and is made, and after: ready for download, or with what stopped it.

    `teacher_id` is the one teacher who may see it; with None everybody who has the key may. `back` is the address of
    the page it was started from, "" for the page of handouts. `client` says whose it is, to count the jobs of each.
    """

    title: str
    sheets: int
    teacher_id: int | None = None
    back: str = ""
    client: str = ""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    created_at: float = field(default_factory=time.time)
    has_started: bool = False
    documents_done: int = 0
    documents: int = 1
    problem: str = ""
    is_ready: bool = False
    note: str = ""  # about letters that are printed as boxes

    @property
    def percent(self) -> int:
        """How much of it is typeset, from 0 to 100, rounded down."""
        return 100 * self.documents_done // self.documents

    @property
    def is_finished(self) -> bool:
        return self.is_ready or bool(self.problem)


class PrintJobFolder:
    """Print jobs as files, so that every process on this machine finds them. Only the files' owner may read them.

    A job has KEY.json, its state, which is touched as a sign of life while it waits and is made; KEY.pdf once it is
    ready; KEY.seen, touched whenever somebody looks at its page; and KEY.cancel once somebody has cancelled it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, job: PrintJob) -> None:
        """Write down the state of a job, in place of what was written before; raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = self._folder / f"{job.key}.json.{secrets.token_hex(4)}.part"  # so that nobody reads half of it
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(json.dumps(asdict(job)).encode())
        unfinished.replace(self._folder / f"{job.key}.json")

    def find(self, key: str) -> PrintJob | None:
        """The job as it was last saved; None for an unknown or malformed key or a job of another app version.

        A job that is neither ready nor failed and gave no sign of life for ABANDONED_AFTER_S gets a problem in what is
        returned, not in its file: its process is gone.
        """
        if not _JOB_KEY.fullmatch(key):
            return None
        try:
            job, quiet_s = self._read(self._file(key, "json"))
        except (FileNotFoundError, TypeError, ValueError):  # the last two for a job of another version of the app
            return None
        if not job.is_finished and quiet_s > ABANDONED_AFTER_S:
            job.problem = _("This handout was lost when the server stopped: create it again.")
        return job

    def jobs(self) -> Iterator[PrintJob]:
        """Every job of the last hour, finished or not, in no order; one whose process is gone has a problem."""
        for path in self._folder.glob("*.json"):
            if job := self.find(path.stem):
                yield job

    def jobs_before(self, job: PrintJob) -> int:
        """How many jobs go before this one and are not finished: those started earlier; of visitors, teachers' too."""
        place = _place(job)
        recent = (path for path in self._folder.glob("*.json") if _quiet_seconds(path) <= ABANDONED_AFTER_S)
        earlier = (found for path in recent if (found := self.find(path.stem)) and not found.is_finished)
        return sum(_place(other) < place for other in earlier)

    def unfinished_pdf(self, job: PrintJob) -> Path:
        """Where the PDF of a job is written; `keep_pdf` makes it the job's."""
        return self._file(job.key, "pdf.part")

    def keep_pdf(self, job: PrintJob) -> None:
        """Keep the PDF that was written to `unfinished_pdf`, and mark the job as ready; raises OSError."""
        self.unfinished_pdf(job).replace(self._file(job.key, "pdf"))
        job.is_ready = True
        self.save(job)

    def find_pdf(self, job: PrintJob) -> Path | None:
        """The PDF of a job; None while `job` is not ready, and once the file is deleted."""
        path = self._file(job.key, "pdf")
        return path if job.is_ready and path.exists() else None

    def touch(self, job: PrintJob) -> None:
        """Give a sign of life: the job's process is there."""
        with suppress(OSError):
            self._file(job.key, "json").touch(mode=0o600)

    def note_look(self, job: PrintJob) -> None:
        """Note that somebody is waiting for a job."""
        with suppress(OSError):
            self._file(job.key, "seen").touch(mode=0o600)

    def seconds_unseen(self, job: PrintJob) -> float:
        """Seconds since somebody last looked at the page of a job, or since it was started."""
        return min(time.time() - job.created_at, _quiet_seconds(self._file(job.key, "seen")))

    def cancel(self, job: PrintJob) -> None:
        """Ask the job's process, whichever it is, to end the job."""
        self._file(job.key, "cancel").touch(mode=0o600)

    def is_cancelled(self, job: PrintJob) -> bool:
        return self._file(job.key, "cancel").exists()

    def delete_expired(self) -> None:
        """Delete every file in the folder that was not written to for PRINT_JOB_TTL_S."""
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process deletes too
                if time.time() - path.stat().st_mtime > PRINT_JOB_TTL_S:
                    path.unlink()

    def _file(self, key: str, kind: str) -> Path:
        return self._folder / f"{key}.{kind}"

    def _read(self, path: Path) -> tuple[PrintJob, float]:
        """The job of a file, and the seconds since its last sign of life."""
        return PrintJob(**json.loads(path.read_bytes())), _quiet_seconds(path)


def _place(job: PrintJob) -> tuple[bool, bool, float, str]:
    """What jobs are put in order by: the one that is made, then those of teachers, then the others, each by age."""
    return not job.has_started, job.teacher_id is None, job.created_at, job.key


def _quiet_seconds(path: Path) -> float:
    """Seconds since a file was last written or touched; without end for one that is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
