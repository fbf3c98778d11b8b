"""Imported models: each a config.json from a file, a text or the Hub, stored in the database."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, Protocol

from app.exchange.hub import fetch_config, repository_name
from app.machine.work_queue import THE_APP, Client
from app.models.architecture import Architecture
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture, parse_config, read_config
from app.names import clean_line
from app.sheets.codes import imported_key_prefix, read_code
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Model
from app.store import Store, StoredModel
from app.translation import gettext as _

MAX_MODEL_NAME_LENGTH = 80
MAX_KEPT_CONFIG_BYTES = 16_000
MAX_KEPT_FIELDS = 2_000  # per object; more don't fit into these bytes
MAX_KEPT_TEXT, MAX_KEPT_LIST, MAX_KEPT_DEPTH = 200, 1_000, 3  # characters, items, nesting
UNREAD_FIELDS = frozenset({"label2id", "quantization_config", "compression_config", "task_specific_params"})
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class HubSettings(Protocol):
    """The settings for a fetch: the cache's folder, and whether fetching is allowed."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def hub(self) -> bool: ...


def library_with_model(library: Library, store: Store, key: str | None) -> Library:
    """The library with the imported model `key` added.

    Raises ConfigError if its stored config can no longer be read.
    """
    if not key or key in library.models:
        return library
    stored = store.find_model(key)
    if stored is None:
        return library
    return library.with_added(models=[_model(stored)])


def variant_from_code(library: Library, store: Store, text: str) -> Variant:
    """The sheet of a sheet code, with a model of the library or an imported one."""
    code = read_code(text)
    keys = store.model_keys(imported_key_prefix(code.model)) if code and code.model else ()
    for key in keys:
        library = library_with_model(library, store, key)
    return library.variant_from_code(text)


def import_config(store: Store, config: object, source: str, name: str = "", repository: str = "") -> Model:
    """Store the used parts of a config.json and return its model; the same import gets the same key."""
    given = clean_line(name, MAX_MODEL_NAME_LENGTH)
    shown_name = given or repository or _name_in_config(config)
    kept = config_to_keep(config)
    architecture = build_architecture(config, shown_name or "this model")
    if kept != config:
        same = replace(build_architecture(kept, shown_name or "this model"), notes=architecture.notes)
        kept = kept if same == architecture else config
    if len(json.dumps(kept)) > MAX_KEPT_CONFIG_BYTES:
        raise _holds_too_much()
    earlier = store.find_config(config)  # from a version that kept the whole config
    if earlier and given in ("", earlier.name):
        return _model(earlier)
    if not shown_name:
        sizes = {"L": architecture.L, "d": architecture.d}
        shown_name = _("{family} ({L} layers, {d} dimensions)").format(family=architecture.family, **sizes)
    return _model(store.keep_model(shown_name, kept, source, given))


def config_to_keep(config: object, depth: int = 0) -> object:
    """A config without fields that no size is read from: long texts and lists, tables of labels, quantization settings.

    Example:
        config_to_keep({"d_model": 512, "id2label": {"0": "cat"}, "label2id": {"cat": 0}})
        # {"d_model": 512, "id2label": 1}
    """
    if isinstance(config, dict):
        if len(config) > MAX_KEPT_FIELDS:
            raise _holds_too_much()
        labels = config.get("id2label")
        counted = {**config, "id2label": len(labels) or None} if isinstance(labels, dict) else config
        return {
            key: config_to_keep(value, depth + 1)
            for key, value in counted.items()
            if key not in UNREAD_FIELDS and len(key) <= MAX_KEPT_TEXT and _is_small(value, depth)
        }
    return config


def _holds_too_much() -> ConfigError:
    return ConfigError(_("This config.json holds too much: remove what does not describe the model’s sizes."))


def _is_small(value: object, depth: int) -> bool:
    if isinstance(value, dict):
        return depth < MAX_KEPT_DEPTH
    if isinstance(value, list):
        return len(value) <= MAX_KEPT_LIST and all(not isinstance(item, dict) for item in value)
    return not isinstance(value, str) or len(value) <= MAX_KEPT_TEXT


def import_text(store: Store, text: str | bytes, source: str, name: str = "") -> Model:
    """Store a pasted or uploaded config.json; raises ConfigError if it can't be read."""
    return import_config(store, parse_config(text), source, name)


def import_from_hub(
    store: Store, settings: HubSettings, name_or_url: str, name: str = "", client: Client = THE_APP
) -> Model:
    """Fetch a model's config from the Hub and store it; the model is called `name` or org/name.

    Raises HubError if it can't be fetched, ConfigError if it can't be read as a model.
    """
    config = fetch_config(name_or_url, settings.data_dir / "hub", allowed=settings.hub, client=client)
    source = repository_name(name_or_url) or name_or_url
    return import_config(store, config, source, name, repository=source)


def model_name_from_path(path: str) -> str:
    r"""The file's name without folders and last suffix, to suggest as the model's name; "" for config.json.

    Example:
        model_name_from_path("C:\\models\\llama.json")  # "llama"
    """
    stem = PurePath(path.replace("\\", "/")).stem
    return "" if stem.lower() == "config" else stem


def _model(stored: StoredModel) -> Model:
    kinds = {"file": _("Imported from a file."), "pasted": _("Imported from pasted text.")}
    about = kinds.get(stored.source) or _("Imported from the Hugging Face Hub: {source}.").format(source=stored.source)
    return Model(stored.key, stored.name, about, "", _architecture(stored.config, stored.name), stored.config)


@lru_cache(maxsize=64)
def _architecture(config: str, name: str) -> Architecture:
    return read_config(config, name)


def _name_in_config(config: object) -> str:
    stated: Any = config.get("_name_or_path") if isinstance(config, dict) else None
    if not isinstance(stated, str):
        return ""
    name = stated if _HUB_NAME.fullmatch(stated) else PurePath(stated.replace("\\", "/")).name
    return clean_line(name, MAX_MODEL_NAME_LENGTH)
