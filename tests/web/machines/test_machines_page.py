"""The page of machines: what operators see of workers and jobs, what nobody sees, and what the button does."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.jobs.engine import EngineJobs
from app.jobs.jobs import Jobs, Task, queue_name
from app.machine.work_queue import Client
from app.settings import Settings
from app.store import Store
from app.store.jobs import SILENT_AFTER, Job, JobKind, Worker
from app.store.tables import audit_log
from app.web.shared.cookies import TEACHER_COOKIE
from tests.helpers.clock import age_jobs
from tests.helpers.html_page import Page
from tests.helpers.queued_jobs import add_job, start_first
from tests.helpers.running_app import make_app
from tests.helpers.school import SCRIPT, School

SECRETS = ("Ada Lovelace", "the cat sat on", "Ben Bitdiddle", "secret-key", "192.0.2.77")
CUDA = Worker("gpu-1", [queue_name("run", "cuda"), queue_name("handout")], "cuda:0", "NVIDIA L4")
NUMBERS = itertools.count(1)


class Installation:
    """An app that leaves jobs to workers, with an operator, and jobs in which each text is one of SECRETS."""

    def __init__(self, data_dir: Path) -> None:
        app = make_app(Settings(data_dir=data_dir, database_url=""))
        self.school = School(app)
        app.state.services = replace(self.school.services, jobs=EngineJobs(self.store.jobs))
        self.teacher = self.school.teacher()
        self.store.people.set_operator(self.teacher, True)
        self.browser = self.school.browser(teacher=self.teacher)

    @property
    def store(self) -> Store:
        """The app's database."""
        return self.school.store

    def add(self, kind: JobKind = "handout") -> Job:
        """Queue a job of a visitor."""
        name, sentence, typed, key, network = SECRETS
        about, arguments = {"title": name, "note": sentence}, {"sentence": sentence, "names": [name, typed]}
        client, key = Client(network, is_member=False), f"{key}-{next(NUMBERS)}"
        return add_job(self.store, key, client, kind, about=about, arguments=arguments, request_id="request-7")

    def start(self, kind: JobKind = "handout") -> Job:
        """Let a worker start the first job of a kind."""
        return start_first(self.store, kind, CUDA.name)

    def fail(self, kind: JobKind = "handout", reason: str = "refused") -> Job:
        """A job that has failed, with a sentence that quotes what somebody typed."""
        self.add(kind)
        job = self.start(kind)
        self.store.jobs.finish(job, "failed", f"“{SECRETS[2]}” is too long.", reason=reason)
        return job

    def look(self, **query: str) -> Page:
        """The page as the operator gets it, without any of SECRETS."""
        response = self.browser.get("/machines", params=query)
        assert response.status_code == 200
        assert [secret for secret in SECRETS if secret in response.text] == []
        return Page(response.text)

    def press(self, button: str, job: Job) -> str:
        """Press a button of a job, whether it is shown or not; what the page says has been done."""
        response = self.browser.post(f"/machines/jobs/{job.id}/{button}")
        assert response.status_code == 303
        page = Page(self.browser.get(response.headers["location"]).text)
        assert page.find("p", class_="done", role="status")
        return response.headers["location"].partition("done=")[2].partition("&")[0]

    def actions(self) -> list[tuple[str, int | None, int | None]]:
        """What the audit log has of jobs: the action, who did it, and to which job."""
        columns = (audit_log.c.action, audit_log.c.actor_id, audit_log.c.object_id)
        query = sa.select(*columns).where(audit_log.c.object_kind == "job").order_by(audit_log.c.id)
        with self.store.engine.connect() as connection:
            return [(row.action, row.actor_id, row.object_id) for row in connection.execute(query)]

    def now(self, job: Job) -> Job:
        """A job as it is now."""
        found = self.store.jobs.find_numbered(job.id)
        assert found
        return found


@pytest.fixture
def here(data_dir: Path) -> Installation:
    """An installation of its own."""
    return Installation(data_dir)


def rows(page: Page, button: str = "") -> dict[int, str]:
    """The text of each job's row, by id; with a `button`, only rows that have it."""
    buttons = {attributes["id"] for attributes, _ in page.find("button") if "id" in attributes}
    found = {int(attributes["id"].removeprefix("job-")): text for attributes, text in page.find("tr")
             if attributes.get("id", "").startswith("job-")}  # fmt: skip
    return {number: text for number, text in found.items() if not button or f"{button}-{number}" in buttons}


def worker_rows(page: Page) -> list[str]:
    return [text for attributes, text in page.find("tr") if attributes.get("id", "").startswith("worker-")]


def test_workers_are_listed_and_a_silent_one_is_called_so(here: Installation) -> None:
    for worker in (CUDA, Worker("cpu-2", [queue_name("handout")])):
        here.store.jobs.sign_on(worker)
    age_jobs(here.store, SILENT_AFTER)
    here.store.jobs.sign_on(CUDA)
    cpu, gpu = worker_rows(here.look())
    assert ("silent for" in cpu, "silent for" in gpu) == (True, False)
    assert [part for part in ("NVIDIA L4 (cuda:0)", *CUDA.queues) if part not in gpu] == []


def test_a_server_without_workers_has_no_list_of_them(here: Installation) -> None:
    here.add()
    services = here.school.services
    here.school.app.state.services = replace(services, jobs=Jobs(services.store.jobs))
    page = here.look()
    assert (page.find("section", aria_labelledby="workers-title"), page.find("p", class_="remark")) == ([], [])


def test_jobs_at_work_and_waiting_are_counted_and_shown(here: Installation) -> None:
    added = [here.add("run") for _ in range(6)] + [here.add("head")]
    working = here.start("run")
    page = here.look()
    counts = {text.split()[0]: text.split()[1:3] for _, text in page.find("tr") if "@" in text}
    assert counts == {queue_name("run"): ["5", "1"], queue_name("head"): ["1", "0"]}
    shown = list(rows(page, "cancel"))
    assert (shown[0], sorted(shown)) == (working.id, [job.id for job in added])
    assert "at work on gpu-1" in rows(page)[working.id]


def test_a_queue_that_no_worker_takes_is_pointed_out(here: Installation) -> None:
    here.add("head")
    here.store.jobs.sign_on(CUDA)
    assert len(here.look().find("p", class_="remark")) == 1
    here.store.jobs.sign_on(Worker("cpu-3", [queue_name("head")]))
    assert here.look().find("p", class_="remark") == []


def test_every_reason_that_is_stored_has_a_sentence_that_quotes_nobody(here: Installation) -> None:
    reasons = (
        "refused",
        "error",
        "busy",
        "too-long",
        "stopped",
        "no-worker",
        "no-memory",
        "lost",
        "of-a-newer-version",
    )
    numbers = [here.fail(reason=reason).id for reason in reasons]
    cells = rows(here.look())
    sentences = [cells[number].split(" ", 2)[2].partition(" gpu-1")[0] for number in numbers]
    assert len(set(sentences)) == len(numbers)
    assert ["request-7" in sentence for sentence in sentences] == [reason == "error" for reason in reasons]


def test_a_job_of_no_steps_is_shown(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.jobs.jobs.BEAT_S", 0)
    here.add("head")
    job = here.start("head")
    task = Task(here.store.jobs, job, {}, threading.Event())
    task.report(0, 0)
    task.check()
    assert list(rows(here.look())) == [job.id]


@pytest.mark.parametrize("is_started", [False, True])
def test_a_job_is_cancelled_once(here: Installation, is_started: bool) -> None:
    job = here.add()
    started = here.start() if is_started else None
    assert here.press("cancel", job) == "cancelled"
    assert here.now(job).ending == "cancelled"
    if started:
        assert not here.store.jobs.progress(started, 1, 2)
    assert here.press("cancel", job) == "ended"
    assert here.actions() == [("job cancelled", here.teacher.id, job.id)]
    assert rows(here.look()) == {}


def test_only_operators_get_in(here: Installation) -> None:
    """The list of courses leads them there; the session of somebody who no longer is one lets nobody in."""
    assert 'href="/machines"' in here.browser.get("/courses").text
    job = here.add()
    here.store.people.set_operator(here.teacher, False)
    assert 'href="/machines"' not in here.browser.get("/courses").text
    for response in (here.browser.get("/machines"), here.browser.post(f"/machines/jobs/{job.id}/cancel")):
        assert response.status_code == 403
    assert here.now(job).ending is None


def test_another_site_can_cancel_nothing(here: Installation) -> None:
    job = here.add()
    response = here.browser.post(f"/machines/jobs/{job.id}/cancel", headers={"Origin": "https://evil.example"})
    assert (response.status_code, here.now(job).ending) == (403, None)
    assert TEACHER_COOKIE in here.browser.cookies


@pytest.mark.parametrize("number", [999_999, 10**30])
def test_a_job_that_is_not_there_is_404(here: Installation, number: int) -> None:
    assert here.browser.post(f"/machines/jobs/{number}/cancel").status_code == 404


def test_the_page_renews_its_changing_part_alone(here: Installation) -> None:
    here.add()
    part = here.browser.get("/machines", headers=SCRIPT)
    assert "<html" not in part.text
    assert list(rows(Page(part.text))) == list(rows(here.look()))
    assert [attributes["href"] for attributes, text in here.look().find("a") if text == "Refresh"] == ["/machines"]
