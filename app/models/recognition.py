"""Which family a config belongs to, which part of it is read, and which of the family's flags it sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from app.models.families import FAMILIES, ONLY, PART_FAMILIES, REFUSED, TEXT_PARTS, Family, Flag
from app.models.size_specs import ConfigError, flag, shown

MAX_NESTING = 3
# Those named in a refusal, of the many that are known.
_FAMOUS = ("llama", "mistral", "qwen3", "gemma3_text", "phi3", "deepseek_v3", "gpt2", "bert", "t5", "vit")


def text_part(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The config itself, or the language model's part of a multimodal one, with a note that says so."""
    notes: tuple[str, ...] = ()
    for _ in range(MAX_NESTING):
        key = next((key for key in TEXT_PARTS if isinstance(config.get(key), dict)), None)
        if key is None:
            return config, notes
        outer, part = config.get("model_type"), dict(config[key])
        if "model_type" not in part and isinstance(outer, str) and outer in PART_FAMILIES:
            part["model_type"] = PART_FAMILIES[outer]
        if "tie_word_embeddings" in config:
            part.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
        notes = (*notes, f'This file describes a multimodal model; what is read is its text part, "{key}".')
        config = part
    raise ConfigError("This config.json nests one text part in another too often to be read.")


def family_of(config: Mapping[str, Any]) -> tuple[str, Family]:
    """The model_type and its row; raises ConfigError, naming the family, where there is none."""
    model_type = config.get("model_type")
    known = f"{len(FAMILIES)} are known here, among them {', '.join(_FAMOUS)}"
    if not isinstance(model_type, str):
        raise ConfigError(f'This config.json does not state "model_type"; {known}.')
    if model_type in REFUSED:
        kind = REFUSED[model_type]
        raise ConfigError(
            f'Models of type "{model_type}" have {kind}, not attention with N×N scores in every layer, '
            "so there are no such shapes to ask about."
        )
    if model_type not in FAMILIES:
        raise ConfigError(f'Models of type "{model_type[:40]}" are not known here; {known}.')
    return model_type, FAMILIES[model_type]


def check_switches(config: Mapping[str, Any]) -> None:
    """Raises ConfigError where a config adds parts to its model that the family's layout does not have."""
    for name, allowed in ONLY.items():
        value = config.get(name)
        if not any(value is known or (type(value) is type(known) and value == known) for known in allowed):
            raise ConfigError(f'"{name}" adds parts to the model that are not known here; it is {shown(value)}.')


def flags_of(config: Mapping[str, Any], family: Family) -> set[str]:
    """The flags of a row that hold for this config."""
    found = set[str]()
    for names, rule in family.flags.items():
        if _holds(rule, config, found):
            found.update(names.split())
    return found


def _holds(rule: Flag, config: Mapping[str, Any], found: set[str]) -> bool:
    default = rule.default in found if isinstance(rule.default, str) else rule.default
    name = next((name for name in rule.fields.split() if name in config), None)
    if name is None:
        return default
    if config[name] is None:
        return default if rule.null is None else rule.null
    return rule.test(config[name], name) if rule.test else flag(config, name, default)


def longest_ending(name: str, endings: Iterable[str]) -> str | None:
    """The part of a class name that says what it is for: "ForCausalLM"; None where no known one is all of it."""
    ending = max((ending for ending in endings if name.endswith(ending)), key=len, default="")
    family = name.removesuffix(ending)
    return ending or None if not _PURPOSE.search(family) else None


# In "T5WithLMHeadModel" or "GPT2DoubleHeadsModel", "Model" is not all that the class is for.
_PURPOSE = re.compile("For[A-Z]|With|Head|Encoder|Decoder")
