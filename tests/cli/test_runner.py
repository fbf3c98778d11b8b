"""Runners beside servers that leave them their work: what they do, what pages say without them, and how they end."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.cli import main, runner
from app.cli.terminal import InputError
from app.forward.head_run import HeadNotRun
from app.forward.lines import ForwardError
from app.forward.process import HeadRunner, RunnerFailed
from app.forward.run import HEAD_RUNS
from app.handout.handout_printer import HandoutPrinter
from app.machine.jobs import JOB_FORM, Jobs, JobStoppedError, Runner
from app.machine.work_queue import THE_APP
from app.main import job_kinds
from app.settings import Settings
from app.store import Store
from app.store.tables import jobs as job_table
from app.web.shared.handout_jobs import HANDOUT_LIMITS
from app.web.shared.run_jobs import RUN_LIMITS
from app.web.shared.services import Services
from simulation.postgres import create_database, postgres_killed, postgres_server
from simulation.server import LOOK_S, Command, Server
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.html_page import Page
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.real_heads import LISTED
from tests.helpers.running_app import make_app

COMMAND = "from app.cli import main; main()"
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
OFFER = {name: value for name, value in asdict(LISTED).items() if name != "source"}
SHEET = {"worksheet": "llama-7b", "queries.rows": "100"}


# The command's options


@pytest.mark.parametrize(
    "options",
    [
        ["--kinds", "runs,prints"],
        ["--kinds", ""],
        ["--concurrency", "0"],
        ["--concurrency", "two"],
        ["--concurrency", "1000"],
        ["--device", "tpu"],
        ["--device", "cpu:1"],
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


def test_runners_need_the_servers_postgresql(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert "DATABASE_URL" in refusal(capsys)
    monkeypatch.setenv("ATTENTION_SHAPES_RUNNERS", "true")
    assert "ATTENTION_SHAPES_RUNNERS" in refusal(capsys)


@pytest.mark.parametrize(("problem", "said"), [(ForwardError("no cuda"), "cuda:3"), (RunnerFailed(), "PyTorch")])
def test_a_device_that_is_not_there_is_refused(problem: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = FakeRunner()

    def describe(_check: object) -> None:
        raise problem

    monkeypatch.setattr(heads, "describe_device", describe)
    with pytest.raises(InputError, match=said):
        runner._with_device(Runner("a", device="cuda:3"), heads, threading.Event())
    printing = runner._with_device(Runner("a", ("handout",)), heads, threading.Event())
    assert (printing.device, printing.memory_bytes > 0) == ("cpu", True)


@pytest.mark.parametrize(
    ("visible", "device", "seen"),
    [(None, "cuda:1", "1"), ("4,7", "cuda:1", "7"), ("4", "cuda:1", ""), (None, "cpu", ""), ("4,7", "cuda", "4,7")],
)
def test_of_several_gpus_a_run_sees_the_one_that_was_chosen(
    visible: str | None, device: str, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible or "")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert runner._choose_device(device) == device
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize(
    ("problem", "is_stopping", "ending"),
    [
        (HeadNotRun("gone", "stopped"), True, JobStoppedError),  # its child got the same signal
        (HeadNotRun("gone", "stopped"), False, HeadNotRun),
        (HeadNotRun("No such head.", "refused"), True, HeadNotRun),
        (ZeroDivisionError(), False, ZeroDivisionError),
    ],
)
def test_work_that_fails_since_all_processes_are_stopped_is_put_back(
    problem: Exception, is_stopping: bool, ending: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    stopped, task = threading.Event(), SimpleNamespace(job=SimpleNamespace(id=7, key="secret"), gives_way=False)
    if is_stopping:
        stopped.set()

    def work(_task: object) -> bytes:
        raise problem

    with pytest.raises(ending):
        runner._announced("head", work, stopped)(task)  # type: ignore[arg-type]  # as much of a task as it needs
    assert task.gives_way == (ending is JobStoppedError)
    lines = capsys.readouterr().out
    assert lines.count("7 (head)") == lines.count("\n") == 2
    assert "secret" not in lines
    assert str(problem) not in lines or not str(problem)


# Pages of a server that leaves its work to runners


class Campus:
    """A server that leaves its work to runners, and runners in threads of this process."""

    def __init__(self, app: FastAPI) -> None:
        self.client = TestClient(app)
        self.services: Services = app.state.services
        self._running = list[Jobs]()

    def start_runner(self, name: str, **changes: Any) -> FakeRunner:
        """Let a runner of that name begin, which has SmolLM2; return what runs its heads."""
        row, heads = replace(Runner(name, checkpoints=[OFFER], memory_bytes=10**12), **changes), FakeRunner()
        jobs = Jobs(self.services.store.jobs, row)
        settings = self.services.settings.model_copy(update={"runners": False})
        services = replace(self.services, settings=settings, runner=heads, jobs=jobs)
        for kind, (work, limits) in job_kinds(services).items():
            jobs.add_kind(kind, work, limits)
        self.services.store.jobs.sign_on(row)
        jobs.start()
        self._running.append(jobs)
        return heads

    def close(self) -> None:
        for jobs in self._running:
            jobs.close()

    def page(self, address: str) -> Page:
        return Page(self.client.get(address).text)

    def ended(self, address: str) -> Page:
        """The page of a job once it waits no more."""
        while (page := self.page(address)).find("progress") or page.find("p", class_="progress"):
            time.sleep(0.02)
        return page


@pytest.fixture
def campus(new_postgres_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Campus]:
    """No runner is there yet."""
    monkeypatch.setattr(runner, "listed_checkpoints", lambda _folders: (LISTED,))
    monkeypatch.setattr("app.web.shared.head_request.listed_checkpoints", lambda _folders: (LISTED,))
    settings = Settings(data_dir=tmp_path, database_url=new_postgres_database, runners=True)
    made = Campus(make_app(settings, HeadRunner(start_limit_s=0)))
    yield made
    made.close()
    made.services.store.close()


def test_without_a_runner_pages_say_so_and_its_return_goes_on(campus: Campus) -> None:
    campus.services.store.jobs.sign_on(Runner("the server", is_web=True))
    assert campus.client.get("/api/v1/heads").json() == []
    assert "No runner" in campus.page("/heads").text("div", class_="remark")
    address = campus.client.post("/runs", data=SHEET, follow_redirects=False).headers["location"]
    assert "No runner" in campus.page(address).text("p", class_="progress")
    campus.start_runner("a")
    assert campus.ended(address).find("p", class_="verdict")


def test_runners_do_what_a_server_leaves_to_them(campus: Campus) -> None:
    campus.start_runner("a", checkpoints=[OFFER, {**OFFER, "key": "other"}])
    campus.start_runner("b")
    listed = campus.client.get("/api/v1/heads").json()
    assert [each["key"] for each in listed] == ["smollm2", "other"]
    assert "No runner" not in campus.client.get("/heads").text
    assert HEAD_RUNS.validate_python(campus.client.post("/api/v1/forward", json={"model": "llama-7b"}).json()).agrees
    form = {"sentence": "The cat sat", "checkpoint": "smollm2", "layer": "13", "head": "8"}
    head = campus.client.post("/heads", data=form, follow_redirects=False).headers["location"]
    assert campus.ended(head).find("form")
    asked = {"checkpoint": "smollm2", "text": "The cat sat", "layer": 2, "head": 1}
    answer = campus.client.post("/api/v1/heads", json=asked).json()
    assert [len(answer["weights"]), answer["layer"]] == [3, 2]
    assert campus.client.post("/api/v1/heads", json={**asked, "checkpoint": "none"}).status_code == 422


def test_a_config_with_infinity_reaches_a_runner(campus: Campus) -> None:
    campus.start_runner("a")
    config = {**SMALL_LLAMA, "time_step_limit": [0.0, math.inf]}
    text, headers = json.dumps({"config": config, "tokens": 4}), {"content-type": "application/json"}
    answer = campus.client.post("/api/v1/forward", content=text, headers=headers)
    assert answer.status_code == 200, answer.text


def test_a_run_goes_to_a_runner_with_the_device_and_memory_that_it_needs(campus: Campus) -> None:
    small = campus.start_runner("a", memory_bytes=1000)
    large = campus.start_runner("b", device="cuda:0")

    def run(**changes: Any) -> int:
        return campus.client.post("/api/v1/forward", json={"model": "llama-7b", **changes}).status_code

    assert [run(), run(device="cuda"), run(device="cpu", dtype="bfloat16")] == [200, 200, 200]
    assert (len(small.calls), len(large.calls)) == (0, 3)
    assert [run(device="mps"), run(device="meta")] == [200, 200]
    assert len(small.calls) + len(large.calls) == 5


def test_large_handouts_go_to_runners_and_small_ones_do_not(campus: Campus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandoutPrinter, "print_large", lambda *_: b"%PDF large")
    monkeypatch.setattr(HandoutPrinter, "render_small", lambda *_: b"%PDF small")
    monkeypatch.setattr(HandoutPrinter, "missing_letters", lambda *_: "")
    assert campus.client.get("/handout.pdf?sheets=2").content == b"%PDF small"
    address = campus.client.post("/handout/class", data={"names": "Ada"}, follow_redirects=False).headers["location"]
    assert "No runner" in campus.page(address).text("label", for_="progress")
    campus.start_runner("printer", kinds=("handout",))
    campus.ended(address)
    assert campus.client.get(f"{address}.pdf").content == b"%PDF large"


def test_jobs_of_other_code_are_told_of(bare_database_url: str, tmp_path: Path) -> None:
    store = Store(bare_database_url, tmp_path)
    campus = Jobs(store.jobs, None)
    campus.add_kind("run", lambda _task: b"", RUN_LIMITS)
    campus.submit("run", THE_APP, "a", {}, {})
    assert runner._notes_on_versions(store) == set()
    with store.transaction() as connection:
        connection.execute(sa.update(job_table).values(form=JOB_FORM + 1))
    assert len(runner._notes_on_versions(store)) == 1
    assert store.jobs.claim("run", Runner("a")) is None
    with store.transaction() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '1999_later'")
    assert len(runner._notes_on_versions(store)) == 2
    store.close()


# Runners as processes


def process(folder: Path, database_url: str, *options: str, begins: str = "Runner ") -> Command:
    """`attention-shapes runner` as a process, which has begun once it has printed what `begins` matches."""
    return Command(f"from app.cli import main; main({['runner', *options]!r})", begins, folder, database_url)


@contextmanager
def killed(*commands: Command) -> Iterator[None]:
    """Kill them at the end of this `with`."""
    try:
        yield
    finally:
        for each in commands:
            each.kill()


def printed(command: Command, pattern: str) -> None:
    """Wait until a process has printed something."""
    while not re.search(pattern, command.printed):
        assert command.main_process().status() != "zombie"
        time.sleep(LOOK_S)


@pytest.mark.slow
def test_a_server_without_torch_and_two_runners_share_the_work(new_postgres_database: str, tmp_path: Path) -> None:
    server = Server(tmp_path, new_postgres_database, program=LEAN_SERVER, runners="true")
    names = ("--name", "a", "--device", "cpu"), ("--name", "b", "--device", "cpu")
    first, second = runners = [process(tmp_path, new_postgres_database, *options) for options in names]
    with killed(server, *runners), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: each.start(), (server, *runners)))
        with httpx.Client(base_url=server.url, timeout=600) as client:

            def run(_number: int) -> httpx.Response:
                return client.post("/api/v1/forward", json={"model": "llama-7b", "tokens": 20})

            answers = list(pool.map(run, range(6)))
            assert all(HEAD_RUNS.validate_python(answer.json()).agrees for answer in answers)
            lines = re.findall(r"Job (\d+) \(run\) taken", first.printed + second.printed)
            assert len(lines) == len(set(lines)) == 6
            head = {"checkpoint": "smollm2", "text": "The cat sat.", "layer": 1, "head": 8}
            assert len(client.post("/api/v1/heads", json=head).json()["weights"]) == 4
            head |= {"sentence": "The cat sat."}
            page = client.post("/heads", data=head).headers["location"]
            while "head-progress" in client.get(page).text:
                time.sleep(LOOK_S)
            for part in ("", "/notebook.ipynb", "/numbers.npz", "/picture"):
                assert client.get(page + part, params={"skip": "all"}).status_code == 200
            form = {"names": "\n".join(f"Student {number}" for number in range(50)), "variants": "1", "key": "with"}
            handout = client.post("/handout/class", data=form).headers["location"]
            while not (at_work := [each for each in runners if "(handout) taken" in each.printed]):
                time.sleep(LOOK_S)
            stopped, other = at_work[0], next(each for each in runners if each is not at_work[0])
            assert stopped.terminate() == 0
            while "Download PDF" not in (page := client.get(handout).text):
                assert "problem" not in page
                time.sleep(0.1)
            assert client.get(f"{handout}.pdf").content.startswith(b"%PDF")
            assert "(handout) done" in other.printed
            assert "Student" not in other.printed
            assert other.terminate() == 0


@pytest.mark.slow
def test_a_runner_waits_for_its_database_and_keeps_its_name_for_itself(postgres: str, tmp_path: Path) -> None:
    missing = sa.make_url(postgres).set(database="runner_waits").render_as_string(hide_password=False)
    options = ("--name", "a", "--kinds", "handouts")
    first = process(tmp_path, missing, *options, begins="runner_waits")
    with killed(first):
        first.start()
        create_database(postgres, "runner_waits")
        printed(first, "handouts on cpu")
        environment = {**os.environ, "DATABASE_URL": missing}
        command = [sys.executable, "-c", COMMAND, "runner", *options]
        second = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "--name" in second.stderr
        first.kill()
        third = process(tmp_path, missing, *options)
        with killed(third):
            third.start()
            assert third.terminate() == 0


@pytest.mark.slow
def test_a_runner_outlives_its_database_and_takes_the_next_job_at_once(tmp_path: Path) -> None:
    with postgres_server(durable=False) as server_url:
        url = create_database(server_url, "outage")
        store = Store(url, tmp_path)
        command = process(tmp_path, url, "--kinds", "handouts")
        with killed(command):
            command.start()
            with postgres_killed(server_url):
                printed(command, "does not answer")
            store.engine.dispose()
            jobs = Jobs(store.jobs, None)
            jobs.add_kind("handout", lambda _task: b"", HANDOUT_LIMITS)
            queued = jobs.submit("handout", THE_APP, "a", {}, {"activity_sheet": [1, 1], "options": {}})
            while not (job := jobs.find("a")) or not job.started_at:
                time.sleep(LOOK_S)
            assert (job.started_at - queued.created_at).total_seconds() < 1
            printed(command, "is back")
            assert command.terminate() == 0
        store.close()


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The one line of a command that ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        main(["runner", *options])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return line
