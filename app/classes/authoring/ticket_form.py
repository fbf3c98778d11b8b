"""The form of an exit ticket: the settings of a ticket file as typed, unchecked, kept while questions are moved.

A question's key is its name in the form; a new question's begins with NEW_QUESTION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from app.sheets.authoring.worksheet_settings import SettingError, free_key
from app.sheets.exit_tickets import MAX_TICKET_QUESTIONS, QuestionKind, Ticket, TicketQuestion
from app.sheets.worksheet import derived_key
from app.translation import N_

NEW_QUESTION = "__"  # derived keys never begin with it
QUESTION_KINDS: Mapping[QuestionKind, str] = {
    "text": N_("free text"),
    "choose-one": N_("choose one"),
    "choose-several": N_("choose several"),
    "scale": N_("scale of five points"),
}
_FIELDS = {"text": "text", "key": "text", "options": "options", "kind": "kind", "labels": "first", "chip": "chip"}
PICK_LIMITS = ("pick_at_least", "pick_at_most")


def new_question(number: int = 1) -> dict[str, Any]:
    """An empty question of the form."""
    return {
        "key": f"{NEW_QUESTION}{number}",
        "text": "",
        "kind": "text",
        "options": (),
        "labels": (),
        "required": False,
        "chip": "",
    }


def typed_ticket(ticket: Ticket | None = None) -> dict[str, Any]:
    """The form of a ticket, or of a new one."""
    if ticket is None:
        return {
            "title": "",
            "instruction": "",
            "questions": [new_question()],
            "pick_at_least": "",
            "pick_at_most": "",
            "anonymous": True,
        }
    typed = ticket.model_dump(exclude={"key"})
    return {**typed, **{limit: typed[limit] or "" for limit in PICK_LIMITS}}


def ticket_settings(typed: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a form means, as in a ticket file, unchecked; new questions get a key."""
    keys = {question["key"] for question in typed["questions"] if not question["key"].startswith(NEW_QUESTION)}
    questions = list[dict[str, Any]]()
    for question in typed["questions"]:
        key = question["key"]
        if key.startswith(NEW_QUESTION):
            key = free_key(derived_key(question["text"]), keys)
            keys.add(key)
        questions.append({**_of_its_kind(question), "key": key})
    return {**typed, "questions": questions, **{limit: typed[limit] or 0 for limit in PICK_LIMITS}}


def _of_its_kind(question: Mapping[str, Any]) -> dict[str, Any]:
    has_options, has_labels = question["kind"] in ("choose-one", "choose-several"), question["kind"] == "scale"
    options = [line.strip() for line in question["options"] if line.strip()]
    return {
        **question,
        "options": options if has_options else [],
        "labels": list(question["labels"]) if has_labels else [],
    }


def field_of_error(typed: Mapping[str, Any], error: SettingError) -> str:
    """The name of the form's field that an error of `check_ticket` is about."""
    setting, *path = error.path
    if setting != "questions" or not path:
        return str(setting)
    key, name = typed["questions"][cast(int, path[0])]["key"], str(path[1]) if len(path) > 1 else "text"
    return f"last.{key}" if path[1:] == ["labels", 1] else f"{_FIELDS.get(name, 'text')}.{key}"


def draft_ticket(typed: Mapping[str, Any]) -> Ticket:
    """A form's ticket for its preview, unchecked and with the key ""; it may be incomplete."""
    questions = tuple(map(_draft_question, typed["questions"][:MAX_TICKET_QUESTIONS]))
    limits = {limit: _draft_number(str(typed[limit])) for limit in PICK_LIMITS}
    return Ticket.model_construct(**{**typed, "key": "", "questions": questions, **limits})


def _draft_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 2 else 0


def _draft_question(question: Mapping[str, Any]) -> TicketQuestion:
    kind = question["kind"] if question["kind"] in get_args(QuestionKind) else "text"
    draft = _of_its_kind({**question, "kind": kind, "text": question["text"] or "…"})
    draft |= {name: tuple(draft[name]) for name in ("options", "labels")}
    return TicketQuestion.model_construct(**draft)


def arranged_ticket(typed: Mapping[str, Any], action: str) -> tuple[dict[str, Any], str]:
    """The form after "add", "up NAME", "down NAME" or "remove NAME", and the id of the element to focus."""
    verb, _space, name = action.partition(" ")
    questions, names = list(typed["questions"]), [question["key"] for question in typed["questions"]]
    focus = f"do-{verb}-{name}" if name else f"do-{verb}"
    if verb == "add" and len(questions) < MAX_TICKET_QUESTIONS:
        number = next(number for number in range(1, 999) if f"{NEW_QUESTION}{number}" not in names)
        questions.append(new_question(number))
        focus = f"text-{questions[-1]['key']}"
    elif name in names and verb in ("up", "down", "remove"):
        place = names.index(name)
        question = questions.pop(place)
        if verb == "remove":
            focus = f"text-{questions[max(place - 1, 0)]['key']}" if questions else "do-add"
        else:
            questions.insert(max(place + (-1 if verb == "up" else 1), 0), question)
    return {**typed, "questions": questions}, focus
