"""Safetensors: one file or several shards, of which only the requested slices are read.

A slice is a view of a mapping of the file until it is converted, so that other heads of a matrix and other layers of a
shard take no memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.checkpoints.checkpoint import CheckpointError, StoredTensor, check_is_itself
from app.translation import gettext as _

if TYPE_CHECKING:
    import torch

MAX_HEADER_BYTES = 8_000_000  # a shard of the largest models has a hundredth of it
_READ = ("F64", "F32", "F16", "BF16")


def header(path: Path) -> Mapping[str, StoredTensor]:
    """The tensors of one file, by name, cached until the file changes."""
    try:
        status = path.stat()
        return _header(path, status.st_size, status.st_mtime_ns)
    except OSError:
        raise CheckpointError(_("{file} can’t be read.").format(file=path.name)) from None


@lru_cache(maxsize=64)
def _header(path: Path, size: int, _changed_at: int) -> Mapping[str, StoredTensor]:
    try:
        with path.open("rb") as file:
            check_is_itself(path.name, file.read(100))
            file.seek(0)
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(MAX_HEADER_BYTES, size - 8):
                raise ValueError
            entries = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        return {name: _entry(name, entry) for name, entry in entries.items()}
    except (struct.error, ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise damaged(path) from None


def _entry(name: str, entry: Mapping[str, Any]) -> StoredTensor:
    shape, dtype = tuple(entry["shape"]), entry["dtype"]
    if not isinstance(dtype, str) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError
    return StoredTensor(name, shape, dtype)


def damaged(path: Path) -> CheckpointError:
    return CheckpointError(_("{file} is damaged, or no safetensors file.").format(file=path.name))


class SafetensorsFiles:
    """The tensors of one model in one file or several shards."""

    is_quantized = False

    def __init__(self, files: Mapping[str, Path | str]) -> None:
        self.names = files.keys()
        self._files = files
        self._opened = cache(_open)

    def stored(self, name: str) -> StoredTensor:
        """Name, shape and dtype of a tensor, from its file's header.

        Raises CheckpointError if its file is missing or damaged or doesn't contain the tensor, and KeyError if no file
        is known for that name.
        """
        path = self._file(name)
        entry = header(path).get(name)
        if entry is None:
            raise CheckpointError(_("{file} has no tensor “{name}”.").format(file=path.name, name=name))
        return entry

    def read(self, name: str, rows: slice, columns: slice) -> torch.Tensor:
        """Rows and columns of a tensor as a copy in float32, without reading the rest."""
        import torch
        from safetensors import SafetensorError

        stored, path = self.stored(name), self._file(name)
        if stored.dtype not in _READ:
            problem = _("{file} stores “{name}” as {dtype}, which can’t be read here.")
            raise CheckpointError(problem.format(file=path.name, name=name, dtype=stored.dtype[:20]))
        try:
            lazy = self._opened(path).get_slice(name)
            values = lazy[rows] if len(stored.shape) == 1 else lazy[rows, columns]
        except SafetensorError:
            raise damaged(path) from None
        wanted: torch.Tensor = values.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        return wanted

    def _file(self, name: str) -> Path:
        path = self._files[name]
        if isinstance(path, str):
            raise CheckpointError(_("The file {file}, which holds “{name}”, is missing.").format(file=path, name=name))
        return path


def _open(path: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError):
        raise damaged(path) from None
