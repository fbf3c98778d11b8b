"""The settings of a worksheet: from what a file or a form says to a Worksheet, or to what has to be changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.models.architecture import Architecture, TokensError
from app.names import clean_line
from app.sheets.authoring.author_misconceptions import box_problem
from app.sheets.authoring.markdown import check_markdown
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import (
    MAX_REPEATED,
    WORKSHEETS,
    AuthorMisconception,
    Model,
    OpenQuestion,
    Worksheet,
    WorksheetError,
    unknown_name,
)
from app.topics.registry import check_decoder_tokens, check_topic_tokens, possible_tokens, topic_for
from app.topics.requirements import TopicError
from app.translation import N_
from app.translation import gettext as _

_SETTINGS = tuple(each.name for each in fields(Worksheet) if each.name != "key")
_ENTRIES: Mapping[str | int, tuple[str, ...]] = {
    "questions": tuple(each.name for each in fields(OpenQuestion)),
    "misconceptions": tuple(each.name for each in fields(AuthorMisconception)),
}
_NO_SETTING = N_("there is no setting “{setting}”; there are: {known}.")


class SettingError(WorksheetError):
    """A setting that a worksheet cannot have. `path` leads to it, such as ("questions", 0, "text")."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path

    @property
    def setting(self) -> str:
        """The name of the setting: "questions" where it is within one of them."""
        return str(self.path[0])


def read_settings(key: str, values: Mapping[str, Any], models: Mapping[str, Model], wording: Wording) -> Worksheet:
    """The Worksheet of that key with these settings, named as in a worksheet file; raises the first SettingError.

    Refused are settings that are unknown, missing, of the wrong type or name something unknown, rows and boxes that its
    topic does not have, formulas that cannot be read, and a topic or length that one of its models cannot take.
    """
    sheet, errors = check_settings(key, values, models, wording)
    if sheet is None:
        raise errors[0]
    return sheet


def check_settings(
    key: str, values: Mapping[str, Any], models: Mapping[str, Model], wording: Wording
) -> tuple[Worksheet | None, tuple[SettingError, ...]]:
    """The Worksheet of these settings, or None and a SettingError for every setting that cannot stay as it is.

    Settings that depend on others, as rows do on the topic, are checked only once those are right.
    """
    if "key" in values:  # which is the name of the file
        return None, (SettingError(_(_NO_SETTING).format(setting="key", known=", ".join(_SETTINGS)), "key"),)
    try:
        sheet = WORKSHEETS.validate_python({**values, "key": key})
    except ValidationError as error:
        return None, _setting_errors(error)
    for check in (_name_errors, _model_errors, _row_errors, _answer_errors, _own_errors):
        if errors := tuple(check(sheet, models, wording)):
            return None, errors
    return sheet, ()


def free_key(key: str, taken: Collection[str]) -> str:
    """The key, with a number where it is taken: "why-k-2"."""
    return next(each for each in (key, *(f"{key}-{number}" for number in range(2, 999))) if each not in taken)


def _setting_errors(error: ValidationError) -> tuple[SettingError, ...]:
    """An error for each setting that is unknown, of a wrong type or missing, the missing ones last."""
    problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] == "missing")
    first_by_path = {problem["loc"]: problem for problem in reversed(problems)}
    return tuple(_setting_error(first_by_path[path]) for path in reversed(first_by_path))


def _setting_error(problem: ErrorDetails) -> SettingError:
    """What is wrong with one setting, as a sentence."""
    context = problem.get("ctx", {})
    path = problem["loc"] or (context["setting"],)
    is_within = path[0] in _ENTRIES and len(path) > 1
    # An entry of a list of names has no name of its own.
    shown = path if is_within or not isinstance(path[-1], int) else path[:1]
    name = ".".join(str(part + 1) if isinstance(part, int) else part for part in shown)
    if problem["type"] == "sentence":
        sentence = context["sentence"]
    elif problem["type"] == "unexpected_keyword_argument":
        sentence = _(_NO_SETTING).replace("{known}", ", ".join(_ENTRIES[path[0]] if is_within else _SETTINGS))
    elif is_within:
        sentence = _("{setting} is missing.")
    else:
        sentence = _("{setting} is missing: a worksheet needs title, model, topic, tokens and rows.")
    return SettingError(sentence.replace("{setting}", clean_line(name, MAX_REPEATED)), *path)


def _name_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error, which lists the known names, for each model that is unknown."""
    for setting, model in (("model", sheet.model), *(("models", each) for each in sheet.models)):
        if model not in models:
            yield SettingError(unknown_name("model", models, model), setting)


def _model_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error for the topic, and for each number of tokens, that one of the sheet's models cannot take."""
    lengths = {name: getattr(sheet, name) for name in ("tokens", "tokens_from", "tokens_to")}
    for model in dict.fromkeys((sheet.model, *sheet.models)):
        architecture, setting = sheet.architecture_of(models[model]), "topic" if model == sheet.model else "models"
        try:
            table = topic_for(sheet.topic, architecture, sheet.tokens)
        except TopicError as error:
            yield SettingError(str(error), setting)
            continue
        if sheet.tokens_are == "columns" and table.has_more_sides and model == sheet.model:
            problem = _("tokens_are must be “rows” on a sheet about tensors with more than two dimensions.")
            yield SettingError(problem, "tokens_are")
        for name, length in lengths.items():
            if length is not None:
                yield from _refused(name, partial(check_topic_tokens, sheet.topic, architecture, length))
    if sheet.decoder_tokens is not None:
        own = models[sheet.model].architecture
        yield from _refused("decoder_tokens", partial(check_decoder_tokens, own, sheet.tokens, sheet.decoder_tokens))


def _refused(setting: str, check: Callable[[], object]) -> Iterator[SettingError]:
    """The refusal of a number of tokens, if it is refused."""
    try:
        check()
    except TokensError as error:
        yield SettingError(str(error), setting)


def _row_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error unless the rows are some that can be asked, each once, and names, hints and points belong to such.

    The topic's table for the sheet's own model decides which rows there are; a row without a name in the wording cannot
    be asked. A row that could be asked and is not keeps its name, hint and points.
    """
    possible = possible_rows(sheet.topic, sheet.architecture_of(models[sheet.model]), sheet.tokens, wording)
    if not sheet.rows or not all(row in possible and sheet.rows.count(row) == 1 for row in sheet.rows):
        yield SettingError(_("rows must be some of {rows}, each once.").format(rows=", ".join(possible)), "rows")
    for setting in ("row_names", "row_hints", "row_points"):
        for row in getattr(sheet, setting):
            if row not in possible:
                problem = _("{setting} has no row “{row}”: use some of {rows}.")
                words = {"setting": setting, "row": clean_line(row, MAX_REPEATED), "rows": ", ".join(possible)}
                yield SettingError(problem.format(**words), setting, row)
    if sheet.rows and not any(sheet.row_points.get(row, 1) for row in sheet.rows):
        yield SettingError(_("row_points must leave at least one row with points."), "row_points")


def _answer_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error for each model for which the worksheet asks nothing, or something that symbols cannot say."""
    for model in dict.fromkeys((sheet.model, *sheet.models)):
        tokens = possible_tokens(sheet.topic, sheet.architecture_of(models[model]), sheet.tokens)
        try:
            sheet.check_rows(models[model], topic_for(sheet.topic, sheet.architecture_of(models[model]), tokens))
        except TopicError as error:
            yield SettingError(str(error), "answers" if model == sheet.model else "models")


def possible_rows(topic: str, architecture: Architecture, tokens: int, wording: Wording) -> tuple[str, ...]:
    """The rows that a worksheet on a topic can ask for with a model, in the order of the topic's table.

    `architecture` is the model's as the worksheet teaches it.
    """
    named = wording.topics[topic].rows
    return tuple(row for row in topic_for(topic, architecture, tokens).asked if row in named)


def _own_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error for each hidden fact, key, box and formula that the sheet cannot have; a key can be there once."""
    parts = wording.topics[sheet.topic].description_parts
    if not all(part in parts and sheet.hidden_facts.count(part) == 1 for part in sheet.hidden_facts):
        problem = _("hidden_facts must be some of {parts}, each once.")
        yield SettingError(problem.format(parts=", ".join(parts)), "hidden_facts")
    for setting in ("introduction", "own_assumptions", "footnote"):
        yield from _unreadable_markdown(getattr(sheet, setting), setting)
    for number, own in enumerate(sheet.misconceptions):
        yield from _unreadable_markdown(own.explanation, "misconceptions", number, "explanation")
    yield from _repeated_keys("questions", [question.key for question in sheet.questions])
    yield from _repeated_keys("misconceptions", [own.key for own in sheet.misconceptions])
    variant = Variant(sheet, models[sheet.model], sheet.tokens, wording)
    for number, own in enumerate(sheet.misconceptions):
        for box, formula in own.boxes.items():
            if problem := box_problem(variant, box, formula):
                yield SettingError(problem, "misconceptions", number, "boxes", box)


def _unreadable_markdown(text: str, *path: str | int) -> Iterator[SettingError]:
    """An error if a formula in a text in Markdown cannot be read."""
    try:
        check_markdown(text)
    except WorksheetError as error:
        yield SettingError(str(error), *path)


def _repeated_keys(setting: str, keys: Sequence[str]) -> Iterator[SettingError]:
    """An error for each entry of a list that has the key of an earlier one."""
    for number, key in enumerate(keys):
        if key in keys[:number]:
            problem = _("{setting}.{number} is there twice: say something else, or delete one.")
            yield SettingError(problem.format(setting=setting, number=number + 1), setting, number)
