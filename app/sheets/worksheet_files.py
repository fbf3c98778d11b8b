"""A folder of worksheets, models and wording, read into one Library.

`*.toml` are worksheets; each of `models/*.json` contains a published config.json with a name, a sentence and a link.
`wording/en/` has every sentence of a sheet in English; other languages have folders beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.sheets.authoring.worksheet_settings import SettingError, read_settings
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.sheets.wording_files import read_toml, read_wording
from app.sheets.worksheet import Model, Worksheet, WorksheetError
from app.topics.registry import TOPICS
from app.translation import ENGLISH, in_language
from app.translation import gettext as _


class ModelFile(BaseModel):
    """A model file: the model's name, a sentence about it, the link to its card, its config.json.

    `report` is the link to the report in a sheet's footnote.
    """

    model_config = ConfigDict(strict=True)

    name: str
    about: str
    card: str
    config: Any
    report: str = ""
    source: str = ""


def load_library(folder: Path, language: str = ENGLISH) -> Library:
    """Read a folder's worksheets (*.toml), models (models/*.json) and wording in a language.

    Raises WorksheetError, naming an unusable file and what to change.
    """
    return in_language(language, _read_library, folder, language)


def load_models(folder: Path, language: str = ENGLISH) -> dict[str, Model]:
    """Read only the models of a folder, by key, in the library's order; raises WorksheetError in a language."""
    return in_language(language, _read_models, folder)


def _read_models(folder: Path) -> dict[str, Model]:
    by_name = sorted(map(_read_model, sorted(folder.glob("models/*.json"))), key=lambda model: _natural_key(model.name))
    return {model.key: model for model in by_name}


def _read_library(folder: Path, language: str) -> Library:
    wording, models = read_wording(folder / "wording", language), _read_models(folder)
    sheets = [_read_worksheet(path, models, wording) for path in sorted(folder.glob("*.toml"))]
    sheets.sort(key=lambda sheet: (list(TOPICS).index(sheet.topic), sheet.key))
    return Library({sheet.key: sheet for sheet in sheets}, models, wording)


def _natural_key(name: str) -> tuple[tuple[bool, float, str], ...]:
    parts = re.findall(r"\d+(?:\.\d+)?|[^\d]+", name.lower())
    return tuple((not part[0].isdigit(), float(part) if part[0].isdigit() else 0.0, part) for part in parts)


def _read_model(path: Path) -> Model:
    try:
        entry = ModelFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
        architecture = build_architecture(entry.config, entry.name)
        config = json.dumps(entry.config)
        return Model(path.stem, entry.name, entry.about, entry.card, architecture, config, entry.report)
    except ConfigError as error:
        raise WorksheetError(f"models/{path.name}: {error}") from None
    except (OSError, ValueError, RecursionError):
        problem = _("models/{file} must hold one JSON object with name, about, card and config.")
        raise WorksheetError(problem.format(file=path.name)) from None


def _read_worksheet(path: Path, models: Mapping[str, Model], wording: Wording) -> Worksheet:
    try:
        return read_settings(path.stem, read_toml(path), models, wording)
    except SettingError as error:
        raise WorksheetError(f"{path.name}: {error}") from None
