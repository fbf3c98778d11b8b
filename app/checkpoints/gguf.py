"""GGUF files (llama.cpp): an index of the header, the config in its metadata, and rows of its tensors.

The library `gguf` knows the types and decodes them, but its reader makes an array of every token and merge, which takes
seconds. Here the header is walked once, and arrays are only read on demand.
"""

from __future__ import annotations

import functools
import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from app.checkpoints.checkpoint import CheckpointError, StoredTensor
from app.checkpoints.rules import GGUF_FAMILIES
from app.translation import gettext as _

if TYPE_CHECKING:
    import torch

MAX_GGUF_HEADER_BYTES = 100_000_000  # the most that is read of a header; Gemma's, one of the longest, has 10 million
MAX_GGUF_KEYS = 10_000
MAX_GGUF_TENSORS = 100_000
MAX_GGUF_TEXT_BYTES = 1_000_000  # for a key, a value or one item of an array
MAX_GGUF_ITEMS = 2_000_000  # for all arrays together
MAX_GGUF_AXES = 4
MAX_GGUF_PIECES = 32
ROPE_FACTORS = "rope_freqs.weight"
_PIECE = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_SCALARS = {kind: struct.Struct(f"<{letter}") for kind, letter in _FORMATS.items()}
_FLOAT32 = 6
_LENGTH, _NUMBER = _SCALARS[10], _SCALARS[4]

# The fields of a config.json by a model's metadata, after "llama." and the like.
_CONFIG_FIELDS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
# Further metadata of a model, checked against the tensors or the config.
_CHECKED_FIELDS = {"vocab_size", "attention.value_length", "rope.dimension_count", "rope.scaling.type"}
# Prefixes of metadata that says nothing about what the model computes.
_HARMLESS = ("general.", "tokenizer.", "quantize.", "split.")
# A layout's names by llama.cpp's.
_MODULES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_PERMUTED = (".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias")
_WHOLE_NUMBERS = (0, 1, 30, 28)  # F32, F16, BF16, F64


@dataclass(frozen=True)
class GgufArray:
    """An unread array in the metadata: the type and number of its items, and where the first one begins."""

    item_type: int
    count: int
    offset: int


@dataclass(frozen=True)
class GgufTensor:
    """A tensor in the index: its shape in numpy's order, its ggml type, its file, and its offset there."""

    shape: tuple[int, ...]
    type: int
    offset: int
    path: Path


@dataclass(frozen=True)
class GgufIndex:
    """The header of the file at `path`: metadata by key, and tensors by name, including those in the file's other
    pieces.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself, then the other pieces that hold tensors."""
        return tuple(dict.fromkeys((self.path, *(tensor.path for tensor in self.tensors.values()))))

    @property
    def architecture(self) -> str:
        """The kind of model, as llama.cpp calls it."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def is_quantized(self) -> bool:
        """Whether any tensor has fewer than 16 bits per number."""
        return any(tensor.type not in _WHOLE_NUMBERS for tensor in self.tensors.values())


class _Damaged(Exception):
    """A header that doesn't make sense."""


def pieces_of(path: Path) -> tuple[Path, ...]:
    """All pieces of a file whose first is `path`, by name: m-00001-of-00002.gguf, m-00002-of-00002.gguf."""
    name = _PIECE.fullmatch(path.name)
    if name is None:
        return (path,)
    stem, number, count = name[1], int(name[2]), int(name[3])
    if number != 1 or count > MAX_GGUF_PIECES:
        return ()
    return tuple(path.with_name(f"{stem}-{piece:05}-of-{count:05}.gguf") for piece in range(1, count + 1))


def read_index(path: Path, *others: Path) -> GgufIndex:
    """The header of a file, with its other pieces' tensors, cached until size or time changes."""
    first, *rest = (_read_index(each, each.stat().st_size, each.stat().st_mtime_ns) for each in (path, *others))
    if not rest:
        return first
    tensors = {name: tensor for index in (first, *rest) for name, tensor in index.tensors.items()}
    stated = [(index.metadata.get("split.no"), index.metadata.get("split.count")) for index in (first, *rest)]
    is_whole = stated == [(number, len(stated)) for number in range(len(stated))]
    if not is_whole or len(tensors) != first.metadata.get("split.tensors.count"):
        raise _damaged(path)
    return GgufIndex(path, {**first.metadata, "split.count": 1}, tensors)


@functools.lru_cache(maxsize=32)
def _read_index(path: Path, _size: int, _changed_at: int) -> GgufIndex:
    try:
        with _mapped_header(path) as content:
            return _Walk(content).index(path)
    except (_Damaged, struct.error, UnicodeDecodeError, ValueError):
        raise _damaged(path) from None


def _mapped_header(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        length = min(path.stat().st_size, MAX_GGUF_HEADER_BYTES)
        return mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(_("{file} is damaged, or no GGUF file that can be read here.").format(file=path.name))


class _Walk:
    """A walk through the header of a file, from the byte `at` on."""

    def __init__(self, content: mmap.mmap, at: int = 0) -> None:
        self.content, self.at, self.items = content, at, 0

    def index(self, path: Path) -> GgufIndex:
        """The index of the file at `path`: its metadata, and its tensors with offsets from the beginning of
        the file.
        """
        if self.content[:4] != _MAGIC:
            raise _Damaged
        self.at = 4
        version, tensor_count, key_count = (self._number(form) for form in (_NUMBER, _LENGTH, _LENGTH))
        if version not in (2, 3) or tensor_count > MAX_GGUF_TENSORS or key_count > MAX_GGUF_KEYS:
            raise _Damaged
        metadata = {}
        for _count in range(key_count):
            key = self._text()
            if key in metadata:
                raise _Damaged
            metadata[key] = self.value(self._number(_NUMBER))
        entries = [self._tensor() for _count in range(tensor_count)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20 or alignment & (alignment - 1):
            raise _Damaged
        start = -(-self.at // alignment) * alignment
        tensors = {name: GgufTensor(shape, kind, start + offset, path) for name, shape, kind, offset in entries}
        if len(tensors) != len(entries):
            raise _Damaged
        return GgufIndex(path, metadata, tensors)

    def _number(self, form: struct.Struct) -> Any:
        (number,) = form.unpack_from(self.content, self.at)
        self.at += form.size
        return number

    def _text(self) -> str:
        length = self._number(_LENGTH)
        if length > MAX_GGUF_TEXT_BYTES or self.at + length > len(self.content):
            raise _Damaged
        self.at += length
        return self.content[self.at - length : self.at].decode()

    def value(self, kind: int) -> Any:
        """The next text, number or bool of this type; for an array, its place, for `array_items`.

        Raises _Damaged, or struct.error at the end of the mapping.
        """
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise _Damaged
        number = self._number(_SCALARS[kind])
        return _shortest(number) if kind == _FLOAT32 else number

    def _array(self) -> GgufArray:
        item_type, count = self._number(_NUMBER), self._number(_LENGTH)
        self.items += count
        if self.items > MAX_GGUF_ITEMS or (item_type != _STRING and item_type not in _SCALARS):
            raise _Damaged
        found = GgufArray(item_type, count, self.at)
        if item_type != _STRING:
            self.at += count * _SCALARS[item_type].size
            return found
        at, content, length_of = self.at, self.content, _LENGTH.unpack_from
        for _item in range(count):
            (length,) = length_of(content, at)
            if length > MAX_GGUF_TEXT_BYTES:
                raise _Damaged
            at += 8 + length
        self.at = at
        return found

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, axes = self._text(), self._number(_NUMBER)
        if not 1 <= axes <= MAX_GGUF_AXES:
            raise _Damaged
        shape = tuple(self._number(_LENGTH) for _axis in range(axes))[::-1]
        return name, shape, self._number(_NUMBER), self._number(_LENGTH)


def array_items(index: GgufIndex, key: str) -> list[Any]:
    """All items of the array under a metadata key, read from the file; [] if it isn't an array.

    Raises what opening the file and decoding do, such as UnicodeDecodeError.
    """
    array = index.metadata.get(key)
    if not isinstance(array, GgufArray):
        return []
    with _mapped_header(index.path) as content:
        walk = _Walk(content, array.offset)
        return [walk.value(array.item_type) for _item in range(array.count)]


def _check_places(tensors: Mapping[str, GgufTensor], size: int) -> None:
    end = 0
    for tensor in sorted(tensors.values(), key=lambda tensor: tensor.offset):
        if tensor.offset < end or 0 in tensor.shape:
            raise _Damaged
        block, block_bytes = _block_of(tensor.type)
        if tensor.shape[-1] % block:
            raise _Damaged
        end = tensor.offset + math.prod(tensor.shape) // block * block_bytes
        if end > size:
            raise _Damaged


def _block_of(kind: int) -> tuple[int, int]:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        return GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        raise _Damaged from None


def _shortest(number: float) -> float:
    short = float(f"{number:.7g}")
    return short if struct.pack("<f", short) == struct.pack("<f", number) else number


class GgufFile:
    """The tensors of a GGUF file, read row by row from a mapping of it; heads have `head_width` rows in W_Q and W_K."""

    kind: Literal["gguf"] = "gguf"

    def __init__(self, index: GgufIndex, head_width: int) -> None:
        import numpy as np
        from gguf import GGMLQuantizationType

        for path in index.files:
            try:
                _check_places({n: each for n, each in index.tensors.items() if each.path == path}, path.stat().st_size)
            except _Damaged:
                raise _damaged(path) from None
        self._contents = {path: np.memmap(path, mode="r", dtype=np.uint8) for path in index.files}
        self._tensors, self._file_name, self._head_width = index.tensors, index.path.name, head_width
        self._are_permuted = GGUF_FAMILIES[index.architecture]
        self._types = {kind: GGMLQuantizationType(kind) for kind in {t.type for t in index.tensors.values()}}
        self.names = index.tensors.keys()
        self.is_quantized = index.is_quantized

    def stored(self, name: str) -> StoredTensor:
        tensor = self._tensors[name]
        return StoredTensor(name, tensor.shape, self._types[tensor.type].name)

    def name_of(self, tensor: str) -> str:
        return gguf_name(tensor)

    def is_permuted(self, name: str) -> bool:
        return self._are_permuted and name.endswith(_PERMUTED)

    def read(self, name: str, rows: slice, columns: slice) -> torch.Tensor:
        """A dequantized float32 copy of these rows and columns of a matrix, or these rows of a vector.

        Raises CheckpointError for a type that can't be read.
        """
        if not self.is_permuted(name):
            return self.read_as_stored(name, rows, columns)
        # Row i of a head's first half and row i of its second half are neighbours in the file.
        width = self._head_width
        start, stop, step = rows.indices(self._tensors[name].shape[0])
        first, last = start // width * width, -(-stop // width) * width
        heads = self.read_as_stored(name, slice(first, last), columns)
        pairs = heads.reshape(-1, width // 2, 2, *heads.shape[1:])  # (heads, d_h/2, 2, …)
        in_order = pairs.transpose(1, 2).reshape(heads.shape)
        return in_order[start - first : stop - first : step].contiguous()

    def read_as_stored(self, name: str, rows: slice, columns: slice) -> torch.Tensor:
        import numpy as np
        import torch
        from gguf import dequantize

        tensor = self._tensors[name]
        kind = self._types[tensor.type]
        block, block_bytes = _block_of(tensor.type)
        count, width = tensor.shape if len(tensor.shape) == 2 else (1, tensor.shape[0])
        row_bytes = width // block * block_bytes
        content = self._contents[tensor.path]
        stored = content[tensor.offset : tensor.offset + count * row_bytes].reshape(count, row_bytes)
        is_vector = len(tensor.shape) == 1
        try:
            values = dequantize(np.ascontiguousarray(stored if is_vector else stored[rows]), kind)
        except NotImplementedError:
            problem = _("{file} stores “{name}” as {dtype}, which can’t be read here.")
            raise CheckpointError(problem.format(file=self._file_name, name=name, dtype=kind.name)) from None
        values = values[0, rows] if is_vector else values[:, columns]
        return torch.from_numpy(np.array(values, dtype=np.float32))


def gguf_config(index: GgufIndex, file_name: str) -> dict[str, Any]:
    """The config.json that the metadata amounts to: "model_type", and each stated field of _CONFIG_FIELDS."""
    if index.architecture not in GGUF_FAMILIES:
        problem = _("{file} has the architecture “{name}”; those that can be read here are {known}.")
        known = ", ".join(GGUF_FAMILIES)
        raise CheckpointError(problem.format(file=file_name, name=index.architecture[:40], known=known))
    prefix = f"{index.architecture}."
    known_keys = {prefix + key for key in (*_CONFIG_FIELDS, *_CHECKED_FIELDS)}
    for key, value in index.metadata.items():
        if key not in known_keys and not key.startswith(_HARMLESS):
            _refuse(file_name, key, value)
    fields = {prefix + key: field for key, field in _CONFIG_FIELDS.items()}
    stated = {field: index.metadata[key] for key, field in fields.items() if key in index.metadata}
    config = {"model_type": index.architecture, "num_key_value_heads": stated.get("num_attention_heads"), **stated}
    config["tie_word_embeddings"] = "output.weight" not in index.tensors
    if "token_embd.weight" in index.tensors:
        config["vocab_size"] = index.tensors["token_embd.weight"].shape[0]
    heads, width = config.get("num_attention_heads"), config.get("hidden_size")
    if isinstance(heads, int) and isinstance(width, int) and heads > 0:
        config.setdefault("head_dim", width // heads)
    _check_metadata(index, config, file_name)
    if ROPE_FACTORS in index.tensors:
        config["rope_scaling"] = _rope_scaling(index, config, file_name)
    return config


def _rope_scaling(index: GgufIndex, config: Mapping[str, Any], file_name: str) -> dict[str, Any]:
    tensor, theta, width = index.tensors[ROPE_FACTORS], config.get("rope_theta", 10_000.0), config.get("head_dim")
    with tensor.path.open("rb") as file:
        file.seek(min(tensor.offset, tensor.path.stat().st_size))
        stored = file.read(min(4 * tensor.shape[0], MAX_GGUF_TEXT_BYTES))
    factors = [number for (number,) in struct.iter_unpack("<f", stored[: len(stored) // 4 * 4])]
    settings = {"factor": max(factors, default=0), "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    length = 8192
    is_possible = 1 <= settings["factor"] < 1e6
    if is_possible and isinstance(width, int) and 2 * len(factors) == width and isinstance(theta, float) and theta > 0:
        turns = [length * theta ** (-2 * pair / width) / (2 * math.pi) for pair in range(len(factors))]
        keep = [min(max((turn - 1.0) / (4.0 - 1.0), 0.0), 1.0) for turn in turns]
        expected = [1 / (share + (1 - share) / settings["factor"]) for share in keep]
        if all(map(functools.partial(math.isclose, rel_tol=1e-4), factors, expected)):
            return {"rope_type": "llama3", "original_max_position_embeddings": length, **settings}
    problem = _("{file} has factors for RoPE in “{name}” that aren’t LLaMA 3.1’s.")
    raise CheckpointError(problem.format(file=file_name, name=ROPE_FACTORS))


def _check_metadata(index: GgufIndex, config: Mapping[str, Any], file_name: str) -> None:
    prefix = f"{index.architecture}."
    same = {
        "general.type": "model",
        "split.count": 1,
        f"{prefix}vocab_size": config.get("vocab_size"),
        f"{prefix}attention.value_length": config.get("head_dim"),
        f"{prefix}rope.dimension_count": config.get("head_dim"),
        f"{prefix}rope.scaling.type": "none",
    }
    for key, expected in same.items():
        if index.metadata.get(key, expected) != expected:
            _refuse(file_name, key, index.metadata[key])


def _refuse(file_name: str, key: str, value: object) -> NoReturn:
    problem = _("{file} states “{key}” as {value}, which can’t be run here.")
    shown = _("a list") if isinstance(value, GgufArray) else str(value)[:40]
    raise CheckpointError(problem.format(file=file_name, key=key[:80], value=shown))


def gguf_name(name: str) -> str:
    """llama.cpp's name for a layout's tensor: "layers.0.self_attn.q_proj.weight" is "blk.0.attn_q.weight".

    Raises KeyError for a module that _MODULES lacks.
    """
    module, _dot, kind = name.rpartition(".")
    block = ""
    if module.startswith("layers."):
        _layers, number, module = module.split(".", 2)
        block = f"blk.{number}."
    return f"{block}{_MODULES[module]}.{kind}"
