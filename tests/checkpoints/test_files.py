"""Only listed folders are opened, by any path; what can't be run is refused by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import SMOLLM2, listed_checkpoints, open_checkpoint, readable_architecture
from app.checkpoints.rules import CHECKPOINT_RULES
from app.jobs.jobs import queue_name
from app.models.table import table_names
from app.settings import PROJECT
from tests.helpers.small_checkpoints import small_model, write_gguf

INDEX = "model.safetensors.index.json"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12345\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint "llama" and a file "qwen2.gguf"."""
    folder = tmp_path_factory.mktemp("weights")
    small_model("llama").save_pretrained(folder / "llama")
    write_gguf(small_model("qwen2"), folder / "qwen2.gguf")
    return folder


def test_links_and_dots_lead_to_no_other_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder / "llama")
    (tmp_path / "model.gguf").symlink_to(folder / "qwen2.gguf")
    inside = tmp_path / "copy"
    shutil.copytree(folder / "llama", inside)
    (inside / "model.safetensors").unlink()
    (inside / "model.safetensors").symlink_to(folder / "llama" / "model.safetensors")
    sources = ["link", "model.gguf", f"../{folder.name}/llama", "copy", "missing", "\0"]
    elsewhere: list[Path | str] = [folder / "llama", Path("/etc/passwd"), ""]
    for source in [*elsewhere, *(tmp_path / source for source in sources)]:
        with pytest.raises(CheckpointError):
            open_checkpoint(source, [tmp_path])
    assert open_checkpoint(tmp_path / "link", [tmp_path, folder]).name == "llama"
    assert open_checkpoint(inside, [tmp_path, folder]).head_weights(0, 0)


def test_a_cache_of_the_hub_has_links_to_its_files(folder: Path, tmp_path: Path) -> None:
    commit, blobs = tmp_path / "models--org--name" / "snapshots" / "0123abc", tmp_path / "models--org--name" / "blobs"
    commit.mkdir(parents=True)
    shutil.copytree(folder / "llama", blobs)
    shutil.copy(folder / "qwen2.gguf", blobs / "gguf")
    for name in ("config.json", "model.safetensors"):
        (blobs / name).rename(blobs / f"{name}-hash")
        (commit / name).symlink_to(f"../../blobs/{name}-hash")
    for source in (commit, commit / "model.safetensors"):
        checkpoint = open_checkpoint(source, [tmp_path])
        assert (checkpoint.name, checkpoint.revision) == ("org/name", "0123abc")
        assert checkpoint.head_weights(0, 0)
    (commit / "small.gguf").symlink_to("../../blobs/gguf")
    assert open_checkpoint(commit / "small.gguf", [tmp_path]).name == "small"


def test_the_list_has_what_can_be_opened(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    refused = folder / "refused"
    refused.mkdir()
    (refused / "config.json").write_text('{"model_type": "mamba"}')
    listed = listed_checkpoints([folder])
    assert sorted(entry.key for entry in listed) == ["llama", "qwen2", SMOLLM2]
    assert [(entry.layers, entry.heads, entry.is_quantized) for entry in listed] == [
        (30, 9, True), (2, 4, False), (2, 4, False)
    ]  # fmt: skip
    for entry in listed:
        checkpoint = open_checkpoint(entry.source, [folder])
        assert (checkpoint.name, checkpoint.is_quantized) == (entry.name, entry.is_quantized)
    assert "refused is of the type 'mamba'" in caplog.text
    assert str(folder) not in caplog.text


def test_a_folder_that_only_seems_to_hold_a_model_is_named_in_the_log(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("an-adapter", "a-pointer", "a-mark", "no-weights"):
        (tmp_path / name).mkdir()
    (tmp_path / "an-adapter" / "adapter_config.json").write_text("{}")
    (tmp_path / "a-pointer" / "config.json").write_text(POINTER)
    config = (folder / "llama" / "config.json").read_text()
    (tmp_path / "a-mark" / "config.json").write_text(config, encoding="utf-8-sig")
    (tmp_path / "pointer.gguf").write_text(POINTER)
    (tmp_path / "no-weights" / "config.json").write_text(config)
    (tmp_path / "no-weights" / "model.safetensors").write_text(POINTER)
    assert {entry.key for entry in listed_checkpoints([tmp_path])} <= {SMOLLM2}
    said = [record.getMessage() for record in caplog.records]
    for words in (
        "an-adapter is an adapter",
        "config.json of a-pointer is a Git LFS pointer",
        "config.json of a-mark begins with a byte order mark",
        "pointer.gguf is a Git LFS pointer",
        "model.safetensors of no-weights is a Git LFS pointer",
    ):
        assert sum(words in message for message in said) == 1, words
    shutil.copy(folder / "llama" / "model.safetensors", tmp_path / "no-weights")
    assert [entry.key for entry in listed_checkpoints([tmp_path])][-1:] == ["no-weights"]


def test_the_list_looks_into_folders_of_files_and_caches_of_the_hub(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    shutil.copy(folder / "qwen2.gguf", tmp_path / "files" / "small.gguf")
    shutil.copytree(folder / "llama", tmp_path / "models--org--name" / "snapshots" / "0123abc")
    assert [entry.name for entry in listed_checkpoints([tmp_path])][1:] == ["org/name", "small"]
    assert listed_checkpoints([tmp_path / "missing"]) == listed_checkpoints([])
    commit = tmp_path / "models--org--name" / "snapshots" / "0123abc"
    assert open_checkpoint(commit, [tmp_path]).revision == "0123abc"


def test_checkpoints_with_the_same_name_have_keys_of_their_own(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "llama", tmp_path / "llama")
    assert [entry.key for entry in listed_checkpoints([folder, tmp_path])] == [SMOLLM2, "llama", "qwen2", "llama (2)"]
    names = ["n" * 200 + end for end in "ab"]
    for name in names:
        shutil.copytree(folder / "llama", tmp_path / name)
    listed = listed_checkpoints([tmp_path])[2:]
    assert [entry.name for entry in listed] == [names[0], f"{names[1]} (2)"]
    assert len({entry.key for entry in listed}) == 2
    assert len({queue_name("head", entry.key) for entry in listed}) == 2


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"model_type": "mamba"}, "'mamba'"),
        ({"model_type": ["llama"]}, "list"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"rope_scaling": {"rope_type": "wobbly", "factor": 2.0}}, "wobbly"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0, "twist": 1}}, "rope_scaling.twist"),
        ({"rope_parameters": {"rope_type": ["linear"]}}, "rope_type"),
        ({"attention_sink_size": 4}, "attention_sink_size"),
        ({"hidden_act": "wavy"}, "hidden_act"),
        ({"hidden_act": ["silu"]}, "hidden_act"),
        ({"pretraining_tp": 2}, "pretraining_tp"),
        ({"pretraining_tp": True}, "pretraining_tp"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"hidden_size": 2**70}, "hidden_size"),
        ({"rms_norm_eps": "tiny"}, "rms_norm_eps"),
    ],
)
def test_what_a_run_cannot_reproduce_is_refused_by_name(stated: dict[str, Any], named: str, folder: Path) -> None:
    config = json.loads((folder / "llama" / "config.json").read_text())
    assert readable_architecture(config, "It").L == 2
    with pytest.raises(CheckpointError, match=named):
        readable_architecture({**config, **stated}, "It")


def test_what_transformers_itself_cannot_run_or_reads_in_two_ways_is_refused(tmp_path: Path) -> None:
    scaled = {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}}
    by_layer = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7}
    for family, stated in (("llama", scaled), ("mistral", by_layer), ("qwen2", by_layer | {"sliding_window": None})):
        small_model(family).save_pretrained(tmp_path / family)
        path = tmp_path / family / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **stated}))
        with pytest.raises(CheckpointError, match=r"partial_rotary_factor|layer_types|window"):
            open_checkpoint(tmp_path / family, [tmp_path])


def test_a_field_of_another_family_is_refused() -> None:
    for path in (PROJECT / "worksheets" / "models").glob("*.json"):
        config = json.loads(path.read_text())["config"]
        if config["model_type"] in CHECKPOINT_RULES:
            assert readable_architecture(config, path.stem).d
            with pytest.raises(CheckpointError, match="clip_qkv"):
                readable_architecture({**config, "clip_qkv": 8}, path.stem)
        else:
            with pytest.raises(CheckpointError, match=config["model_type"]):
                readable_architecture(config, path.stem)
    assert CHECKPOINT_RULES.keys() <= table_names()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda _folder: None, INDEX),
        (lambda folder: (folder / "config.json").unlink(), "config.json"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), "config.json"),
        (lambda folder: (folder / "config.json").write_text("{}"), "type"),
        (lambda folder: (folder / "adapter_config.json").write_text("{}"), "adapter"),
        (lambda folder: (folder / "adapter_model.safetensors").write_bytes(b""), "adapter"),
        (lambda folder: (folder / "config.json").write_text(POINTER), r"config\.json of model is a Git LFS pointer"),
        (lambda folder: (folder / "model.safetensors").write_text(POINTER), r"model\.safetensors is a Git LFS pointer"),
        (lambda folder: (folder / "config.json").write_text("{}", encoding="utf-8-sig"), "byte order mark"),
        (lambda folder: (folder / "config.json").write_text("{}", encoding="utf-16"), "byte order mark"),
        (lambda folder: (folder / INDEX).write_text('{"weight_map": {"a": "../b.safetensors"}}'), INDEX),
    ],
)
def test_folders_that_are_not_whole_get_one_sentence(
    change: Callable[[Path], Any], named: str, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "llama", tmp_path / "model")
    if named == INDEX:
        (tmp_path / "model" / "model.safetensors").unlink()
    change(tmp_path / "model")
    with pytest.raises(CheckpointError, match=named):
        open_checkpoint(tmp_path / "model", [tmp_path])
