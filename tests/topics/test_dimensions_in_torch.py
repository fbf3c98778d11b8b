"""Sheets in three and four dimensions against transformers' own attention: every tensor that torch makes on the way.

A model is built from its published config with all its sizes and one layer, without memory for numbers (torch's meta
device), and each call of torch inside its attention is recorded with the shape that it returned.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from app.sheets.library import Library
from app.topics.problem import Problem, problem_for

TOKENS = 12
# Multi-head, in an encoder and in an encoder-decoder too; then grouped, some with a head width of their own.
MULTI_HEAD = ("llama-7b", "olmo-2-7b", "bert-base", "t5-small")
GROUPED = ("qwen2.5-0.5b", "llama-3.2-1b", "mistral-7b", "qwen3-4b", "gemma-2-2b")
LAYER_COUNTS = ("num_hidden_layers", "num_layers", "num_decoder_layers")
# What a step of a sheet is in the code of transformers: repeat_kv ends in a reshape, merging may be a view.
CALLS = {
    "softmax": "softmax",
    "view": "view",
    "transpose": "transpose",
    "repeat_interleave": "reshape",
    "reshape": "reshape",
}
Call = tuple[str, tuple[int, ...]]


class Recorder(TorchFunctionMode):
    """Notes name and shape of what each call of torch returns, while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.on = False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and note what it returned."""
        result = function(*args, **(kwargs or {}))
        if self.on and isinstance(result, torch.Tensor):
            self.calls.append((function.__name__, tuple(result.shape)))
        return result


def calls_in_attention(config_json: str, batch_size: int) -> list[Call]:
    """Every call inside the attention of a model's first layer, for a batch of TOKENS tokens each."""
    from transformers import AutoConfig, AutoModel

    fields = json.loads(config_json)
    fields |= {name: 1 for name in LAYER_COUNTS if name in fields}
    fields.pop("layer_types", None)
    config: Any = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model: Any = AutoModel.from_config(config, attn_implementation="eager")  # type: ignore[no-untyped-call]
    stack = model.encoder if config.is_encoder_decoder else model
    attention = next(m for m in stack.modules() if re.search(r"(?<!Flex)Attention$", type(m).__name__))
    recorder = Recorder()
    attention.register_forward_pre_hook(lambda *_: setattr(recorder, "on", True))
    attention.register_forward_hook(lambda *_: setattr(recorder, "on", False))
    with torch.no_grad(), recorder:
        stack(input_ids=torch.zeros((batch_size, TOKENS), dtype=torch.long, device="meta"))
    return recorder.calls


def calls_of_sheet(problem: Problem) -> list[Call]:
    """What the sheet's key says of every tensor that is made, as calls of torch."""
    calls, shapes = [], problem.table.shapes(problem.sizes)
    for tensor in problem.table.activations:
        if tensor.made_by:
            product = "linear" if problem.table[tensor.made_by.operands[-1]].parameter else "matmul"
            calls.append((CALLS.get(tensor.made_by.call, product), shapes[tensor.key]))
    return calls


@pytest.mark.parametrize("model", [*MULTI_HEAD, *GROUPED])
def test_a_sheet_has_the_shapes_of_transformers_own_attention(library: Library, model: str) -> None:
    four, three = (
        problem_for(topic, library.models[model].architecture, (), TOKENS)
        for topic in ("four-dimensions", "three-dimensions")
    )
    expected = calls_of_sheet(four)
    assert len(expected) == (17 if model in GROUPED else 15)
    assert not Counter(expected) - Counter(calls_in_attention(library.models[model].config, four.sizes["B"]))
    assert [shape[1:] for _step, shape in expected] == [shape for _step, shape in calls_of_sheet(three)]


def test_a_view_and_a_repeat_can_give_the_right_shape_with_the_wrong_numbers() -> None:
    queries = torch.arange(6.0 * 12).view(6, 12)  # 6 tokens, 3 heads of 4
    by_head = queries.view(6, 3, 4).transpose(0, 1)
    heads_first = queries.view(3, 6, 4)
    assert heads_first.shape == by_head.shape
    assert heads_first[0].equal(queries[:2].view(6, 4))  # the first head holds the whole lines of two tokens
    assert by_head[0].equal(queries[:, :4])
    merged, mixed = by_head.transpose(0, 1).reshape(6, 12), by_head.reshape(6, 12)
    assert merged.equal(queries)
    assert not mixed.equal(queries)
    names = torch.tensor([0, 1])  # two key/value heads for six query heads
    assert names.repeat_interleave(3).tolist() == [0, 0, 0, 1, 1, 1]
    assert names.repeat(3).tolist() == [0, 1, 0, 1, 0, 1]
