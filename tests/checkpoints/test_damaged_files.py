"""Damaged, truncated and hostile files: one sentence, in bounded time and memory, whatever is in them."""

from __future__ import annotations

import json
import random
import resource
import shutil
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import open_checkpoint
from tests.helpers.small_checkpoints import small_model, write_gguf

MAX_SECONDS, MAX_BYTES = 10.0, 300_000_000  # a machine may be five times slower
HUGE = 2**60


def gguf(keys: int = 0, tensors: int = 0, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest


def text(content: str) -> bytes:
    return struct.pack("<Q", len(content)) + content.encode()


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = text("general.architecture") + struct.pack("<I", 8) + text("llama")
GGUF_FILES = {
    "empty": b"",
    "another magic": b"GGML" + bytes(100),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "2^60 tensors": gguf(tensors=HUGE),
    "2^60 keys": gguf(keys=HUGE),
    "a key of 2^60 bytes": gguf(keys=1, rest=struct.pack("<Q", HUGE)),
    "an array of 2^60 texts": gguf(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 8, HUGE)),
    "an array of arrays": gguf(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 9, 4)),
    "an array beyond the end": gguf(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 4, 1_000_000)),
    "two million empty texts": gguf(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 8, 2_000_000) + bytes(16_000_000)),
    "no such type": gguf(keys=1, rest=text("a") + struct.pack("<I", 99)),
    "no UTF-8": gguf(keys=1, rest=struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<IB", 0, 1)),
    "one key twice": gguf(keys=2, rest=2 * (text("a") + struct.pack("<IB", 0, 1))),
    "the alignment 0": gguf(keys=1, rest=text("general.alignment") + struct.pack("<II", 4, 0)),
    "no architecture": gguf(),
    "nothing but an architecture": gguf(keys=1, rest=LLAMA),
    "2^32 axes": gguf(keys=1, tensors=1, rest=LLAMA + text("t") + struct.pack("<I", 2**32 - 1)),
    "a tensor of 2^60 rows": gguf(keys=1, tensors=1, rest=LLAMA + tensor("token_embd.weight", (64, HUGE))),
    "odd factors for RoPE": gguf(keys=1, tensors=1, rest=LLAMA + tensor("rope_freqs.weight", (HUGE,), 0, HUGE * 8)),
    "factors of 0 for RoPE": gguf(keys=1, tensors=1, rest=LLAMA + tensor("rope_freqs.weight", (8,)) + bytes(99)),
    "one tensor twice": gguf(keys=1, tensors=2, rest=LLAMA + 2 * tensor("t", (4,))),
}


def safetensors(header: object, data: bytes = b"") -> bytes:
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + data


def entry(shape: list[object], start: int, stop: int, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


NORM = "model.norm.weight"
SAFETENSORS_FILES = {
    "empty": b"",
    "seven bytes": bytes(7),
    "a header of 2^60 bytes": struct.pack("<Q", HUGE) + b"{}",
    "no JSON": safetensors(b"{{{{"),
    "a list": safetensors([]),
    "nested JSON": safetensors(b"[" * 5_000_000),
    "many lists": safetensors(b'{"a": [' + b"[]," * 300_000 + b"[]]}"),
    "a number of a million digits": safetensors(b'{"a": {"dtype": "F32", "shape": [' + b"9" * 1_000_000 + b"]}}"),
    "a shape of texts": safetensors({NORM: entry(["64"], 0, 256)}, bytes(256)),
    "a negative shape": safetensors({NORM: entry([-64], 0, 256)}, bytes(256)),
    "a dtype that is a list": safetensors({NORM: entry([64], 0, 256, ["F32"])}, bytes(256)),
    "no tensors": safetensors({}),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small llama, and one as GGUF next to it."""
    folder = tmp_path_factory.mktemp("whole")
    model = small_model("llama", attention_bias=False, mlp_bias=False)
    model.save_pretrained(folder / "llama")
    write_gguf(model, folder / "model.gguf")
    return folder


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """The processor time of a test, and by how much it raises the peak of this process's memory."""
    started, peak = time.process_time(), peak_bytes()
    yield
    assert time.process_time() - started < MAX_SECONDS
    assert peak_bytes() - peak < MAX_BYTES


def peak_bytes() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def use(path: Path) -> None:
    """Open a checkpoint and read all kinds of things from it."""
    checkpoint = open_checkpoint(path, [path.parent])
    checkpoint.layer_weights(1), checkpoint.head_weights(0, 1), checkpoint.final_norm(), checkpoint.output_rows()
    checkpoint.embedding_rows([1, 5])


@pytest.mark.parametrize("content", GGUF_FILES.values(), ids=GGUF_FILES)
def test_a_hostile_gguf_file_gets_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(CheckpointError) as refusal:
        use(tmp_path / "model.gguf")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("content", SAFETENSORS_FILES.values(), ids=SAFETENSORS_FILES)
def test_a_hostile_safetensors_file_gets_one_sentence(content: bytes, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "llama", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError) as refusal:
        use(tmp_path / "model")
    assert len(str(refusal.value)) < 250


def test_a_file_deleted_after_opening_gets_one_sentence(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "llama", tmp_path / "model")
    checkpoint = open_checkpoint(tmp_path / "model", [tmp_path])
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        checkpoint.layer_weights(0)


@pytest.mark.parametrize("change", ["overlap", "gap at the end", "a longer tensor", "another dtype", "another shape"])
def test_offsets_that_contradict_shapes_are_refused(change: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "llama", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    header.pop("__metadata__", None)
    norm = header[NORM]
    if change == "overlap":
        norm["data_offsets"] = header["model.layers.0.input_layernorm.weight"]["data_offsets"]
    elif change == "gap at the end":
        data = data[:-8]
    elif change == "a longer tensor":
        norm["shape"] = [128]
    elif change == "another dtype":
        norm["dtype"] = "F8_E4M3"
    else:
        norm["shape"] = [8, 8]
    path.write_bytes(safetensors(header, data))
    with pytest.raises(CheckpointError):
        use(tmp_path / "model")


@pytest.mark.parametrize("kind", ["gguf", "safetensors"])
def test_changed_bytes_and_cut_files_never_raise_anything_else(kind: str, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - the same damage in each run
    name = "model.gguf" if kind == "gguf" else "model.safetensors"
    content = (whole / ("model.gguf" if kind == "gguf" else "llama/model.safetensors")).read_bytes()
    if kind == "safetensors":
        shutil.copy(whole / "llama" / "config.json", tmp_path / "config.json")
    end = content.index(b"blk.1.ffn_up") if kind == "gguf" else struct.unpack("<Q", content[:8])[0] + 8
    refused = 0
    for attempt in range(60):
        damaged = bytearray(content)
        for _change in range(1 + attempt % 3):
            damaged[chance.randrange(end)] = chance.randrange(256)
        if attempt % 4 == 3:
            damaged = damaged[: chance.randrange(len(damaged))]
        (tmp_path / name).write_bytes(damaged)
        try:
            use(tmp_path / name)
        except CheckpointError:
            refused += 1
    assert refused > 30
