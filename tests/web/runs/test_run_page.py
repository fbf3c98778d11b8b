"""A real head, run from a sheet of the practice page, with its shapes beside the typed ones."""

from __future__ import annotations

import ast
import re
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from app.forward.lines import ForwardError
from app.forward.process import not_run
from app.forward.program import notes
from app.jobs.jobs import Jobs
from app.machine.work_queue import Client
from app.models.score_scale import ScoreScale
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.store import Store, limits
from app.store.jobs import JobRefusedError
from app.store.tables import attempts
from app.web.runs import MAX_RUNS_BEFORE_BACKGROUND, note_sentences
from app.web.shared.run_jobs import RUN_LIMITS, why_not_queued
from simulation.misconception_students import right_sheet
from tests.helpers.html_page import Page
from tests.helpers.runs import finished_run, run_and_wait
from tests.helpers.school import SCRIPT
from tests.helpers.sheet_form import LLAMA_FORM
from tests.helpers.source_code import app_modules

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner


def numbers_in(text: str) -> list[int]:
    """The whole numbers in a text, from left to right."""
    return [int(number) for number in re.findall(r"\d+", text)]


def right_answers(variant: Variant) -> dict[str, str]:
    """What belongs in every box, in symbols on a sheet that asks for them."""
    if variant.worksheet.answers == "letters":
        return {str(blank): variant.notation.write(variant.expression(blank)) for blank in variant.blanks}
    return {box: str(size) for box, size in variant.key.items()}


def run_of_sheet(client: TestClient, runner: FakeRunner, variant: Variant, answers: dict[str, str]) -> Page:
    """The page of a run of that sheet, with the answer key's shapes."""
    runner.changes = {"shapes": {key: list(shape) for key, shape in variant.table.shapes(variant.sizes).items()}}
    sheet = {"worksheet": variant.worksheet.key, "model": variant.model.key, "tokens": str(variant.tokens)}
    return Page(run_and_wait(client, {**sheet, **answers}))


# One head and a layer, in numbers and symbols, with grouped and latent attention.
RUN_SHEETS = (
    "llama-7b",
    "qwen2.5-0.5b",
    "llama-7b~symbols",
    "bidirectional-bert-base",
    "layer-mistral-7b",
    "layer-mistral-7b~symbols",
    "latent-deepseek-v2-lite~symbols",
)


@pytest.mark.parametrize("sheet", RUN_SHEETS)
def test_the_verdict_is_about_the_answers_of_the_student(
    client: TestClient, runner: FakeRunner, library: Library, sheet: str
) -> None:
    variant = library.variant(sheet)
    right, boxes = right_answers(variant), len(variant.blanks)

    page = run_of_sheet(client, runner, variant, right)
    assert numbers_in(page.text("p", class_="verdict")) == [boxes]
    assert not page.find("span", class_="differs")

    first, *_, last = variant.rows
    changed = [str(first.blanks[0]), str(last.blanks[0]), str(last.blanks[1])]
    page = run_of_sheet(client, runner, variant, right | {box: f"7*{right[box]}" for box in changed})
    verdict = page.text("p", class_="verdict")
    assert verdict.startswith(f"PyTorch disagrees with 3 of your {boxes} answers")
    named = verdict.partition("see ")[2].rstrip(".").split(", ")
    assert named == [first.name, last.name]
    assert len(page.find("span", class_="differs")) == 3

    page = run_of_sheet(client, runner, variant, right | {changed[0]: "?", changed[1]: "  ", changed[2]: ""})
    assert numbers_in(page.text("p", class_="verdict")) == [boxes - 3, 1, 2]
    assert len(page.find("span", class_="unreadable")) == 1
    assert len(page.find("span", class_="empty")) == 2

    page = run_of_sheet(client, runner, variant, dict.fromkeys(right, ""))  # after those attempts
    assert numbers_in(page.text("p", class_="verdict")) == [boxes]
    assert len(page.find("span", class_="empty")) == boxes


def test_a_formula_is_compared_by_its_number_and_the_page_says_so(
    client: TestClient, runner: FakeRunner, library: Library
) -> None:
    variant = library.variant("llama-7b~symbols", None, 128)
    answers = right_answers(variant) | {"queries.columns": variant.notation.symbol("N")}
    page = run_of_sheet(client, runner, variant, answers)
    assert numbers_in(page.text("p", class_="verdict")) == [len(variant.blanks)]
    assert "your formulas are compared" in page.text("p", class_="remark")
    in_numbers = library.variant("llama-7b")
    page = run_of_sheet(client, runner, in_numbers, right_answers(in_numbers))
    assert not any("formulas" in remark for _, remark in page.find("p", class_="remark"))


def test_every_note_of_a_run_has_a_sentence(library: Library) -> None:
    assert note_sentences().keys() == note_keys() | {"not-finite"}
    assert "scale-yarn:1.59" in notes(library.models["deepseek-v2-lite"].architecture, 60, "attention-layer")
    gemma = replace(library.models["gemma-2-2b"].architecture, score_scale=ScoreScale("root", 1 / 12, "field", 144.0))
    assert "scale-root:144" in notes(gemma, 60)


def note_keys() -> set[str]:
    """The keys of the notes that a run can have, read off the code; a detail follows a colon."""
    nodes = [node for node in ast.walk(app_modules()["app.forward.program"]) if isinstance(node, ast.FunctionDef)]
    [function] = [node for node in nodes if node.name == "notes"]
    keys = [key for node in ast.walk(function) if isinstance(node, ast.Dict) for key in node.keys]
    texts = [key.values[0] if isinstance(key, ast.JoinedStr) else key for key in keys]
    return {str(text.value).partition(":")[0] for text in texts if isinstance(text, ast.Constant)}


def test_nothing_is_run_for_an_empty_sheet(client: TestClient, runner: FakeRunner) -> None:
    for headers in ({}, SCRIPT):
        response = client.post("/runs", data=LLAMA_FORM, headers=headers)
        assert response.status_code == 200
        assert "Fill in at least one row first" in response.text
    assert "Fill in at least one row" in client.post("/runs", data={**LLAMA_FORM, "queries.rows": "?"}).text
    assert runner.calls == []


def test_the_head_is_run_beside_what_was_typed(client: TestClient, runner: FakeRunner) -> None:
    text = run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100", "queries.columns": "4096"})
    page = Page(text)
    architecture, tokens, options = runner.calls[0]
    assert (architecture.name, tokens) == ("LLaMA 7B", 100)
    assert options == {"topic": "single-head", "device": None, "dtype": "float32", "head": 0}
    rows = {row.split()[0]: row for _, row in page.find("tr")}
    assert "(100, 128)" in rows["QQueries"]
    assert "4096 (differs" in rows["QQueries"]
    assert "100 (differs" not in rows["QQueries"]
    assert "(100, 4096)" in rows["OOutput"]
    assert numbers_in(page.text("p", class_="verdict")) == [1, 2, 12]
    facts = [text for _, text in page.find("dd")]
    assert facts[:5] == ["a processor that is not there (cpu)", "float32", "5.25 ms", "6.7 MB", "5.6 MB"]
    assert "(seed 0)" in text
    assert "Q = X @ W_Q  # (100, 128) &lt;shape &amp; all&gt;" in text


def test_a_finished_run_can_be_downloaded_as_a_notebook(client: TestClient, runner: FakeRunner) -> None:
    page = Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100"}))
    address = next(attrs["href"] for attrs, _ in page.find("a") if "download" in attrs)
    response = client.get(address)
    assert response.headers["content-type"] == "application/x-ipynb+json"
    assert re.search(r'filename="[\w-]+\.ipynb"', response.headers["content-disposition"])
    code = [cell["source"] for cell in response.json()["cells"] if cell["cell_type"] == "code"]
    assert "".join("".join(code[0])).endswith("assert Q.shape == (..., ...)")
    runner.problem = not_run("stopped")
    page = Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "101"}))
    assert not any("download" in attrs for attrs, _ in page.find("a"))
    assert client.get("/runs/nope/notebook.ipynb").status_code == 404


def test_a_time_of_almost_a_second_has_no_exponent(client: TestClient, runner: FakeRunner) -> None:
    runner.changes = {"milliseconds": 999.6}
    page = Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100"}))
    assert "1,000 ms" in [text for _, text in page.find("dd")]


def test_a_run_on_the_meta_device_has_shapes_and_no_numbers(client: TestClient, runner: FakeRunner) -> None:
    runner.changes = {"device": "meta", "milliseconds": None, "peak_bytes": None, "row_sums": None, "picture": None}
    text = run_and_wait(
        client, {**LLAMA_FORM, "queries.rows": "100", "device": "meta", "head": "3", "dtype": "bfloat16"}
    )
    assert runner.calls[0][2] == {"topic": "single-head", "device": "meta", "dtype": "bfloat16", "head": 3}
    assert "meta device works out shapes" in text
    assert "<img" not in text
    assert " ms" not in text


def test_the_simplified_sheet_runs_the_model_as_it_is(client: TestClient, runner: FakeRunner) -> None:
    run_and_wait(client, {"worksheet": "qwen2.5-0.5b", "queries.rows": "50"})
    assert (runner.calls[0][0].H, runner.calls[0][0].G) == (14, 2)


def test_a_table_that_torch_contradicts_is_reported(
    client: TestClient, runner: FakeRunner, caplog: pytest.LogCaptureFixture
) -> None:
    assert not Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100"})).find("p", role="alert")
    runner.changes = {"agrees": False, "disagreements": ["queries", "scores"]}
    page = Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100"}))
    differing = "queries (100, 128), scores (100, 100)"
    assert differing in page.text("p", role="alert")
    assert page.find("p", class_="verdict")
    assert differing in caplog.text


@pytest.mark.parametrize(
    "problem", [not_run("too-long"), not_run("stopped"), ForwardError("This head needs 7 bytes too many.")]
)
def test_a_run_that_ends_without_result_says_why(client: TestClient, runner: FakeRunner, problem: Exception) -> None:
    runner.problem = problem
    page = Page(run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100"}))
    assert page.text("p", class_="problem") == str(problem)
    runner.problem = None
    form = page.find("form")[0][0]
    again = Page(run_and_wait(client, {"device": "meta", "dtype": "float16", "head": "1"}, form["action"]))
    assert "100" in next(row for _, row in again.find("tr") if row.startswith("QQueries"))
    assert runner.calls[-1][2] == {"topic": "single-head", "device": "meta", "dtype": "float16", "head": 1}
    with client.app.state.services.store.engine.connect() as connection:  # type: ignore[attr-defined]
        assert connection.scalar(sa.select(sa.func.count()).select_from(attempts)) == 1


def test_a_run_shows_that_it_runs_and_can_be_left(client: TestClient, runner: FakeRunner) -> None:
    runner.gate.clear()
    text = client.post("/runs", data={**LLAMA_FORM, "queries.rows": "100"}, headers=SCRIPT).text
    part = Page(text).find("div", role="status")[0][0]
    assert part["hx-trigger"] == "load delay:150ms, every 500ms"
    client.cookies.clear()
    assert '<meta http-equiv="refresh"' in client.get(part["hx-get"]).text
    assert "Running." in client.get(part["hx-get"], headers=SCRIPT).text
    runner.gate.set()
    assert Page(finished_run(client, part["hx-get"])).find("p", class_="verdict")


def test_a_run_in_the_background_tells_one_line_or_nothing(
    client: TestClient, runner: FakeRunner, library: Library
) -> None:
    right = {box: str(size) for box, size in right_sheet(library.variant("llama-7b")).items()}

    def line(answers: dict[str, str]) -> str:
        text = client.post("/runs", data={**LLAMA_FORM, **answers, "background": "1"}, headers=SCRIPT).text
        while waiting := re.search(r'hx-get="(/runs/[\w-]+/agreement)"', text):
            text = client.get(waiting[1]).text
        return re.sub("<[^>]*>", "", text).strip()

    assert numbers_in(line(right)) == [14, 100, 4096]
    assert line(right | {"output.columns": "128"}) == ""
    runner.changes = {"agrees": False, "disagreements": ["scores"]}
    assert "scores (100, 100)" in line(right)
    runner.problem = not_run("stopped")
    assert line(right) == ""


def test_a_run_in_the_background_gives_way(client: TestClient, runner: FakeRunner) -> None:
    jobs: Jobs = client.app.state.services.jobs  # type: ignore[attr-defined]
    runner.gate.clear()
    form = {**LLAMA_FORM, "queries.rows": "100"}
    client.post("/runs", data=form)
    for number in range(MAX_RUNS_BEFORE_BACKGROUND):
        jobs.submit("run", Client(f"192.0.2.{number}", is_member=False), f"run {number}", {}, {})
    assert client.post("/runs", data={**form, "background": "1"}, headers=SCRIPT).status_code == 204
    assert client.post("/runs", data=form, headers=SCRIPT).status_code == 200
    runner.gate.set()


def test_a_run_that_waits_shows_its_place_and_can_be_cancelled(client: TestClient, runner: FakeRunner) -> None:
    runner.gate.clear()
    form = {**LLAMA_FORM, "queries.rows": "100"}
    first, second, third = (
        client.post("/runs", data=form, follow_redirects=False).headers["location"] for _ in range(3)
    )
    assert "Waiting: 2 runs are ahead of yours." in client.get(third).text
    asks = [
        Page(client.get(run, headers=SCRIPT).text).find("div")[0][0]["hx-trigger"] for run in (first, second, third)
    ]
    assert asks == ["every 500ms", "every 550ms", "every 600ms"]
    for address in (second, first):
        page = Page(client.post(f"{address}/cancel").text)
        assert page.text("p", role="alert") == "This run was cancelled."
    runner.gate.set()
    assert "PyTorch agrees" in finished_run(client, third)
    assert "PyTorch agrees" in client.post(f"{third}/cancel").text


def test_a_client_with_many_runs_is_told_to_wait(client: TestClient, runner: FakeRunner) -> None:
    runner.gate.clear()
    form = {**LLAMA_FORM, "queries.rows": "100"}
    addresses = [
        client.post("/runs", data=form, follow_redirects=False).headers["location"]
        for _ in range(RUN_LIMITS.visitor + 1)
    ]
    page = Page(client.get(addresses[-1]).text)
    assert page.text("p", role="alert") == why_not_queued(JobRefusedError("yours"))
    assert page.find("form")[0][0]["action"] == f"{addresses[-1]}/again"
    runner.gate.set()


def test_a_run_lost_with_the_server_says_so(client: TestClient, runner: FakeRunner) -> None:
    store = client.app.state.services.store  # type: ignore[attr-defined]
    form = {**LLAMA_FORM, "queries.rows": "100"}
    address = client.post("/runs", data=form, follow_redirects=False).headers["location"]
    finished_run(client, address)
    ended = store.find_run(address.rpartition("/")[2])
    lost = store.add_run(store.new_run({}, ended.frozen))
    assert "This run was lost" in client.get(f"/runs/{lost.id}").text
    assert "PyTorch agrees" in client.get(address).text


@pytest.mark.parametrize("run_id", ["nope", "x" * 1000, "%00", "é", "..%2f..%2fetc%2fpasswd"])
def test_a_run_that_is_not_there_is_not_found(client: TestClient, run_id: str) -> None:
    response = client.get(f"/runs/{run_id}")
    assert response.status_code == 404
    assert Page(response.text).find("section", class_="lone")


@pytest.mark.parametrize("head", ["-1", "1.5", "x", "9" * 30, "²"])
def test_a_head_that_is_no_number_is_left_to_the_forward_pass_to_refuse(
    client: TestClient, runner: FakeRunner, head: str
) -> None:
    run_and_wait(client, {**LLAMA_FORM, "queries.rows": "100", "head": head})
    assert runner.calls[0][2]["head"] == -1


@pytest.mark.parametrize("trouble", ["a full disk", "a result that is no JSON"])
def test_a_run_whose_end_cannot_be_stored_says_so_at_once(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setattr(limits, "STORED_AGAIN_AFTER_S", (0, 0))
    if trouble == "a full disk":
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorname = "SQLITE_FULL"
        failures, finish = [OperationalError("UPDATE", {}, full)] * 5, Store.finish_run

        def finish_run(*arguments: Any) -> None:
            if failures:
                raise failures.pop()
            finish(*arguments)

        monkeypatch.setattr(Store, "finish_run", finish_run)
    else:
        runner.changes = {"device": object()}
    form = {**LLAMA_FORM, "queries.rows": "100"}
    assert "Something went wrong on the server" in run_and_wait(client, form)
    if trouble == "a full disk":
        assert "PyTorch agrees" in run_and_wait(client, form)


def test_a_long_problem_is_cut_and_stored(store: Store) -> None:
    run = store.add_run(store.new_run({}, {}))
    store.finish_run(run.id, None, "x" * 900)
    stored = store.find_run(run.id)
    assert stored
    assert stored.problem == "x" * 500
