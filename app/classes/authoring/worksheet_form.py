"""The form of a worksheet: the settings of a worksheet file as typed, unchecked, until `Worksheet` checks them.

Numbers are texts in it, and a misconception's boxes are lines such as "queries.columns = H*d". Besides the settings it
has `all_rows`, every row that can be asked, in the order of the sheet, and `rows_of`, the topic that they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.bugs.bank import BUGS
from app.models.architecture import MAX_TOKENS
from app.sheets.authoring.worksheet_settings import SettingError, check_settings, free_key, possible_rows
from app.sheets.library import Library
from app.sheets.worksheet import (
    AUTHOR_MISCONCEPTION_PREFIX,
    MAX_AUTHOR_MISCONCEPTIONS,
    MAX_QUESTIONS,
    MAX_SHORT_TEXT,
    NOT_SET,
    Worksheet,
    derived_key,
)
from app.topics.registry import TOPICS
from app.topics.requirements import TopicError
from app.translation import gettext as _

Typed = Mapping[str, Any]

NUMBERS = ("tokens", "tokens_from", "tokens_to", "decoder_tokens", "layer", "head")
LINE_TEXTS = ("title", "model", "topic", "bug", "bugs", "notation", "answers", "sentence", "checkpoint", *NUMBERS)
MARKDOWN_TEXTS = ("introduction", "footnote")
SIMPLIFIED = "kv_head_per_query_head"
QUESTION_TEXTS = ("key", "text", "model_answer")
MISCONCEPTION_TEXTS = ("key", "name", "boxes", "question", "explanation")
_ENTRIES = {"question": ("questions", QUESTION_TEXTS, MAX_QUESTIONS),
            "misconception": ("misconceptions", MISCONCEPTION_TEXTS, MAX_AUTHOR_MISCONCEPTIONS)}  # fmt: skip
_FIRST_TEXTS = {"questions": "text", "misconceptions": "name"}  # where a problem of a whole entry is shown
_USUAL_TOKENS = 100
_MAX_DIGITS, _MAX_ECHOED = 9, 40


class WorksheetFormError(ValueError):
    """A field that can't be used: its place in the settings, such as "questions.0.text", and the sentence about it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


# From a worksheet to its form


def typed_worksheet(library: Library, worksheet: Worksheet) -> dict[str, Any]:
    """The form of a worksheet; `read_worksheet_form` reads it back."""
    typed: dict[str, Any] = {name: value for name, value in asdict(worksheet).items() if name not in NOT_SET}
    if worksheet.title == automatic_title(library, worksheet.topic, worksheet.model):
        typed["title"] = ""
    typed |= {name: "" if typed[name] is None else str(typed[name]) for name in NUMBERS}
    if not worksheet.sentence:
        typed |= {"layer": "", "head": ""}
    typed["row_points"] = {row: str(points) for row, points in worksheet.row_points.items()}
    for misconception in typed["misconceptions"]:
        misconception["boxes"] = "\n".join(f"{box} = {formula}" for box, formula in misconception["boxes"].items())
    typed["all_rows"] = _with_missing(worksheet.rows, rows_of_topic(library, typed))
    return {**typed, "rows_of": worksheet.topic}


def automatic_title(library: Library, topic: str, model: str) -> str:
    """A title for a worksheet without one, such as "One head of LLaMA 7B", cut to MAX_SHORT_TEXT characters."""
    words, known = library.wording.topics.get(topic), library.models.get(model)
    if known is None or words is None:
        return ""
    return words.title_for(known.name, known.architecture)[:MAX_SHORT_TEXT].strip()


def complete_rows(library: Library, typed: Typed) -> dict[str, Any]:
    """The form with all rows of the topic and model, after either changed; new rows are asked."""
    possible = rows_of_topic(library, typed)
    if not possible:
        return dict(typed)
    if typed["rows_of"] != typed["topic"]:
        return {**typed, "rows": possible, "all_rows": possible, "rows_of": typed["topic"]}
    all_rows = _with_missing([row for row in typed["all_rows"] if row in possible], possible)
    rows = tuple(row for row in all_rows if row in typed["rows"] or row not in typed["all_rows"])
    return {**typed, "rows": rows, "all_rows": all_rows}


def rows_of_topic(library: Library, typed: Typed) -> tuple[str, ...]:
    """The keys of the rows that a sheet on this topic, model and bug can ask for, in the table's order."""
    topic, model = typed["topic"], library.models.get(typed["model"])
    if topic not in TOPICS or model is None:
        return ()
    tokens = _number(typed["tokens"])
    length = tokens if isinstance(tokens, int) and 0 < tokens <= MAX_TOKENS else _USUAL_TOKENS
    architecture = model.architecture_taught(typed[SIMPLIFIED])
    try:
        return possible_rows(topic, architecture, length, library.wording, BUGS.get(bug_in(typed)))
    except TopicError:
        return ()


def bug_in(typed: Typed) -> str:
    """The bug named in the form, or the topic's first bug; "" for a topic without bugs."""
    bugs = TOPICS[typed["topic"]].bugs if typed["topic"] in TOPICS else ()
    return typed["bug"] if typed["bug"] in bugs else next(iter(bugs), "")


def _with_missing(order: Sequence[str], possible: Sequence[str]) -> tuple[str, ...]:
    """The keys in order, with each missing key of `possible` inserted after the nearest one before it.

    >>> _with_missing(["scores", "input"], ["input", "queries", "scores"])
    ('scores', 'input', 'queries')
    """
    complete = list(order)
    for place, key in enumerate(possible):
        if key not in complete:
            before = next((each for each in reversed(possible[:place]) if each in complete), None)
            complete.insert(complete.index(before) + 1 if before else 0, key)
    return tuple(complete)


# From the form to a worksheet


def read_worksheet_form(library: Library, key: str, typed: Typed) -> Worksheet:
    """The worksheet that a form means, under this key."""
    try:
        worksheet, errors = check_settings(key, _settings(library, typed), library.models, library.wording)
    except SettingError as error:
        worksheet, errors = None, (error,)
    if worksheet is None:
        raise _form_error(errors[0], typed)
    return worksheet


def _settings(library: Library, typed: Typed) -> dict[str, Any]:
    settings = {name: value for name, value in typed.items() if name not in ("all_rows", "rows_of")}
    settings["title"] = typed["title"] or automatic_title(library, typed["topic"], typed["model"]) or _("Worksheet")
    settings["bug"] = bug_in(typed)
    settings["bugs"] = (typed["bugs"] if settings["bug"] else "") or "one"
    for name in NUMBERS:
        settings[name] = _number(typed[name])
        if not typed[name] and name != "tokens":
            del settings[name]
    points, hints = typed["row_points"], typed["row_hints"]
    settings["row_points"] = {row: _number(points[row]) for row in typed["all_rows"] if points.get(row)}
    settings["row_hints"] = {row: hints[row] for row in typed["all_rows"] if hints.get(row)}
    settings["questions"] = _with_keys([typed["questions"][place] for place in _filled(typed["questions"])], "text")
    filled = [typed["misconceptions"][place] for place in _filled(typed["misconceptions"])]
    misconceptions = [{**each, "boxes": _boxes(each["boxes"], number)} for number, each in enumerate(filled)]
    settings["misconceptions"] = _with_keys(misconceptions, "name", AUTHOR_MISCONCEPTION_PREFIX)
    return settings


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else text


def _filled(entries: Sequence[Typed]) -> list[int]:
    return [place for place, each in enumerate(entries) if any(each[name] for name in each if name != "key")]


def _with_keys(entries: Sequence[Typed], named_by: str, prefix: str = "") -> list[dict[str, Any]]:
    keys = {entry[named_by]: entry["key"] for entry in entries if entry["key"]}
    taken = set(keys.values())
    for text in (entry[named_by] for entry in entries):
        if text not in keys:
            keys[text] = free_key(derived_key(text, prefix), taken)
            taken.add(keys[text])
    return [{**entry, "key": entry["key"] or keys[entry[named_by]]} for entry in entries]


def _boxes(text: str, number: int) -> dict[str, str]:
    boxes = dict[str, str]()
    for line in filter(None, map(str.strip, text.split("\n"))):
        box, _equals, formula = (part.strip() for part in line.partition("="))
        if box in boxes:
            sentence = _("“{box}” is there twice: delete one of its lines.").format(box=box[:_MAX_ECHOED])
            raise SettingError(sentence, "misconceptions", number, "boxes")
        boxes[box] = formula
    return boxes


def _form_error(error: SettingError, typed: Typed) -> WorksheetFormError:
    path, sentence = list(error.path), str(error)
    written = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
    sentence = re.sub(rf"^{re.escape(written)}(?= )", _("This"), sentence)  # the field beside it, not its name
    if error.setting in NUMBERS and isinstance(_number(typed[error.setting]), str) and typed[error.setting]:
        text = typed[error.setting][:_MAX_ECHOED]
        sentence = _("“{text}” is not a whole number: write one, such as 100.").format(text=text)
    if error.setting == "model":
        sentence = _("This model is no longer here: choose another one.")
    if error.setting == "topic" and typed["topic"] in TOPICS:
        path = ["model"]  # which can't have that topic
    if error.setting in _FIRST_TEXTS and len(path) > 1:
        if len(path) > 3:
            sentence = f"{str(path[3])[:_MAX_ECHOED]}: {sentence}"
        place = _filled(typed[error.setting])[int(path[1])]
        path = [error.setting, place, path[2] if len(path) > 2 else _FIRST_TEXTS[error.setting]]
    return WorksheetFormError(".".join(map(str, path)), sentence)


# Buttons that change the form


def arrange(typed: Typed, action: str) -> dict[str, Any]:
    """The form after a button's action, such as "up scores" or "remove-question 2"; unchanged for other actions."""
    verb, _space, argument = action.partition(" ")
    act, _dash, kind = verb.partition("-")
    if verb == "set":
        name, _space, text = argument.partition(" ")
        return {**typed, name: text} if name in LINE_TEXTS else dict(typed)
    if verb in ("up", "down"):
        place = typed["all_rows"].index(argument) if argument in typed["all_rows"] else -1
        all_rows = tuple(_moved(typed["all_rows"], place, verb))
        return {**typed, "all_rows": all_rows, "rows": tuple(row for row in all_rows if row in typed["rows"])}
    if verb == "forget":
        remaining = [each for each in typed["misconceptions"] if each["name"] != argument]
        return {**typed, "misconceptions": remaining}
    if kind in _ENTRIES:
        name, texts, most = _ENTRIES[kind]
        entries, place = list(typed[name]), _number(argument)
        if act == "add" and len(entries) < most:
            entries.append(dict.fromkeys(texts, ""))
        elif act == "remove":
            entries = [entry for at, entry in enumerate(entries) if at != place]
        elif isinstance(place, int):
            entries = _moved(entries, place, act)
        return {**typed, name: entries}
    return dict(typed)


def _moved(entries: Sequence[Any], place: int, direction: str) -> list[Any]:
    order, to = list(entries), place + {"up": -1, "down": 1}.get(direction, 0)
    if 0 <= place < len(order) and 0 <= to < len(order):
        order.insert(to, order.pop(place))
    return order
