"""A folder of worksheets, models and wording, read into one Library.

`*.toml` are worksheets, `models/*.json` hold a published config.json each with a name, a sentence and a link,
`wording/en.toml` holds every sentence a sheet says, in English.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.shapes.requirements import TopicError
from app.shapes.table import MATRIX_FIELDS
from app.shapes.topics import TOPICS, check_decoder_tokens, check_topic_tokens, topic_for
from app.sheets.library import Library
from app.sheets.notation import NOTATIONS
from app.sheets.wording import Wording
from app.sheets.worksheet import Model, Worksheet, WorksheetError
from app.translation import LANGUAGE
from app.translation import gettext as _

ANSWERS = ("numbers", "letters")
MAX_TOLERANCE = 0.1  # with more, the number of a mistake could count as right


class WorksheetFile(BaseModel):
    """The settings of a worksheet file; each description completes "must be …" in the message for its author."""

    model_config = ConfigDict(strict=True, extra="forbid")

    title: str = Field(description="a text")
    model: str = Field(description="a text")
    topic: str = Field(description="a text")
    tokens: int = Field(description="a whole number")
    rows: list[str] = Field(description="a list of texts")
    notation: str = Field(default="classic", description="a text")
    kv_head_per_query_head: bool = Field(default=False, description="true or false")
    decoder_tokens: int | None = Field(default=None, description="a whole number")
    models: list[str] = Field(default_factory=list, description="a list of texts")
    answers: str = Field(default="numbers", description="a text")
    tokens_are: str = Field(default="rows", description="a text")
    follow_share: float = Field(default=0.5, ge=0, le=1, description="a number from 0 to 1")
    tolerance: float = Field(default=0.0, ge=0, le=MAX_TOLERANCE, description=f"a number from 0 to {MAX_TOLERANCE}")

    def as_worksheet(self, key: str) -> Worksheet:
        """The same settings as a Worksheet of that key."""
        return Worksheet(key, **{**dict(self), "rows": tuple(self.rows), "models": tuple(self.models)})


class ModelFile(BaseModel):
    """What a model file holds: the model's name, a sentence about it, the link to its card, its config.json.

    `source` says where the config's numbers were found, for whoever checks them; no page shows it.
    """

    model_config = ConfigDict(strict=True)

    name: str
    about: str
    card: str
    config: Any
    source: str = ""


def load_library(folder: Path) -> Library:
    """Read the worksheets of a folder (*.toml), its models (models/*.json) and its wording (wording/en.toml).

    Worksheets stand in the order in which their topics are taught, those of one topic by key; models by name, so that
    each family's stand together, the smaller ones first. Raises WorksheetError that names a file that cannot be used
    and what to change.
    """
    wording = Wording(_read_toml(folder / "wording" / f"{LANGUAGE}.toml"))
    by_name = sorted(map(_read_model, sorted(folder.glob("models/*.json"))), key=lambda model: _natural_key(model.name))
    models = {model.key: model for model in by_name}
    sheets = [_read_worksheet(path, models, wording) for path in sorted(folder.glob("*.toml"))]
    sheets.sort(key=lambda sheet: (list(TOPICS).index(sheet.topic), sheet.key))
    return Library({sheet.key: sheet for sheet in sheets}, models, wording)


def _natural_key(name: str) -> tuple[tuple[bool, float, str], ...]:
    """A sort key by which numbers in a name count as numbers and case does not: LLaMA 7B stands before LLaMA 13B."""
    parts = re.findall(r"\d+(?:\.\d+)?|[^\d]+", name.lower())
    return tuple((not part[0].isdigit(), float(part) if part[0].isdigit() else 0.0, part) for part in parts)


def _read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; raises WorksheetError if it is not there, not UTF-8 or not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorksheetError(_("{file} cannot be read: {reason}").format(file=path.name, reason=error)) from None


def _read_model(path: Path) -> Model:
    """The Model of a JSON file of models/, whose name without .json is its key; raises WorksheetError naming the file.

    The error gives the reason if the config.json in it cannot be used; else it says what the file must hold.
    """
    try:
        entry = ModelFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
        architecture = build_architecture(entry.config, entry.name)
        return Model(path.stem, entry.name, entry.about, entry.card, architecture, json.dumps(entry.config))
    except ConfigError as error:
        raise WorksheetError(f"models/{path.name}: {error}") from None
    except (OSError, ValueError, RecursionError):
        problem = _("models/{file} must hold one JSON object with name, about, card and config.")
        raise WorksheetError(problem.format(file=path.name)) from None


def _read_worksheet(path: Path, models: Mapping[str, Model], wording: Wording) -> Worksheet:
    """The Worksheet of a TOML file, whose name without .toml is its key; raises WorksheetError naming the file.

    Refused are settings that are unknown, missing, of the wrong type or name something unknown, rows that its topic
    does not have, and a topic or length that one of its models cannot take.
    """
    try:
        sheet = WorksheetFile.model_validate(_read_toml(path)).as_worksheet(path.stem)
    except ValidationError as error:
        raise WorksheetError(_setting_message(path.name, error)) from None
    try:
        _check_names(sheet, models)
        _check_rows(sheet, models, wording)
    except (TokensError, TopicError, WorksheetError) as error:
        raise WorksheetError(f"{path.name}: {error}") from None
    return sheet


def _setting_message(file: str, error: ValidationError) -> str:
    """One sentence about the first setting that is unknown or of a wrong type.

    Only if there is none does it name the settings that every worksheet needs, as one of them is missing.
    """
    problems = [problem for problem in error.errors() if problem["type"] != "missing"]
    if not problems:
        return f"{file} needs title, model, topic, tokens and rows."
    key = str(problems[0]["loc"][0])
    if problems[0]["type"] == "extra_forbidden":
        return f"{file}: there is no setting “{key}”; there are: {', '.join(WorksheetFile.model_fields)}."
    return f"{file}: {key} must be {WorksheetFile.model_fields[key].description}."


def _check_names(sheet: Worksheet, models: Mapping[str, Model]) -> None:
    """Raise WorksheetError, which lists the known names, for the first setting with an unknown name."""
    _require("topic", TOPICS, sheet.topic)
    _require("model", models, sheet.model)
    _require("notation", NOTATIONS, sheet.notation)
    _require("answers", ANSWERS, sheet.answers)
    _require("tokens_are", MATRIX_FIELDS, sheet.tokens_are)
    for model in sheet.models:
        _require("model", models, model)


def _require(setting: str, known: Iterable[str], name: str) -> None:
    """Raise WorksheetError unless a name is one of those that are known."""
    names = list(known)
    if name not in names:
        problem = _("{setting} cannot be “{name}”: use one of {names}.")
        raise WorksheetError(problem.format(name=name, setting=setting, names=", ".join(names)))


def _check_rows(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> None:
    """Check that each of the sheet's models can take its topic and tokens, and that its rows are some, each once.

    The topic's table for the sheet's own model decides which rows there are; a row without a name in the wording cannot
    be asked. Raises TopicError, TokensError (for decoder tokens that the own model cannot take, too) or WorksheetError.
    """
    own = models[sheet.model].architecture
    asked = topic_for(sheet.topic, own, sheet.tokens).asked
    for model in (sheet.model, *sheet.models):
        architecture = models[model].architecture
        topic_for(sheet.topic, architecture, check_topic_tokens(sheet.topic, architecture, sheet.tokens))
    if sheet.decoder_tokens is not None:
        check_decoder_tokens(own, sheet.tokens, sheet.decoder_tokens)
    named: Container[str] = wording.sections["rows"].get(sheet.topic, {})
    possible = [key for key in asked if key in named]
    if not sheet.rows or not all(row in possible and sheet.rows.count(row) == 1 for row in sheet.rows):
        raise WorksheetError(_("rows must be some of {rows}, each once.").format(rows=", ".join(possible)))
