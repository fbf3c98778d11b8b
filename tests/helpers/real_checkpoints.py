"""Tiny random models of transformers, opened as checkpoints, and what eager attention makes of a text in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.checkpoints.checkpoint import Checkpoint, StoredTensor, Token
from app.models.read_config import build_architecture

WORDS = 60
SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "vocab_size": WORDS,
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1),
}
GPT2_SIZES = {"n_embd": 48, "n_head": 4, "n_layer": 3, "n_positions": 64, "vocab_size": WORDS}
# By the name of the case: the model_type is its first word; windows are shorter than the text.
CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama with biases": {"attention_bias": True, "mlp_bias": True},
    "llama with llama3 scaling": {
        "rope_parameters": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
            "rope_theta": 500.0,
        }
    },
    "mistral": {"sliding_window": 7},
    "qwen2": {},
    "qwen2 with windows in its last layer": {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2},
    "qwen3": {},
    "gpt2": {},
    "gpt_neox": {"rotary_pct": 0.5},
    "gpt_neox one block after the other": {"use_parallel_residual": False, "rotary_pct": 0.5},
    "phi3": {"sliding_window": 7},
    "gemma2": {
        "sliding_window": 7,
        "attn_logit_softcapping": 5.0,
        "query_pre_attn_scalar": 24,
        "tie_word_embeddings": False,
    },
}


def tiny_model(case: str) -> Any:
    """A model of the case with every parameter random, also gains and biases; eager attention, float32."""
    from transformers import AutoConfig, AutoModelForCausalLM

    kind = case.split()[0]
    known = AutoConfig.for_model(kind).to_dict()
    sizes = {name: size for name, size in (GPT2_SIZES if kind == "gpt2" else SIZES).items() if name in known}
    config = AutoConfig.for_model(kind, **(sizes | CASES[case]))
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_gain = "weight" in name and ("norm" in name or "ln_" in name) and kind != "gemma2"
            torch.nn.init.normal_(parameter, float(is_gain), 0.25)
    return model


@dataclass(frozen=True)
class TensorsInMemory:
    """The tensors of a model as a checkpoint's file."""

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


def opened(model: Any, name: str = "tiny") -> Checkpoint:
    """A model of transformers as a checkpoint of safetensors would be."""
    config = model.config.to_dict()
    architecture = build_architecture(config, name)
    tensors = dict(model.state_dict())
    base = model.base_model_prefix
    return Checkpoint(
        name=name,
        revision="1",
        kind="safetensors",
        config=config,
        architecture=architecture,
        file=TensorsInMemory(tensors),
        names=lambda name: name if name in tensors else f"{base}.{name}",
        permuted=lambda _name: False,
        tokenize=letters,
    )


@dataclass(frozen=True)
class Observed:
    """What eager attention of transformers made of a text, layer by layer: of each the inputs, and all heads'."""

    inputs: Sequence[torch.Tensor]  # (N, d) before each layer, then after the last, normalized
    weights: Sequence[torch.Tensor]  # (H, N, N)
    outputs: Sequence[torch.Tensor]  # (N, d) of the attention block, with the output bias
    likelihood: float


def observe(model: Any, ids: Sequence[int]) -> Observed:
    """Run a model of transformers with eager attention on token ids."""
    outputs: list[torch.Tensor] = []
    blocks = [
        module
        for name, module in model.named_modules()
        if name.rsplit(".", 1)[-1] in ("self_attn", "attn", "attention")
    ]
    hooks = [block.register_forward_hook(lambda _m, _i, out: outputs.append(out[0][0])) for block in blocks]
    given = torch.tensor([list(ids)])
    with torch.no_grad():
        result = model(given, labels=given, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    weights = [each[0] for each in result.attentions]
    return Observed([each[0] for each in result.hidden_states], weights, outputs, float(result.loss))
