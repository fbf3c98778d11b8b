"""What a softmax sheet counts is what torch computes, with the masks that transformers makes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.topics.registry import refusal, sizes_for, topic_for
from app.topics.requirements import TopicError
from tests.helpers.shipped import MODELS

TOPIC = "scale-mask-softmax"
LLAMA = {"hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 99}


def windowed(window: int) -> Architecture:
    """A small Mistral whose layers all have the same sliding window."""
    return build_architecture({"model_type": "mistral", "sliding_window": window, **LLAMA}, "The model")


def counted(architecture: Architecture, tokens: int) -> dict[str, int]:
    """Every count of the topic."""
    table, sizes = topic_for(TOPIC, architecture, tokens), sizes_for(TOPIC, architecture, tokens, tokens)
    return {count.key: count.size("count", sizes) for count in table.counts}


def observed(architecture: Architecture, tokens: int) -> dict[str, int]:
    """The same from a softmax of random scores, behind the mask of transformers for this kind of model."""
    from transformers import masking_utils

    kind: Any = masking_utils.causal_mask_function
    if architecture.window:
        kind = masking_utils.sliding_window_causal_mask_function(architecture.window)
    places = torch.arange(tokens)
    sees = kind(0, 0, places[:, None], places[None, :]) if architecture.causal else torch.ones(tokens, tokens) > 0
    mask = torch.zeros(tokens, tokens).masked_fill(~sees, -torch.inf)
    weights = torch.softmax(torch.randn(tokens, tokens, generator=torch.manual_seed(1)) + mask, dim=1)
    of_token = (weights > 0).sum(1).tolist()
    return {
        "masked": int(torch.isinf(mask).sum()),
        "first_weights": of_token[0],
        "chosen_weights": of_token[sizes_for(TOPIC, architecture, tokens, tokens)["i"] - 1],
        "last_weights": of_token[-1],
        "all_weights": sum(of_token),
        "row_sum": round(float(weights[0].sum())),
        "weights_sum": round(float(weights.sum())),
    }


@pytest.mark.parametrize(
    ("architecture", "tokens"),
    [
        (MODELS["gpt2"], 100),
        (MODELS["llama-7b"], 2),
        (MODELS["bert-base"], 35),
        (MODELS["t5-small"], 9),
        (MODELS["gemma-2-2b"], 60),  # all layers see 60 tokens
        (windowed(16), 16),
        (windowed(16), 17),
        (windowed(7), 40),  # token 14 is beyond the window too
        (windowed(1), 12),
    ],
)
def test_the_counts_are_those_of_a_real_softmax(architecture: Architecture, tokens: int) -> None:
    expected = observed(architecture, tokens)
    if not architecture.causal:
        assert expected.pop("masked") == 0
    counts = counted(architecture, tokens)
    counts.pop("under_root", None)
    assert counts == expected


def test_the_root_is_that_of_a_heads_width() -> None:
    assert counted(MODELS["gpt2"], 10)["under_root"] == 64
    assert counted(MODELS["deepseek-v2-lite"], 10)["under_root"] == 192
    assert "under_root" not in counted(MODELS["t5-small"], 10)


@pytest.mark.parametrize(
    ("model", "tokens", "said"),
    [
        ("gpt-oss-20b", 10, "attention sink"),
        ("gpt2", 1, "at least 2 tokens"),
        ("gpt-neo-125m", 257, "at most 256 tokens"),
        ("modernbert-base", 66, "at most 65 tokens"),
    ],
)
def test_what_is_not_true_of_a_model_is_refused(model: str, tokens: int, said: str) -> None:
    assert said in (refusal(TOPIC, MODELS[model], tokens) or "")
    with pytest.raises(TopicError):
        topic_for(TOPIC, MODELS[model], tokens)
