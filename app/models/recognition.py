"""A config's family, the part of it that is read, and the family's flags that it sets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.models.config_fields import Config, ConfigError, quoted, read_bool
from app.models.families import FAMILIES, FAMOUS
from app.models.families.family import Family
from app.models.families.multimodal import TEXT_PART_FAMILIES, TEXT_PART_FIELDS
from app.models.families.unsupported import REFUSED, SUPPORTED_VALUES
from app.translation import gettext as _

MAX_NESTING = 3
# Words that belong to the task in a class name: if one remains after the suffix is cut, the class has another task.
# "GPT2DoubleHeadsModel" ends in "Model" but isn't a bare model.
_TASK_WORD = re.compile("For[A-Z]|With|Head|Encoder|Decoder")


def find_text_part(config: Config) -> tuple[Config, tuple[str, ...]]:
    """The part of a multimodal config that describes its language model, with a note that says so."""
    notes: tuple[str, ...] = ()
    for _level in range(MAX_NESTING):
        field = next((field for field in TEXT_PART_FIELDS if isinstance(config.get(field), dict)), None)
        if field is None:
            return config, notes
        outer_type, part = config.get("model_type"), dict(config[field])
        if "model_type" not in part and isinstance(outer_type, str) and outer_type in TEXT_PART_FAMILIES:
            part["model_type"] = TEXT_PART_FAMILIES[outer_type]
        if "tie_word_embeddings" in config:
            part.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
        note = _('This file describes a multimodal model. Only its text part, "{field}", is read.')
        notes = (*notes, note.format(field=field))
        config = part
    raise ConfigError(_("This config.json nests text parts too deeply: paste the innermost one."))


def find_family(config: Config) -> tuple[str, Family]:
    """The config's model_type and that family's row.

    Raises ConfigError if it states none, an unknown one, or one without N×N attention scores.
    """
    model_type = config.get("model_type")
    known = _("{count} types are known, among them {names}.").format(count=len(FAMILIES), names=", ".join(FAMOUS))
    if not isinstance(model_type, str):
        raise ConfigError(_('This config.json has no "model_type": add it.') + " " + known)
    if model_type in REFUSED:
        problem = _('Models of type "{type}" have {layers} instead of attention with N×N scores: choose another model.')
        raise ConfigError(problem.format(type=model_type, layers=_(REFUSED[model_type])))
    if model_type not in FAMILIES:
        raise ConfigError(_('Models of type "{type}" are not supported.').format(type=model_type[:40]) + " " + known)
    return model_type, FAMILIES[model_type]


def check_supported_values(config: Config) -> None:
    """Raise ConfigError if a field of SUPPORTED_VALUES has a value that isn't listed there."""
    for name, supported in SUPPORTED_VALUES.items():
        value = config.get(name)
        if not any(value is known or (type(value) is type(known) and value == known) for known in supported):
            problem = _('"{field}" is {value}, which adds parts to the model that are not supported.')
            raise ConfigError(problem.format(field=name, value=quoted(value)))


def find_flags(config: Config, family: Family) -> set[str]:
    """The flags of the family's row that are set for this config.

    Raises ConfigError for a value that can't be read as yes or no.
    """
    flags = set[str]()
    for names, rule in family.flags.items():
        default = rule.default in flags if isinstance(rule.default, str) else rule.default
        field = next((field for field in rule.fields.split() if field in config), None)
        if field is None:
            holds = default
        elif config[field] is None:
            holds = default if rule.null is None else rule.null
        else:
            holds = rule.test(config[field], field) if rule.test else read_bool(config, field, default)
        if holds:
            flags.update(names.split())
    return flags


def task_suffix(class_name: str, suffixes: Iterable[str]) -> str | None:
    """The task part of a class name: the longest of `suffixes` that it ends in.

    Example: "LlamaForCausalLM" -> "ForCausalLM"; "GPT2DoubleHeadsModel" -> None, though it ends in "Model"
    """
    suffix = max((suffix for suffix in suffixes if class_name.endswith(suffix)), key=len, default="")
    return suffix or None if not _TASK_WORD.search(class_name.removesuffix(suffix)) else None
