"""Runs one head of a real checkpoint over a real text: stored weights, real tokens, every number on the way.

The layers below are computed first (`hidden_states.py`); then the head is a single head's program (`program.py`), with
the checkpoint's tensors instead of random ones. Model features that can't be reproduced are refused by name; nothing is
approximated.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import TypeAdapter

from app.checkpoints.checkpoint import StoredPart, Token
from app.forward.devices import available_bytes, device_name
from app.forward.hidden_states import (
    MAX_REAL_TOKENS,
    HiddenStates,
    Report,
    check_length,
    check_real,
    hidden_state,
    normalize,
    parameters_of,
    sentence_key,
)
from app.forward.lines import ForwardError, ProgramLine, made_line
from app.forward.program import BYTES_BY_DTYPE, at_layer, program_of_tensors, runnable_table
from app.forward.run import (
    MAX_REHEARSED_TOKENS,
    USABLE_SHARE,
    available_device,
    bytes_needed,
    execute,
    prepare,
    with_shapes,
)
from app.forward.scores import mask_lines, score_lines
from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.shapes.table import TensorTable
from app.topics.attention_layer import TOPIC as LAYER_TOPIC
from app.topics.single_head import SINGLE_HEAD
from app.translation import gettext as _

if TYPE_CHECKING:
    import numpy as np
    import torch

    from app.checkpoints.checkpoint import Checkpoint, HeadWeights

MAX_CELLS_OF_LAYER = 2**24  # numbers in the weights of all heads of a layer; larger layers are left out
# The arrays in the file of `save_npz`, besides the tokens.
SAVED = ("input", "queries", "keys", "values", "scores", "weights", "context", "output")


@dataclass(frozen=True)
class RealHead:
    """The results of running one head of a checkpoint."""

    checkpoint: str
    revision: str
    is_gguf: bool
    is_quantized: bool
    config: Mapping[str, Any]
    architecture: Architecture
    layer: int
    head: int
    kv_head: int
    tokens: tuple[Token, ...]
    parts: tuple[StoredPart, ...]
    device: str
    device_name: str
    dtype: str
    milliseconds: float
    arrays: Mapping[str, np.ndarray]
    layer_weights: np.ndarray
    mask: np.ndarray
    lines: tuple[ProgramLine, ...]

    def strongest_keys(self, row: int, most: int) -> list[tuple[int, float]]:
        """The keys with the `most` largest weights of the query number `row`, each with its weight; the
        largest first.
        """
        weights = self.arrays["weights"][row]
        order = (-weights).argsort(kind="stable")[:most]
        return [(int(key), float(weights[key])) for key in order if self.mask[row, key]]

    def as_dict(self) -> dict[str, Any]:
        """The run as plain data for JSON, with shapes and each token's five strongest keys in place of the arrays."""
        return self._facts() | {
            "lines": [asdict(line) | {"text": line.text} for line in self.lines],
            "shapes": {name: list(array.shape) for name, array in self.arrays.items()},
            "strongest": [
                [{"key": key, "weight": weight} for key, weight in self.strongest_keys(row, 5)]
                for row in range(len(self.tokens))
            ],
        }

    def _facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FACTS} | {
            "model": self.architecture.name,
            "config": dict(self.config),
            "tokens": [asdict(token) | {"raw": token.raw.hex()} for token in self.tokens],
            "parts": [asdict(part) for part in self.parts],
            "lines": [asdict(line) for line in self.lines],
        }

    def to_bytes(self) -> bytes:
        """The run as a compressed npz file, for `from_bytes`."""
        import numpy as np

        arrays = {f"array {name}": array for name, array in self.arrays.items()}
        arrays |= {"layer_weights": self.layer_weights, "mask": self.mask}
        text = np.frombuffer(json.dumps(self._facts()).encode(), dtype=np.uint8)
        file = io.BytesIO()
        np.savez_compressed(file, facts=text, **arrays)  # type: ignore[arg-type]
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> RealHead:
        import numpy as np

        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        facts = json.loads(stored.pop("facts").tobytes())
        tokens = [token | {"raw": bytes.fromhex(token["raw"])} for token in facts["tokens"]]
        return cls(
            **{name: facts[name] for name in _FACTS},
            config=facts["config"],
            architecture=build_architecture(facts["config"], facts["model"]),
            tokens=TypeAdapter(tuple[Token, ...]).validate_python(tokens),
            parts=TypeAdapter(tuple[StoredPart, ...]).validate_python(facts["parts"]),
            lines=TypeAdapter(tuple[ProgramLine, ...]).validate_python(facts["lines"]),
            arrays={name.removeprefix("array "): array for name, array in stored.items() if name.startswith("array ")},
            layer_weights=stored["layer_weights"],
            mask=stored["mask"],
        )


_FACTS = (
    *("checkpoint", "revision", "is_gguf", "is_quantized", "layer", "head", "kv_head"),
    *("device", "device_name", "dtype", "milliseconds"),
)


def save_npz(real_head: RealHead, file: BinaryIO) -> None:
    """Write an npz file with `tokens` (the ids, int64) and the arrays of SAVED, "input" to "output"."""
    import numpy as np

    ids = np.array([token.id for token in real_head.tokens], dtype=np.int64)
    arrays: Mapping[str, Any] = {name: real_head.arrays[name] for name in SAVED}
    np.savez(file, tokens=ids, **arrays)


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
    import torch

    check_real(checkpoint)
    a = at_layer(checkpoint.architecture, layer)
    device = available_device(device)
    if device == "meta":
        raise ForwardError(_("A real head needs a device that computes numbers, not meta."))
    tokens = checkpoint.tokens(text)
    check_length(checkpoint, len(tokens), most_tokens)
    program_of_tensors(a, len(tokens), (), layer=layer, head=head, dtype=dtype, device=device)  # refuses bad arguments
    needed = _bytes_needed(a, len(tokens), layer, dtype)
    free = available_bytes(device) or 0
    if needed > usable_share * free:
        raise _too_large_error(needed, free, device, usable_share)
    try:
        return _run(checkpoint, tokens, layer, head, device, dtype, states or HiddenStates(0, 0), report)
    except torch.OutOfMemoryError:
        raise _too_large_error(needed, available_bytes(device) or 0, device, usable_share) from None


def _run(
    checkpoint: Checkpoint,
    tokens: tuple[Token, ...],
    layer: int,
    head: int,
    device: str,
    dtype: str,
    states: HiddenStates,
    report: Report,
) -> RealHead:
    import numpy as np

    a = at_layer(checkpoint.architecture, layer)
    ids = [token.id for token in tokens]
    x = hidden_state(checkpoint, ids, layer, device=device, dtype=dtype, states=states, report=report)
    embedded = hidden_state(checkpoint, ids, 0, device=device, dtype=dtype, states=states)
    key = (*sentence_key(checkpoint, ids, device, dtype), layer, "weights")
    if (layer_weights := states.find(key)) is None:
        layer_weights = _weights_of_layer(checkpoint, layer, x)
        states.add(key, layer_weights, layer_weights.nbytes)
    weights = checkpoint.head_weights(layer, head)
    tensors = _tensors(checkpoint, weights, x)
    lines = program_of_tensors(a, len(ids), tuple(tensors), layer=layer, head=head, dtype=dtype, device=device)
    rehearsed = device == "cuda" or len(ids) <= MAX_REHEARSED_TOKENS
    executed = execute(lines, {"tensors": tensors}, device=device, rehearsed=rehearsed)
    made = executed.variables
    table = runnable_table(SINGLE_HEAD.key, a, len(ids))
    names = {"input": "X", "queries": "Q", "keys": "K", "values": "V", "weights": "A", "context": "C", "output": "O"}
    arrays = {"embeddings": _array(embedded)} | {key: _array(made[name]) for key, name in names.items()}
    arrays["scores"] = _array(_unmasked_scores(a, table, made))
    if not all(np.isfinite(array).all() for array in (*arrays.values(), layer_weights)):
        problem = _("Numbers of this layer are infinite or none: weights of {checkpoint} are damaged, or too large.")
        raise ForwardError(problem.format(checkpoint=checkpoint.name))
    return RealHead(
        checkpoint=checkpoint.name,
        revision=checkpoint.revision,
        is_gguf=checkpoint.kind == "gguf",
        is_quantized=checkpoint.is_quantized,
        config=checkpoint.config,
        architecture=checkpoint.architecture,
        layer=layer,
        head=head,
        kv_head=head // a.query_heads_per_kv_head,
        tokens=tokens,
        parts=weights.parts,
        device=device,
        device_name=device_name(device),
        dtype=dtype,
        milliseconds=executed.milliseconds or 0.0,
        arrays={key: arrays[key] for key in ("embeddings", *SAVED)},
        layer_weights=layer_weights,
        mask=_mask(a, len(ids), made),
        lines=tuple(with_shapes(line, made) for line in lines),
    )


def _bytes_needed(a: Architecture, tokens: int, layer: int, dtype: str) -> int:
    shown = 4 * (tokens * (3 * a.d + 2 * a.d_h + 2 * a.d_v) + 2 * tokens**2) + tokens**2  # arrays, scores and mask
    head = bytes_needed(a, tokens, dtype) + shown + 2 * a.H * tokens**2  # with the weights of the layer in float16
    if not layer:
        return head
    # A layer below: its parameters, also in `dtype`, the tensors between its blocks, and its attention.
    element, parameters = BYTES_BY_DTYPE[dtype], max(parameters_of(a, kind) for kind in a.kinds)
    of_parameters = parameters * (4 + element * (dtype != "float32"))
    return max(head, of_parameters + 3 * tokens * a.d_ff * element + bytes_needed(a, tokens, dtype, LAYER_TOPIC.key))


def _too_large_error(needed: int, free: int, device: str, usable_share: float) -> ForwardError:
    message = _(
        "This run needs {needed} bytes, and {device} has {free} free, of which {share} may be used. Shorten the text, "
        "or choose an earlier layer."
    )
    numbers = {"needed": f"{needed:,}", "free": f"{free:,}", "share": f"{usable_share:.0%}"}
    return ForwardError(message.format(device=device, **numbers))


def _tensors(checkpoint: Checkpoint, weights: HeadWeights, x: torch.Tensor) -> dict[str, torch.Tensor]:
    from app.checkpoints.checkpoint import NormWeights

    parameters = dict(weights.tensors)
    norm = NormWeights(parameters.pop("g_X"), parameters.pop("b_X", None))
    parameters.pop("b_O", None)
    return {"X": normalize(checkpoint, norm, x), **{name: tensor.to(x) for name, tensor in parameters.items()}}


def _weights_of_layer(checkpoint: Checkpoint, layer: int, x: torch.Tensor) -> np.ndarray:
    import numpy as np

    a, tokens = at_layer(checkpoint.architecture, layer), len(x)
    if a.H * tokens**2 > MAX_CELLS_OF_LAYER:
        return np.zeros((0, tokens, tokens), np.float16)
    dtype, device = str(x.dtype).removeprefix("torch."), x.device.type
    result = np.empty((a.H, tokens, tokens), np.float16)
    weights = (_tensors(checkpoint, checkpoint.head_weights(layer, head), x) for head in range(a.H))
    compute = None
    for head, tensors in enumerate(weights):
        if compute is None:  # once for all heads, whose programs differ only in a comment
            lines = program_of_tensors(a, tokens, tuple(tensors), layer=layer, dtype=dtype, device=device)
            until = next(place for place, line in enumerate(lines) if line.makes == "weights")
            compute = prepare(lines[: until + 1])
        result[head] = compute({"tensors": tensors})["A"].float().cpu().numpy()
    return result


def _unmasked_scores(a: Architecture, table: TensorTable, made: Mapping[str, Any]) -> torch.Tensor:
    lines = (made_line(table, "scores"), *score_lines(a, len(made["X"]), masked=False))
    variables = {name: made[name] for name in ("torch", "N", "d_h", "Q", "K")}
    scores: torch.Tensor = prepare(lines[:-1])(variables)["S"]  # the last line is the softmax
    return scores


def _mask(a: Architecture, tokens: int, made: Mapping[str, Any]) -> np.ndarray:
    import torch

    scores = torch.zeros(tokens, tokens, device=made["X"].device)
    variables = {"torch": torch, "S": scores, "position": made["position"]}
    mask: np.ndarray = (prepare(mask_lines(a, tokens))(variables)["S"] == 0).cpu().numpy()
    return mask


def _array(tensor: torch.Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().cpu().contiguous().numpy()
    return array
