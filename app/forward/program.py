"""Writes the torch program of a head or of a whole attention layer: fixed text and numbers, nothing a person typed.

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
K = X @ W_K  # (100, 64)
V = X @ W_V  # (100, 64)
Q1, Q2 = Q.split(32, dim=-1)  # (100, 32) (100, 32)
Q = torch.cat((Q1 * cos - Q2 * sin, Q2 * cos + Q1 * sin), dim=-1)  # (100, 64)
K1, K2 = K.split(32, dim=-1)  # (100, 32) (100, 32)
K = torch.cat((K1 * cos - K2 * sin, K2 * cos + K1 * sin), dim=-1)  # (100, 64)
S = Q @ K.T  # (100, 100)
S /= d_h**0.5  # (100, 100)
S.masked_fill_(position > position[:, None], float("-inf"))  # (100, 100) no later token
A = torch.softmax(S, dim=-1)  # (100, 100)
C = A @ V  # (100, 64)
O = C @ W_O  # (100, 768)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.forward.devices import DEVICES
from app.forward.draws import (
    import_lines,
    input_lines,
    key_value_parameter_lines,
    layer_parameter_lines,
    query_parameter_lines,
    size_lines,
)
from app.forward.latent import latent_layer_lines, latent_parameter_lines, latent_size_lines
from app.forward.lines import ForwardError, ProgramLine, helper, made_line
from app.forward.rope import angle_lines, apply_rope, check_rotary, rotated_pairs, scaling_type
from app.forward.scores import has_chunks, has_window, needs_positions, position_bias_lines, score_lines
from app.models.architecture import Architecture, TokensError
from app.shapes.table import TensorTable
from app.topics.registry import TOPICS, check_decoder_tokens, check_topic_tokens, sizes_for, topic_for
from app.topics.requirements import TopicError
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

BYTES_BY_DTYPE: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
MAX_SEED = 2**32 - 1
_PROJECTED = {"Q": "queries", "K": "keys", "V": "values"}
RUNNABLE_TOPICS = tuple(topic.key for topic in TOPICS.values() if topic.program)
_SIZES_OF_HEAD = "Sizes: tokens, embedding dimension, head dimension of queries and keys, of values"
_SIZES_OF_LAYER = "tokens, embedding dimension, query heads, key/value heads, head dimensions"


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
    """Write a topic's torch program, for one query head or for all heads of a layer."""
    sizes = run_sizes(topic, architecture, tokens, decoder_tokens)
    a = architecture_of(topic, architecture)
    _check_arguments(a, head, dtype, device, seed)
    table = runnable_table(topic, architecture, tokens)
    check_modelled(architecture, topic)
    writers: Mapping[str, Callable[..., Iterator[ProgramLine]]] = {
        "head": _head_program,
        "layer": _latent_layer_program if a.has_latent_attention else _layer_program,
        "split-heads": _split_heads_program,
        "one-more-token": _decode_program,
        "two-texts": _cross_program,
    }
    write = writers[TOPICS[topic].program]
    return (*import_lines(), *write(a, table, sizes, head, dtype, device, seed))


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
    a = at_layer(architecture, layer)
    sizes = run_sizes(topic, a, tokens)
    _check_arguments(a, head, dtype, device, 0)
    table = runnable_table(topic, a, tokens)
    check_modelled(a, topic)
    reads = [ProgramLine(f'{name} = tensors["{name}"]', "input" if name == "X" else name, (name,)) for name in given]
    if is_layer(topic):
        heading, symbols, weights = f"Sizes: {_SIZES_OF_LAYER}", "N, d, H, G, d_h, d_v", ", and its weights"
        computing = (*_position_lines(a, tokens, None, device), *_layer_itself(a, table, sizes, head))
    else:
        heading, symbols, weights = _SIZES_OF_HEAD, "N, d, d_h, d_v", f", and the weights of its head {head:d}"
        computing = tuple(_head_itself(a, table, sizes, head, device))
    return (
        ProgramLine("import torch"),
        ProgramLine("", comment=heading),
        *size_lines(symbols, sizes, dtype, device),
        ProgramLine("", comment=f"The input of layer {layer:d}{weights}"),
        *reads,
        *computing,
    )


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


def is_layer(topic: str) -> bool:
    """Whether the topic is a whole attention layer rather than one head."""
    return TOPICS[topic].subject == "layer"


def architecture_of(topic: str, architecture: Architecture) -> Architecture:
    """The architecture, with the decoder's H, G, d_h and d_v if the topic uses a decoder.

    Raises KeyError for an unknown topic.
    """
    if not TOPICS[topic].uses_decoder:
        return architecture
    sizes = architecture.decoder_sizes
    return replace(architecture, H=sizes["H"], G=sizes["G"], d_h=sizes["d_h"], d_v=sizes["d_v"])


def run_sizes(
    topic: str, architecture: Architecture, tokens: int, decoder_tokens: int | None = None
) -> Mapping[str, int]:
    """A size for every symbol of the topic's table; N is `tokens` and M `decoder_tokens`."""
    _check_topic(topic)
    if not all(_is_whole(number) for number in (tokens, decoder_tokens) if number is not None):
        raise ForwardError(_("The number of tokens must be a whole number."))
    try:
        check_topic_tokens(topic, architecture, tokens)
        asking = check_decoder_tokens(architecture, tokens, decoder_tokens)
    except TokensError as refusal:
        raise ForwardError(str(refusal)) from None
    return sizes_for(topic, architecture, tokens, asking)


def runnable_table(topic: str, architecture: Architecture, tokens: int) -> TensorTable:
    """The table that a run of this topic is checked against."""
    _check_topic(topic)
    try:
        return topic_for(topic, architecture, tokens)
    except TopicError as refusal:
        raise ForwardError(str(refusal)) from None


def _check_topic(topic: str) -> None:
    if topic not in RUNNABLE_TOPICS:
        raise ForwardError(_("The topic must be one of {topics}.").format(topics=", ".join(RUNNABLE_TOPICS)))


def check_modelled(architecture: Architecture, topic: str) -> None:
    """Raise ForwardError, with the reason, if no program here computes the model's attention."""
    check_rotary(architecture)
    for sentence in _refusals(architecture_of(topic, architecture), topic):
        parts = ", ".join(architecture.not_modelled)
        raise ForwardError(sentence.format(model=architecture.name, parts=parts))


def _refusals(a: Architecture, topic: str) -> Iterator[str]:
    kind = TOPICS[topic].program
    if a.position_bias == "disentangled":
        yield _("{model} has disentangled attention, which adds scores of relative positions: it cannot run here.")
    if a.not_modelled:
        yield _("{model} has {parts}: it cannot run here.")
    if a.scales_queries and a.rotary is None:
        yield _("{model} scales queries by their position in layers without RoPE: it cannot run here.")
    if a.has_latent_attention and not is_layer(topic):
        yield _("{model} computes all heads' keys from one latent vector: run its attention layer, not one head.")
    if a.has_latent_attention and a.biases:
        yield _("{model} has biases on the projections of its latent vectors: it cannot run here.")
    if a.qk_norm == "all-heads" and not is_layer(topic):
        yield _("{model} normalizes the queries of all heads together: run its attention layer, not one head.")
    if kind == "one-more-token" and a.position_bias == "relative":
        yield _("{model} adds a learned bias for each distance between tokens: its decode step cannot run here.")
    if kind == "two-texts" and a.rotary is not None:
        yield _("{model} rotates queries and keys by their positions: its cross-attention cannot run here.")


def variable_names(lines: tuple[ProgramLine, ...], table: TensorTable) -> dict[str, str]:
    """The program's variable for every tensor of the table, by the table's key."""
    first_names = {line.makes: line.names[0] for line in lines if line.makes}
    return {tensor.key: first_names.get(tensor.key, tensor.letter) for tensor in table.tensors}


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


def _head_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield ProgramLine("", comment=_SIZES_OF_HEAD)
    yield from size_lines("N, d, d_h, d_v", sizes, dtype, device)
    yield ProgramLine("", comment="A random input, and random weights for this head")
    yield from _random_lines_of_head(a, head, seed, *input_lines())
    yield from _head_itself(a, table, sizes, head, device)


def _head_itself(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, device: str
) -> Iterator[ProgramLine]:
    yield from _position_lines(a, sizes["N"], head, device)
    yield ProgramLine("", comment="The head itself")
    yield from _projection_lines(a, table)
    yield from _norm_and_rope(a, "Q", "queries")
    yield from _norm_and_rope(a, "K", "keys")
    yield made_line(table, "scores")
    yield from score_lines(a, sizes["N"])
    yield from _head_output_lines(a, table)


def _decode_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield ProgramLine("", comment="Sizes: cached tokens, embedding dimension, head dimensions")
    yield from size_lines("N, d, d_h, d_v", sizes, dtype, device)
    yield ProgramLine("", comment="Random inputs, the last of them the new token, and random weights for this head")
    yield from _random_lines_of_head(a, head, seed, *input_lines("N + 1, d", None))
    without_mask = replace(a, causal=False, window=None)  # the new token is the last, so nothing is hidden from it
    yield from _position_lines(without_mask, sizes["N"] + 1, head, device, "N + 1")
    yield ProgramLine("", comment="The cache: keys and values of the first N tokens")
    for letter, key in (("K", "cached_keys"), ("V", "cached_values")):
        name, makes = f"{letter}_cached", key if key in table.by_key else None
        code = f"{name} = X[:N] @ W_{letter}" + _bias(a, letter)
        cached = [ProgramLine(code, makes, (name,)), *(_norm_and_rope(a, name, makes, "[:N]") if letter == "K" else ())]
        yield from (replace(line, timed=False) for line in cached)
    yield ProgramLine("", comment="One more token")
    yield ProgramLine("x = X[N:]", "input", ("x",), timed=True)
    for letter, key in (("Q", "queries"), ("K", "new_key"), ("V", "new_value")):
        name, makes = letter.lower(), key if key in table.by_key else None
        yield ProgramLine(f"{name} = x @ W_{letter}" + _bias(a, letter), makes, (name,), timed=True)
        if letter != "V":
            yield from _norm_and_rope(a, name, makes, "[N:]")
    first = "" if "cached_keys" in table.by_key else f"[N + 1 - {a.window:d}:]"
    for letter, key in (("K", "keys"), ("V", "values")):
        code = f"{letter} = torch.cat(({letter}_cached{first}, {letter.lower()}), dim=0)"
        comment = f"the {a.window:d} newest: the window is full" if first else ""
        yield ProgramLine(code, key, (letter,), comment, timed=True)
    yield ProgramLine("S = q @ K.T", "scores", ("S",), timed=True)
    yield from score_lines(a, sizes["N"] + 1, masked=False)
    yield from _head_output_lines(a, table)


def _cross_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield ProgramLine("", comment="Sizes: encoder tokens, decoder tokens, embedding dimension, head dimensions")
    yield from size_lines("N, M, d, d_h, d_v", sizes, dtype, device)
    yield ProgramLine("", comment="Random inputs of both stacks, and random weights for this head")
    a = replace(a, position_bias="")
    inputs = (*input_lines("M, d"), *input_lines("N, d", "encoded", "E"))
    yield from _random_lines_of_head(a, head, seed, *inputs)
    yield ProgramLine("", comment="The head itself")
    yield from _projection_lines(a, table)
    yield from _norm_and_rope(a, "Q", "queries")
    yield from _norm_and_rope(a, "K", "keys")
    yield made_line(table, "scores")
    yield from score_lines(a, sizes["N"], masked=False)
    yield from _head_output_lines(a, table)


def _random_lines_of_head(a: Architecture, head: int, seed: int, *inputs: ProgramLine) -> Iterator[ProgramLine]:
    kv_head = head // a.query_heads_per_kv_head
    yield ProgramLine(f"seed, head, kv_head = {seed:d}, {head:d}, {kv_head:d}")
    yield from inputs
    yield from query_parameter_lines(a, head)
    yield from key_value_parameter_lines(a, kv_head)


def _head_output_lines(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    context, output = table["context"].letter, table["output"].letter
    yield ProgramLine(f"{context} = A @ V", "context", (context,), timed=True)
    comment = "b_O is left out: the layer adds it once" if "o" in a.biases else ""
    yield ProgramLine(f"{output} = {context} @ W_O", "output", (output,), comment, timed=True)


def _layer_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield from _layer_beginning(a, sizes, device, dtype, seed)
    yield from _layer_itself(a, table, sizes, head)


def _layer_itself(a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int) -> Iterator[ProgramLine]:
    yield ProgramLine("", comment="The layer itself: queries, keys and values of all heads, concatenated")
    yield from _projection_lines(a, table)
    yield from _norm_over_all_heads(a, "queries")
    yield from _norm_over_all_heads(a, "keys")
    yield ProgramLine("", comment="Head by head")
    yield helper("q = Q.view(N, H, d_h).transpose(0, 1)", timed=True)
    yield helper("k = K.view(N, G, d_h).transpose(0, 1)", timed=True)
    yield helper("v = V.view(N, G, d_v).transpose(0, 1)", timed=True)
    yield from _norm_and_rope(a, "q")
    yield from _norm_and_rope(a, "k")
    group = a.query_heads_per_kv_head
    if group > 1:
        comment = f"{group:d} query heads that share keys and values, one below the other"
        yield helper("q_shared = q.reshape(G, -1, d_h)", comment, timed=True)
        yield helper("S = (q_shared @ k.mT).view(H, N, N)", timed=True)
    else:
        yield helper("S = q @ k.mT", timed=True)
    yield from score_lines(a, sizes["N"], layer=True, makes=None)
    yield helper("c = (A.reshape(G, -1, N) @ v).view(H, N, d_v)" if group > 1 else "c = A @ v", timed=True)
    yield from _concatenated_heads(a, table, head)


def _layer_beginning(
    a: Architecture, sizes: Mapping[str, int], device: str, dtype: str, seed: int
) -> Iterator[ProgramLine]:
    batch = "B, " if "B" in sizes else ""
    yield ProgramLine("", comment=f"Sizes: {'inputs, ' if batch else ''}{_SIZES_OF_LAYER}")
    yield from size_lines(f"{batch}N, d, H, G, d_h, d_v", sizes, dtype, device)
    yield ProgramLine("", comment="A random input, and random weights, drawn head by head")
    yield ProgramLine(f"seed = {seed:d}")
    yield from input_lines(f"{batch}N, d")
    yield from layer_parameter_lines(a)
    yield from _position_lines(a, sizes["N"], None, device)


def _norm_over_all_heads(a: Architecture, key: str) -> Iterator[ProgramLine]:
    if a.qk_norm == "all-heads" and key == "queries":
        yield _norm_line(a, "Q", "H * d_h", "g_Q, ", key)
    if a.qk_norm == "all-heads" and key == "keys":
        yield _norm_line(a, "K", "G * d_h", "g_K, ", key)


def _split_heads_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], _head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield from _layer_beginning(a, sizes, device, dtype, seed)
    yield ProgramLine("", comment="The layer itself")
    for tensor in table.activations:
        if tensor.key == "input":
            continue
        if tensor.key == "weights":
            yield from score_lines(a, sizes["N"], layer=True)
            continue
        yield made_line(table, tensor.key, _bias(a, tensor.letter) if tensor.key in _PROJECTED.values() else "")
        yield from _norm_over_all_heads(a, tensor.key)
        if tensor.key in ("queries_by_head", "keys_by_head"):
            yield from _norm_and_rope(a, tensor.letter, tensor.key)
    if "o" in a.biases:
        yield helper("O += b_O", timed=True)


def _latent_layer_program(
    a: Architecture, table: TensorTable, sizes: Mapping[str, int], head: int, dtype: str, device: str, seed: int
) -> Iterator[ProgramLine]:
    yield from latent_size_lines(a, sizes, dtype, device)
    yield ProgramLine("", comment="A random input, and random weights")
    yield ProgramLine(f"seed = {seed:d}")
    yield from input_lines()
    yield from latent_parameter_lines(a, table)
    yield from _position_lines(a, sizes["N"], None, device)
    yield from latent_layer_lines(a, table, sizes["N"])
    yield from _concatenated_heads(a, table, head)


def _concatenated_heads(a: Architecture, table: TensorTable, head: int) -> Iterator[ProgramLine]:
    yield ProgramLine("", comment="All heads concatenated again")
    yield ProgramLine("C = c.transpose(0, 1).reshape(N, H * d_v)", "context", ("C",), timed=True)
    yield made_line(table, "output")
    if "o" in a.biases:
        yield helper("O += b_O", timed=True)
    yield ProgramLine("", comment="Scores and weights of one head: rows and columns are tokens")
    yield ProgramLine(f"S_head = S[{head:d}]", "scores", ("S_head",), timed=True)
    yield ProgramLine(f"A_head = A[{head:d}]", "weights", ("A_head",), timed=True)


def _position_lines(
    a: Architecture, tokens: int, head: int | None, device: str, length: str = "N"
) -> Iterator[ProgramLine]:
    if needs_positions(a) or rotated_pairs(a):
        yield ProgramLine("", comment="Positions of the tokens")
        yield ProgramLine(f"position = torch.arange({length}, device=device)", names=("position",))
    yield from angle_lines(a, tokens, device)
    yield from position_bias_lines(a, head)


def _projection_lines(a: Architecture, table: TensorTable) -> Iterator[ProgramLine]:
    for letter, key in _PROJECTED.items():
        yield made_line(table, key, _bias(a, letter))


def _bias(a: Architecture, letter: str) -> str:
    return f" + b_{letter}" if letter.lower() in a.biases else ""


def _norm_and_rope(a: Architecture, name: str, makes: str | None = None, at: str = "") -> Iterator[ProgramLine]:
    if a.qk_norm == "per-head":
        yield _norm_line(a, name, "d_h", f"g_{name[0].upper()}, ", makes)
    yield from apply_rope(a.rotary, name, a.d_h, makes, at)
    if a.qk_norm == "after-rope":
        yield _norm_line(a, name, "d_h", "", makes)


def _norm_line(a: Architecture, name: str, width: str, gain: str, makes: str | None) -> ProgramLine:
    code = f"{name} = torch.rms_norm({name}, ({width},), {gain}eps={float(a.qk_norm_eps or 0)!r})"
    return ProgramLine(code, makes, (name,), timed=True)


def notes(architecture: Architecture, tokens: int, topic: str = SINGLE_HEAD.key) -> tuple[str, ...]:
    """Keys of what a reader should know about this run, such as "keys-shared"; the page has the sentences."""
    kind = TOPICS[topic].program
    a = architecture_of(topic, architecture)
    scaling = scaling_type(a.rotary) if a.rotary else None
    is_masked, is_one_text = kind != "one-more-token", kind != "two-texts"
    runs = a.stacks[-1 if kind == "one-more-token" else 0].runs if is_one_text else ()
    applies = {
        "keys-shared": a.query_heads_per_kv_head > 1,
        f"window:{a.window}": is_masked and is_one_text and has_window(a, tokens),
        f"chunk:{a.chunk}": is_masked and is_one_text and has_chunks(a, tokens),
        "unscaled": a.score_scale.kind == "none",
        f"scale:{a.score_scale.factor:.4g}": a.score_scale.kind == "stated",
        f"scale-root:{a.score_scale.number:.4g}": a.score_scale.kind == "root",
        f"scale-yarn:{a.score_scale.number:.4g}": a.score_scale.kind == "yarn",
        "relative-bias": is_one_text and a.position_bias == "relative",
        "alibi": a.position_bias == "alibi",
        f"softcap:{a.score_softcap or 0:g}": a.score_softcap is not None,
        "sinks": a.has_sinks,
        f"rope-scaling:{scaling}": scaling is not None and scaling != "mrope",
        "output-bias": "o" in a.biases and not is_layer(topic),
        "first-layer": any((run.window, run.chunk, run.rotary) != (a.window, a.chunk, a.rotary) for run in runs),
    }
    return tuple(key for key, is_true in applies.items() if is_true)
