"""A real head's page: stages that open once their shapes are answered, and a sentence that is kept nowhere else."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from app.activities.activity import Policies
from app.forward.lines import ForwardError
from app.forward.process import not_run
from app.jobs import jobs as jobs_module
from app.sheets.head_stages import head_stages
from app.store import Store
from app.store.jobs import JOB_RETENTION, Job, JobTable, jobs
from app.store.tables import metadata, visitors
from app.web.shared import head_request
from tests.helpers.clock import Clock
from tests.helpers.finished_heads import finished_head, stored_head
from tests.helpers.html_page import Page
from tests.helpers.real_heads import LISTED, SMOLLM2_CONFIG
from tests.helpers.runs import finished_run
from tests.helpers.school import SCRIPT, Classroom
from tests.helpers.shipped import LIBRARY

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner

SENTENCE = "Zebras rarely whistle quietly"
FORM = {"sentence": SENTENCE, "checkpoint": "smollm2", "layer": "13", "head": "3"}


@pytest.fixture(autouse=True)
def _offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_request, "listed_checkpoints", lambda _folders: (LISTED,))


def run_head(client: TestClient, **changes: str) -> str:
    """The address of a head that has run."""
    address = client.post("/heads", data=FORM | changes, follow_redirects=False).headers["location"]
    until(lambda: "head-progress" not in client.get(address).text)
    return str(address)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for a minute at most."""
    give_up_at = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def right_answers() -> Iterator[tuple[str, dict[str, str]]]:
    """The stages of the sentence in order, each with what belongs in its boxes."""
    for stage in head_stages(LIBRARY.model("smollm2-135m"), LIBRARY.wording, len(SENTENCE.split()), 3):
        if stage.variant:
            yield stage.key, {box: str(size) for box, size in stage.variant.key.items()}


def test_every_shape_is_asked_before_it_is_shown(client: TestClient) -> None:
    address = run_head(client)
    for stage, answers in right_answers():
        page = Page(client.get(address).text)
        [(asked, _)] = page.find("section", class_="asked")
        assert asked["id"] == f"stage-{stage}"
        boxes = {box["name"] for box, _ in page.find("input") if "data-blank" in box}
        assert boxes == answers.keys()
        sent = client.post(f"{address}/stages/{stage}", data=answers | {"press": "check"})
        assert sent.status_code == 200
    page = Page(client.get(address).text)
    assert page.find("section", class_="asked") == []
    assert "(4, 576)" in page.text("section", id="stage-context")


def test_a_wrong_shape_keeps_the_stage_closed_and_is_diagnosed(client: TestClient) -> None:
    address = run_head(client)
    wrong = {"input.rows": "576", "input.columns": "4", "press": "check"}
    for headers in ({}, {"hx-request": "true"}):
        page = Page(client.post(f"{address}/stages/input", data=wrong, headers=headers).text)
        assert {box["data-mark"] for box, _ in page.find("td") if "data-mark" in box} <= {"wrong", "follows"}
        assert page.find("section", id="stage-input", class_="asked")
        assert "wrong" in page.marks().values()
    page = Page(client.post(f"{address}/stages/input", data=wrong | {"press": "2"}).text)
    assert page.find("p", class_="hint")


def test_a_stage_can_be_skipped_alone_or_with_all_others(client: TestClient) -> None:
    address = run_head(client)
    page = Page(client.post(f"{address}/stages/input", data={"press": "skip"}).text)
    assert page.find("section", id="stage-input", class_="open")
    assert page.find("section", id="stage-file", class_="asked")
    everything = Page(client.get(f"{address}?skip=all").text)
    assert len(everything.find("section", class_="open")) == 9


def test_the_names_are_those_of_the_file_and_a_square_hides_the_turn(client: TestClient) -> None:
    address = run_head(client)
    asked = Page(client.get(f"{address}?skip=input").text)
    assert "blk.13.attn_q.weight" in asked.text("div", id="boxes").replace("\u200b", "")
    table = Page(client.get(f"{address}?skip=all").text).text("table", class_="head-parts").replace("\u200b", "")
    for shown in ("192–255", "64–127", "(192, 576)"):
        assert shown in table
    assert table.count("square") == 2  # W_Q and W_O


def test_the_page_names_what_its_number_of_tokens_hides(client: TestClient) -> None:
    for count, symbol in ((9, "H"), (64, "d_h")):
        address = run_head(client, sentence=" ".join(["word"] * count))
        remark = Page(client.get(f"{address}?skip=all").text).text("div", class_="remark")
        assert str(count) in remark
        assert symbol in remark


def test_a_refusal_is_shown_with_the_way_back(client: TestClient, runner: FakeRunner) -> None:
    runner.problem = ForwardError("Sixteen tokens too many.")
    address = run_head(client)
    assert "Sixteen tokens too many." in client.get(address).text


def test_a_waiting_head_has_its_place_and_can_be_cancelled(client: TestClient, runner: FakeRunner) -> None:
    runner.gate.clear()
    try:
        first, second = (client.post("/heads", data=FORM, follow_redirects=False).headers["location"] for _ in range(2))
        assert 'http-equiv="refresh"' in client.get(first).text  # without script
        assert "one head is ahead" in client.get(second).text
        assert "cancelled" in client.post(f"{second}/cancel").text
    finally:
        runner.gate.set()


@pytest.mark.parametrize("button", ["cancel", "delete"])
def test_a_head_ends_while_the_layers_below_run(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, clock: Clock, button: str
) -> None:
    monkeypatch.setattr(jobs_module, "BEAT_S", 0.01)
    store: Store = client.app.state.services.store  # type: ignore[attr-defined]
    runner.gate.clear()
    address = client.post("/heads", data=FORM, follow_redirects=False).headers["location"]
    until(lambda: "1 of 4" in client.get(address).text)
    client.post(f"{address}/{button}")
    assert ("head-progress" in client.get(address).text, kept_of_sentence(store)) == (False, int(button == "cancel"))
    until(lambda: not runner.is_at_work)
    runner.gate.set()
    run_head(client, sentence="Lions roar")
    clock.pass_seconds(2 * JOB_RETENTION.total_seconds())
    store.jobs.delete_expired()
    assert (client.get(address).status_code, kept_of_sentence(store)) == (404, 0)


def test_a_head_that_took_too_long_says_so_and_can_be_deleted(client: TestClient, runner: FakeRunner) -> None:
    store: Store = client.app.state.services.store  # type: ignore[attr-defined]
    runner.problem = not_run("too-long", is_real=True)
    address = run_head(client)
    assert str(runner.problem) in client.get(address).text
    client.post(f"{address}/delete")
    assert (client.get(address).status_code, kept_of_sentence(store)) == (404, 0)


def kept_of_sentence(store: Store) -> int:
    """How many rows of any table have a word of the sentence in one of their columns."""
    found = 0
    with store.engine.connect() as connection:
        for table in metadata.tables.values():
            rows = connection.execute(sa.select(table)).all()
            found += sum("Zebras" in str(value) for row in rows for value in row)
    return found


def test_a_sentence_is_in_its_job_alone_and_goes_with_it(client: TestClient, clock: Clock) -> None:
    store: Store = client.app.state.services.store  # type: ignore[attr-defined]

    def count(column: sa.ColumnElement[object]) -> int:
        with store.engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count(column))).scalar_one()

    run_head(client)
    assert (kept_of_sentence(store), count(jobs.c.result)) == (1, 1)
    with store.transaction() as connection:
        connection.execute(sa.delete(visitors))
    assert (kept_of_sentence(store), count(jobs.c.id)) == (0, 0)

    client.cookies.clear()
    address = run_head(client)
    client.post(f"{address}/delete")
    assert (client.get(address).status_code, kept_of_sentence(store), count(jobs.c.result)) == (404, 0, 0)

    run_head(client)
    clock.pass_seconds(2 * JOB_RETENTION.total_seconds())
    store.jobs.delete_expired()
    assert (kept_of_sentence(store), count(jobs.c.result)) == (0, 0)


def test_a_deleted_sentence_is_in_no_file_of_the_database(client: TestClient) -> None:
    services = client.app.state.services  # type: ignore[attr-defined]
    path = Path(services.store.engine.url.database)

    def is_in_a_file() -> bool:
        return any(b"Zebras" in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))

    address = run_head(client)
    assert is_in_a_file()
    client.post(f"{address}/delete")
    services.housekeeper.tidy()
    assert not is_in_a_file()


def test_no_log_and_no_address_has_the_sentence(
    client: TestClient, runner: FakeRunner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = run_head(client)
    client.get(f"{address}?skip=all")
    runner.problem = RuntimeError("something broke")
    run_head(client)
    client.post("/heads", data=FORM | {"layer": "99"})
    client.post("/api/v1/heads", json={"text": SENTENCE, "layer": "x"})
    client.post("/api/v1/heads", json={"text": SENTENCE, "checkpoint": "smollm2"})
    assert caplog.records
    assert "Zebras" not in caplog.text
    assert "Zebras" not in address


def lesson_form(**changes: str) -> dict[str, str]:
    """The right answers to the worksheet with a sentence, as its form sends them."""
    sheet = LIBRARY.variant("it-attends-smollm2")
    key = {box: str(size) for box, size in sheet.key.items()}
    return {"worksheet": sheet.worksheet.key, "model": sheet.model.key, "tokens": str(sheet.tokens)} | key | changes


def test_a_worksheet_with_a_sentence_opens_its_real_head(client: TestClient, runner: FakeRunner) -> None:
    answer = client.post("/runs", data=lesson_form(), headers={"hx-request": "true"})
    address = answer.headers["hx-redirect"]
    assert address.endswith("?skip=all")
    until(lambda: "head-progress" not in client.get(address).text)
    assert (
        "20 tokens" in client.get(address).text
    )  # the made-up tokenizer makes 18 of it, and the page says that the worksheet is wrong
    assert runner.calls == []


def test_a_sheet_with_another_length_or_without_weights_runs_random_numbers(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        client.post("/runs", data=lesson_form(tokens="21"), follow_redirects=False).headers["location"][:6] == "/runs/"
    )
    monkeypatch.setattr(head_request, "listed_checkpoints", lambda _folders: ())
    page = finished_run(client, client.post("/runs", data=lesson_form(), follow_redirects=False).headers["location"])
    assert len(runner.calls) == 2
    assert "random numbers instead" in page


def test_a_head_of_a_class_goes_with_its_student(client: TestClient) -> None:
    app: Any = client.app
    classroom = Classroom(app, Policies(feedback="immediate"), ("it-attends-smollm2",))
    student, browser = classroom.join()
    form = lesson_form(form_id="form-1-of-it")
    assert browser.post(f"{classroom.sheet_path}/check", data=form, headers=SCRIPT).status_code == 200
    answer = browser.post(f"{classroom.sheet_path}/run", data=form, follow_redirects=False)
    address = answer.headers["location"]
    assert address.startswith("/heads/")
    assert classroom.sheet_path in browser.get(address).text  # the way back
    classroom.store.roster.remove_student(student)
    assert browser.get(address).status_code == 404


def test_a_program_gets_the_same_head(client: TestClient) -> None:
    [listed] = client.get("/api/v1/heads").json()
    body = {"checkpoint": listed["key"], "text": SENTENCE, "layer": 13, "head": 3}
    result = client.post("/api/v1/heads", json=body).json()
    assert [token["text"] for token in result["tokens"]] == [f"␣{word}" for word in SENTENCE.split()]
    assert result["shapes"]["queries"] == [4, 64]
    assert [len(row) for row in result["weights"]] == [4, 4, 4, 4]
    assert client.post("/api/v1/heads", json=body | {"checkpoint": "other"}).status_code == 422
    assert kept_of_sentence(client.app.state.services.store) == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stage", "config", "added_parts", "numbers"),
    [
        ("decode", {"model_type": "mistral", "sliding_window": 5}, (), "5"),
        ("rope", {"model_type": "gpt_neox", "rotary_pct": 0.25}, (), "16 64"),
        ("projections", {}, ("b_Q",), ""),
        ("projections", {"model_type": "qwen3", "head_dim": 64}, ("g_Q",), ""),
    ],
    ids=["window", "partial rotation", "biases", "norms"],
)
def test_a_stage_says_what_is_special_about_the_model(
    client: TestClient, stage: str, config: dict[str, object], added_parts: tuple[str, ...], numbers: str
) -> None:
    plain = finished_head("a cat and a dog and a cow")
    parts = (*plain.parts, *(replace(plain.parts[0], variable=name) for name in added_parts))
    stated = SMOLLM2_CONFIG | config
    special = replace(plain, config=stated, parts=parts)
    store = client.app.state.services.store  # type: ignore[attr-defined]
    texts = []
    for head in (plain, special):
        page = client.get(f"/heads/{stored_head(store, head)}?skip=all").text
        [section] = re.findall(f'(?s)id="stage-{stage}".*?</section>', page)
        texts.append(re.sub("<[^>]+>", "", section.split("<p>")[1].split("</p>")[0]))
    assert texts[0] != texts[1]
    assert set(numbers.split()) <= set(re.findall("[0-9]+", texts[1]))


@pytest.mark.parametrize(
    ("read", "page"),
    [("result", ""), ("result", "/picture"), ("result", "/numbers.npz"), ("arguments", "/notebook.ipynb")],
)
def test_a_head_that_is_deleted_while_it_is_read_is_gone(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, read: str, page: str
) -> None:
    store: Store = client.app.state.services.store  # type: ignore[attr-defined]
    key, found = stored_head(store, finished_head("a cat and a dog")), getattr(JobTable, read)

    def delete_first(rows: JobTable, job: Job) -> Any:
        rows.delete(job)
        return found(rows, job)

    monkeypatch.setattr(JobTable, read, delete_first)
    assert client.get(f"/heads/{key}{page}").status_code == 404


def test_a_time_of_more_than_a_second_has_no_exponent(client: TestClient) -> None:
    store, plain = client.app.state.services.store, finished_head("a cat and a dog")  # type: ignore[attr-defined]
    key = stored_head(store, replace(plain, milliseconds=1234.5))
    text = client.get(f"/heads/{key}?skip=all").text
    assert "1,234 ms" in set(re.findall(r"<d?t?d>([^<]+)</", text))
    assert "e+03" not in text
