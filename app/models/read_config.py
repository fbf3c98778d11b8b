"""A published config.json read into one frozen Architecture, through the row of its family in app/models/families.

>>> read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}').d_h
64
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from app.models.architecture import MAIN_SYMBOLS, Architecture, LayerRun, LayerStack, Rotary
from app.models.config_fields import Config, ConfigError, quoted, read_bool, read_positive_number
from app.models.families import Family, RotaryRule, SoftcapRule
from app.models.layer_patterns import window_per_layer
from app.models.parameter_specs import ParameterSpec, StackSpec, TaskHead, condition_met
from app.models.recognition import check_supported_values, find_family, find_flags, find_text_part, task_suffix
from app.models.score_scale import rope_settings
from app.models.size_specs import SizeReader
from app.translation import gettext as _

Answer = TypeVar("Answer")
MAX_CONFIG_BYTES = 1_000_000
# The flags of an RMSNorm of queries and keys: in each head, over all heads together, or after RoPE and without a gain.
RMS_FLAGS = frozenset({"rms_per_head", "rms_of_all_heads", "norm_after_rope"})


def read_config(text: str | bytes, name: str = "this model") -> Architecture:
    """Read the text of a config.json; raises ConfigError, with one sentence on what to change."""
    return build_architecture(parse_config(text), name)


def parse_config(text: str | bytes) -> object:
    """Parse the text of a config.json, whatever JSON value it holds.

    Raises ConfigError for text longer than MAX_CONFIG_BYTES and for text that is not JSON.
    """
    if len(text) > MAX_CONFIG_BYTES:
        problem = _("A config.json may have at most {most:,} bytes; this one has {count:,}.")
        raise ConfigError(problem.format(most=MAX_CONFIG_BYTES, count=len(text)))
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(_("This is not JSON: paste the whole config.json, from first to last brace.")) from None


def build_architecture(config: object, name: str = "this model") -> Architecture:
    """Build the Architecture that an already parsed config.json describes; of a multimodal one, its text part.

    `name` becomes the Architecture's name. Raises ConfigError for anything that cannot be read, such as a family that
    is not known, a size that is missing, and query heads that cannot share the key/value heads evenly.
    """
    # Flags first: which layers and sizes there are depends on them.
    model = _recognize(config)
    # Layers next: whether the first of them has experts decides what d_ff means.
    layer_kinds = _layer_kinds(model)
    flags = model.flags | _flags_of_sizes(model, layer_kinds[0].kinds[0])
    # Sizes last, with all flags known: the nine main ones, then those that the parameters ask for.
    family, reader = model.family, _size_reader(model, flags)
    stacks = tuple(_layer_stack(stack, flags) for stack in _with_rotary(layer_kinds, model, flags, reader))
    d, H, G, d_h, d_v, d_ff = (reader.required(symbol) for symbol in MAIN_SYMBOLS[:6])
    if H % G:
        problem = _("{H} query heads cannot share {G} key/value heads evenly: check the two counts.")
        raise ConfigError(problem.format(H=H, G=G))
    V, L, C = reader.size("V"), reader.required("L"), reader.size("C")
    base_parameters = _existing(family.layout.outside_layers, flags)
    head_parameters = _existing(model.task_head.parameters, flags)
    extra = _extra_sizes(family, reader, (*base_parameters, *head_parameters), stacks)
    usable_positions = _usable_positions(family, flags, reader)
    first_layer = stacks[0].runs[0]
    return Architecture(
        name=name,
        family=model.model_type,
        d=d,
        H=H,
        G=G,
        d_h=d_h,
        d_v=d_v,
        d_ff=d_ff,
        V=V,
        L=L,
        C=C,
        causal=(family.causal or "decoder" in flags) and "bidirectional" not in flags,
        tied_embeddings="tied" in flags,
        biases="".join(letter for letter in "qkvo" if letter in flags),
        qk_norm_eps=read_positive_number(model.config, "rms_norm_eps", 1e-6) if flags & RMS_FLAGS else None,
        rotary=first_layer.rotary,
        window=first_layer.window,
        chunk=first_layer.chunk,
        initializer_range=read_positive_number(model.config, "initializer_range", 0.02),
        usable_positions=usable_positions,
        fixed_tokens=reader.required(family.fixed_tokens) if family.fixed_tokens else None,
        score_scale=family.scale(model.config, d_h, flags),
        score_softcap=_softcap(model.config, family.softcap),
        position_bias=_first_met(family.position_bias, flags, ""),
        norm=family.norm,
        norm_placement=_first_met(family.norm_placement, flags, "pre"),
        not_modelled=_not_modelled(family, flags),
        size_sources=tuple(reader.sources),
        model_class=model.model_class,
        has_kv_cache=family.kv_cache or "decoder" in flags,
        extra=extra,
        flags=flags,
        task_head=model.task_head,
        gated=condition_met(family.layout.gated, flags),
        base_parameters=base_parameters,
        head_parameters=head_parameters,
        stacks=stacks,
        notes=model.notes,
    )


@dataclass(frozen=True)
class _Recognized:
    """What a config is, before any size is read: its family, the class it names, and the flags its fields set.

    `is_text_part` says that the config stood inside a multimodal one.
    """

    config: Config
    model_type: str
    family: Family
    is_text_part: bool
    notes: tuple[str, ...]
    model_class: str
    task_head: TaskHead
    flags: frozenset[str]


def _recognize(config: object) -> _Recognized:
    """Find a config's text part, its family, the class to count and its flags, with notes on what is read otherwise.

    A list of labels is replaced by their number. Raises ConfigError for what is no JSON object, for a config of no
    known family, and for fields that no layout has tensors for.
    """
    if not isinstance(config, dict):
        raise ConfigError(_("A config.json holds one JSON object with the model’s sizes: paste all of it."))
    part, notes = find_text_part(config)
    is_text_part = bool(notes)
    model_type, family = find_family(part)
    check_supported_values(part)
    if isinstance(part.get("id2label"), dict):  # a classifier's file lists its labels instead of counting them
        part = {**part, "id2label": len(part["id2label"]) or None}
    stated = None if is_text_part else _stated_class(part)
    model_class, task_head = _counted_class(stated, family)
    if stated and model_class != stated:
        note = _("{stated} is not counted here: {counted} is.")
        notes = (*notes, note.format(stated=quoted(stated), counted=model_class))
    flags = frozenset(find_flags(part, family)) | task_head.flags | _tied_flag(part, family)
    return _Recognized(part, model_type, family, is_text_part, notes, model_class, task_head, flags)


def _stated_class(config: Config) -> str | None:
    """The first class that "architectures" names; None where it names none."""
    stated = config.get("architectures")
    return stated[0] if isinstance(stated, list) and stated and isinstance(stated[0], str) else None


def _counted_class(stated: str | None, family: Family) -> tuple[str, TaskHead]:
    """The class whose parameters are counted, and its task head in the family's layout.

    It is the class that the config states if its name ends in a task that the layout has, else, also for None, the
    family's usual class.
    """
    task_heads = family.layout.task_heads
    suffix = task_suffix(stated, task_heads) if stated else None
    if stated and suffix:
        return stated, task_heads[suffix]
    return family.model_class, task_heads[task_suffix(family.model_class, task_heads) or next(iter(task_heads))]


def _tied_flag(config: Config, family: Family) -> frozenset[str]:
    """{"tied"} if the LM head is the token embedding again, by the config or by the family's rule; else no flag."""
    tied = family.tied != "never" and read_bool(config, "tie_word_embeddings", family.tied)
    return frozenset({"tied"} if tied else ())


def _size_reader(model: _Recognized, flags: frozenset[str]) -> SizeReader:
    """A reader of the model's sizes under these flags; only a text part may fall back on its family's defaults."""
    defaults = model.family.text_part_defaults if model.is_text_part else {}
    return SizeReader(model.config, model.family.sizes, flags, defaults, model.model_type)


@dataclass(frozen=True)
class _LayerKind:
    """What may tell one layer from its neighbours: its own flags ("first", "moe", "cross"), its window, its RoPE."""

    flags: frozenset[str]
    window: int | None
    chunk: int | None = None
    rotary: Rotary | None = None


@dataclass(frozen=True)
class _LayerKinds:
    """A stack of the layout and the kind of each of its layers, first to last."""

    spec: StackSpec
    kinds: tuple[_LayerKind, ...]


def _layer_kinds(model: _Recognized) -> tuple[_LayerKinds, ...]:
    """The kind of every layer, stack by stack: whether it is the first, has experts or cross attention, its window.

    The decoder's stack is left out where the task head uses the encoder alone. A stack without L layers has no windows,
    for the config states those of L layers.
    """
    family, config = model.family, model.config
    # Read for their counts alone: the reader that the Architecture's sizes come from needs flags that follow from this.
    reader = _size_reader(model, model.flags)
    is_bidirectional = not family.causal or "bidirectional" in model.flags
    windows = window_per_layer(family.windows, config, reader.required("L"), centred=is_bidirectional)
    is_chunked = family.windows is not None and family.windows.chunked
    stacks = []
    for spec in family.layout.stacks:
        if spec.decoder and model.task_head.without_decoder:
            continue
        count = reader.required(spec.count)
        moe = family.expert_layers(config, count) if family.expert_layers else [False] * count
        cross = family.cross_layers(config, count) if family.cross_layers else [False] * count
        stack_windows = windows if len(windows) == count else (None,) * count
        kinds = (
            _LayerKind(
                _layer_flags(i == 0, is_moe, is_cross),
                None if is_chunked else window,
                window if is_chunked else None,
            )
            for i, (is_moe, is_cross, window) in enumerate(zip(moe, cross, stack_windows, strict=True))
        )
        stacks.append(_LayerKinds(spec, tuple(kinds)))
    return tuple(stacks)


def _layer_flags(first: bool, moe: bool, cross: bool) -> frozenset[str]:
    """The flags of one layer: of "first", "moe" and "cross" those that are true."""
    return frozenset(name for name, yes in (("first", first), ("moe", moe), ("cross", cross)) if yes)


def _flags_of_sizes(model: _Recognized, first_layer: _LayerKind) -> frozenset[str]:
    """The flags that follow from layers and sizes instead of a field: "first_moe" and "narrow_embedding", if they hold.

    The first says that the first layer has experts, the second that the token embedding is not as wide as the model.
    """
    reader = _size_reader(model, model.flags)
    narrow = "d_emb" in model.family.sizes and reader.required("d_emb") != reader.required("d")
    flags = {"first_moe": "moe" in first_layer.flags, "narrow_embedding": narrow}
    return frozenset(name for name, yes in flags.items() if yes)


def _existing(parameters: Iterable[ParameterSpec], flags: frozenset[str]) -> tuple[ParameterSpec, ...]:
    """The tensors that exist under these flags, in their order."""
    return tuple(parameter for parameter in parameters if condition_met(parameter.when, flags))


def _layer_stack(layers: _LayerKinds, flags: frozenset[str]) -> LayerStack:
    """Gather neighbouring layers of one kind into runs, each with the parameters that exist in its layers.

    Which exist is decided by the model's `flags` and the layer's own together.
    """
    parameters = {
        own_flags: _existing(layers.spec.parameters, flags | own_flags)
        for own_flags in {kind.flags for kind in layers.kinds}
    }
    runs = (
        LayerRun(len(list(group)), kind.flags, kind.window, parameters[kind.flags], kind.chunk, kind.rotary)
        for kind, group in groupby(layers.kinds)
    )
    return LayerStack(layers.spec, tuple(runs))


def _extra_sizes(
    family: Family, reader: SizeReader, outside: Sequence[ParameterSpec], stacks: Sequence[LayerStack]
) -> dict[str, int]:
    """The sizes beyond the main nine that this model's tensors are written with, in the order of its family's row.

    Experts add k, a decoder beside an encoder H_dec, d_h_dec, L_dec and P_dec. Raises ConfigError if one of them is
    missing, and if k > E.
    """
    by_kind = [{run.flags: run.parameters for run in stack.runs} for stack in stacks]
    parameters = [*outside, *(p for kinds in by_kind for layer in kinds.values() for p in layer)]
    symbols = {symbol for parameter in parameters for symbol in parameter.symbols}
    if any(parameter.routed for parameter in parameters):
        symbols.add("k")
    if any(stack.spec.decoder for stack in stacks):
        symbols |= {"H_dec", "d_h_dec", "L_dec", "P_dec"}
    wanted = (symbol for symbol in family.sizes if symbol in symbols and symbol not in MAIN_SYMBOLS)
    extra = {symbol: reader.required(symbol) for symbol in wanted}
    if extra.get("k", 1) > extra.get("E", 1):
        problem = _("A token cannot be sent to {k} of {E} experts: check the two counts.")
        raise ConfigError(problem.format(k=extra["k"], E=extra["E"]))
    return extra


def _usable_positions(family: Family, flags: frozenset[str], reader: SizeReader) -> int | None:
    """How many tokens the position table has room for: its rows without the unused ones; None without a table.

    Raises ConfigError if that leaves no row.
    """
    if family.position_rows is None or not condition_met(family.position_table_when, flags):
        return None
    rows = reader.required(family.position_rows)
    if rows <= family.unused_positions:
        problem = _("A table of {count} positions leaves no room for a token: check its length.")
        raise ConfigError(problem.format(count=rows))
    return rows - family.unused_positions


def _with_rotary(
    stacks: Sequence[_LayerKinds], model: _Recognized, flags: frozenset[str], reader: SizeReader
) -> Sequence[_LayerKinds]:
    """The same stacks with the rotary positions of each layer.

    Layers with a window may have a base of their own, and some layers none: see RotaryRule.
    """
    rule = model.family.rotary
    if rule is None or not condition_met(rule.when, flags):
        return stacks
    rotary, local_rotary = _rotary(model.config, rule, flags, reader, local=False), None
    if rule.default_local_theta is not None:
        local_rotary = _rotary(model.config, rule, flags, reader, local=True)
    return [replace(stack, kinds=_rotating(stack.kinds, rule, model.config, rotary, local_rotary)) for stack in stacks]


def _rotating(
    kinds: Sequence[_LayerKind], rule: RotaryRule, config: Config, rotary: Rotary, local_rotary: Rotary | None
) -> tuple[_LayerKind, ...]:
    """The layers of one stack with their rotary positions: `local_rotary` for those with a window, if there is one."""
    rotates = rule.layers(config, len(kinds)) if rule.layers else [True] * len(kinds)
    if rule.windowed_only and any(kind.window for kind in kinds):
        rotates = [kind.window is not None for kind in kinds]
    return tuple(
        replace(kind, rotary=local_rotary or rotary if kind.window else rotary) if is_rotating else kind
        for kind, is_rotating in zip(kinds, rotates, strict=True)
    )


def _rotary(config: Config, rule: RotaryRule, flags: frozenset[str], reader: SizeReader, *, local: bool) -> Rotary:
    """The rotary positions of the layers with a window if `local`, else those of the others.

    Base and scaling are the config's. The rotated numbers of a head are the config's share of the rule's width, rounded
    down, from 1 to all of it. What the config lacks has the rule's defaults. Raises ConfigError for a scaling that is
    no object, and for a base or share that is no number above 0.
    """
    # transformers 5 writes "rope_parameters", with the base inside, and in a file with two kinds of layers one object
    # for each kind; older files keep base and scaling apart.
    settings = rope_settings(config)
    own_settings = settings.get("sliding_attention" if local else "full_attention")
    if isinstance(own_settings, dict):
        settings = own_settings
    elif local and not rule.scaled_locally:
        settings = {}
    field, default = (rule.local_theta, rule.default_local_theta) if local else (rule.theta, rule.default_theta)
    theta = read_positive_number(settings, "rope_theta", read_positive_number(config, field, default))
    share = read_positive_number(settings, "partial_rotary_factor", config.get(rule.share) or rule.default_share)
    width = max(1, int(reader.required(rule.width) * min(share, 1.0)))
    return Rotary(theta, width, settings, condition_met(rule.adjacent, flags))


def _softcap(config: Config, rule: SoftcapRule | None) -> float | None:
    """The c of c·tanh(scores/c), from "attn_logit_softcapping"; None without a rule, or where that is null."""
    if rule is None or config.get("attn_logit_softcapping", rule.default) is None:
        return None
    return read_positive_number(config, "attn_logit_softcapping", rule.default)


def _first_met(answers: Mapping[str, Answer], flags: frozenset[str], default: Answer) -> Answer:
    """The answer to the first condition that the flags meet; `default` if they meet none."""
    return next((answer for condition, answer in answers.items() if condition_met(condition, flags)), default)


def _not_modelled(family: Family, flags: frozenset[str]) -> tuple[str, ...]:
    """The parts of this model's attention that no field of its Architecture describes, by its family's conditions."""
    parts = (part for condition, part in family.not_modelled.items() if condition_met(condition, flags))
    layer_norm = (_("LayerNorm on queries and keys"),)
    return (*parts, *(layer_norm if "qk_norm" in flags and not flags & RMS_FLAGS else ()))
