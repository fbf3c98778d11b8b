"""Small checkpoints with random weights, written by transformers itself, or as GGUF as by llama.cpp's converter."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

WORDS = 60
# Sizes under the names of all families; H = 4, G = 2, d_h = 16 = 64/4.
SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd"), 64),
    **dict.fromkeys(("num_attention_heads", "n_head"), 4),
    **dict.fromkeys(("num_hidden_layers", "n_layer"), 2),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1),
    "intermediate_size": 96,
    "num_key_value_heads": 2,
    "vocab_size": WORDS,
}
# Further fields of the families' configs.
FAMILY_CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": 7},
    "qwen2": {},
    "qwen3": {"head_dim": 24},
    "gpt2": {},
    "gpt_neox": {"rotary_pct": 0.5},
    "phi3": {"sliding_window": 7},
    "gemma2": {"head_dim": 24, "sliding_window": 7, "query_pre_attn_scalar": 24},
}
_GGUF_MODULES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def small_model(family: str, **stated: Any) -> Any:
    """A model of transformers with random weights, biases and norms, in float32."""
    config_class = CONFIG_MAPPING[family]
    known = config_class().to_dict()
    sizes = {name: value for name, value in SIZES.items() if name in known}
    config = config_class(**{**sizes, **FAMILY_CONFIGS[family], **stated})
    build: Any = AutoModelForCausalLM.from_config
    model = build(config, attn_implementation="eager", dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


def random_fields(family: str, seed: int) -> dict[str, Any]:
    """Random sizes and settings of a family's config, among them fields that its classes don't read."""
    choose = random.Random(f"{family} {seed}").choice  # noqa: S311
    heads, layers, width = choose((2, 4, 6)), choose((2, 3)), choose((8, 16, 24))
    kinds = [choose(("full_attention", "sliding_attention")) for _layer in range(layers)]
    if family == "gpt2":
        sizes = {"n_embd": heads * width, "n_head": heads, "n_layer": layers, "n_inner": choose((None, 50))}
        functions = ("gelu_new", "relu", "gelu")
        settings = {"activation_function": choose(functions), "scale_attn_weights": choose((True, False))}
        return {**sizes, **settings, "tie_word_embeddings": choose((True, False)), "layer_types": kinds}
    fields = {
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "tie_word_embeddings": choose((True, False)),
        "rope_parameters": _random_rope(family, width, choose),
    }
    if family == "gpt_neox":
        settings = {"use_parallel_residual": choose((True, False)), "attention_bias": choose((True, False))}
        return {**fields, **settings, "hidden_act": choose(("gelu", "relu")), "layer_types": kinds}
    fields["num_key_value_heads"] = choose([each for each in (1, 2, 3, heads) if heads % each == 0])
    if family != "phi3":
        fields["head_dim"] = width
    if family in ("llama", "qwen3", "gemma2"):
        fields["attention_bias"] = choose((True, False))
    if family in ("qwen2", "qwen3"):
        fields |= {"use_sliding_window": choose((True, False)), "sliding_window": 6, "max_window_layers": 1}
    elif family != "gemma2":
        fields["sliding_window"] = choose((None, 5, 7))
    if family in ("llama", "phi3", "gemma2") or fields.get("use_sliding_window"):
        fields["layer_types"] = choose((kinds, None))
    activations = "hidden_activation" if family == "gemma2" else "hidden_act"
    return fields | {activations: choose(("silu", "gelu_pytorch_tanh", "relu"))}


def _random_rope(family: str, width: int, choose: Callable[[Sequence[Any]], Any]) -> dict[str, Any]:
    partial = {"partial_rotary_factor": choose((0.5, 1.0))}
    kinds = ["default", "default", "linear", "dynamic", "llama3", "yarn", "longrope"]
    kind = choose({"phi3": ["default", "longrope"], "gpt_neox": ["default", "linear"]}.get(family, kinds))
    rope = {"rope_type": kind, "rope_theta": choose((100.0, 10_000.0))}
    if family in ("phi3", "gpt_neox") or kind == "default":
        rope |= partial
    if kind != "default":
        rope |= {"factor": 4.0, "original_max_position_embeddings": 16}
    if kind == "llama3":
        rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if kind == "longrope":
        pairs = int(width * rope.get("partial_rotary_factor", 1.0)) // 2
        rope |= {name: [1 + pair / pairs for pair in range(pairs)] for name in ("short_factor", "long_factor")}
    return rope


def permuted(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of W_Q or W_K as llama.cpp's converter reorders them: row i of each half of a head become neighbours."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def write_gguf(model: Any, path: Path, split_after: int = 0, **metadata: Any) -> Path:
    """Write a model as GGUF, as llama.cpp's converter does; `metadata` is added or replaces its own."""
    from gguf import GGUFWriter

    config = model.config
    family = config.model_type
    writer = GGUFWriter(path, family, split_max_tensors=split_after)
    stated = {
        f"{family}.block_count": config.num_hidden_layers,
        f"{family}.context_length": config.max_position_embeddings,
        f"{family}.embedding_length": config.hidden_size,
        f"{family}.feed_forward_length": config.intermediate_size,
        f"{family}.attention.head_count": config.num_attention_heads,
        f"{family}.attention.head_count_kv": config.num_key_value_heads,
        f"{family}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        **metadata,
    }
    if getattr(config, "head_dim", None) not in (None, config.hidden_size // config.num_attention_heads):
        stated[f"{family}.attention.key_length"] = config.head_dim
    for key, value in stated.items():
        add: Any = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        add[type(value)](key, value)
    scaling = config.rope_parameters
    if scaling["rope_type"] == "llama3":
        plain = scaling["rope_theta"] ** -(torch.arange(0, 16, 2) / 16)
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq).numpy())
        writer.add_float32(f"{family}.rope.freq_base", scaling["rope_theta"])
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        writer.add_tensor(_gguf_name(name), _gguf_rows(family, config, name, tensor).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return next(path.parent.glob(f"{path.stem}-00001-of-*.gguf")) if split_after else path


def _gguf_name(name: str) -> str:
    module, _dot, kind = name.rpartition(".")
    if not module.startswith("model.layers."):
        return f"{_GGUF_MODULES[module]}.{kind}"
    _model, _layers, number, module = module.split(".", 3)
    return f"blk.{number}.{_GGUF_MODULES[module]}.{kind}"


def _gguf_rows(family: str, config: Any, name: str, tensor: torch.Tensor) -> torch.Tensor:
    if family == "llama" and ".q_proj." in name:
        return permuted(tensor, config.num_attention_heads).contiguous()
    if family == "llama" and ".k_proj." in name:
        return permuted(tensor, config.num_key_value_heads).contiguous()
    return tensor
