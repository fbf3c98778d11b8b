"""Fetches a checkpoint from the Hugging Face Hub by its name, pinned to a commit, with only the files needed.

Only commands in the terminal fetch weights; no page does. The token in HF_TOKEN, if set, is sent only to the hub;
HF_ENDPOINT names another hub.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.checkpoints.checkpoint import CheckpointError
from app.checkpoints.files import (
    ADAPTER_FILES,
    CONFIG,
    INDEX,
    ONE_FILE,
    an_adapter,
    damaged_json,
    fields_read,
    file_of,
    json_object,
    readable_architecture,
)
from app.translation import gettext as _

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Report = Callable[[int, int], None]

_SMALL = (CONFIG, INDEX, "tokenizer.json", "tokenizer_config.json")
HUB_TIMEOUT_S = 10.0  # for the hub's answer about a model
MAX_SMALL_BYTES = 60_000_000  # per file


def fetch_checkpoint(
    name: str, folder: Path, *, revision: str = "main", layer: int | None = None, report: Report | None = None
) -> Path:
    """Fetch what the layers up to `layer` need, or all of it, and return the folder for `open_checkpoint`."""
    from httpx2 import HTTPError  # the library's HTTP client
    from huggingface_hub import HfApi, errors

    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=os.environ.get("HF_TOKEN") or False)
    try:
        info = hub.model_info(name, revision=revision, files_metadata=True, timeout=HUB_TIMEOUT_S)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        return _Fetch(hub, name, str(info.sha), folder, sizes).all_files(layer, report)
    except errors.HFValidationError:
        problem = _("“{name}” is not a name on the Hub. Enter organisation and model, such as org/name.")
    except errors.GatedRepoError:
        problem = _("“{name}” is gated: accept its terms on the Hub, and set HF_TOKEN to a token of your account.")
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.RemoteEntryNotFoundError):
        problem = _("There is no model “{name}” on the Hub, or it is private, or not at this revision.")
    except errors.HfHubHTTPError:
        problem = _("The Hub returned an error for “{name}”. Try again in a moment.")
    except (HTTPError, ConnectionError, TimeoutError, errors.LocalEntryNotFoundError):
        fetched = _fetched_before(name, folder, revision)
        if fetched is not None:
            return fetched
        problem = _("Could not reach the Hub for “{name}”, and it has not been fetched before.")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CheckpointError(_("{path} cannot be used: {reason}.").format(path=folder, reason=reason)) from None
    raise CheckpointError(problem.format(name=name[:100])) from None


class _Fetch:
    """The files of one commit, fetched into the cache one after another."""

    def __init__(self, hub: HfApi, name: str, commit: str, cache: Path, sizes: Mapping[str, int]) -> None:
        self.hub, self.name, self.commit, self.cache, self.sizes = hub, name, commit, cache, sizes

    def all_files(self, layer: int | None, report: Report | None) -> Path:
        """Fetch the config, the other small files, then the weights; return the commit's folder."""
        for file in (file for file in _SMALL if self.sizes.get(file, 0) > MAX_SMALL_BYTES):
            problem = _("{file} of “{name}” has more than {most:,} bytes.")
            raise CheckpointError(problem.format(file=file, name=self.name, most=MAX_SMALL_BYTES))
        if self.sizes.keys() & ADAPTER_FILES:
            raise an_adapter(self.name)
        if CONFIG not in self.sizes:
            raise CheckpointError(_("“{name}” has no config.json on the Hub.").format(name=self.name))
        readable_architecture(fields_read(self.json(CONFIG)), self.name)
        folder = self.file(CONFIG).parent
        for file in _SMALL[1:]:
            if file in self.sizes:
                self.file(file)
        weights = self.weight_files(layer)
        total = sum(self.sizes.get(file, 0) for file in weights)
        missing = sum(self.sizes.get(file, 0) for file in weights if not (folder / file).exists())
        if missing > shutil.disk_usage(self.cache).free:
            problem = _("“{name}” needs {needed:.1f} GB more than the disk has room for.")
            needed = (missing - shutil.disk_usage(self.cache).free) / 1e9
            raise CheckpointError(problem.format(name=self.name, needed=needed))
        progress = _progress(total, report)
        for file in weights:
            if (folder / file).exists():
                progress.count(self.sizes.get(file, 0))
            else:
                self.file(file, progress)
        return folder

    def weight_files(self, layer: int | None) -> list[str]:
        """The sorted names of the weight files needed: shards if the hub has an index, or the one file.

        Raises CheckpointError for a damaged index, or if there is neither an index nor model.safetensors.
        """
        if INDEX not in self.sizes:
            if ONE_FILE not in self.sizes:
                raise CheckpointError(_("“{name}” has no safetensors on the Hub.").format(name=self.name))
            return [ONE_FILE]
        shards = self.json(INDEX).get("weight_map")
        if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
            raise damaged_json(file_of(INDEX, self.name))
        needed = {shard for tensor, shard in shards.items() if layer is None or _number_of_layer(tensor) <= layer}
        return sorted(shard for shard in needed if shard in self.sizes)

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; raises CheckpointError for anything else."""
        return json_object(file_of(name, self.name), self.file(name).read_bytes())

    def file(self, name: str, progress: type[_Bar] | None = None) -> Path:
        """Fetch a file, unless the cache has it, and return its path there; reports only with `progress`."""
        bars = progress or _progress(0, None)
        path = self.hub.hf_hub_download(self.name, name, revision=self.commit, cache_dir=self.cache, tqdm_class=bars)
        return Path(path)


class _Bar:
    """Receives the library's progress in place of tqdm, and prints nothing."""

    @classmethod
    def count(cls, more: float | None = 1) -> None:
        """Count more bytes."""


def _progress(total: int, report: Report | None) -> type[_Bar]:
    class Counted(_Bar):
        done = 0

        def __init__(self, *_arguments: object, initial: int = 0, **_options: object) -> None:
            self.n, self.total = initial, total
            self.count(initial)

        @classmethod
        def count(cls, more: float | None = 1) -> None:
            cls.done += int(more or 0)
            if report:
                report(min(cls.done, total), total)

        def update(self, more: float | None = 1) -> None:
            self.count(more)

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def __getattr__(self, _name: str) -> Callable[..., None]:
            return lambda *_arguments, **_options: None

    return Counted


def _number_of_layer(tensor: str) -> int:
    return next((int(part) for part in tensor.split(".") if part.isdecimal() and len(part) < 6), -1)


def _fetched_before(name: str, folder: Path, revision: str) -> Path | None:
    snapshots = folder / f"models--{name.replace('/', '--')}" / "snapshots"
    commits = [path for path in snapshots.glob("*") if (path / CONFIG).is_file()] if snapshots.is_dir() else []
    commits = [path for path in commits if revision == "main" or path.name.startswith(revision)]
    return max(commits, key=lambda path: path.stat().st_mtime, default=None)
