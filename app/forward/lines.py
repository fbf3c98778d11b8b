"""Lines of torch with the shapes they made beside them, and those that the programs of a head and of a layer share.

>>> Line("Q = X @ W_Q", "queries", ("Q",), shapes=((100, 128),)).text
'Q = X @ W_Q  # (100, 128)'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.models.architecture import Architecture, Rotary

# Names of scalings a note may repeat; any other text in a config file stays out of notes and programs.
SCALINGS = frozenset({"dynamic", "linear", "llama3", "longrope", "mrope", "ntk", "proportional", "su", "yarn"})
APPLIED_SCALINGS = frozenset({"linear", "llama3"})


class ForwardError(ValueError):
    """A head that cannot be run; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Line:
    """One line of the program; a line without code is a heading, and a loop is one line with its body.

    `makes` is the table's key of the tensor the line makes, None for helpers; `names` are the variables whose shapes
    stand beside the line; `timed` lines are the head or layer itself, the others prepare it. `shapes` is what torch
    reported for `names` after a run, empty before one.
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
        first, *body = self.code.split("\n")
        return "\n".join(["  ".join(part for part in (first, said and f"# {said}") if part), *body])


def listing(lines: tuple[Line, ...]) -> str:
    """The whole program as text, ready to paste into a notebook; headings stand after an empty line."""
    return "".join(f"{line.text}\n" if line.code else f"\n{line.text}\n" for line in lines)


def positions(architecture: Architecture, device: str) -> Iterator[Line]:
    half = pairs(architecture)
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
    kind = scaling_of(rotary)
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


def turned(architecture: Architecture, name: str, dim: int, makes: str | None = None) -> Iterator[Line]:
    """Queries or keys, turned; the half-split convention of transformers pairs number j with number j + width/2."""
    half = pairs(architecture)
    if not half:
        return
    still = architecture.d_h - 2 * half
    first, second, rest = f"{name}1", f"{name}2", f"{name}3"
    names = (first, second, rest) if still else (first, second)
    widths = f"({half:d}, {half:d}, {still:d})" if still else f"{half:d}"
    tail = f", {rest}" if still else ""
    yield Line(f"{', '.join(names)} = {name}.split({widths}, dim={dim})", names=names, timed=True)
    parts = f"{first} * cos - {second} * sin, {second} * cos + {first} * sin{tail}"
    yield Line(f"{name} = torch.cat(({parts}), dim={dim})", makes, (name,), timed=True)


def masked(architecture: Architecture, tokens: int) -> Iterator[Line]:
    """What the mask hides, S being one N × N matrix or one for each head; no mask, no line."""
    if not architecture.causal:
        return
    mask = 'S.masked_fill_({}, float("-inf"))'
    yield Line(mask.format("position > position[:, None]"), names=("S",), comment="no later token", timed=True)
    if windowed(architecture, tokens):
        # Compared, not subtracted: a difference of positions would be an N × N table of 8-byte numbers.
        outside = mask.format(f"position[:, None] >= position + {architecture.window:d}")
        yield Line(outside, names=("S",), comment="nor one before the window", timed=True)


def pairs(architecture: Architecture) -> int:
    """How many pairs of numbers of a query turn; none without rotary embedding. An odd number has no partner."""
    return architecture.rotary.width // 2 if architecture.rotary else 0


def windowed(architecture: Architecture, tokens: int) -> bool:
    return architecture.causal and architecture.window is not None and architecture.window < tokens


def scaling_of(rotary: Rotary) -> str | None:
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
