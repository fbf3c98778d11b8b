"""One real attention head, line by line, checked against the table: the code that is shown is the code that ran.

torch is imported inside the functions that run a head and never with this module: it costs seconds and 190 MB.

>>> from app.attention.architecture import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> [line.code for line in program(gpt2, 5) if line.makes == "queries"]
['Q = X @ W_Q']
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .architecture import Architecture, Rotary, TokensError
from .tensors import SINGLE_HEAD

DTYPES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
DEVICES = ("cpu", "cuda", "mps", "meta")
MAX_SEED = 2**32 - 1
MAX_CELLS = 100
# On a CPU, heads of at most so many tokens run twice, once unseen: at larger sizes the first use costs next to nothing.
MAX_REHEARSED = 1024
# Of the free bytes, how many a head may plan for: libraries take workspaces, and other programs live here too.
USABLE = 0.9
# Names of scalings a note may repeat; any other text in a config file stays out of notes and programs.
SCALINGS = frozenset({"dynamic", "linear", "llama3", "longrope", "mrope", "ntk", "proportional", "su", "yarn"})
APPLIED_SCALINGS = frozenset({"linear", "llama3"})


class ForwardError(ValueError):
    """A head that cannot be run; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Line:
    """One line of the program; a line without code is a heading.

    `makes` is the table's key of the tensor the line makes, None for helpers; `names` are the variables whose shapes
    stand beside the line; `timed` lines are the head itself, the others prepare it. `shapes` is what torch reported
    for `names` after a run, empty before one.
    """

    code: str
    makes: str | None = None
    names: tuple[str, ...] = ()
    comment: str = ""
    timed: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def text(self) -> str:
        """The line as a notebook takes it, e.g. 'Q = X @ W_Q  # (100, 128)'."""
        remarks = [*map(str, self.shapes), self.comment]
        said = " ".join(remark for remark in remarks if remark)
        return "  ".join(part for part in (self.code, said and f"# {said}") if part)


@dataclass(frozen=True)
class Picture:
    """The attention weights as at most 100 × 100 means, each over side × side weights (fewer in the last ones)."""

    side: int
    cells: list[list[float]]


@dataclass(frozen=True)
class HeadRun:
    """What one run of one head showed. Shapes are rows × columns as torch reported them, by the table's keys.

    milliseconds: the head alone, with X and the weights given; None on the meta device.
    peak_bytes: measured, None where it cannot be; needed_bytes: computed from the table's shapes.
    row_sums: least and greatest sum of a row of weights; None, like the picture, where there are no finite weights.
    """

    model: str
    family: str
    tokens: int
    head: int
    kv_head: int
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
    """The variables a program left behind, how long its head took and how many bytes it took at most."""

    variables: dict[str, Any]
    milliseconds: float | None
    peak_bytes: int | None


def listing(lines: tuple[Line, ...]) -> str:
    """The whole program as text, ready to paste into a notebook; headings stand after an empty line."""
    return "".join(f"{line.text}\n" if line.code else f"\n{line.text}\n" for line in lines)


def program(
    architecture: Architecture,
    tokens: int,
    head: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    seed: int = 0,
) -> tuple[Line, ...]:
    """The torch program of one head of this model; raises ForwardError where an argument is out of its range.

    Only fixed text and numbers go into it: nothing a person typed, not the model's name either.
    """
    _check(architecture, tokens, head, dtype, device, seed)
    return (
        *_setting(architecture, tokens, dtype, device),
        *_random_tensors(architecture, head, seed),
        *_positions(architecture, device),
        *_projections(architecture),
        *_turns(architecture),
        *_attention(architecture, tokens),
    )


def _setting(architecture: Architecture, tokens: int, dtype: str, device: str) -> Iterator[Line]:
    sizes = (tokens, architecture.d, architecture.d_h, architecture.d_v)
    yield Line("import torch")
    yield Line("", comment="Sizes: tokens, width of the model, width of a query and a key, width of a value")
    # The format "d" lets whole numbers through and refuses everything else.
    yield Line(f"N, d, d_h, d_v = {', '.join(f'{size:d}' for size in sizes)}")
    yield Line(f'device = "{device}"')
    yield Line(f"dtype = torch.{dtype}")


def _random_tensors(architecture: Architecture, head: int, seed: int) -> Iterator[Line]:
    group = architecture.query_heads_per_kv_head
    kv_head = head // group
    shared = f"key/value head {kv_head:d}"
    if group > 1:
        shared += f", read by query heads {kv_head * group:d} to {(kv_head + 1) * group - 1:d}"
    yield Line("", comment="A random input, and this head's weights as before training (biases start at 0: left out)")
    yield Line(f"seed, head, kv_head = {seed:d}, {head:d}, {kv_head:d}")
    yield Line("torch.manual_seed(seed)")
    yield Line("X = torch.randn(N, d, device=device, dtype=dtype)", "input", ("X",))
    yield Line("torch.manual_seed(seed + 1 + 2 * head)", comment=f"query head {head:d}")
    yield _weight(architecture, "W_Q", "d, d_h")
    yield _weight(architecture, "W_O", "d_v, d")
    yield Line("torch.manual_seed(seed + 2 + 2 * kv_head)", comment=shared)
    yield _weight(architecture, "W_K", "d, d_h")
    yield _weight(architecture, "W_V", "d, d_v")


def _weight(architecture: Architecture, name: str, shape: str) -> Line:
    spread = float(architecture.initializer_range)
    return Line(f"{name} = torch.normal(0.0, {spread!r}, ({shape}), device=device, dtype=dtype)", name, (name,))


def _positions(architecture: Architecture, device: str) -> Iterator[Line]:
    half = _pairs(architecture)
    if architecture.causal or half:
        yield Line("", comment="Positions of the tokens")
        yield Line("position = torch.arange(N, device=device)", names=("position",))
    if architecture.rotary and half:
        yield from _angles(architecture, architecture.rotary, half, device)


def _angles(architecture: Architecture, rotary: Rotary, half: int, device: str) -> Iterator[Line]:
    """Rotary embedding (arXiv:2104.09864): pair j of the numbers turns by position · theta^(-2j/width)."""
    # In float32 an angle near 4,096 is off by 0.0002 already; Apple's GPUs have nothing wider.
    precise = "torch.float32" if device == "mps" else "torch.float64"
    pair = f"torch.arange({half:d}, device=device, dtype={precise})"
    yield Line(f"frequency = {float(rotary.theta)!r} ** (-{pair} / {half:d})", names=("frequency",))
    yield from _scaled(architecture, rotary)
    yield Line("angle = position[:, None] * frequency", names=("angle",))
    yield Line("cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)", names=("cos", "sin"))


def _scaled(architecture: Architecture, rotary: Rotary) -> Iterator[Line]:
    """The config's `rope_scaling`, as transformers applies its types "linear" and "llama3"."""
    kind = _scaling(rotary)
    if kind not in APPLIED_SCALINGS:
        return
    factor = _scaling_number(rotary, "factor")
    if kind == "linear":
        yield Line(f"frequency = frequency / {factor!r}", names=("frequency",), comment="rope_scaling linear")
        return
    low, high = _scaling_number(rotary, "low_freq_factor"), _scaling_number(rotary, "high_freq_factor")
    trained = _scaling_number(rotary, "original_max_position_embeddings", architecture.C)
    if low >= high:
        raise ForwardError('In "rope_scaling", "high_freq_factor" must be greater than "low_freq_factor".')
    yield Line(f"waves = {trained!r} * frequency / (2 * torch.pi)", names=("waves",), comment="rope_scaling llama3")
    yield Line(f"keep = ((waves - {low!r}) / ({high!r} - {low!r})).clamp(0, 1)", names=("keep",))
    yield Line(f"frequency = frequency * (keep + (1 - keep) / {factor!r})", names=("frequency",))


def _projections(architecture: Architecture) -> Iterator[Line]:
    yield Line("", comment="The head itself")
    for code, key in (("Q = X @ W_Q", "queries"), ("K = X @ W_K", "keys"), ("V = X @ W_V", "values")):
        yield _head_line(code, key)
    if architecture.qk_norm_eps is not None:
        for name, key in (("Q", "queries"), ("K", "keys")):
            code = f"{name} = torch.rms_norm({name}, (d_h,), eps={float(architecture.qk_norm_eps)!r})"
            yield _head_line(code, key, comment="its learned weight starts at 1")


def _turns(architecture: Architecture) -> Iterator[Line]:
    """The half-split convention of transformers: number j and number j + width/2 are one pair."""
    half = _pairs(architecture)
    if not half:
        return
    still = architecture.d_h - 2 * half
    for name, key in (("Q", "queries"), ("K", "keys")):
        first, second, rest = f"{name}1", f"{name}2", f"{name}3"
        names = (first, second, rest) if still else (first, second)
        widths = f"({half:d}, {half:d}, {still:d})" if still else f"{half:d}"
        tail = f", {rest}" if still else ""
        yield Line(f"{', '.join(names)} = {name}.split({widths}, dim=1)", names=names, timed=True)
        turned = f"{first} * cos - {second} * sin, {second} * cos + {first} * sin{tail}"
        yield _head_line(f"{name} = torch.cat(({turned}), dim=1)", key)


def _attention(architecture: Architecture, tokens: int) -> Iterator[Line]:
    yield _head_line("S = Q @ K.T", "scores")
    yield Line("S /= d_h**0.5", names=("S",), timed=True)
    if architecture.causal:
        mask = 'S.masked_fill_({}, float("-inf"))'
        yield Line(mask.format("position > position[:, None]"), names=("S",), comment="no later token", timed=True)
        if _windowed(architecture, tokens):
            # Compared, not subtracted: a difference of positions would be an N × N table of 8-byte numbers.
            outside = mask.format(f"position[:, None] >= position + {architecture.window:d}")
            yield Line(outside, names=("S",), comment="nor one before the window", timed=True)
    yield _head_line("A = torch.softmax(S, dim=1)", "weights")
    yield _head_line("C = A @ V", "context")
    yield _head_line("O = C @ W_O", "output")


def _head_line(code: str, key: str, comment: str = "") -> Line:
    return Line(code, key, (SINGLE_HEAD[key].letter,), comment, timed=True)


def _pairs(architecture: Architecture) -> int:
    """How many pairs of numbers of a query turn; none without rotary embedding. An odd number has no partner."""
    return architecture.rotary.width // 2 if architecture.rotary else 0


def _windowed(architecture: Architecture, tokens: int) -> bool:
    return architecture.causal and architecture.window is not None and architecture.window < tokens


def _scaling(rotary: Rotary) -> str | None:
    """The type of the config's rope_scaling, "other" where the name is unknown, None where nothing is scaled."""
    kind = rotary.scaling.get("rope_type", rotary.scaling.get("type"))
    if kind is None or kind == "default":
        return None
    return kind if isinstance(kind, str) and kind in SCALINGS else "other"


def _scaling_number(rotary: Rotary, name: str, default: int | None = None) -> float:
    value = rotary.scaling.get(name, default)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12:
        return float(value)
    raise ForwardError(f'"rope_scaling" must state "{name}" as a number above zero.')


def notes(architecture: Architecture, tokens: int) -> tuple[str, ...]:
    """Short keys for what a reader should know about this head, each a sentence in the templates."""
    rotary = architecture.rotary
    scaling = _scaling(rotary) if rotary else None
    found = {
        "biases-left-out": bool(architecture.biases),
        "norm-weights-are-ones": architecture.qk_norm_eps is not None,
        "keys-shared": architecture.query_heads_per_kv_head > 1,
        "window": _windowed(architecture, tokens),
        f"rope-scaling-applied:{scaling}": scaling in APPLIED_SCALINGS,
        f"rope-scaling-not-applied:{scaling}": scaling is not None and scaling not in APPLIED_SCALINGS,
        "rotary-odd-width": rotary is not None and rotary.width % 2 == 1,
    }
    return tuple(key for key, holds in found.items() if holds)


def bytes_needed(architecture: Architecture, tokens: int, dtype: str = "float32") -> int:
    """The most bytes alive at once while the program runs, from the table's shapes and the rotary numbers.

    As in a notebook, every tensor stays until the end, so that is the widest moment unless N is very small. The mask,
    one byte a weight, is gone before the weights are made and never decides.
    """
    element = DTYPES[dtype]
    cells = {key: math.prod(shape) for key, shape in SINGLE_HEAD.shapes(_sizes(architecture, tokens)).items()}
    half = tokens * _pairs(architecture)
    # Beside the table: positions, angles, cosines and sines, and the queries and keys from before they were turned.
    kept = 8 * tokens + half * (8 + 2 * element) + (cells["queries"] + cells["keys"] if half else 0) * element
    not_yet_made = sum(cells[key] for key in ("scores", "weights", "context", "output")) * element
    turning = cells["keys"] * element if half else 0  # two half results, while they are put side by side
    norm = cells["keys"] * 12 if architecture.qk_norm_eps is not None else 0  # in 4 bytes: copy, squares, result
    return sum(cells.values()) * element + kept + max(0, turning - not_yet_made, norm - not_yet_made)


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


def run_head(
    architecture: Architecture,
    tokens: int,
    *,
    head: int = 0,
    device: str | None = None,
    dtype: str = "float32",
    seed: int = 0,
) -> HeadRun:
    """Run one head on this machine and compare every shape with the table; raises ForwardError with one sentence.

    Without a device: CUDA, else Apple's MPS, else the CPU. The device "meta" gives true shapes of any size, no values.
    """
    device = _device(device)
    lines = program(architecture, tokens, head, dtype, device, seed)
    needed = _fitting(architecture, tokens, dtype, device)
    ran = _executed(lines, device, needed, rehearsed=device == "cuda" or tokens <= MAX_REHEARSED)
    shapes = {tensor.key: list(ran.variables[tensor.letter].shape) for tensor in SINGLE_HEAD.tensors}
    wrong = disagreements(shapes, architecture, tokens)
    row_sums, picture = (None, None) if device == "meta" else _look(ran.variables["A"])
    overflow = ("not-finite",) if device != "meta" and picture is None else ()
    return HeadRun(
        model=architecture.name,
        family=architecture.family,
        tokens=tokens,
        head=head,
        kv_head=head // architecture.query_heads_per_kv_head,
        device=device,
        device_name=_device_name(device),
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


def disagreements(shapes: Mapping[str, list[int]], architecture: Architecture, tokens: int) -> tuple[str, ...]:
    """The keys whose shape, as torch reported it, is not the table's."""
    table = SINGLE_HEAD.shapes(_sizes(architecture, tokens))
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
    given = given or {}
    variables: dict[str, Any] = {SINGLE_HEAD[key].letter: tensor for key, tensor in given.items()}
    preparing = [_compiled(line) for line in lines if not line.timed and line.makes not in given]
    head = [_compiled(line) for line in lines if line.timed]
    _warm_up(device)
    if rehearsed:
        _run([*preparing, *head], dict(variables))
    start = start_counting(device)
    _run(preparing, variables)
    _finish(device)
    began = time.perf_counter()
    _run(head, variables)
    _finish(device)
    seconds = time.perf_counter() - began
    return Executed(variables, None if device == "meta" else seconds * 1000, bytes_since(device, start))


def _compiled(line: Line) -> Any:
    return compile(line.code, "<head>", "exec")


def _run(codes: list[Any], variables: dict[str, Any]) -> None:
    for code in codes:
        exec(code, variables)  # noqa: S102 - fixed text and checked numbers of program(), nothing a person typed


def _executed(lines: tuple[Line, ...], device: str, needed: int, rehearsed: bool) -> Executed:
    import torch

    try:
        return execute(lines, device=device, rehearsed=rehearsed)
    except torch.OutOfMemoryError:
        raise _too_large(needed, available_bytes(device) or 0, device) from None


def _with_shapes(line: Line, variables: Mapping[str, Any]) -> Line:
    return replace(line, shapes=tuple(tuple(variables[name].shape) for name in line.names))


def _warm_up(device: str) -> None:
    """Start the threads and load the libraries first: their time and memory are not the head's."""
    import torch

    ones = torch.ones(256, 256, device=device)
    torch.softmax(ones @ ones, dim=1)


def _finish(device: str) -> None:
    """Wait for the device: a GPU answers before it has computed."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    if device == "mps":
        torch.mps.synchronize()


def _look(weights: Any) -> tuple[tuple[float, float] | None, Picture | None]:
    """Sums of rows and means of cells, band by band: no second N × N matrix; None where a sum is not finite."""
    import torch

    side = math.ceil(len(weights) / MAX_CELLS)
    sums, cells = [], []
    for top in range(0, len(weights), side):
        band = weights[top : top + side].float()
        sums.append(band.sum(1))
        # In ceil mode the last mean is over the weights that are left.
        cells.append(torch.nn.functional.avg_pool1d(band.mean(0)[None], side, ceil_mode=True)[0])
    least, most = (float(end) for end in torch.aminmax(torch.cat(sums)))
    if not (math.isfinite(least) and math.isfinite(most)):
        return None, None
    rounded = [[round(mean, 6) for mean in row] for row in torch.stack(cells).tolist()]
    return (least, most), Picture(side, rounded)


def _sizes(architecture: Architecture, tokens: int) -> dict[str, int]:
    stated = {symbol: size for symbol, size in architecture.sizes.items() if size is not None}
    return stated | {"N": tokens}


def _check(architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int) -> None:
    if not _whole(tokens):
        raise ForwardError("The number of tokens must be a whole number.")
    try:
        architecture.check_tokens(tokens)
    except TokensError as refusal:
        raise ForwardError(str(refusal)) from None
    if not _whole(head) or not 0 <= head < architecture.H:
        raise ForwardError(f"The head must be a whole number from 0 to {architecture.H - 1:,}.")
    if not _whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ForwardError(f"The seed must be a whole number from 0 to {MAX_SEED:,}.")
    if dtype not in DTYPES:
        raise ForwardError(f"The number format must be one of {', '.join(DTYPES)}.")
    if device not in DEVICES:
        raise ForwardError(f"The device must be one of {', '.join(DEVICES)}.")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _device(asked: str | None) -> str:
    """The device asked for, or the fastest one here; raises ForwardError where this machine does not have it."""
    import torch

    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True, "meta": True}
    if asked is None:
        return next(device for device, is_here in here.items() if is_here)
    if here.get(asked, True):
        return asked
    choices = ", ".join(device for device, is_here in here.items() if is_here)
    raise ForwardError(f"This machine has no {asked} device: choose one of {choices}.")


def _fitting(architecture: Architecture, tokens: int, dtype: str, device: str) -> int:
    """The bytes the head needs; raises ForwardError where the device has too few free."""
    needed, free = bytes_needed(architecture, tokens, dtype), available_bytes(device)
    if free is not None and needed > USABLE * free:
        raise _too_large(needed, free, device)
    return needed


def _too_large(needed: int, free: int, device: str) -> ForwardError:
    return ForwardError(
        f"This head needs {needed:,} bytes and {device} has {free:,} free, of which {USABLE:.0%} may be used: "
        'choose fewer tokens, or the device "meta" for the shapes alone.'
    )


def _device_name(device: str) -> str:
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
