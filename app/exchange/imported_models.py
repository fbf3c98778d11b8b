"""Imported models: taken in, kept under a key, and found again beside those of the library."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from app.exchange.hub import fetch_config, repository_name
from app.models.architecture import Architecture, architecture_from, parse_config, read_config
from app.sheets.library import Library
from app.sheets.worksheet import Model, Wording
from app.store import KeptModel
from app.web.shared.services import Services

LONGEST_NAME = 80
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def library_with(services: Services, key: str | None, library: Library | None = None) -> Library:
    """The library, and the imported model of that key among its models if it is one; raises ConfigError."""
    library = library or services.library
    if not key or key in library.models:
        return library
    kept = services.store.find_model(key)
    if kept is None:
        return library
    return replace(library, models={**library.models, key: _model(kept, library.wording)})


def import_config(services: Services, config: object, source: str, name: str = "") -> Model:
    """Keep a parsed config.json that can be read, and give back its model; raises ConfigError."""
    called = _clean(name) or _own_name(config)
    architecture = architecture_from(config, called or "this model")
    kept = services.store.keep_model(called or _unnamed(services.library.wording, architecture), config, source)
    return _model(kept, services.library.wording)


def import_text(services: Services, text: str | bytes, source: str, name: str = "") -> Model:
    """The same for the text of a config.json."""
    return import_config(services, parse_config(text), source, name)


def import_from_hub(services: Services, typed: str, name: str = "") -> Model:
    """The same for a model of the Hugging Face Hub; raises HubError, ConfigError."""
    config = fetch_config(typed, services.settings.data_dir / "hub", allowed=services.settings.hub)
    source = repository_name(typed) or typed
    return import_config(services, config, source, name or source)


def file_name(path: str) -> str:
    """What an opened file calls its model: nothing where every such file has that name."""
    stem = PurePath(path.replace("\\", "/")).stem
    return "" if stem.lower() == "config" else stem


def _model(kept: KeptModel, words: Wording) -> Model:
    key = kept.source if kept.source in ("file", "pasted") else "hub"
    about = words.say("imported", key, source=kept.source)
    return Model(kept.key, kept.name, about, "", _architecture(kept.config, kept.name))


@lru_cache(maxsize=64)
def _architecture(config: str, name: str) -> Architecture:
    return read_config(config, name)


def _own_name(config: object) -> str:
    """The name that a config gives itself, without the folders of whoever saved it."""
    stated: Any = config.get("_name_or_path") if isinstance(config, dict) else None
    if not isinstance(stated, str):
        return ""
    return _clean(stated if _HUB_NAME.fullmatch(stated) else PurePath(stated.replace("\\", "/")).name)


def _unnamed(words: Wording, architecture: Architecture) -> str:
    return words.say("imported", "unnamed", family=architecture.family, d=architecture.d, L=architecture.L)


def _clean(name: str) -> str:
    """A name as one short line of characters that can be shown."""
    return "".join(char for char in " ".join(name.split()) if char.isprintable())[:LONGEST_NAME].strip()
