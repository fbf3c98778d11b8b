"""The API as programs use it: the shapes of its answers are a promise."""

from __future__ import annotations

import errno
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from app.exchange import hub
from app.forward.lines import ForwardError
from app.forward.process import not_run
from app.jobs.inline import InlineJobs
from app.jobs.jobs import Jobs, Kind
from app.machine.work_queue import Client
from app.misconceptions.catalogue import MISCONCEPTIONS
from app.misconceptions.predictions import cannot_tell_apart
from app.settings import PROJECT
from app.sheets.library import Library
from app.store.jobs import Job, JobKind
from app.web import api as v1
from app.web.shared import bodies, request_guard
from app.web.shared.rate_limits import BYTES_OF_RUN, BYTES_PER_HOUR, BudgetSpentError
from app.web.shared.request_guard import MAX_BODY
from app.web.shared.run_jobs import RUN_LIMITS
from tests.helpers.fake_runner import FakeRunner
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.school import School

ROWS = ("input", "queries", "keys", "values", "scores", "weights", "output")
BOXES = [f"{row}.{axis}" for row in ROWS for axis in ("rows", "columns")]


def refused(client: TestClient, method: str, address: str, status: int, **options: Any) -> str:
    """The sentence of an error, which is all that its JSON holds."""
    response = client.request(method, address, **options)
    assert response.status_code == status, response.text
    body = response.json()
    assert list(body) == ["detail"]
    assert isinstance(body["detail"], str)
    assert re.search(r"\w", body["detail"])
    assert "Traceback" not in body["detail"]
    return str(body["detail"])


def test_the_models_are_listed_with_their_sizes(client: TestClient) -> None:
    models = {entry["key"]: entry for entry in client.get("/api/v1/models").json()}
    assert set(models) >= {"llama-7b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "mistral-7b", "gpt2"}
    qwen = models["qwen2.5-0.5b"]
    assert set(qwen) >= {"key", "name", "about", "card", "family", "sizes"}
    assert (qwen["name"], qwen["family"]) == ("Qwen2.5 0.5B", "qwen2")
    assert qwen["card"] == "https://huggingface.co/Qwen/Qwen2.5-0.5B"
    wanted = {"d": 896, "H": 14, "G": 2, "d_h": 64, "d_v": 64, "d_ff": 4864, "V": 151_936, "L": 24, "C": 32_768}
    assert qwen["sizes"] == wanted


def test_the_worksheets_are_listed_with_five_keys(client: TestClient) -> None:
    sheets = {entry["key"]: entry for entry in client.get("/api/v1/worksheets").json()}
    assert sheets["llama-7b"] == {
        "key": "llama-7b",
        "title": "One head of LLaMA 7B",
        "model": "llama-7b",
        "topic": "single-head",
        "tokens": 100,
    }
    assert {tuple(entry) for entry in sheets.values()} == {("key", "title", "model", "topic", "tokens")}
    assert set(sheets) >= {"llama-7b", "qwen2.5-0.5b", "layer-mistral-7b"}


def values(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key and every leaf of nested JSON."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield f"{path}.{key}", None
            yield from values(value, f"{path}.{key}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from values(value, f"{path}[{number}]")
    else:
        yield path, tree


@pytest.mark.parametrize("sheet", ["llama-7b", "qwen2.5-0.5b", "llama-7b~symbols"])
@pytest.mark.parametrize("model", ["", "llama-3.2-1b"])
def test_a_worksheet_has_no_answers_in_it(client: TestClient, library: Library, sheet: str, model: str) -> None:
    shown = client.get(f"/api/v1/worksheets/{sheet}", params={"model": model} if model else {}).json()
    assert [row["key"] for row in shown["rows"]] == [
        "input",
        "queries",
        "keys",
        "values",
        "scores",
        "weights",
        "output",
    ]
    assert {tuple(row) for row in shown["rows"]} == {
        ("key", "letter", "name", "note", "boxes", "points", "options", "between", "words")
    }
    variant = library.variant(sheet, model or None)
    key = {str(variant.answer(blank)) for blank in variant.blanks}
    for path, value in values(shown):
        assert not re.search(r"answer|shape|size|solution|correct", path)
        assert not isinstance(value, int) or path.endswith((".tokens", ".points"))
        if path not in (".description", ".title", ".footnote", ".model", ".tokens"):
            assert not key & set(re.findall(r"\d+", str(value or ""))), path


def test_a_program_comes_with_what_can_be_chosen_and_filled_in(client: TestClient, library: Library) -> None:
    shown = client.get("/api/v1/worksheets/bug-layer").json()
    rows = {row["key"]: row for row in shown["rows"]}
    assert shown["program"]["witness"]["cells"]
    assert len(rows["where"]["options"]) == len(shown["program"]["lines"]) + 1
    assert len(rows["why"]["options"]) == 4
    assert "repair" not in rows
    variant = library.variant("bug-layer")
    right = {box: variant.written_answer(blank) for box, blank in variant.blanks_by_name.items()}
    assert "opened" not in client.post("/api/v1/grade", json={"worksheet": "bug-layer", "answers": {}}).json()
    report = client.post("/api/v1/grade", json={"worksheet": "bug-layer", "answers": right}).json()
    [repair] = report["opened"]
    assert len(repair["between"]) == len(repair["boxes"]) + 1
    assert (
        report["score"]
        == report["out_of"]
        == sum(row["points"] * (1 if row["between"] else len(row["boxes"])) for row in (*rows.values(), repair))
    )


def test_the_description_states_what_a_sheet_gives_and_no_more(client: TestClient) -> None:
    shown = client.get("/api/v1/worksheets/layer-mistral-7b?model=qwen2.5-0.5b&tokens=50").json()
    numbers = set(re.findall(r"\d+", shown["description"]))
    assert {"896", "14", "64", "2", "50"} <= numbers
    assert "128" not in str(shown)


def test_a_worksheet_can_be_asked_for_another_model_and_length(client: TestClient) -> None:
    shown = client.get("/api/v1/worksheets/llama-7b?model=gpt2&tokens=7").json()
    assert (shown["key"], shown["model"], shown["tokens"], shown["title"]) == (
        "llama-7b",
        "gpt2",
        7,
        "One head of GPT-2",
    )
    assert "768 numbers" in shown["description"]


@pytest.mark.parametrize("tokens", ["0", "-3", "1000000000", "1.5", "", "many", "9**9"])
def test_a_worksheet_of_an_impossible_length_is_refused(client: TestClient, tokens: str) -> None:
    assert "okens" in refused(client, "GET", f"/api/v1/worksheets/llama-7b?tokens={tokens}", 422)


def test_what_is_not_there_is_listed(client: TestClient) -> None:
    assert re.search(r"Worksheets: .*\bllama-7b", refused(client, "GET", "/api/v1/worksheets/nope", 404))
    assert "no model “nope”" in refused(client, "GET", "/api/v1/worksheets/llama-7b?model=nope", 404)
    assert "no worksheet" in refused(client, "POST", "/api/v1/grade", 404, json={"worksheet": "nope", "answers": {}})
    refused(client, "GET", "/api/v1/nope", 404)
    refused(client, "GET", "/api/v1/grade", 405)


def graded(client: TestClient, answers: dict[str, str], **more: Any) -> dict[str, Any]:
    response = client.post("/api/v1/grade", json={"worksheet": "llama-7b", "answers": answers, **more})
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_grades_have_the_promised_shape(client: TestClient) -> None:
    result = graded(client, {"queries.rows": "100", "queries.columns": "4,096", "keys.rows": "many"})
    assert set(result) == {"score", "out_of", "marks", "causes", "first_mismatch", "diagnosis"}
    assert (result["score"], result["out_of"], result["first_mismatch"]) == (1, 14, None)
    assert set(result["diagnosis"]) == {"key", "message", "explains", "also"}
    assert (result["diagnosis"]["key"], result["diagnosis"]["explains"]) == (
        "head-as-wide-as-model",
        ["queries.columns"],
    )
    assert list(result["marks"]) == BOXES
    assert {tuple(mark) for mark in result["marks"].values()} == {("mark", "read_as", "message", "repeats")}
    assert result["marks"]["queries.rows"] == {"mark": "right", "read_as": 100, "message": "", "repeats": None}
    assert (result["marks"]["queries.columns"]["mark"], result["marks"]["queries.columns"]["read_as"]) == (
        "wrong",
        4096,
    )
    assert result["marks"]["queries.columns"]["message"]
    assert (result["marks"]["keys.rows"]["mark"], result["marks"]["keys.rows"]["read_as"]) == ("unreadable", None)
    assert result["marks"]["output.rows"] == {"mark": "empty", "read_as": None, "message": "", "repeats": None}


def test_a_break_is_named_in_the_grades(client: TestClient) -> None:
    result = graded(client, {"queries.columns": "128", "keys.columns": "64"})
    assert (result["first_mismatch"]["at"], result["first_mismatch"]["right"]) == ("scores", "keys.columns")
    result = graded(client, {"queries.columns": "128"})
    assert (result["first_mismatch"], result["diagnosis"]) == (None, None)


def test_a_hint_comes_where_it_is_asked_for(client: TestClient) -> None:
    wide = dict.fromkeys(("queries.columns", "keys.columns", "values.columns"), "4096")
    hints = [graded(client, wide, hint=level)["hint"] for level in (1, 2, 3)]
    assert [found["level"] for found in hints] == [1, 2, 3]
    assert hints[0]["message"] == graded(client, wide)["diagnosis"]["message"]
    assert [found["boxes"] for found in hints] == [[], [], list(wide)]
    assert graded(client, {"input.rows": "many"}, hint=3)["hint"] is None
    assert "hint" not in graded(client, wide)


@pytest.mark.parametrize("level", [0, 4, -1, "2", 1.5, [1]])
def test_a_hint_of_another_level_is_refused(client: TestClient, level: object) -> None:
    refused(client, "POST", "/api/v1/grade", 422, json={"worksheet": "llama-7b", "answers": {}, "hint": level})


def test_the_misconceptions_are_listed(client: TestClient) -> None:
    """The whole catalogue, each with the topics of the sheets it shows on, and a nudge without a digit."""
    misconceptions = client.get("/api/v1/misconceptions").json()
    assert [each["key"] for each in misconceptions] == [each.key for each in MISCONCEPTIONS]
    assert {tuple(misconception) for misconception in misconceptions} == {("key", "topics", "nudge")}
    assert not [
        misconception
        for misconception in misconceptions
        if any(character.isdigit() for character in misconception["nudge"])
    ]
    assert {misconception["key"]: misconception["topics"] for misconception in misconceptions}[
        "decode-step-square"
    ] == ["decode-step"]


def test_a_sheet_worked_by_hand_gets_all_marks(client: TestClient) -> None:
    shapes = {"input": (100, 4096), "queries": (100, 128), "keys": (100, 128), "values": (100, 128),
              "scores": (100, 100), "weights": (100, 100), "output": (100, 4096)}  # fmt: skip
    answers = {f"{key}.rows": str(rows) for key, (rows, _) in shapes.items()}
    answers |= {f"{key}.columns": str(columns) for key, (_, columns) in shapes.items()}
    assert graded(client, answers)["score"] == 14
    # Nine sides have N, seven rows and two more columns: the first is wrong, eight follow.
    assert graded(client, answers, tokens=101)["score"] == 14 - 9 + 8


@pytest.mark.parametrize("text", ["9**9**9", "__import__('os')", "1/0", "7" * 10_000, "\x00?", "１２８½"])
def test_bad_answers_are_unreadable_and_no_error(client: TestClient, text: str) -> None:
    mark = graded(client, {"queries.columns": text})["marks"]["queries.columns"]
    assert mark["mark"] == "unreadable"
    assert len(mark["message"]) < 300


def test_grading_stores_nothing(client: TestClient) -> None:
    """No cookie is given, and no visitor is made."""
    assert "set-cookie" not in client.post("/api/v1/grade", json={"worksheet": "llama-7b", "answers": {}}).headers


@pytest.mark.parametrize("box", ["queries", "context.rows", "W_Q.rows", "__class__", ""])
def test_an_unknown_box_is_refused(client: TestClient, box: str) -> None:
    sentence = refused(client, "POST", "/api/v1/grade", 422, json={"worksheet": "llama-7b", "answers": {box: "1"}})
    assert "is not a box of this sheet" in sentence
    assert "queries.rows" in sentence


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"worksheet": "llama-7b"},
        {"worksheet": "llama-7b", "answers": []},
        {"worksheet": "llama-7b", "answers": {"queries.rows": 100}},
        {"worksheet": "llama-7b", "answers": {}, "tokens": 1.5},
        {"worksheet": "llama-7b", "answers": {}, "tokens": "7"},
        {"worksheet": "llama-7b", "answers": {}, "tokens": True},
        {"worksheet": "llama-7b", "answers": {}, "tokens": 0},
        {"worksheet": "llama-7b", "answers": {}, "tokens": 10**9},
        {"worksheet": "llama-7b", "answers": {}, "sheet": "other"},
        {"worksheet": 7, "answers": {}},
        [],
        "x",
    ],
)
def test_a_request_of_another_shape_is_refused(client: TestClient, body: object) -> None:
    refused(client, "POST", "/api/v1/grade", 422, json=body)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"\xff\xfe", 422),
        (b"[" * 100_000, 422),
        ('{"worksheet": "é", "answers": {}}'.encode("latin-1"), 422),
        (b'{"worksheet": "llama-7b", "answers": {}, "tokens": ' + b"9" * 5000 + b"}", 422),
        (b'{"worksheet": "\\ud800", "answers": {}}', 404),
        (b'{"worksheet": "llama-7b", "answers": {"\\ud800": "1"}}', 422),
        (b'{"worksheet": "llama-7b", "answers": {}, "\\ud800": 1}', 422),
        (b"x" * (MAX_BODY + 1), 413),
    ],
)
def test_a_body_that_is_no_json_gets_a_sentence(client: TestClient, body: bytes, status: int) -> None:
    refused(client, "POST", "/api/v1/grade", status, content=body, headers={"content-type": "application/json"})


def test_half_a_character_in_a_box_is_unreadable(client: TestClient) -> None:
    body = b'{"worksheet": "llama-7b", "answers": {"queries.rows": "\\ud800"}}'
    response = client.post("/api/v1/grade", content=body, headers={"content-type": "application/json"})
    assert response.json()["marks"]["queries.rows"]["mark"] == "unreadable"


def test_another_site_is_refused_in_json(client: TestClient) -> None:
    refused(client, "POST", "/api/v1/grade", 403, json={}, headers={"Sec-Fetch-Site": "cross-site"})


# The forward pass


def test_a_model_of_the_library_is_run(client: TestClient, runner: FakeRunner) -> None:
    result = client.post("/api/v1/forward", json={"model": "llama-7b"}).json()
    architecture, tokens, options = runner.calls[0]
    assert (architecture.name, tokens) == ("LLaMA 7B", 100)
    assert options.pop("decoder_tokens") is None
    assert options == {"topic": "single-head", "head": 0, "device": None, "dtype": "float32", "seed": 0}
    assert result["shapes"]["queries"] == [100, 128]
    assert set(result) >= {"model", "tokens", "device", "dtype", "milliseconds", "shapes", "agrees", "lines", "picture"}


def test_a_config_is_run_in_place_of_a_model(client: TestClient, runner: FakeRunner) -> None:
    asked = {"config": SMALL_LLAMA, "tokens": 7, "head": 3, "device": "meta", "dtype": "bfloat16", "seed": 5}
    asked["topic"] = "decode-step"
    result = client.post("/api/v1/forward", json=asked).json()
    architecture, tokens, options = runner.calls[0]
    assert (architecture.d, architecture.H, architecture.G, architecture.d_h, tokens) == (64, 4, 2, 16, 7)
    expected = {"topic": "decode-step", "head": 3, "device": "meta", "dtype": "bfloat16", "seed": 5}
    assert options == expected | {"decoder_tokens": None}
    assert result["shapes"]["queries"] == [7, 16]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "either “model”"),
        ({"model": "llama-7b", "config": SMALL_LLAMA}, 422, "either “model”"),
        ({"model": "nope"}, 404, "Models: "),
        ({"config": []}, 422, "config"),
        ({"config": {}}, 422, "model_type"),
        ({"config": {**SMALL_LLAMA, "model_type": "nope"}}, 422, "nope"),
        ({"config": {**SMALL_LLAMA, "hidden_size": None}}, 422, "hidden_size"),
        ({"config": {**SMALL_LLAMA, "num_attention_heads": 5}}, 422, "5"),
        ({"config": {**SMALL_LLAMA, "hidden_size": -64}}, 422, "hidden_size"),
        ({"config": {**SMALL_LLAMA, "hidden_size": 10**15}}, 422, "hidden_size"),
        ({"config": {**SMALL_LLAMA, "hidden_size": "64"}}, 422, "hidden_size"),
        ({"config": {**SMALL_LLAMA, "num_key_value_heads": 3}}, 422, "3"),
        ({"model": "llama-7b", "tokens": 0}, 422, "from 1 to"),
        ({"model": "llama-7b", "tokens": -3}, 422, "from 1 to"),
        ({"model": "llama-7b", "tokens": 10**9}, 422, "from 1 to"),
        ({"model": "llama-7b", "tokens": 1.5}, 422, "tokens"),
        ({"model": "llama-7b", "tokens": ""}, 422, "tokens"),
        ({"model": "llama-7b", "tokens": None}, 422, "tokens"),
        ({"model": "gpt2", "tokens": 1025}, 422, "1,024 positions"),
        ({"model": "llama-7b", "extra": 1}, 422, "extra"),
        ({"model": "deepseek-v2-lite"}, 422, "latent"),
        ({"model": "llama-7b", "topic": "bidirectional-head"}, 422, "LLaMA 7B"),
        ({"model": "llama-7b", "topic": "costs"}, 422, "single-head"),
        ({"config": {**SMALL_LLAMA, "model_type": "olmo2"}}, 422, "attention layer"),
        ({"config": {**SMALL_LLAMA, "rope_scaling": {"rope_type": "nope"}}}, 422, "RoPE"),
    ],
)
def test_a_head_that_cannot_be_run_is_refused(
    client: TestClient, runner: FakeRunner, body: dict[str, Any], status: int, said: str
) -> None:
    assert said in refused(client, "POST", "/api/v1/forward", status, json=body)
    assert runner.calls == []


def test_a_config_with_half_a_character_is_refused(client: TestClient) -> None:
    body = b'{"config": {"model_type": "\\ud800"}}'
    refused(client, "POST", "/api/v1/forward", 422, content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (ForwardError("The device must be another."), 422),
        (not_run("too-long"), 504),
        (not_run("stopped"), 503),
        (RuntimeError("secret"), 500),
    ],
)
def test_a_run_that_ends_without_result_has_its_status(
    client: TestClient, runner: FakeRunner, problem: Exception, status: int
) -> None:
    runner.problem = problem
    assert "secret" not in refused(client, "POST", "/api/v1/forward", status, json={"model": "llama-7b"})


def test_every_status_is_documented(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that its modules name, and those of requests that are refused before or around them."""
    sources = "".join(inspect.getsource(module) for module in (v1, bodies, request_guard))
    named = set(map(int, re.findall(r"(?:HTTPException\(|_refusal_response\(scope, sentence, )(\d+)", sources)))
    named |= {status for status, _sentence in hub.PROBLEMS.values()} | set(v1.STATUS_OF_REASON.values())
    answers = [
        client.get("/api/v1/models"),
        client.get("/api/v1/models/nope"),
        client.get("/api/v1/grade"),
        client.post("/api/v1/grade", json={}),
        client.post("/api/v1/grade", json={}, headers={"Sec-Fetch-Site": "cross-site"}),
    ]
    for problem in (BudgetSpentError(1), OSError(errno.ENOSPC, "full"), RuntimeError()):
        monkeypatch.setattr(Library, "variant", Mock(side_effect=problem))
        answers.append(client.get("/api/v1/worksheets"))
    seen = {answer.status_code for answer in answers}
    page = (PROJECT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(map(int, re.findall(r"^\| (\d{3}) \|", page, re.MULTILINE)))
    assert {200, 404, 405, 422, 403, 429, 503, 500} == seen
    assert listed == named | seen - {200}


def test_runs_are_queued_for_whoever_starts_them(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, submit = list[Client](), InlineJobs.submit

    def noted_submit(jobs: InlineJobs, kind: JobKind, whose: Client, *arguments: Any, **options: Any) -> Job:
        clients.append(whose)
        return submit(jobs, kind, whose, *arguments, **options)

    monkeypatch.setattr(InlineJobs, "submit", noted_submit)
    school, body = School(client.app), {"model": "llama-7b"}  # type: ignore[arg-type]  # it is the app itself
    teacher = school.teacher()
    _, student = school.student(school.course("Transformers", teacher), "Kim")
    for browser in (school.browser(), school.browser(teacher=teacher), school.browser(visitor=student)):
        assert browser.post("/api/v1/forward", json=body).status_code == 200
    assert [asked.is_member for asked in clients] == [False, True, True]
    assert len(set(clients)) == 3
    school.services.storage.charge("testclient", BYTES_PER_HOUR - 4 * BYTES_OF_RUN)
    statuses = [client.post("/api/v1/forward", json=body).status_code for _ in range(2)]
    assert statuses == [200, 429]


def test_a_run_whose_turn_does_not_come_is_taken_back(
    client: TestClient, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: Jobs = client.app.state.services.jobs  # type: ignore[attr-defined]
    monkeypatch.setattr(v1, "API_WAIT_LIMIT_S", 0.1)
    runner.gate.clear()
    refused(client, "POST", "/api/v1/forward", 503, json={"model": "llama-7b"})
    assert jobs.rows.count("run") == 0
    monkeypatch.setitem(jobs.kinds, "run", Kind(jobs.kinds["run"].work, replace(RUN_LIMITS, visitors=0)))
    refused(client, "POST", "/api/v1/forward", 503, json={"model": "llama-7b"})
    runner.gate.set()


def test_openapi_lists_every_route_of_the_api(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    routes = {
        (method, path): what for path, methods in description["paths"].items() for method, what in methods.items()
    }
    assert set(routes) >= {
        ("get", "/api/v1/models"),
        ("get", "/api/v1/worksheets"),
        ("get", "/api/v1/worksheets/{key}"),
        ("get", "/api/v1/misconceptions"),
        ("post", "/api/v1/grade"),
        ("post", "/api/v1/forward"),
    }
    assert {path for _, path in routes if not path.startswith("/api/v1/")} == set()
    assert all(what["description"].endswith(".") for what in routes.values())
    assert set(description["components"]["schemas"]["GradeReport"]["properties"]) == {
        "score",
        "out_of",
        "marks",
        "causes",
        "first_mismatch",
        "diagnosis",
        "opened",
        "hint",
    }


def test_a_seed_draws_a_sheet_without_answers(client: TestClient, library: Library) -> None:
    asked = {"worksheet": "cross-bart-base", "seed": 7}
    drawn, again = (client.post("/api/v1/variants", json=asked).json() for _ in range(2))
    assert drawn == again
    variant = library.seeded("cross-bart-base", 7)
    told = ("code", "worksheet", "seed", "model", "topic", "tokens", "decoder_tokens")
    assert [drawn[key] for key in told] == [
        variant.code, "cross-bart-base", 7, "bart-base", "cross-attention", variant.tokens, variant.sizes["M"]
    ]  # fmt: skip
    assert [box for row in drawn["rows"] for box in row["boxes"]] == [str(blank) for blank in variant.blanks]
    assert not re.search(r"\d", " ".join(f"{row['letter']} {row['name']} {row['note']}" for row in drawn["rows"]))
    assert drawn["cannot_tell_apart"] == [[key, other or "right"] for key, other in cannot_tell_apart(variant.problem)]


@pytest.mark.parametrize("model", [None, "bert-base"])
def test_a_drawn_sheet_is_graded_by_its_seed_and_by_its_code(client: TestClient, model: str | None) -> None:
    asked = {"worksheet": "llama-7b", "seed": 7, "model": model}
    drawn = client.post("/api/v1/variants", json=asked).json()
    answers = {"input.rows": str(drawn["tokens"]), "scores.columns": str(drawn["tokens"]), "keys.rows": "1000"}
    by_seed = client.post("/api/v1/grade", json={**asked, "answers": answers}).json()
    by_code = client.post("/api/v1/grade", json={"code": drawn["code"], "answers": answers}).json()
    assert by_seed == by_code
    assert by_seed["score"] == 2


def test_a_code_of_an_imported_model_is_graded(client: TestClient) -> None:
    key = client.post("/api/v1/models", json={"config": SMALL_LLAMA, "name": "Mine"}).json()["key"]
    drawn = client.post("/api/v1/variants", json={"worksheet": "llama-7b", "seed": 1, "model": key}).json()
    answers = {"queries.columns": "16", "input.columns": "64"}
    graded = client.post("/api/v1/grade", json={"code": drawn["code"].lower(), "answers": answers}).json()
    assert graded["score"] == 2


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({}, 422, "either “worksheet”"),
        ({"worksheet": "llama-7b", "code": "BHR-KQ-RM"}, 422, "either “worksheet”"),
        ({"code": "BHR-KQ-RM", "seed": 1}, 422, "leave out seed"),
        ({"worksheet": "llama-7b", "seed": 1, "tokens": 5}, 422, "either “seed” or “tokens”"),
        ({"worksheet": "llama-7b", "seed": -1}, 422, "from 0 to"),
        ({"worksheet": "llama-7b", "seed": 2**70}, 422, "from 0 to"),
        ({"worksheet": "nothing", "seed": 1}, 404, "no worksheet"),
        ({"worksheet": "llama-7b", "seed": 1, "model": "nothing"}, 404, "no model"),
        ({"code": "BHR-KQ-RN"}, 404, "check it for a typo"),
        ({"code": "BHR-KQ-XBBBBB-RN"}, 404, "check it for a typo"),
        ({"code": "12"}, 404, "letters such as"),
    ],
)
def test_a_sheet_that_cannot_be_found_is_refused(
    client: TestClient, asked: dict[str, Any], status: int, said: str
) -> None:
    assert said in refused(client, "POST", "/api/v1/grade", status, json={**asked, "answers": {}})


def test_openapi_is_json(client: TestClient) -> None:
    """The description that the footer links to exists, and doesn't load another site."""
    text = client.get("/openapi.json").text
    assert "https://" not in text
    assert json.loads(text)["info"]["title"] == "Attention Shapes"
