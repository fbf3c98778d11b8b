"""What one forward pass shows of attention: the shapes of queries, keys and values, the scale, and the keys seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from tools.derive.library import ModelClass, Values

TOKENS = 13
HIDDEN = -1e4  # what is added to scores of keys that a token doesn't see is lower
UNSEEN = -1  # key/value heads that are copied before the product
_LAYER = re.compile(r"\.(\d+)\.")
_PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum", "softmax", "linear")


@dataclass
class Call:
    """One call of attention. `seen` has the number of keys that each query sees."""

    module: str  # "model.layers.{i}.self_attn", further numbers as {j}
    layer: int | None
    queries: tuple[int, ...]  # batch, heads, tokens, width
    keys: tuple[int, ...]
    values: tuple[int, ...]
    scale: float | None = None
    softcap: float | None = None
    sinks: bool = False
    seen: tuple[int, ...] = ()
    sees_later: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Heads, key/value heads, width of queries and keys, width of values."""
        return self.queries[1], self.keys[1], self.queries[3], self.values[3]

    @property
    def is_chunked(self) -> bool:
        """Whether tokens see the keys of their chunk, so that some see fewer than the token before."""
        return not self.sees_later and any(x > y for x, y in zip(self.seen, self.seen[1:], strict=False))

    @property
    def is_self_attention(self) -> bool:
        return self.queries[2] == self.keys[2] and not re.search("cross|encoder_attn|EncDec", self.module)


@dataclass
class Pass:
    """What a forward pass showed. `causal` is None where the calls have masks, or no logits can tell."""

    calls: list[Call] = field(default_factory=list)
    causal: bool | None = None


class _Recorder:
    """The attention function that transformers calls in a probe: takes notes, and computes as eager attention does."""

    def __init__(self) -> None:
        self.calls = list[Call]()
        self.names = dict[int, str]()

    def __call__(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        scaling: float | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, None]:
        queries, keys, values = (tuple(x.shape) for x in (query, key, value))
        scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        scores = query @ key.transpose(-1, -2) * scale
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
        if attention_mask is not None:
            mask = attention_mask[..., : scores.shape[-1]]
            # A bias by position is part of the mask: only what is very low is hidden.
            seen = (mask if mask.dtype == torch.bool else mask > HIDDEN)[0, 0].expand(scores.shape[-2:])
            scores = scores.masked_fill(~mask, -1e9) if mask.dtype == torch.bool else scores + mask
        elif kwargs.get("is_causal", getattr(module, "is_causal", False)) and queries[2] == keys[2] > 1:
            seen = seen.tril()
            scores = scores.masked_fill(~seen, -1e9)
        name = self.names.get(id(module), "")
        number = _LAYER.search(name)
        self.calls.append(
            Call(
                numbered(name),
                int(number[1]) if number else None,
                queries,
                keys,
                values,
                scale=scale,
                softcap=kwargs.get("softcap"),
                sinks=kwargs.get("s_aux") is not None,
                seen=tuple(seen.sum(-1).tolist()),
                sees_later=bool(seen.triu(1).any()),
            )
        )
        return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None


RECORDER = _Recorder()
AttentionInterface.register("probe", RECORDER)
AttentionMaskInterface.register("probe", eager_mask)


def numbered(name: str) -> str:
    """'h.3.attn.2.x' -> 'h.{i}.attn.{j}.x'"""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "{j}", _LAYER.sub(".{i}.", name, count=1))


class _Products(TorchFunctionMode):
    """The products around every softmax in a model's forward pass, for attention that can't be replaced."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.seen = list[_Product]()
        self._modules = list[str]()  # those that are being computed, the innermost last
        for name, module in model.named_modules():
            if not isinstance(module, torch.nn.Softmax):
                module.register_forward_pre_hook(lambda *_arguments, name=name: self._modules.append(name))
                module.register_forward_hook(lambda *_arguments: self._modules.pop() and None, always_call=True)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, name = function(*args, **(kwargs or {})), getattr(function, "__name__", "")
        if name in _PRODUCTS:
            tensors = [x for x in [*args, *(kwargs or {}).values()] if isinstance(x, torch.Tensor)]
            if name == "einsum":
                tensors = _as_matrices(args[0], tensors)
            self.seen.append(_Product(name, tensors[-2:], result, self._modules[-1] if self._modules else ""))
        return result

    def calls(self) -> Iterator[Call]:
        """The heads around each softmax over the tokens."""
        for place, softmax in enumerate(self.seen):
            scores = softmax.inputs[0]
            if softmax.function != "softmax" or scores.dim() < 3 or scores.shape[-1] not in (TOKENS, TOKENS + 1):
                continue
            outputs = [each.output for each in self.seen[:place] if each.function == "linear"][-8:]
            earlier = [each for each in self.seen[:place] if each.is_of_two]
            later = [each.inputs for each in self.seen[place + 1 :] if each.is_of_two]
            before = next((x.inputs for x in reversed(earlier) if x.output.shape[-2:] == (TOKENS, TOKENS)), None)
            after = next((inputs for inputs in later if inputs[0].shape[-1] in (TOKENS, TOKENS + 1)), None)
            if before and after:
                heads = scores.shape[1] if scores.dim() == 4 else scores.shape[0]
                width, value_width = before[0].shape[-1], after[1].shape[-1]
                seen = scores.reshape(-1, *scores.shape[-2:])[0, :, :TOKENS] > HIDDEN
                number = _LAYER.search(f"{softmax.module}.")
                yield Call(
                    numbered(softmax.module),
                    int(number[1]) if number else None,
                    (1, heads, TOKENS, width),
                    (1, UNSEEN, TOKENS, width),
                    (1, heads, TOKENS, value_width),
                    scale=_scale(before[0], before[1], scores, outputs),
                    seen=tuple(seen.sum(-1).tolist()),
                    sees_later=bool(seen.triu(1).any()),
                )


@dataclass
class _Product:
    """A function that was called with tensors, and the module that called it."""

    function: str
    inputs: list[torch.Tensor]
    output: torch.Tensor
    module: str

    @property
    def is_of_two(self) -> bool:
        return self.function not in ("softmax", "linear") and len(self.inputs) == 2


def _as_matrices(equation: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The two tensors of an einsum with their axes in the order of a matrix product, or none if it isn't one."""
    if len(tensors) != 2:
        return []
    (first, second), out = equation.replace(" ", "").split("->")[0].split(","), equation.split("->")[1].strip()
    batch, summed = ([x for x in first if x in second and (x in out) == kept] for kept in (True, False))
    rows, columns = ([x for x in one if x not in other] for one, other in ((first, second), (second, first)))
    if not len(rows) == len(columns) == len(summed) == 1:
        return []
    return [
        tensors[0].permute([first.index(axis) for axis in (*batch, *rows, *summed)]),
        tensors[1].permute([second.index(axis) for axis in (*batch, *summed, *columns)]),
    ]


def _scale(
    queries: torch.Tensor, keys: torch.Tensor, scores: torch.Tensor, outputs: list[torch.Tensor]
) -> float | None:
    """What products were multiplied by; `outputs` are those of linear layers before.

    In the last row of one head nothing is hidden, and a bias that grows evenly (ALiBi) has no second differences.
    """
    products = queries @ keys
    row, scaled = (x.reshape(-1, *x.shape[-2:])[0, -1, :TOKENS].double().diff(n=2) for x in (products, scores))
    scale = float(row @ scaled / (row @ row))
    if float((scaled - scale * row).norm()) > 1e-2 * float(scaled.norm()):
        return None
    if abs(scale - 1) > 1e-2:
        return float(f"{scale:.3g}")
    # Queries may have been scaled before: rotating them changes no length.
    length, usual = float(queries.double().norm()), queries.shape[-1] ** -0.5
    same_size = [out.double().norm() for out in outputs if out.numel() == queries.numel()]
    return usual if any(abs(length / float(norm) / usual - 1) < 1e-3 for norm in same_size) else None


def forward_pass(model_class: ModelClass, values: Values) -> Pass:
    """One forward pass on the CPU with random weights, and what attention was given."""
    torch.manual_seed(0)
    try:
        model = model_class.build_to_run(values, "probe")
    except KeyError:  # a class with a list of implementations of its own
        model = model_class.build_to_run(values, "eager")
    RECORDER.names = {id(module): name for name, module in model.named_modules()}
    RECORDER.calls = []
    prepare(model)
    ids = torch.randint(3, 90, (1, TOKENS))
    run(model, ids)
    if RECORDER.calls:
        return Pass(list(RECORDER.calls))
    with _Products(model) as products:
        out = run(model, ids)
    found = Pass(list(products.calls()))
    logits = getattr(out, "logits", None)
    if logits is not None and logits.shape[1] == TOKENS and not model.config.is_encoder_decoder:
        other = ids.clone()
        other[0, -1] = (ids[0, -1] + 7) % 90 + 3
        found.causal = bool(torch.allclose(logits[0, :-1], run(model, other).logits[0, :-1], atol=1e-4))
    return found


def prepare(model: Any) -> None:
    """Experts as plain loops: the faster ways need sizes that probes don't have."""
    for config in {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values():
        if hasattr(config, "_experts_implementation"):
            config._experts_implementation = "eager"


def run(model: Any, ids: torch.Tensor) -> Any:
    """The model's output for these tokens, however its class wants to be called."""
    error: Exception = RuntimeError("not run")
    known = _WAYS.get(type(model))
    ways = _ways(model.config, ids)
    for way in range(len(ways)) if known is None else [known]:
        try:
            with torch.no_grad():
                output = model(**ways[way])
        except Exception as failure:  # classes raise anything
            error = failure if way < 2 else error
        else:
            _WAYS[type(model)] = way
            return output
    # A model of images and text may need an image; its text model alone needs none.
    if model.config.get_text_config() is not model.config and not model.config.is_encoder_decoder:
        return run(model.get_decoder(), ids)
    raise error


def _ways(config: Any, ids: torch.Tensor) -> list[dict[str, Any]]:
    sound = torch.ones(1, getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", TOKENS))
    time = torch.zeros(1, 1, getattr(config, "hidden_size", 1))
    return [
        {"input_ids": ids, "use_cache": False},
        {"input_ids": ids, "use_cache": False, "decoder_input_ids": ids},
        {"input_ids": ids},
        {"input_ids": ids, "decoder_input_ids": ids},
        {"input_features": sound, "use_cache": False, "decoder_input_ids": ids},
        {"input_ids": ids, "use_cache": False, "t_cond": time},
    ]


_WAYS = dict[type, int]()
