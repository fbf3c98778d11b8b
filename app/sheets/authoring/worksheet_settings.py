"""The settings of a worksheet, from a file or a form: made into a Worksheet, or into errors to correct."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.bugs.bank import Bug
from app.models.architecture import Architecture, TokensError
from app.names import clean_line
from app.sheets.authoring.author_misconceptions import box_problem
from app.sheets.authoring.markdown import check_markdown
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import (
    MAX_REPEATED,
    NOT_SET,
    WORKSHEETS,
    AuthorMisconception,
    Model,
    OpenQuestion,
    Worksheet,
    WorksheetError,
    unknown_name,
)
from app.topics.find_the_bug import ROWS, BugTable
from app.topics.registry import TOPICS, check_decoder_tokens, check_topic_tokens, possible_tokens, topic_for
from app.topics.requirements import TopicError
from app.translation import N_
from app.translation import gettext as _

_SETTINGS = tuple(each.name for each in fields(Worksheet) if each.name not in NOT_SET)
_ENTRIES: Mapping[str | int, tuple[str, ...]] = {
    "questions": tuple(each.name for each in fields(OpenQuestion)),
    "misconceptions": tuple(each.name for each in fields(AuthorMisconception)),
}
_NO_SETTING = N_("there is no setting “{setting}”; the settings are: {known}.")


class SettingError(WorksheetError):
    """A setting that a worksheet can't have. `path` leads to it, such as ("questions", 0, "text")."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path

    @property
    def setting(self) -> str:
        """The name of the setting: "questions" for anything within one of its entries."""
        return str(self.path[0])


def read_settings(key: str, values: Mapping[str, Any], models: Mapping[str, Model], wording: Wording) -> Worksheet:
    """The Worksheet with these settings, named as in a worksheet file.

    Raises the first SettingError that `check_settings` finds.
    """
    sheet, errors = check_settings(key, values, models, wording)
    if sheet is None:
        raise errors[0]
    return sheet


def check_settings(
    key: str, values: Mapping[str, Any], models: Mapping[str, Model], wording: Wording
) -> tuple[Worksheet | None, tuple[SettingError, ...]]:
    """The Worksheet with these settings, or None and a SettingError for every setting that must change."""
    if name := next((each for each in NOT_SET if each in values), ""):
        return None, (SettingError(_(_NO_SETTING).format(setting=name, known=", ".join(_SETTINGS)), name),)
    try:
        sheet = WORKSHEETS.validate_python({**values, "key": key})
    except ValidationError as error:
        problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] == "missing")
        first_by_path = {problem["loc"]: problem for problem in reversed(problems)}
        return None, tuple(_setting_error(first_by_path[path]) for path in reversed(first_by_path))
    for check in (_name_errors, _model_errors, _row_errors, _answer_errors, _author_errors):
        if errors := tuple(check(sheet, models, wording)):
            return None, errors
    return sheet, ()


def free_key(key: str, taken: Collection[str]) -> str:
    """The key, or the first of "KEY-2", "KEY-3" … that isn't in `taken`."""
    return next(each for each in (key, *(f"{key}-{number}" for number in range(2, 999))) if each not in taken)


def _setting_error(problem: ErrorDetails) -> SettingError:
    context = problem.get("ctx", {})
    path = problem["loc"] or (context["setting"],)
    is_within = path[0] in _ENTRIES and len(path) > 1
    # An error in an entry of a list of names belongs to the list.
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
    for setting, model in (("model", sheet.model), *(("models", each) for each in sheet.models)):
        if model not in models:
            yield SettingError(unknown_name("model", models, model), setting)


def _model_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    lengths = {name: getattr(sheet, name) for name in ("tokens", "tokens_from", "tokens_to")}
    for model in dict.fromkeys((sheet.model, *sheet.models)):
        architecture, setting = sheet.architecture_of(models[model]), "topic" if model == sheet.model else "models"
        try:
            topic_for(sheet.topic, architecture, sheet.tokens, sheet.bug_row)
        except TopicError as error:
            yield SettingError(str(error), setting)
            continue
        for name, length in lengths.items():
            if length is not None:
                yield from _refused(name, partial(check_topic_tokens, sheet.topic, architecture, length))
    if sheet.decoder_tokens is not None:
        check = partial(check_decoder_tokens, models[sheet.model].architecture, sheet.tokens, sheet.decoder_tokens)
        yield from _refused("decoder_tokens", check)


def _refused(setting: str, check: Callable[[], object]) -> Iterator[SettingError]:
    try:
        check()
    except TokensError as error:
        yield SettingError(str(error), setting)


def _row_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    architecture = sheet.architecture_of(models[sheet.model])
    possible = possible_rows(sheet.topic, architecture, sheet.tokens, wording, sheet.bug_row)
    # A row may be one that only other models have: it is asked once the sheet is about one of them.
    known = TOPICS[sheet.topic].rows.intersection(wording.topics[sheet.topic].rows).union(possible)
    if not sheet.rows:
        yield SettingError(_("rows must name at least one row: a sheet without rows asks nothing."), "rows")
    elif (
        not known.issuperset(sheet.rows) or len(set(sheet.rows)) < len(sheet.rows) or not set(possible) & {*sheet.rows}
    ):
        yield SettingError(_("rows must be some of {rows}, each once.").format(rows=", ".join(possible)), "rows")
    for setting in ("row_hints", "row_points"):
        for row in getattr(sheet, setting):
            if row not in possible:
                problem = _("{setting} has no row “{row}”: use some of {rows}.")
                words = {"setting": setting, "row": clean_line(row, MAX_REPEATED), "rows": ", ".join(possible)}
                yield SettingError(problem.format(**words), setting, row)
    if sheet.rows and not any(sheet.row_points.get(row, 1) for row in sheet.rows):
        yield SettingError(_("row_points must leave at least one row with points."), "row_points")


def _answer_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    for model in dict.fromkeys((sheet.model, *sheet.models)):
        architecture = sheet.architecture_of(models[model])
        tokens = possible_tokens(sheet.topic, architecture, sheet.tokens)
        try:
            sheet.check_rows(models[model], topic_for(sheet.topic, architecture, tokens, sheet.bug_row))
        except TopicError as error:
            yield SettingError(str(error), "answers" if model == sheet.model else "models")


def possible_rows(
    topic: str, architecture: Architecture, tokens: int, wording: Wording, bug: Bug | None = None
) -> tuple[str, ...]:
    """The rows that a worksheet on a topic can ask for with a model, in the order of the topic's table."""
    table = topic_for(topic, architecture, tokens, bug)
    rows = ROWS if isinstance(table, BugTable) else table.askable
    return tuple(row for row in rows if row in wording.topics[topic].rows)


def _author_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    for setting in ("introduction", "footnote"):
        yield from _unreadable_markdown(getattr(sheet, setting), setting)
    for number, misconception in enumerate(sheet.misconceptions):
        yield from _unreadable_markdown(misconception.explanation, "misconceptions", number, "explanation")
    yield from _repeated_keys("questions", [question.key for question in sheet.questions])
    yield from _repeated_keys("misconceptions", [misconception.key for misconception in sheet.misconceptions])
    variant = Variant(sheet, models[sheet.model], sheet.tokens, wording)
    for number, misconception in enumerate(sheet.misconceptions):
        for box, formula in misconception.boxes.items():
            if problem := box_problem(variant, box, formula):
                yield SettingError(problem, "misconceptions", number, "boxes", box)


def _unreadable_markdown(text: str, *path: str | int) -> Iterator[SettingError]:
    try:
        check_markdown(text)
    except WorksheetError as error:
        yield SettingError(str(error), *path)


def _repeated_keys(setting: str, keys: Sequence[str]) -> Iterator[SettingError]:
    for number, key in enumerate(keys):
        if key in keys[:number]:
            problem = _("{setting}.{number} is there twice: say something else, or delete one.")
            yield SettingError(problem.format(setting=setting, number=number + 1), setting, number)
