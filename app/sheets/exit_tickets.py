"""Exit tickets: questions of four kinds for the end of a meeting, in `exit-tickets/*.toml` or written in the browser.

    ticket_of_settings("mine", {"title": "Bye", "instruction": "Answer.", "questions": [{"key": "q", "text": "Why?"}]})

reads the settings of a file; `Ticket.settings` gives them back.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from app.names import JOINERS, normal_form
from app.sheets.authoring.worksheet_settings import SettingError
from app.sheets.worksheet import WorksheetError, refused
from app.translation import N_, ngettext
from app.translation import gettext as _

QuestionKind = Literal["text", "choose-one", "choose-several", "scale"]
SCALE_POINTS = ("1", "2", "3", "4", "5")
MAX_TICKET_QUESTIONS, MIN_OPTIONS, MAX_OPTIONS = 20, 2, 10
# Characters.
MAX_KEY, MAX_LABEL, MAX_TITLE, MAX_OPTION, MAX_QUESTION_TEXT, MAX_INSTRUCTION = 60, 60, 200, 200, 500, 500


def _line(longest: int) -> AfterValidator:
    def check(text: str) -> str:
        line = normal_form("NFC", " ".join(text.split()))
        if not line:
            raise refused(_("Write something here."))
        if len(line) > longest:
            raise refused(_("Shorten this to {most} characters; it has {count}.").format(most=longest, count=len(line)))
        if hidden := next((char for char in line if not (char.isprintable() or char in JOINERS)), ""):
            sentence = _("Remove the invisible character U+{code} after “{before}”.")
            before = line[max(line.index(hidden) - 20, 0) : line.index(hidden)]
            raise refused(sentence.format(code=f"{ord(hidden):04X}", before=before))
        return line

    return AfterValidator(check)


_SETTINGS = ConfigDict(frozen=True, coerce_numbers_to_str=True, extra="forbid")


class TicketQuestion(BaseModel):
    """One question of an exit ticket: free text, options to choose from, or a scale of SCALE_POINTS.

    `labels` belong to a scale's first and last point, and `chip` is its short name where students pick questions.
    """

    model_config = _SETTINGS

    key: Annotated[str, Field(pattern=rf"^[A-Za-z0-9_-]{{1,{MAX_KEY}}}$")]
    text: Annotated[str, _line(MAX_QUESTION_TEXT)]
    kind: QuestionKind = "text"
    options: tuple[Annotated[str, _line(MAX_OPTION)], ...] = ()
    labels: tuple[Annotated[str, _line(MAX_LABEL)], ...] = ()
    required: StrictBool = False
    chip: Annotated[str, Field(max_length=MAX_LABEL)] = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """What can be chosen: the options, or the points of a scale; none for free text."""
        return SCALE_POINTS if self.kind == "scale" else self.options

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        if twice := next((option for option, times in Counter(options).items() if times > 1), ""):
            raise refused(_("Each option may be there once; “{option}” is there twice.").format(option=twice))
        if len(options) > MAX_OPTIONS:
            raise refused(_("A question has at most {most} options.").format(most=MAX_OPTIONS))
        return options

    @model_validator(mode="after")
    def _check_kind(self) -> TicketQuestion:
        has_options = self.kind in ("choose-one", "choose-several")
        if has_options and len(self.options) < MIN_OPTIONS:
            raise refused(_("Write at least {least} options, one per line.").format(least=MIN_OPTIONS), "options")
        if self.options and not has_options:
            raise refused(_("Only choose-one and choose-several have options."), "options")
        if len(self.labels) != (2 if self.kind == "scale" else 0):
            raise refused(_("A scale has two labels, one for each end; other kinds have none."), "labels")
        return self


class Ticket(BaseModel):
    """An exit ticket: its title, what to do, and its questions in order.

    Students answer every required question, at least `pick_at_least` of the others, and at least one in all. With
    `pick_at_most`, they first pick so many of the others.
    """

    model_config = _SETTINGS

    key: str
    title: Annotated[str, _line(MAX_TITLE)]
    instruction: Annotated[str, _line(MAX_INSTRUCTION)]
    questions: tuple[TicketQuestion, ...]
    pick_at_least: Annotated[int, Field(ge=0)] = 0
    pick_at_most: Annotated[int, Field(ge=0)] = 0  # 0: all of them
    anonymous: StrictBool = True

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings as in a ticket file, without defaults."""
        return self.model_dump(mode="json", exclude={"key"}, exclude_defaults=True)

    @field_validator("questions")
    @classmethod
    def _check_questions(cls, questions: tuple[TicketQuestion, ...]) -> tuple[TicketQuestion, ...]:
        keys = [question.key for question in questions]
        if not 1 <= len(keys) <= MAX_TICKET_QUESTIONS:
            raise refused(_("A ticket has 1 to {most} questions.").format(most=MAX_TICKET_QUESTIONS))
        if twice := next((key for key in keys if keys.count(key) > 1), ""):
            raise refused(_("Two questions have the key “{key}”; each needs its own.").format(key=twice))
        return questions

    @model_validator(mode="after")
    def _check_number(self) -> Ticket:
        optional = sum(not question.required for question in self.questions)
        if self.pick_at_least > optional:
            sentence = _("Students can pick at most {count}: that is how many questions are not required.")
            raise refused(sentence.format(count=optional), "pick_at_least")
        if 0 < self.pick_at_most < self.pick_at_least:
            raise refused(_("This is less than students must answer at least."), "pick_at_most")
        return self


def ticket_of_settings(key: str, settings: Mapping[str, Any]) -> Ticket:
    """The Ticket with a ticket file's settings; raises the first SettingError of `check_ticket`."""
    ticket, errors = check_ticket(key, settings)
    if ticket is None:
        raise errors[0]
    return ticket


def check_ticket(key: str, settings: Mapping[str, Any]) -> tuple[Ticket | None, tuple[SettingError, ...]]:
    """The Ticket with these settings, or None and a SettingError for every setting that must change."""
    if "key" in settings:  # which is the file's name
        return None, (_no_setting(("key",)),)
    try:
        return Ticket.model_validate({**settings, "key": key}), ()
    except ValidationError as error:
        return None, tuple(map(_setting_error, error.errors(include_url=False)))


def _setting_error(error: ErrorDetails) -> SettingError:
    kind, path = error["type"], [int(part) if isinstance(part, int) else str(part) for part in error["loc"]]
    if kind == "sentence":
        context = error.get("ctx", {})
        return SettingError(context["sentence"], *path, *filter(None, [context["setting"]]))
    if kind == "extra_forbidden":
        return _no_setting(path)
    named = [part for part in path if isinstance(part, str)]
    sentence = _(_SENTENCES[named[-1] if named else "questions"])
    words = {"most": MAX_KEY, "kinds": ", ".join(get_args(QuestionKind))}
    return SettingError(sentence.format(**words), *(path or ["questions"]))


def _no_setting(path: Sequence[int | str]) -> SettingError:
    known = TicketQuestion.model_fields if path[1:] else [name for name in Ticket.model_fields if name != "key"]
    sentence = _("There is no setting “{name}”; there are: {names}.")
    return SettingError(sentence.format(name=str(path[-1])[:MAX_KEY], names=", ".join(known)), *path)


_NEEDED = N_("A ticket needs title, instruction and questions with key and text.")
_SENTENCES = {
    "title": _NEEDED,
    "instruction": _NEEDED,
    "questions": _NEEDED,
    "text": _NEEDED,
    "key": N_("A key has up to {most} letters without accents, digits, - and _."),
    "kind": N_("The kind is one of: {kinds}."),
    "options": N_("Options are a list of texts."),
    "labels": N_("Labels are a list of two texts."),
    "required": N_("Required is true or false."),
    "anonymous": N_("Anonymous is true or false."),
    "pick_at_least": N_("Write a whole number, such as 2, or 0."),
    "pick_at_most": N_("Write a whole number, such as 2, or 0."),
    "chip": N_("A chip is a text of up to 60 characters."),
}


def picking_rule(ticket: Ticket) -> str:
    """The sentence that tells students how many questions they must answer at least."""
    if not ticket.pick_at_least:
        return ""
    if any(question.required for question in ticket.questions):
        sentence = ngettext(
            "Besides the required ones, answer at least {count} question.",
            "Besides the required ones, answer at least {count} questions.",
            ticket.pick_at_least,
        )
    else:
        sentence = ngettext(
            "Answer at least {count} question.", "Answer at least {count} questions.", ticket.pick_at_least
        )
    return sentence.format(count=ticket.pick_at_least)


def load_tickets(folder: Path) -> Mapping[str, Ticket]:
    """Every exit ticket of a folder of worksheets, by key; raises WorksheetError naming an unusable file."""
    return {path.stem: _read_ticket(path) for path in sorted(folder.glob("exit-tickets/*.toml"))}


def _read_ticket(path: Path) -> Ticket:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorksheetError(
            _("exit-tickets/{file} cannot be read: {reason}").format(file=path.name, reason=error)
        ) from None
    try:
        return ticket_of_settings(path.stem, settings)
    except SettingError as error:
        message = _("exit-tickets/{file}, {setting}: {sentence}")
        setting = ".".join(str(part + 1 if isinstance(part, int) else part) for part in error.path)
        raise WorksheetError(message.format(file=path.name, setting=setting, sentence=error)) from None
