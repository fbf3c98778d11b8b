"""The page of machines: what operators see of runners and jobs, what nobody sees, and what the buttons do."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.machine.jobs import JOB_FORM, Job, JobFailedError, JobKind, JobLimits, Jobs, Runner, Task
from app.machine.work_queue import Client
from app.settings import Settings
from app.store import Store
from app.store.jobs import JOB_RETENTION, SILENT_AFTER
from app.store.tables import audit_log
from app.web.shared.cookies import TEACHER_COOKIE
from tests.helpers.clock import age_jobs
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app
from tests.helpers.school import SCRIPT, School

LIMITS = JobLimits(total=99, visitors=99, visitor=99, member=99)
SECRETS = ("Ada Lovelace", "the cat sat on", "Ben Bitdiddle", "secret-key", "192.0.2.77")
CUDA = Runner("gpu-1", device="cuda:0", device_name="NVIDIA L4", memory_bytes=2**34, concurrency=2)
NUMBERS = itertools.count(1)


class Installation:
    """An app with an operator, and jobs in which each text is one of SECRETS. The app itself does no jobs, unless it
    `works`.
    """

    def __init__(self, data_dir: Path, *, works: bool = False) -> None:
        app = make_app(Settings(data_dir=data_dir, database_url=""))
        self.school = School(app)
        if not works:
            app.state.services = replace(self.school.services, jobs=Jobs(self.store.jobs, None))
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
        return self.store.jobs.add(kind, client, LIMITS, "request-7", key, None, about, arguments)

    def start(self, kind: JobKind = "handout", runner: Runner = CUDA) -> Job:
        """Let a runner start the first job of a kind."""
        claimed = self.store.jobs.claim(kind, runner)
        assert claimed
        return claimed[0]

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


def runner_rows(page: Page) -> list[str]:
    return [text for attributes, text in page.find("tr") if attributes.get("id", "").startswith("runner-")]


def queue_numbers(page: Page) -> list[tuple[str, str]]:
    """How many jobs wait and are at work, of runs, handouts and heads."""
    kinds = ("Runs", "Handouts", "Heads")
    texts = [text.split() for _, text in page.find("tr") if text.split()[1:] and text.split()[1].isdigit()]
    return [(text[1], text[2]) for kind in kinds for text in texts if text[0] == kind]


def test_runners_are_listed_with_what_they_do_and_a_silent_one_is_called_so(here: Installation) -> None:
    for runner in (CUDA, Runner("cpu-2", kinds=("handout",)), replace(CUDA, name="old", form=JOB_FORM + 1)):
        here.store.jobs.sign_on(runner)
    age_jobs(here.store, SILENT_AFTER)
    here.store.jobs.sign_on(CUDA)
    here.add()
    here.add()
    here.store.jobs.finish(here.start(), "ready")
    here.start()
    cpu, gpu, old = runner_rows(here.look())
    assert "silent for" in cpu
    assert "silent for" not in gpu
    assert "silent for" in old
    assert [part for part in ("NVIDIA L4 (cuda:0)", "handout for", "2 of each") if part not in gpu] == []
    assert ("other code" in gpu, "other code" in old) == (False, True)
    device_and_done = gpu.split("NVIDIA L4")[1].split()[:2]
    assert device_and_done == ["(cuda:0)", "1"]


def test_the_queue_is_counted_by_kind_and_shown_in_part(here: Installation) -> None:
    added = [here.add("run") for _ in range(6)] + [here.add("head")]
    working = here.start("run")
    page = here.look()
    assert queue_numbers(page) == [("5", "1"), ("0", "0"), ("1", "0")]
    shown = list(rows(page, "cancel"))
    assert (shown[0], len(shown) < len(added)) == (working.id, True)
    assert added[-1].id in shown
    everything = here.look(jobs="all")
    assert sorted(rows(everything, "cancel")) == sorted(job.id for job in added)


def test_a_kind_that_waits_for_no_runner_is_pointed_out(here: Installation) -> None:
    here.add("head")
    here.store.jobs.sign_on(Runner("cpu-2", kinds=("handout", "run")))
    assert len(here.look().find("p", class_="remark")) == 1
    here.store.jobs.sign_on(Runner("cpu-3", kinds=("head",)))
    assert here.look().find("p", class_="remark") == []


def test_web_processes_that_leave_jobs_to_runners_serve_no_queue(here: Installation) -> None:
    here.add("head")
    here.store.jobs.sign_on(Runner("web", is_web=True))
    assert here.look().find("p", class_="remark") == []
    services = here.school.services
    settings = services.settings.model_copy(update={"runners": True})
    here.school.app.state.services = replace(services, settings=settings)
    assert len(here.look().find("p", class_="remark")) == 1


def test_failed_jobs_have_a_reason_that_quotes_nobody(here: Installation) -> None:
    refused, error = here.fail(), here.fail(reason="error")
    unknown = here.fail(reason="of-a-newer-version")
    texts = rows(here.look())
    assert len({texts[job.id].partition(" ")[2] for job in (refused, error, unknown)}) == 3
    assert ("request-7" in texts[error.id], "request-7" in texts[refused.id]) == (True, False)


def test_every_reason_that_is_stored_has_a_sentence(here: Installation) -> None:
    reasons = ("refused", "error", "busy", "too-long", "stopped", "no-runner", "old-code", "no-weights", "no-device",
               "no-memory")  # fmt: skip
    numbers = [here.fail(reason=reason).id for reason in (*reasons, "of-a-newer-version")]
    cells = {number: text for number, text in rows(here.look()).items() if number in numbers}
    sentences = [cells[number].split(" ", 2)[2].partition(" gpu-1")[0] for number in numbers]
    assert len(set(sentences)) == len(numbers)


def test_the_slowest_jobs_come_first(here: Installation) -> None:
    quick, slow = here.add(), here.add("run")
    here.store.jobs.finish(here.start("run"), "ready")
    with here.store.transaction() as connection:
        connection.execute(sa.text("UPDATE jobs SET started_at = datetime(started_at, '-4000 seconds')"))
    here.store.jobs.finish(here.start(), "ready")
    shown = rows(here.look())
    assert list(shown) == [slow.id, quick.id]
    assert "1 h 06 min" in shown[slow.id]


def test_a_job_of_no_steps_is_shown(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.machine.jobs.BEAT_S", 0)
    here.add("head")
    job = here.start("head")
    task = Task(here.store.jobs, CUDA, job, {}, lambda: False)
    task.report(0, 0)
    task.check()
    here.store.jobs.finish(job, "ready")
    assert list(rows(here.look())) == [job.id]


@pytest.mark.parametrize("is_started", [False, True])
def test_a_job_is_cancelled_once(here: Installation, is_started: bool) -> None:
    job = here.add()
    started = here.start() if is_started else None
    assert here.press("cancel", job) == "cancelled"
    assert here.now(job).ending == "cancelled"
    if started:
        assert not here.store.jobs.beat(started, 1, 2)
    assert here.press("cancel", job) == "ended"
    assert here.actions() == [("job cancelled", here.teacher.id, job.id)]
    assert rows(here.look()) == {}


def test_a_failed_job_waits_again_within_the_hour(here: Installation) -> None:
    job = here.fail()
    arguments = here.store.jobs.arguments(job)
    assert list(rows(here.look(), "retry")) == [job.id]
    assert here.press("retry", job) == "retried"
    waiting = here.now(job)
    assert (waiting.ending, waiting.problem, waiting.is_working, waiting.reason) == (None, "", False, "")
    assert here.press("retry", job) == "late"
    again = here.start()
    assert (again.id, again.attempt, here.store.jobs.arguments(again)) == (job.id, 2, arguments)
    here.store.jobs.finish(again, "failed", "no", reason="error")
    age_jobs(here.store, JOB_RETENTION)
    assert (list(rows(here.look())), rows(here.look(), "retry")) == ([job.id], {})
    assert here.press("retry", job) == "late"
    here.store.jobs.delete_expired()
    assert here.press("retry", job) == "late"
    assert here.actions() == [("job retried", here.teacher.id, job.id)]


def test_a_retried_job_is_done_at_once(data_dir: Path) -> None:
    here, problems = Installation(data_dir, works=True), ["Out of ink."]

    def work(_task: Task) -> bytes:
        if problems:
            raise JobFailedError(problems.pop())
        return b"done"

    jobs = here.school.services.jobs
    jobs.add_kind("handout", work, LIMITS)
    failed = jobs.wait(jobs.submit("handout", Client("teacher 1"), "key", {}, {}), 60)
    assert failed
    assert failed.ending == "failed"
    assert here.press("retry", failed) == "retried"
    ready = jobs.wait(here.now(failed), 60)
    assert ready
    assert jobs.rows.result(ready) == b"done"
    jobs.close()


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
    for button in ("cancel", "retry"):
        assert here.browser.post(f"/machines/jobs/{number}/{button}").status_code == 404


def test_the_page_renews_its_changing_part_alone(here: Installation) -> None:
    here.add()
    part = here.browser.get("/machines", headers=SCRIPT)
    assert "<html" not in part.text
    assert list(rows(Page(part.text))) == list(rows(here.look()))
    assert [attributes["href"] for attributes, text in here.look().find("a") if text == "Refresh"] == ["/machines"]


def test_a_server_without_runners_shows_its_one_machine(data_dir: Path) -> None:
    here = Installation(data_dir, works=True)
    here.school.services.jobs.start()
    here.school.services.jobs.close()
    [machine] = runner_rows(here.look())
    assert "web" in machine
