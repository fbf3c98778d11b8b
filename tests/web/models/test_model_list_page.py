"""Models: their list, their pages, importing one as text or from a file, and sheets made from what was imported."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from app.models.parameter_count import parameter_counts, parameters_json
from app.models.read_config import MAX_CONFIG_BYTES
from app.sheets.library import Library
from tests.helpers.html_page import Page, text_of
from tests.helpers.model_imports import SMALL_LLAMA, imported, paste
from tests.helpers.runs import run_and_wait
from tests.helpers.shipped import LIBRARY

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner

LLAMA = {**SMALL_LLAMA, "max_position_embeddings": 512}


@pytest.mark.slow
def test_every_model_of_the_library_is_listed_and_has_a_page(client: TestClient, library: Library) -> None:
    listed = client.get("/models").text
    for key, model in library.models.items():
        assert f'href="/models/{key}"' in listed
        page = client.get(f"/models/{key}")
        assert page.status_code == 200
        assert f"{parameters_json(model.architecture)['total']:,}" in page.text


@pytest.mark.slow
def test_every_sheet_of_an_imported_model_opens(client: TestClient) -> None:
    key = imported(client, LLAMA, name="Mine & <yours>")
    page = client.get(f"/models/{key}").text
    assert "<h1>Mine &amp; &lt;yours&gt;</h1>" in page
    links = re.findall(r'href="(/sheet\?[^"]+)"', page)
    assert len(links) >= 5
    for link in links:
        sheet = client.get(link.replace("&amp;", "&"))
        assert sheet.status_code == 200, link
        assert re.search(rf'<option value="{key}" selected>\s*Mine &amp; &lt;yours&gt;\s*</option>', sheet.text)
        assert f'href="/models/{key}"' in sheet.text


def test_a_sheet_of_an_imported_model_is_saved_checked_and_run(client: TestClient, runner: FakeRunner) -> None:
    key = imported(client, LLAMA)
    boxes = {"queries.rows": "10", "queries.columns": "16"}
    form = {"worksheet": "llama-7b", "model": key, "tokens": "10", **boxes}
    assert client.post("/sheet/save", data=form).status_code == 200
    assert "2 of 14 right" in client.post("/sheet/check", data=form).text
    again = client.get(f"/sheet?worksheet=llama-7b&model={key}&tokens=10").text
    assert 'name="queries.columns" value="16"' in again
    run_and_wait(client, form)
    assert runner.calls[0][0].d == 64


def test_the_parameters_of_a_model_without_a_context_length_are_graded(client: TestClient) -> None:
    key = imported(client, SMALL_LLAMA)
    right = {"embedding.count": "6400"}
    form = {"worksheet": "count-llama-7b", "model": key, **right}
    assert "1 of 8 right" in " ".join(text_of(client.post("/sheet/check", data=form).text).split())
    sheet = client.get(f"/api/v1/worksheets/count-llama-7b?model={key}")
    assert sheet.json()["model"] == key
    asked = {"worksheet": "count-llama-7b", "model": key, "answers": right}
    assert client.post("/api/v1/grade", json=asked).json()["score"] == 1


def test_a_sheet_knows_how_long_an_imported_model_reads(client: TestClient) -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, "n_positions": 32}
    key = imported(client, config, name="Short")
    answer = client.get(f"/sheet?worksheet=llama-7b&model={key}&tokens=33")
    assert answer.status_code == 422
    assert "Short has a table of 32 positions" in answer.text
    assert f'value="{key}" selected' in answer.text
    assert "tokens=32" in client.get(f"/models/{key}").text


def test_the_same_config_has_the_same_key(client: TestClient) -> None:
    key = imported(client, LLAMA, name="First")
    reversed_config = dict(reversed(LLAMA.items()))
    assert imported(client, json.dumps(reversed_config, indent=4), name="First") == key
    upload = {"file": ("First.json", json.dumps(LLAMA).encode())}
    assert client.post("/models", data={"way": "file"}, files=upload).url.path == f"/models/{key}"
    assert "<h1>First</h1>" in client.get(f"/models/{key}").text
    other = imported(client, LLAMA, name="Second")
    assert "<h1>Second</h1>" in client.get(f"/models/{other}").text
    assert "<h1>First</h1>" in client.get(f"/models/{key}").text
    assert imported(client, {**LLAMA, "vocab_size": 101}) != key


@pytest.mark.parametrize(
    ("file", "config", "name", "called"),
    [
        ("tiny.json", {}, "", "tiny"),
        ("config.json", {}, "", "llama (2 layers, 64 dimensions)"),
        ("config.json", {"_name_or_path": "org/name"}, "", "org/name"),
        ("config.json", {"_name_or_path": "/home/me/models/tiny"}, "", "tiny"),
        ("config.json", {"_name_or_path": 7}, "", "llama (2 layers, 64 dimensions)"),
        ("C:\\models\\tiny.json", {}, "", "tiny"),
        ("tiny.json", {}, "  My \t model\u202e ", "My model"),
    ],
)
def test_an_opened_file_is_called_by_the_best_name_there_is(
    client: TestClient, file: str, config: dict[str, Any], name: str, called: str
) -> None:
    upload = {"file": (file, json.dumps({**LLAMA, **config}).encode())}
    page = client.post("/models", data={"way": "file", "name": name}, files=upload)
    assert f"<h1>{called}</h1>" in page.text
    assert "Imported from a file." in page.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12345\n", "Git LFS pointer"),
        ("[]", "one JSON object"),
        ("", "Paste a config.json first"),
        ('{"model_type": "hyena"}', "are not supported"),
        ('{"model_type": "\\ud800"}', "are not supported"),
        ('{"model_type": "<b>"}', "&lt;b&gt;"),
        ('{"model_type": "llama", "hidden_size": null}', "hidden_size"),
        ("[" * 100_000, "not JSON"),
        ("9" * 5000, "not JSON"),
        (" " + "{" + " " * MAX_CONFIG_BYTES + "}", "at most 1,000,000 bytes"),
    ],
)
def test_what_cannot_be_read_is_told_beside_the_field(client: TestClient, text: str, said: str) -> None:
    answer = paste(client, text, name="kept", hub="also/kept")
    assert answer.status_code == 422
    problem = re.search(r'id="text-problem" role="alert">(.*?)</p>', answer.text)
    assert problem
    assert said in problem[1]
    assert "Traceback" not in answer.text
    assert 'name="name" value="kept"' in answer.text
    assert 'name="hub" value="also/kept"' in answer.text
    if 1 < len(text) < 100:
        field = re.search(r"<textarea.*?>\n?(.*?)</textarea>", answer.text, re.DOTALL)
        assert field
        assert field[1].replace("&#34;", '"').replace("&lt;", "<").replace("&gt;", ">") == text


def test_a_file_that_cannot_be_read_is_told_by_name(client: TestClient) -> None:
    upload = {"file": ("photo.png", b"\x89PNG\x00\xff\xfe")}
    answer = client.post("/models", data={"way": "file", "text": "kept"}, files=upload)
    assert answer.status_code == 422
    assert "<code>photo.png</code>: This is not JSON" in answer.text
    assert "kept</textarea>" in answer.text
    empty = client.post("/models", data={"way": "file"}, files={"file": ("", b"")})
    assert empty.status_code == 422
    assert "Choose a config.json first" in empty.text


def test_enter_takes_the_field_that_is_filled(client: TestClient) -> None:
    answer = client.post("/models", data={"way": "hub", "text": json.dumps(LLAMA)}, files={"file": ("", b"")})
    assert str(answer.url.path).startswith("/models/cfg-")


def test_a_form_that_says_nothing_is_answered(client: TestClient) -> None:
    for data in ({}, {"way": "nonsense"}, {"way": "text", "text": " \n"}):
        answer = client.post("/models", data=data)
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text


def test_a_multimodal_config_says_which_part_was_read(client: TestClient) -> None:
    key = imported(client, {"model_type": "llava", "text_config": LLAMA})
    assert "text_config" in text_of(client.get(f"/models/{key}").text)


# The API


def test_the_api_imports_and_shows_a_model(client: TestClient) -> None:
    entry = client.post("/api/v1/models", json={"config": LLAMA, "name": "Mine"}).json()
    assert (entry["name"], entry["family"], entry["card"]) == ("Mine", "llama", "")
    readings = {reading["symbol"]: reading for reading in entry["readings"]}
    assert readings["d"] == {"symbol": "d", "value": 64, "field": "hidden_size", "rule": "stated"}
    assert readings["d_h"] == {"symbol": "d_h", "value": 16, "field": None, "rule": "d/H"}
    address = f"/api/v1/models/{entry['key']}"
    assert client.get(address).json() == entry
    counted = client.get(f"{address}/parameters").json()
    assert counted["total"] == sum(tensor["count"] * tensor["layers"] for tensor in counted["tensors"])
    assert client.get(f"{address}/shapes?tokens=7").json()["head"]["queries"] == [7, 16]
    assert client.get(f"{address}/shapes").json()["tokens"] == 100


def test_the_api_makes_sheets_of_an_imported_model(client: TestClient, runner: FakeRunner) -> None:
    key = client.post("/api/v1/models", json={"config": LLAMA}).json()["key"]
    assert client.get(f"/api/v1/worksheets/llama-7b?model={key}&tokens=9").json()["model"] == key
    graded = client.post(
        "/api/v1/grade",
        json={"worksheet": "llama-7b", "model": key, "tokens": 9, "answers": {"queries.columns": "16"}},
    )
    assert graded.json()["score"] == 1
    assert client.post("/api/v1/forward", json={"model": key, "tokens": 9}).status_code == 200
    assert runner.calls[0][0].d_h == 16


@pytest.mark.parametrize(
    ("method", "address", "body", "status"),
    [
        ("post", "/api/v1/models", {}, 422),
        ("post", "/api/v1/models", {"config": LLAMA, "hub": "a/b"}, 422),
        ("post", "/api/v1/models", {"config": [1]}, 422),
        ("post", "/api/v1/models", {"config": {}}, 422),
        ("post", "/api/v1/models", {"config": {"model_type": "hyena"}}, 422),
        ("post", "/api/v1/models", {"hub": "no name"}, 422),
        ("get", "/api/v1/models/nothing", None, 404),
        ("get", "/api/v1/models/nothing/parameters", None, 404),
        ("get", "/api/v1/models/nothing/shapes", None, 404),
        ("get", "/api/v1/models/llama-7b/shapes?tokens=0", None, 422),
        ("get", "/api/v1/models/llama-7b/shapes?tokens=x", None, 422),
        ("get", "/api/v1/models/llama-7b/shapes?decoder_tokens=5", None, 422),
    ],
)
def test_the_api_refuses_in_one_sentence(
    client: TestClient, method: str, address: str, body: dict[str, Any] | None, status: int
) -> None:
    answer = client.request(method, address, json=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]


@pytest.mark.parametrize("sort", ["", "parameters", "d", "L", "nonsense"])
def test_the_list_is_sorted_by_a_heading(client: TestClient, sort: str) -> None:
    page = Page(client.get("/models", params={"sort": sort}).text)
    names = [text for attributes, text in page.find("th", scope="row")]
    models = {model.name: model for model in LIBRARY.models.values()}
    assert sorted(names) == sorted(models)
    sorted_headings = [text for attributes, text in page.find("th", scope="col") if "aria-sort" in attributes]
    assert len(sorted_headings) == 1
    if sort == "parameters":
        totals = [parameter_counts(models[name].architecture).total for name in names]
        assert totals == sorted(totals, reverse=True)
    elif sort == "d":
        widths = [models[name].architecture.sizes["d"] or 0 for name in names]
        assert widths == sorted(widths, reverse=True)
    elif sort != "L":
        assert names == list(models)
