"""The table of a mixture of experts, against the layers of transformers and published counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.models.parameter_count import parameter_counts
from app.models.read_config import build_architecture
from app.shapes.table import Blank, Count
from app.sheets.library import Library
from app.sheets.seeds import possible_lengths
from app.topics.problem import problem_for
from app.topics.registry import possible_tokens, sizes_for, topic_for
from app.topics.requirements import TopicError
from tests.helpers.reference import running
from tests.helpers.shipped import MODELS

WITH_EXPERTS = [key for key, architecture in MODELS.items() if architecture.has_experts]
TOKENS = 12
MIXTRAL = {"model_type": "mixtral", "hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 4,
           "num_key_value_heads": 2, "num_hidden_layers": 2, "num_local_experts": 6, "num_experts_per_tok": 2,
           "vocab_size": 50}  # fmt: skip
DEEPSEEK = {"model_type": "deepseek_v2", "hidden_size": 24, "intermediate_size": 44, "moe_intermediate_size": 20,
            "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 3, "n_routed_experts": 6,
            "num_experts_per_tok": 3, "n_shared_experts": 2, "first_k_dense_replace": 1, "kv_lora_rank": 8,
            "q_lora_rank": None, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 6, "head_dim": 4,
            "topk_method": "greedy", "n_group": 1, "topk_group": 1, "vocab_size": 50}  # fmt: skip


def answers(model: Any, tokens: int) -> dict[str, int]:
    """Every answer of a model's sheet, by the names of its boxes."""
    table, sizes = topic_for("experts", model, tokens), sizes_for("experts", model, tokens, tokens)
    return {f"{key}.{f}": entry.size(f, sizes) for key, entry in table.askable.items() for f in entry.fields}


@pytest.mark.parametrize(("config", "name"), [(MIXTRAL, "MixtralForCausalLM"), (DEEPSEEK, "DeepseekV2ForCausalLM")])
def test_a_block_of_transformers_has_these_shapes_and_parameters(config: dict[str, Any], name: str) -> None:
    model = running(config, name)
    block, seen = model.model.layers[-1].mlp, dict[str, Any]()
    block.experts.register_forward_hook(lambda _module, args, _output: seen.update(zip("xip", args, strict=True)))
    with torch.no_grad():
        model(torch.arange(TOKENS)[None])
    right = answers(build_architecture({**config, "architectures": [name]}, "tiny"), TOKENS)

    def shape(key: str) -> tuple[int, int]:
        return right[f"{key}.rows"], right[f"{key}.columns"]

    assert tuple(seen["x"].shape) == shape("input")
    assert tuple(seen["p"].shape) == shape("chosen")
    # As stored, the output dimension first; gate and up are one tensor.
    assert tuple(block.gate.weight.shape) == shape("W_router")[::-1]
    assert tuple(block.experts.down_proj.shape[1:]) == shape("W_down")[::-1]
    assert tuple(block.experts.gate_up_proj.shape[1:]) == (2 * shape("W_up")[1], shape("W_up")[0])
    visits = torch.bincount(seen["i"].flatten(), minlength=config.get("n_routed_experts", 6))
    assert visits.float().mean() == right["expert_input.rows"]
    one = sum(p[0].numel() for p in block.experts.parameters())
    idle = (visits.numel() - seen["i"].shape[1]) * one
    stored = sum(p.numel() for p in block.parameters())
    assert (right["one_expert.count"], right["block_stored.count"]) == (one, stored)
    assert right["block_active.count"] == stored - idle
    total = sum(p.numel() for p in model.parameters())
    assert (right["total.count"], right["used.count"]) == (total, total - 2 * idle)


def test_published_counts() -> None:
    """Mixtral has 46.7 billion parameters and uses 12.9 for a token (mistral.ai/news/mixtral-of-experts)."""
    billions = {key: round(answers(MODELS[key], 32)["total.count"] / 1e9, 1) for key in WITH_EXPERTS}
    assert billions == {"mixtral-8x7b": 46.7, "deepseek-v2-lite": 15.7, "gpt-oss-20b": 20.9, "deepseek-v3": 671.0}
    assert round(answers(MODELS["mixtral-8x7b"], 32)["used.count"] / 1e9, 1) == 12.9


@pytest.mark.parametrize("model", WITH_EXPERTS)
def test_the_totals_are_those_of_the_model_and_of_the_rows_they_are_made_from(model: str) -> None:
    architecture, right = MODELS[model], answers(MODELS[model], 32)
    counts = parameter_counts(architecture)
    assert (right["total.count"], right["used.count"]) == (counts.total, counts.active)
    sizes = sizes_for("experts", architecture, 32, 32)
    for key, entry in topic_for("experts", architecture, 32).askable.items():
        if isinstance(entry, Count) and entry.made_from:
            parts = {part: right[f"{part}.count"] for part in entry.made_from.parts}
            assert entry.made_from.number(sizes, parts) == right[f"{key}.count"]


def test_rows_in_one_expert_are_asked_only_where_its_tokens_are_a_whole_number() -> None:
    lite = MODELS["deepseek-v2-lite"]
    problem = problem_for("experts", lite, ("router_logits", "expert_input"), 100)
    assert problem.rows == ("router_logits",)
    assert problem_for("experts", lite, ("expert_input",), 96).answers[Blank("expert_input", "rows")] == 96 * 6 // 64
    assert (possible_tokens("experts", lite, 100), possible_tokens("single-head", lite, 100)) == (96, 100)


def test_seeds_draw_lengths_that_share_out_evenly(library: Library) -> None:
    lengths = possible_lengths(library.variant("experts-mixtral-8x7b"))
    assert (lengths.start, lengths.step, lengths[-1]) == (12, 4, 196)
    drawn = [library.seeded("experts-mixtral-8x7b", seed) for seed in range(3)]
    assert all("expert_input.rows" in variant.key for variant in drawn)


def test_a_model_without_experts_is_refused() -> None:
    with pytest.raises(TopicError, match=r"GPT-2.*Mixtral"):
        topic_for("experts", MODELS["gpt2"], 100)
