"""What one forward pass shows of attention: the shapes of queries, keys and values, the scale, and the keys seen."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from tools.derive.library import ModelClass, Values

TOKENS = 13
UNSEEN = -1  # key/value heads that are copied before the product
_LAYER = re.compile(r"\.(\d+)\.")
HIDDEN = -5e3  # a score below it is that of a key that isn't seen
_PRODUCTS = ("matmul", "__matmul__", "bmm", "baddbmm", "einsum", "softmax")


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


class _Recorder:
    """The attention function that transformers calls in a probe: takes notes, and computes as eager attention does."""

    def __init__(self) -> None:
        self.calls = list[Call]()
        self.places = _Places()

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
        if abs(scale - 1) < 1e-6:  # queries may have been scaled before
            scale = self.places.factor(query, query.shape[-1]) or scale
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
        name, layer = place(self.places.names.get(id(module), ""))
        self.calls.append(
            Call(
                name,
                layer,
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


class _Places:
    """Where a forward pass is: the names of all modules, those being run, and what linear layers returned last."""

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        self.names = dict[int, str]()
        self.running = list[str]()
        self.outputs = deque[torch.Tensor](maxlen=8)
        for name, module in model.named_modules() if model else ():
            self.names[id(module)] = name
            module.register_forward_pre_hook(lambda module, _inputs: self.running.append(self.names[id(module)]))
            module.register_forward_hook(self._leave, always_call=True)

    def _leave(self, module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        self.running.pop()
        if isinstance(module, torch.nn.Linear) and isinstance(output, torch.Tensor):
            self.outputs.append(output)

    def attention(self) -> str:
        """The innermost module that is run, and isn't an activation."""
        return next((name for name in reversed(self.running) if "softmax" not in name and "dropout" not in name), "")

    def factor(self, tensor: torch.Tensor, width: int) -> float | None:
        """What the output of a linear layer was multiplied by, 1 or 1/√width: rotations change no length."""
        length, outputs = float(tensor.double().norm()), [x for x in self.outputs if x.numel() == tensor.numel()]
        ratios = [length / size for x in outputs if (size := float(x.double().norm()))]
        return next((f for f in (width**-0.5, 1.0) if any(abs(ratio / f - 1) < 1e-3 for ratio in ratios)), None)


RECORDER = _Recorder()
AttentionInterface.register("probe", RECORDER)
AttentionMaskInterface.register("probe", eager_mask)


def place(name: str) -> tuple[str, int | None]:
    """'h.3.attn.2.x' -> ('h.{i}.attn.{j}.x', 3)"""
    number = _LAYER.search(name)
    return numbered(name), int(number[1]) if number else None


def numbered(name: str) -> str:
    """'h.3.attn.2.x' -> 'h.{i}.attn.{j}.x'"""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "{j}", _LAYER.sub(".{i}.", name, count=1))


class _Products(TorchFunctionMode):
    """The products around every softmax in a model's forward pass, for attention that can't be replaced."""

    def __init__(self, places: _Places) -> None:
        super().__init__()
        self.places = places
        self.products = list[tuple[list[torch.Tensor], torch.Tensor]]()
        self.calls = list[Call]()
        self.open: tuple[str, torch.Tensor, list[torch.Tensor], float | None] | None = None

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, name = function(*args, **(kwargs or {})), getattr(function, "__name__", "")
        if name in _PRODUCTS:
            inputs = [x for x in [*args, *(kwargs or {}).values()] if isinstance(x, torch.Tensor)][-2:]
            inputs = _as_matrices(args[0], inputs) if name == "einsum" else inputs
            if name == "softmax":
                self._softmax(inputs[0])
            elif len(inputs) == 2:
                self._close(inputs)
                self.products.append((inputs, result))
        return result

    def _softmax(self, scores: torch.Tensor) -> None:
        """The heads around a softmax over the tokens: the product before it, and later the one after it."""
        before = next((ins for ins, out in reversed(self.products) if out.shape[-2:] == (TOKENS, TOKENS)), None)
        if scores.dim() >= 3 and scores.shape[-1] in (TOKENS, TOKENS + 1) and before:
            self.open = (self.places.attention(), scores, before, _scale(before[0], before[1], scores, self.places))

    def _close(self, inputs: list[torch.Tensor]) -> None:
        if self.open is None or inputs[0].shape[-1] not in (TOKENS, TOKENS + 1):
            return
        name, scores, (queries, _keys), scale = self.open
        self.open = None
        heads, width, value_width = scores.shape[1 if scores.dim() == 4 else 0], queries.shape[-1], inputs[1].shape[-1]
        # What is very low is hidden; a bias by position is lower than nothing by much less.
        seen = scores.reshape(-1, *scores.shape[-2:])[0][-TOKENS:, :TOKENS] > HIDDEN
        self.calls.append(
            Call(
                *place(name),
                (1, heads, TOKENS, width),
                (1, UNSEEN, TOKENS, width),
                (1, heads, TOKENS, value_width),
                scale=scale,
                seen=tuple(seen.sum(-1).tolist()),
                sees_later=bool(seen.triu(1).any()),
            )
        )


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


def _scale(queries: torch.Tensor, keys: torch.Tensor, scores: torch.Tensor, places: _Places) -> float | None:
    """What products were multiplied by.

    In the last row of one head nothing is hidden, and a bias that grows evenly (ALiBi) has no second differences.
    """
    products = queries @ keys
    row, scaled = (x.reshape(-1, *x.shape[-2:])[0, -1, :TOKENS].double() for x in (products, scores))
    row, scaled = (x[scaled > HIDDEN].diff(n=2) for x in (row, scaled))
    scale = float(row @ scaled / (row @ row))
    if float((scaled - scale * row).norm()) > 1e-2 * float(scaled.norm()):
        return None
    if abs(scale - 1) > 1e-2:
        return float(f"{scale:.3g}")
    # Queries or keys may have been scaled before; keys that were copied can't be compared.
    width, copied = queries.shape[-1], all(out.numel() != keys.numel() for out in places.outputs)
    of_queries, of_keys = places.factor(queries, width), 1.0 if copied else places.factor(keys, width)
    return of_queries * of_keys if of_queries and of_keys else None


def forward_pass(model_class: ModelClass, values: Values) -> list[Call]:
    """What attention was given in one forward pass on the CPU with random weights."""
    torch.manual_seed(0)
    try:
        model = model_class.build_to_run(values, "probe")
    except KeyError:  # a class with a list of implementations of its own
        model = model_class.build_to_run(values, "eager")
    RECORDER.places, RECORDER.calls = _Places(model), []
    prepare(model)
    ids = torch.randint(3, 90, (1, TOKENS))
    run(model, ids)
    if RECORDER.calls:
        return list(RECORDER.calls)
    with _Products(RECORDER.places) as products:
        run(model, ids)
    return list(products.calls)


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
