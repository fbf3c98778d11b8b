"""The Library: every worksheet and model of a folder, and the sheets made from them.

`*.toml` are worksheets; each of `models/*.json` contains a published config.json with a name, a sentence and a link.
`wording/en/` has every sentence of a sheet in English; other languages have folders beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import BaseModel, ConfigDict

from app.bugs.bank import BUGS, BugKind
from app.models.architecture import TokensError
from app.models.config_fields import ConfigError
from app.models.read_config import build_architecture
from app.sheets.authoring.worksheet_settings import SettingError, read_settings
from app.sheets.codes import BUG_LETTERS, Code, check_letters, model_letters, read_code, short_hash
from app.sheets.frozen_sheet import FrozenSheet
from app.sheets.replaced import REPLACED
from app.sheets.seeds import ConfusedPairs, check_seed, draw_bug, draw_variant, max_versions, unavoidable_confusions
from app.sheets.variant import Variant
from app.sheets.wording import Wording, read_toml, read_wording
from app.sheets.worksheet import CHOICE, SYMBOLS, Model, Worksheet, WorksheetError, key_in
from app.topics.registry import TOPICS, check_decoder_tokens, check_topic_tokens, possible_tokens, topic_for
from app.topics.requirements import TopicError
from app.translation import ENGLISH, in_language
from app.translation import gettext as _

P = ParamSpec("P")
R = TypeVar("R")
LibraryMethod = Callable[Concatenate["Library", P], R]
VARIANTS_REMEMBERED, CONFUSIONS_REMEMBERED, DERIVED_REMEMBERED = 4096, 256, 256
CHOICES_REMEMBERED = 16
MAX_ROWS_DIGITS = 9  # digits of the number in a cut worksheet's key


def _cached(size: int) -> Callable[[LibraryMethod[P, R]], LibraryMethod[P, R]]:
    def decorate(method: LibraryMethod[P, R]) -> LibraryMethod[P, R]:
        name = f"_results_of_{method.__name__}"

        @wraps(method)
        def cached(self: Library, /, *args: P.args, **kwargs: P.kwargs) -> R:
            results = vars(self)  # bypasses the frozen dataclass
            if name not in results:
                results.setdefault(name, lru_cache(size)(partial(method, self)))
            result: R = results[name](*args, **kwargs)
            return result

        return cached

    return decorate


@dataclass(frozen=True)
class Library:
    """Everything that instructors wrote: worksheets and models by key, in reading order, and the wording."""

    worksheets: Mapping[str, Worksheet]
    models: Mapping[str, Model]
    wording: Wording

    def __reduce__(self) -> tuple[type[Library], tuple[object, ...]]:
        """The caches are left out when the library is sent to another process."""
        return Library, (dict(self.worksheets), dict(self.models), self.wording)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics with worksheets, in teaching order."""
        return tuple(dict.fromkeys(sheet.topic for sheet in self.worksheets.values()))

    def worksheet(self, key: str) -> Worksheet:
        """The worksheet with that key, which may also name one in symbols, about another bug, or cut to some rows.

        Raises WorksheetError, which lists the known keys, for any other key.
        """
        return self.worksheets[key] if key in self.worksheets else self._derived(key)

    def find_worksheet(self, key: str) -> Worksheet | None:
        """The worksheet that `worksheet` makes for that key, or None."""
        with suppress(WorksheetError):
            return self.worksheet(key)
        return None

    @_cached(DERIVED_REMEMBERED)
    def _derived(self, key: str) -> Worksheet:
        first, *choices = key.split(CHOICE)
        if first not in self.worksheets:
            problem = _("There is no worksheet “{key}”. Worksheets: {keys}.")
            raise WorksheetError(problem.format(key=key[:60], keys=", ".join(self.worksheets)))
        sheet = self.worksheets[first]
        if choices[0] == SYMBOLS:
            sheet, choices = sheet.in_symbols(), choices[1:]
        elif sheet.deals_bugs and choices[0] in sheet.dealt_bugs:
            sheet, choices = sheet.with_bug(choices[0]), choices[1:]
        match choices:
            case []:
                return sheet
            case [number] if number.isascii() and number.isdecimal() and len(number) <= MAX_ROWS_DIGITS:
                return sheet.cut_by_number(int(number))
        raise sheet.no_such_part(CHOICE.join(choices))

    def with_added(self, worksheets: Iterable[Worksheet] = (), models: Iterable[Model] = ()) -> Library:
        """The library with these worksheets and models added; the same library if there are none."""
        sheets, added = tuple(worksheets), tuple(each for each in models if each.key not in self.models)
        if not sheets and not added:
            return self
        names = tuple((model.key, model.name, model.about) for model in added)  # a key stands for a config
        return _with_added(_Added(id(self), tuple(map(id, sheets)), names, self, sheets, added))

    def model(self, key: str) -> Model:
        """The model with that key; raises WorksheetError, which lists the known keys, for any other."""
        if key not in self.models:
            problem = _("There is no model “{key}”. Models: {keys}.")
            raise WorksheetError(problem.format(key=key[:60], keys=", ".join(self.models)))
        return self.models[key]

    def variant(
        self, worksheet: str, model: str | None = None, tokens: int | None = None, decoder_tokens: int | None = None
    ) -> Variant:
        """A sheet to fill in; model, tokens and decoder tokens are by default the worksheet's."""
        return self._variant(worksheet, model, tokens, decoder_tokens)

    @_cached(VARIANTS_REMEMBERED)
    def _variant(self, worksheet: str, model: str | None, tokens: int | None, decoder_tokens: int | None) -> Variant:
        sheet = self.worksheet(worksheet)
        chosen = self.model(model or sheet.model)
        if tokens is None:
            tokens = possible_tokens(sheet.topic, sheet.architecture_of(chosen), sheet.tokens)
        count = check_topic_tokens(sheet.topic, chosen.architecture, tokens)
        if decoder_tokens is not None:
            check_decoder_tokens(chosen.architecture, count, decoder_tokens)
        changed_decoder_tokens = decoder_tokens if decoder_tokens != sheet.decoder_tokens else None
        variant = Variant(sheet, chosen, count, self.wording, changed_decoder_tokens)
        sheet.check_rows(chosen, variant.table)
        return variant

    @_cached(VARIANTS_REMEMBERED)
    def refusal(self, worksheet: str, model: str) -> str | None:
        """Why a worksheet doesn't fit a model, and what to choose instead; None if it fits.

        Raises WorksheetError for an unknown key.
        """
        sheet, chosen = self.worksheet(worksheet), self.model(model)
        architecture = sheet.architecture_of(chosen)
        tokens = possible_tokens(sheet.topic, architecture, sheet.tokens)
        try:
            sheet.check_rows(chosen, topic_for(sheet.topic, architecture, tokens, sheet.bug_row))
        except TopicError as error:
            return str(error)
        return None

    @_cached(VARIANTS_REMEMBERED)
    def variant_with_sizes(
        self,
        sheet: Worksheet,
        model: str,
        tokens: int,
        decoder_tokens: int | None,
        frozen: FrozenSheet | None = None,
    ) -> Variant:
        """The sheet of a stored worksheet with stored sizes, which aren't checked again."""
        return Variant(sheet, self.model(model), tokens, self.wording, decoder_tokens, frozen=frozen)

    def seeded(self, worksheet: str, seed: int, model: str | None = None, bug_kind: BugKind = "any") -> Variant:
        """The sheet that a seed draws, the same on every machine; about a bug of this kind, if possible."""
        sheet = self.worksheet(worksheet)
        models = (model,) if model else sheet.models or (sheet.model,)
        if dealt := self._bugs_shown(sheet.key, models):
            wanted = dealt if bug_kind == "any" else [bug for bug in dealt if BUGS[bug].is_kind(bug_kind)]
            bug = draw_bug(sheet.whole, wanted or dealt, check_seed(seed))
            sheet, models = self._about(sheet, bug), dealt[bug]
        return self._seeded(sheet.key, models, check_seed(seed))

    @_cached(CONFUSIONS_REMEMBERED)
    def _bugs_shown(self, worksheet: str, models: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
        sheet = self.worksheet(worksheet)
        if sheet.whole not in self.worksheets or not sheet.deals_bugs:
            return {}
        about = {bug: self._about(sheet, bug).key for bug in sheet.dealt_bugs}
        showing = {bug: tuple(each for each in models if self.refusal(about[bug], each) is None) for bug in about}
        return {bug: models for bug, models in showing.items() if models}

    def _about(self, sheet: Worksheet, bug: str) -> Worksheet:
        about = self.worksheets[sheet.whole].with_bug(bug)
        return about if sheet.rows_number is None else about.cut_by_number(sheet.rows_number)

    @_cached(VARIANTS_REMEMBERED)
    def _seeded(self, worksheet: str, models: tuple[str, ...], seed: int) -> Variant:
        whole = self.worksheet(worksheet).whole
        if whole != worksheet and self.find_worksheet(whole):
            drawn = self._seeded(whole, models, seed)
            return self.variant(worksheet, drawn.model.key, drawn.tokens, drawn.decoder_tokens)
        unavoidable = partial(self.unavoidable_confusions, worksheet)
        return draw_variant(worksheet, models, partial(self.variant, worksheet), unavoidable, seed)

    def max_versions(self, worksheet: str, model: str | None = None) -> int:
        """The most different sheets that seeds can draw; raises WorksheetError and TopicError as `seeded` does."""
        sheet = self.worksheet(worksheet)
        models = (model,) if model else sheet.models or (sheet.model,)
        if sheet.dealt_bug and not model:  # not every model shows it
            models = tuple(each for each in models if self.refusal(worksheet, each) is None) or models
        about = {self._about(sheet, bug).key: showing for bug, showing in self._bugs_shown(sheet.key, models).items()}
        each = (about or {sheet.key: models}).items()
        return sum(max_versions(models, partial(self.variant, key)) for key, models in each)

    @_cached(CONFUSIONS_REMEMBERED)
    def unavoidable_confusions(self, worksheet: str, model: str) -> ConfusedPairs:
        """The pairs of misconceptions that a worksheet can't distinguish with this model at any length."""
        return unavoidable_confusions(model, partial(self.variant, worksheet))

    def variant_from_code(self, text: str) -> Variant:
        """The current library's sheet with this code, ignoring case and hyphens."""
        code = read_code(text)
        if code is None:
            problem = _("“{text}” is not the code of a sheet: a code is letters such as {example}.")
            example = self.variant(next(iter(self.worksheets))).code
            raise WorksheetError(problem.format(text=text[:60], example=example))
        if variant := self._variant_from_code(code) or self._variant_in_place(code):
            return variant
        problem = _(
            "No sheet has the code {text}: check it for a typo. "
            "If its worksheet was changed after the sheet was printed, print it again."
        )
        raise WorksheetError(problem.format(text=text[:60]))

    @_cached(VARIANTS_REMEMBERED)
    def _variant_from_code(self, code: Code) -> Variant | None:
        for key in (*self.worksheets, *(key_in(key, "symbols") for key in self.worksheets)):
            sheet = self.find_worksheet(key) if short_hash(key, 3) == code.worksheet else None
            for model in self._models_of(code, sheet.model) if sheet else ():
                if sheet and (variant := self._variant_if_code_fits(code, sheet, model)):
                    return variant
        return None

    def _variant_in_place(self, code: Code) -> Variant | None:
        # The check letters depend on rows that no file has any more. Without them, a mistyped code of a worksheet that
        # shares its letters with an old one would open the wrong sheet.
        if any(short_hash(key, 3) == code.worksheet for key in self.worksheets):
            return None
        for old, new in REPLACED.items():
            models = self._models_of(code, new.model) if short_hash(old, 3) == code.worksheet else []
            for model in models:
                with suppress(TokensError, TopicError, WorksheetError):
                    decoder_tokens = code.decoder_tokens or new.decoder_tokens
                    return self.variant(new.worksheet, model or None, code.tokens, decoder_tokens)
        return None

    def _models_of(self, code: Code, default: str) -> list[str]:
        return [default] if code.model is None else [key for key in self.models if model_letters(key) == code.model]

    def _variant_if_code_fits(self, code: Code, sheet: Worksheet, model: str) -> Variant | None:
        key = sheet.key
        if code.bug is not None:
            key += CHOICE + next((bug for bug in sheet.dealt_bugs if short_hash(bug, BUG_LETTERS) == code.bug), "")
        if code.rows is not None:
            key += f"{CHOICE}{code.rows}"
        try:
            variant = self.variant(key, model, code.tokens, code.decoder_tokens)
        except (TokensError, TopicError, WorksheetError):
            return None
        expected = check_letters(sheet.key, model, variant.tokens, variant.decoder_tokens, variant.key)
        return variant if expected == code.check else None


@dataclass(frozen=True)
class _Added:
    """What is added to a library. A cache that holds the objects keeps their ids from being reused."""

    library_id: int
    worksheet_ids: tuple[int, ...]
    model_names: tuple[tuple[str, str, str], ...]
    library: Library = field(compare=False)
    worksheets: tuple[Worksheet, ...] = field(compare=False)
    models: tuple[Model, ...] = field(compare=False)


@lru_cache(CHOICES_REMEMBERED)
def _with_added(added: _Added) -> Library:
    worksheets = {sheet.key: sheet for sheet in added.worksheets}
    models, library = {model.key: model for model in added.models}, added.library
    return Library({**library.worksheets, **worksheets}, {**library.models, **models}, library.wording)


# A folder of worksheets, models and wording


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
