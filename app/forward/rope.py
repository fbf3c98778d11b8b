"""The lines of a program that rotate queries and keys by their positions: RoPE (Su et al., arXiv:2104.09864).

Pair j of a query's numbers is rotated by the angle position · theta^(-2j/width). A config's `rope_scaling` changes
these frequencies, and for some types the length of queries and keys; each type is applied as transformers does, and a
model with any other type is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from app.forward.lines import ForwardError, ProgramLine
from app.models.architecture import Architecture, Rotary
from app.translation import gettext as _

# The scaling types that have lines below. With "mrope", text alone is rotated as without it.
APPLIED_SCALINGS = frozenset({"dynamic", "linear", "llama3", "longrope", "mrope", "yarn"})
MAX_SCALING_NUMBER = 1e12  # exclusive; more in a config file is a mistake


def rotated_pairs(architecture: Architecture) -> int:
    """How many pairs of numbers of a query are rotated: half the rotary width, rounded down; 0 without RoPE."""
    return architecture.rotary.width // 2 if architecture.rotary else 0


def scaling_type(rotary: Rotary) -> str | None:
    """The type of the config's rope_scaling: one of APPLIED_SCALINGS, "other" for any that is not among them.

    It is the "rope_type", or the "type" if that field is absent; "su" is an old name of "longrope". None if no type is
    stated or it is "default".
    """
    name = rotary.scaling.get("rope_type", rotary.scaling.get("type"))
    if name is None or name == "default":
        return None
    name = "longrope" if name == "su" else name  # what Phi-3's first files call it
    return name if isinstance(name, str) and name in APPLIED_SCALINGS else "other"


def check_rotary(architecture: Architecture) -> None:
    """Raise ForwardError for an odd number of rotated dimensions and for a type of rope_scaling without lines here."""
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
    """Yield lines that compute `cos` and `sin`, one row a token and one column a pair; none without RoPE.

    On the way they make `frequency`, scaled as the config's rope_scaling says, and `angle`. Angles are in float64, on
    mps in float32. Cosine and sine are multiplied by the `_attention_factor`, unless that is 1. Raises ForwardError if
    the rope_scaling lacks a number that its type needs.
    """
    pairs, rotary = rotated_pairs(architecture), architecture.rotary
    if rotary is None or not pairs:
        return
    # In float32 an angle near 4,096 is off by 0.0002 already; Apple's GPUs have nothing wider.
    precise = "torch.float32" if device == "mps" else "torch.float64"
    pair_numbers = f"torch.arange({pairs:d}, device=device, dtype={precise})"
    theta = _theta(architecture, rotary, tokens)
    yield ProgramLine(f"frequency = {theta!r} ** (-{pair_numbers} / {pairs:d})", names=("frequency",))
    yield from _scaling_lines(architecture, rotary, tokens)
    yield ProgramLine("angle = position[:, None] * frequency", names=("angle",))
    factor = _attention_factor(architecture, rotary)
    both, comment = "angle.cos().to(dtype), angle.sin().to(dtype)", ""
    if factor != 1:
        both = f"(angle.cos() * {factor!r}).to(dtype), (angle.sin() * {factor!r}).to(dtype)"
        comment = "rotated vectors get longer, too"
    yield ProgramLine(f"cos, sin = {both}", names=("cos", "sin"), comment=comment)


def _theta(architecture: Architecture, rotary: Rotary, tokens: int) -> float:
    """The base of the angles; with scaling "dynamic" it grows once the text is longer than the model's C.

    It stays without a C and with at most 2 rotated dimensions. Raises ForwardError if it grows and the "factor" is
    missing or out of range.
    """
    trained, width = architecture.C, rotary.width
    if scaling_type(rotary) != "dynamic" or trained is None or tokens <= trained or width <= 2:
        return float(rotary.theta)
    factor = _scaling_number(rotary, "factor")
    growth: float = (factor * tokens / trained - (factor - 1)) ** (width / (width - 2))
    return float(rotary.theta) * growth


def _scaling_lines(architecture: Architecture, rotary: Rotary, tokens: int) -> Iterator[ProgramLine]:
    """Yield lines that scale `frequency` as the config's rope_scaling says: "linear", "llama3", "yarn" or "longrope".

    No lines for other types. "longrope" has two lists with a factor for each pair: one for texts up to the trained
    length, which is that of rope_scaling or else C, and one for longer ones. Raises ForwardError if a number that the
    type needs is missing and has no default, or is not above zero and below MAX_SCALING_NUMBER; if the list is missing
    or has another length; and for what `_llama3_lines` refuses.
    """
    scaling = scaling_type(rotary)
    if scaling == "linear":
        yield _frequency_line(f"frequency / {_scaling_number(rotary, 'factor')!r}", "rope_scaling linear")
    if scaling == "llama3":
        yield from _llama3_lines(architecture, rotary)
    if scaling == "yarn":
        yield from _yarn_lines(architecture, rotary)
    if scaling == "longrope":
        kind = "long" if tokens > _trained_length(architecture, rotary) else "short"
        factors = _scaling_list(rotary, f"{kind}_factor")
        yield _frequency_line(f"frequency / torch.tensor({factors!r}, device=device)", f"rope_scaling longrope, {kind}")


def _llama3_lines(architecture: Architecture, rotary: Rotary) -> Iterator[ProgramLine]:
    """Yield scaling "llama3": fast pairs keep their frequency, slow ones are divided by the factor, others are mixed.

    Fast are pairs that make at least "high_freq_factor" turns over the trained length, slow at most "low_freq_factor".
    Raises ForwardError if a number is missing, or if the second of these is not the smaller one.
    """
    factor = _scaling_number(rotary, "factor")
    low, high = _scaling_number(rotary, "low_freq_factor"), _scaling_number(rotary, "high_freq_factor")
    if low >= high:
        raise ForwardError(_('In "rope_scaling", "high_freq_factor" must be greater than "low_freq_factor".'))
    turns = f"{_trained_length(architecture, rotary)!r} * frequency / (2 * torch.pi)"
    yield ProgramLine(f"turns = {turns}", names=("turns",), comment="rope_scaling llama3")
    yield ProgramLine(f"keep = ((turns - {low!r}) / ({high!r} - {low!r})).clamp(0, 1)", names=("keep",))
    yield _frequency_line(f"frequency * (keep + (1 - keep) / {factor!r})")


def _yarn_lines(architecture: Architecture, rotary: Rotary) -> Iterator[ProgramLine]:
    """Yield scaling "yarn" (Peng et al., arXiv:2309.00071): like "llama3", but mixed along a ramp over the pairs.

    The ramp begins at the pair with "beta_fast" turns over the trained length, 32 by default, and ends at that with
    "beta_slow", 1 by default. Unless "truncate" is false, it begins and ends at whole pairs, rounded outward. Raises
    ForwardError if a number that is needed is missing or out of range.
    """
    factor = _yarn_factor(architecture, rotary)
    fast, slow = (_scaling_number(rotary, name, usual) for name, usual in (("beta_fast", 32), ("beta_slow", 1)))
    wavelengths = [_trained_length(architecture, rotary) / (turns * 2 * math.pi) for turns in (fast, slow)]
    # The numbers of the pairs with these wavelengths, as fractions.
    ends = [rotary.width * math.log(length) / (2 * math.log(rotary.theta)) for length in wavelengths]
    if rotary.scaling.get("truncate", True):
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    first, last = max(ends[0], 0), min(ends[1], rotary.width - 1)
    length = float(last - first) or 0.001  # as transformers does, so that nothing is divided by 0
    ramp = f"((torch.arange({rotary.width // 2:d}, device=device) - {float(first)!r}) / {length!r}).clamp(0, 1)"
    yield ProgramLine(f"ramp = {ramp}", names=("ramp",), comment="rope_scaling yarn")
    yield _frequency_line(f"frequency * (1 - ramp + ramp / {factor!r})")


def _yarn_factor(architecture: Architecture, rotary: Rotary) -> float:
    """How many times as long the longest text is as those of the training: "factor", else C/trained length.

    Raises ForwardError if neither is known.
    """
    if rotary.scaling.get("factor") is None and architecture.C is not None:
        return architecture.C / _trained_length(architecture, rotary)
    return _scaling_number(rotary, "factor")


def _attention_factor(architecture: Architecture, rotary: Rotary) -> float:
    """What cosines and sines are multiplied by with scaling "yarn" or "longrope"; 1 with any other.

    It is the config's "attention_factor" if there is one; else 1 for a `_yarn_factor` up to 1; else by the formula of
    the type, for "yarn" also with "mscale" and "mscale_all_dim" if both are there and not 0. Raises ForwardError if a
    number that this needs is missing or out of range.
    """
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
    """The length of the texts that the unscaled model was trained on: stated in rope_scaling, else C.

    Raises ForwardError if neither is known, or if the length is not above zero and below MAX_SCALING_NUMBER.
    """
    return _scaling_number(rotary, "original_max_position_embeddings", architecture.C)


def _scaling_number(rotary: Rotary, field: str, default: float | None = None) -> float:
    """A number of the config's rope_scaling, or `default` if the field is missing or null.

    Raises ForwardError unless it is a number above zero and below MAX_SCALING_NUMBER.
    """
    stated = rotary.scaling.get(field)
    value = default if stated is None else stated
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_SCALING_NUMBER:
        return float(value)
    raise ForwardError(_('"rope_scaling" must state "{field}" as a number above zero.').format(field=field))


def _scaling_list(rotary: Rotary, field: str) -> list[float]:
    """The numbers in the list `field` of rope_scaling, one for each pair that is rotated.

    Raises ForwardError unless it is a list of that length, of numbers above zero and below MAX_SCALING_NUMBER.
    """
    stated = rotary.scaling.get(field)
    if isinstance(stated, list) and len(stated) == rotary.width // 2:
        return [_scaling_number(Rotary(1.0, 2, {field: number}), field) for number in stated]
    message = _('"rope_scaling" must state "{field}" as a list of {count} numbers.')
    raise ForwardError(message.format(field=field, count=rotary.width // 2))


def _frequency_line(code: str, comment: str = "") -> ProgramLine:
    """A line that changes `frequency`, the radians by which each pair is rotated from one position to the next."""
    return ProgramLine(f"frequency = {code}", names=("frequency",), comment=comment)


def apply_rope(
    rotary: Rotary | None, name: str, width: int, makes: str | None = None, at: str = ""
) -> Iterator[ProgramLine]:
    """Yield two lines that rotate the variable `name`, whose last axis has `width` numbers; none without RoPE.

    As in transformers, number j is paired with number j + half of the rotary width, with `adjacent_pairs` number 2j
    with number 2j + 1. Numbers beyond the rotary width stay unrotated. `makes` is the table's key of the result, None
    for a helper variable. `at` takes the rows of `cos` and `sin` that belong to the variable ("[:N]"), "" for all.

    Example: for "Q" with 128 numbers, all rotated, the lines are
        Q1, Q2 = Q.split(64, dim=-1)
        Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=-1)
    """
    if rotary is None or rotary.width < 2:
        return
    pairs = rotary.width // 2
    rest = width - 2 * pairs
    first, second, third = f"{name}1", f"{name}2", f"{name}3"
    cos, sin = f"cos{at}", f"sin{at}"
    rotated = f"{first} * {cos} - {second} * {sin}, {second} * {cos} + {first} * {sin}"
    if rotary.adjacent_pairs:
        yield ProgramLine(
            f"{first}, {second} = {name}[..., 0:{2 * pairs:d}:2], {name}[..., 1:{2 * pairs:d}:2]",
            names=(first, second),
            comment="pairs of neighbours",
            timed=True,
        )
        code = f"torch.stack(({rotated}), dim=-1).flatten(-2)"
        code = f"torch.cat(({code}, {name}[..., {2 * pairs:d}:]), dim=-1)" if rest else code
    else:
        parts = f"({pairs:d}, {pairs:d}, {rest:d})" if rest else f"{pairs:d}"
        names = (first, second, third) if rest else (first, second)
        yield ProgramLine(f"{', '.join(names)} = {name}.split({parts}, dim=-1)", names=names, timed=True)
        code = f"torch.cat(({rotated}{f', {third}' if rest else ''}), dim=-1)"
    yield ProgramLine(f"{name} = {code}", makes, (name,), timed=True)
