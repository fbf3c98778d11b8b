"""Runs a text through the layers of a checkpoint, with the weights of one layer in memory at a time.

Attention is the program of a whole layer, with the checkpoint's weights; norms, the feed-forward block and the residual
stream are here. Every matrix is in the orientation of x · W. Where a layer normalizes is the architecture's
`norm_placement`, with x the layer's input:

    pre       x + attention(norm(x)), then x + feed_forward(norm(x))            LLaMA, GPT-2
    sandwich  each block's output has a norm of its own before it is added      Gemma 2
    parallel  x + attention(norm(x)) + feed_forward(norm'(x))                   GPT-NeoX
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.forward.lines import ForwardError
from app.forward.program import at_layer, check_modelled, program_of_tensors
from app.forward.run import prepare
from app.machine.memory import available_memory
from app.models.architecture import Architecture, LayerKind
from app.topics.attention_layer import TOPIC as LAYER_TOPIC
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

if TYPE_CHECKING:
    import torch

    from app.checkpoints.checkpoint import Checkpoint, LayerWeights, NormWeights

PLACEMENTS = ("pre", "sandwich", "parallel")  # the norm placements described above
ATTENTION_PARAMETERS = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O", "g_Q", "g_K")
MAX_REAL_TOKENS = 4096
MAX_CACHED_BYTES = 256 * 2**20
MAX_WEIGHT_BYTES = 512 * 2**20  # in float32: models with up to about 130 million parameters in their layers
VOCABULARY_PIECE = 8192  # rows of the output matrix in memory at once

Report = Callable[[int, int], object]  # layers done, and their total


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
        needed = 4 * sum(kind.layers * parameters_of(a, kind) for kind in a.kinds)  # of all layers
        if needed <= self.max_weight_bytes and (self._weights or needed <= available_memory() / 4):
            self._weights[layer] = weights
        return weights


def parameters_of(architecture: Architecture, kind: LayerKind) -> int:
    """The number of parameters of one layer of this kind."""
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
    """The input of layer number `layer`, with the scores of the heads below; L means the final norm's input."""
    import torch

    states = HiddenStates(0, 0) if states is None else states
    sentence = sentence_key(checkpoint, ids, device, dtype)
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


def sentence_key(checkpoint: Checkpoint, ids: Sequence[int], device: str, dtype: str) -> tuple[object, ...]:
    """The part of a cache key that all values of a sentence share: everything but the layer."""
    return checkpoint.name, checkpoint.revision, tuple(ids), device, dtype


def embeddings(checkpoint: Checkpoint, ids: Sequence[int]) -> torch.Tensor:
    """The first layer's input, (N, d): the tokens' rows, scaled as in the model, plus the positions' rows."""
    rows = checkpoint.embedding_rows(ids) * checkpoint.embedding_factor
    positions = checkpoint.position_rows(len(ids))
    return rows if positions is None else rows + positions


def run_layer(checkpoint: Checkpoint, layer: int, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    """A layer's output for its input x, both (N, d), and all its heads' attention weights, (H, N, N)."""

    def norm(of: NormWeights | None, y: torch.Tensor) -> torch.Tensor:
        return y if of is None else normalize(checkpoint, of, y)

    def feed_forward(y: torch.Tensor) -> torch.Tensor:
        return norm(weights.after_mlp_norm, feed_forward_block(checkpoint, weights, y))

    output = attention(checkpoint, layer, weights, norm(weights.attention_norm, x))
    attended = x + norm(weights.after_attention_norm, output)
    is_parallel = checkpoint.architecture.norm_placement == "parallel"
    return attended + feed_forward(norm(weights.mlp_norm, x if is_parallel else attended))


def normalize(checkpoint: Checkpoint, weights: NormWeights, x: torch.Tensor) -> torch.Tensor:
    """RMSNorm or LayerNorm over the features of x, by the checkpoint's architecture, in the format of x."""
    import torch

    scale, bias = weights.scale.to(x), None if weights.bias is None else weights.bias.to(x)
    if checkpoint.architecture.norm == "LayerNorm":
        return torch.nn.functional.layer_norm(x, scale.shape, scale, bias, checkpoint.norm_eps)
    return torch.rms_norm(x, scale.shape, scale, checkpoint.norm_eps)


def attention(checkpoint: Checkpoint, layer: int, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    """The output (N, d) of a layer's attention and its heads' weights (H, N, N), from their normalized input x."""
    parameters = {name: getattr(weights, name) for name in ATTENTION_PARAMETERS}
    tensors = {"X": x, **{name: tensor.to(x) for name, tensor in parameters.items() if tensor is not None}}
    lines = program_of_tensors(
        checkpoint.architecture,
        len(x),
        tuple(tensors),
        layer=layer,
        dtype=str(x.dtype).removeprefix("torch."),
        device=x.device.type,
        topic=LAYER_TOPIC.key,
    )
    output: torch.Tensor = prepare(lines)({"tensors": tensors})["O"]
    return output


def feed_forward_block(checkpoint: Checkpoint, weights: LayerWeights, x: torch.Tensor) -> torch.Tensor:
    """The output of the feed-forward block, (N, d), from its normalized input: gated if the layer has W_gate."""
    activate = _activation(checkpoint.activation)

    def product(y: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return y @ matrix.to(y) if bias is None else y @ matrix.to(y) + bias.to(y)

    up = product(x, weights.W_up, weights.b_up)
    inner = activate(up) if weights.W_gate is None else activate(product(x, weights.W_gate, weights.b_gate)) * up
    return product(inner, weights.W_down, weights.b_down)


def _activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    from torch.nn import functional

    functions: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "silu": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "relu": functional.relu,
    }
    if name not in functions:
        raise ForwardError(_("The activation function {name} cannot run here.").format(name=name[:30]))
    return functions[name]


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
