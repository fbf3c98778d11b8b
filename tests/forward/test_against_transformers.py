"""The program of a head and of a layer against transformers' own model: its weights, its input, the same numbers out.

Each case builds a tiny model of one family with random weights, biases and norms, runs it with eager attention, and
records what goes into layer 0's attention and what comes out of its projections. The lines that the app shows then run
with those tensors in place of the random ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from app.forward.program import architecture_of, program
from app.forward.run import execute
from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.settings import PROJECT
from app.topics.registry import refusal, sizes_for
from tests.helpers.slow import one_in

LAYER = "attention-layer"
N = 24
MAX_ERROR = 1e-4
WORDS = 60
# Sizes under every name that some family has for them; those that a family does not know are left out.
HEADS = dict.fromkeys(
    ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"), 4
)
SIZES: dict[str, Any] = {
    **HEADS,
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim"), 48),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), 40),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions"), 64),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "n_group", "topk_group"), 2),
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1),
    "num_key_value_heads": 2,
    "head_dim": 16,
    "d_kv": 16,
    "vocab_size": WORDS,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 8,
    "embedding_size": 20,
    "rotary_dim": 8,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 500.0,
}
LONGROPE = {
    "rope_type": "longrope",
    "long_factor": [1.0 + pair for pair in range(6)],
    "short_factor": [1.0 + pair / 8 for pair in range(6)],
    "original_max_position_embeddings": 16,
    "rope_theta": 100.0,
}
MROPE = {"rope_type": "default", "mrope_section": [2, 2, 2], "rope_theta": 100.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 100.0}
LATENT: dict[str, Any] = {"q_lora_rank": 10, "kv_lora_rank": 14, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8}
LATENT |= {"v_head_dim": 9, "num_key_value_heads": 4}
# By the name of the case: the model_type, then what its config states beside the sizes.
CASES: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama with biases": {"attention_bias": True},
    "llama with llama3 scaling": {"rope_parameters": LLAMA3},
    "llama with linear scaling": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}},
    "llama with yarn scaling": {"rope_parameters": YARN},
    "mistral": {"sliding_window": 7},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": {"sliding_window": 7, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 24},
    "gemma3_text": {"sliding_window": 7, "query_pre_attn_scalar": 24},
    "phi": {"partial_rotary_factor": 0.5},
    "phi3": {"sliding_window": 7},
    "starcoder2": {"sliding_window": 7},
    "stablelm": {"partial_rotary_factor": 0.5},
    "olmo": {},
    "olmo2": {},
    "olmo3": {"sliding_window": 7},
    "cohere": {},
    "cohere2": {"sliding_window": 7, "head_dim": 12},
    "granite": {"attention_multiplier": 0.11},
    "nemotron": {},
    "glm": {},
    "glm4": {},
    "exaone4": {"sliding_window": 7},
    "smollm3": {},
    "llama4_text": {"attention_chunk_size": 7, "intermediate_size_mlp": 40},
    "mixtral": {"sliding_window": 7},
    "qwen2_moe": {},
    "qwen3_moe": {},
    "phimoe": {},
    "olmoe": {},
    "granitemoe": {"attention_multiplier": 0.11},
    "gpt_oss": {"sliding_window": 7},
    "gpt_oss with yarn scaling": {"sliding_window": 7, "rope_parameters": YARN | {"truncate": False}},
    "phi3 with longrope scaling": {"rope_parameters": LONGROPE, "max_position_embeddings": 64},
    "phi3 with longrope scaling, short": {"rope_parameters": LONGROPE | {"original_max_position_embeddings": 32}},
    "phi3 with longrope scaling, long, as Phi-3's files say it": {
        "rope_parameters": {name: setting for name, setting in LONGROPE.items() if not name.startswith("original")},
        "original_max_position_embeddings": 16,
    },
    "llama with dynamic scaling": {"rope_parameters": DYNAMIC, "max_position_embeddings": 16},
    "deepseek_v2": {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}, **LATENT},
    "deepseek_v2 without a latent for queries": {**LATENT, "q_lora_rank": None},
    "deepseek_v3": {"rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}, **LATENT, "head_dim": 8},
    "openai-gpt": {},
    "gpt2": {},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 7},
    "gpt_neox": {"rotary_pct": 0.5},
    "gptj": {},
    "codegen": {},
    "gpt_bigcode": {},
    "falcon": {},
    "falcon with its new decoder": {"new_decoder_architecture": True, "num_kv_heads": 2},
    "bloom": {},
    "mpt": {},
    "opt": {"word_embed_proj_dim": 48},
    "xglm": {},
    "bert": {},
    "roberta": {},
    "distilbert": {},
    "albert": {},
    "electra": {},
    "modernbert": {},
    "clip_text_model": {},
    "t5": {},
    "umt5": {},
    "mt5": {},
    "xlm-roberta": {},
    "camembert": {},
    "ministral": {"sliding_window": 7},
    "internlm3": {},
    "qwen2_vl_text": {"rope_parameters": MROPE},
    "qwen2_5_vl_text": {"rope_parameters": MROPE},
    "qwen3_vl_text": {},
    "mllama_text_model": {"cross_attention_layers": [1]},
    "vit": {"image_size": 32, "patch_size": 8},
    "whisper": {"max_source_positions": N, "num_mel_bins": 5},
    "bart": {},
    "mbart": {},
}
# Models of the library, and how their config.json is made small.
PUBLISHED = ("deepseek-v2-lite", "gemma-2-2b", "gpt-oss-20b", "llama-3.2-1b", "olmo-2-7b", "phi-3.5-mini", "t5-small")
FEWER = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("intermediate_size", "d_ff", "moe_intermediate_size"), 24),
    **dict.fromkeys(("num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "experts_per_token"), 2),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "decoder_start_token_id", "n_group", "topk_group"), 1),
    "vocab_size": WORDS,
}
NAMES = {
    "q": ("q_proj", "query", "q_lin", "q"),
    "k": ("k_proj", "key", "k_lin", "k"),
    "v": ("v_proj", "value", "v_lin", "v"),
    "qkv": ("c_attn", "qkv_proj", "query_key_value", "Wqkv"),
    "first": ("c_attn", "qkv_proj", "query_key_value", "Wqkv", "q_proj", "query", "q_lin", "q", "q_a_proj"),
    "o": ("o_proj", "out_proj", "out_lin", "Wo", "c_proj", "dense", "o"),
}


@dataclass(frozen=True)
class Observed:
    """What the model of the transformers library has in layer 0, by the program's names, and what came out of it."""

    tensors: dict[str, torch.Tensor]
    context: torch.Tensor
    output: torch.Tensor
    weights: torch.Tensor | None


def tiny_model(case: str, fields: Mapping[str, Any]) -> tuple[Any, Any]:
    """A model of the case's family from transformers, all its parameters random, and its config."""
    from transformers import AutoConfig

    kind = case.split()[0]
    known = AutoConfig.for_model(kind).to_dict()
    sizes = {name: size for name, size in SIZES.items() if name in known or name == "pad_token_id"}
    config = AutoConfig.for_model(kind, **(sizes | dict(fields)))
    return random_model(kind, config, 0.25), config


def random_model(kind: str, config: Any, spread: float) -> Any:
    """The model of a config, eager and in float32; its parameters are drawn with that standard deviation."""
    from transformers import AutoModel

    torch.manual_seed(1)
    if kind == "mllama_text_model":
        from transformers import MllamaTextModel

        config._attn_implementation = "eager"
        model: Any = MllamaTextModel(config)
    else:
        model = AutoModel.from_config(config, attn_implementation="eager")  # type: ignore[no-untyped-call]
    model = model.eval().float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, 1.0 if "norm" in name.lower() and "weight" in name else 0.0, spread)
    return model


def linear(attention: dict[str, Any], role: str) -> Any:
    """The module of layer 0's attention that makes q, k, v, all three, or the output, or None."""
    return next((attention[name] for name in NAMES[role] if name in attention), None)


def observe(case: str, model: Any, architecture: Architecture) -> Observed:
    """Run the model on random words, and record layer 0's input, weights, context and output."""
    part = getattr(model, "encoder", model) if architecture.encoder_decoder else model
    inside = {
        name.split(".")[-1]: module
        for name, module in part.named_modules()
        if re.search(r"^[^1-9]*\b0\b[^1-9]*(attn|attention|SelfAttention)(?!\w*norm)", name) and "mlp" not in name
    }
    seen: dict[str, Any] = {}
    first, last = linear(inside, "first"), linear(inside, "o")

    def record_input(_module: Any, given: tuple[torch.Tensor], _out: torch.Tensor) -> None:
        seen.setdefault("input", given[0].reshape(-1, given[0].shape[-1]))

    def record_output(_module: Any, given: tuple[torch.Tensor], out: torch.Tensor) -> None:
        seen.setdefault("context", given[0].reshape(-1, given[0].shape[-1]))
        seen.setdefault("output", out.reshape(-1, out.shape[-1]))

    first.register_forward_hook(record_input)
    last.register_forward_hook(record_output)
    with torch.no_grad():
        attentions = getattr(part(**random_input(case), output_attentions=True), "attentions", None)
    tensors = {"X": seen["input"], **projections(case, inside, architecture), **others(case, inside)}
    weights = attentions[0][0] if attentions and attentions[0] is not None else None
    return Observed(tensors, seen["context"], seen["output"], weights)


def random_input(case: str) -> dict[str, torch.Tensor]:
    """Random words for a model, an image for a ViT, sound for Whisper."""
    generator = torch.Generator().manual_seed(2)
    if case == "vit":
        return {"pixel_values": torch.randn(1, 3, 32, 32, generator=generator)}
    if case == "whisper":
        return {"input_features": torch.randn(1, 5, 2 * N, generator=generator)}
    return {"input_ids": torch.randint(2, WORDS, (1, N), generator=generator)}


def projections(case: str, inside: dict[str, Any], a: Architecture) -> dict[str, torch.Tensor]:
    """W_Q, W_K, W_V and W_O as x · W takes them, and the biases, cut out of fused matrices."""
    if "kv_b_proj" in inside:
        return latent_projections(inside, a)
    found: dict[str, torch.Tensor] = {}
    fused = linear(inside, "qkv")
    for role in "qkvo" if fused is None else "o":
        module = linear(inside, role)
        found[f"W_{role.upper()}"] = module.weight if type(module).__name__ == "Conv1D" else module.weight.T
        if module.bias is not None:
            found[f"b_{role.upper()}"] = module.bias
    if fused is not None:
        weight = fused.weight if type(fused).__name__ == "Conv1D" else fused.weight.T
        for letter, part in zip("QKV", cut(case, weight, a), strict=True):
            found[f"W_{letter}"] = part
        if fused.bias is not None:
            for letter, part in zip("QKV", cut(case, fused.bias[None], a), strict=True):
                found[f"b_{letter}"] = part[0]
    return {name: tensor.detach() for name, tensor in found.items()}


def latent_projections(inside: dict[str, Any], a: Architecture) -> dict[str, torch.Tensor]:
    """The projections of latent attention, down to latent vectors and up from them, with the gains of their norms."""
    weights = {name: module.weight.detach().T for name, module in inside.items() if name.endswith(("proj", "mqa"))}
    down, up = weights["kv_a_proj_with_mqa"], weights["kv_b_proj"].reshape(a.extra["r_kv"], a.H, -1)
    found = {"W_DKV": down[:, : a.extra["r_kv"]], "W_KR": down[:, a.extra["r_kv"] :], "W_O": weights["o_proj"]}
    keys, values = up.split((a.extra["d_nope"], a.d_v), dim=2)
    found |= {"W_UK": keys.flatten(1), "W_UV": values.flatten(1), "g_KV": inside["kv_a_layernorm"].weight.detach()}
    if "q_proj" in weights:
        return found | {"W_Q": weights["q_proj"]}
    gain = inside["q_a_layernorm"].weight.detach()
    return found | {"W_DQ": weights["q_a_proj"], "W_UQ": weights["q_b_proj"], "g_Q": gain}


def cut(case: str, fused: Any, a: Architecture) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values out of the columns of a fused matrix, as the family stores them."""
    kind, rows = case.split()[0], len(fused)
    if kind in {"gpt_neox", "bloom", "persimmon"}:  # head by head: its query, key and value
        return tuple(part.reshape(rows, -1) for part in fused.view(rows, a.H, 3, a.d_h).unbind(2))
    if "new decoder" in case:  # group by group: its queries, then its key and value
        parts = fused.view(rows, a.G, -1, a.d_h).split((a.H // a.G, 1, 1), dim=2)
        return tuple(part.reshape(rows, -1) for part in parts)
    if kind == "falcon" and a.G == a.H:
        return tuple(part.reshape(rows, -1) for part in fused.view(rows, a.H, 3, a.d_h).unbind(2))
    if kind == "codegen":  # four blocks, each with a quarter of queries, values and keys
        q, v, k = (part.reshape(rows, -1) for part in fused.view(rows, 4, 3, -1).unbind(2))
        return q, k, v
    return tuple(fused.split((a.H * a.d_h, a.G * a.d_h, a.G * a.d_v), dim=1))


def others(case: str, inside: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Gains of the norms of queries and keys, sinks and the table of relative positions, by the program's names."""
    found: dict[str, torch.Tensor] = {}
    for letter in "QK":
        norm = inside.get(f"{letter.lower()}_norm")
        if norm is not None:
            found[f"g_{letter}"] = norm.weight + 1 if case.startswith("gemma3") else norm.weight
    if hasattr(inside.get("self_attn"), "sinks"):
        found["sink"] = inside["self_attn"].sinks
    if "relative_attention_bias" in inside:
        found["b_P"] = inside["relative_attention_bias"].weight.T
    return {name: tensor.detach() for name, tensor in found.items()}


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference as a share of the norm of what is expected."""
    return float(torch.linalg.norm(found - expected) / torch.linalg.norm(expected))


@pytest.mark.parametrize("case", one_in(6, CASES))
def test_a_layer_and_its_heads_are_the_attention_of_transformers(case: str) -> None:
    model, config = tiny_model(case, CASES[case])
    a = build_architecture(config.to_dict())
    observed = observe(case, model, a)
    tokens = len(observed.output)
    layer = execute(program(a, tokens, topic=LAYER), observed.tensors).variables
    assert relative_error(layer["C"], observed.context) < MAX_ERROR
    assert relative_error(layer["O"], observed.output) < MAX_ERROR
    if observed.weights is not None:
        assert relative_error(layer["A"], observed.weights) < MAX_ERROR
    if a.has_latent_attention or a.qk_norm == "all-heads":
        return
    total = observed.tensors.get("b_O", torch.zeros(a.d)).expand(tokens, a.d).clone()
    for head in range(a.H):
        own = execute(program(a, tokens, head), tensors_of_head(observed.tensors, a, head)).variables
        torch.testing.assert_close(own["A"], layer["A"][head], rtol=1e-4, atol=1e-5)
        total += own["O"]
    assert relative_error(total, observed.output) < MAX_ERROR


@pytest.mark.parametrize("case", one_in(6, CASES))
def test_split_heads_and_a_decode_step_are_the_same_attention(case: str) -> None:
    model, config = tiny_model(case, CASES[case])
    a = build_architecture(config.to_dict())
    observed = observe(case, model, a)
    tokens, given = len(observed.output), observed.tensors
    if refusal("three-dimensions", a, tokens) is None:
        layer = execute(program(a, tokens, topic="three-dimensions"), given).variables
        assert relative_error(layer["C_cat"], observed.context) < MAX_ERROR
        assert relative_error(layer["O"], observed.output) < MAX_ERROR
        copies = sizes_for("four-dimensions", a, tokens, tokens)["B"]
        batch = torch.stack([given["X"] / (1 + place) for place in range(copies)])
        inputs = execute(program(a, tokens, topic="four-dimensions"), given | {"X": batch}).variables
        for place in range(copies):
            alone = execute(program(a, tokens, topic=LAYER), given | {"X": batch[place]}).variables
            assert relative_error(inputs["O"][place], alone["O"]) < MAX_ERROR
    if refusal("decode-step", a, tokens - 1) is None and not a.encoder_decoder and a.qk_norm != "all-heads":
        total = given.get("b_O", torch.zeros(a.d)).clone()
        for head in range(a.H):
            own = tensors_of_head(given, a, head)
            total = total + execute(program(a, tokens - 1, head, topic="decode-step"), own).variables["o"][0]
        assert relative_error(total, observed.output[-1]) < MAX_ERROR


@pytest.mark.parametrize("kind", ["t5", "bart", "whisper"])
def test_cross_attention_is_that_of_transformers(kind: str) -> None:
    model, config = tiny_model(kind, CASES[kind])
    a = architecture_of("cross-attention", build_architecture(config.to_dict()))
    seen: dict[str, Any] = {}
    name = r"decoder\.block\.0\.layer\.1\.EncDecAttention$|decoder\.layers\.0\.encoder_attn$"
    attention = next(module for path, module in model.named_modules() if re.search(name, path))
    inside = {path: module for path, module in attention.named_modules() if path}

    def record(module: Any, given: tuple[torch.Tensor], out: torch.Tensor) -> None:
        seen[next(path for path, each in inside.items() if each is module)] = (given[0][0], out[0])

    for module in inside.values():
        module.register_forward_hook(record)
    with torch.no_grad():
        model(**random_input(kind), decoder_input_ids=torch.randint(2, WORDS, (1, 7)))
    modules = {role: next(path for path in NAMES[role] if path in inside) for role in "qkvo"}
    tensors = {"X": seen[modules["q"]][0], **projections(kind, inside, a)}
    encoded = seen[modules["k"]][0]
    total = tensors.get("b_O", torch.zeros(a.d)).expand(7, a.d).clone()
    for head in range(a.H):
        lines = program(a, len(encoded), head, topic="cross-attention", decoder_tokens=7)
        total = total + execute(lines, tensors_of_head(tensors, a, head) | {"E": encoded}).variables["O"]
    assert relative_error(total, seen[modules["o"]][1]) < MAX_ERROR


@pytest.mark.parametrize("key", PUBLISHED)
def test_a_published_config_is_read_as_transformers_reads_it(key: str) -> None:
    from transformers import AutoConfig

    raw = json.loads((PROJECT / "worksheets" / "models" / f"{key}.json").read_text(encoding="utf-8"))["config"]
    whole = build_architecture(raw)
    small = {**raw, **{name: size for name, size in FEWER.items() if raw.get(name) is not None}}
    small |= {name: 4 * whole.d_h for name in ("hidden_size", "n_embd", "d_model") if name in raw}
    small |= {name: 4 for name in HEADS if name in raw} | {"pad_token_id": 1}
    small |= {"num_key_value_heads": 4 if whole.G == whole.H else 2} if "num_key_value_heads" in raw else {}
    small = {name: setting for name, setting in small.items() if name != "layer_types"}
    a = build_architecture(small)
    observed = observe(a.family, random_model(a.family, AutoConfig.for_model(**small), 0.05), a)
    assert relative_error(execute(program(a, N, topic=LAYER), observed.tensors).variables["O"], observed.output) < 1e-4


def tensors_of_head(tensors: dict[str, torch.Tensor], a: Architecture, head: int) -> dict[str, torch.Tensor]:
    """One query head's part of a layer's tensors: its own columns of W_Q, its group's of W_K, and so on."""
    group = head // a.query_heads_per_kv_head
    places = {"Q": (head, a.d_h), "K": (group, a.d_h), "V": (group, a.d_v)}
    found = {"X": tensors["X"], "W_O": tensors["W_O"][head * a.d_v : (head + 1) * a.d_v]}
    for letter, (number, width) in places.items():
        columns = slice(number * width, (number + 1) * width)
        found[f"W_{letter}"] = tensors[f"W_{letter}"][:, columns]
        if f"b_{letter}" in tensors:
            found[f"b_{letter}"] = tensors[f"b_{letter}"][columns]
    shared = {name: tensors[name] for name in ("g_Q", "g_K") if name in tensors}
    return found | shared | {name: tensors[name][head] for name in ("sink", "b_P") if name in tensors}
