"""Runs one head of a real checkpoint over a real text: stored weights, real tokens, every number on the way.

The layers below are computed first; then the head is a single head's program (`program.py`), with the checkpoint's
tensors instead of random ones. Model features that can't be reproduced are refused by name; nothing is approximated.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import TypeAdapter

from app.checkpoints.checkpoint import StoredPart, Token
from app.forward.lines import ForwardError, ProgramLine
from app.forward.program import (
    BYTES_BY_DTYPE,
    at_layer,
    check_modelled,
    mask_lines,
    masked_within,
    program_of_tensors,
    score_lines,
    unmasked,
)
from app.forward.run import (
    MAX_REHEARSED_TOKENS,
    USABLE_SHARE,
    available_device,
    bytes_needed,
    device_name,
    execute,
    prepare,
    with_shapes,
    within_memory,
)
from app.machine.memory import available_memory
from app.models.architecture import Architecture, LayerKind
from app.models.read_config import build_architecture
from app.topics.attention_layer import TOPIC as LAYER_TOPIC
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

if TYPE_CHECKING:
    import numpy as np
    import torch

    from app.checkpoints.checkpoint import Checkpoint, HeadWeights, LayerWeights, NormWeights
    from app.checkpoints.rules import Activation

PLACEMENTS = ("pre", "sandwich", "parallel")  # the norm placements that `run_layer` computes
ATTENTION_PARAMETERS = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", "g_Q", "g_K")
MAX_REAL_TOKENS = 4096
MAX_CACHED_BYTES = 256 * 2**20
MAX_WEIGHT_BYTES = 512 * 2**20  # in float32: models with up to about 130 million parameters in their layers
MAX_CELLS_OF_LAYER = 2**24  # numbers in the weights of all heads of a layer; larger layers are left out
VOCABULARY_PIECE = 8192  # rows of the output matrix in memory at once
# The arrays of a run, with the program's variables; the scores are those before the mask.
_VARIABLES = {"input": "X", "queries": "Q", "keys": "K", "values": "V", "weights": "A", "context": "C", "output": "O"}
SAVED = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")

Report = Callable[[int, int], object]  # layers done, and their total


@dataclass(frozen=True, kw_only=True)
class HeadFacts:
    """Which head ran where, with its tokens, its stored parameters and its program."""

    checkpoint: str
    revision: str
    is_gguf: bool
    is_quantized: bool
    config: Mapping[str, Any]
    layer: int
    head: int
    kv_head: int
    tokens: tuple[Token, ...]
    parts: tuple[StoredPart, ...]
    device: str
    device_name: str
    dtype: str
    milliseconds: float
    lines: tuple[ProgramLine, ...]


_FACTS = TypeAdapter(HeadFacts)


@dataclass(frozen=True, kw_only=True)
class RealHead(HeadFacts):
    """The results of running one head of a checkpoint: `arrays` has "embeddings" and those in SAVED."""

    arrays: Mapping[str, np.ndarray]
    layer_weights: np.ndarray  # (H, N, N) of all heads, or (0, N, N)
    mask: np.ndarray  # (N, N), true where a query sees a key

    @cached_property
    def architecture(self) -> Architecture:
        return build_architecture(self.config, self.checkpoint)

    def strongest_keys(self, row: int, most: int) -> list[tuple[int, float]]:
        """The keys with the `most` largest weights of the query number `row`, each with its weight, largest first."""
        weights = self.arrays["weights"][row]
        order = (-weights).argsort(kind="stable")[:most]
        return [(int(key), float(weights[key])) for key in order if self.mask[row, key]]

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data for JSON, with shapes and each token's five strongest keys in place of the arrays."""
        facts: dict[str, Any] = _FACTS.dump_python(self, mode="json")
        strongest = (self.strongest_keys(row, 5) for row in range(len(self.tokens)))
        return facts | {
            "lines": [asdict(line) | {"text": line.text} for line in self.lines],
            "shapes": {name: list(array.shape) for name, array in self.arrays.items()},
            "strongest": [[{"key": key, "weight": weight} for key, weight in keys] for keys in strongest],
        }

    def to_bytes(self) -> bytes:
        """The run as a compressed npz file, for `from_bytes`."""
        import numpy as np

        facts = np.frombuffer(_FACTS.dump_json(self), dtype=np.uint8)
        file = io.BytesIO()
        np.savez_compressed(file, facts=facts, layer_weights=self.layer_weights, mask=self.mask, **self.arrays)  # type: ignore[arg-type]
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> RealHead:
        import numpy as np

        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = _FACTS.validate_json(arrays.pop("facts").tobytes())
        weights, mask = arrays.pop("layer_weights"), arrays.pop("mask")
        return cls(**vars(facts), layer_weights=weights, mask=mask, arrays=arrays)


def save_npz(real_head: RealHead, file: BinaryIO) -> None:
    """Write an npz file with `tokens` (the ids, int64) and the arrays of SAVED, "input" to "output"."""
    import numpy as np

    ids = np.array([token.id for token in real_head.tokens], dtype=np.int64)
    arrays: Mapping[str, Any] = {name: real_head.arrays[name] for name in SAVED}
    np.savez(file, tokens=ids, **arrays)


# The head itself


def run_real_head(
    checkpoint: Checkpoint,
    text: str,
    *,
    layer: int,
    head: int,
    device: str | None = None,
    dtype: str = "float32",
    states: HiddenStates | None = None,
    report: Report = lambda _done, _total: None,
    most_tokens: int = MAX_REAL_TOKENS,
    usable_share: float = USABLE_SHARE,
) -> RealHead:
    """Run a head of a checkpoint's layer over a text, on this machine."""
    import numpy as np

    check_real(checkpoint)
    a, device, states = at_layer(checkpoint.architecture, layer), available_device(device), states or HiddenStates(0, 0)
    if device == "meta":
        raise ForwardError(_("A real head needs a device that computes numbers, not meta."))
    tokens = checkpoint.tokens(text)
    ids = [token.id for token in tokens]
    check_length(checkpoint, len(ids), most_tokens)
    program_of_tensors(a, len(ids), (), layer=layer, head=head, dtype=dtype, device=device)  # refuses bad arguments
    advice = _("Shorten the text, or choose an earlier layer.")
    with within_memory(_bytes_needed(a, len(ids), layer, dtype), device, usable_share, advice):
        x = hidden_state(checkpoint, ids, layer, device=device, dtype=dtype, states=states, report=report)
        embedded = hidden_state(checkpoint, ids, 0, device=device, dtype=dtype, states=states)
        key = (*_sentence_key(checkpoint, ids, device, dtype), layer, "weights")
        if (layer_weights := states.find(key)) is None:
            layer_weights = _weights_of_layer(checkpoint, layer, x)
            states.add(key, layer_weights, layer_weights.nbytes)
        weights = checkpoint.head_weights(layer, head)
        given = _tensors_given(checkpoint, weights, x)
        lines = program_of_tensors(a, len(ids), tuple(given), layer=layer, head=head, dtype=dtype, device=device)
        rehearsed = device == "cuda" or len(ids) <= MAX_REHEARSED_TOKENS
        executed = execute(lines, {"tensors": given}, device=device, rehearsed=rehearsed)
        made = executed.variables
        arrays = {"embeddings": _array(embedded)} | {name: _array(made[letter]) for name, letter in _VARIABLES.items()}
        arrays["scores"] = _array(_scores_before_mask(a, made))
    if not all(np.isfinite(array).all() for array in (*arrays.values(), layer_weights)):
        problem = _("Numbers of this layer are infinite or none: weights of {checkpoint} are damaged, or too large.")
        raise ForwardError(problem.format(checkpoint=checkpoint.name))
    return RealHead(
        checkpoint=checkpoint.name,
        revision=checkpoint.revision,
        is_gguf=checkpoint.kind == "gguf",
        is_quantized=checkpoint.is_quantized,
        config=checkpoint.config,
        layer=layer,
        head=head,
        kv_head=head // a.query_heads_per_kv_head,
        tokens=tokens,
        parts=weights.parts,
        device=device,
        device_name=device_name(device),
        dtype=dtype,
        milliseconds=executed.milliseconds or 0.0,
        lines=with_shapes(lines, made),
        arrays={name: arrays[name] for name in ("embeddings", *SAVED)},
        layer_weights=layer_weights,
        mask=_mask(a, made),
    )


def _tensors_given(checkpoint: Checkpoint, weights: HeadWeights, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The head's input, which is the layer's after its norm, and its parameters."""
    parameters = {name: tensor.to(x) for name, tensor in weights.tensors.items() if name not in ("g_X", "b_X", "b_O")}
    return {"X": normalize(checkpoint, weights.norm, x), **parameters}


def _weights_of_layer(checkpoint: Checkpoint, layer: int, x: torch.Tensor) -> np.ndarray:
    """The attention weights of all heads, computed head by head, so that only one head's parameters are in memory."""
    import numpy as np

    a, tokens = at_layer(checkpoint.architecture, layer), len(x)
    if a.H * tokens**2 > MAX_CELLS_OF_LAYER:
        return np.zeros((0, tokens, tokens), np.float16)
    heads = list[np.ndarray]()
    for head in range(a.H):
        given = _tensors_given(checkpoint, checkpoint.head_weights(layer, head), x)
        if not heads:  # once for all heads, whose programs differ only in a comment
            lines = program_of_tensors(a, tokens, tuple(given), layer=layer, dtype=_dtype(x), device=x.device.type)
            until = next(place for place, line in enumerate(lines) if line.makes == "weights")
            compute = prepare(lines[: until + 1])
        heads.append(_array(compute({"tensors": given})["A"]).astype(np.float16))
    return np.stack(heads)


def _scores_before_mask(a: Architecture, made: Mapping[str, Any]) -> torch.Tensor:
    *lines, _softmax = score_lines(unmasked(a))
    given = {name: made[name] for name in ("torch", "N", "d_h")}
    scores: torch.Tensor = prepare(lines)({**given, "S": made["Q"] @ made["K"].T})["S"]
    return scores


def _mask(a: Architecture, made: Mapping[str, Any]) -> np.ndarray:
    import torch

    tokens = len(made["X"])
    given = {"torch": torch, "S": torch.zeros(tokens, tokens), "position": made["position"].cpu()}
    mask: np.ndarray = (prepare(mask_lines(masked_within(a, tokens)))(given)["S"] == 0).numpy()
    return mask


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().cpu().contiguous().numpy()
    return array


def _dtype(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _bytes_needed(a: Architecture, tokens: int, layer: int, dtype: str) -> int:
    shown = 4 * (tokens * (3 * a.d + 2 * a.d_h + 2 * a.d_v) + 2 * tokens**2) + tokens**2  # arrays, scores and mask
    head = bytes_needed(a, tokens, dtype) + shown + 2 * a.H * tokens**2  # with the weights of the layer in float16
    if not layer:
        return head
    # A layer below: its parameters, also in `dtype`, the tensors between its blocks, and its attention.
    element, parameters = BYTES_BY_DTYPE[dtype], max(_parameters_of(a, kind) for kind in a.kinds)
    of_parameters = parameters * (4 + element * (dtype != "float32"))
    return max(head, of_parameters + 3 * tokens * a.d_ff * element + bytes_needed(a, tokens, dtype, LAYER_TOPIC.key))


def _parameters_of(architecture: Architecture, kind: LayerKind) -> int:
    return sum(spec.count.size(architecture.all_sizes) for spec in kind.parameters)


def check_real(checkpoint: Checkpoint) -> None:
    """Raise ForwardError for a checkpoint whose layers aren't computed here, without reading its weights."""
    a = checkpoint.architecture
    if a.norm_placement not in PLACEMENTS or a.scales_residuals or not a.causal or a.encoder_decoder:
        message = _("{model} is of the family {family}, whose layers cannot run here.")
        raise ForwardError(message.format(model=a.name, family=a.family))
    first = 0
    for run in a.stacks[0].runs:
        check_modelled(at_layer(a, first), SINGLE_HEAD.key)
        first += run.count


def check_length(checkpoint: Checkpoint, tokens: int, most: int = MAX_REAL_TOKENS) -> None:
    """Raise ForwardError for no tokens, or for more than the model or `most` allows."""
    if not tokens:
        raise ForwardError(_("The text has no tokens: type a sentence."))
    positions = checkpoint.architecture.max_tokens
    if tokens > positions:
        message = _("The text has {count} tokens, but these weights have positions for {most}: shorten it.")
        raise ForwardError(message.format(count=f"{tokens:,}", most=f"{positions:,}"))
    if tokens > most:
        message = _("The text has {count} tokens; at most {most} can run: shorten it.")
        raise ForwardError(message.format(count=f"{tokens:,}", most=f"{most:,}"))


# The layers below


def hidden_state(
    checkpoint: Checkpoint,
    ids: Sequence[int],
    layer: int,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    states: HiddenStates | None = None,
    report: Report = lambda _done, _total: None,
) -> torch.Tensor:
    """The input (N, d) of layer number `layer`; L means the final norm's input."""
    import torch

    states = HiddenStates(0, 0) if states is None else states
    sentence = _sentence_key(checkpoint, ids, device, dtype)
    start = next((below for below in range(layer, 0, -1) if states.find((*sentence, below)) is not None), 0)
    with torch.inference_mode():
        x: torch.Tensor | None = states.find((*sentence, start))
        if x is None:
            x = embeddings(checkpoint, ids).to(device, getattr(torch, dtype))
            states.add((*sentence, 0), x, x.nbytes)
        report(0, layer - start)
        for number in range(start, layer):
            x = run_layer(checkpoint, number, states.layer_weights(checkpoint, number), x)
            states.add((*sentence, number + 1), x, x.nbytes)
            report(number + 1 - start, layer - start)
    return x


def _sentence_key(checkpoint: Checkpoint, ids: Sequence[int], device: str, dtype: str) -> tuple[object, ...]:
    return checkpoint.name, checkpoint.revision, tuple(ids), device, dtype


def embeddings(checkpoint: Checkpoint, ids: Sequence[int]) -> torch.Tensor:
    """The first layer's input, (N, d): the tokens' rows, scaled as in the model, plus the positions' rows."""
    rows = checkpoint.embedding_rows(ids) * checkpoint.embedding_factor
    positions = checkpoint.position_rows(len(ids))
    return rows if positions is None else rows + positions


def run_layer(checkpoint: Checkpoint, layer: int, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    """A layer's output for its input x, both (N, d); where it normalizes is the architecture's `norm_placement`.

    pre       x + attention(norm(x)), then x + feed_forward(norm(x))            LLaMA, GPT-2
    sandwich  each block's output has a norm of its own before it is added      Gemma 2
    parallel  x + attention(norm(x)) + feed_forward(norm'(x))                   GPT-NeoX
    """

    def norm(of: NormWeights | None, y: torch.Tensor) -> torch.Tensor:
        return y if of is None else normalize(checkpoint, of, y)

    output = _attention(checkpoint, layer, weights, norm(weights.attention_norm, x))
    attended = x + norm(weights.after_attention_norm, output)
    is_parallel = checkpoint.architecture.norm_placement == "parallel"
    inner = _feed_forward(checkpoint, weights, norm(weights.mlp_norm, x if is_parallel else attended))
    return attended + norm(weights.after_mlp_norm, inner)


def normalize(checkpoint: Checkpoint, weights: NormWeights, x: torch.Tensor) -> torch.Tensor:
    """RMSNorm or LayerNorm over the features of x, by the checkpoint's architecture, in the format of x."""
    import torch

    scale, bias = weights.scale.to(x), None if weights.bias is None else weights.bias.to(x)
    if checkpoint.architecture.norm == "LayerNorm":
        return torch.nn.functional.layer_norm(x, scale.shape, scale, bias, checkpoint.norm_eps)
    return torch.rms_norm(x, scale.shape, scale, checkpoint.norm_eps)


def _attention(checkpoint: Checkpoint, layer: int, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    parameters = {name: getattr(weights, name) for name in ATTENTION_PARAMETERS}
    given = {"X": x, **{name: tensor.to(x) for name, tensor in parameters.items() if tensor is not None}}
    lines = program_of_tensors(
        checkpoint.architecture,
        len(x),
        tuple(given),
        layer=layer,
        dtype=_dtype(x),
        device=x.device.type,
        topic=LAYER_TOPIC.key,
    )
    output: torch.Tensor = prepare(lines)({"tensors": given})["O"]
    return output


def _feed_forward(checkpoint: Checkpoint, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    functions: Mapping[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
        "silu": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda y: functional.gelu(y, approximate="tanh"),
        "relu": functional.relu,
    }
    activate = functions[checkpoint.activation]

    def product(y: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return y @ matrix.to(y) if bias is None else y @ matrix.to(y) + bias.to(y)

    up = product(x, weights.W_up, weights.b_up)
    inner = activate(up) if weights.W_gate is None else activate(product(x, weights.W_gate, weights.b_gate)) * up
    return product(inner, weights.W_down, weights.b_down)


def likelihood(
    checkpoint: Checkpoint,
    text: str,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    states: HiddenStates | None = None,
    report: Report = lambda _done, _total: None,
) -> float:
    """The mean negative log-likelihood of a text's tokens through the whole model, in nats per token."""
    import torch

    check_real(checkpoint)
    ids = [token.id for token in checkpoint.tokens(text)]
    check_length(checkpoint, len(ids))
    if len(ids) < 2:
        raise ForwardError(_("A likelihood needs a text of at least two tokens."))
    last_layer = checkpoint.architecture.L
    x = hidden_state(checkpoint, ids, last_layer, device=device, dtype=dtype, states=states, report=report)
    with torch.inference_mode():
        predicting = normalize(checkpoint, checkpoint.final_norm(), x)[:-1]
        return float(_negative_log_likelihoods(checkpoint, predicting, ids[1:]).mean())


def _negative_log_likelihoods(checkpoint: Checkpoint, x: torch.Tensor, ids: Sequence[int]) -> torch.Tensor:
    import torch

    wanted = torch.tensor(ids, device=x.device)
    total = torch.full((len(x),), float("-inf"), device=x.device)
    of_wanted = torch.zeros_like(total)
    words = checkpoint.architecture.V or 0
    for first in range(0, words, VOCABULARY_PIECE):
        rows = checkpoint.output_rows(slice(first, min(first + VOCABULARY_PIECE, words)))
        logits = (x @ rows.to(x).T).float()
        if (cap := checkpoint.logit_softcap) is not None:
            logits = cap * torch.tanh(logits / cap)
        total = torch.logaddexp(total, logits.logsumexp(-1))
        here = (wanted >= first) & (wanted < first + len(rows))
        of_wanted[here] = logits[here].gather(-1, (wanted[here] - first)[:, None])[:, 0]
    return total - of_wanted


# What is kept from one run to the next


class HiddenStates:
    """A cache of recent computations, so that another layer or head of the same sentence starts from them.

    A key is what the value depends on: checkpoint, token ids, number format, layer.
    """

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES, max_weight_bytes: int = MAX_WEIGHT_BYTES) -> None:
        self.max_bytes, self.bytes, self.max_weight_bytes = max_bytes, 0, max_weight_bytes
        self._opened = ("", "")  # name and revision of the checkpoint whose weights are cached, by layer
        self._weights: dict[int, LayerWeights] = {}
        self._values: OrderedDict[tuple[object, ...], tuple[Any, int]] = OrderedDict()

    def add(self, key: tuple[object, ...], value: object, size: int) -> None:
        """Keep a value of `size` bytes, dropping the least recently used until all values take at most `max_bytes`."""
        if key in self._values or size > self.max_bytes:
            return
        self._values[key] = value, size
        self.bytes += size
        while self.bytes > self.max_bytes:
            _key, (_value, freed) = self._values.popitem(last=False)
            self.bytes -= freed

    def find(self, key: tuple[object, ...]) -> Any:
        """The value of a key, which then counts as most recently used; None if it isn't kept."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def layer_weights(self, checkpoint: Checkpoint, layer: int) -> LayerWeights:
        """The weights of a layer, from the cache or the file."""
        opened = checkpoint.name, checkpoint.revision
        if opened != self._opened:
            self._opened, self._weights = opened, {}
        if layer in self._weights:
            return self._weights[layer]
        weights, a = checkpoint.layer_weights(layer), checkpoint.architecture
        needed = 4 * sum(kind.layers * _parameters_of(a, kind) for kind in a.kinds)  # of all layers
        if needed <= self.max_weight_bytes and (self._weights or needed <= available_memory() / 4):
            self._weights[layer] = weights
        return weights
