"""The external reference: models as the transformers library builds them on torch's meta device, without memory."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

import torch
import transformers

# transformers 5 ties these models' LM head to the embedding whatever their config states.
ALWAYS_TIED = frozenset({"t5", "mt5", "umt5"})
Shapes = dict[str, Counter[tuple[int, ...]]]

# Where a layer's number is in a parameter's name, and how many such numbers there are: T5 also numbers the parts of a
# layer, which are {j}.
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer|albert_layer_groups)\.(\d+)(?=\.)")
_COPY = re.compile(r"(?:(?<=\.norms)|(?<=\.layer)|(?<=\.albert_layers))\.\d+(?=\.)")


def built(config: Mapping[str, Any], class_name: str) -> dict[str, tuple[int, ...]]:
    """Every parameter of the model by name with its stored shape; tied ones once."""
    model = on_meta_device(config, class_name)
    if config["model_type"] in ALWAYS_TIED and config.get("tie_word_embeddings") is False and hasattr(model, "lm_head"):
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def on_meta_device(config: Mapping[str, Any], class_name: str) -> Any:
    """The model of transformers without memory for its parameters."""
    kind = transformers.CONFIG_MAPPING[config["model_type"]]
    with torch.device("meta"):
        return getattr(transformers, class_name)(kind.from_dict(dict(config)))


def running(config: Mapping[str, Any], class_name: str) -> Any:
    """The model of transformers with random parameters, and attention in plain matrix products."""
    kind = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(dict(config))
    kind._attn_implementation, kind._experts_implementation = "eager", "batched_mm"
    torch.manual_seed(0)
    return getattr(transformers, class_name)(kind).eval()


def attention_of_a_step(config: Mapping[str, Any], class_name: str, tokens: int) -> tuple[list[int], list[int]]:
    """The shape of one head's weights in the first layer of a running model: for all tokens, then for one more."""
    model = running(config, class_name)
    ids = torch.randint(1, 90, (1, tokens + 1), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        first = model(ids[:, :-1], use_cache=True, output_attentions=True)
        then = model(ids[:, -1:], use_cache=True, output_attentions=True, past_key_values=first.past_key_values)
    return list(first.attentions[0].shape[-2:]), list(then.attentions[0].shape[-2:])


def by_pattern(parameters: Mapping[str, tuple[int, ...]]) -> Shapes:
    """The same with {i} for the layer's number, and how often each shape occurs under a name."""
    found: Shapes = {}
    for name, shape in parameters.items():
        found.setdefault(layer_of(name)[1], Counter())[shape] += 1
    return found


def per_layer(parameters: Mapping[str, tuple[int, ...]]) -> dict[tuple[str, int], int]:
    """How many numbers each layer holds, by its stack's name and its place in it."""
    sums: Counter[tuple[str, int]] = Counter()
    for name, shape in parameters.items():
        number, pattern = layer_of(name)
        if number is not None:
            sums[pattern.split("{i}")[0], number] += torch.Size(shape).numel()
    return dict(sums)


def layer_of(name: str) -> tuple[int | None, str]:
    """The layer a parameter belongs to (None outside the layers), and its name with {i} instead."""
    match = _LAYER.search(name)
    if match is None:
        return None, name
    start, end = match.span(1)
    return int(match[1]), f"{name[:start]}{{i}}{_COPY.sub('.{j}', name[end:])}"
