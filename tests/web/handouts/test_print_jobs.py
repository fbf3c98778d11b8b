"""Print jobs: kept in files, found by every process, and gone after an hour."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from app.web.handouts.print_jobs import Job, Jobs


def test_a_job_of_one_process_is_found_by_another_and_read_by_no_other_user(tmp_path: Path) -> None:
    """Progress, then the PDF; its files are for their owner alone, and a key that is no key finds nothing."""
    mine, others = Jobs(tmp_path / "jobs"), Jobs(tmp_path / "jobs")
    job = Job("One head", 2000)
    mine.keep(replace(job, done=3, of=20))
    seen = others.find(job.key)
    assert seen
    assert (seen.percent, seen.pdf) == (15, None)
    mine.keep(replace(job, done=20, of=20, pdf=b"%PDF"))
    assert others.find(job.key) == replace(job, done=20, of=20, pdf=b"%PDF")
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "jobs").iterdir()} == {0}
    assert len(list((tmp_path / "jobs").iterdir())) == 2
    assert others.find("../" + job.key) is None
    assert others.find("x" * 24) is None


def test_jobs_go_after_an_hour_and_one_that_stands_still_says_so(tmp_path: Path) -> None:
    """A server that stopped in the middle leaves a sentence, and later nothing."""
    jobs, job = Jobs(tmp_path), Job("One head", 2000)
    jobs.keep(job)
    state = tmp_path / f"{job.key}.json"
    for age, said in ((60, ""), (600, "This handout was lost when the server stopped: make it again.")):
        os.utime(state, (time.time() - age,) * 2)
        jobs.clear()
        found = jobs.find(job.key)
        assert found
        assert found.problem == said
    os.utime(state, (time.time() - 4000,) * 2)
    jobs.clear()
    assert jobs.find(job.key) is None
    assert list(tmp_path.iterdir()) == []
