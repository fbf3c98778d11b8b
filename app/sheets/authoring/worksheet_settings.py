"""The settings of a worksheet: from what a file or a form says to a Worksheet, and back.

>>> settings = {"title": "T", "model": "m", "topic": "single-head", "tokens": 5, "rows": ["input"], "row_points": {}}
>>> WorksheetFile.model_validate(settings).as_worksheet("mine").rows
('input',)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from app.models.architecture import Architecture, TokensError
from app.names import clean_line, normal_form
from app.shapes.requirements import TopicError
from app.shapes.table import MATRIX_FIELDS
from app.shapes.topics import TOPICS, check_decoder_tokens, check_topic_tokens, possible_tokens, topic_for
from app.sheets.authoring.markdown import check_markdown
from app.sheets.authoring.own_misconceptions import box_problem
from app.sheets.notation import NOTATIONS
from app.sheets.variant import Variant
from app.sheets.wording import Wording
from app.sheets.worksheet import (
    MAX_FORMULA,
    MAX_MARKDOWN,
    MAX_MISCONCEPTION_BOXES,
    MAX_MISCONCEPTION_KEY,
    MAX_MISCONCEPTION_NAME,
    MAX_OWN_MISCONCEPTIONS,
    MAX_POINTS,
    MAX_QUESTIONS,
    MAX_SHORT_TEXT,
    OWN_MISCONCEPTION_PREFIX,
    Model,
    OpenQuestion,
    OwnMisconception,
    Worksheet,
    WorksheetError,
)
from app.translation import gettext as _

ANSWERS = ("numbers", "letters")
MAX_TOLERANCE = 0.1  # with more, the number of a mistake could count as right
_MAX_SLUG = 40
MAX_NAMES = 500  # of rows, models or facts, more than there are
_REPEATED_CHARACTERS = 60  # of an unknown name, in the sentence that refuses it
# They change the order of the letters around them, and so what a reader sees.
_BIDI_CONTROLS = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of surrogate pairs, separators of lines
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SettingError(WorksheetError):
    """A setting that a worksheet cannot have. `path` leads to it, such as ("questions", 0, "text")."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path

    @property
    def setting(self) -> str:
        """The name of the setting: "questions" where it is within one of them."""
        return str(self.path[0])


def _checked_text(text: str, longest: int, *, shortest: int = 1, lines: bool = False) -> str:
    """The text without space around it, with one kind of line break; raises what pydantic makes a ValidationError."""
    text = text.replace("\r\n", "\n").strip()
    if not shortest <= len(text) <= longest:
        raise PydanticCustomError("length", "too short or too long")
    for character in text:
        if _is_unseen(character) and not (lines and character in "\n\t"):
            raise PydanticCustomError("unseen", "{code}", {"code": f"U+{ord(character):04X}"})
    return text


def _is_unseen(character: str) -> bool:
    """Whether a character shows nothing itself, or changes how others are shown."""
    return unicodedata.category(character) in _UNSEEN or character in _BIDI_CONTROLS


def _checked_key(key: str, longest: int = MAX_SHORT_TEXT, prefix: str = "") -> str:
    """A key as it is; "" stands for the one that is derived from the text. Raises what becomes a ValidationError."""
    if key and not (key.startswith(prefix) and len(key) <= longest and _KEY.fullmatch(key)):
        raise PydanticCustomError("key", "no key")
    return key


_ShortText = Annotated[str, AfterValidator(partial(_checked_text, longest=MAX_SHORT_TEXT))]
_Markdown = Annotated[str, AfterValidator(partial(_checked_text, longest=MAX_MARKDOWN, shortest=0, lines=True))]
_Names = Annotated[list[str], Field(max_length=MAX_NAMES)]
_Points = Annotated[int, Field(ge=0, le=MAX_POINTS)]
# What is said of a setting of another kind: whole sentences, in which only {setting} is still to be filled in.
_HERE = "{setting}"
_TEXT, _BOOLEAN = _("{setting} must be a text."), _("{setting} must be true or false.")
_WHOLE_NUMBER, _TEXTS = _("{setting} must be a whole number."), _("{setting} must be a list of texts.")
_ONE_LINE = _("{setting} must be a text of 1 to {most} characters on one line.")
_SHORT_TEXT = _ONE_LINE.format(setting=_HERE, most=MAX_SHORT_TEXT)
_SHARE = _("{setting} must be a number from 0 to {most}.")
_POINTS = _("{setting} must be a whole number from 0 to {most}.").format(setting=_HERE, most=MAX_POINTS)
_QUESTIONS = _("{setting} must be a list of at most {most} questions.").format(setting=_HERE, most=MAX_QUESTIONS)
_MISCONCEPTIONS = _("{setting} must be a list of at most {most} misconceptions.")
_MARKDOWN = _("{setting} must be a text of at most {most:,} characters.").format(setting=_HERE, most=MAX_MARKDOWN)
_STRICT = ConfigDict(strict=True, extra="forbid")


class OpenQuestionFile(BaseModel):
    """A free-text question of a worksheet file; its key follows from its text where none is given."""

    model_config = _STRICT

    key: Annotated[str, AfterValidator(_checked_key)] = Field(
        default="", description=_("{setting} must be lower-case letters and digits with hyphens between them.")
    )
    text: _ShortText = Field(description=_SHORT_TEXT)

    def as_question(self) -> OpenQuestion:
        """The same as a Worksheet holds it."""
        return OpenQuestion(self.key or derived_key(self.text), self.text)


class OwnMisconceptionFile(BaseModel):
    """A misconception of a worksheet file; its key follows from its name where none is given."""

    model_config = _STRICT

    key: Annotated[
        str, AfterValidator(partial(_checked_key, longest=MAX_MISCONCEPTION_KEY, prefix=OWN_MISCONCEPTION_PREFIX))
    ] = Field(
        default="",
        description=_(
            "{setting} must be “{prefix}” and lower-case letters and digits with hyphens, at most {most} characters."
        ).format(setting=_HERE, prefix=OWN_MISCONCEPTION_PREFIX, most=MAX_MISCONCEPTION_KEY),
    )
    name: Annotated[str, AfterValidator(partial(_checked_text, longest=MAX_MISCONCEPTION_NAME))] = Field(
        description=_ONE_LINE.format(setting=_HERE, most=MAX_MISCONCEPTION_NAME)
    )
    boxes: dict[str, Annotated[str, AfterValidator(partial(_checked_text, longest=MAX_FORMULA))]] = Field(
        min_length=1,
        max_length=MAX_MISCONCEPTION_BOXES,
        description=_(
            "{setting} must be a table of 1 to {boxes} boxes with a formula each, of at most {most} characters."
        ).format(setting=_HERE, boxes=MAX_MISCONCEPTION_BOXES, most=MAX_FORMULA),
    )
    question: _ShortText = Field(description=_SHORT_TEXT)
    explanation: Annotated[str, AfterValidator(partial(_checked_text, longest=MAX_MARKDOWN, lines=True))] = Field(
        description=_("{setting} must be a text of 1 to {most:,} characters.").format(setting=_HERE, most=MAX_MARKDOWN)
    )

    def as_misconception(self) -> OwnMisconception:
        """The same as a Worksheet holds it."""
        key = self.key or derived_key(self.name, OWN_MISCONCEPTION_PREFIX)
        return OwnMisconception(key, self.name, tuple(self.boxes.items()), self.question, self.explanation)


class WorksheetFile(BaseModel):
    """The settings of a worksheet file; a description is the sentence that refuses another kind of value."""

    model_config = _STRICT

    title: _ShortText = Field(description=_SHORT_TEXT)
    model: str = Field(description=_TEXT)
    topic: str = Field(description=_TEXT)
    tokens: int = Field(description=_WHOLE_NUMBER)
    rows: _Names = Field(description=_TEXTS)
    notation: str = Field(default="classic", description=_TEXT)
    kv_head_per_query_head: bool = Field(default=False, description=_BOOLEAN)
    decoder_tokens: int | None = Field(default=None, description=_WHOLE_NUMBER)
    models: _Names = Field(default_factory=list, description=_TEXTS)
    answers: str = Field(default="numbers", description=_TEXT)
    tokens_are: str = Field(default="rows", description=_TEXT)
    follow_share: float = Field(default=0.5, ge=0, le=1, description=_SHARE.format(setting=_HERE, most=1))
    tolerance: float = Field(
        default=0.0,
        ge=0,
        le=MAX_TOLERANCE,
        description=_SHARE.format(setting=_HERE, most=MAX_TOLERANCE),
    )
    tokens_from: int | None = Field(default=None, description=_WHOLE_NUMBER)
    tokens_to: int | None = Field(default=None, description=_WHOLE_NUMBER)
    hidden_facts: _Names = Field(default_factory=list, description=_TEXTS)
    introduction: _Markdown = Field(default="", description=_MARKDOWN)
    own_assumptions: _Markdown = Field(default="", description=_MARKDOWN)
    footnote: _Markdown = Field(default="", description=_MARKDOWN)
    row_names: dict[str, _ShortText] = Field(default_factory=dict, description=_SHORT_TEXT)
    row_hints: dict[str, _ShortText] = Field(default_factory=dict, description=_SHORT_TEXT)
    row_points: dict[str, _Points] = Field(
        default_factory=dict,
        description=_POINTS,
    )
    show_hints: bool = Field(default=True, description=_BOOLEAN)
    show_drawing: bool = Field(default=True, description=_BOOLEAN)
    show_mismatches: bool = Field(default=True, description=_BOOLEAN)
    questions: list[OpenQuestionFile] = Field(
        default_factory=list,
        max_length=MAX_QUESTIONS,
        description=_("{setting} must be a list of at most {most} questions.").format(
            setting=_HERE, most=MAX_QUESTIONS
        ),
    )
    misconceptions: list[OwnMisconceptionFile] = Field(
        default_factory=list,
        max_length=MAX_OWN_MISCONCEPTIONS,
        description=_("{setting} must be a list of at most {most} misconceptions.").format(
            setting=_HERE, most=MAX_OWN_MISCONCEPTIONS
        ),
    )

    def as_worksheet(self, key: str) -> Worksheet:
        """The same settings as a Worksheet of that key; what has no order, such as points, is sorted."""
        points = {row: points for row, points in self.row_points.items() if points != 1}
        return Worksheet(
            key,
            **{
                **dict(self),
                "rows": tuple(self.rows),
                "models": tuple(self.models),
                "hidden_facts": tuple(sorted(self.hidden_facts)),
                "row_names": tuple(sorted(self.row_names.items())),
                "row_hints": tuple(sorted(self.row_hints.items())),
                "row_points": tuple(sorted(points.items())),
                "questions": tuple(question.as_question() for question in self.questions),
                "misconceptions": tuple(each.as_misconception() for each in self.misconceptions),
            },
        )


_NESTED: Mapping[str, type[BaseModel]] = {"questions": OpenQuestionFile, "misconceptions": OwnMisconceptionFile}


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
    try:
        sheet = WorksheetFile.model_validate(dict(values)).as_worksheet(key)
    except ValidationError as error:
        return None, _setting_errors(error)
    for check in (_name_errors, _model_errors, _row_errors, _answer_errors, _own_errors):
        if errors := tuple(check(sheet, models, wording)):
            return None, errors
    return sheet, ()


def settings_of(worksheet: Worksheet) -> dict[str, Any]:
    """The settings as a worksheet file has them: those that every worksheet needs, and those that are not the default.

    `read_settings` makes an equal Worksheet of them, also after they were TOML or JSON.
    """
    values = {field.name: getattr(worksheet, field.name) for field in fields(Worksheet) if field.name != "key"}
    defaults = {field.name: field.default for field in fields(Worksheet) if field.default is not MISSING}
    changed = {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}
    for name in ("row_names", "row_hints", "row_points"):
        if name in changed:
            changed[name] = dict(changed[name])
    if worksheet.questions:
        changed["questions"] = [asdict(question) for question in worksheet.questions]
    if worksheet.misconceptions:
        changed["misconceptions"] = [{**asdict(own), "boxes": dict(own.boxes)} for own in worksheet.misconceptions]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def derived_key(text: str, prefix: str = "") -> str:
    """The key of a question or misconception by its text or name, the same wherever the same text is.

    >>> derived_key("Heads are as wide as d", "own-")
    'own-heads-are-as-wide-as-d'
    """
    letters = "".join(c for c in normal_form("NFKD", text.casefold()) if not unicodedata.combining(c))
    slug = "-".join(re.findall("[a-z0-9]+", letters))
    is_whole = len(slug) <= _MAX_SLUG and not re.search(r"[^\W_a-z0-9]", letters) and slug
    if not is_whole:  # what the slug leaves out tells texts apart, too
        slug = f"{slug[:_MAX_SLUG]}-{sha256(text.encode()).hexdigest()[:8]}".replace("--", "-").strip("-")
    return prefix + slug


def free_key(key: str, taken: Collection[str]) -> str:
    """The key, with a number where it is taken: "why-k-2"."""
    return next(each for each in (key, *(f"{key}-{number}" for number in range(2, 999))) if each not in taken)


def _setting_errors(error: ValidationError) -> tuple[SettingError, ...]:
    """An error for each setting that is unknown, of a wrong type or missing, the missing ones last."""
    problems = sorted(error.errors(), key=lambda problem: problem["type"] == "missing")
    first_by_path = {problem["loc"]: problem for problem in reversed(problems)}
    return tuple(SettingError(_setting_message(first_by_path[path]), *path) for path in reversed(first_by_path))


def _setting_message(problem: ErrorDetails) -> str:
    """What is wrong with one setting, as a sentence."""
    path = problem["loc"]
    is_entry = len(path) > 1 and path[0] in _NESTED
    is_nested = len(path) > 2 and is_entry
    # An entry of a list of names has no name of its own.
    shown = path if is_entry or not isinstance(path[-1], int) else path[:1]
    name = ".".join(str(part + 1) if isinstance(part, int) else part for part in shown)
    name = clean_line(name, _REPEATED_CHARACTERS)
    known = (_NESTED[str(path[0])] if is_nested else WorksheetFile).model_fields
    if problem["type"] == "extra_forbidden":
        sentence = _("there is no setting “{setting}”; there are: {known}.")
        return sentence.format(setting=name, known=", ".join(known))
    if problem["type"] == "missing" and not is_nested:
        return _("{setting} is missing: a worksheet needs title, model, topic, tokens and rows.").format(setting=name)
    if problem["type"] == "unseen":
        sentence = _("{setting} has a character that cannot be seen ({code}): delete it.")
        return sentence.format(setting=name, code=problem["ctx"]["code"])
    if is_entry and not is_nested:
        fields = ", ".join(_NESTED[str(path[0])].model_fields)
        return _("{setting} must be a table with {fields}.").format(setting=name, fields=fields)
    return str(known[str(path[2] if is_nested else path[0])].description).format(setting=name)


def _name_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error, which lists the known names, for each setting with an unknown name."""
    yield from _unknown("topic", TOPICS, sheet.topic)
    yield from _unknown("model", models, sheet.model)
    yield from _unknown("notation", NOTATIONS, sheet.notation)
    yield from _unknown("answers", ANSWERS, sheet.answers)
    yield from _unknown("tokens_are", MATRIX_FIELDS, sheet.tokens_are)
    for model in sheet.models:
        yield from _unknown("model", models, model, path="models")


def _unknown(setting: str, known: Iterable[str], name: str, path: str = "") -> Iterator[SettingError]:
    """An error unless a name is one of those that are known."""
    names = list(known)
    if name not in names:
        problem = _("{setting} cannot be “{name}”: use one of {names}.")
        words = {"name": clean_line(name, _REPEATED_CHARACTERS), "setting": setting, "names": ", ".join(names)}
        yield SettingError(problem.format(**words), path or setting)


def _model_errors(sheet: Worksheet, models: Mapping[str, Model], wording: Wording) -> Iterator[SettingError]:
    """An error for the topic, and for each number of tokens, that one of the sheet's models cannot take."""
    if (sheet.tokens_from is None) != (sheet.tokens_to is None):
        missing = "tokens_to" if sheet.tokens_to is None else "tokens_from"
        yield SettingError(
            _("{setting} is missing: a range has a first and a last number.").format(setting=missing), missing
        )
    elif sheet.tokens_from is not None and sheet.tokens_to is not None and sheet.tokens_from > sheet.tokens_to:
        yield SettingError(_("tokens_to must be at least as much as tokens_from."), "tokens_to")
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
        for row in dict(getattr(sheet, setting)):
            if row not in possible:
                problem = _("{setting} has no row “{row}”: use some of {rows}.")
                words = {"setting": setting, "row": clean_line(row, _REPEATED_CHARACTERS), "rows": ", ".join(possible)}
                yield SettingError(problem.format(**words), setting, row)
    points = dict(sheet.row_points)
    if sheet.rows and not any(points.get(row, 1) for row in sheet.rows):
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
        for box, formula in own.boxes:
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
