"""The lines of a program that rotate queries and keys by their positions: RoPE (Su et al., arXiv:2104.09864).

Pair j of a query's numbers is rotated by the angle position · theta^(-2j/width). A config's `rope_scaling` changes
these frequencies, and for some types the length of queries and keys. Each type is applied as in transformers; models
with unknown types are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from app.forward.lines import ForwardError, ProgramLine
from app.models.architecture import Architecture, Rotary
from app.translation import gettext as _

# The scaling types that have lines below. With "mrope", plain text is rotated as without it.
APPLIED_SCALINGS = frozenset({"dynamic", "linear", "llama3", "longrope", "mrope", "yarn"})
MAX_SCALING_NUMBER = 1e12  # exclusive; a larger number in a config file is a mistake


def scaling_type(rotary: Rotary) -> str | None:
    """The type of the config's rope_scaling: one of APPLIED_SCALINGS, or "other"."""
    name = rotary.scaling.get("rope_type", rotary.scaling.get("type"))
    if name is None or name == "default":
        return None
    name = "longrope" if name == "su" else name  # the name in Phi-3's first files
    return name if isinstance(name, str) and name in APPLIED_SCALINGS else "other"


def check_rotary(architecture: Architecture) -> None:
    """Raise ForwardError for an odd number of rotated dimensions and for an unknown type of rope_scaling."""
    rotary = architecture.rotary
    if rotary is None:
        return
    if rotary.width % 2:
        message = _("{model} rotates {count} dimensions with RoPE, but RoPE needs an even number: it cannot run.")
        raise ForwardError(message.format(model=architecture.name, count=rotary.width))
    if scaling_type(rotary) == "other":
        message = _("{model} scales RoPE in a way that is not modelled here: choose another model.")
        raise ForwardError(message.format(model=architecture.name))


def angle_lines(architecture: Architecture, tokens: int, device: str) -> Iterator[ProgramLine]:
    """Yield lines that compute `cos` and `sin`, one row per token and one column per pair; none without RoPE.

    Raises ForwardError if the rope_scaling lacks a number that its type needs.
    """
    rotary = architecture.rotary
    if rotary is None:
        return
    pairs, factor = rotary.width // 2, _attention_factor(architecture, rotary)
    # In float32 an angle near 4,096 is already off by 0.0002; Apple's GPUs have nothing wider.
    precise = "torch.float32" if device == "mps" else "torch.float64"
    pair_numbers = f"torch.arange({pairs:d}, device=device, dtype={precise})"
    theta = _theta(architecture, rotary, tokens)
    yield ProgramLine(f"frequency = {theta!r} ** (-{pair_numbers} / {pairs:d})")
    yield from _scaling_lines(architecture, rotary, tokens)
    yield ProgramLine("angle = position[:, None] * frequency")
    if factor == 1:
        yield ProgramLine("cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)")
    else:
        both = f"(angle.cos() * {factor!r}).to(dtype), (angle.sin() * {factor!r}).to(dtype)"
        yield ProgramLine(f"cos, sin = {both}", comment="rotated vectors get longer, too")


def _theta(architecture: Architecture, rotary: Rotary, tokens: int) -> float:
    trained, width = architecture.C, rotary.width
    if scaling_type(rotary) != "dynamic" or trained is None or tokens <= trained or width <= 2:
        return float(rotary.theta)
    factor = _scaling_number(rotary, "factor")
    growth: float = (factor * tokens / trained - (factor - 1)) ** (width / (width - 2))
    return float(rotary.theta) * growth


def _scaling_lines(architecture: Architecture, rotary: Rotary, tokens: int) -> Iterator[ProgramLine]:
    scaling = scaling_type(rotary)
    if scaling == "linear":
        factor = _scaling_number(rotary, "factor")
        yield ProgramLine(f"frequency = frequency / {factor!r}", comment="rope_scaling linear")
    if scaling == "llama3":
        yield from _llama3_lines(architecture, rotary)
    if scaling == "yarn":
        yield from _yarn_lines(architecture, rotary)
    if scaling == "longrope":
        kind = "long" if tokens > _trained_length(architecture, rotary) else "short"
        factors = _scaling_list(rotary, f"{kind}_factor")
        code = f"frequency = frequency / torch.tensor({factors!r}, device=device)"
        yield ProgramLine(code, comment=f"rope_scaling longrope, {kind}")


def _llama3_lines(architecture: Architecture, rotary: Rotary) -> Iterator[ProgramLine]:
    factor = _scaling_number(rotary, "factor")
    low, high = _scaling_number(rotary, "low_freq_factor"), _scaling_number(rotary, "high_freq_factor")
    if low >= high:
        raise ForwardError(_('In "rope_scaling", "high_freq_factor" must be greater than "low_freq_factor".'))
    turns = f"{_trained_length(architecture, rotary)!r} * frequency / (2 * torch.pi)"
    yield ProgramLine(f"turns = {turns}", comment="rope_scaling llama3")
    yield ProgramLine(f"keep = ((turns - {low!r}) / ({high!r} - {low!r})).clamp(0, 1)")
    yield ProgramLine(f"frequency = frequency * (keep + (1 - keep) / {factor!r})")


def _yarn_lines(architecture: Architecture, rotary: Rotary) -> Iterator[ProgramLine]:
    factor = _yarn_factor(architecture, rotary)
    fast, slow = (_scaling_number(rotary, name, usual) for name, usual in (("beta_fast", 32), ("beta_slow", 1)))
    wavelengths = [_trained_length(architecture, rotary) / (turns * 2 * math.pi) for turns in (fast, slow)]
    # The numbers of the pairs with these wavelengths, as fractions.
    ends = [rotary.width * math.log(length) / (2 * math.log(rotary.theta)) for length in wavelengths]
    if rotary.scaling.get("truncate", True):
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    first, last = max(ends[0], 0), min(ends[1], rotary.width - 1)
    length = float(last - first) or 0.001  # as in transformers, so that nothing is divided by 0
    ramp = f"((torch.arange({rotary.width // 2:d}, device=device) - {float(first)!r}) / {length!r}).clamp(0, 1)"
    yield ProgramLine(f"ramp = {ramp}", comment="rope_scaling yarn")
    yield ProgramLine(f"frequency = frequency * (1 - ramp + ramp / {factor!r})")


def _yarn_factor(architecture: Architecture, rotary: Rotary) -> float:
    if rotary.scaling.get("factor") is None and architecture.C is not None:
        return architecture.C / _trained_length(architecture, rotary)
    return _scaling_number(rotary, "factor")


def _attention_factor(architecture: Architecture, rotary: Rotary) -> float:
    scaling = scaling_type(rotary)
    if scaling not in {"yarn", "longrope"}:
        return 1.0
    if rotary.scaling.get("attention_factor") is not None:
        return _scaling_number(rotary, "attention_factor")
    factor = _yarn_factor(architecture, rotary)
    if factor <= 1:
        return 1.0
    if scaling == "longrope":
        return math.sqrt(1 + math.log(factor) / math.log(_trained_length(architecture, rotary)))
    if rotary.scaling.get("mscale") and rotary.scaling.get("mscale_all_dim"):
        mscale, everywhere = (_scaling_number(rotary, name) for name in ("mscale", "mscale_all_dim"))
        return (0.1 * mscale * math.log(factor) + 1) / (0.1 * everywhere * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


def _trained_length(architecture: Architecture, rotary: Rotary) -> float:
    return _scaling_number(rotary, "original_max_position_embeddings", architecture.C)


def _scaling_number(rotary: Rotary, field: str, default: float | None = None) -> float:
    stated = rotary.scaling.get(field)
    return _positive(default if stated is None else stated, field)


def _positive(value: object, field: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_SCALING_NUMBER:
        return float(value)
    raise ForwardError(_('"rope_scaling" must state "{field}" as a number above zero.').format(field=field))


def _scaling_list(rotary: Rotary, field: str) -> list[float]:
    stated = rotary.scaling.get(field)
    if isinstance(stated, list) and len(stated) == rotary.width // 2:
        return [_positive(number, field) for number in stated]
    message = _('"rope_scaling" must state "{field}" as a list of {count} numbers.')
    raise ForwardError(message.format(field=field, count=rotary.width // 2))


def rotate_lines(
    rotary: Rotary | None, name: str, width: int, makes: str | None = None, at: str = ""
) -> Iterator[ProgramLine]:
    """Yield two lines that rotate the variable `name`, whose last axis has `width` numbers; none without RoPE.

    Example: for "Q" with 128 numbers, all rotated, the lines are
        Q1, Q2 = Q.split(64, dim=-1)
        Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=-1)
    """
    if rotary is None:
        return
    pairs = rotary.width // 2
    rest, cos, sin = width - 2 * pairs, f"cos{at}", f"sin{at}"
    first, second, third = f"{name}1", f"{name}2", f"{name}3"
    rotated = f"{first} * {cos} - {second} * {sin}, {second} * {cos} + {first} * {sin}"
    if rotary.adjacent_pairs:
        halves = f"{name}[..., 0:{2 * pairs:d}:2], {name}[..., 1:{2 * pairs:d}:2]"
        yield ProgramLine(f"{first}, {second} = {halves}", comment="pairs of neighbours")
        code = f"torch.stack(({rotated}), dim=-1).flatten(-2)"
        code = f"torch.cat(({code}, {name}[..., {2 * pairs:d}:]), dim=-1)" if rest else code
    elif rest:
        yield ProgramLine(f"{first}, {second}, {third} = {name}.split(({pairs:d}, {pairs:d}, {rest:d}), dim=-1)")
        code = f"torch.cat(({rotated}, {third}), dim=-1)"
    else:
        yield ProgramLine(f"{first}, {second} = {name}.split({pairs:d}, dim=-1)")
        code = f"torch.cat(({rotated}), dim=-1)"
    yield ProgramLine(f"{name} = {code}", makes)
