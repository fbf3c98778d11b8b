"""Print jobs as files: stored by every process, read by no other user, deleted after an hour."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from app.handout.print_jobs import PrintJob, PrintJobFolder


def test_a_job_of_one_process_is_found_by_another_and_read_by_no_other_user(tmp_path: Path) -> None:
    """Progress, then the PDF; its files are for their owner alone, and a key that is no key finds nothing."""
    mine, others = PrintJobFolder(tmp_path / "jobs"), PrintJobFolder(tmp_path / "jobs")
    job = PrintJob("One head", 2000)
    mine.save(replace(job, documents_done=3, documents=20))
    stored = others.find(job.key)
    assert stored
    assert (stored.percent, stored.is_ready, others.find_pdf(stored)) == (15, False, None)
    mine.unfinished_pdf(job).touch(mode=0o600)
    mine.unfinished_pdf(job).write_bytes(b"%PDF")
    mine.keep_pdf(replace(job, documents_done=20, documents=20))
    stored = others.find(job.key)
    assert stored == replace(job, documents_done=20, documents=20, is_ready=True)
    pdf = others.find_pdf(stored)
    assert pdf
    assert pdf.read_bytes() == b"%PDF"
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "jobs").iterdir()} == {0}
    assert len(list((tmp_path / "jobs").iterdir())) == 2
    assert others.find("../" + job.key) is None
    assert others.find("x" * 24) is None


def test_jobs_go_after_an_hour_and_one_that_stands_still_says_so(tmp_path: Path) -> None:
    """A server that stopped in the middle leaves a sentence, and later nothing."""
    jobs, job = PrintJobFolder(tmp_path), PrintJob("One head", 2000)
    jobs.save(job)
    state = tmp_path / f"{job.key}.json"
    for age, problem in ((60, ""), (600, "This handout was lost when the server stopped: create it again.")):
        os.utime(state, (time.time() - age,) * 2)
        jobs.delete_expired()
        stored = jobs.find(job.key)
        assert stored
        assert stored.problem == problem
    os.utime(state, (time.time() - 4000,) * 2)
    jobs.delete_expired()
    assert jobs.find(job.key) is None
    assert list(tmp_path.iterdir()) == []
