"""A real attention head or layer, line by line, checked against the table: the code that is shown is the code that ran.

torch is imported inside the functions that run a head and never with this module: it costs seconds and 190 MB.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.forward.devices import (
    DEVICES,
    available_bytes,
    bytes_since,
    device_name,
    devices_here,
    finish,
    start_counting,
    warm_up,
)
from app.forward.lines import ForwardError, Line, listing
from app.forward.memory import bytes_needed
from app.forward.program import DTYPES, MAX_SEED, RUNNABLE, is_layer, notes, program, variables_of
from app.models.architecture import Architecture
from app.shapes.tensors import SINGLE_HEAD

__all__ = [
    "DEVICES",
    "DTYPES",
    "MAX_SEED",
    "RUNNABLE",
    "Executed",
    "ForwardError",
    "HeadRun",
    "Line",
    "Picture",
    "available_bytes",
    "bytes_needed",
    "bytes_since",
    "disagreements",
    "execute",
    "listing",
    "notes",
    "program",
    "run_head",
    "start_counting",
]

MAX_CELLS = 100
# On a CPU, heads of at most so many tokens run twice, once unseen: at larger sizes the first use costs next to nothing.
MAX_REHEARSED = 1024
# Of the free bytes, how many a head may plan for: libraries take workspaces, and other programs live here too.
USABLE = 0.9


@dataclass(frozen=True)
class Picture:
    """One head's weights as at most 100 × 100 means, each over side × side weights (fewer in the last ones)."""

    head: int
    side: int
    cells: list[list[float]]


@dataclass(frozen=True)
class HeadRun:
    """What one run showed of one head, or of a layer. Shapes are rows × columns as torch reported them, by table key.

    head, kv_head: None of a layer, whose scores and weights have the shape of one head in `shapes`.
    milliseconds: the head or layer alone, with X and the weights given; None on the meta device.
    peak_bytes: measured, None where it cannot be; needed_bytes: computed from the table's shapes.
    row_sums: least and greatest sum of a row of weights, of all heads that ran; None, like the picture, where there are
    no finite weights.
    """

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
    picture: Picture | None
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data for JSON, with the text of every line beside its parts."""
        return asdict(self) | {"lines": [asdict(line) | {"text": line.text} for line in self.lines]}


@dataclass(frozen=True)
class Executed:
    """The variables a program left behind, how long its timed lines took and how many bytes it took at most."""

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
) -> HeadRun:
    """Run one head, or what else the topic is about, on this machine, and compare every shape with the topic's table.

    Of a layer, `head` is the one whose picture is taken. Without a device: CUDA, else Apple's MPS, else the CPU. The
    device "meta" gives true shapes of any size, no values. Raises ForwardError with one sentence.
    """
    device = _device(device)
    lines = program(architecture, tokens, head, dtype, device, seed, topic)
    needed = _fitting(architecture, tokens, dtype, device, topic)
    ran = _executed(lines, device, needed, topic, rehearsed=device == "cuda" or tokens <= MAX_REHEARSED)
    names = variables_of(lines, topic)
    shapes = {key: list(ran.variables[name].shape) for key, name in names.items()}
    wrong = disagreements(shapes, architecture, tokens, topic)
    one = None if is_layer(topic) else head
    row_sums, picture = (
        (None, None) if device == "meta" else _look(ran.variables["A"], ran.variables[names["weights"]], head)
    )
    overflow = ("not-finite",) if device != "meta" and picture is None else ()
    return HeadRun(
        model=architecture.name,
        family=architecture.family,
        topic=topic,
        tokens=tokens,
        head=one,
        kv_head=None if one is None else one // architecture.query_heads_per_kv_head,
        device=device,
        device_name=device_name(device),
        dtype=dtype,
        seed=seed,
        milliseconds=ran.milliseconds,
        peak_bytes=ran.peak_bytes,
        needed_bytes=needed,
        shapes=shapes,
        agrees=not wrong,
        disagreements=wrong,
        row_sums=row_sums,
        picture=picture,
        lines=tuple(_with_shapes(line, ran.variables) for line in lines),
        notes=(*notes(architecture, tokens), *overflow),
    )


def disagreements(
    shapes: Mapping[str, list[int]], architecture: Architecture, tokens: int, topic: str = SINGLE_HEAD.key
) -> tuple[str, ...]:
    """The keys whose shape, as torch reported it, is not the table's."""
    table = RUNNABLE[topic].shapes({**architecture.symbols, "N": tokens})
    return tuple(key for key, shape in table.items() if shapes[key] != list(shape))


def execute(
    lines: tuple[Line, ...],
    given: Mapping[str, Any] | None = None,
    *,
    device: str = "cpu",
    rehearsed: bool = False,
) -> Executed:
    """Run the lines as they are; `device` is the one they were written for.

    `given` holds tensors, by the table's keys, that stand in for the random ones. `rehearsed` runs everything once
    before: at the first use of a shape, libraries choose kernels and take workspaces that are not the head's.
    Seeds torch's own generator, as the lines say.
    """
    replaced = {SINGLE_HEAD[key].letter: tensor for key, tensor in (given or {}).items()}
    preparing = [_compiled(line) for line in lines if not line.timed and not _needless(line, replaced)]
    timed = [_compiled(line) for line in lines if line.timed]
    warm_up(device)
    if rehearsed:
        _run(timed, _prepared(preparing, replaced))
    start = start_counting(device)
    variables = _prepared(preparing, replaced)
    finish(device)
    began = time.perf_counter()
    _run(timed, variables)
    finish(device)
    seconds = time.perf_counter() - began
    return Executed(variables, None if device == "meta" else seconds * 1000, bytes_since(device, start))


def _compiled(line: Line) -> Any:
    return compile(line.code, "<head>", "exec")


def _needless(line: Line, replaced: Mapping[str, Any]) -> bool:
    """Whether everything a line makes is replaced."""
    return bool(line.names) and set(line.names) <= replaced.keys()


def _prepared(codes: list[Any], replaced: dict[str, Any]) -> dict[str, Any]:
    """The variables before the head or layer itself: one line may make two tensors, of which one is replaced."""
    variables = dict(replaced)
    _run(codes, variables)
    return variables | replaced


def _run(codes: list[Any], variables: dict[str, Any]) -> None:
    for code in codes:
        exec(code, variables)  # noqa: S102 - fixed text and checked numbers of program(), nothing a person typed


def _executed(lines: tuple[Line, ...], device: str, needed: int, topic: str, rehearsed: bool) -> Executed:
    import torch

    try:
        return execute(lines, device=device, rehearsed=rehearsed)
    except torch.OutOfMemoryError:
        raise _too_large(needed, available_bytes(device) or 0, device, topic) from None


def _with_shapes(line: Line, variables: Mapping[str, Any]) -> Line:
    return replace(line, shapes=tuple(tuple(variables[name].shape) for name in line.names))


def _look(weights: Any, of_head: Any, head: int) -> tuple[tuple[float, float] | None, Picture | None]:
    """Sums of rows, in every head there is, and means of one head's cells, both None where a sum is not finite.

    Band by band: no second N × N matrix.
    """
    import torch

    side = math.ceil(len(of_head) / MAX_CELLS)
    sums = [band.float().sum(-1).flatten() for band in weights.split(side, dim=-2)]
    least, most = (float(end) for end in torch.aminmax(torch.cat(sums)))
    if not (math.isfinite(least) and math.isfinite(most)):
        return None, None
    means = (band.float().mean(0)[None] for band in of_head.split(side))
    # In ceil mode the last mean is over the weights that are left.
    cells = [torch.nn.functional.avg_pool1d(row, side, ceil_mode=True)[0] for row in means]
    rounded = [[round(mean, 6) for mean in row] for row in torch.stack(cells).tolist()]
    return (least, most), Picture(head, side, rounded)


def _device(asked: str | None) -> str:
    """The device asked for, or the fastest one here; raises ForwardError where this machine does not have it."""
    here = devices_here()
    if asked is None:
        return here[0]
    if asked in here or asked not in DEVICES:  # what is no device at all, program() refuses with those there are
        return asked
    raise ForwardError(f"This machine has no {asked} device: choose one of {', '.join(here)}.")


def _fitting(architecture: Architecture, tokens: int, dtype: str, device: str, topic: str) -> int:
    """The bytes the head or layer needs; raises ForwardError where the device has too few free."""
    needed, free = bytes_needed(architecture, tokens, dtype, topic), available_bytes(device)
    if free is not None and needed > USABLE * free:
        raise _too_large(needed, free, device, topic)
    return needed


def _too_large(needed: int, free: int, device: str, topic: str) -> ForwardError:
    what = "layer" if is_layer(topic) else "head"
    return ForwardError(
        f"This {what} needs {needed:,} bytes and {device} has {free:,} free, of which {USABLE:.0%} may be used: "
        'choose fewer tokens, or the device "meta" for the shapes alone.'
    )
