"""The devices of this machine: their names, their free memory, and the most memory that a run took.

torch is imported inside the functions: it takes seconds and 190 MB to load.
"""

from __future__ import annotations

import ctypes
import platform
from contextlib import suppress
from pathlib import Path

from app.machine.memory import available_memory

DEVICES = ("cpu", "cuda", "mps", "meta")


def devices_here() -> tuple[str, ...]:
    """The devices of this machine, fastest first: any of cuda, mps and cpu, then "meta", for shapes only."""
    import torch

    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True, "meta": True}
    return tuple(device for device, is_here in here.items() if is_here)


def device_name(device: str) -> str:
    """The device's name for people: the GPU's or CPU's model name, "Apple GPU" for mps, "shapes only" for meta.

    Raises KeyError for any other device.
    """
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    return {"cpu": _cpu_name(), "mps": "Apple GPU", "meta": "shapes only"}[device]


def _cpu_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def warm_up(device: str) -> None:
    """Run a small float32 product and softmax on a device, so that threads and libraries are loaded before
    measuring.
    """
    import torch

    ones = torch.ones(256, 256, device=device)
    torch.softmax(ones @ ones, dim=1)


def wait_for_device(device: str) -> None:
    """Block until a GPU (cuda or mps) has finished its work; do nothing for other devices."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    if device == "mps":
        torch.mps.synchronize()


def available_bytes(device: str) -> int | None:
    """Bytes that a run can take on a device; None for meta."""
    if device == "meta":
        return None
    if device == "cpu":
        return available_memory()
    import torch

    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())
    return int(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())


def start_memory_count(device: str) -> tuple[int, int] | None:
    """Reset a device's memory high-water mark, and return the start that `peak_bytes_since` measures from."""
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated(), 0
    if device != "cpu":
        return None
    with suppress(OSError, AttributeError, TypeError):  # only glibc has malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # man 5 proc: 5 resets the peak resident set, VmHWM
        return _status_bytes("VmRSS"), _status_bytes("RssFile")
    except (OSError, StopIteration):
        return None


def peak_bytes_since(device: str, start: tuple[int, int] | None) -> int | None:
    """The peak of memory in use since `start_memory_count`, in bytes, less what was in use then."""
    if start is None:
        return None
    in_use, files = start
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated() - in_use
    # Pages of torch's library files, read at the first use of an operation, aren't tensors.
    return _status_bytes("VmHWM") - in_use - (_status_bytes("RssFile") - files)


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
