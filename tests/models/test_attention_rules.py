"""How every family's layers compute, against the modules of transformers: mask, scale, rotary positions, norms.

Shapes do not tell these apart, so each is read off a module: its attributes, or what flows through a small model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from app.models.architecture import Architecture, LayerRun
from app.models.read_config import build_architecture
from tests.helpers.families_cases import CASES, GPT, LLAMA, Case, Config
from tests.helpers.reference import on_meta_device, running

TOKENS = 11
# Short windows and chunks, so that 11 tokens show them.
SHORT = {
    "sliding_window": 4,
    "attention_chunk_size": 4,
    "window_size": 4,
    "local_attention": 6,
    "use_sliding_window": True,
    "max_window_layers": 2,
}
# Even head dimensions, so that pairs can be rotated, and sizes that a family's own code asks for.
RUNNABLE: dict[str, Config] = {
    "codegen": {"n_embd": 64, "n_head": 8},
    "deepseek_v2": {"kv_lora_rank": 12},
    "qwen2_vl_text": {"rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}},
    "qwen2_5_vl_text": {"rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]}},
}
INNER_NORM = re.compile(r"\b(q|k|qk|query|key|q_a|kv_a)_(layer)?norm|norms\.\d")
every_family = pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)


def built(case: Case, changed: Config) -> tuple[Config, Architecture]:
    """The case with the first of all its settings, and short windows."""
    first = {name: values[0] for name, values in case.settings.items()}
    wide = {"hidden_size": 72} if case.base.get("hidden_size") == 54 else {}
    own = {**wide, **RUNNABLE.get(case.model_type, {})}
    config = {**case.config(first), **own, **changed, "architectures": [case.classes[0]]}
    if case.model_type == "modernbert":
        config.pop("sliding_window", None)  # transformers takes it for half of "local_attention"
    return config, build_architecture(config)


@cache
def small_model(number: int, *, short: bool = False) -> tuple[Any, Config, Architecture]:
    """A small model that computes, of the case of that number, for all tests that leave it as it is; and its config."""
    config, architecture = built(CASES[number], SHORT if short else {})
    return running(config, architecture.model_class).float(), config, architecture


def every_run(architecture: Architecture) -> list[LayerRun]:
    """The layers of the encoder, or of a lone decoder, one by one."""
    return [run for run in architecture.stacks[0].runs for _ in range(run.count)]


def seen_keys(run: LayerRun, *, causal: bool, tokens: int = TOKENS) -> torch.Tensor:
    """N × N: which keys each query sees, by the meaning of window and chunk."""
    query, key = torch.arange(tokens)[:, None], torch.arange(tokens)[None, :]
    seen = key <= query if causal else torch.ones(tokens, tokens, dtype=torch.bool)
    if run.window:
        near = query - key < run.window if causal else (query - key).abs() <= (run.window - 1) // 2
        seen = seen & near
    return seen & (query // run.chunk == key // run.chunk) if run.chunk else seen


def run_model(model: Any, config: Config, architecture: Architecture) -> Any:
    """What a small model gives for 11 tokens, or for as many as it reads."""
    if architecture.encoder_decoder:
        model = model.get_encoder()
    ids = torch.randint(1, 90, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    if architecture.family == "vit":
        inputs: dict[str, Any] = {"pixel_values": torch.randn(1, config.get("num_channels", 3), 35, 35)}
    elif architecture.family == "whisper":
        inputs = {"input_features": torch.randn(1, 8, 2 * 31)}
    else:
        inputs = {"input_ids": ids}
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


@every_family
def test_every_layer_hides_the_keys_that_it_hides_in_transformers(case: Case) -> None:
    model, config, architecture = small_model(CASES.index(case), short=True)
    runs = every_run(architecture)
    attentions = run_model(model, config, architecture).attentions
    if architecture.stacks[0].spec.count == "L_stored":  # ALBERT runs its layers again and again
        runs = runs * architecture.L
    runs = [run for run in runs if run.has_self_attention]  # without an image, these are left out
    for run, weights in zip(runs, attentions, strict=True):
        seen = seen_keys(run, causal=architecture.causal, tokens=weights.shape[-1])
        assert ((weights[0] > 0) == seen).all(), run


def attention_modules(model: nn.Module) -> list[nn.Module]:
    """The innermost modules called "…Attention", in the order of the layers, without cross attention."""
    named = [(name, m) for name, m in model.named_modules() if "Attention" in type(m).__name__]
    named = [(name, m) for name, m in named if not re.search(r"encoder_attn|EncDecAttention|cross_attn", name)]
    return [m for name, m in named if not any(other.startswith(f"{name}.") for other, _ in named)]


def measured_scale(module: nn.Module) -> float | None:
    """What the module multiplies scores by, from the attribute that its code reads; None where it has none."""
    for name in ("scaling", "softmax_scale", "inv_norm_factor"):
        if isinstance(getattr(module, name, None), float):
            return float(getattr(module, name))
    if isinstance(getattr(module, "scale_attn", None), float):  # GPT-J and CodeGen divide by it
        return 1 / float(module.scale_attn)  # type: ignore[arg-type]
    scale = getattr(module, "scale", None)  # CLIP has a number, GPT-1 a switch
    return None if scale is None or isinstance(scale, bool) else float(scale)


# Their modules keep no such number: the code divides by √d_h, or by √(n·d_h) in DeBERTa; GPT-Neo's does nothing.
NO_ATTRIBUTE = {"openai-gpt", "modernbert", "deberta", "deberta-v2", "gpt_neo"}
SCALES: list[tuple[str, Config]] = [
    ("gemma2", {**LLAMA, "query_pre_attn_scalar": 144}),
    ("gemma3_text", {**LLAMA, "query_pre_attn_scalar": 10}),
    ("granite", {**LLAMA, "attention_multiplier": 0.015625}),
    ("gpt2", {**GPT, "scale_attn_weights": False}),
    ("mpt", {"d_model": 54, "n_heads": 9, "n_layers": 3, "vocab_size": 101, "attn_config": {"softmax_scale": 0.25}}),
]


@every_family
def test_the_scores_are_scaled_as_in_transformers(case: Case) -> None:
    model, _, architecture = small_model(CASES.index(case))
    modules = attention_modules(model.get_encoder() if architecture.encoder_decoder else model)
    scales = [scale for module in modules if (scale := measured_scale(module)) is not None]
    assert (not scales) == (case.model_type in NO_ATTRIBUTE)
    assert all(scale == pytest.approx(architecture.score_scale.factor) for scale in scales)


def flat(config: Config) -> list[object]:
    """The values of a config, including those of nested objects."""
    return [value for each in config.values() for value in (flat(each) if isinstance(each, dict) else [each])]


@pytest.mark.parametrize(("model_type", "sizes"), SCALES, ids=[name for name, _ in SCALES])
def test_a_scale_of_its_own_is_read_from_the_config(model_type: str, sizes: Config) -> None:
    config = {"model_type": model_type, **sizes}
    scale = build_architecture(config).score_scale
    module = attention_modules(on_meta_device(config, build_architecture(config).model_class))[0]
    assert scale.factor == pytest.approx(measured_scale(module))
    kinds = {"gpt2": "none", "gemma2": "root", "gemma3_text": "root", "deberta-v2": "root"}
    assert scale.kind == kinds.get(model_type, "stated")
    assert scale.kind != "root" or scale.factor == pytest.approx(scale.number**-0.5)
    assert scale.kind != "stated" or scale.factor in flat(sizes)


def test_yarn_scales_the_scores_of_deepseek() -> None:
    (case,) = (case for case in CASES if case.model_type == "deepseek_v2")
    yarn = {"type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}
    config, architecture = built(case, {"rope_scaling": {**yarn, "original_max_position_embeddings": 4096}})
    module = attention_modules(on_meta_device(config, architecture.model_class))[0]
    assert architecture.score_scale.factor == pytest.approx(measured_scale(module))
    assert architecture.score_scale.factor == pytest.approx((0.0707 * math.log(40) + 1) ** 2 / math.sqrt(14))
    assert architecture.score_scale.kind == "yarn"
    assert architecture.score_scale.number == pytest.approx((0.0707 * math.log(40) + 1) ** 2)


def test_gpt_neo_takes_the_softmax_of_unscaled_scores() -> None:
    (case,) = (case for case in CASES if case.model_type == "gpt_neo")
    config, architecture = built(case, {})
    model = running(config, architecture.model_class)
    made: dict[str, torch.Tensor] = {}
    attention = model.transformer.h[0].attn.attention
    for name in ("q_proj", "k_proj"):
        getattr(attention, name).register_forward_hook(lambda _m, _i, out, name=name: made.update({name: out}))
    ids = torch.arange(1, 8)[None]
    with torch.no_grad():
        weights = model(ids, output_attentions=True).attentions[0][0, 0]
    queries, keys = (made[name][0, :, : architecture.d_h] for name in ("q_proj", "k_proj"))
    scores = queries @ keys.T * architecture.score_scale.factor
    expected = scores.masked_fill(~torch.ones(7, 7, dtype=torch.bool).tril(), -math.inf).softmax(-1)
    assert torch.allclose(weights, expected, atol=1e-6)


def frequencies(model: nn.Module, kind: str) -> torch.Tensor | None:
    """The model's rotary frequencies, of the layers of this kind where kinds differ; None without any."""
    for module in model.modules():
        if "vision" in type(module).__name__.lower():
            continue
        for name in (f"{kind}_inv_freq", "inv_freq"):
            if isinstance(getattr(module, name, None), torch.Tensor):
                return torch.as_tensor(getattr(module, name))
    return None


@every_family
def test_rotary_bases_and_widths_are_those_of_transformers(case: Case) -> None:
    model, _, architecture = small_model(CASES.index(case), short=True)
    for run in every_run(architecture):
        measured = frequencies(model, "sliding_attention" if run.window or run.chunk else "full_attention")
        if run.rotary is None or measured is None:
            assert run.rotary is None or architecture.family in {"gptj", "codegen"}  # a table of sines and cosines
            continue
        if run.rotary.scaling.get("rope_type", "default") == "default" and "yarn" not in str(model.config):
            pairs = torch.arange(run.rotary.width // 2 + run.rotary.width % 2)
            assert torch.allclose(measured, run.rotary.theta ** (-2.0 * pairs / run.rotary.width), rtol=1e-4)


def test_local_layers_of_gemma_3_have_a_base_of_their_own() -> None:
    gemma = build_architecture({"model_type": "gemma3_text", **LLAMA, "num_hidden_layers": 6, "sliding_window": 512})
    thetas = [(run.count, run.window, run.rotary and run.rotary.theta) for run in gemma.stacks[0].runs]
    assert thetas == [(5, 512, 10_000.0), (1, None, 1_000_000.0)]
    assert gemma.rotary is not None
    assert (gemma.window, gemma.rotary.theta) == (512, 10_000.0)


def test_published_windows_of_gpt_neo_and_modernbert() -> None:
    neo = {"hidden_size": 54, "vocab_size": 101, "num_heads": 9, "num_layers": 4}
    gpt_neo = build_architecture({"model_type": "gpt_neo", **neo, "attention_types": [[["global", "local"], 2]]})
    assert [run.window for run in every_run(gpt_neo)] == [None, 256, None, 256]
    modern = build_architecture({"model_type": "modernbert", **LLAMA, "num_hidden_layers": 6, "local_attention": 128})
    layers = every_run(modern)
    assert [run.window for run in layers] == [None, 129, 129, None, 129, 129]
    assert [run.rotary and run.rotary.theta for run in layers[:2]] == [160_000.0, 10_000.0]


LISTED = {"no_rope_layers": [0, 1, 1, 0], "num_hidden_layers": 4}  # against the default interval
WITH_CHUNKS = {**LLAMA, **LISTED, "attention_chunk_size": 4, "head_dim": 8, "intermediate_size_mlp": 40}


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "smollm3", **LLAMA, **LISTED, "use_sliding_window": True, "sliding_window": 4},
        {"model_type": "llama4_text", **WITH_CHUNKS},
        {"model_type": "llama4_text", **WITH_CHUNKS, "no_rope_layers": []},
        {"model_type": "llama4_text", **WITH_CHUNKS, "layer_types": ["full_attention", "chunked_attention"] * 2},
    ],
    ids=lambda config: f"{config['model_type']} {config['no_rope_layers']}",
)
def test_layers_listed_without_rope_are_those_of_transformers(config: Config) -> None:
    architecture = build_architecture({**config, "pad_token_id": 0})
    model = running({**config, "pad_token_id": 0}, architecture.model_class).float()
    runs, modules = every_run(architecture), attention_modules(model)
    assert [run.rotary is not None for run in runs] == [bool(module.use_rope) for module in modules]
    for run, weights in zip(runs, run_model(model, config, architecture).attentions, strict=True):
        assert ((weights[0] > 0) == seen_keys(run, causal=True)).all(), run


ADJACENT = {"gptj", "codegen", "cohere", "cohere2", "glm", "glm4", "llama4_text", "deepseek_v2", "deepseek_v3"}


@every_family
def test_pairs_of_rotated_numbers_are_adjacent_where_the_code_of_transformers_takes_them_so(case: Case) -> None:
    _, architecture = built(case, {})
    assert (architecture.rotary is not None and architecture.rotary.adjacent_pairs) == (case.model_type in ADJACENT)


@every_family
def test_no_rotary_positions_where_the_module_leaves_them_out(case: Case) -> None:
    model, _, architecture = small_model(CASES.index(case), short=True)
    modules = attention_modules(model)
    runs = every_run(architecture)
    for module, run in zip(modules, runs, strict=False):
        if hasattr(module, "use_rope"):
            assert bool(module.use_rope) == (run.rotary is not None)
        elif case.model_type == "cohere2":
            assert (module.sliding_window is not None) == (run.rotary is not None)
        elif case.model_type == "exaone4":
            assert bool(module.is_sliding) == (run.rotary is not None)
        else:
            assert (run.rotary is None) == (architecture.rotary is None)


def norms_of(layer: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, module in layer.named_modules():
        if "Norm" in type(module).__name__ and not INNER_NORM.search(name):
            yield name, module


def first_full_layer(model: nn.Module) -> nn.Module:
    """The third layer of the first stack, or its last: ModernBERT's first has a norm fewer."""
    stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) and any(norms_of(m[0]))]
    return stacks[0][min(2, len(stacks[0]) - 1)]


@every_family
def test_every_norm_is_of_the_kind_that_transformers_has(case: Case) -> None:
    model, _, architecture = small_model(CASES.index(case))
    layer = first_full_layer(model)
    for _, module in norms_of(layer):
        shifted = torch.randn(3, architecture.d) + 5
        with torch.no_grad():
            subtracts_mean = torch.allclose(module(shifted), module(shifted + 7), atol=1e-3)
        assert subtracts_mean == (architecture.norm == "LayerNorm"), type(module)


@every_family
@pytest.mark.parametrize("which", [0, -1])
def test_norms_stand_where_they_stand_in_transformers(case: Case, which: int) -> None:
    config, architecture = built(case, {name: values[which] for name, values in case.settings.items()})
    model = running(config, architecture.model_class).float()
    layer = first_full_layer(model)
    calls: list[tuple[torch.Tensor, torch.Tensor]] = []
    measured: list[str] = []

    def leave_layer(_module: nn.Module, inputs: Any, kwargs: Any, out: Any) -> None:
        x = inputs[0] if inputs else kwargs["hidden_states"]
        measured.append(measured_placement(x, out if isinstance(out, torch.Tensor) else out[0], calls))
        calls.clear()

    for _, module in norms_of(layer):
        module.register_forward_hook(lambda _m, inputs, out: calls.append((inputs[0], out)))
    layer.register_forward_hook(leave_layer, with_kwargs=True)
    feed(model, config, architecture)
    assert measured[0] == architecture.norm_placement


def feed(model: Any, config: Config, architecture: Architecture) -> None:
    with torch.no_grad():
        if architecture.family == "vit":
            model(pixel_values=torch.randn(1, config.get("num_channels", 3), 35, 35))
        elif architecture.family == "whisper":
            model.get_encoder()(torch.randn(1, 8, 2 * 31))
        elif architecture.encoder_decoder:
            model.get_encoder()(torch.arange(1, 8)[None])
        else:
            model(torch.arange(1, 8)[None])


def measured_placement(x: torch.Tensor, y: torch.Tensor, calls: list[tuple[torch.Tensor, torch.Tensor]]) -> str:
    """The placement of a layer's norms from x to y, judged by what they read and give."""
    if all(same(given, x) for given, _ in calls):
        return "parallel"
    if same(calls[0][0], x):
        return "sandwich" if len(calls) == 4 else "pre"
    return "post" if same(calls[-1][1], y) else "output"


def same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.numel() == second.numel() and torch.equal(first.flatten(), second.flatten())


def test_softcaps_and_position_biases_are_those_of_the_families() -> None:
    assert build_architecture({"model_type": "gemma2", **LLAMA}).score_softcap == 50.0
    assert build_architecture({"model_type": "gemma2", **LLAMA, "attn_logit_softcapping": None}).score_softcap is None
    assert build_architecture({"model_type": "gemma3_text", **LLAMA}).score_softcap is None
    biased = {case.model_type: built(case, {})[1].position_bias for case in CASES}
    assert {name: bias for name, bias in biased.items() if bias} == {
        "bloom": "alibi", "mpt": "alibi", "t5": "relative", "mt5": "relative", "umt5": "relative",
    }  # fmt: skip
    (deberta,) = (case for case in CASES if case.model_type == "deberta-v2")
    assert built(deberta, {"relative_attention": True})[1].position_bias == "disentangled"
    falcon = {
        "model_type": "falcon",
        "hidden_size": 54,
        "num_attention_heads": 9,
        "num_hidden_layers": 2,
        "vocab_size": 9,
    }
    old = build_architecture({**falcon, "alibi": True})
    assert (old.position_bias, old.rotary) == ("alibi", None)


def test_what_no_field_describes_is_said() -> None:
    said = {case.model_type for case in CASES if built(case, {})[1].not_modelled}
    assert "ministral3" in said
    t5 = {"model_type": "t5", "d_model": 8, "num_heads": 2, "d_ff": 8, "vocab_size": 9, "num_layers": 1}
    mpt = {"model_type": "mpt", "d_model": 8, "n_heads": 2, "vocab_size": 9, "n_layers": 1}
    for config, field in ((t5, {"relative_attention_max_distance": 64}), (mpt, {"attn_config": {"clip_qkv": 6}})):
        assert not build_architecture(config).not_modelled
        assert build_architecture(config | field).not_modelled
    assert not said & {"llama", "mistral", "qwen2", "qwen3", "gemma2", "gpt2", "gpt_neox", "t5", "bert", "deepseek_v2"}
