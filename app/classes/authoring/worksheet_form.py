"""The form of a worksheet: typed texts, and the settings of a worksheet file that they mean.

The texts are kept as typed, so that the form can be shown again unchanged. What has no field in the form, such as a
question's key, is carried along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.bugs.bank import BUGS
from app.models.architecture import MAX_TOKENS
from app.sheets.authoring.worksheet_settings import (
    SettingError,
    check_settings,
    free_key,
    possible_rows,
)
from app.sheets.library import Library
from app.sheets.worksheet import (
    AUTHOR_MISCONCEPTION_PREFIX,
    MAX_AUTHOR_MISCONCEPTIONS,
    MAX_FORMULA,
    MAX_MARKDOWN,
    MAX_MISCONCEPTION_BOXES,
    MAX_MISCONCEPTION_NAME,
    MAX_POINTS,
    MAX_QUESTIONS,
    MAX_SHORT_TEXT,
    Worksheet,
    derived_key,
)
from app.topics.registry import TOPICS
from app.topics.requirements import TopicError
from app.translation import gettext as _

T = TypeVar("T")
LINE_FIELDS = (
    "title", "model", "topic", "bug", "bugs",
    "tokens", "tokens_from", "tokens_to", "decoder_tokens", "notation", "answers",
    "sentence", "checkpoint", "layer", "head",
)  # fmt: skip
MARKDOWN_FIELDS = ("introduction", "footnote")
SIMPLIFIED = "kv_head_per_query_head"  # a check box: "yes" or ""
_NUMBERS = {"tokens": 100, "tokens_from": 12, "tokens_to": 200, "decoder_tokens": 60}  # each with an example
_PLACES = ("layer", "head")  # a real head's, counted from 0
_FIRST_TEXTS = {"questions": "text", "misconceptions": "name"}  # the first field of each entry of a list
_MAX_DIGITS, _MAX_ECHOED = 9, 40


class WorksheetFormError(ValueError):
    """A field that can't be used: its name in the form, such as "questions.0.text", and the sentence about it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True)
class RowTexts:
    """A row that the sheet can ask for: whether it does, and the points and hint that were typed."""

    key: str
    asked: bool
    points: str = ""
    hint: str = ""


@dataclass(frozen=True)
class QuestionTexts:
    """A free-text question, and the answer for teachers; `key` is empty for a new one."""

    key: str = ""
    text: str = ""
    model_answer: str = ""


@dataclass(frozen=True)
class MisconceptionTexts:
    """An author's misconception; `key` is empty for a new one, `boxes` has lines such as "queries.columns = H*d"."""

    key: str = ""
    name: str = ""
    boxes: str = ""
    question: str = ""
    explanation: str = ""


@dataclass(frozen=True)
class EditorTexts:
    """The form of a worksheet as texts. `fields` holds LINE_FIELDS, MARKDOWN_FIELDS and SIMPLIFIED."""

    fields: Mapping[str, str]
    rows: tuple[RowTexts, ...] = ()
    rows_of: str = ""
    models: tuple[str, ...] = ()
    questions: tuple[QuestionTexts, ...] = ()
    misconceptions: tuple[MisconceptionTexts, ...] = ()

    def with_fields(self, **changed: str) -> EditorTexts:
        return replace(self, fields={**self.fields, **changed})


# From texts to a worksheet


def read_worksheet_form(library: Library, key: str, texts: EditorTexts) -> Worksheet:
    """The worksheet that a form's texts describe, under this key."""
    settings = _settings(library, texts)
    worksheet, errors = check_settings(key, settings, library.models, library.wording)
    if worksheet is None:
        raise _form_error(errors[0], settings)
    return worksheet


def automatic_title(library: Library, topic: str, model: str) -> str:
    """A title for a worksheet without one, such as "One head of LLaMA 7B", cut to MAX_SHORT_TEXT characters."""
    words, known = library.wording.topics.get(topic), library.models.get(model)
    if known is None or words is None:
        return ""
    return words.title_for(known.name, known.architecture)[:MAX_SHORT_TEXT].strip()


def complete_rows(library: Library, texts: EditorTexts) -> EditorTexts:
    """The texts with all rows of the topic and model, after either changed; `rows_of` becomes the topic."""
    possible = rows_of_topic(library, texts)
    if not possible:
        return texts
    known = {row.key: row for row in texts.rows if row.key in possible}
    order = list(known) if texts.rows_of == texts.fields["topic"] else list(possible)
    rows = [known.get(key) or RowTexts(key, asked=True) for key in _with_missing(order, possible)]
    if texts.rows_of != texts.fields["topic"]:
        rows = [replace(row, asked=True) for row in rows]
    return replace(texts, rows=tuple(rows), rows_of=texts.fields["topic"])


def rows_of_topic(library: Library, texts: EditorTexts) -> tuple[str, ...]:
    """The keys of the rows that a sheet on this topic, model and bug can ask for, in the table's order."""
    topic, model = texts.fields["topic"], library.models.get(texts.fields["model"])
    if topic not in TOPICS or model is None:
        return ()
    architecture = model.architecture_taught(texts.fields[SIMPLIFIED] == "yes")
    tokens = texts.fields["tokens"]
    length = int(tokens) if _is_whole(tokens) and 0 < int(tokens) <= MAX_TOKENS else _NUMBERS["tokens"]
    try:
        return possible_rows(topic, architecture, length, library.wording, BUGS.get(bug_in(texts.fields)))
    except TopicError:
        return ()


def bug_in(fields: Mapping[str, str]) -> str:
    """The bug named in the form, or the topic's first bug; "" for a topic without bugs."""
    bugs = TOPICS[fields["topic"]].bugs if fields["topic"] in TOPICS else ()
    return fields["bug"] if fields["bug"] in bugs else next(iter(bugs), "")


def _with_missing(order: Sequence[str], possible: Sequence[str]) -> list[str]:
    """The keys in order, with each missing key of `possible` inserted after the nearest one before it.

    >>> _with_missing(["scores", "input"], ["input", "queries", "scores"])
    ['scores', 'input', 'queries']
    """
    complete = list(order)
    for place, key in enumerate(possible):
        if key not in complete:
            before = next((each for each in reversed(possible[:place]) if each in complete), None)
            complete.insert(complete.index(before) + 1 if before else 0, key)
    return complete


def _settings(library: Library, texts: EditorTexts) -> dict[str, Any]:
    fields = texts.fields
    title = _short(fields["title"], "title") or automatic_title(library, fields["topic"], fields["model"])
    settings: dict[str, Any] = {name: fields[name] for name in ("model", "topic", "notation", "answers")}
    settings |= {"bug": bug_in(fields), "sentence": fields["sentence"], "checkpoint": fields["checkpoint"]}
    if settings["bug"]:
        settings["bugs"] = fields["bugs"] or "one"
    settings |= {"title": title or _("Worksheet"), **_numbers(fields), **_row_settings(texts)}
    settings[SIMPLIFIED] = fields[SIMPLIFIED] == "yes"
    settings |= {name: _markdown(fields[name], name) for name in MARKDOWN_FIELDS}
    settings["models"] = list(texts.models)
    settings["questions"] = _questions(texts.questions)
    settings["misconceptions"] = _misconceptions(texts.misconceptions)
    return settings


def _numbers(fields: Mapping[str, str]) -> dict[str, int]:
    numbers = dict[str, int]()
    for name, example in _NUMBERS.items():
        if fields[name] or name == "tokens":
            numbers[name] = _whole(fields[name], name, example)
    for name in _PLACES:
        if fields[name]:
            numbers[name] = _whole(fields[name], name, 3)
    if ("tokens_from" in numbers) != ("tokens_to" in numbers):
        missing = "tokens_to" if "tokens_from" in numbers else "tokens_from"
        raise WorksheetFormError(missing, _("A range has two ends: fill in both, or neither."))
    if numbers.get("tokens_from", 0) > numbers.get("tokens_to", 0):
        raise WorksheetFormError("tokens_to", _("The range ends before it begins: write the smaller number first."))
    return numbers


def _row_settings(texts: EditorTexts) -> dict[str, Any]:
    rows = [row.key for row in texts.rows if row.asked]
    if not rows:
        raise WorksheetFormError("rows", _("A sheet without rows asks nothing: tick at least one."))
    points = {row.key: _points(row) for row in texts.rows if row.points not in ("", "1")}
    if not any(points.get(row, 1) for row in rows):
        raise WorksheetFormError("rows", _("Every row that is asked has 0 points: give at least one of them more."))
    return {
        "rows": rows,
        "row_points": points,
        "row_hints": {row.key: _short(row.hint, f"rows.{row.key}.hint") for row in texts.rows if row.hint},
    }


def _points(row: RowTexts) -> int:
    if not _is_whole(row.points) or int(row.points) > MAX_POINTS:
        sentence = _("Write a whole number of points from 0 to {most}.").format(most=MAX_POINTS)
        raise WorksheetFormError(f"rows.{row.key}.points", sentence)
    return int(row.points)


def _questions(texts: Sequence[QuestionTexts]) -> list[dict[str, Any]]:
    if len(texts) > MAX_QUESTIONS:
        sentence = _("A sheet has at most {most} questions: remove some.").format(most=MAX_QUESTIONS)
        raise WorksheetFormError("questions", sentence)
    questions = [
        {
            "key": each.key,
            "text": _short(each.text, f"questions.{at}.text"),
            "model_answer": _markdown(each.model_answer, f"questions.{at}.model_answer"),
        }
        for at, each in enumerate(texts)
        if each.text or each.model_answer
    ]
    return _with_keys(questions, "text")


def _misconceptions(texts: Sequence[MisconceptionTexts]) -> list[dict[str, Any]]:
    if len(texts) > MAX_AUTHOR_MISCONCEPTIONS:
        sentence = _("A sheet has at most {most} misconceptions: remove some.").format(most=MAX_AUTHOR_MISCONCEPTIONS)
        raise WorksheetFormError("misconceptions", sentence)
    misconceptions = [
        _misconception(each, f"misconceptions.{at}")
        for at, each in enumerate(texts)
        if each.name or each.boxes or each.question or each.explanation
    ]
    return _with_keys(misconceptions, "name", AUTHOR_MISCONCEPTION_PREFIX)


def _with_keys(entries: Sequence[dict[str, Any]], named_by: str, prefix: str = "") -> list[dict[str, Any]]:
    keys = {entry[named_by]: entry["key"] for entry in entries if entry["key"]}
    taken = set(keys.values())
    for text in (entry[named_by] for entry in entries):
        if text not in keys:
            keys[text] = free_key(derived_key(text, prefix), taken)
            taken.add(keys[text])
    return [{**entry, "key": entry["key"] or keys[entry[named_by]]} for entry in entries]


def _misconception(texts: MisconceptionTexts, at: str) -> dict[str, Any]:
    boxes = _boxes(texts.boxes, f"{at}.boxes") if texts.boxes else {}
    needed = (
        ("name", texts.name, _("Give it a name that a colleague would understand.")),
        ("boxes", texts.boxes, _("Write at least one box and its content, such as queries.columns = H*d.")),
        ("question", texts.question, _("Write a question to ask a student who seems to hold it.")),
        ("explanation", texts.explanation, _("Write the explanation that is shown with the answers.")),
    )
    for name, text, sentence in needed:
        if not text:
            raise WorksheetFormError(f"{at}.{name}", sentence)
    return {
        "key": texts.key,
        "name": _at_most(texts.name, f"{at}.name", MAX_MISCONCEPTION_NAME),
        "boxes": boxes,
        "question": _short(texts.question, f"{at}.question"),
        "explanation": _markdown(texts.explanation, f"{at}.explanation"),
    }


def _boxes(text: str, at: str) -> dict[str, str]:
    boxes: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        box, equals, formula = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not (box and equals and formula) or len(formula) > MAX_FORMULA:
            sentence = _("Line {number}: write a box, =, and at most {most} characters, as in queries.columns = H*d.")
            raise WorksheetFormError(at, sentence.format(number=number, most=MAX_FORMULA))
        if box in boxes:
            sentence = _("Line {number}: “{box}” is there twice.")
            raise WorksheetFormError(at, sentence.format(number=number, box=box[:_MAX_ECHOED]))
        boxes[box] = formula
    if len(boxes) > MAX_MISCONCEPTION_BOXES:
        sentence = _("Write at most {most} boxes.").format(most=MAX_MISCONCEPTION_BOXES)
        raise WorksheetFormError(at, sentence)
    return boxes


def _short(text: str, name: str) -> str:
    return _at_most(text, name, MAX_SHORT_TEXT)


def _markdown(text: str, name: str) -> str:
    return _at_most(text, name, MAX_MARKDOWN)


def _at_most(text: str, name: str, most: int) -> str:
    if len(text) > most:
        sentence = _("This has {length:,} characters: shorten it to {most:,}.")
        raise WorksheetFormError(name, sentence.format(length=len(text), most=most))
    return text


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def _whole(text: str, name: str, example: int) -> int:
    if not _is_whole(text):
        typed = _("“{text}” is not a whole number: write one, such as {example}.")
        empty = _("Write a number of tokens, such as {example}.")
        raise WorksheetFormError(name, (typed if text else empty).format(text=text[:_MAX_ECHOED], example=example))
    return int(text)


def _form_error(error: SettingError, settings: Mapping[str, Any]) -> WorksheetFormError:
    path = error.path
    if error.setting.startswith("row_"):
        kind = error.setting.removeprefix("row_").removesuffix("s")
        name = f"rows.{path[1]}.{'points' if kind == 'point' else kind}" if len(path) > 1 else "rows"
    elif error.setting == "topic" and settings["topic"] in TOPICS:
        name = "model"  # which can't have that topic
    elif error.setting in _FIRST_TEXTS and len(path) > 1:
        name = ".".join(map(str, (*path, _FIRST_TEXTS[error.setting])[:3]))
    else:
        name = ".".join(map(str, path))
    written = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
    if error.setting == "model":
        sentence = _("This model is no longer here: choose another one.")
    else:
        sentence = re.sub(rf"^{re.escape(written)}(?= )", _("This"), str(error))  # the field beside it, not its name
    if error.setting == "misconceptions" and len(path) > 3:
        written_line = f"{path[3]} = {settings['misconceptions'][int(path[1])]['boxes'].get(path[3], '')}"
        sentence = f"{written_line[:_MAX_ECHOED]}: {sentence}"
    return WorksheetFormError(name, sentence)


# From a worksheet to texts


def texts_of_worksheet(library: Library, worksheet: Worksheet) -> EditorTexts:
    """The form's texts for a worksheet; `read_worksheet_form` reads them back."""
    title = automatic_title(library, worksheet.topic, worksheet.model)
    fields = {
        "title": "" if worksheet.title == title else worksheet.title,
        **{name: _number_text(getattr(worksheet, name)) for name in _NUMBERS},
        **{name: _number_text(getattr(worksheet, name)) if worksheet.sentence else "" for name in _PLACES},
        "sentence": worksheet.sentence,
        "checkpoint": worksheet.checkpoint,
        **{name: getattr(worksheet, name) for name in ("bug", "bugs", "model", "topic", "notation", "answers")},
        **{name: getattr(worksheet, name) for name in MARKDOWN_FIELDS},
        SIMPLIFIED: "yes" if worksheet.kv_head_per_query_head else "",
    }
    texts = EditorTexts(
        fields,
        rows_of=worksheet.topic,
        models=worksheet.models,
        questions=tuple(QuestionTexts(each.key, each.text, each.model_answer) for each in worksheet.questions),
        misconceptions=tuple(
            MisconceptionTexts(
                each.key,
                each.name,
                "\n".join(f"{box} = {formula}" for box, formula in each.boxes.items()),
                each.question,
                each.explanation,
            )
            for each in worksheet.misconceptions
        ),
    )
    return replace(texts, rows=_row_texts(library, worksheet, texts))


def _row_texts(library: Library, worksheet: Worksheet, texts: EditorTexts) -> tuple[RowTexts, ...]:
    hints, points = worksheet.row_hints, worksheet.row_points
    keys = _with_missing(worksheet.rows, rows_of_topic(library, texts))
    return tuple(
        RowTexts(key, key in worksheet.rows, _number_text(points.get(key)), hints.get(key, "")) for key in keys
    )


def _number_text(number: int | None) -> str:
    return "" if number is None else str(number)


# Buttons that change the texts


def arrange(texts: EditorTexts, action: str) -> EditorTexts:
    """The texts after a button's action, such as "up scores" or "remove-question 2"; unchanged for other actions."""
    verb, _space, argument = action.partition(" ")
    if verb == "set":
        name, _space, text = argument.partition(" ")
        return texts.with_fields(**{name: text}) if name in LINE_FIELDS else texts
    if verb in ("up", "down"):
        place = next((at for at, row in enumerate(texts.rows) if row.key == argument), -1)
        return replace(texts, rows=_moved(texts.rows, place, -1 if verb == "up" else 1))
    if verb == "forget":
        remaining = tuple(authored for authored in texts.misconceptions if authored.name != argument)
        return replace(texts, misconceptions=remaining)
    act, _dash, kind = verb.partition("-")
    place = int(argument) if _is_whole(argument) else -1
    if kind == "question":
        return replace(texts, questions=_changed(texts.questions, act, place, QuestionTexts, MAX_QUESTIONS))
    if kind == "misconception":
        changed = _changed(texts.misconceptions, act, place, MisconceptionTexts, MAX_AUTHOR_MISCONCEPTIONS)
        return replace(texts, misconceptions=changed)
    return texts


def _changed(entries: tuple[T, ...], act: str, place: int, new: Callable[[], T], most: int) -> tuple[T, ...]:
    if act == "add":
        return (*entries, new()) if len(entries) < most else entries
    if act == "remove":
        return tuple(entry for at, entry in enumerate(entries) if at != place)
    return _moved(entries, place, {"up": -1, "down": 1}.get(act, 0))


def _moved(entries: tuple[T, ...], place: int, steps: int) -> tuple[T, ...]:
    if not (0 <= place < len(entries) and 0 <= place + steps < len(entries)):
        return entries
    order = list(entries)
    order.insert(place + steps, order.pop(place))
    return tuple(order)
