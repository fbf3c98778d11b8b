"""One head out of a sharded checkpoint of more than 8 GB, from a cold page cache.

The checkpoint has the sizes of LLaMA 2 70B in bfloat16 with few layers. The attention tensors of the layer that is read
are random numbers on disk, W_Q and W_O of 134 MB each; everything else is a hole in a sparse file, which nothing reads.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path

LAYERS, LAYER, HEAD = 5, 3, 41
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "num_hidden_layers": LAYERS,
    "vocab_size": 32000,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
SHARD_BYTES = 2_500_000_000

# What the process that is measured does; it prints seconds and bytes of anonymous memory as JSON.
MEASURED = """
import json, sys, time
from pathlib import Path

def anonymous_bytes():
    status = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(status.partition("\\nAnonymous:")[2].split()[0])

start = anonymous_bytes()
import safetensors, torch
from app.checkpoints.files import open_checkpoint
imported = anonymous_bytes()
folder, layer, head = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
began = time.perf_counter()
checkpoint = open_checkpoint(folder, [folder])
weights = checkpoint.head_weights(layer, head)
seconds = time.perf_counter() - began
read = sum(tensor.numel() for tensor in weights.tensors.values())
print(json.dumps({
    "seconds": seconds, "bytes": 4 * read, "imports": imported - start, "head": anonymous_bytes() - imported,
}))
"""


def tensors() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of the checkpoint with its stored shape."""
    d, kv, d_ff = 8192, 1024, 28672
    yield "model.embed_tokens.weight", (32000, d)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        for name, shape in (("q", (d, d)), ("k", (kv, d)), ("v", (kv, d)), ("o", (d, d))):
            yield f"{prefix}self_attn.{name}_proj.weight", shape
        for name, shape in (("gate", (d_ff, d)), ("up", (d_ff, d)), ("down", (d, d_ff))):
            yield f"{prefix}mlp.{name}_proj.weight", shape
        yield f"{prefix}input_layernorm.weight", (d,)
        yield f"{prefix}post_attention_layernorm.weight", (d,)
    yield "model.norm.weight", (d,)
    yield "lm_head.weight", (32000, d)


def write_checkpoint(folder: Path) -> int:
    """Write the checkpoint into a folder and return its bytes, holes included."""
    shards: list[dict[str, tuple[int, ...]]] = [{}]
    size = 0
    for name, shape in tensors():
        size += 2 * prod(shape)
        if size > SHARD_BYTES:
            shards.append({})
            size = 2 * prod(shape)
        shards[-1][name] = shape
    total, shard_of = 0, dict[str, str]()
    for number, shard in enumerate(shards, 1):
        path = folder / f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        shard_of |= dict.fromkeys(shard, path.name)
        total += _write_shard(path, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shard_of}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return total


def _write_shard(path: Path, shard: dict[str, tuple[int, ...]]) -> int:
    header, begins, end = {}, dict[str, int](), 0
    for name, shape in shard.items():
        begins[name], end = end, end + 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begins[name], end]}
    content = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(content)) + content)
        start = file.tell()
        for name in (name for name in shard if f".{LAYER}.self_attn." in name):
            file.seek(start + begins[name])
            file.write(os.urandom(1 << 20) * (2 * prod(shard[name]) >> 20))
        file.truncate(start + end)
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size


def drop_from_cache(folder: Path) -> None:
    """Ask the system to forget what it has read of these files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_plainly(folder: Path) -> tuple[float, int]:
    """Seconds and bytes of reading the whole of W_Q and W_O from a cold cache, one after the other: the disk's pace."""
    drop_from_cache(folder)
    started, count = time.perf_counter(), 0
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    for letter in "qo":
        name = f"model.layers.{LAYER}.self_attn.{letter}_proj.weight"
        with (folder / index[name]).open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            first, last = json.loads(file.read(length))[name]["data_offsets"]
            file.seek(8 + length + first)
            for _piece in range((last - first) >> 23):
                count += len(file.read(1 << 23))
    return time.perf_counter() - started, count


def measure(folder: Path) -> dict[str, float]:
    """Seconds and bytes of one head in a process of its own, from a cold cache."""
    drop_from_cache(folder)
    command = [sys.executable, "-c", MEASURED, str(folder), str(LAYER), str(HEAD)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def report() -> Iterator[str]:
    """Yield one line for each of three cold starts, and one for the disk."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        total = write_checkpoint(folder)
        yield f"checkpoint: {total / 1e9:.1f} GB, holes included"
        for _run in range(3):
            measured = measure(folder)
            head, imports = measured["head"] / 1e6, measured["imports"] / 1e6
            yield (
                f"head {HEAD} of layer {LAYER}, cold: {measured['seconds']:.2f} s, {measured['bytes'] / 1e6:.1f} MB in "
                f"float32; {head:.0f} MB of anonymous memory, besides {imports:.0f} MB that loading torch takes"
            )
        seconds, count = read_plainly(folder)
        yield f"the disk alone: {count / 1e6:.0f} MB in {seconds:.2f} s"
