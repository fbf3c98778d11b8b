"""Worksheets that no longer exist, with the worksheet, model and decoder tokens that ask the same, for printed codes
and old addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Replacement(NamedTuple):
    """The sheet to open instead of an old one; an empty model, or no decoder tokens, are the worksheet's own."""

    worksheet: str
    model: str = ""
    decoder_tokens: int | None = None


REPLACED: Mapping[str, Replacement] = {
    "columns-qwen3-0.6b": Replacement("llama-7b", "qwen3-0.6b"),
    "head-of-a-model": Replacement("llama-7b", "llama-3.2-1b"),
    "letters-llama-7b": Replacement("llama-7b~symbols"),
    "bidirectional-t5-small": Replacement("bidirectional-bert-base", "t5-small"),
    "letters-bidirectional-bert-base": Replacement("bidirectional-bert-base~symbols"),
    "letters-softmax-llama-3.2-1b": Replacement("softmax-of-a-model~symbols", "llama-3.2-1b"),
    "softmax-bert-base": Replacement("softmax-of-a-model", "bert-base"),
    "softmax-gpt2": Replacement("softmax-of-a-model", "gpt2"),
    "layer-of-a-model": Replacement("layer-mistral-7b", "llama-3.2-1b"),
    "letters-latent-deepseek-v2-lite": Replacement("latent-deepseek-v2-lite~symbols"),
    "letters-layer-mistral-7b": Replacement("layer-mistral-7b~symbols"),
    "qwen2.5-0.5b-grouped": Replacement("layer-mistral-7b", "qwen2.5-0.5b"),
    "letters-three-dimensions-mistral-7b": Replacement("three-dimensions-llama-7b~symbols", "mistral-7b"),
    "three-dimensions-qwen2.5-0.5b": Replacement("three-dimensions-llama-7b", "qwen2.5-0.5b"),
    "four-dimensions-qwen3-0.6b": Replacement("four-dimensions-gpt2", "qwen3-0.6b"),
    "letters-four-dimensions-gpt2": Replacement("four-dimensions-gpt2~symbols"),
    "letters-same-shapes-llama-3.2-1b": Replacement("same-shapes-gpt2~symbols", "llama-3.2-1b"),
    "broadcasting-llama-3.2-1b": Replacement("broadcasting-gpt2", "llama-3.2-1b"),
    "letters-broadcasting-mistral-7b": Replacement("broadcasting-gpt2~symbols", "mistral-7b"),
    "index-llama-3.2-1b": Replacement("index-gpt2", "llama-3.2-1b"),
    "letters-index-mistral-7b": Replacement("index-gpt2~symbols", "mistral-7b"),
    "decode-llama-3.2-1b": Replacement("decode-gpt2", "llama-3.2-1b"),
    "letters-decode-llama-3.2-1b": Replacement("decode-gpt2~symbols", "llama-3.2-1b"),
    "decode-mistral-7b": Replacement("decode-phi-3-mini-4k", "mistral-7b"),
    "cross-t5-small": Replacement("cross-bart-base", "t5-small", 12),
    "letters-cross-t5-small": Replacement("cross-bart-base~symbols", "t5-small", 12),
    "letters-cache-llama-3.2-1b": Replacement("cache-qwen3-0.6b~symbols", "llama-3.2-1b"),
    "letters-rotary-pythia-160m": Replacement("rotary-mistral-7b~symbols", "pythia-160m"),
    "rotary-pythia-160m": Replacement("rotary-mistral-7b", "pythia-160m"),
    "head-parameters-llama-3.2-1b": Replacement("head-parameters-gpt2", "llama-3.2-1b"),
    "head-parameters-of-a-model": Replacement("head-parameters-gpt2", "qwen3-0.6b"),
    "letters-head-parameters-mistral-7b": Replacement("head-parameters-gpt2~symbols", "mistral-7b"),
    "letters-matrices-mistral-7b": Replacement("matrices-llama-7b~symbols", "mistral-7b"),
    "matrices-gpt2": Replacement("matrices-llama-7b", "gpt2"),
    "matrices-of-a-model": Replacement("matrices-llama-7b", "qwen3-0.6b"),
    "matrices-qwen2.5-0.5b": Replacement("matrices-llama-7b", "qwen2.5-0.5b"),
    "letters-stored-mistral-7b": Replacement("stored-of-a-model~symbols", "mistral-7b"),
    "stored-qwen3-0.6b": Replacement("stored-of-a-model", "qwen3-0.6b"),
    "letters-lora-mistral-7b": Replacement("lora-llama-7b~symbols", "mistral-7b"),
    "lora-qwen3-0.6b": Replacement("lora-llama-7b", "qwen3-0.6b"),
    "letters-width-llama-3.2-3b": Replacement("width-llama-7b~symbols", "llama-3.2-3b"),
    "width-gpt2": Replacement("width-llama-7b", "gpt2"),
    "width-llama-3-8b": Replacement("width-llama-7b", "llama-3-8b"),
    "letters-walk-llama-3.2-1b": Replacement("walk-llama-3.2-1b~symbols"),
    "walk-gpt2": Replacement("walk-llama-3.2-1b", "gpt2"),
    "letters-loss-llama-3.2-1b": Replacement("loss-gpt2~symbols", "llama-3.2-1b"),
    "loss-t5-small": Replacement("loss-gpt2", "t5-small"),
    "count-bert-base": Replacement("count-llama-7b", "bert-base"),
    "count-larger-llama": Replacement("count-llama-7b", "llama-13b"),
    "count-of-a-model": Replacement("count-llama-7b", "mistral-7b"),
    "count-qwen2.5-0.5b": Replacement("count-llama-7b", "qwen2.5-0.5b"),
    "letters-count-mistral-7b": Replacement("count-llama-7b~symbols", "mistral-7b"),
    "experts-deepseek-v2-lite": Replacement("experts-mixtral-8x7b", "deepseek-v2-lite"),
    "letters-experts-mixtral-8x7b": Replacement("experts-mixtral-8x7b~symbols"),
    "costs-mistral-7b": Replacement("costs-llama-7b", "mistral-7b"),
    "letters-costs-mistral-7b": Replacement("costs-llama-7b~symbols", "mistral-7b"),
    "growth-llama-3.2-1b": Replacement("growth-llama-7b", "llama-3.2-1b"),
    "letters-growth-llama-3.2-1b": Replacement("growth-llama-7b~symbols", "llama-3.2-1b"),
    "letters-model-costs-mistral-7b": Replacement("model-costs-llama-3.2-1b~symbols", "mistral-7b"),
    "model-costs-deepseek-v2-lite": Replacement("model-costs-mixtral-8x7b", "deepseek-v2-lite"),
}
