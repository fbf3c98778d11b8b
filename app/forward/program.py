"""The program of one head or of a whole layer, line by line: fixed text and numbers, nothing a person typed.

A layer draws each head's weights as that head's own program does: it contains those heads, number by number.

>>> from app.models.architecture import read_config
>>> gpt2 = read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}')
>>> [line.code for line in program(gpt2, 5) if line.makes == "queries"]
['Q = X @ W_Q']
>>> [line.code for line in program(gpt2, 5, topic="attention-layer") if line.makes == "scores"]
['S_head = S[head]']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.forward.devices import DEVICES
from app.forward.lines import APPLIED_SCALINGS, ForwardError, Line, masked, positions, scaling_of, turned, windowed
from app.models.architecture import Architecture, TokensError
from app.shapes.tensors import ATTENTION_LAYER, BIDIRECTIONAL_HEAD, SINGLE_HEAD, Topic

DTYPES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
MAX_SEED = 2**32 - 1
# The tables that a program can be checked against; whether anything is masked is the model's own, in all of them.
RUNNABLE: Mapping[str, Topic] = {topic.key: topic for topic in (SINGLE_HEAD, BIDIRECTIONAL_HEAD, ATTENTION_LAYER)}


def program(
    architecture: Architecture,
    tokens: int,
    head: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    seed: int = 0,
    topic: str = SINGLE_HEAD.key,
) -> tuple[Line, ...]:
    """The torch program of what a topic is about; raises ForwardError where an argument is out of its range.

    That is one head of this model, or all heads of a layer; of a layer, `head` is the one whose scores are looked at.
    Only fixed text and numbers go into it: nothing a person typed, not the model's name either.
    """
    _check(architecture, tokens, head, dtype, device, seed)
    if topic not in RUNNABLE:
        raise ForwardError(f"The topic must be one of {', '.join(RUNNABLE)}.")
    prepared, computed = (_prepared_layer, _layer) if is_layer(topic) else (_prepared_head, _head)
    return (
        Line("import torch"),
        *prepared(architecture, tokens, head, dtype, device, seed),
        *positions(architecture, device),
        *computed(architecture, tokens),
    )


def is_layer(topic: str) -> bool:
    """Whether a topic is about all heads of a layer, side by side, and not about one."""
    return topic == ATTENTION_LAYER.key


def variables_of(lines: tuple[Line, ...], topic: str) -> dict[str, str]:
    """The variable of every tensor of the table: the one that a line names for it, else the tensor's letter."""
    made = {line.makes: line.names[0] for line in lines if line.makes}
    return {tensor.key: made.get(tensor.key, tensor.letter) for tensor in RUNNABLE[topic].tensors}


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


def _prepared_head(
    architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int
) -> Iterator[Line]:
    sizes = (tokens, architecture.d, architecture.d_h, architecture.d_v)
    yield Line("", comment="Sizes: tokens, width of the model, width of a query and a key, width of a value")
    yield from _setting("N, d, d_h, d_v", sizes, dtype, device)
    group = architecture.query_heads_per_kv_head
    kv_head = head // group
    shared = f"key/value head {kv_head:d}"
    if group > 1:
        shared += f", read by query heads {kv_head * group:d} to {(kv_head + 1) * group - 1:d}"
    yield Line("", comment="A random input, and this head's weights as before training (biases start at 0: left out)")
    yield Line(f"seed, head, kv_head = {seed:d}, {head:d}, {kv_head:d}")
    yield from _random_input()
    yield Line("torch.manual_seed(seed + 1 + 2 * head)", comment=f"query head {head:d}")
    yield _weight(architecture, "W_Q", "d, d_h")
    yield _weight(architecture, "W_O", "d_v, d")
    yield Line("torch.manual_seed(seed + 2 + 2 * kv_head)", comment=shared)
    yield _weight(architecture, "W_K", "d, d_h")
    yield _weight(architecture, "W_V", "d, d_v")


def _prepared_layer(
    architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int
) -> Iterator[Line]:
    a = architecture
    yield Line(
        "", comment="Sizes: tokens, width of the model, query and key/value heads, width of a key, width of a value"
    )
    yield from _setting("N, d, H, G, d_h, d_v", (tokens, a.d, a.H, a.G, a.d_h, a.d_v), dtype, device)
    weights = "weights as before training (biases start at 0: left out), as each head's own program draws them"
    yield Line("", comment=f"A random input; {weights}")
    yield Line(f"seed, head = {seed:d}, {head:d}")
    yield from _random_input()
    yield Line(
        "W_Q, W_O = X.new_empty(d, H * d_h), X.new_empty(H * d_v, d)\n"
        "for h in range(H):\n"
        "    torch.manual_seed(seed + 1 + 2 * h)\n"
        f"    W_Q.view(d, H, d_h)[:, h] = {_drawn(a, 'd, d_h')}\n"
        f"    W_O.view(H, d_v, d)[h] = {_drawn(a, 'd_v, d')}",
        names=("W_Q", "W_O"),
    )
    yield Line(
        "W_K, W_V = X.new_empty(d, G * d_h), X.new_empty(d, G * d_v)\n"
        "for g in range(G):\n"
        "    torch.manual_seed(seed + 2 + 2 * g)\n"
        f"    W_K.view(d, G, d_h)[:, g] = {_drawn(a, 'd, d_h')}\n"
        f"    W_V.view(d, G, d_v)[:, g] = {_drawn(a, 'd, d_v')}",
        names=("W_K", "W_V"),
    )


def _setting(symbols: str, sizes: tuple[int, ...], dtype: str, device: str) -> Iterator[Line]:
    # The format "d" lets whole numbers through and refuses everything else.
    yield Line(f"{symbols} = {', '.join(f'{size:d}' for size in sizes)}")
    yield Line(f'device = "{device}"')
    yield Line(f"dtype = torch.{dtype}")


def _random_input() -> Iterator[Line]:
    yield Line("torch.manual_seed(seed)")
    yield Line("X = torch.randn(N, d, device=device, dtype=dtype)", "input", ("X",))


def _weight(architecture: Architecture, name: str, shape: str) -> Line:
    return Line(f"{name} = {_drawn(architecture, shape)}", name, (name,))


def _drawn(architecture: Architecture, shape: str) -> str:
    return f"torch.normal(0.0, {float(architecture.initializer_range)!r}, ({shape}), device=device, dtype=dtype)"


def _head(architecture: Architecture, tokens: int) -> Iterator[Line]:
    yield Line("", comment="The head itself")
    yield from _projected()
    yield from _normed(architecture, "Q", "queries")
    yield from _normed(architecture, "K", "keys")
    yield from turned(architecture, "Q", 1, "queries")
    yield from turned(architecture, "K", 1, "keys")
    yield _timed("S = Q @ K.T", "scores")
    yield Line("S /= d_h**0.5", names=("S",), timed=True)
    yield from masked(architecture, tokens)
    yield _timed("A = torch.softmax(S, dim=1)", "weights")
    yield _timed("C = A @ V", "context")
    yield _timed("O = C @ W_O", "output")


def _layer(architecture: Architecture, tokens: int) -> Iterator[Line]:
    yield Line("", comment="The layer itself: queries, keys and values of all heads, side by side")
    yield from _projected()
    yield Line("", comment="Head by head")
    yield _step("q = Q.view(N, H, d_h).transpose(0, 1)")
    yield _step("k = K.view(N, G, d_h).transpose(0, 1)")
    yield _step("v = V.view(N, G, d_v).transpose(0, 1)")
    yield from _normed(architecture, "q")
    yield from _normed(architecture, "k")
    yield from turned(architecture, "q", 2)
    yield from turned(architecture, "k", 2)
    yield from _weighted(architecture, tokens)
    yield Line("", comment="All heads side by side again")
    yield _timed("C = c.transpose(0, 1).reshape(N, H * d_v)", "context")
    yield _timed("O = C @ W_O", "output")
    yield Line("", comment="Scores and weights of one head: rows and columns are tokens")
    yield Line("S_head = S[head]", "scores", ("S_head",), timed=True)
    yield Line("A_head = A[head]", "weights", ("A_head",), timed=True)


def _weighted(architecture: Architecture, tokens: int) -> Iterator[Line]:
    """Scores, weights and what they gather; the query heads of a group share their keys and values without copies."""
    share = architecture.query_heads_per_kv_head
    if share > 1:
        together = f"{share:d} query heads that share keys and values, one below the other"
        yield _step("q_shared = q.reshape(G, -1, d_h)", together)
        yield _step("S = (q_shared @ k.mT).view(H, N, N)")
    else:
        yield _step("S = q @ k.mT")
    yield _step("S /= d_h**0.5")
    yield from masked(architecture, tokens)
    yield _step("A = torch.softmax(S, dim=2)")
    yield _step("c = (A.view(G, -1, N) @ v).view(H, N, d_v)" if share > 1 else "c = A @ v")


def _projected() -> Iterator[Line]:
    yield _timed("Q = X @ W_Q", "queries")
    yield _timed("K = X @ W_K", "keys")
    yield _timed("V = X @ W_V", "values")


def _normed(architecture: Architecture, name: str, makes: str | None = None) -> Iterator[Line]:
    if architecture.qk_norm_eps is not None:
        code = f"{name} = torch.rms_norm({name}, (d_h,), eps={float(architecture.qk_norm_eps)!r})"
        yield Line(code, makes, (name,), "its learned weight starts at 1", timed=True)


def _timed(code: str, makes: str, comment: str = "") -> Line:
    return Line(code, makes, (SINGLE_HEAD[makes].letter,), comment, timed=True)


def _step(code: str, comment: str = "") -> Line:
    return Line(code, None, (code.split(" ")[0],), comment, timed=True)


def notes(architecture: Architecture, tokens: int) -> tuple[str, ...]:
    """Short keys for what a reader should know about this run, each a sentence in the templates."""
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
