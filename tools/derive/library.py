"""The model types of transformers: classes, fields of configs, and tiny models built from chosen fields."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.initialization import no_init_weights
from transformers.models.auto import modeling_auto

from tools.derive.words import HINTS, NO_HINT

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
torch.set_num_threads(1)

META = torch.device("meta")
# The tasks whose classes have a table, the one that a file without `architectures` means first.
TASKS = (
    "SEQ_TO_SEQ_CAUSAL_LM",
    "SPEECH_SEQ_2_SEQ",
    "IMAGE_TEXT_TO_TEXT",
    "MASKED_LM",
    "CAUSAL_LM",
)
_BASE_FIELDS = {field.name for field in dataclasses.fields(transformers.PretrainedConfig)}
# A field that code asks for although no class declares it, as in getattr(config, "head_dim", None).
_ASKED_FOR = re.compile(
    r"""(?:getattr\((?:self\.)?(?:text_)?config, |kwargs\.(?:pop|get)\()["'](\w+)["'](?:, (-?[\w.]+|["'][\w-]*["']))?"""
)
_BIAS_OF_SCORES = re.compile(r"relative_attention_bias")
_DEPTH = re.compile(r"(num_(hidden_)?layers|depth|n_layers?|encoder_layers|num_blocks)$")
Values = dict[str, Any]


def model_types() -> dict[str, list[str]]:
    """Every model type with a class that reads or writes text, and the names of these classes, the usual one first."""
    types = dict[str, list[str]]()
    for task in TASKS:
        mapping = getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES")
        for model_type, names in mapping.items():
            name = names if isinstance(names, str) else names[0]
            if name not in types.setdefault(model_type, []):
                types[model_type].append(name)
    return types


def text_part(config_class: type) -> str | None:
    """The field that holds the text part of a multimodal config."""
    parts = ("text_config", "llm_config", "language_config", "thinker_config")
    return next((part for part in parts if part in (getattr(config_class, "sub_configs", None) or {})), None)


def read(config: Any, name: str) -> Any:
    """A field of a config, or None if it has none (or one per layer)."""
    try:
        return getattr(config, name, None)
    except Exception:
        return None


class ModelClass:
    """One model class of one type: the fields of its config that describe text, and models built from them."""

    def __init__(self, model_type: str, class_name: str) -> None:
        self.model_type, self.name = model_type, class_name
        self.config_class = CONFIG_MAPPING[model_type]
        self.model_class = getattr(transformers, class_name)
        own = self.model_class.config_class
        self.part = text_part(self.config_class)
        # The class of the text part is in the list of the whole type; a whole type may have another's class.
        self.is_other = self.part is not None and own not in (None, self.config_class) and not text_part(own)
        self.hint = HINTS.get(model_type, NO_HINT)
        if self.hint.is_unchecked:
            self.config_class.__class_validators__ = []  # type: ignore[attr-defined]
        self.outer = Values()
        text = self.config_class
        self.text_type = model_type
        if self.part:
            default = self.config_class()
            everything = default.to_dict()
            self.outer = {name: value for name, value in everything.items() if name != self.part and name[0] != "_"}
            for name in default.sub_configs or {}:
                if name != self.part and isinstance(self.outer.get(name), dict):
                    self.outer[name] = _shrunk(self.outer[name])
            for name, fields in self.hint.outer.items():
                self.outer[name] = {**(self.outer[name] or {}), **fields}
            part = getattr(default, self.part)
            text, self.text_type = type(part), part.model_type
            self.hint = HINTS.get(self.text_type, self.hint)
        self.text_class = text
        self._read_fields()

    @staticmethod
    def has_part(model_type: str) -> bool:
        return text_part(CONFIG_MAPPING[model_type]) is not None

    def _read_fields(self) -> None:
        text = self.text_class
        own = inspect.get_annotations(text)
        self.annotations, self.default = dict[str, str](), Values()
        for field in dataclasses.fields(text):
            if field.name in _BASE_FIELDS and field.name not in own:
                continue
            self.annotations[field.name] = str(field.type)
            if field.default is not dataclasses.MISSING:
                self.default[field.name] = field.default
            else:
                factory = field.default_factory
                self.default[field.name] = factory() if factory is not dataclasses.MISSING else None
        source = "".join(inspect.getsource(sys.modules[cls.__module__]) for cls in (self.model_class, text))
        known = {*self.default, *(text.attribute_map or {}), *_BASE_FIELDS, *dir(text)}
        self.undeclared = set[str]()
        for name, default in sorted(_ASKED_FOR.findall(source)):
            if name not in known and name not in self.undeclared:
                self.undeclared.add(name)
                self.default[name] = _literal(default)
                is_known = self.default[name] is not None
                self.annotations[name] = type(self.default[name]).__name__ if is_known else "int | None"
        for name in self.hint.switches:
            self.default[name], self.annotations[name] = None, "bool | None"
        hint = HINTS.get(self.text_type, HINTS.get(self.model_type, NO_HINT))
        for name in hint.leave:  # fields that the class hides behind a property
            self.default.setdefault(name, None)
            self.annotations.setdefault(name, "str | None")
        self.source = source
        if self.part:
            self.default.setdefault("tie_word_embeddings", False)
            self.annotations.setdefault("tie_word_embeddings", "bool")
            # What the whole config fills in for the fields that its part leaves out.
            by_part, alone = read(self.config({}), self.part), text()
            for name, value in self.default.items():
                if read(by_part, name) != read(alone, name) and not isinstance(value, list | dict):
                    self.default[name] = read(by_part, name)

    def config(self, values: Values, outer_tie: Any = "as part", part_tie: Any = "as stated") -> Any:
        """The config with these fields of its text part; the two ties state tie_word_embeddings apart, None: absent."""
        for name in self.hint.nested:
            if values.get(name) and isinstance(values[name][0], str):
                values = {**values, name: [[[word], 1] for word in values[name]]}
        if not self.part:
            return self.config_class(**values)
        inner, outer = {**values, "model_type": self.text_type}, copy.deepcopy(self.outer)
        if self.hint.joined and self.hint.joined[2] in values:
            part, name, own = self.hint.joined
            outer[part][name] = values[own]
        tie = "tie_word_embeddings"
        if outer_tie == "as part":
            outer |= {tie: values[tie]} if tie in values else {}
        else:
            outer.pop(tie, None)
            inner.pop(tie, None)
            outer |= {} if outer_tie is None else {tie: outer_tie}
            inner |= {} if part_tie is None else {tie: part_tie}
        return self.config_class(**{**outer, self.part: inner})

    def build(self, values: Values, device: torch.device = META, attention: str = "eager", **ties: Any) -> Any:
        """A model with these fields; on the meta device it has shapes but no numbers."""
        return self.build_config(self.config(values, **ties), device, attention)

    def build_config(self, config: Any, device: torch.device = META, attention: str = "eager") -> Any:
        with device, _unfilled() if device == META else no_init_weights():  # the second would also untie
            try:
                model = self.model_class._from_config(copy.deepcopy(config), attn_implementation=attention)
            except (ValueError, AttributeError) as error:
                if "attn" not in str(error) and "attention" not in str(error):
                    raise
                model = self.model_class._from_config(config)
        return model.eval()

    def build_to_run(self, values: Values, attention: str) -> Any:
        """A model on the CPU with random numbers in its text part only: what isn't filled needs no memory."""
        model = self.build(values, torch.device("cpu"), attention)
        prefixes = self._text_modules(model) if self.part else [""]
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if any(name.startswith(prefix) for prefix in prefixes):
                    if _BIAS_OF_SCORES.search(name):
                        parameter.zero_()  # scores show their scale
                    elif parameter.dim() > 1:
                        parameter.uniform_(-0.2, 0.2)  # filled faster than with normal numbers
                    else:
                        parameter.uniform_(0.5, 1)
        return model

    def text_config(self, model: Any) -> Any:
        return getattr(model.config, self.part) if self.part else model.config

    def tensors(self, model: Any) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter of the text part and its LM head, by name; shared ones once."""
        prefixes = self._text_modules(model) if self.part else [""]
        # A tied matrix counts as the embedding, wherever the class has it first.
        embedding = model.get_input_embeddings()
        weight = getattr(embedding, "weight", None)
        own_name = next((f"{name}.weight" for name, module in model.named_modules() if module is embedding), "")
        return {
            own_name if parameter is weight else name: tuple(parameter.shape)
            for name, parameter in model.named_parameters()
            if any(name.startswith(prefix) for prefix in prefixes)
        }

    def head(self, model: Any) -> Any:
        """The LM head, which may belong to the text part alone."""
        parts = [model.get_submodule(prefix[:-1]) for prefix in self._text_modules(model)] if self.part else []
        found = [part.get_output_embeddings() for part in (model, *parts) if hasattr(part, "get_output_embeddings")]
        return next((head for head in found if head is not None), None)

    def is_tied(self, model: Any) -> bool:
        """Whether the LM head shares its matrix with another module."""
        head = self.head(model)
        parameters = model.named_parameters(remove_duplicate=False)
        return head is not None and sum(parameter is head.weight for _name, parameter in parameters) > 1

    def _text_modules(self, model: Any) -> list[str]:
        found = [
            name
            for name, module in model.named_modules()
            if name
            and isinstance(module, transformers.PreTrainedModel)
            and getattr(module.config, "model_type", "") == self.text_type
        ]
        outermost = [name for name in found if not any(name.startswith(f"{other}.") for other in found)]
        head = model.get_output_embeddings()
        outermost += [name for name, module in model.named_modules() if module is head]
        return [f"{name}." for name in outermost]


@contextmanager
def _unfilled() -> Iterator[None]:
    """Modules don't fill their tensors: a third of the time, although the meta device has nothing to fill."""
    modules: list[Any] = [torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm]
    methods: list[tuple[Any, str]] = [(module, "reset_parameters") for module in modules]
    methods += [(torch.Tensor, "normal_"), (torch.Tensor, "uniform_")]
    fill = [getattr(owner, name) for owner, name in methods]
    for owner, name in methods:
        setattr(owner, name, lambda tensor, *_args, **_kwargs: tensor)
    try:
        yield
    finally:
        for (owner, name), method in zip(methods, fill, strict=True):
            setattr(owner, name, method)


def _literal(text: str) -> Any:
    """A number, a text, true or false; None for anything else."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None


def _shrunk(config: Values) -> Values:
    """A part that isn't text, with one layer."""
    return {name: 1 if _DEPTH.search(name) and isinstance(value, int) else value for name, value in config.items()}
