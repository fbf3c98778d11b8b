"""Checkpoints from a hub that this test plays: which files are fetched, what is refused, and where the token goes."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import open_checkpoint
from app.checkpoints.hub import fetch_checkpoint
from tests.helpers.small_checkpoints import small_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secretsecretsecret"  # noqa: S105 - no real one


class Hub(ThreadingHTTPServer):
    """A hub with one model, org/small, and one that is gated, org/gated."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder, self.fetched, self.tokens = folder, list[str](), set[str | None]()


class Answer(BaseHTTPRequestHandler):
    """Answers as the Hub does, as far as huggingface_hub asks."""

    server: Hub

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        self.server.tokens.add(self.headers.get("Authorization"))
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/"):
            name = path.removeprefix("/api/models/").partition("/revision")[0]
            files = [
                {"rfilename": file.name, "size": file.stat().st_size} for file in sorted(self.server.folder.iterdir())
            ]
            if name == "org/missing":
                return self.refuse(404, "RepoNotFound")
            body = json.dumps({"id": name, "sha": COMMIT, "siblings": files}).encode()
            return self.send(body, with_body=with_body)
        name, _resolve, file = path[1:].partition(f"/resolve/{COMMIT}/")
        if name == "org/gated":
            return self.refuse(403, "GatedRepo")
        if with_body:
            self.server.fetched.append(file)
        return self.send((self.server.folder / file).read_bytes(), with_body=with_body)

    def send(self, body: bytes, *, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub, with a llama of several shards."""
    folder = tmp_path / "files"
    small_model("llama").save_pretrained(folder, max_shard_size="60KB")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"never")
    server = Hub(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_only_what_a_layer_needs_is_fetched_once(hub: Hub, tmp_path: Path) -> None:
    progress = list[tuple[int, int]]()
    folder = fetch_checkpoint("org/small", tmp_path, layer=0, report=lambda done, total: progress.append((done, total)))
    index = json.loads((hub.folder / "model.safetensors.index.json").read_text())["weight_map"]
    needed = {shard for tensor, shard in index.items() if ".layers.1." not in tensor}
    assert needed < set(index.values())
    small = {"config.json", "model.safetensors.index.json", "tokenizer.json"}
    assert sorted(hub.fetched) == sorted(needed | small)
    total = sum((hub.folder / shard).stat().st_size for shard in needed)
    assert progress[-1] == (total, total)
    assert progress == sorted(progress)

    checkpoint = open_checkpoint(folder, [tmp_path])
    assert (checkpoint.name, checkpoint.revision) == ("org/small", COMMIT)
    assert torch.isfinite(checkpoint.head_weights(0, 3).tensors["W_Q"]).all()
    with pytest.raises(CheckpointError, match="missing"):
        checkpoint.layer_weights(1)
    hub.fetched.clear()
    fetch_checkpoint("org/small", tmp_path, layer=0)
    assert hub.fetched == []
    fetch_checkpoint("org/small", tmp_path)
    assert set(hub.fetched) == set(index.values()) - needed


def test_the_token_goes_to_the_hub_and_into_no_log(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fetch_checkpoint("org/small", tmp_path, layer=0)
    assert hub.tokens == {None}
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    fetch_checkpoint("org/small", tmp_path)
    assert f"Bearer {TOKEN}" in hub.tokens
    with pytest.raises(CheckpointError) as refusal:
        fetch_checkpoint("org/gated", tmp_path)
    assert TOKEN not in caplog.text + str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("org/missing", "no model"), ("org/gated", "gated"), ("../etc", "not a name"), ("a/b/c", "not a name")],
)
def test_what_cannot_be_fetched_gets_one_sentence(hub: Hub, name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        fetch_checkpoint(name, tmp_path)


def test_a_model_that_cannot_be_run_costs_no_more_than_its_config(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "config.json").write_text('{"model_type": "mamba"}')
    with pytest.raises(CheckpointError, match="mamba"):
        fetch_checkpoint("org/small", tmp_path)
    assert hub.fetched == ["config.json"]


def test_an_adapter_costs_nothing(hub: Hub, tmp_path: Path) -> None:
    """It is named before anything is fetched."""
    (hub.folder / "config.json").unlink()
    (hub.folder / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="adapter"):
        fetch_checkpoint("org/small", tmp_path)
    assert hub.fetched == []


def test_without_the_hub_the_last_commit_is_used(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch_checkpoint("org/small", tmp_path, layer=0)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch_checkpoint("org/small", tmp_path, layer=0) == folder
    assert fetch_checkpoint("org/small", tmp_path, revision=folder.name[:8]) == folder
    for name, revision in (("org/other", "main"), ("org/small", "f" * 40), ("org/small", "v1.0")):
        with pytest.raises(CheckpointError, match="reach"):
            fetch_checkpoint(name, tmp_path, revision=revision)


def test_a_cache_that_cannot_be_written_is_not_the_hubs_fault(hub: Hub, tmp_path: Path) -> None:
    assert fetch_checkpoint("org/small", tmp_path / "cache", layer=0)
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="file cannot be used"):
        fetch_checkpoint("org/small", tmp_path / "file")


def test_a_full_disk_is_noticed_before(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 10_000})())
    with pytest.raises(CheckpointError, match="room"):
        fetch_checkpoint("org/small", tmp_path)
    assert not any("model-" in file for file in hub.fetched)


@pytest.mark.parametrize("index", ["[]", "{", '{"weight_map": {"a": ["b"]}}', '{"weight_map": 3}'])
def test_a_damaged_index_gets_one_sentence(hub: Hub, index: str, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match=r"index\.json"):
        fetch_checkpoint("org/small", tmp_path)
