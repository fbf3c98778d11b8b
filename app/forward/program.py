"""Writes the torch program of a head or of a whole attention layer: fixed text and numbers, nothing a person typed.

It follows the topic's table: each tensor in order, with what the model does to it, such as a norm or RoPE, before the
next one. A table of matrices has heads side by side; a program computes them with the heads first.

Below is a program after it ran: head 3 of a model with RoPE and grouped queries, over 100 tokens. Beside each line are
the shapes that torch reported.

>>> from app.forward.lines import listing
>>> from app.forward.run import run_head
>>> from app.models.read_config import read_config
>>> model = read_config(
...     '{"model_type": "llama", "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4,'
...     ' "intermediate_size": 2048, "vocab_size": 32000, "num_hidden_layers": 12}'
... )
>>> print(listing(run_head(model, 100, head=3, device="cpu").lines), end="")
import torch
from zlib import crc32
<BLANKLINE>
# Random numbers that depend on the seed and on what they are for
def draw_for(name):
    torch.manual_seed(crc32(f"{seed} {name}".encode()))
<BLANKLINE>
# Sizes: tokens, embedding dimension, head dimension of queries and keys, of values
N, d, d_h, d_v = 100, 768, 64, 64
device = "cpu"
dtype = torch.float32
<BLANKLINE>
# A random input, and random weights for this head
seed, head, kv_head = 0, 3, 1
draw_for("input")
X = torch.randn(N, d, device=device, dtype=dtype)  # (100, 768)
draw_for(f"query head {head}")  # query head 3
W_Q = torch.normal(0.0, 0.02, (d, d_h), device=device, dtype=dtype)  # (768, 64)
W_O = torch.normal(0.0, 0.02, (d_v, d), device=device, dtype=dtype)  # (64, 768)
draw_for(f"key/value head {kv_head}")  # key/value head 1, shared by query heads 3 to 5
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
Q1, Q2 = Q.split(32, dim=-1)  # (100, 32) (100, 32)
Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=-1)  # (100, 64)
K = X @ W_K  # (100, 64)
K1, K2 = K.split(32, dim=-1)  # (100, 32) (100, 32)
K = torch.cat((K1 * cos - K2 * sin, K2 * cos + K1 * sin), dim=-1)  # (100, 64)
V = X @ W_V  # (100, 64)
S = Q @ K.T  # (100, 100)
S /= d_h**0.5  # (100, 100)
S.masked_fill_(position > position[:, None], float("-inf"))  # (100, 100) no later token
A = torch.softmax(S, dim=-1)  # (100, 100)
C = A @ V  # (100, 64)
O = C @ W_O  # (100, 768)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from app.algebra.expression import Expression
from app.forward.lines import ForwardError, ProgramLine, heading
from app.forward.rope import angle_lines, check_rotary, rotate_lines, scaling_type
from app.models.alibi import STRENGTH
from app.models.architecture import Architecture, TokensError
from app.shapes.operation import Concat, Matmul, Softmax, Transpose
from app.shapes.table import Tensor, TensorTable
from app.topics.decode_step import DECODE_STEP
from app.topics.registry import TOPICS, check_decoder_tokens, check_topic_tokens, sizes_for, topic_for
from app.topics.requirements import TopicError
from app.topics.single_head import SINGLE_HEAD
from app.topics.topic import Topic
from app.translation import gettext as _

DEVICES = ("cpu", "cuda", "mps", "meta")
BYTES_BY_DTYPE: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
MAX_SEED = 2**32 - 1
RUNNABLE_TOPICS = tuple(topic.key for topic in TOPICS.values() if topic.runs)
LATENT_NORM_EPS = 1e-6  # for both norms of latent vectors, whatever the config's "rms_norm_eps" is
MAX_DISTANCE = 128  # T5's "relative_attention_max_distance": larger distances share a bucket
_LATENT_SIZES = ("r_kv", "r_q")
_SIZES = {
    "B": "inputs",
    "N": "tokens",
    "M": "decoder tokens",
    "d": "embedding dimension",
    "H": "query heads",
    "G": "key/value heads",
    "d_h": "head dimension of queries and keys",
    "d_v": "of values",
    "r_kv": "latent vector",
    "d_nope": "part of a key from it",
    "d_rope": "rotary part",
    "r_q": "latent vector of queries",
}


def program(
    architecture: Architecture,
    tokens: int,
    head: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    seed: int = 0,
    topic: str = SINGLE_HEAD.key,
    decoder_tokens: int | None = None,
) -> tuple[ProgramLine, ...]:
    """Write a topic's torch program with random numbers, for one query head or for all heads of a layer."""
    table, sizes = runnable_table(topic, architecture, tokens, decoder_tokens)
    about, a = TOPICS[topic], architecture_of(topic, architecture)
    _check_arguments(a, head, dtype, device, seed)
    if about.adds_tokens:
        table = DECODE_STEP  # a sheet leaves out what a full window drops, but the program makes it all the same
    return (
        ProgramLine("import torch"),
        ProgramLine("from zlib import crc32"),
        heading("Random numbers that depend on the seed and on what they are for"),
        ProgramLine('def draw_for(name):\n    torch.manual_seed(crc32(f"{seed} {name}".encode()))'),
        *_size_lines(about, table, sizes, dtype, device),
        *_random_lines(a, about, table, head, seed),
        *_computing_lines(a, about, table, sizes["N"], head, device),
    )


def program_of_tensors(
    architecture: Architecture,
    tokens: int,
    given: Sequence[str],
    *,
    layer: int,
    head: int = 0,
    dtype: str = "float32",
    device: str = "cpu",
    topic: str = SINGLE_HEAD.key,
) -> tuple[ProgramLine, ...]:
    """Write a program with given tensors instead of random ones, for one head or all heads of a layer.

    Raises ForwardError for a model that can't be run, and a layer that is missing or has no self-attention.
    """
    a, about = architecture_of(topic, at_layer(architecture, layer)), TOPICS[topic]
    table, sizes = runnable_table(topic, a, tokens)
    _check_arguments(a, head, dtype, device, 0)
    weights = ", and its weights" if about.is_layer else f", and the weights of its head {head:d}"
    return (
        ProgramLine("import torch"),
        *_size_lines(about, table, sizes, dtype, device),
        heading(f"The input of layer {layer:d}{weights}"),
        *(ProgramLine(f'{name} = tensors["{name}"]', "input" if name == "X" else name) for name in given),
        *_computing_lines(a, about, table, sizes["N"], head, device),
    )


def variable_names(lines: Sequence[ProgramLine], table: TensorTable) -> dict[str, str]:
    """The program's variable for every tensor of the table, by the table's key."""
    first_names = {line.makes: line.names[0] for line in lines if line.makes}
    return {tensor.key: first_names.get(tensor.key, tensor.letter) for tensor in table.tensors}


# What can run


def runnable_table(
    topic: str, architecture: Architecture, tokens: int, decoder_tokens: int | None = None
) -> tuple[TensorTable, Mapping[str, int]]:
    """The table that a run is checked against, and a size for each of its symbols: N is `tokens`, M `decoder_tokens`.

    Raises ForwardError if no program here computes it.
    """
    if topic not in RUNNABLE_TOPICS:
        raise ForwardError(_("The topic must be one of {topics}.").format(topics=", ".join(RUNNABLE_TOPICS)))
    if not all(_is_whole(number) for number in (tokens, decoder_tokens) if number is not None):
        raise ForwardError(_("The number of tokens must be a whole number."))
    try:
        check_topic_tokens(topic, architecture, tokens)
        asking = check_decoder_tokens(architecture, tokens, decoder_tokens)
        table = topic_for(topic, architecture, tokens)
    except (TokensError, TopicError) as refusal:
        raise ForwardError(str(refusal)) from None
    check_modelled(architecture, topic)
    return table, sizes_for(topic, architecture, tokens, asking)


def check_modelled(architecture: Architecture, topic: str) -> None:
    """Raise ForwardError, with the reason, if no program here computes the model's attention."""
    check_rotary(architecture)
    for sentence in _refusals(architecture_of(topic, architecture), TOPICS[topic]):
        parts = ", ".join(architecture.not_modelled)
        raise ForwardError(sentence.format(model=architecture.name, parts=parts))


def _refusals(a: Architecture, about: Topic) -> Iterator[str]:
    if a.shapes_only:
        yield _("How {model} encodes positions is not known here, so its attention cannot run.")
    if a.position_bias == "disentangled":
        yield _("{model} has disentangled attention, which adds scores of relative positions: it cannot run here.")
    if a.not_modelled:
        yield _("{model} has {parts}: it cannot run here.")
    if a.scales_queries and a.rotary is None:
        yield _("{model} scales queries by their position in layers without RoPE: it cannot run here.")
    if a.has_latent_attention and not about.is_layer:
        yield _("{model} computes all heads' keys from one latent vector: run its attention layer, not one head.")
    if a.has_latent_attention and a.biases:
        yield _("{model} has biases on the projections of its latent vectors: it cannot run here.")
    if a.qk_norm == "all-heads" and not about.is_layer:
        yield _("{model} normalizes the queries of all heads together: run its attention layer, not one head.")
    if about.adds_tokens and a.position_bias == "relative":
        yield _("{model} adds a learned bias for each distance between tokens: its decode step cannot run here.")
    if about.reads_two_texts and a.rotary is not None:
        yield _("{model} rotates queries and keys by their positions: its cross-attention cannot run here.")


def _check_arguments(architecture: Architecture, head: int, dtype: str, device: str, seed: int) -> None:
    if not _is_whole(head) or not 0 <= head < architecture.H:
        message = _("The head must be a whole number from 0 to {last}.")
        raise ForwardError(message.format(last=f"{architecture.H - 1:,}"))
    if not _is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ForwardError(_("The seed must be a whole number from 0 to {last}.").format(last=f"{MAX_SEED:,}"))
    if dtype not in BYTES_BY_DTYPE:
        raise ForwardError(_("The number format must be one of {names}.").format(names=", ".join(BYTES_BY_DTYPE)))
    if device not in DEVICES:
        raise ForwardError(_("The device must be one of {names}.").format(names=", ".join(DEVICES)))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# The architecture as a run sees it


def architecture_of(topic: str, architecture: Architecture) -> Architecture:
    """The architecture as the topic has it: with its decoder's sizes, or without distances between two texts."""
    about = TOPICS[topic]
    if about.uses_decoder:
        sizes = architecture.decoder_sizes
        architecture = replace(architecture, H=sizes["H"], G=sizes["G"], d_h=sizes["d_h"], d_v=sizes["d_v"])
    return replace(architecture, position_bias="") if about.reads_two_texts else architecture


def at_layer(architecture: Architecture, layer: int) -> Architecture:
    """The architecture with the window, chunk and RoPE of its layer number `layer`, from 0."""
    if not _is_whole(layer) or not 0 <= layer < architecture.L:
        message = _("The layer must be a whole number from 0 to {last}.")
        raise ForwardError(message.format(last=f"{architecture.L - 1:,}"))
    first = 0
    for run in architecture.stacks[0].runs:
        if layer < first + run.count:
            break
        first += run.count
    if not run.has_self_attention:
        message = _("In layer {layer} of {model}, tokens do not attend to each other: choose another.")
        raise ForwardError(message.format(layer=layer, model=architecture.name))
    return replace(architecture, window=run.window, chunk=run.chunk, rotary=run.rotary)


def unmasked(a: Architecture) -> Architecture:
    """The same attention with no key hidden from any query."""
    return replace(a, causal=False, window=None, chunk=None)


def masked_within(a: Architecture, tokens: int) -> Architecture:
    """The architecture without a window or chunks so long that they hide none of `tokens` tokens."""
    seen = tokens if a.causal else 2 * tokens - 1  # a centred window reaches to both sides
    window = a.window if a.window is not None and a.window < seen else None
    return replace(a, window=window, chunk=a.chunk if a.chunk is not None and a.chunk < tokens else None)


def _attending(a: Architecture, about: Topic, tokens: int) -> Architecture:
    # Nothing is hidden from a new last token, or from one text in another.
    return masked_within(a, tokens) if about.reads_one_text else unmasked(a)


# Sizes, and random numbers in the place of an input and weights


def _size_lines(
    about: Topic, table: TensorTable, sizes: Mapping[str, int], dtype: str, device: str
) -> Iterator[ProgramLine]:
    words = dict(_SIZES)
    if not about.reads_one_text:
        words["N"] = "cached tokens" if about.adds_tokens else "encoder tokens"
    used = {symbol for tensor in table.tensors for side in tensor.shape for symbol in side.symbols}
    symbols = [symbol for symbol in words if symbol in used]
    yield heading(f"Sizes: {', '.join(words[symbol] for symbol in symbols)}")
    # The format "d" accepts whole numbers and refuses everything else.
    yield ProgramLine(f"{', '.join(symbols)} = {', '.join(f'{sizes[symbol]:d}' for symbol in symbols)}")
    yield ProgramLine(f'device = "{device}"')
    yield ProgramLine(f"dtype = torch.{dtype}")


def _random_lines(a: Architecture, about: Topic, table: TensorTable, head: int, seed: int) -> Iterator[ProgramLine]:
    """Yield the lines that draw inputs and parameters.

    Every draw is seeded by the seed and a name, such as "query head 3". So random streams never overlap, and a layer
    contains exactly the heads that run separately, number by number.
    """
    inputs = "A random input" if about.reads_one_text else "Random inputs"
    yield heading(f"{inputs}, and random weights for this {'layer' if about.is_layer else 'head'}")
    kv_head = head // a.query_heads_per_kv_head
    yield ProgramLine(
        f"seed = {seed:d}" if about.is_layer else f"seed, head, kv_head = {seed:d}, {head:d}, {kv_head:d}"
    )
    if about.adds_tokens:
        yield ProgramLine('draw_for("input")')
        yield ProgramLine(f"X = {_RANDN.format('N + 1, d')}", comment="the last row is the new token")
    else:
        for tensor in (tensor for tensor in table.activations if not tensor.made_by):
            yield ProgramLine(f'draw_for("{tensor.key}")')
            yield ProgramLine(f"{tensor.letter} = {_RANDN.format(_lengths(tensor))}", tensor.key)
    if not about.is_layer:
        yield from _head_parameters(a, head, kv_head)
    elif a.has_latent_attention:
        yield from _latent_parameters(a, table)
    else:
        yield from _layer_parameters(a)


_RANDN = "torch.randn({}, device=device, dtype=dtype)"


def _head_parameters(a: Architecture, head: int, kv_head: int) -> Iterator[ProgramLine]:
    yield ProgramLine('draw_for(f"query head {head}")', comment=f"query head {head:d}")
    yield ProgramLine(f"W_Q = {_normal(a, 'd, d_h')}", "W_Q")
    yield ProgramLine(f"W_O = {_normal(a, 'd_v, d')}", "W_O")
    yield from _fresh_biases(a, {"q": "d_h"})
    yield from _fresh_gains(a, {"Q": "d_h"})
    if a.has_sinks:
        yield ProgramLine('draw_for(f"sink of head {head}")')
        yield ProgramLine(f"sink = {_normal(a, '')}", comment="a learned score without a key")
    if a.position_bias == "relative":
        yield ProgramLine('draw_for(f"position bias of head {head}")')
        buckets = f"{a.extra['n_buckets']:d}"
        yield ProgramLine(f"b_P = {_normal(a, buckets)}", comment="one learned number for each bucket of distances")
    group, comment = a.query_heads_per_kv_head, f"key/value head {kv_head:d}"
    if group > 1:
        comment += f", shared by query heads {kv_head * group:d} to {(kv_head + 1) * group - 1:d}"
    yield ProgramLine('draw_for(f"key/value head {kv_head}")', comment=comment)
    yield ProgramLine(f"W_K = {_normal(a, 'd, d_h')}", "W_K")
    yield ProgramLine(f"W_V = {_normal(a, 'd, d_v')}", "W_V")
    yield from _fresh_biases(a, {"k": "d_h", "v": "d_v"})
    yield from _fresh_gains(a, {"K": "d_h"})


def _layer_parameters(a: Architecture) -> Iterator[ProgramLine]:
    yield ProgramLine(
        "W_Q, W_O = X.new_empty(d, H * d_h), X.new_empty(H * d_v, d)\n"
        "for head in range(H):\n"
        '    draw_for(f"query head {head}")\n'
        f"    W_Q.view(d, H, d_h)[:, head] = {_normal(a, 'd, d_h')}\n"
        f"    W_O.view(H, d_v, d)[head] = {_normal(a, 'd_v, d')}"
    )
    yield ProgramLine(
        "W_K, W_V = X.new_empty(d, G * d_h), X.new_empty(d, G * d_v)\n"
        "for kv_head in range(G):\n"
        '    draw_for(f"key/value head {kv_head}")\n'
        f"    W_K.view(d, G, d_h)[:, kv_head] = {_normal(a, 'd, d_h')}\n"
        f"    W_V.view(d, G, d_v)[:, kv_head] = {_normal(a, 'd, d_v')}"
    )
    yield from _fresh_biases(a, {"q": "H * d_h", "k": "G * d_h", "v": "G * d_v", "o": "d"})
    all_heads = a.qk_norm == "all-heads"
    yield from _fresh_gains(a, {"Q": "H * d_h" if all_heads else "d_h", "K": "G * d_h" if all_heads else "d_h"})
    if a.has_sinks:
        draw = f'    draw_for(f"sink of head {{head}}")\n    sink[head] = {_normal(a, "")}'
        code = f"sink = X.new_empty(H)\nfor head in range(H):\n{draw}"
        yield ProgramLine(code, comment="for each head, a learned score without a key")
    if a.position_bias == "relative":
        buckets = f"{a.extra['n_buckets']:d}"
        draw = f'    draw_for(f"position bias of head {{head}}")\n    b_P[head] = {_normal(a, buckets)}'
        code = f"b_P = X.new_empty(H, {buckets})\nfor head in range(H):\n{draw}"
        yield ProgramLine(code, comment="for each head, one learned number for each bucket of distances")


def _latent_parameters(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    for tensor in (tensor for tensor in table.tensors if tensor.parameter):
        yield ProgramLine(f'draw_for("{tensor.letter}")')
        yield ProgramLine(f"{tensor.letter} = {_normal(a, _lengths(tensor))}", tensor.key)
    yield _fresh_gain("g_KV", "r_kv")
    if a.has_latent_queries:
        yield _fresh_gain("g_Q", "r_q")


def _normal(a: Architecture, shape: str) -> str:
    size = f"({shape},)" if shape and "," not in shape else f"({shape})"
    return f"torch.normal(0.0, {float(a.initializer_range)!r}, {size}, device=device, dtype=dtype)"


def _fresh_biases(a: Architecture, widths: Mapping[str, str]) -> Iterator[ProgramLine]:
    for projection, width in widths.items():
        if projection in a.biases:
            code = f"b_{projection.upper()} = torch.zeros({width}, device=device, dtype=dtype)"
            yield ProgramLine(code, comment="a bias starts at 0")


def _fresh_gains(a: Architecture, widths: Mapping[str, str]) -> Iterator[ProgramLine]:
    if a.qk_norm in ("per-head", "all-heads"):
        yield from (_fresh_gain(f"g_{letter}", width) for letter, width in widths.items())


def _fresh_gain(name: str, width: str) -> ProgramLine:
    code = f"{name} = torch.ones({width}, device=device, dtype=dtype)"
    return ProgramLine(code, comment="the gain of a norm starts at 1")


# The head or layer itself: the table's tensors in their order


def _computing_lines(
    a: Architecture, about: Topic, table: TensorTable, tokens: int, head: int, device: str
) -> Iterator[ProgramLine]:
    attending, last = _attending(a, about, tokens), "N + 1" if about.adds_tokens else "N"
    is_by_head = any(_is_by_head(tensor) for tensor in table.activations)
    if attending.causal or attending.window or a.position_bias == "alibi" or a.rotary:
        yield heading("Positions of the tokens")
        yield ProgramLine(f"position = torch.arange({last}, device=device)")
    yield from angle_lines(a, tokens + about.adds_tokens, device)
    yield from _position_bias_lines(attending, None if about.is_layer else head)
    if about.adds_tokens:
        yield from _cache_lines(a, table)
        yield heading("One more token")
        yield ProgramLine("x = X[N:]", "input", timed=True)
    else:
        yield heading(f"The {'layer' if about.is_layer else 'head'} itself")
    for tensor in (tensor for tensor in table.activations if tensor.made_by):
        if isinstance(tensor.made_by, Softmax):
            lines = () if is_by_head else score_lines(attending, layer=about.is_layer, makes=tensor.key)
        elif _is_by_head(tensor):
            lines = _by_head_lines(tensor, a, attending, table)
        else:
            lines = _lines_making(tensor, a, about, table, tokens)
        yield from (replace(line, timed=True) for line in lines)
    if about.is_layer and is_by_head:
        yield heading("Scores and weights of one head: rows and columns are tokens")
        for tensor in (tensor for tensor in table.activations if tensor.role == "score"):
            yield ProgramLine(f"{tensor.letter}_head = {tensor.letter}[{head:d}]", tensor.key, timed=True)


def _lines_making(
    tensor: Tensor, a: Architecture, about: Topic, table: TensorTable, tokens: int
) -> Iterator[ProgramLine]:
    operation = tensor.made_by
    if isinstance(operation, Concat):
        yield from _concat_lines(tensor, operation, a, table, tokens)
    elif str(tensor.columns) in _LATENT_SIZES:
        product, gain = _code(tensor, table), tensor.letter.replace("C_", "g_")
        yield _made(tensor, f"torch.rms_norm({product}, ({tensor.columns},), {gain}, eps={LATENT_NORM_EPS!r})")
    elif isinstance(operation, Matmul) and table[operation.operands[1]].parameter:
        yield from _projection_lines(tensor, operation, a, about, table)
    else:
        yield _made(tensor, _code(tensor, table))
        if isinstance(operation, Transpose) and tensor.role in ("query", "key"):
            yield from _norm_and_rope(a, tensor.letter, tensor.key)


def _projection_lines(
    tensor: Tensor, operation: Matmul, a: Architecture, about: Topic, table: TensorTable
) -> Iterator[ProgramLine]:
    name, letter, code = tensor.letter, operation.operands[1].removeprefix("W_"), _code(tensor, table)
    if tensor.role == "output":
        is_left_out = "o" in a.biases and not about.is_layer
        yield _made(tensor, code, "b_O is left out: the layer adds it once" if is_left_out else "")
        if "o" in a.biases and about.is_layer:
            yield ProgramLine(f"{name} += b_O")
        return
    yield _made(tensor, code + _bias(a, letter))
    if operation.rotated:
        yield from rotate_lines(a.rotary, name, a.extra["d_rope"], tensor.key)
    elif tensor.role in ("query", "key") and not about.is_layer:
        yield from _norm_and_rope(a, name, tensor.key, "[N:]" if about.adds_tokens else "")
    elif tensor.role in ("query", "key") and a.qk_norm == "all-heads":
        yield _norm_line(a, name, _in_code(tensor.columns), f"g_{letter}, ", tensor.key)


def _cache_lines(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    yield heading("The cache: keys and values of the first N tokens")
    for tensor in (tensor for tensor in table.activations if not tensor.made_by and tensor.role != "input"):
        letter, name = tensor.letter[0], _variable(tensor)
        yield ProgramLine(f"{name} = X[:N] @ W_{letter}{_bias(a, letter)}", tensor.key)
        if tensor.role == "key":
            yield from _norm_and_rope(a, name, tensor.key, "[:N]")


def _concat_lines(
    tensor: Tensor, operation: Concat, a: Architecture, table: TensorTable, tokens: int
) -> Iterator[ProgramLine]:
    first, second = (_variable(table[key]) for key in operation.operands)
    if operation.appends_row:
        is_full = a.window is not None and tokens + 1 > a.window
        kept = f"[N + 1 - {a.window:d}:]" if is_full else ""
        comment = f"the {a.window:d} newest: the window is full" if is_full else ""
        yield _made(tensor, f"torch.cat(({first}{kept}, {second}), dim=0)", comment)
    elif operation.joins_columns:
        yield _made(tensor, f"torch.cat(({first}, {second}), dim=1)", "all that is cached of a token")
    else:
        parts = f"{first}.view(N, H, d_nope), {second}[:, None].expand(N, H, d_rope)"
        yield ProgramLine(f"{tensor.letter} = torch.cat(({parts}), dim=2)", comment="one rotary key for all heads")
        yield _made(tensor, f"{tensor.letter}.view(N, H * d_h)")


def _by_head_lines(
    tensor: Tensor, a: Architecture, attending: Architecture, table: TensorTable
) -> Iterator[ProgramLine]:
    if tensor.role != "score":
        yield heading("All heads concatenated again")
        yield _made(tensor, "c.transpose(0, 1).reshape(N, H * d_v)")
        return
    yield heading("Head by head")
    scores, context = [each.made_by for each in table.activations if each.made_by and _is_by_head(each)]
    for of_all_heads in (table[key] for key in (*scores.operands, context.operands[1])):
        name, lengths = of_all_heads.letter.lower(), str(of_all_heads.columns).replace("*", ", ")
        yield ProgramLine(f"{name} = {of_all_heads.letter}.view(N, {lengths}).transpose(0, 1)")
        if of_all_heads.role == "query" and a.has_latent_attention:
            yield ProgramLine("q_C, q_R = q.split((d_nope, d_rope), dim=2)", comment="the rotary part")
            yield from rotate_lines(a.rotary, "q_R", a.extra["d_rope"])
            yield ProgramLine("q = torch.cat((q_C, q_R), dim=2)")
        elif of_all_heads.role != "value" and not a.has_latent_attention:
            yield from _norm_and_rope(a, name)
    group = a.query_heads_per_kv_head
    if group > 1:
        comment = f"{group:d} query heads that share keys and values, one below the other"
        yield ProgramLine("q_shared = q.reshape(G, -1, d_h)", comment=comment)
        yield ProgramLine("S = (q_shared @ k.mT).view(H, N, N)")
    else:
        yield ProgramLine("S = q @ k.mT")
    yield from score_lines(attending, layer=True)
    yield ProgramLine("c = (A.reshape(G, -1, N) @ v).view(H, N, d_v)" if group > 1 else "c = A @ v")


def _is_by_head(tensor: Tensor) -> bool:
    return isinstance(tensor.made_by, Matmul) and tensor.made_by.is_by_head


def _variable(tensor: Tensor) -> str:
    # A program's lines of scores write S and A, and a prime isn't part of a name.
    return tensor.letter.upper() if tensor.role == "score" else tensor.letter.replace("'", "_cached")


def _lengths(tensor: Tensor) -> str:
    return ", ".join(map(_in_code, tensor.shape))


def _in_code(length: Expression) -> str:
    return str(length).replace("*", " * ")


def _code(tensor: Tensor, table: TensorTable) -> str:
    assert tensor.made_by is not None  # noqa: S101 - it is not given
    names = {each.key: _variable(each) for each in table.tensors}
    return tensor.made_by.code(_lengths(tensor)).format(**names, H="H", G="G")


def _made(tensor: Tensor, code: str, comment: str = "") -> ProgramLine:
    return ProgramLine(f"{_variable(tensor)} = {code}", tensor.key, comment)


def _bias(a: Architecture, letter: str) -> str:
    return f" + b_{letter}" if letter.lower() in a.biases else ""


def _norm_and_rope(a: Architecture, name: str, makes: str | None = None, at: str = "") -> Iterator[ProgramLine]:
    if a.qk_norm == "per-head":
        yield _norm_line(a, name, "d_h", f"g_{name[0].upper()}, ", makes)
    yield from rotate_lines(a.rotary, name, a.d_h, makes, at)
    if a.qk_norm == "after-rope":
        yield _norm_line(a, name, "d_h", "", makes)


def _norm_line(a: Architecture, name: str, width: str, gain: str, makes: str | None) -> ProgramLine:
    return ProgramLine(f"{name} = torch.rms_norm({name}, ({width},), {gain}eps={float(a.qk_norm_eps or 0)!r})", makes)


# Between Q·Kᵀ and the attention weights: for the scores S of one head, (N, N), and of a layer, (H, N, N)


def _position_bias_lines(a: Architecture, head: int | None) -> Iterator[ProgramLine]:
    if a.position_bias == "relative":
        buckets = a.extra["n_buckets"]
        half, exact = buckets // 2, buckets // 2 // 2
        growth = f"(distance.abs() / {exact:d}).log() / {math.log(MAX_DISTANCE / exact)!r} * {half - exact:d}"
        far = f"far = ({exact:d} + ({growth}).long()).clamp(max={half - 1:d})"
        near = f"torch.where(distance.abs() < {exact:d}, distance.abs(), far)"
        yield heading("Relative position bias: distances of query and key are sorted into buckets")
        comment = "position of the key minus that of the query"
        yield ProgramLine("distance = torch.arange(1 - N, N, device=device)", comment=comment)
        yield ProgramLine(far, comment=f"for distances from {exact:d} on")
        yield ProgramLine(f"bucket = {near} + {half:d} * (distance > 0)")
        yield ProgramLine("bias = b_P[..., bucket]")
    if a.position_bias == "alibi":
        yield heading("ALiBi: a fixed slope for each head, so that near keys count more")
        if head is not None:
            yield ProgramLine(f"slope = {a.alibi_slopes[head]!r}")
        elif a.H & (a.H - 1) == 0:  # a power of two of heads has a formula
            yield ProgramLine(f"slope = 2.0 ** (-{STRENGTH} * torch.arange(1, H + 1, device=device) / H)")
        else:
            yield ProgramLine(f"slope = torch.tensor({list(a.alibi_slopes)!r}, device=device)")


def score_lines(a: Architecture, *, layer: bool = False, makes: str | None = None) -> Iterator[ProgramLine]:
    """Yield the lines that turn S = Q·Kᵀ into the attention weights A, in the order of the model's module.

    A line is written only if the model computes it: T5's scores aren't scaled, Gemma 2's are capped.
    """
    scale = a.score_scale
    if scale.kind == "inverse-sqrt":
        yield ProgramLine("S /= d_h**0.5")
    if scale.kind == "yarn":
        yield ProgramLine(f"S *= {float(scale.number)!r} / d_h**0.5", comment="with YaRN’s constant for long inputs")
    if scale.kind == "root":
        yield ProgramLine(f"S /= {float(scale.number)!r}**0.5", comment=f'"{scale.field}" in place of d_h')
    if scale.kind == "stated":
        yield ProgramLine(f"S *= {float(scale.factor)!r}", comment=f'as "{scale.field}" says')
    if a.position_bias == "relative":
        # Row i of the scores takes the distances from -i to N - 1 - i: a slice of `bias` that starts at N - 1 - i.
        yield ProgramLine("S += bias.unfold(-1, N, 1).flip(-2)", comment="row i: the distances from -i to N - 1 - i")
    if a.position_bias == "alibi":
        # Lacks slope · (position of the query), which is the same number in a whole row and doesn't change the softmax.
        slope = "slope[:, None, None]" if layer else "slope"
        yield ProgramLine(f"S += {slope} * position", comment="ALiBi")
    if a.score_softcap is not None:
        cap = repr(float(a.score_softcap))
        yield ProgramLine(f"S = S.div_({cap}).tanh_().mul_({cap})", comment=f"softcap: {cap} · tanh(S / {cap})")
    yield from mask_lines(a)
    if a.has_sinks:
        column = f"{'sink[:, None, None]' if layer else 'sink'}.expand(*S.shape[:-1], 1)"
        code = f"A = torch.softmax(torch.cat((S, {column}), dim=-1), dim=-1)[..., :-1]"
        yield ProgramLine(code, makes, "the sink takes a share")
    else:
        yield ProgramLine("A = torch.softmax(S, dim=-1)", makes)


def mask_lines(a: Architecture) -> Iterator[ProgramLine]:
    """Yield lines that set hidden scores in S to -inf: later tokens, and tokens outside the window or chunk."""
    # Compared, not subtracted: a difference of positions would be an N × N table of 8-byte numbers.
    if a.causal:
        yield _mask_line("position > position[:, None]", "no later token")
    if a.window is not None and a.causal:
        yield _mask_line(f"position[:, None] >= position + {a.window:d}", "nor one before the window")
    elif a.window is not None:
        side = (a.window - 1) // 2
        yield _mask_line(f"position > position[:, None] + {side:d}", "none after the window")
        yield _mask_line(f"position[:, None] > position + {side:d}", "nor before it")
    if a.chunk is not None:
        yield _mask_line(f"position // {a.chunk:d} < position[:, None] // {a.chunk:d}", "nor one of an earlier chunk")


def _mask_line(condition: str, comment: str) -> ProgramLine:
    return ProgramLine(f'S.masked_fill_({condition}, float("-inf"))', comment=comment)


# What a page says about it


def notes(architecture: Architecture, tokens: int, topic: str = SINGLE_HEAD.key) -> tuple[str, ...]:
    """Keys of what a reader should know about this run, such as "keys-shared"; the page has the sentences."""
    about = TOPICS[topic]
    a = architecture_of(topic, architecture)
    attending = _attending(a, about, tokens)
    scaling = scaling_type(a.rotary) if a.rotary else None
    runs = () if about.reads_two_texts else a.stacks[-1 if about.adds_tokens else 0].runs
    applies = {
        "keys-shared": a.query_heads_per_kv_head > 1,
        f"window:{a.window}": attending.window is not None,
        f"chunk:{a.chunk}": attending.chunk is not None,
        "unscaled": a.score_scale.kind == "none",
        f"scale:{a.score_scale.factor:.4g}": a.score_scale.kind == "stated",
        f"scale-root:{a.score_scale.number:.4g}": a.score_scale.kind == "root",
        f"scale-yarn:{a.score_scale.number:.4g}": a.score_scale.kind == "yarn",
        "relative-bias": a.position_bias == "relative",
        "alibi": a.position_bias == "alibi",
        f"softcap:{a.score_softcap or 0:g}": a.score_softcap is not None,
        "sinks": a.has_sinks,
        f"rope-scaling:{scaling}": scaling is not None and scaling != "mrope",
        "output-bias": "o" in a.biases and not about.is_layer,
        "first-layer": any((run.window, run.chunk, run.rotary) != (a.window, a.chunk, a.rotary) for run in runs),
    }
    return tuple(key for key, is_true in applies.items() if is_true)
