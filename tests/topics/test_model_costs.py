"""The cost of a model, against torch: the operations that it counts in tiny transformers models, and real tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from app.grading.grade import grade
from app.models.read_config import build_architecture
from app.shapes.table import Blank
from app.topics.registry import refusal, sizes_for, topic_for
from app.topics.requirements import TopicError
from tests.helpers.families_cases import CASES, Case
from tests.helpers.shipped import LIBRARY, MODELS

N = 11
Config = Mapping[str, Any]
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 48, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 77, "num_hidden_layers": 2, "vocab_size": 101,
}  # fmt: skip
TIED = {**LLAMA, "tie_word_embeddings": True}
MIXTRAL = {
    **LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 5,
    "num_experts_per_tok": 3,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 48,
    "num_attention_heads": 6, "num_key_value_heads": 6, "intermediate_size": 77, "num_hidden_layers": 3,
    "vocab_size": 101, "q_lora_rank": 17, "kv_lora_rank": 13, "qk_nope_head_dim": 10, "qk_rope_head_dim": 4,
    "v_head_dim": 7, "n_routed_experts": 5, "num_experts_per_tok": 3, "n_shared_experts": 1, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 23,
}  # fmt: skip
# Sizes that transformers cannot run in the odd ones of a case: RoPE on half a pair, or on pairs that begin at an odd
# place, heads in no four parts; and the two experts of Phi MoE, whatever its config says.
RUNNABLE: Mapping[str, Config] = {
    **{key: {"partial_rotary_factor": 2 / 3} for key in ("phi", "stablelm", "persimmon")},
    "codegen": {"n_embd": 48, "n_head": 8},
    "phimoe": {"num_experts_per_tok": 2},
    "deepseek_v2": {"kv_lora_rank": 14},
}
RUNS_ALL_EXPERTS = "llama4_text"  # its module multiplies zeros by the experts that a token is not sent to


def counted(config: Config) -> dict[str, int]:
    """Every count of the sheet on the model of a config, by its key."""
    a = build_architecture(dict(config))
    sizes = sizes_for("model-costs", a, N, N)
    return {key: count.size("count", sizes) for key, count in topic_for("model-costs", a, N).askable.items()}


def model_of(config: Config) -> Any:
    """A random model of a config in transformers; its attention and its experts are plain products."""
    given = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    read = AutoConfig.for_model(config["model_type"], **given)
    read._experts_implementation = "eager"
    return AutoModelForCausalLM.from_config(read, attn_implementation="eager")  # type: ignore[no-untyped-call]


def flops(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


@contextmanager
def absorbing(model: Any) -> Iterator[None]:
    """Let latent attention meet the latent vectors themselves within the block, as code for serving DeepSeek does."""
    attention = [each for each in model.modules() if hasattr(each, "expand_kv")]
    if not attention:
        yield
        return

    def latents(latent: torch.Tensor, rotary: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat((latent, rotary), dim=-1), latent

    def absorbed(module: Any, queries: Any, keys: Any, values: Any, _mask: Any, scaling: float, **_: Any) -> Any:
        parts = [module.qk_nope_head_dim, module.v_head_dim]
        up_keys, up_values = module.kv_b_proj.weight.unflatten(0, (module.num_heads, -1)).split(parts, dim=1)
        plain, rotary = queries.split([module.qk_nope_head_dim, module.qk_rope_head_dim], dim=-1)
        scores = torch.cat((plain @ up_keys, rotary), dim=-1) @ keys.transpose(-2, -1)  # (B, H, 1, N + 1)
        context = (scores * scaling).softmax(dim=-1) @ values @ up_values.transpose(-2, -1)  # (B, H, 1, d_v)
        return context.transpose(1, 2), None

    with pytest.MonkeyPatch.context() as patch:
        for each in attention:
            patch.setattr(each, "expand_kv", latents)
        patch.setattr(sys.modules[type(attention[0]).__module__], "eager_attention_forward", absorbed)
        yield


def check_operations(config: Config) -> None:
    """What torch counts in a forward pass, in a step with a cache, and forward and backward, is what the sheet says."""
    model, costs = model_of(config), counted(config)
    tokens = torch.randint(2, 90, (1, N))
    with torch.no_grad():
        assert flops(lambda: model(tokens, use_cache=False)) == costs["prefill_flops"]
        cache = model(tokens, use_cache=True).past_key_values
        with absorbing(model):
            step = flops(lambda: model(tokens[:, :1], past_key_values=cache, use_cache=True))
    assert step == costs["decode_flops"]
    assert flops(lambda: model(tokens, use_cache=False).logits.sum().backward()) == costs["training_flops"]
    assert sum(each.numel() for each in model.parameters()) * 16 == costs["training_bytes"]


@pytest.mark.parametrize("config", [LLAMA, TIED, MIXTRAL, DEEPSEEK], ids=["llama", "tied", "mixtral", "deepseek"])
def test_torch_counts_as_many_operations(config: Config) -> None:
    check_operations(config)


def test_a_step_with_latent_vectors_gives_the_same_logits() -> None:
    model, tokens = model_of(DEEPSEEK), torch.randint(2, 90, (1, N + 1))
    with torch.no_grad():
        caches = [model(tokens[:, :N], use_cache=True).past_key_values for _ in range(2)]
        anew = model(tokens[:, N:], past_key_values=caches[0], use_cache=True).logits
        with absorbing(model):
            absorbed = model(tokens[:, N:], past_key_values=caches[1], use_cache=True).logits
    assert torch.allclose(absorbed, anew, atol=1e-5)


def first_and_last(case: Case) -> tuple[Config, ...]:
    """The first and the last config of a family's case that the topic is true of, in a class that predicts tokens."""
    causal = (
        {**config, **RUNNABLE.get(case.model_type, {}), "architectures": [name]}
        for config, name in case.configs()
        if name.endswith(("ForCausalLM", "LMHeadModel"))
    )
    possible = [each for each in causal if refusal("model-costs", build_architecture(each), N) is None]
    return (possible[0], possible[-1]) if possible else ()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model_type)
def test_torch_counts_as_many_operations_in_every_family(case: Case) -> None:
    for config in first_and_last(case) if case.model_type != RUNS_ALL_EXPERTS else ():
        check_operations(config)


def test_training_keeps_as_many_bytes() -> None:
    model, costs = model_of(LLAMA).to(torch.bfloat16), counted(LLAMA)
    model(torch.randint(2, 90, (1, N))).logits.float().logsumexp(-1).sum().backward()
    weights = list(model.parameters())
    master = [weight.detach().float() for weight in weights]
    for copy, weight in zip(master, weights, strict=True):
        copy.grad = weight.grad.float()
    optimizer = torch.optim.AdamW(master)
    optimizer.step()
    moments = [state[key] for state in optimizer.state.values() for key in ("exp_avg", "exp_avg_sq")]
    kept = {
        "weights_16_bit": weights, "gradients_bytes": [weight.grad for weight in weights], "master_bytes": master,
        "moments_bytes": moments,
    }  # fmt: skip
    found = {key: sum(each.numel() * each.element_size() for each in tensors) for key, tensors in kept.items()}
    assert {key: costs[key] for key in found} == found
    assert sum(found.values()) == costs["training_bytes"]


def test_a_matrix_is_read_once_for_all_tokens() -> None:
    matrix, costs = torch.randn(48, 77, dtype=torch.bfloat16), counted(LLAMA)
    for key, tokens in (("decode_intensity", 1), ("prefill_intensity", N)):
        vectors = torch.randn(tokens, 48, dtype=torch.bfloat16)
        assert flops(partial(torch.matmul, vectors, matrix)) == costs[key] * matrix.numel() * matrix.element_size()


def test_the_rule_of_thumb_is_off_by_what_is_no_product() -> None:
    costs, model = counted(LLAMA), model_of(LLAMA)
    norms = sum(each.numel() for each in model.parameters() if each.dim() == 1)
    assert costs["rule_excess"] == 2 * (norms + model.get_input_embeddings().weight.numel())
    exact = counted({**TIED, "model_type": "olmo", "architectures": ["OlmoForCausalLM"]})
    assert exact["rule_flops"] == exact["token_flops"]
    assert "rule_excess" not in exact


def test_a_window_bounds_what_a_new_token_sees() -> None:
    mistral = MODELS["mistral-7b"]
    steps = [
        topic_for("model-costs", mistral, tokens).askable["decode_flops"].size(
            "count", sizes_for("model-costs", mistral, tokens, tokens)
        )
        for tokens in (4095, 5000, 9000)
    ]  # fmt: skip
    assert steps[0] == steps[1] == steps[2]


@pytest.mark.parametrize(
    ("model", "tokens", "reason"),
    [("t5-small", 10, "encoder"), ("bert-base", 10, "next token"),
     ("gemma-2-2b", 5000, "fewer than 4,096"), ("gpt2", 1024, "positions")],
)  # fmt: skip
def test_other_models_are_refused(model: str, tokens: int, reason: str) -> None:
    """With what to choose instead."""
    with pytest.raises(TopicError, match=reason):
        topic_for("model-costs", MODELS[model], tokens)


def test_every_row_of_a_sheet_follows_from_the_entries_of_matrices() -> None:
    variant = LIBRARY.variant("model-costs-llama-3.2-1b")
    right = {str(blank): variant.answer(blank) for blank in variant.blanks}
    entries = right["layers_multiplied.count"]
    pairs = right["attention_flops.count"]
    wrong = {
        "multiplied.count": entries, "token_flops.count": 2 * entries, "prefill_flops.count": 4000 * entries + pairs,
        "training_flops.count": 3 * (4000 * entries + pairs),
    }  # fmt: skip
    marks = grade(variant, {box: str(number) for box, number in {**right, **wrong}.items()}).marks
    followed = {blank.tensor for blank, mark in marks.items() if mark.kind == "follows"}
    assert followed == {"token_flops", "prefill_flops", "training_flops"}
    assert marks[Blank("multiplied", "count")].kind == "wrong"
