"""The memory limit of a container is seen, whichever version of cgroups sets it."""

from __future__ import annotations

from pathlib import Path

from app.machine.memory import available_memory, cgroup_memory_left

MB = 2**20


def write_limit(folder: Path, names: tuple[str, str, str], limit: str) -> None:
    """The files of a cgroup that uses 300 MB, 100 MB of them file cache."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{300 * MB}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {100 * MB}\n")


V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
V2 = ("memory.max", "memory.current", "inactive_file")


def test_the_limit_of_a_service_and_of_what_is_around_it_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/system.slice/shapes.service\n")
    write_limit(tmp_path / "system.slice" / "shapes.service", V2, "max")
    write_limit(tmp_path / "system.slice", V2, str(1000 * MB))
    assert list(cgroup_memory_left(tmp_path, own)) == [800 * MB]


def test_in_a_container_of_version_1_the_path_is_one_of_the_host(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("9:cpu:/docker/abc\n4:memory:/docker/abc\n0::/\n")
    write_limit(tmp_path / "memory", V1, str(512 * MB))
    assert list(cgroup_memory_left(tmp_path, own)) == [312 * MB]


def test_where_there_are_no_cgroups_the_machine_counts(tmp_path: Path) -> None:
    assert list(cgroup_memory_left(tmp_path, tmp_path / "own")) == []
    assert available_memory() > 0
