"""A folder of worksheets, models and wording read into one frozen Library.

`*.toml` are worksheets, `models/*.json` hold a published config.json each with a name, a sentence and a link,
`wording/en.toml` holds every sentence a sheet says.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.shapes.shapes_json import check_decoder_tokens
from app.shapes.table import MATRIX_FIELDS
from app.shapes.topics import MAKERS, TopicError, topic_for
from app.sheets.codes import Code, check_letters, mark, model_mark, read_code
from app.sheets.seeds import Alike, check_seed, draw, least_alike
from app.sheets.worksheet import NOTATIONS, Model, Variant, Wording, Worksheet, WorksheetError


@dataclass(frozen=True)
class Library:
    """Everything instructors wrote: worksheets and models by key, in reading order, and the wording."""

    worksheets: Mapping[str, Worksheet]
    models: Mapping[str, Model]
    wording: Wording

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics there are worksheets for, in the order in which they are taught."""
        return tuple(dict.fromkeys(sheet.topic for sheet in self.worksheets.values()))

    def worksheet(self, key: str) -> Worksheet:
        """The worksheet of that key; raises WorksheetError that lists the keys there are."""
        if key not in self.worksheets:
            raise WorksheetError(f"There is no worksheet “{key[:60]}”; there are: {', '.join(self.worksheets)}.")
        return self.worksheets[key]

    def model(self, key: str) -> Model:
        """The model of that key; raises WorksheetError that lists the keys there are."""
        if key not in self.models:
            raise WorksheetError(f"There is no model “{key[:60]}”; there are: {', '.join(self.models)}.")
        return self.models[key]

    def variant(
        self, worksheet: str, model: str | None = None, tokens: int | None = None, decoder_tokens: int | None = None
    ) -> Variant:
        """A sheet to fill in, with another model or number of tokens if given; the latest ones are kept.

        Raises WorksheetError, TokensError, and TopicError where the model has no such topic.
        """
        return self._variants(worksheet, model, tokens, decoder_tokens)

    def variant_with_sizes(self, sheet: Worksheet, model: str, tokens: int, decoder_tokens: int | None) -> Variant:
        """The sheet of a worksheet that may be none of the library's any more, with sizes that were kept of it."""
        return self._fixed(sheet, model, tokens, decoder_tokens)

    def seeded(self, worksheet: str, seed: int, model: str | None = None) -> Variant:
        """The sheet that a seed draws, the same on every machine; of this model if one is given.

        Raises WorksheetError, SeedError, TopicError.
        """
        sheet = self.worksheet(worksheet)
        return self._seeded(sheet.key, (model,) if model else sheet.models or (sheet.model,), check_seed(seed))

    def least_alike(self, worksheet: str, model: str) -> Alike:
        """The pairs of misconceptions that a worksheet cannot tell apart with this model, whatever the tokens."""
        return self._least(worksheet, model)

    def variant_from_code(self, text: str) -> Variant:
        """The sheet that a code names; raises WorksheetError for a code that is mistyped or no longer holds."""
        code = read_code(text)
        if code is None:
            raise WorksheetError(f"“{text[:60]}” is no code of a sheet: a code is letters such as {self._example}.")
        for sheet in self.worksheets.values():
            models = [sheet.model] if code.model is None else self.models
            for model in models if mark(sheet.key, 3) == code.worksheet else ():
                if variant := self._fitting(code, sheet.key, model):
                    return variant
        raise WorksheetError(
            f"No sheet has the code {text[:60]}: look for a mistyped letter, or its worksheet was changed since."
        )

    @cached_property
    def _example(self) -> str:
        return self.variant(next(iter(self.worksheets))).code

    def _fitting(self, code: Code, worksheet: str, model: str) -> Variant | None:
        if code.model not in (None, model_mark(model)):
            return None
        try:
            variant = self.variant(worksheet, model, code.tokens, code.decoder_tokens)
        except (TokensError, TopicError):
            return None
        return variant if check_letters(variant) == code.check else None

    @cached_property
    def _seeded(self) -> Callable[[str, tuple[str, ...], int], Variant]:
        @lru_cache(maxsize=4096)
        def seeded(worksheet: str, models: tuple[str, ...], seed: int) -> Variant:
            least = partial(self.least_alike, worksheet)
            return draw(worksheet, models, partial(self.variant, worksheet), least, seed)

        return seeded

    @cached_property
    def _least(self) -> Callable[[str, str], Alike]:
        return lru_cache(maxsize=256)(lambda worksheet, model: least_alike(model, partial(self.variant, worksheet)))

    @cached_property
    def _fixed(self) -> Callable[[Worksheet, str, int, int | None], Variant]:
        @lru_cache(maxsize=4096)
        def fixed(sheet: Worksheet, model: str, tokens: int, decoder_tokens: int | None) -> Variant:
            return Variant(sheet, self.model(model), tokens, self.wording, decoder_tokens)

        return fixed

    @cached_property
    def _variants(self) -> Callable[[str, str | None, int | None, int | None], Variant]:
        return lru_cache(maxsize=4096)(self._variant)

    def _variant(self, worksheet: str, model: str | None, tokens: int | None, decoder_tokens: int | None) -> Variant:
        sheet = self.worksheet(worksheet)
        chosen = self.model(model or sheet.model)
        count = chosen.architecture.check_tokens(sheet.tokens if tokens is None else tokens)
        if decoder_tokens is not None:
            check_decoder_tokens(chosen.architecture, count, decoder_tokens)
        own = decoder_tokens if decoder_tokens != sheet.decoder_tokens else None
        variant = Variant(sheet, chosen, count, self.wording, own)
        if not variant.rows:
            raise TopicError(f"None of the rows of “{sheet.title}” is there in {chosen.name}.")
        return variant


def load_library(folder: Path) -> Library:
    """Read a folder of worksheets; raises WorksheetError naming the file that cannot be used."""
    wording = Wording(_toml(folder / "wording" / "en.toml"))
    models = {path.stem: _model(path) for path in sorted(folder.glob("models/*.json"))}
    sheets = [_worksheet(path, models, wording) for path in folder.glob("*.toml")]
    sheets.sort(key=lambda sheet: (list(MAKERS).index(sheet.topic), sheet.key))
    return Library({sheet.key: sheet for sheet in sheets}, models, wording)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorksheetError(f"{path.name} cannot be read: {error}") from None


def _model(path: Path) -> Model:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        name, about, card = texts = [entry[key] for key in ("name", "about", "card")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        return Model(path.stem, name, about, card, build_architecture(entry["config"], name))
    except ConfigError as error:
        raise WorksheetError(f"models/{path.name}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise WorksheetError(f"models/{path.name} needs one object with name, about, card and config.") from None


_TYPES = {"title": str, "model": str, "topic": str, "tokens": int, "rows": list, "notation": str,
          "kv_head_per_query_head": bool, "decoder_tokens": int, "models": list, "answers": str, "tokens_are": str,
          "follow_share": float}  # fmt: skip
_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", list: "a list of texts", bool: "true or false"}


def _worksheet(path: Path, models: Mapping[str, Model], wording: Wording) -> Worksheet:
    entry = _toml(path)
    for key, value in entry.items():
        if key not in _TYPES:
            raise WorksheetError(f"{path.name}: there is no setting “{key}”; there are: {', '.join(_TYPES)}.")
        if not _is_a(_TYPES[key], value):
            raise WorksheetError(f"{path.name}: {key} must be {_TYPE_NAMES[_TYPES[key]]}.")
    try:
        lists = {"rows": tuple(entry["rows"]), "models": tuple(entry.get("models", ()))}
        sheet = Worksheet(path.stem, **{**entry, **lists})
    except (KeyError, TypeError):
        raise WorksheetError(f"{path.name} needs title, model, topic, tokens and rows.") from None
    _check(sheet, path.name, models, wording)
    return sheet


def _is_a(kind: type, value: object) -> bool:
    if isinstance(value, list):
        return kind is list and all(isinstance(text, str) for text in value)
    return type(value) is kind or (kind is float and type(value) is int)


def _check(sheet: Worksheet, file: str, models: Mapping[str, Model], wording: Wording) -> None:
    for value, there_are, what in (
        (sheet.topic, MAKERS, "topic"),
        (sheet.model, models, "model"),
        (sheet.notation, NOTATIONS, "notation"),
        (sheet.answers, ("numbers", "letters"), "kind of answers"),
        (sheet.tokens_are, MATRIX_FIELDS, "way tokens can be"),
    ):
        if value not in there_are:
            raise WorksheetError(f"{file}: there is no {what} “{value}”; there are: {', '.join(there_are)}.")
    if not 0 <= sheet.follow_share <= 1:
        raise WorksheetError(f"{file}: follow_share must be a number from 0 to 1.")
    if unknown := [key for key in sheet.models if key not in models]:
        raise WorksheetError(f"{file}: there is no model “{unknown[0]}”; there are: {', '.join(models)}.")
    try:
        asked = topic_for(sheet.topic, models[sheet.model].architecture, sheet.tokens).asked
        for key in (sheet.model, *sheet.models):
            topic_for(sheet.topic, models[key].architecture, models[key].architecture.check_tokens(sheet.tokens))
        if sheet.decoder_tokens is not None:
            check_decoder_tokens(models[sheet.model].architecture, sheet.tokens, sheet.decoder_tokens)
    except (TokensError, TopicError) as error:
        raise WorksheetError(f"{file}: {error}") from None
    worded = [key for key in asked if key in wording.sections["rows"].get(sheet.topic, {})]  # without a name, unasked
    if not sheet.rows or not all(row in worded and sheet.rows.count(row) == 1 for row in sheet.rows):
        raise WorksheetError(f"{file}: rows must be some of {', '.join(worded)}, each once.")
