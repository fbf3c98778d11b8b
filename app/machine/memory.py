"""How much main memory a process can still take: the machine's free memory, or a container's limit if that is less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


class _MemoryFiles(NamedTuple):
    """The file names of one version of cgroups, and what it calls the file cache."""

    limit: str
    used: str
    cache: str


_V1 = _MemoryFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _MemoryFiles("memory.max", "memory.current", "inactive_file")


def available_memory() -> int:
    """Bytes of main memory that this process can still take."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return max(0, min([free, *cgroup_memory_left()]))


def cgroup_memory_left(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> Iterator[int]:
    """The bytes left below each memory limit of this process's cgroup and its parents, the innermost first."""
    for folder, files in _own_folders(cgroups, own_cgroups):
        # "max" means no limit in v2. File cache counts as used but can be dropped.
        with suppress(OSError, ValueError, StopIteration):
            limit = int((folder / files.limit).read_text())
            used = int((folder / files.used).read_text())
            stat = (folder / "memory.stat").read_text().splitlines()
            cache = next(int(line.split()[1]) for line in stat if line.startswith(f"{files.cache} "))
            yield limit - used + cache


def _own_folders(cgroups: Path, own_cgroups: Path) -> Iterator[tuple[Path, _MemoryFiles]]:
    with suppress(OSError):
        for line in own_cgroups.read_text().splitlines():
            _number, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            root, files = (cgroups / "memory", _V1) if controllers else (cgroups, _V2)
            inside = PurePosixPath(path.lstrip("/"))
            for folder in (inside, *inside.parents):
                yield root / folder, files
