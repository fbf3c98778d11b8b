"""Workers beside servers that leave them their work: what they do, what pages say without them, and how they end."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.cli import main, worker
from app.cli.terminal import InputError
from app.forward.lines import ForwardError
from app.forward.process import HeadRunner, not_run
from app.forward.run import HEAD_RUNS
from app.handout.handout_printer import HandoutPrinter
from app.jobs.engine import EngineJobs
from app.jobs.jobs import Kind, queue_name
from app.machine.work_queue import THE_APP
from app.main import job_kinds
from app.settings import Settings
from app.store import Store
from app.store.jobs import RESTARTS_WITHIN, Worker, no_worker
from app.web.shared.services import Services
from simulation.postgres import create_database, postgres_killed, postgres_server
from simulation.server import LOOK_S, Command, Server
from tests.helpers.clock import age_jobs
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.html_page import Page
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.queued_jobs import MANY, found_job
from tests.helpers.real_heads import LISTED
from tests.helpers.running_app import make_app
from tests.helpers.worker_here import worker_here

LIBRARIES_OF_RUNS = "torch safetensors gguf tokenizers huggingface_hub"
# The server, on a machine where none of these can be imported.
LEAN_SERVER = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LIBRARIES_OF_RUNS.split()!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from app.cli import main
main(["serve"])
"""
SHEET = {"worksheet": "llama-7b", "queries.rows": "100"}


# The command's options


@pytest.mark.parametrize(
    "options",
    [
        ["--queues", "runs,prints"],
        ["--queues", ""],
        ["--queues", "handouts:cuda"],
        ["--concurrency", "0"],
        ["--concurrency", "two"],
        ["--concurrency", "1000"],
        ["--device", "tpu"],
        ["--name", " "],
        ["--name", "a\nb"],
        ["--name", "a" * 101],
    ],
)
def test_bad_options_get_a_sentence_that_names_them(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost:1/none")
    assert options[0] in refusal(capsys, *options)


def test_workers_need_the_servers_postgresql(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert "DATABASE_URL" in refusal(capsys)


@pytest.mark.parametrize(("problem", "said"), [(ForwardError("no cuda"), "cuda"), (not_run("stopped"), "PyTorch")])
def test_a_device_that_is_not_there_is_refused(problem: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = FakeRunner()

    def describe() -> None:
        raise problem

    monkeypatch.setattr(heads, "describe_device", describe)
    with pytest.raises(InputError, match=said):
        worker.describe_device({"run": ["cuda"]}, "cuda", heads)
    assert worker.describe_device({"handout": [""]}, "", heads)[0] == "cpu"


# Pages of a server that leaves its work to workers


class Campus:
    """A server that leaves its work to workers, and workers in threads of this process."""

    def __init__(self, app: FastAPI) -> None:
        self.client = TestClient(app)
        self.services: Services = app.state.services
        self._running = ExitStack()

    def start_worker(self, name: str, queues: str = "runs,handouts,heads", *keys: str) -> FakeRunner:
        """Let a worker of that name begin, which has these weights; return what runs its heads."""
        checkpoints, heads = [replace(LISTED, key=key) for key in keys or [LISTED.key]], FakeRunner()
        jobs = EngineJobs(self.services.store.jobs)
        kinds = job_kinds(replace(self.services, runner=heads, jobs=jobs))
        named = worker.engine_queues(worker.read_queues(queues), checkpoints)
        offered = [worker.offered(each) for each in checkpoints] if "head" in named else []
        self._running.enter_context(worker_here(self.services.store, kinds, named, name, checkpoints=offered))
        return heads

    def close(self) -> None:
        self._running.close()

    def page(self, address: str) -> Page:
        return Page(self.client.get(address).text)

    def ended(self, address: str) -> Page:
        """The page of a job once it waits no more."""
        while (page := self.page(address)).find("progress") or page.find("p", class_="progress"):
            time.sleep(0.02)
        return page


@pytest.fixture
def campus(new_postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campus]:
    """No worker is there yet."""
    monkeypatch.setattr("app.web.shared.head_request.listed_checkpoints", lambda _folders: (LISTED,))
    settings = Settings(data_dir=tmp_path, database_url=new_postgres_database)
    made = Campus(make_app(settings, HeadRunner(start_limit_s=0)))
    yield made
    made.close()
    made.services.store.close()


def test_without_a_worker_nothing_is_queued_and_pages_say_so(campus: Campus) -> None:
    assert campus.client.get("/api/v1/heads").json() == []
    assert "worker" in campus.page("/heads").text("div", class_="remark")
    assert campus.client.post("/api/v1/forward", json={"model": "llama-7b"}).status_code == 503
    address = campus.client.post("/runs", data=SHEET, follow_redirects=False).headers["location"]
    assert no_worker() in campus.client.get(address).text
    assert campus.client.post("/handout/class", data={"names": "Ada"}, follow_redirects=False).status_code == 503
    assert campus.services.store.jobs.queues() == ()


def test_a_job_whose_worker_is_gone_says_so_and_goes_on_with_the_next(campus: Campus) -> None:
    campus.services.store.jobs.sign_on(Worker("gone", [queue_name("run")]))
    address = campus.client.post("/runs", data=SHEET, follow_redirects=False).headers["location"]
    assert no_worker() not in campus.client.get(address).text
    age_jobs(campus.services.store, RESTARTS_WITHIN)
    assert no_worker() in campus.client.get(address).text
    campus.start_worker("a")
    assert campus.ended(address).find("p", class_="verdict")


def test_workers_do_what_a_server_leaves_to_them(campus: Campus) -> None:
    campus.start_worker("a", "runs,heads", "smollm2", "other")
    campus.start_worker("b")
    listed = campus.client.get("/api/v1/heads").json()
    assert [each["key"] for each in listed] == ["smollm2", "other"]
    assert campus.page("/heads").find("div", class_="remark") == []
    assert HEAD_RUNS.validate_python(campus.client.post("/api/v1/forward", json={"model": "llama-7b"}).json()).agrees
    form = {"sentence": "The cat sat", "checkpoint": "smollm2", "layer": "13", "head": "8"}
    head = campus.client.post("/heads", data=form, follow_redirects=False).headers["location"]
    assert campus.ended(head).find("form")
    asked = {"checkpoint": "smollm2", "text": "The cat sat", "layer": 2, "head": 1}
    answer = campus.client.post("/api/v1/heads", json=asked).json()
    assert [len(answer["weights"]), answer["layer"]] == [3, 2]
    assert campus.client.post("/api/v1/heads", json={**asked, "checkpoint": "none"}).status_code == 422


def test_a_config_with_infinity_reaches_a_worker(campus: Campus) -> None:
    campus.start_worker("a")
    config = {**SMALL_LLAMA, "time_step_limit": [0.0, math.inf]}
    text, headers = json.dumps({"config": config, "tokens": 4}), {"content-type": "application/json"}
    answer = campus.client.post("/api/v1/forward", content=text, headers=headers)
    assert answer.status_code == 200, answer.text


def test_a_run_goes_to_a_worker_that_takes_its_device_if_there_is_one(campus: Campus) -> None:
    cpu = campus.start_worker("a", "runs")

    def run(**changes: Any) -> int:
        return campus.client.post("/api/v1/forward", json={"model": "llama-7b", **changes}).status_code

    assert run(device="cuda") == 200  # here a CPU would refuse it with a sentence
    gpu = campus.start_worker("b", "runs:cuda")
    assert [run(), run(device="cuda"), run(device="cpu"), run(device="mps")] == [200] * 4
    assert (len(cpu.calls), len(gpu.calls)) == (4, 1)


def test_large_handouts_go_to_workers_and_small_ones_do_not(campus: Campus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandoutPrinter, "print_large", lambda *_: b"%PDF large")
    monkeypatch.setattr(HandoutPrinter, "render_small", lambda *_: b"%PDF small")
    monkeypatch.setattr(HandoutPrinter, "missing_letters", lambda *_: "")
    assert campus.client.get("/handout.pdf?sheets=2").content == b"%PDF small"
    campus.start_worker("printer", "handouts")
    address = campus.client.post("/handout/class", data={"names": "Ada"}, follow_redirects=False).headers["location"]
    campus.ended(address)
    assert campus.client.get(f"{address}.pdf").content == b"%PDF large"


# Workers as processes


def process(folder: Path, database_url: str, *options: str, begins: str = "Worker ", before: str = "") -> Command:
    """`attention-shapes worker` as a process, which has begun once it has printed what `begins` matches."""
    program = f"{before}\nfrom app.cli import main; main({['worker', *options]!r})"
    return Command(program, begins, folder, database_url)


@contextmanager
def killed(*commands: Command) -> Iterator[None]:
    """Kill them at the end of this `with`."""
    try:
        yield
    finally:
        for each in commands:
            each.kill()


def wait_until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(LOOK_S)


@pytest.mark.slow
def test_a_server_without_torch_and_two_workers_share_the_work(new_postgres_database: str, tmp_path: Path) -> None:
    store = Store(new_postgres_database, tmp_path)
    server = Server(tmp_path, new_postgres_database, program=LEAN_SERVER)
    names = ("--name", "a", "--device", "cpu"), ("--name", "b", "--device", "cpu")
    workers = {options[1]: process(tmp_path, new_postgres_database, *options) for options in names}
    with killed(server, *workers.values()), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.start(), (server, *workers.values())))
        with httpx.Client(base_url=server.url, timeout=600) as client:

            def run(_number: int) -> httpx.Response:
                return client.post("/api/v1/forward", json={"model": "llama-7b", "tokens": 20})

            answers = list(pool.map(run, range(6)))
            assert all(HEAD_RUNS.validate_python(answer.json()).agrees for answer in answers)
            head = {"checkpoint": "smollm2", "text": "The cat sat.", "layer": 1, "head": 8}
            assert len(client.post("/api/v1/heads", json=head).json()["weights"]) == 4
            head |= {"sentence": "The cat sat."}
            page = client.post("/heads", data=head).headers["location"]
            while "head-progress" in client.get(page).text:
                time.sleep(LOOK_S)
            for part in ("", "/notebook.ipynb", "/numbers.npz", "/picture"):
                assert client.get(page + part, params={"skip": "all"}).status_code == 200
            form = {"names": "\n".join(f"Student {number}" for number in range(50)), "variants": "1", "figures": "aid"}
            handout = client.post("/handout/class", data=form).headers["location"]
            key = handout.rpartition("/")[2]
            wait_until(lambda: found_job(store, key).is_working)
            stopped = workers.pop(found_job(store, key).worker)
            assert stopped.terminate() == 0
            [other] = workers.values()
            while "Download PDF" not in (page := client.get(handout).text):
                assert "problem" not in page
                time.sleep(0.1)
            assert client.get(f"{handout}.pdf").content.startswith(b"%PDF")
            assert found_job(store, key).attempt == 1  # a worker that is stopped ends it, or leaves it to the other
            assert "Student" not in other.printed
            assert other.terminate() == 0
    store.close()


# Handouts that take as long as their title says, in parts of which each is a step.
SLOW = """
import time
from app.web.shared import handout_jobs
def make(services, task):
    for _ in range(int(10 * task.arguments["seconds"])):
        time.sleep(0.1)
        task.check()
    return b"done"
handout_jobs.make_handout = make
"""


@contextmanager
def printing(url: str, folder: Path) -> Iterator[EngineJobs]:
    """The jobs of a web process whose handouts are made by workers that run SLOW."""
    store = Store(url, folder)
    jobs = EngineJobs(store.jobs)
    jobs.kinds["handout"] = Kind(lambda _task: b"", MANY)
    yield jobs
    store.close()


def answers(jobs: EngineJobs) -> bool:
    """Whether their database does."""
    with suppress(sa.exc.OperationalError):
        return jobs.rows.count("handout") >= 0
    return False


def submit(jobs: EngineJobs, key: str, seconds: float) -> None:
    jobs.submit("handout", THE_APP, key, {}, {"seconds": seconds})


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "kept"), [(2, True), (30, False)])
def test_a_worker_that_is_stopped_ends_a_short_job_and_puts_a_long_one_back(
    new_postgres_database: str, tmp_path: Path, seconds: int, kept: bool
) -> None:
    first = process(tmp_path, new_postgres_database, "--queues", "handouts", before=SLOW)
    with killed(first), printing(new_postgres_database, tmp_path) as jobs:
        first.start()
        submit(jobs, "a", seconds)
        wait_until(lambda: jobs.rows.find("a").is_working)  # type: ignore[union-attr]
        began = time.monotonic()
        assert first.terminate() == 0
        assert time.monotonic() - began < 9
        job = jobs.rows.find("a")
        assert job
        assert (job.state, job.attempt) == (("ready", 1) if kept else ("waiting", 0))


@pytest.mark.slow
@pytest.mark.parametrize("away_s", [0, 20])
def test_a_job_outlives_its_database_and_the_next_one_begins_soon(tmp_path: Path, away_s: float) -> None:
    with postgres_server(durable=True) as server_url:
        url = create_database(server_url, "outage")
        command = process(tmp_path, url, "--queues", "handouts", before=SLOW)
        with killed(command), printing(url, tmp_path) as jobs:
            command.start()
            submit(jobs, "a", 6)
            wait_until(lambda: jobs.rows.find("a").is_working)  # type: ignore[union-attr]
            with postgres_killed(server_url):
                time.sleep(away_s)
            wait_until(lambda: answers(jobs))
            returned = time.monotonic()
            submit(jobs, "b", 0)
            ended = [jobs.wait(job, 60) for key in "ab" if (job := jobs.find(key))]
            assert [job and job.ending for job in ended] == ["ready", "ready"]
            assert time.monotonic() - returned < 40
            assert command.terminate() == 0


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The one line of a command that ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["worker", *options])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return line
