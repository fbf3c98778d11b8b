"""Models of transformers opened as checkpoints, and what eager attention of transformers makes of a text in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.checkpoints.checkpoint import Checkpoint, StoredTensor, Token
from app.models.read_config import build_architecture

WORDS = 60  # of the vocabularies of small_checkpoints.py


@dataclass(frozen=True)
class TensorsInMemory:
    """The tensors of a model in the place of a checkpoint's file."""

    tensors: Mapping[str, torch.Tensor]
    is_quantized: bool = False

    @property
    def names(self) -> Collection[str]:
        return self.tensors.keys()

    def stored(self, name: str) -> StoredTensor:
        return StoredTensor(name, tuple(self.tensors[name].shape), "F32")

    def read(self, name: str, rows: slice, columns: slice) -> torch.Tensor:
        tensor = self.tensors[name]
        return tensor[rows, columns].clone() if tensor.dim() > 1 else tensor[rows].clone()


def letters(text: str) -> tuple[Token, ...]:
    """Each letter of a text as a token."""
    return tuple(Token(ord(letter) % WORDS, letter, letter.encode(), False) for letter in text)


def in_memory(model: Any) -> Checkpoint:
    """A model of transformers as a checkpoint whose tokens are letters."""
    config, tensors = model.config.to_dict(), model.state_dict()
    return Checkpoint(
        name="small",
        revision="1",
        kind="safetensors",
        config=config,
        architecture=build_architecture(config, "small"),
        file=TensorsInMemory(tensors),
        names=lambda name: name if name in tensors else f"{model.base_model_prefix}.{name}",
        permuted=lambda _name: False,
        tokenize=letters,
    )


@dataclass(frozen=True)
class Observed:
    """What transformers made of a text: of each layer its input (N, d), all heads' weights (H, N, N), and the output
    of its attention (N, d), with the bias; then the mean negative log-likelihood.
    """

    inputs: Sequence[torch.Tensor]
    weights: Sequence[torch.Tensor]
    outputs: Sequence[torch.Tensor]
    likelihood: float


def observe(model: Any, ids: Sequence[int]) -> Observed:
    """Run a model of transformers that has eager attention on token ids."""
    outputs: list[torch.Tensor] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, result: outputs.append(result[0][0]))
        for name, module in model.named_modules()
        if name.rsplit(".", 1)[-1] in ("self_attn", "attn", "attention")
    ]
    given = torch.tensor([list(ids)])
    with torch.no_grad():
        result = model(given, labels=given, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    weights = [each[0] for each in result.attentions]
    return Observed([each[0] for each in result.hidden_states], weights, outputs, float(result.loss))


def relative_error(found: Any, expected: Any) -> float:
    """The norm of the difference as a share of the norm of what is expected."""
    found, expected = torch.as_tensor(found), torch.as_tensor(expected)
    return float(torch.linalg.norm(found - expected) / torch.linalg.norm(expected))
