"""Inner dimensions against published configs and Meta's own arithmetic, parameters against transformers' modules."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.models.width_rules import LLAMA_RULE, WidthRule
from app.topics.registry import refusal, sizes_for, topic_for
from tests.helpers.shipped import MODELS

TOPIC = "feed-forward-width"


def counted(model: str) -> dict[str, int]:
    """Every count of the topic."""
    table, sizes = topic_for(TOPIC, MODELS[model], 9), sizes_for(TOPIC, MODELS[model], 9, 9)
    return {count.key: count.size("count", sizes) for count in table.counts}


@pytest.mark.parametrize(
    ("model", "rule", "steps"),
    [
        ("llama-7b", LLAMA_RULE, [16384, 10922, 43, 11008]),
        ("llama-65b", LLAMA_RULE, [32768, 21845, 86, 22016]),
        ("olmo-2-7b", LLAMA_RULE, [16384, 10922, 43, 11008]),
        ("smollm2-135m", LLAMA_RULE, [2304, 1536, 6, 1536]),  # nothing to round
        ("llama-3.2-1b", WidthRule(256, 150), [8192, 5461, 8191, 32, 8192]),
        ("llama-3-8b", WidthRule(1024, 130), [16384, 10922, 14198, 14, 14336]),
        ("llama-3-70b", WidthRule(4096, 130), [32768, 21845, 28398, 7, 28672]),
        ("llama-3.1-405b", WidthRule(4096, 120), [65536, 43690, 52428, 13, 53248]),
    ],
)
def test_the_steps_lead_to_the_inner_dimension_of_the_config(model: str, rule: WidthRule, steps: list[int]) -> None:
    assert MODELS[model].width_rule == rule
    keys = ("four_d", "two_thirds", "multiplied", "multiples", "width")
    assert [number for key, number in counted(model).items() if key in keys] == steps
    assert steps[-1] == MODELS[model].d_ff


def test_the_rule_is_that_of_the_published_code() -> None:
    for d in range(1, 6000, 7):
        hidden = int(2 * (4 * d) / 3)
        for multiple, multiplier in ((256, None), (1024, 1.3), (4096, 1.2)):
            more = hidden if multiplier is None else int(multiplier * hidden + 1e-9)
            rule = WidthRule(multiple, round(100 * (multiplier or 1)))
            assert rule.width(d) == multiple * ((more + multiple - 1) // multiple)


def test_blocks_have_the_parameters_of_transformers_modules() -> None:
    from transformers import GPT2Config, LlamaConfig
    from transformers.models.gpt2 import modeling_gpt2
    from transformers.models.llama import modeling_llama

    modules: Any = (modeling_llama.LlamaMLP, modeling_gpt2.GPT2MLP)
    with torch.device("meta"):
        gated = modules[0](LlamaConfig(hidden_size=4096, intermediate_size=11008))
        ungated = modules[1](4 * 768, GPT2Config(n_embd=768))
    assert counted("llama-7b")["gated_parameters"] == sum(p.numel() for p in gated.parameters())
    assert counted("gpt2")["block_parameters"] == sum(p.numel() for p in ungated.parameters() if p.dim() > 1)


@pytest.mark.parametrize("model", ["gpt2", "gpt2-xl", "pythia-160m"])
def test_the_gated_block_is_the_widest_with_no_more_parameters(model: str) -> None:
    counts, d = counted(model), MODELS[model].d
    assert 3 * d * counts["gated_width"] <= counts["block_parameters"] < 3 * d * (counts["gated_width"] + 1)


@pytest.mark.parametrize("model", ["mistral-7b", "qwen3-4b", "gemma-2-2b", "mixtral-8x7b", "t5-small"])
def test_a_width_of_its_own_is_refused(model: str) -> None:
    assert "choose" in (refusal(TOPIC, MODELS[model], 9) or "").lower()
