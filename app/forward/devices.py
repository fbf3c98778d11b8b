"""What is asked of the machine: which devices are here, their names, their free bytes, and the most bytes in use.

torch is imported inside the functions: it costs seconds and 190 MB.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

DEVICES = ("cpu", "cuda", "mps", "meta")


def devices_here() -> tuple[str, ...]:
    """The devices this machine has, the fastest first; "meta", which computes nothing, last."""
    import torch

    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True, "meta": True}
    return tuple(device for device, is_here in here.items() if is_here)


def device_name(device: str) -> str:
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    return {"cpu": _cpu_name(), "mps": "Apple GPU", "meta": "shapes only"}[device]


def _cpu_name() -> str:
    import platform

    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def warm_up(device: str) -> None:
    """Start the threads and load the libraries first: their time and memory are not the head's."""
    import torch

    ones = torch.ones(256, 256, device=device)
    torch.softmax(ones @ ones, dim=1)


def finish(device: str) -> None:
    """Wait for the device: a GPU answers before it has computed."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    if device == "mps":
        torch.mps.synchronize()


def available_bytes(device: str) -> int | None:
    """Bytes that can still be taken on this device; None on the meta device, which takes none."""
    if device == "meta":
        return None
    if device == "cpu":
        return _available_to_cpu()
    import torch

    if device == "cuda":
        # What torch keeps for reuse is free for the next head.
        return int(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())
    return int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())


def _available_to_cpu() -> int:
    import psutil

    free = int(psutil.virtual_memory().available)
    # A container's own limit (cgroup v2) stands below the machine's memory, and the machine does not show it.
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text())
        cache = next(x for x in (group / "memory.stat").read_text().splitlines() if x.startswith("inactive_file "))
        free = min(free, int((group / "memory.max").read_text()) - used + int(cache.split()[1]))
    return max(free, 0)


def start_counting(device: str) -> tuple[int, int] | None:
    """Bytes in use now, and those of them that mirror files; None where the device keeps no high-water mark."""
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated(), 0
    if device != "cpu":
        return None
    _give_back_freed_memory()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # man 5 proc: 5 resets the peak resident set, VmHWM
        return _resident("VmRSS"), _resident("RssFile")
    except (OSError, StopIteration):
        return None


def bytes_since(device: str, start: tuple[int, int] | None) -> int | None:
    """The most bytes in use since the start, above what was in use then."""
    if start is None:
        return None
    in_use, files = start
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated() - in_use
    # Pages of torch's own libraries, read in at the first use of an operation, are no tensors.
    return _resident("VmHWM") - in_use - (_resident("RssFile") - files)


def _resident(name: str) -> int:
    """A figure of /proc/self/status in bytes; the file says kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _give_back_freed_memory() -> None:
    """Memory that an earlier run freed and the process kept would be used again unseen."""
    import ctypes

    with suppress(OSError, AttributeError, TypeError):  # glibc alone has malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
