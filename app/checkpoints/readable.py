"""Whether a run can reproduce what a config describes: anything not known to be harmless is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from app.checkpoints.checkpoint import CheckpointError
from app.models.architecture import Architecture
from app.models.config_fields import ConfigError, quoted, read_positive_number
from app.models.families.checkpoints import (
    ACTIVATIONS,
    CHECKPOINT_RULES,
    COMMON_FIELDS,
    COMMON_FIXED,
    ROPE_FIELDS,
    ROTARY_SHARE,
    CheckpointRule,
)
from app.models.read_config import build_architecture
from app.translation import gettext as _

_ROPE_SETTINGS = ("rope_scaling", "rope_parameters")


def fields_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without the fields that its family's classes in transformers ignore."""
    model_type = config.get("model_type")
    rule = CHECKPOINT_RULES.get(model_type) if isinstance(model_type, str) else None
    ignored = rule.ignored if rule else frozenset()
    settings = {field: config[field] for field in _ROPE_SETTINGS if isinstance(config.get(field), dict)}
    if any(_rope_type(each) != "default" for each in settings.values()):
        ignored -= {ROTARY_SHARE}  # every scaling of RoPE reads it, and these families' modules then fail
    in_use = {field: {key: each[key] for key in each if key not in ignored} for field, each in settings.items()}
    return {field: value for field, value in {**config, **in_use}.items() if field not in ignored}


def readable_architecture(config: Mapping[str, Any], name: str) -> Architecture:
    """A config's architecture, called `name`; raises CheckpointError if it can't be run."""
    model_type = config.get("model_type")
    rule = CHECKPOINT_RULES.get(model_type) if isinstance(model_type, str) else None
    if rule is None:
        problem = _("{checkpoint} is of the type {type}; weights of {known} can be run here.")
        known = ", ".join(CHECKPOINT_RULES)
        raise CheckpointError(problem.format(checkpoint=name, type=quoted(model_type), known=known))
    for field, value in _unknown(config, rule):
        problem = _("The config of {checkpoint} has “{field}”: {value}, which can’t be run here.")
        raise CheckpointError(problem.format(checkpoint=name, field=field[:60], value=quoted(value)))
    try:
        architecture = build_architecture(config, name)
        read_positive_number(config, *rule.norm_eps)
        read_positive_number(config, "final_logit_softcapping", 1)
    except ConfigError as refusal:
        raise CheckpointError(f"{name}: {refusal}") from None
    for part in _not_run(architecture):
        raise CheckpointError(_("{checkpoint} has {part}, which can’t be run here.").format(checkpoint=name, part=part))
    return architecture


def check_tensor_names(architecture: Architecture, names: Collection[str], name_in_file: Callable[[str], str]) -> None:
    """Raise CheckpointError if a file's tensor `names` lack one of the model's tensors."""
    [stack], buffers = architecture.stacks, CHECKPOINT_RULES[architecture.family].buffers
    layers = (run.parameters for run in stack.runs for _layer in range(run.count))
    in_layers = [stack.spec.name.format(i=i) + spec.name for i, specs in enumerate(layers) for spec in specs]
    expected = [name_in_file(name) for name in (*(spec.name for spec in architecture.outside_parameters), *in_layers)]
    missing = next((name for name in expected if name not in names), None)
    if missing is not None:
        problem = _("{checkpoint} has no tensor “{name}”.")
        raise CheckpointError(problem.format(checkpoint=architecture.name, name=missing))
    known = set(expected)
    for name in names:
        if name not in known and not name.endswith(buffers):
            problem = _("{checkpoint} has a tensor “{name}”, which has no part in a run here.")
            raise CheckpointError(problem.format(checkpoint=architecture.name, name=name[:80]))


def _unknown(config: Mapping[str, Any], rule: CheckpointRule) -> Iterator[tuple[str, object]]:
    fixed = {**COMMON_FIXED, **rule.fixed}
    known = {*COMMON_FIELDS.split(), *rule.fields.split()} | {rule.norm_eps[0], rule.activation[0]}
    for field, value in config.items():
        if value is None or (field in fixed and value == fixed[field] and type(value) is type(fixed[field])):
            continue
        if field not in known:
            yield field, value
    activation = config.get(rule.activation[0])
    if activation is not None and (not isinstance(activation, str) or activation not in ACTIVATIONS):
        yield rule.activation[0], activation
    for field in _ROPE_SETTINGS:
        settings = config.get(field)
        if not isinstance(settings, dict):
            continue
        kind = _rope_type(settings)
        if not isinstance(kind, str) or kind not in ROPE_FIELDS:
            yield f"{field}.rope_type", kind
            continue
        for name, value in settings.items():
            if name not in ROPE_FIELDS[kind] | ({ROTARY_SHARE} & known) and value is not None:
                yield f"{field}.{name}", value


def _rope_type(settings: Mapping[str, Any]) -> object:
    return settings.get("rope_type", settings.get("type", "default"))


def _not_run(architecture: Architecture) -> Iterator[str]:
    yield from architecture.not_modelled
    if architecture.rotary and architecture.rotary.width % 2:
        yield _("RoPE over an odd number of dimensions")
    if not architecture.causal:
        yield _("attention in both directions")
    if not architecture.has_lm_head:
        yield architecture.model_class
