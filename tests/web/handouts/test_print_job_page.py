"""The page of a print job: its progress, its PDF, and what it says when the job is gone."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from app.handout.handout_printer import HandoutPrinter
from app.store.jobs import Job, JobTable
from app.web.shared.cookies import TEACHER_COOKIE
from simulation.server import SERVE, Server
from tests.helpers.html_page import Page
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import read_pdf
from tests.helpers.queued_jobs import add_job, start_first
from tests.helpers.school import School

# A server that misses a dead process sooner, and whose handouts are not left for idle time.
IMPATIENT = f"""
from datetime import timedelta
from functools import partial
from app import main
from app.store import jobs
jobs.SILENT_AFTER = timedelta(seconds=5)
main.HandoutPrinter = partial(main.HandoutPrinter, idle_time_only=False)
{SERVE}
"""


def a_teachers_session(client: TestClient) -> str:
    """The cookie of a teacher who signed in."""
    school = School(client.app)  # type: ignore[arg-type]
    return school.store.people.open_session(school.teacher())


@pytest.mark.slow
def test_a_large_handout_shows_its_progress(client: TestClient) -> None:
    client.cookies.set(TEACHER_COOKIE, a_teachers_session(client))
    page = client.get("/handout?sheets=120").text
    assert "Create 120 sheets" in page
    assert "Download PDF" not in page
    answer = client.post("/handout/class", data={"sheets": "120"}, follow_redirects=False)
    address = answer.headers["location"]
    first = client.get(address)
    assert "<progress" not in first.text or "refresh" in first.headers
    assert "Download PDF" in finished_print_job(client, address)
    assert len(read_pdf(client.get(f"{address}.pdf").content)) == 60


@pytest.mark.slow
def test_a_handout_is_cancelled_from_its_page(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work = threading.Event()

    def work(self: HandoutPrinter, *arguments: Any) -> bytes:
        at_work.set()
        while True:
            time.sleep(0.02)
            arguments[-1]()

    monkeypatch.setattr(HandoutPrinter, "print_large", work)
    [first, second] = (
        client.post("/handout/class", data={"names": name}, follow_redirects=False).headers["location"]
        for name in ("Ada", "Kim")
    )
    assert at_work.wait(60)
    assert (
        Page(client.get(second).text).find("label", for_="progress")[0][1] == "Waiting: one handout is ahead of yours."
    )
    for address in (first, second):
        form = Page(client.get(address).text).find("form", method="post")[-1][0]
        page = Page(client.post(form["action"]).text)
        assert page.text("p", role="alert") == "This handout was cancelled."
        assert client.get(f"{address}.pdf", follow_redirects=False).status_code == 303
    monkeypatch.undo()
    answer = client.post("/handout/class", data={"names": "Ada"}, follow_redirects=False)
    assert "Download PDF" in finished_print_job(client, answer.headers["location"])


@pytest.mark.slow
def test_a_server_that_is_killed_makes_its_handouts_after_its_start(tmp_path: Path) -> None:
    server = Server(tmp_path, workers=2, program=IMPATIENT)
    server.start()
    try:
        names = "\n".join(f"Student {number}" for number in range(100))
        with httpx.Client(base_url=server.url) as browser:
            forms = ({"names": names, "variants": "1", "figures": "aid"}, {"names": "Ada"})
            jobs = [browser.post("/handout/class", data=form, timeout=600).headers["location"] for form in forms]
            while "Creating the PDF" not in browser.get(jobs[0], timeout=600).text:
                time.sleep(0.05)
        server.kill()
        server.start()
        for address in jobs:
            while "Download PDF" not in (page := httpx.get(f"{server.url}{address}", timeout=600).text):
                assert "problem" not in page
                time.sleep(0.1)
            assert httpx.get(f"{server.url}{address}.pdf", timeout=600).content.startswith(b"%PDF")
    finally:
        server.kill()


def test_an_old_job_is_told(client: TestClient) -> None:
    answer = client.get("/handout/jobs/none")
    assert answer.status_code == 404
    assert "has been deleted" in answer.text


def test_a_handout_that_is_deleted_while_it_is_read_is_gone(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, found = client.app.state.services.store, JobTable.result  # type: ignore[attr-defined]
    add_job(store, "a-key")
    store.jobs.finish(start_first(store), "ready", "", b"%PDF")
    assert client.get("/handout/jobs/a-key.pdf").content == b"%PDF"

    def delete_first(rows: JobTable, job: Job) -> bytes:
        rows.delete(job)
        return found(rows, job)

    monkeypatch.setattr(JobTable, "result", delete_first)
    assert client.get("/handout/jobs/a-key.pdf").status_code == 404
