"""Fetching a config.json from the Hub, against a small server that speaks its protocol; nothing leaves this machine."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from app import cli
from app.exchange import hub
from app.exchange.hub import HubError, fetch_config, repository_name
from app.machine.work_queue import Places
from app.settings import Settings
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.running_app import make_app

GOOD = json.dumps(SMALL_LLAMA).encode()
REFUSALS = {
    "org/gone": (404, "RepoNotFound"),
    "org/private": (401, "RepoNotFound"),
    "org/hidden": (401, ""),
    "org/gated": (401, "GatedRepo"),
    "org/gated-too": (403, "GatedRepo"),
    "org/forbidden": (403, ""),
    "org/weights-only": (404, "EntryNotFound"),
    "org/broken": (500, ""),
    "org/down": (503, ""),
}


class FakeHub(ThreadingHTTPServer):
    """Answers GET of /{org}/{name}/resolve/main/config.json as the Hub does; `asked` keeps every request. `files`
    holds the models' files, `redirects` where other names lead.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {"org/good": GOOD, "org/prose": b"no JSON at all"}
        self.redirects: dict[str, str] = {"org/renamed": "/org/good/resolve/main/config.json"}
        self.unstated: set[str] = set()
        self.sent = 0
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Whoever asked has hung up, as some tests mean to."""


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - the name it has in the standard library

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub = self.server
        hub.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        hub.may_answer.wait(60)
        name = self.path.partition("/resolve/main/config.json")[0].strip("/")
        if name in hub.redirects:
            return self.send(307, b"", {"Location": hub.redirects[name]})
        if name in REFUSALS:
            status, code = REFUSALS[name]
            return self.send(status, b"", {"X-Error-Code": code} if code else {})
        if name not in hub.files:
            return self.send(404, b"", {"X-Error-Code": "RepoNotFound"})
        text = hub.files[name]
        etag = f'"{hashlib.sha1(text, usedforsecurity=False).hexdigest()}"'
        if self.headers.get("If-None-Match") == etag:
            return self.send(304, b"", {"ETag": etag})
        return self.send(200, text, {"ETag": etag, "Accept-Ranges": "bytes"}, stated=name not in hub.unstated)

    def send(self, status: int, text: bytes, headers: dict[str, str], *, stated: bool = True) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(*(("Content-Length", str(len(text))) if stated else ("Connection", "close")))
        self.end_headers()
        for start in range(0, len(text), 10_000):
            self.server.sent += 10_000  # before the client may read it
            self.wfile.write(text[start : start + 10_000])
        self.close_connection = True


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub of our own, named by HF_ENDPOINT."""
    server = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that no one serves."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def problem(name: str, cache: Path, *, allowed: bool = True) -> HubError:
    with pytest.raises(HubError) as refused:
        fetch_config(name, cache, allowed=allowed)
    assert "\n" not in str(refused.value)
    return refused.value


def test_a_config_comes_by_its_name(fake: FakeHub, tmp_path: Path) -> None:
    assert fetch_config("org/good", tmp_path, allowed=True) == SMALL_LLAMA
    assert {path for path, _ in fake.asked} == {"/org/good/resolve/main/config.json"}


def test_nothing_but_the_name_goes_out(fake: FakeHub, tmp_path: Path) -> None:
    fetch_config("org/good", tmp_path, allowed=True)
    [(_, headers)] = fake.asked
    assert headers.pop("user-agent") == "attention-shapes"
    assert headers.keys() <= {"host", "accept", "accept-encoding", "connection"}


def test_no_token_is_sent(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server's owner may read is not what its visitors may read."""
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_owner")
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", "hf_of_the_owner")
    fetch_config("org/renamed", tmp_path, allowed=True)
    assert len(fake.asked) == 2
    assert all(not headers.keys() & {"authorization", "cookie"} for _, headers in fake.asked)


def test_a_renamed_model_is_followed(fake: FakeHub, tmp_path: Path) -> None:
    assert fetch_config("org/renamed", tmp_path, allowed=True) == SMALL_LLAMA


def test_an_unchanged_file_is_downloaded_once(fake: FakeHub, tmp_path: Path) -> None:
    for _ in range(2):
        assert fetch_config("org/good", tmp_path, allowed=True) == SMALL_LLAMA
        fake.sent, first = 0, fake.sent
    assert (first, len(fake.asked)) == (0, 2)


def test_redirects_stay_within_the_hub(fake: FakeHub, tmp_path: Path) -> None:
    other = FakeHub()
    threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
    fake.redirects |= {"org/away": f"{other.url}/org/good/resolve/main/config.json", "org/file": "file:///etc/passwd",
                       "org/round": "/org/round/resolve/main/config.json"}  # fmt: skip
    for name in ("org/away", "org/file", "org/round"):
        refused = problem(name, tmp_path)
        assert (refused.problem, refused.status) == ("failed", 502)
    assert other.asked == []
    other.shutdown()
    other.server_close()


def test_large_files_may_lie_in_the_hubs_own_storage(fake: FakeHub) -> None:
    for address, safe in (
        ("https://cdn-lfs.hf.co/x", True), ("https://huggingface.co/x", True), ("http://hf.co/x", False),
        ("https://nothf.co/x", False), ("https://hf.co.example.org/x", False), ("https://127.0.0.1/x", False),
        (f"{fake.url}/x", True),
    ):  # fmt: skip
        assert hub._is_hub_url(httpx.URL(address)) is safe, address


def test_a_changed_file_is_downloaded_again(fake: FakeHub, tmp_path: Path) -> None:
    fetch_config("org/good", tmp_path, allowed=True)
    fake.files["org/good"] = json.dumps({**SMALL_LLAMA, "hidden_size": 128}).encode()
    assert fetch_config("org/good", tmp_path, allowed=True) == {**SMALL_LLAMA, "hidden_size": 128}


@pytest.mark.parametrize("down", [True, False])
def test_what_was_fetched_before_is_there_without_the_hub(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, down: bool
) -> None:
    fetch_config("org/good", tmp_path, allowed=True)
    if down:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    else:
        monkeypatch.setitem(REFUSALS, "org/good", (503, ""))
    assert fetch_config("org/good", tmp_path, allowed=True) == SMALL_LLAMA


@pytest.mark.parametrize(
    ("name", "status", "sentence"),
    [
        ("org/gone", 404, "no model “org/gone”"),
        ("org/unheard-of", 404, "no model"),
        ("org/private", 404, "private"),
        ("org/hidden", 404, "private"),
        ("org/gated", 403, "gated"),
        ("org/gated-too", 403, "gated"),
        ("org/forbidden", 403, "gated"),
        ("org/weights-only", 404, "no config.json"),
        ("org/broken", 502, "error (500)"),
        ("org/down", 502, "error (503)"),
        ("org/prose", 422, "not valid JSON"),
    ],
)
def test_each_refusal_is_one_sentence_with_its_status(
    fake: FakeHub, tmp_path: Path, name: str, status: int, sentence: str
) -> None:
    refused = problem(name, tmp_path)
    assert sentence in str(refused)
    assert refused.status == status


@pytest.mark.slow
@pytest.mark.parametrize("stated", [True, False])
def test_a_huge_file_is_not_read(fake: FakeHub, tmp_path: Path, stated: bool) -> None:
    fake.files["org/huge"] = b"{" + b" " * 100_000_000 + b"}"
    if not stated:
        fake.unstated.add("org/huge")
    assert problem("org/huge", tmp_path).problem == "too-large"
    time.sleep(0.1)  # until the server notices that nobody reads any more
    assert fake.sent < 50_000_000
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 100_000


def test_an_unreachable_hub_is_said_soon(unreachable: None, tmp_path: Path) -> None:
    began = time.monotonic()
    refused = problem("org/good", tmp_path)
    assert (refused.status, "127.0.0.1:9" in str(refused)) == (503, True)
    assert time.monotonic() - began < 6 * hub.ANSWER_TIMEOUT_S


def test_a_hub_that_does_not_answer_is_given_up(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "FETCH_TIMEOUT_S", 0.2)
    fake.may_answer.clear()
    assert problem("org/good", tmp_path).problem == "unreachable"
    fake.may_answer.set()
    assert not hub._fetches.held  # its place is free again


def test_too_many_at_once_are_asked_to_wait(fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_fetches", Places(1, reserved=0, of_visitor=1))
    fake.may_answer.clear()
    first = threading.Thread(target=fetch_config, args=("org/good", tmp_path), kwargs={"allowed": True})
    first.start()
    while not fake.asked:
        time.sleep(0.01)
    assert problem("org/good", tmp_path).problem == "busy"
    fake.may_answer.set()
    first.join()


def test_a_cache_that_cannot_be_written_is_said(fake: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("in the way")
    refused = problem("org/good", tmp_path / "hub")
    assert (refused.problem, refused.status) == ("no-room", 503)


@pytest.mark.parametrize(
    "typed",
    ["", "llama", "a/b/c", "org/", "/name", "../etc/passwd", "org/na me", "org/..", "org/a--b", "ö/x", "x" * 97 + "/y",
     "http://elsewhere/org/name", "-org/name", "org/name.", "org/name-", "org-/name", "org./name", "org/name.git",
     "https://huggingface.co/datasets/org/name", "https://huggingface.co/spaces/org"],
)  # fmt: skip
def test_what_is_no_name_is_refused_without_asking(fake: FakeHub, tmp_path: Path, typed: str) -> None:
    assert problem(typed, tmp_path).status == 422
    assert fake.asked == []


@pytest.mark.parametrize(
    "typed",
    [
        "org/good",
        " org/good ",
        "https://huggingface.co/org/good/tree/main",
        "https://huggingface.co/org/good?library=x#use",
    ],
)
def test_a_name_may_be_the_address_of_its_page(typed: str) -> None:
    assert repository_name(typed) == "org/good"


def test_nothing_is_asked_where_the_setting_is_off(fake: FakeHub, tmp_path: Path) -> None:
    refused = problem("org/good", tmp_path, allowed=False)
    assert (refused.status, fake.asked) == (403, [])
    assert "switched off" in str(refused)


def test_the_setting_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTENTION_SHAPES_HUB", raising=False)
    assert Settings().hub
    monkeypatch.setenv("ATTENTION_SHAPES_HUB", "false")
    assert not Settings().hub


# Through the page, the API and the terminal


def test_the_page_imports_by_name_and_goes_to_the_model(fake: FakeHub, client: TestClient) -> None:
    answer = client.post("/models", data={"way": "hub", "hub": "org/good"}, files={"file": ("", b"")})
    assert answer.status_code == 200
    assert answer.url.path.startswith("/models/cfg-")
    assert "<h1>org/good</h1>" in answer.text
    assert "Imported from the Hugging Face Hub: org/good" in answer.text


@pytest.mark.parametrize(("name", "status"), [("org/gated", 403), ("org/gone", 404), ("no name", 422)])
def test_the_page_says_beside_the_field_why_not(fake: FakeHub, client: TestClient, name: str, status: int) -> None:
    answer = client.post("/models", data={"way": "hub", "hub": name, "text": "kept <so>", "name": "N"})
    assert answer.status_code == status
    assert 'id="hub-problem" role="alert"' in answer.text
    assert f'value="{name}"' in answer.text
    assert "kept &lt;so&gt;" in answer.text


def test_the_api_imports_by_name(fake: FakeHub, client: TestClient) -> None:
    entry = client.post("/api/v1/models", json={"hub": "org/good"}).json()
    assert (entry["name"], entry["sizes"]["d"]) == ("org/good", 64)
    assert client.post("/api/v1/models", json={"config": SMALL_LLAMA}).json()["key"] == entry["key"]
    refused = client.post("/api/v1/models", json={"hub": "org/gated"})
    assert (refused.status_code, list(refused.json())) == (403, ["detail"])


def test_page_and_api_say_where_it_is_off(fake: FakeHub, tmp_path: Path) -> None:
    app = make_app(Settings(data_dir=tmp_path, database_url="", hub=False))
    with TestClient(app) as client:
        page = client.get("/models").text
        assert 'name="hub"' not in page
        assert "switched off" in page
        assert client.post("/api/v1/models", json={"hub": "org/good"}).status_code == 403
        assert client.post("/models", data={"way": "hub", "hub": "org/good"}).status_code == 403
    assert fake.asked == []


def test_the_terminal_takes_a_name(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    cli.main(["shapes", "org/good", "--tokens", "7", "--json"])
    assert json.loads(capsys.readouterr().out)["head"]["queries"] == [7, 16]
    for name, sentence in (("org/gone", "no model “org/gone” on the Hub"), ("org/missing.json", "no model or file")):
        with pytest.raises(SystemExit) as ended:
            cli.main(["shapes", name])
        assert ended.value.code == 2
        assert sentence in capsys.readouterr().err
    monkeypatch.setenv("ATTENTION_SHAPES_HUB", "false")
    with pytest.raises(SystemExit):
        cli.main(["shapes", "org/good"])
    assert "switched off" in capsys.readouterr().err


def test_copies_go_after_six_weeks_and_never_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_COPIES_BYTES", 250)
    now = time.time()
    for name, days in (("new", 0), ("middle", 10), ("old", 20), ("expired", 43)):
        path = tmp_path / f"org--{name}.config"
        path.write_bytes(b"x" * (10 if name == "expired" else 100))
        os.utime(path, (now - days * 86_400,) * 2)
    hub.delete_old_copies(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["org--middle.config", "org--new.config"]
    hub.delete_old_copies(tmp_path / "nowhere")


def test_a_copy_is_kept_while_it_is_fetched(fake: FakeHub, tmp_path: Path) -> None:
    fetch_config("org/good", tmp_path, allowed=True)
    [copy] = tmp_path.iterdir()
    os.utime(copy, (time.time() - 30 * 86_400,) * 2)
    fetch_config("org/good", tmp_path, allowed=True)
    assert time.time() - copy.stat().st_mtime < 86_400
