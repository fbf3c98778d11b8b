"""Models of transformers opened as checkpoints, and what its eager attention makes of a text in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from app.checkpoints.checkpoint import Checkpoint, Token
from app.checkpoints.files import open_checkpoint
from tests.helpers.small_checkpoints import WORDS


def letters(text: str) -> tuple[Token, ...]:
    """Each letter of a text as a token."""
    return tuple(Token(ord(letter) % WORDS, letter, letter.encode(), False) for letter in text)


def saved_checkpoint(model: Any, folder: Path) -> Checkpoint:
    """A model of transformers, saved in a folder and opened as a checkpoint whose tokens are letters."""
    model.save_pretrained(folder)
    checkpoint = open_checkpoint(folder, [folder])
    checkpoint._tokenize = letters
    return checkpoint


@dataclass(frozen=True)
class Observed:
    """What transformers made of a text.

    Per layer: its input (N, d), all heads' weights (H, N, N), and its attention's output (N, d), with the bias; then
    the mean negative log-likelihood.
    """

    inputs: Sequence[torch.Tensor]
    weights: Sequence[torch.Tensor]
    outputs: Sequence[torch.Tensor]
    likelihood: float


def observe(model: Any, ids: Sequence[int]) -> Observed:
    """Run a model of transformers with eager attention on token ids."""
    outputs: list[torch.Tensor] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, result: outputs.append(result[0][0]))
        for name, module in model.named_modules()
        if name.rsplit(".", 1)[-1] in ("self_attn", "attn", "attention")
    ]
    given = torch.tensor([list(ids)])
    with torch.no_grad():
        result = model(given, labels=given, output_attentions=True, output_hidden_states=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    weights = [each[0] for each in result.attentions]
    return Observed([each[0] for each in result.hidden_states], weights, outputs, float(result.loss))


def relative_error(found: Any, expected: Any) -> float:
    """The norm of the difference relative to the norm of the expected values."""
    found, expected = torch.as_tensor(found), torch.as_tensor(expected)
    return float(torch.linalg.norm(found - expected) / torch.linalg.norm(expected))
