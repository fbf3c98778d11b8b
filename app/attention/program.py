"""The program of one head, line by line, for any architecture: fixed text and numbers, nothing a person typed.

>>> from app.attention.architecture import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> [line.code for line in program(gpt2, 5) if line.makes == "queries"]
['Q = X @ W_Q']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .architecture import Architecture, TokensError
from .devices import DEVICES
from .lines import APPLIED_SCALINGS, ForwardError, Line, masked, positions, scaling_of, turned, windowed
from .tensors import SINGLE_HEAD

DTYPES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
MAX_SEED = 2**32 - 1


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
        *positions(architecture, device),
        *_projections(architecture),
        *turned(architecture, "Q", 1, "queries"),
        *turned(architecture, "K", 1, "keys"),
        *_attention(architecture, tokens),
    )


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


def _projections(architecture: Architecture) -> Iterator[Line]:
    yield Line("", comment="The head itself")
    for code, key in (("Q = X @ W_Q", "queries"), ("K = X @ W_K", "keys"), ("V = X @ W_V", "values")):
        yield _head_line(code, key)
    if architecture.qk_norm_eps is not None:
        for name, key in (("Q", "queries"), ("K", "keys")):
            code = f"{name} = torch.rms_norm({name}, (d_h,), eps={float(architecture.qk_norm_eps)!r})"
            yield _head_line(code, key, comment="its learned weight starts at 1")


def _attention(architecture: Architecture, tokens: int) -> Iterator[Line]:
    yield _head_line("S = Q @ K.T", "scores")
    yield Line("S /= d_h**0.5", names=("S",), timed=True)
    yield from masked(architecture, tokens)
    yield _head_line("A = torch.softmax(S, dim=1)", "weights")
    yield _head_line("C = A @ V", "context")
    yield _head_line("O = C @ W_O", "output")


def _head_line(code: str, key: str, comment: str = "") -> Line:
    return Line(code, key, (SINGLE_HEAD[key].letter,), comment, timed=True)


def notes(architecture: Architecture, tokens: int) -> tuple[str, ...]:
    """Short keys for what a reader should know about this head, each a sentence in the templates."""
    rotary = architecture.rotary
    scaling = scaling_of(rotary) if rotary else None
    found = {
        "biases-left-out": bool(architecture.biases),
        "norm-weights-are-ones": architecture.qk_norm_eps is not None,
        "keys-shared": architecture.query_heads_per_kv_head > 1,
        "window": windowed(architecture, tokens),
        f"rope-scaling-applied:{scaling}": scaling in APPLIED_SCALINGS,
        f"rope-scaling-not-applied:{scaling}": scaling is not None and scaling not in APPLIED_SCALINGS,
        "rotary-odd-width": rotary is not None and rotary.width % 2 == 1,
    }
    return tuple(key for key, holds in found.items() if holds)
