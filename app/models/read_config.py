"""Reads a published config.json into one frozen Architecture, through its family's row in app/models/families.

>>> read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}').d_h
64
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import TypeVar

from app.models.architecture import MAIN_SYMBOLS, Architecture, LayerRun, LayerStack, QKNorm, Rotary
from app.models.computation import computation_of
from app.models.config_fields import Config, ConfigError, quoted, read_bool, read_positive_number
from app.models.families.family import Family, RotaryRule
from app.models.layer_patterns import window_per_layer
from app.models.parameter_specs import ParameterSpecs, StackSpec, TaskHead, condition_met
from app.models.read_table import read_table
from app.models.recognition import Part, find_family, find_flags, find_table, find_text_part, task_suffix
from app.models.score_scale import rope_settings
from app.models.size_specs import SizeReader
from app.models.table import FamilyTable
from app.models.whole_file import check_kind_of_file, check_unread_fields, notes_on_fields
from app.models.width_rules import width_rule
from app.translation import gettext as _

Answer = TypeVar("Answer")
MAX_CONFIG_BYTES = 1_000_000
_IS_CAUSAL = frozenset({"is_causal"})
# the beginning of the pointer file that Git LFS puts in place of a large file
LFS_POINTER = "version https://git-lfs.github.com/spec/"


def read_config(text: str | bytes, name: str = "this model") -> Architecture:
    """Read the text of a config.json into an Architecture called `name`; raises ConfigError."""
    return build_architecture(parse_config(text), name)


def parse_config(text: str | bytes) -> object:
    """The JSON value in the text of a config.json, not necessarily an object; its sizes aren't checked."""
    if len(text) > MAX_CONFIG_BYTES:
        problem = _("A config.json may have at most {most:,} bytes; this one has {count:,}.")
        raise ConfigError(problem.format(most=MAX_CONFIG_BYTES, count=len(text)))
    if text.startswith(LFS_POINTER) if isinstance(text, str) else text.startswith(LFS_POINTER.encode()):
        raise ConfigError(_("This is a Git LFS pointer, not the config.json itself: fetch that with git lfs pull."))
    try:
        return json.loads(text.removeprefix("\ufeff") if isinstance(text, str) else text)
    except (ValueError, RecursionError):
        raise ConfigError(_("This is not JSON: paste the whole config.json, from first to last brace.")) from None


def build_architecture(config: object, name: str = "this model") -> Architecture:
    """Build an Architecture called `name` from a parsed config.json, or from a multimodal one's text part."""
    if not isinstance(config, dict):
        raise ConfigError(_("A config.json holds one JSON object with the model’s sizes: paste all of it."))
    check_kind_of_file(config)
    chosen = find_text_part(config)
    class_name = "" if chosen.is_of_multimodal_file else _stated_class(chosen.config)
    table = chosen.table or find_table(chosen.config.get("model_type"), class_name)
    if table:
        return _by_table(table, chosen, class_name, name)
    model = _recognize(chosen)
    part, family = model.config, model.family
    defaults = family.text_part_defaults if model.is_text_part else {}
    reader = SizeReader(part, family.sizes, model.flags, defaults)
    # Layers first: whether the first of them has experts decides what d_ff means.
    stacks = _stacks(model, reader)
    first_layer = stacks[0].runs[0]
    if any(spec.routed for spec in first_layer.parameters):
        reader.flags |= {"first_moe"}
    if "d_emb" in family.sizes and reader.required("d_emb") != reader.required("d"):
        reader.flags |= {"narrow_embedding"}
    flags = reader.flags
    d, H, G, d_h, d_v, d_ff = (reader.required(symbol) for symbol in MAIN_SYMBOLS[:6])
    if H % G:
        problem = _("{H} query heads cannot share {G} key/value heads evenly: check the two counts.")
        raise ConfigError(problem.format(H=H, G=G))
    V, L, C = reader.size("V"), reader.required("L"), reader.size("C")
    base_parameters = _existing(family.layout.outside_layers, flags)
    head_parameters = _existing(model.task_head.parameters, flags)
    causal = (family.causal or "decoder" in flags) and "bidirectional" not in flags
    generates = causal or any(stack.spec.decoder for stack in stacks)
    gated = condition_met(family.layout.gated, flags)
    qk_norm: QKNorm = family.qk_norm if "qk_norm" in flags else ""
    has_rms = qk_norm not in ("", "layer-norm")
    norm_placement = _first_met(family.norm_placement, flags, "pre")
    position_bias = _first_met(family.position_bias, flags, "")
    softcap = None if family.softcap == "never" else part.get("attn_logit_softcapping", family.softcap)
    not_modelled = [_(noun) for condition, noun in family.not_modelled.items() if condition_met(condition, flags)]
    if qk_norm == "layer-norm":
        not_modelled.append(_("LayerNorm on queries and keys"))
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
        causal=causal,
        tied_embeddings="tied" in flags,
        biases="".join(letter for letter in "qkvo" if letter in flags),
        qk_norm=qk_norm,
        qk_norm_eps=read_positive_number(part, "rms_norm_eps", 1e-6) if has_rms else None,
        rotary=first_layer.rotary,
        window=first_layer.window,
        chunk=first_layer.chunk,
        initializer_range=read_positive_number(part, "initializer_range", 0.02),
        usable_positions=_usable_positions(family, flags, reader),
        fixed_tokens=reader.required(family.fixed_tokens) if family.fixed_tokens else None,
        input=family.input,
        score_scale=family.scale(part, d_h, flags),
        score_softcap=None if softcap is None else read_positive_number(part, "attn_logit_softcapping", softcap),
        position_bias=position_bias,
        alibi_slopes=family.alibi_slopes(H) if position_bias == "alibi" else (),
        norm=family.norm,
        norm_placement=norm_placement,
        has_final_norm=norm_placement != "post" and "no_final_norm" not in flags,
        embedding_scale=family.embedding_scale,
        scales_residuals=family.scales_residuals,
        scales_queries="temperature" in flags,
        not_modelled=tuple(not_modelled),
        model_class=model.model_class,
        has_kv_cache=(family.kv_cache or "decoder" in flags) and generates,
        extra=_extra_sizes(family, reader, (*base_parameters, *head_parameters), stacks),
        size_sources=tuple(reader.sources[symbol] for symbol in family.sizes if symbol in reader.sources),
        task_head=model.task_head,
        gated=gated,
        width_rule=width_rule(family.width_rules, L, d, d_ff) if gated else None,
        base_parameters=base_parameters,
        head_parameters=head_parameters,
        stacks=stacks,
        notes=model.notes,
    )


@dataclass(frozen=True)
class _Recognized:
    """What is known of a config before its sizes are read: its family, the class it names, and its flags.

    `is_text_part` says that the config was inside a multimodal one.
    """

    config: Config
    model_type: str
    family: Family
    is_text_part: bool
    notes: tuple[str, ...]
    model_class: str
    task_head: TaskHead
    flags: frozenset[str]


def _stated_class(config: Config) -> str:
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    return first if isinstance(first, str) else ""


def _by_table(table: FamilyTable, chosen: Part, class_name: str, name: str) -> Architecture:
    config, model_type = chosen.config, chosen.model_type or str(chosen.config["model_type"])
    if isinstance(config.get("id2label"), dict):  # a classifier's file lists its labels instead of counting them
        config = {**config, "id2label": len(config["id2label"]) or None}
    if table.text_part and table.text_part.table:
        problem = _('Models of type "{type}" state the sizes of their language model in "{field}": add it.')
        raise ConfigError(problem.format(type=model_type, field=table.text_part.field))
    if class_name not in table.counted and any(line.mask == "cross" for line in table.attention):
        _check_class(class_name, model_type, table.classes[0])
    is_causal = any(line.mask == "causal" for line in table.attention)
    computation = computation_of(model_type)
    reads_is_causal = computation.is_known and not computation.ignores_is_causal
    ignores = _IS_CAUSAL if reads_is_causal or not is_causal else frozenset[str]()
    check_unread_fields(config, table.fields | ignores)
    model_class = class_name if class_name in table.counted else table.classes[0]
    notes = (*chosen.notes, *_notes_on_class(class_name, model_class), *notes_on_fields(config, model_type, table))
    return read_table(table, config, name, model_type, model_class, notes)


def _check_class(stated: str, model_type: str, counted: str) -> None:
    if stated.endswith("ForCausalLM"):
        problem = _(
            "{stated} is the decoder of “{type}” by itself, which is not counted here: remove “architectures” to count "
            "{counted}."
        )
        raise ConfigError(problem.format(stated=quoted(stated), type=model_type, counted=counted))


def _notes_on_class(stated: str, counted: str) -> Iterator[str]:
    if stated and stated != counted:
        yield _("{stated} is not counted here: {counted} is.").format(stated=quoted(stated), counted=counted)


def _recognize(chosen: Part) -> _Recognized:
    part, is_text_part = chosen.config, chosen.is_of_multimodal_file
    model_type, family = find_family(part)
    check_unread_fields(part, _IS_CAUSAL if family.reads_is_causal or not family.causal else frozenset())
    if isinstance(part.get("id2label"), dict):  # a classifier's file lists its labels instead of counting them
        part = {**part, "id2label": len(part["id2label"]) or None}
    stated, task_heads = "" if is_text_part else _stated_class(part), family.layout.task_heads
    suffix = task_suffix(stated, task_heads)
    model_class = stated if suffix else family.model_class
    if not suffix and any(stack.decoder for stack in family.layout.stacks):
        _check_class(stated, model_type, model_class)
    task_head = task_heads[suffix or task_suffix(model_class, task_heads) or next(iter(task_heads))]
    notes = (*chosen.notes, *_notes_on_class(stated, model_class), *notes_on_fields(part, model_type, None))
    flags = find_flags(part, family) | task_head.flags
    if family.causal and not read_bool(part, "is_causal", True):
        flags |= {"bidirectional"}
    if family.tied != "never" and read_bool(part, "tie_word_embeddings", family.tied):
        flags |= {"tied"}
    return _Recognized(part, model_type, family, is_text_part, notes, model_class, task_head, frozenset(flags))


def _stacks(model: _Recognized, reader: SizeReader) -> tuple[LayerStack, ...]:
    family, L = model.family, reader.required("L")
    is_bidirectional = not family.causal or "bidirectional" in model.flags
    windows = window_per_layer(family.windows, model.config, L, centred=is_bidirectional)
    if family.causal and any(windows) and not read_bool(model.config, "is_causal", True):
        raise ConfigError(_('"is_causal" is false in a model with sliding windows, which is not supported.'))
    specs = (spec for spec in family.layout.stacks if not (spec.decoder and model.task_head.without_decoder))
    stacks = []
    for spec in specs:
        count = reader.required(spec.count)
        layers = _layers(spec, model, reader, windows if count == L else (None,) * count)
        runs = (replace(layer, count=len(list(alike))) for layer, alike in groupby(layers))
        stacks.append(LayerStack(spec, tuple(runs)))
    return tuple(stacks)


def _layers(
    spec: StackSpec, model: _Recognized, reader: SizeReader, limits: Sequence[int | None]
) -> Iterator[LayerRun]:
    family, config, count = model.family, model.config, len(limits)

    @cache
    def parameters(*of_layer: bool) -> ParameterSpecs:
        flags = (flag for flag, holds in zip(("first", "moe", "cross"), of_layer, strict=True) if holds)
        return _existing(spec.parameters, model.flags.union(flags))

    is_chunked = family.windows is not None and family.windows.chunked
    windows, chunks = ((None,) * count, limits) if is_chunked else (limits, (None,) * count)
    moe = family.expert_layers(config, count) if family.expert_layers else [False] * count
    cross = family.cross_layers(config, count) if family.cross_layers else [False] * count
    rotary = _rotary_per_layer(model, reader, windows)
    for i in range(count):
        yield LayerRun(1, parameters(i == 0, moe[i], cross[i]), windows[i], chunks[i], rotary[i])


def _existing(parameters: ParameterSpecs, flags: frozenset[str]) -> ParameterSpecs:
    return tuple(parameter for parameter in parameters if condition_met(parameter.when, flags))


def _extra_sizes(
    family: Family, reader: SizeReader, outside: ParameterSpecs, stacks: Sequence[LayerStack]
) -> dict[str, int]:
    parameters = [*outside, *(spec for stack in stacks for kind in stack.kinds for spec in kind.parameters)]
    symbols = {symbol for parameter in parameters for symbol in parameter.symbols}
    if any(parameter.routed for parameter in parameters):
        symbols.add("k")
    if any(stack.spec.decoder for stack in stacks):
        symbols |= {"H_dec", "d_h_dec", "L_dec", "P_dec"}
    if family.fixed_tokens:
        symbols |= {"I", "n_side", "frames"}
    wanted = (symbol for symbol in family.sizes if symbol in symbols and symbol not in MAIN_SYMBOLS)
    extra = {symbol: reader.required(symbol) for symbol in wanted}
    if extra.get("k", 1) > extra.get("E", 1):
        problem = _("A token cannot be sent to {k} of {E} experts: check the two counts.")
        raise ConfigError(problem.format(k=extra["k"], E=extra["E"]))
    return extra


def _usable_positions(family: Family, flags: frozenset[str], reader: SizeReader) -> int | None:
    if family.position_rows is None or not condition_met(family.position_table_when, flags):
        return None
    rows = reader.required(family.position_rows)
    if rows <= family.unused_positions:
        problem = _("A table of {count} positions leaves no room for a token: check its length.")
        raise ConfigError(problem.format(count=rows))
    return rows - family.unused_positions


def _rotary_per_layer(model: _Recognized, reader: SizeReader, windows: Sequence[int | None]) -> Sequence[Rotary | None]:
    rule, config = model.family.rotary, model.config
    if rule is None or not condition_met(rule.when, model.flags):
        return (None,) * len(windows)
    rotary = local_rotary = _rotary(model, rule, reader, local=False)
    if rule.default_local_theta is not None:
        local_rotary = _rotary(model, rule, reader, local=True)
    rotates = rule.layers(config, len(windows)) if rule.layers else [True] * len(windows)
    if rule.windowed_only and any(windows):
        rotates = [window is not None for window in windows]
    by_window = (local_rotary if window else rotary for window in windows)
    return [each if is_rotating else None for each, is_rotating in zip(by_window, rotates, strict=True)]


def _rotary(model: _Recognized, rule: RotaryRule, reader: SizeReader, *, local: bool) -> Rotary:
    # transformers 5 writes "rope_parameters" with the base inside; a file with two kinds of layers has one such object
    # per kind. Older files keep base and scaling apart.
    config, settings = model.config, rope_settings(model.config)
    kind_settings = settings.get("sliding_attention" if local else "full_attention")
    if isinstance(kind_settings, dict):
        settings = kind_settings
    elif local and not rule.scaled_locally:
        settings = {}
    field, default = (rule.local_theta, rule.default_local_theta) if local else (rule.theta, rule.default_theta)
    theta = read_positive_number(settings, "rope_theta", read_positive_number(config, field, default))
    share = read_positive_number(settings, "partial_rotary_factor", config.get(rule.share) or rule.default_share)
    width = max(1, int(reader.required(rule.width) * min(share, 1.0)))
    return Rotary(theta, width, settings, condition_met(rule.adjacent, model.flags))


def _first_met(answers: Mapping[str, Answer], flags: frozenset[str], default: Answer) -> Answer:
    return next((answer for condition, answer in answers.items() if condition_met(condition, flags)), default)
