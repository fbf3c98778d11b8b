"""The form of an exit ticket: its settings as texts, kept as typed while questions are added and moved.

`ticket_settings` gives the settings of a ticket file, which `ticket_of_settings` checks; `draft_ticket` gives what
students would see, even of an incomplete ticket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from app.sheets.authoring.worksheet_settings import SettingError, free_key
from app.sheets.exit_tickets import (
    MAX_LABEL,
    MAX_OPTION,
    MAX_OPTIONS,
    MAX_QUESTION_TEXT,
    MAX_TICKET_QUESTIONS,
    QuestionKind,
    Ticket,
    TicketQuestion,
    picking_rule,
)
from app.sheets.worksheet import derived_key
from app.translation import N_
from app.translation import gettext as _

NEW_QUESTION = "__"  # prefix for the name of a question without a key; derived keys never have it
QUESTION_KINDS: Mapping[QuestionKind, str] = {
    "text": N_("free text"),
    "choose-one": N_("choose one"),
    "choose-several": N_("choose several"),
    "scale": N_("scale of five points"),
}
_FIELDS = {"text": "text", "key": "text", "options": "options", "kind": "kind", "labels": "first"}


@dataclass(frozen=True)
class QuestionFields:
    """One question of the form as texts.

    `name` is its key, or begins with NEW_QUESTION; options are one per line.
    """

    name: str
    text: str = ""
    kind: str = "text"
    options: str = ""
    first: str = ""  # label of a scale
    last: str = ""
    required: bool = False

    @property
    def option_lines(self) -> list[str]:
        return [line.strip() for line in self.options.splitlines() if line.strip()]


@dataclass(frozen=True)
class TicketTexts:
    """The form of an exit ticket as texts."""

    title: str = ""
    instruction: str = ""
    pick_at_least: str = ""
    anonymous: bool = True
    questions: tuple[QuestionFields, ...] = field(default=(QuestionFields(f"{NEW_QUESTION}1"),))


def texts_of_ticket(ticket: Ticket) -> TicketTexts:
    """The form's texts for a ticket; `ticket_settings` turns them into the ticket's settings again."""
    questions = list[QuestionFields]()
    for each in ticket.questions:
        first, last = each.labels or ("", "")
        options = "\n".join(each.options)
        questions.append(QuestionFields(each.key, each.text, each.kind, options, first, last, each.required))
    pick = str(ticket.pick_at_least or "")
    return TicketTexts(ticket.title, ticket.instruction, pick, ticket.anonymous, tuple(questions))


def ticket_settings(texts: TicketTexts) -> dict[str, Any]:
    """The form's settings as in a ticket file, unchecked; `pick_at_least` stays a text, or is 0 if empty."""
    keys = {question.name for question in texts.questions if not question.name.startswith(NEW_QUESTION)}
    questions = list[dict[str, Any]]()
    for question in texts.questions:
        key = question.name
        if key.startswith(NEW_QUESTION):
            key = free_key(derived_key(question.text), keys)
            keys.add(key)
        settings: dict[str, Any] = {"key": key, "text": question.text, "kind": question.kind}
        settings["required"] = question.required
        if question.kind == "scale":
            settings["labels"] = [question.first, question.last]
        if question.kind in ("choose-one", "choose-several"):
            settings["options"] = question.option_lines
        questions.append(settings)
    return {
        "title": texts.title,
        "instruction": texts.instruction,
        "questions": questions,
        "pick_at_least": texts.pick_at_least or 0,
        "anonymous": texts.anonymous,
    }


def field_of_error(texts: TicketTexts, error: SettingError) -> str:
    """The name of the form's field that an error of `ticket_of_settings` is about."""
    setting, *path = error.path
    if setting != "questions" or not path:
        return str(setting)
    question, name = texts.questions[cast(int, path[0])].name, str(path[1]) if len(path) > 1 else "text"
    return f"last.{question}" if path[1:] == ["labels", 1] else f"{_FIELDS.get(name, 'text')}.{question}"


def draft_ticket(texts: TicketTexts) -> Ticket:
    """A form's ticket for its preview, unchecked and with the key ""; it may be incomplete."""
    pick = texts.pick_at_least.strip()
    number = int(pick) if pick.isascii() and pick.isdigit() and len(pick) <= 2 else 0
    questions = tuple(map(_draft_question, texts.questions[:MAX_TICKET_QUESTIONS]))
    return Ticket.model_construct(
        key="",
        title=texts.title,
        instruction=texts.instruction,
        questions=questions,
        pick_at_least=number,
        anonymous=texts.anonymous,
    )


def _draft_question(question: QuestionFields) -> TicketQuestion:
    kind = cast(QuestionKind, question.kind if question.kind in get_args(QuestionKind) else "text")
    options = [line[:MAX_OPTION] for line in question.option_lines[:MAX_OPTIONS]] if kind.startswith("choose") else []
    labels = (question.first[:MAX_LABEL], question.last[:MAX_LABEL]) if kind == "scale" else ()
    return TicketQuestion.model_construct(
        key=question.name,
        text=question.text[:MAX_QUESTION_TEXT] or "…",
        kind=kind,
        options=tuple(options),
        labels=labels,
        required=question.required,
    )


def arranged_ticket(texts: TicketTexts, action: str) -> tuple[TicketTexts, str]:
    """The texts after "add", "up NAME", "down NAME" or "remove NAME", and the id of the element to focus."""
    verb, _space, name = action.partition(" ")
    questions, names = list(texts.questions), [question.name for question in texts.questions]
    focus = f"do-{verb}-{name}" if name else f"do-{verb}"
    if verb == "add" and len(questions) < MAX_TICKET_QUESTIONS:
        number = next(number for number in range(1, 999) if f"{NEW_QUESTION}{number}" not in names)
        questions.append(QuestionFields(f"{NEW_QUESTION}{number}"))
        focus = f"text-{questions[-1].name}"
    elif name in names and verb in ("up", "down", "remove"):
        place = names.index(name)
        question = questions.pop(place)
        if verb == "remove":
            focus = f"text-{questions[max(place - 1, 0)].name}" if questions else "do-add"
        else:
            questions.insert(max(place + (-1 if verb == "up" else 1), 0), question)
    return replace(texts, questions=tuple(questions)), focus


def ticket_lines(ticket: Ticket) -> list[str]:
    """A ticket as lines of text, for comparing versions."""
    rule, names = picking_rule(ticket), _("anonymous") if ticket.anonymous else _("with names")
    lines = [ticket.title, ticket.instruction, *([rule] if rule else []), names]
    for number, question in enumerate(ticket.questions, 1):
        parts = (_(QUESTION_KINDS[question.kind]), *question.options, *question.labels)
        required = (_("required"),) if question.required else ()
        lines.append(f"{number}. {question.text} ({', '.join((*parts, *required))})")
    return lines
