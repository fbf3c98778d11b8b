"""Runs the program of an attention head or layer in torch, and compares every shape with the table.

The lines that are shown are the lines that ran. torch is imported inside functions: it takes seconds and 190 MB to
load.
"""

from __future__ import annotations

import ctypes
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.forward.lines import ForwardError, ProgramLine
from app.forward.program import DEVICES, architecture_of, notes, program, runnable_table, variable_names
from app.machine.memory import available_memory
from app.models.architecture import Architecture
from app.shapes.table import TensorTable
from app.topics.registry import TOPICS
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

MAX_PICTURE_CELLS = 100  # rows and columns of a picture
# On a CPU, programs of at most this many tokens run twice, the first time unmeasured: at larger sizes the first use of
# an operation costs next to nothing compared with the operation.
MAX_REHEARSED_TOKENS = 1024
# The share of the free bytes that a program may plan for: libraries need workspaces, and other processes run here.
USABLE_SHARE = 0.9


@dataclass(frozen=True)
class WeightsPicture:
    """One head's N × N attention weights as at most 100 × 100 means.

    Each cell is the mean over a square of side × side weights, fewer in the last row and column of cells.
    """

    head: int
    side: int
    cells: list[list[float]]


@dataclass(frozen=True)
class HeadRun:
    """The results of running a head or layer."""

    model: str
    family: str
    topic: str
    tokens: int
    head: int | None
    kv_head: int | None
    device: str
    device_name: str
    dtype: str
    seed: int
    milliseconds: float | None
    peak_bytes: int | None
    needed_bytes: int
    shapes: dict[str, list[int]]
    agrees: bool
    disagreements: tuple[str, ...]
    row_sums: tuple[float, float] | None
    picture: WeightsPicture | None
    lines: tuple[ProgramLine, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data for JSON; each line has its "text" as well as its parts."""
        return asdict(self) | {"lines": [asdict(line) | {"text": line.text} for line in self.lines]}


HEAD_RUNS = TypeAdapter(HeadRun)  # reads what `as_dict` made, directly or from JSON


@dataclass(frozen=True)
class Executed:
    """A finished program: its variables, the time of its timed lines, and its peak memory in bytes.

    The peak is None if it isn't known, or if the system reports less than the tensors made take.
    """

    variables: dict[str, Any]
    milliseconds: float | None
    peak_bytes: int | None


def run_head(
    architecture: Architecture,
    tokens: int,
    *,
    head: int = 0,
    device: str | None = None,
    dtype: str = "float32",
    seed: int = 0,
    topic: str = SINGLE_HEAD.key,
    decoder_tokens: int | None = None,
    usable_share: float = USABLE_SHARE,
) -> HeadRun:
    """Run the head or layer that a topic is about, on this machine, and compare it with the topic's table."""
    device = available_device(device)
    lines = program(architecture, tokens, head, dtype, device, seed, topic, decoder_tokens)
    table, sizes = runnable_table(topic, architecture, tokens, decoder_tokens)
    needed = bytes_needed(architecture, tokens, dtype, topic, decoder_tokens)
    with within_memory(needed, device, usable_share, _("Choose fewer tokens, or the meta device for only the shapes.")):
        executed = execute(lines, device=device, rehearsed=device == "cuda" or tokens <= MAX_REHEARSED_TOKENS)
    variables, names = executed.variables, variable_names(lines, table)
    shapes = {key: list(variables[name].shape) for key, name in names.items()}
    differing = disagreements(shapes, table, sizes)
    is_layer, group = TOPICS[topic].is_layer, architecture_of(topic, architecture).query_heads_per_kv_head
    row_sums, picture, remarks = None, None, notes(architecture, tokens, topic)
    if device != "meta":
        # A holds the weights of all heads that ran; in a layer, the table's weights may be one head's, A_head.
        weights = variables[names["weights"]]
        first_text = weights[(0,) * (weights.dim() - 3)]
        one_head = first_text[head] if first_text.dim() == 3 else first_text
        row_sums, picture = _summarize_weights(variables["A"], one_head, head)
        remarks = remarks if row_sums else (*remarks, "not-finite")
    return HeadRun(
        model=architecture.name,
        family=architecture.family,
        topic=topic,
        tokens=tokens,
        head=None if is_layer else head,
        kv_head=None if is_layer else head // group,
        device=device,
        device_name=device_name(device),
        dtype=dtype,
        seed=seed,
        milliseconds=executed.milliseconds,
        peak_bytes=executed.peak_bytes,
        needed_bytes=needed,
        shapes=shapes,
        agrees=not differing,
        disagreements=differing,
        row_sums=row_sums,
        picture=picture,
        lines=with_shapes(lines, variables),
        notes=remarks,
    )


def disagreements(shapes: Mapping[str, list[int]], table: TensorTable, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The keys whose shape, as torch reported it, differs from the table's, in the table's order."""
    return tuple(key for key, shape in table.shapes(sizes).items() if shapes[key] != list(shape))


# Running the lines


def execute(
    lines: Sequence[ProgramLine],
    given: Mapping[str, Any] | None = None,
    *,
    device: str = "cpu",
    rehearsed: bool = False,
) -> Executed:
    """Run the lines, of which the timed ones are last, with `given` variables in place of what a line makes."""
    replaced = dict(given or {})
    kept = [line for line in lines if line.timed or not line.names or not set(line.names) <= replaced.keys()]
    preparing = prepare(line for line in kept if not line.timed)
    timed = prepare(line for line in kept if line.timed)
    warm_up(device)
    if rehearsed:
        timed(preparing(replaced) | replaced)
    start = start_memory_count(device)
    variables = preparing(replaced) | replaced  # put back: one line may make two tensors
    wait_for_device(device)
    began = time.perf_counter()
    variables = timed(variables)
    wait_for_device(device)
    seconds = time.perf_counter() - began
    peak = peak_bytes_since(device, start)
    made = _storages(variables).items() - _storages(replaced).items()
    if peak is not None and peak < sum(size for _storage, size in made):
        peak = None
    return Executed(variables, None if device == "meta" else seconds * 1000, peak)


def prepare(lines: Iterable[ProgramLine]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Compile the lines to a function that runs them on given variables and returns all variables."""
    codes = [compile(line.code, "<head>", "exec") for line in lines]

    def run(given: Mapping[str, Any]) -> dict[str, Any]:
        variables = dict(given)
        for code in codes:
            exec(code, variables)  # noqa: S102 - fixed text and checked numbers of program(), nothing a person typed
        return variables

    return run


def with_shapes(lines: Iterable[ProgramLine], variables: Mapping[str, Any]) -> tuple[ProgramLine, ...]:
    """The lines with the shapes that their tensors have at the end of the run."""

    def shapes(line: ProgramLine) -> tuple[tuple[int, ...], ...]:
        values = (variables[name] for name in line.names)
        return tuple(tuple(value.shape) for value in values if hasattr(value, "shape"))

    return tuple(replace(line, shapes=shapes(line)) for line in lines)


def _summarize_weights(
    weights: Any, head_weights: Any, head: int
) -> tuple[tuple[float, float] | None, WeightsPicture | None]:
    import torch

    rows, columns = head_weights.shape
    side = math.ceil(rows / MAX_PICTURE_CELLS)
    sums = [band.float().sum(-1).flatten() for band in weights.split(side, dim=-2)]
    least, greatest = (float(end) for end in torch.aminmax(torch.cat(sums)))
    if not (math.isfinite(least) and math.isfinite(greatest)):
        return None, None
    if rows != columns:
        return (least, greatest), None
    # First the mean down each band of `side` rows, one row of N numbers; then along it, over `side` columns each.
    means = (band.float().mean(0)[None] for band in head_weights.split(side))
    # In ceil mode the last mean is over the remaining columns.
    cells = [torch.nn.functional.avg_pool1d(row, side, ceil_mode=True)[0] for row in means]
    rounded = [[round(mean, 6) for mean in row] for row in torch.stack(cells).tolist()]
    return (least, greatest), WeightsPicture(head, side, rounded)


# Memory


def bytes_needed(
    architecture: Architecture,
    tokens: int,
    dtype: str = "float32",
    topic: str = SINGLE_HEAD.key,
    decoder_tokens: int | None = None,
) -> int:
    """The most bytes that a program's tensors take at once.

    The program runs on torch's device "meta", which makes tensors without numbers; every storage alive is counted
    after each of torch's operations.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    class CountStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]
        peak = 0
        alive: Mapping[Any, int] = {}

        def __torch_dispatch__(self, operation: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = operation(*args, **(kwargs or {}))
            before = {storage: size for storage, size in self.alive.items() if not storage.expired()}
            self.alive = before | _storages(result)
            self.peak = max(self.peak, sum(self.alive.values()))
            return result

    lines = program(architecture, tokens, dtype=dtype, device="meta", topic=topic, decoder_tokens=decoder_tokens)
    run, counted = prepare(lines), CountStorages()  # type: ignore[no-untyped-call]
    with counted:
        run({})
    return counted.peak


def _storages(values: object) -> dict[Any, int]:
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._pytree import tree_leaves

    storages = [leaf.untyped_storage() for leaf in tree_leaves(values) if hasattr(leaf, "untyped_storage")]
    return {StorageWeakRef(storage): storage.nbytes() for storage in storages}  # type: ignore[no-untyped-call]


@contextmanager
def within_memory(needed: int, device: str, usable_share: float, advice: str) -> Iterator[None]:
    """Raise ForwardError, with the advice, if a run needs more bytes than it may use, or runs out of them all the
    same.
    """
    import torch

    def too_large() -> ForwardError:
        message = _(
            "This run needs {needed} bytes, and {device} has {free} free, of which {share} may be used. {advice}"
        )
        numbers = {"needed": f"{needed:,}", "free": f"{available_bytes(device) or 0:,}", "share": f"{usable_share:.0%}"}
        return ForwardError(message.format(device=device, advice=advice, **numbers))

    free = available_bytes(device)
    if free is not None and needed > usable_share * free:
        raise too_large()
    try:
        yield
    except torch.OutOfMemoryError:
        raise too_large() from None


# The devices of this machine


def available_device(asked: str | None) -> str:
    """The device asked for, or the fastest one here; raises ForwardError for a known one that isn't here."""
    here = devices_here()
    if asked is None:
        return here[0]
    if asked in here or asked not in DEVICES:
        return asked
    message = _("This machine has no {device} device: choose one of {devices}.")
    raise ForwardError(message.format(device=asked, devices=", ".join(here)))


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
