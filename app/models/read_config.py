"""Reads a published config.json into one frozen Architecture, by its type's table in data/families.

>>> read_config('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257}').d_h
64
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from app.models.architecture import Architecture, ModelNote, model_note
from app.models.computation import computation_of
from app.models.config_fields import Config, ConfigError, quoted
from app.models.read_table import read_table
from app.models.recognition import Part, find_table, find_text_part
from app.models.table import FamilyTable
from app.models.whole_file import check_kind_of_file, check_unread_fields, notes_on_fields
from app.translation import N_
from app.translation import gettext as _

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
    table = chosen.table or find_table(chosen.config, class_name)
    return _by_table(table, chosen, class_name, name)


def _stated_class(config: Config) -> str:
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    return first if isinstance(first, str) else ""


def _by_table(table: FamilyTable, chosen: Part, class_name: str, name: str) -> Architecture:
    config, model_type = chosen.config, chosen.model_type or str(chosen.config["model_type"])
    if "global_head_dim" in table.sizes:
        config = _with_heads_of_full_layers(config)
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
    if computation.is_sparse and _has_windows_by_layer(config):
        ignores |= {"per_layer_config"}
    check_unread_fields(config, table.fields | ignores)
    model_class = class_name if class_name in table.counted else table.classes[0]
    notes = (*chosen.notes, *_notes_on_class(class_name, model_class), *notes_on_fields(config, model_type, table))
    return read_table(table, config, name, model_type, model_class, notes)


def _has_windows_by_layer(config: Config) -> bool:
    by_layer = config.get("per_layer_config")
    return isinstance(by_layer, dict) and all(
        isinstance(fields, dict) and fields.keys() == {"sliding_window"} for fields in by_layer.values()
    )


def _with_heads_of_full_layers(config: Config) -> Config:
    # Gemma 4's files state these heads once. transformers 5 saves them for each layer with full attention.
    by_layer, kinds = config.get("per_layer_config"), config.get("layer_types")
    if not isinstance(by_layer, dict) or not isinstance(kinds, list):
        return config
    full = {str(number) for number, kind in enumerate(kinds) if kind == "full_attention"}
    heads = next(iter(by_layer.values()), None)
    names = {"head_dim": "global_head_dim"}
    if config.get("attention_k_eq_v") is True:
        names["num_key_value_heads"] = "num_global_key_value_heads"
    if not isinstance(heads, dict) or "head_dim" not in heads or not heads.keys() <= names.keys():
        return config
    if by_layer.keys() != full or any(each != heads for each in by_layer.values()):
        return config
    stated = {names[name]: size for name, size in heads.items()}
    return {name: value for name, value in config.items() if name != "per_layer_config"} | stated


def _check_class(stated: str, model_type: str, counted: str) -> None:
    if stated.endswith("ForCausalLM"):
        problem = _(
            "{stated} is the decoder of “{type}” by itself, which is not counted here: remove “architectures” to count "
            "{counted}."
        )
        raise ConfigError(problem.format(stated=quoted(stated), type=model_type, counted=counted))


def _notes_on_class(stated: str, counted: str) -> Iterator[ModelNote]:
    if stated and stated != counted:
        yield model_note(N_("{stated} is not counted here: {counted} is."), stated=quoted(stated), counted=counted)
