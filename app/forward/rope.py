"""The lines of a program that rotate queries and keys by their positions: RoPE (Su et al., arXiv:2104.09864).

Pair j of a query's numbers is rotated by the angle position · theta^(-2j/width). A config's `rope_scaling` changes
these frequencies; the types "linear" and "llama3" are applied as transformers does, others are left out with a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.forward.lines import ForwardError, ProgramLine
from app.models.architecture import Architecture, Rotary

# The scaling types whose names a note may repeat; any other text in a config file stays out of notes and programs.
KNOWN_SCALINGS = frozenset({"dynamic", "linear", "llama3", "longrope", "mrope", "ntk", "proportional", "su", "yarn"})
APPLIED_SCALINGS = frozenset({"linear", "llama3"})
MAX_SCALING_NUMBER = 1e12  # exclusive; more in a config file is a mistake


def rotated_pairs(architecture: Architecture) -> int:
    """How many pairs of numbers of a query are rotated: half the rotary width, rounded down; 0 without RoPE."""
    return architecture.rotary.width // 2 if architecture.rotary else 0


def scaling_type(rotary: Rotary) -> str | None:
    """The type of the config's rope_scaling: None if nothing is scaled, "other" if its name is not a known one."""
    name = rotary.scaling.get("rope_type", rotary.scaling.get("type"))
    if name is None or name == "default":
        return None
    return name if isinstance(name, str) and name in KNOWN_SCALINGS else "other"


def angle_lines(architecture: Architecture, device: str) -> Iterator[ProgramLine]:
    """Lines that compute `cos` and `sin`, one row a token and one column a pair; none without RoPE.

    Angles are in float64, on mps in float32. Raises ForwardError if the config's rope_scaling is "linear" or "llama3"
    and lacks a number that this type needs.
    """
    pairs, rotary = rotated_pairs(architecture), architecture.rotary
    if rotary is None or not pairs:
        return
    # In float32 an angle near 4,096 is off by 0.0002 already; Apple's GPUs have nothing wider.
    precise = "torch.float32" if device == "mps" else "torch.float64"
    pair_numbers = f"torch.arange({pairs:d}, device=device, dtype={precise})"
    yield ProgramLine(f"frequency = {float(rotary.theta)!r} ** (-{pair_numbers} / {pairs:d})", names=("frequency",))
    yield from _scaling_lines(architecture, rotary)
    yield ProgramLine("angle = position[:, None] * frequency", names=("angle",))
    yield ProgramLine("cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)", names=("cos", "sin"))


def _scaling_lines(architecture: Architecture, rotary: Rotary) -> Iterator[ProgramLine]:
    """Lines that scale `frequency` for the types "linear" and "llama3"; none for any other type.

    Raises ForwardError if a number that the type needs is missing or out of range, or "low_freq_factor" is not below
    "high_freq_factor".
    """
    scaling = scaling_type(rotary)
    if scaling not in APPLIED_SCALINGS:
        return
    factor = _scaling_number(rotary, "factor")
    if scaling == "linear":
        yield ProgramLine(f"frequency = frequency / {factor!r}", names=("frequency",), comment="rope_scaling linear")
        return
    low, high = _scaling_number(rotary, "low_freq_factor"), _scaling_number(rotary, "high_freq_factor")
    trained_length = _scaling_number(rotary, "original_max_position_embeddings", architecture.C)
    if low >= high:
        raise ForwardError('In "rope_scaling", "high_freq_factor" must be greater than "low_freq_factor".')
    # llama3: pairs that make many turns over the trained length keep their frequency, slow ones are divided by the
    # factor, and those in between are mixed.
    turns = f"{trained_length!r} * frequency / (2 * torch.pi)"
    yield ProgramLine(f"waves = {turns}", names=("waves",), comment="rope_scaling llama3")
    yield ProgramLine(f"keep = ((waves - {low!r}) / ({high!r} - {low!r})).clamp(0, 1)", names=("keep",))
    yield ProgramLine(f"frequency = frequency * (keep + (1 - keep) / {factor!r})", names=("frequency",))


def _scaling_number(rotary: Rotary, field: str, default: int | None = None) -> float:
    """A number of the config's rope_scaling, or `default` if the field is missing.

    Raises ForwardError unless it is a number above zero and below MAX_SCALING_NUMBER.
    """
    value = rotary.scaling.get(field, default)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_SCALING_NUMBER:
        return float(value)
    raise ForwardError(f'"rope_scaling" must state "{field}" as a number above zero.')


def apply_rope(architecture: Architecture, name: str, dim: int, makes: str | None = None) -> Iterator[ProgramLine]:
    """Two lines that rotate the variable `name` along its axis `dim`; none without RoPE.

    As in transformers, number j is paired with number j + width/2. Numbers beyond the rotary width stay unrotated.

    Example: for "Q" with 128 numbers, all rotated, the lines are
        Q1, Q2 = Q.split(64, dim=1)
        Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=1)
    """
    pairs = rotated_pairs(architecture)
    if not pairs:
        return
    unrotated = architecture.d_h - 2 * pairs
    first, second, rest = f"{name}1", f"{name}2", f"{name}3"
    names = (first, second, rest) if unrotated else (first, second)
    widths = f"({pairs:d}, {pairs:d}, {unrotated:d})" if unrotated else f"{pairs:d}"
    tail = f", {rest}" if unrotated else ""
    yield ProgramLine(f"{', '.join(names)} = {name}.split({widths}, dim={dim})", names=names, timed=True)
    rotated = f"{first} * cos - {second} * sin, {second} * cos + {first} * sin{tail}"
    yield ProgramLine(f"{name} = torch.cat(({rotated}), dim={dim})", makes, (name,), timed=True)
