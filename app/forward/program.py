"""Writes the torch program of one head or of a whole attention layer: fixed text and numbers, nothing a person typed.

This is a program after it has run, head 3 of a model as wide as GPT-2 that rotates queries and keys, over 100 tokens.
Beside each line stand the shapes that torch reported; what is masked is one line, and changes no shape.

>>> from app.forward.lines import listing
>>> from app.forward.run import run_head
>>> from app.models.read_config import read_config
>>> model = read_config(
...     '{"model_type": "llama", "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4,'
...     ' "intermediate_size": 2048, "vocab_size": 32000, "num_hidden_layers": 12}'
... )
>>> print(listing(run_head(model, 100, head=3, device="cpu").lines))
import torch
<BLANKLINE>
# Sizes: tokens, width of the model, width of a query and a key, width of a value
N, d, d_h, d_v = 100, 768, 64, 64
device = "cpu"
dtype = torch.float32
<BLANKLINE>
# A random input, and this head's weights as before training (biases start at 0: left out)
seed, head, kv_head = 0, 3, 1
torch.manual_seed(seed)
X = torch.randn(N, d, device=device, dtype=dtype)  # (100, 768)
torch.manual_seed(seed + 1 + 2 * head)  # query head 3
W_Q = torch.normal(0.0, 0.02, (d, d_h), device=device, dtype=dtype)  # (768, 64)
W_O = torch.normal(0.0, 0.02, (d_v, d), device=device, dtype=dtype)  # (64, 768)
torch.manual_seed(seed + 2 + 2 * kv_head)  # key/value head 1, read by query heads 3 to 5
W_K = torch.normal(0.0, 0.02, (d, d_h), device=device, dtype=dtype)  # (768, 64)
W_V = torch.normal(0.0, 0.02, (d, d_v), device=device, dtype=dtype)  # (768, 64)
<BLANKLINE>
# Positions of the tokens
position = torch.arange(N, device=device)  # (100,)
frequency = 10000.0 ** (-torch.arange(32, device=device, dtype=torch.float64) / 32)  # (32,)
angle = position[:, None] * frequency  # (100, 32)
cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)  # (100, 32) (100, 32)
<BLANKLINE>
# The head itself
Q = X @ W_Q  # (100, 64)
K = X @ W_K  # (100, 64)
V = X @ W_V  # (100, 64)
Q1, Q2 = Q.split(32, dim=1)  # (100, 32) (100, 32)
Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=1)  # (100, 64)
K1, K2 = K.split(32, dim=1)  # (100, 32) (100, 32)
K = torch.cat((K1 * cos - K2 * sin, K2 * cos + K1 * sin), dim=1)  # (100, 64)
S = Q @ K.T  # (100, 100)
S /= d_h**0.5  # (100, 100)
S.masked_fill_(position > position[:, None], float("-inf"))  # (100, 100) no later token
A = torch.softmax(S, dim=1)  # (100, 100)
C = A @ V  # (100, 64)
O = C @ W_O  # (100, 768)
<BLANKLINE>

The generators below write it from top to bottom. A layer draws each head's weights as that head's own program does,
so that a layer contains the very heads that run alone, number by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.forward.devices import DEVICES
from app.forward.lines import ForwardError, ProgramLine
from app.forward.rope import APPLIED_SCALINGS, angle_lines, apply_rope, rotated_pairs, scaling_type
from app.models.architecture import Architecture, TokensError
from app.shapes.table import TensorTable
from app.shapes.tables import ATTENTION_LAYER, SINGLE_HEAD
from app.shapes.topics import TOPICS

BYTES_BY_DTYPE: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
MAX_SEED = 2**32 - 1
# The tables that a program can be checked against, by topic. Whether later tokens are masked is up to the model, not
# to the topic.
RUNNABLE: Mapping[str, TensorTable] = {
    topic.key: topic.runnable_table for topic in TOPICS.values() if topic.runnable_table is not None
}


def program(
    architecture: Architecture,
    tokens: int,
    head: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    seed: int = 0,
    topic: str = SINGLE_HEAD.key,
) -> tuple[ProgramLine, ...]:
    """Write the torch program of a topic: of one query head, or for "attention-layer" of all heads of a layer.

    `head` counts from 0; of a layer it is the head whose scores and weights the program looks at in the end. Nothing a
    person typed goes into the text, not even the model's name. Raises ForwardError if an argument is out of range, or
    no program exists for the topic.
    """
    _check_arguments(architecture, tokens, head, dtype, device, seed)
    if topic not in RUNNABLE:
        raise ForwardError(f"The topic must be one of {', '.join(RUNNABLE)}.")
    prepare, compute = (_layer_input_lines, _layer_lines) if is_layer(topic) else (_head_input_lines, _head_lines)
    return (
        ProgramLine("import torch"),
        *prepare(architecture, tokens, head, dtype, device, seed),
        *_position_lines(architecture, device),
        *compute(architecture, tokens),
    )


def is_layer(topic: str) -> bool:
    """Whether the topic is the whole attention layer, with all heads side by side, rather than one head."""
    return topic == ATTENTION_LAYER.key


def variable_names(lines: tuple[ProgramLine, ...], topic: str) -> dict[str, str]:
    """The program's variable for every tensor of the topic's table, by the table's key.

    It is the first name of the line that makes the tensor, else the tensor's letter: {"queries": "Q", "W_Q": "W_Q"}.
    """
    first_names = {line.makes: line.names[0] for line in lines if line.makes}
    return {tensor.key: first_names.get(tensor.key, tensor.letter) for tensor in RUNNABLE[topic].tensors}


def _check_arguments(architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int) -> None:
    """Raise ForwardError for the first argument that is no whole number, out of its range or not a known name.

    Checked in turn: tokens (a length the model can take), head (0 to H - 1), seed (0 to MAX_SEED), dtype, device.
    """
    if not _is_whole(tokens):
        raise ForwardError("The number of tokens must be a whole number.")
    try:
        architecture.check_tokens(tokens)
    except TokensError as refusal:
        raise ForwardError(str(refusal)) from None
    if not _is_whole(head) or not 0 <= head < architecture.H:
        raise ForwardError(f"The head must be a whole number from 0 to {architecture.H - 1:,}.")
    if not _is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ForwardError(f"The seed must be a whole number from 0 to {MAX_SEED:,}.")
    if dtype not in BYTES_BY_DTYPE:
        raise ForwardError(f"The number format must be one of {', '.join(BYTES_BY_DTYPE)}.")
    if device not in DEVICES:
        raise ForwardError(f"The device must be one of {', '.join(DEVICES)}.")


def _is_whole(value: object) -> bool:
    """Whether a value is an int; True and False, which Python counts among them, are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _head_input_lines(
    architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    """Lines that set the sizes, draw X at random, and draw W_Q, W_O, W_K and W_V of one query head.

    W_K and W_V are seeded by the key/value head, so that query heads of one group get the same ones.
    """
    sizes = (tokens, architecture.d, architecture.d_h, architecture.d_v)
    yield ProgramLine("", comment="Sizes: tokens, width of the model, width of a query and a key, width of a value")
    yield from _size_lines("N, d, d_h, d_v", sizes, dtype, device)
    group = architecture.query_heads_per_kv_head
    kv_head = head // group
    kv_comment = f"key/value head {kv_head:d}"
    if group > 1:
        kv_comment += f", read by query heads {kv_head * group:d} to {(kv_head + 1) * group - 1:d}"
    weights = "this head's weights as before training (biases start at 0: left out)"
    yield ProgramLine("", comment=f"A random input, and {weights}")
    yield ProgramLine(f"seed, head, kv_head = {seed:d}, {head:d}, {kv_head:d}")
    yield from _random_input_lines()
    yield ProgramLine("torch.manual_seed(seed + 1 + 2 * head)", comment=f"query head {head:d}")
    yield _parameter_line(architecture, "W_Q", "d, d_h")
    yield _parameter_line(architecture, "W_O", "d_v, d")
    yield ProgramLine("torch.manual_seed(seed + 2 + 2 * kv_head)", comment=kv_comment)
    yield _parameter_line(architecture, "W_K", "d, d_h")
    yield _parameter_line(architecture, "W_V", "d, d_v")


def _layer_input_lines(
    architecture: Architecture, tokens: int, head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    """Lines that set the sizes, draw X at random, and draw the parameters of all heads of a layer, side by side.

    Each head's block is drawn with that head's own seed, exactly as `_head_input_lines` draws it.
    """
    a = architecture
    yield ProgramLine(
        "", comment="Sizes: tokens, width of the model, query and key/value heads, width of a key, width of a value"
    )
    yield from _size_lines("N, d, H, G, d_h, d_v", (tokens, a.d, a.H, a.G, a.d_h, a.d_v), dtype, device)
    weights = "weights as before training (biases start at 0: left out), as each head's own program draws them"
    yield ProgramLine("", comment=f"A random input; {weights}")
    yield ProgramLine(f"seed, head = {seed:d}, {head:d}")
    yield from _random_input_lines()
    yield ProgramLine(
        "W_Q, W_O = X.new_empty(d, H * d_h), X.new_empty(H * d_v, d)\n"
        "for h in range(H):\n"
        "    torch.manual_seed(seed + 1 + 2 * h)\n"
        f"    W_Q.view(d, H, d_h)[:, h] = {_random_normal(a, 'd, d_h')}\n"
        f"    W_O.view(H, d_v, d)[h] = {_random_normal(a, 'd_v, d')}",
        names=("W_Q", "W_O"),
    )
    yield ProgramLine(
        "W_K, W_V = X.new_empty(d, G * d_h), X.new_empty(d, G * d_v)\n"
        "for g in range(G):\n"
        "    torch.manual_seed(seed + 2 + 2 * g)\n"
        f"    W_K.view(d, G, d_h)[:, g] = {_random_normal(a, 'd, d_h')}\n"
        f"    W_V.view(d, G, d_v)[:, g] = {_random_normal(a, 'd, d_v')}",
        names=("W_K", "W_V"),
    )


def _size_lines(symbols: str, sizes: tuple[int, ...], dtype: str, device: str) -> Iterator[ProgramLine]:
    """Three lines: each symbol gets its size ('N, d, d_h, d_v = 100, 768, …'), then `device`, then `dtype`."""
    # The format "d" lets whole numbers through and refuses everything else.
    yield ProgramLine(f"{symbols} = {', '.join(f'{size:d}' for size in sizes)}")
    yield ProgramLine(f'device = "{device}"')
    yield ProgramLine(f"dtype = torch.{dtype}")


def _random_input_lines() -> Iterator[ProgramLine]:
    """Lines that seed torch and draw the input X, N × d, from a standard normal distribution."""
    yield ProgramLine("torch.manual_seed(seed)")
    yield ProgramLine("X = torch.randn(N, d, device=device, dtype=dtype)", "input", ("X",))


def _parameter_line(architecture: Architecture, name: str, shape: str) -> ProgramLine:
    """The line that draws one parameter at random, in the shape given in symbols ('d, d_h')."""
    return ProgramLine(f"{name} = {_random_normal(architecture, shape)}", name, (name,))


def _random_normal(architecture: Architecture, shape: str) -> str:
    """The call that draws a matrix with the model's own initializer_range as its standard deviation."""
    return f"torch.normal(0.0, {float(architecture.initializer_range)!r}, ({shape}), device=device, dtype=dtype)"


def _position_lines(architecture: Architecture, device: str) -> Iterator[ProgramLine]:
    """Lines that make `position`, if a mask or RoPE needs it, and RoPE's `cos` and `sin`, if the model rotates."""
    if architecture.causal or rotated_pairs(architecture):
        yield ProgramLine("", comment="Positions of the tokens")
        yield ProgramLine("position = torch.arange(N, device=device)", names=("position",))
    yield from angle_lines(architecture, device)


def _head_lines(architecture: Architecture, tokens: int) -> Iterator[ProgramLine]:
    """The timed lines of one head: Q, K and V, norm, RoPE, scores, mask, softmax, context C, output O; all 2-D.

    Norm, RoPE and mask are there only if the model has them.
    """
    yield ProgramLine("", comment="The head itself")
    yield from _projection_lines()
    yield from _qk_norm_line(architecture, "Q", "queries")
    yield from _qk_norm_line(architecture, "K", "keys")
    yield from apply_rope(architecture, "Q", 1, "queries")
    yield from apply_rope(architecture, "K", 1, "keys")
    yield _tensor_line("S = Q @ K.T", "scores")
    yield ProgramLine("S /= d_h**0.5", names=("S",), timed=True)
    yield from _mask_lines(architecture, tokens)
    yield _tensor_line("A = torch.softmax(S, dim=1)", "weights")
    yield _tensor_line("C = A @ V", "context")
    yield _tensor_line("O = C @ W_O", "output")


def _layer_lines(architecture: Architecture, tokens: int) -> Iterator[ProgramLine]:
    """The timed lines of a whole layer, from Q, K and V of all heads to its output O; q, k, v, S, A and c are 3-D.

    In these, heads come first. The last two lines take one head's scores and weights out of S and A, because that is
    what the table asks for.
    """
    yield ProgramLine("", comment="The layer itself: queries, keys and values of all heads, side by side")
    yield from _projection_lines()
    yield ProgramLine("", comment="Head by head")
    yield _helper_line("q = Q.view(N, H, d_h).transpose(0, 1)")
    yield _helper_line("k = K.view(N, G, d_h).transpose(0, 1)")
    yield _helper_line("v = V.view(N, G, d_v).transpose(0, 1)")
    yield from _qk_norm_line(architecture, "q")
    yield from _qk_norm_line(architecture, "k")
    yield from apply_rope(architecture, "q", 2)
    yield from apply_rope(architecture, "k", 2)
    yield from _queries_to_context(architecture, tokens)
    yield ProgramLine("", comment="All heads side by side again")
    yield _tensor_line("C = c.transpose(0, 1).reshape(N, H * d_v)", "context")
    yield _tensor_line("O = C @ W_O", "output")
    yield ProgramLine("", comment="Scores and weights of one head: rows and columns are tokens")
    yield ProgramLine("S_head = S[head]", "scores", ("S_head",), timed=True)
    yield ProgramLine("A_head = A[head]", "weights", ("A_head",), timed=True)


def _queries_to_context(architecture: Architecture, tokens: int) -> Iterator[ProgramLine]:
    """A layer's lines that compute the scores S (H, N, N), the weights A and the context c (H, N, d_v) from q, k and v.

    With grouped queries, the query heads of a group are put one below the other, so that they read their shared keys
    and values without copies of them.
    """
    group = architecture.query_heads_per_kv_head
    if group > 1:
        comment = f"{group:d} query heads that share keys and values, one below the other"
        yield _helper_line("q_shared = q.reshape(G, -1, d_h)", comment)
        yield _helper_line("S = (q_shared @ k.mT).view(H, N, N)")
    else:
        yield _helper_line("S = q @ k.mT")
    yield _helper_line("S /= d_h**0.5")
    yield from _mask_lines(architecture, tokens)
    yield _helper_line("A = torch.softmax(S, dim=2)")
    yield _helper_line("c = (A.view(G, -1, N) @ v).view(H, N, d_v)" if group > 1 else "c = A @ v")


def _projection_lines() -> Iterator[ProgramLine]:
    """The three lines that make Q, K and V from X."""
    yield _tensor_line("Q = X @ W_Q", "queries")
    yield _tensor_line("K = X @ W_K", "keys")
    yield _tensor_line("V = X @ W_V", "values")


def _qk_norm_line(architecture: Architecture, name: str, makes: str | None = None) -> Iterator[ProgramLine]:
    """The line that applies RMSNorm to queries or keys; none if the model has no norm there."""
    if architecture.qk_norm_eps is not None:
        code = f"{name} = torch.rms_norm({name}, (d_h,), eps={float(architecture.qk_norm_eps)!r})"
        yield ProgramLine(code, makes, (name,), "its learned weight starts at 1", timed=True)


def _mask_lines(architecture: Architecture, tokens: int) -> Iterator[ProgramLine]:
    """Lines that set hidden scores in S to -inf: one for later tokens, one for tokens before the window.

    None for a model without a causal mask; the second only if the window is shorter than `tokens`. They fit S as one N
    × N matrix and as one for each head.
    """
    if not architecture.causal:
        return
    mask = 'S.masked_fill_({}, float("-inf"))'
    yield ProgramLine(mask.format("position > position[:, None]"), names=("S",), comment="no later token", timed=True)
    if _has_window(architecture, tokens):
        # Compared, not subtracted: a difference of positions would be an N × N table of 8-byte numbers.
        outside = mask.format(f"position[:, None] >= position + {architecture.window:d}")
        yield ProgramLine(outside, names=("S",), comment="nor one before the window", timed=True)


def _has_window(architecture: Architecture, tokens: int) -> bool:
    """Whether a sliding window hides any of so many tokens: the model is causal and its window is shorter."""
    return architecture.causal and architecture.window is not None and architecture.window < tokens


def _tensor_line(code: str, makes: str) -> ProgramLine:
    """A timed line that makes the tensor of the table with the key `makes`."""
    return ProgramLine(code, makes, (SINGLE_HEAD[makes].letter,), timed=True)


def _helper_line(code: str, comment: str = "") -> ProgramLine:
    """A timed line that makes no tensor of the table; the first word of its code is the variable whose shape shows."""
    return ProgramLine(code, None, (code.split(" ")[0],), comment, timed=True)


def notes(architecture: Architecture, tokens: int) -> tuple[str, ...]:
    """Keys of what a reader should know about this run, such as "biases-left-out"; templates have the sentences.

    In order, those that apply: biases left out, a norm on queries and keys, shared keys, a window that hides tokens,
    RoPE scaling applied or not (with its type after a colon: "rope-scaling-not-applied:yarn"), an odd rotary width.
    """
    rotary = architecture.rotary
    scaling = scaling_type(rotary) if rotary else None
    applies = {
        "biases-left-out": bool(architecture.biases),
        "norm-weights-are-ones": architecture.qk_norm_eps is not None,
        "keys-shared": architecture.query_heads_per_kv_head > 1,
        "window": _has_window(architecture, tokens),
        f"rope-scaling-applied:{scaling}": scaling in APPLIED_SCALINGS,
        f"rope-scaling-not-applied:{scaling}": scaling is not None and scaling not in APPLIED_SCALINGS,
        "rotary-odd-width": rotary is not None and rotary.width % 2 == 1,
    }
    return tuple(key for key, is_true in applies.items() if is_true)
