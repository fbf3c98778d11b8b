"""The form of an activity: its fields as typed, which `ActivityForm` checks, and the plan and content that they mean.

What is typed is a text for each field, and for each worksheet, in order, the texts of its key, model and tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from app.activities.activity import MAX_ATTEMPTS_ALLOWED, MAX_MINUTES, Feedback, Running, Variants
from app.classes.frozen.offered_worksheets import Offer
from app.classes.student_sheet import ChosenWorksheet, choice_of
from app.models.architecture import TokensError
from app.sheets.library import Library
from app.sheets.worksheet import Marking, WorksheetError, refused, whole_key
from app.store import Content, Plan, Policies
from app.topics.requirements import TopicError
from app.translation import N_
from app.translation import gettext as _

T = TypeVar("T")
MAX_ECHOED = 60  # characters of a text that a message quotes
FIRST_YEAR, LAST_YEAR = 1900, 9998  # leaves room for late windows, extra time and other time zones


class ActivityFormError(ValueError):
    """A field that can't be used: its name, and the sentence that says what to write."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


# The values of the fields


def _read(parse: Callable[[str], object], sentence: str, **numbers: int) -> PlainValidator:
    def validate(text: str) -> object:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise refused(_(sentence).format(text=text[:MAX_ECHOED], **numbers)) from None

    return PlainValidator(validate)


def _filled(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _whole_number(lowest: int = 0, highest: int | None = None) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < lowest or (highest is not None and number > highest):
            raise ValueError
        return number

    return parse


def _optional(parse: Callable[[str], T], empty: T | None = None) -> Callable[[str], T | None]:
    return lambda text: parse(text) if text else empty


def _context(info: ValidationInfo) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], info.context)


_NO_TIME = N_("“{text}” is not a date and time. Enter one such as 2026-03-31 10:15.")
_NO_DAY = N_("“{text}” is not a date. Enter one such as 2026-03-31.")
_ATTEMPTS = N_("Enter a whole number of attempts from 1 to {most}, or leave the box empty for unlimited attempts.")
_MINUTES = N_("Enter a whole number of minutes up to {most}, or leave the box empty for no late window.")

_Time = Annotated[datetime | None, _read(_optional(datetime.fromisoformat), _NO_TIME)]
_Switch = Annotated[bool, PlainValidator(lambda text: text == "yes")]


class ActivityForm(BaseModel):
    """The form of an activity, checked.

    The validation context has the course's time zone (`zone`), the `library` and the keys of `tickets`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Annotated[str, _read(_filled, N_("Enter a title."))]
    opens: _Time  # typed in the course's time
    closes: _Time
    late_minutes: Annotated[int, _read(_optional(_whole_number(0, MAX_MINUTES), 0), _MINUTES, most=MAX_MINUTES)]
    day: Annotated[date | None, _read(_optional(date.fromisoformat), _NO_DAY)]
    max_attempts: Annotated[
        int,
        _read(_optional(_whole_number(1, MAX_ATTEMPTS_ALLOWED), 0), _ATTEMPTS, most=MAX_ATTEMPTS_ALLOWED),
    ]
    marking: Marking
    variants: Variants
    feedback: Feedback
    run: Running
    hints: _Switch
    examples: _Switch
    exam: _Switch
    auto_submit: _Switch
    ticket_anonymous: _Switch
    names_listed: _Switch
    ticket: str  # "" for none
    worksheet: tuple[ChosenWorksheet, ...]

    @field_validator("opens", "closes")
    @classmethod
    def _as_utc(cls, time: datetime | None, info: ValidationInfo) -> datetime | None:
        if time and not FIRST_YEAR <= time.year <= LAST_YEAR:
            sentence = _(
                "“{text}” is not in the years {first} to {last}. Enter another time, or leave the box empty for none."
            )
            text = time.isoformat(timespec="minutes")
            raise refused(sentence.format(text=text, first=FIRST_YEAR, last=LAST_YEAR))
        return time and time.replace(tzinfo=_context(info)["zone"]).astimezone(UTC)

    @field_validator("closes")
    @classmethod
    def _after_opening(cls, closes: datetime | None, info: ValidationInfo) -> datetime | None:
        opens = info.data.get("opens")
        if opens and closes and closes <= opens:
            raise refused(_("The closing time must be after the opening time."))
        return closes

    @field_validator("ticket")
    @classmethod
    def _known_ticket(cls, ticket: str, info: ValidationInfo) -> str:
        if ticket and ticket not in _context(info)["tickets"]:
            raise refused(_("This exit ticket isn’t here any more. Choose another one, or none."))
        return ticket

    @field_validator("worksheet", mode="plain")
    @classmethod
    def _offered_worksheets(
        cls, sheets: Sequence[Mapping[str, str]], info: ValidationInfo
    ) -> tuple[ChosenWorksheet, ...]:
        library, keys = _context(info)["library"], [sheet["key"] for sheet in sheets]
        if not keys and not info.data.get("ticket"):
            raise refused(_("Choose at least one worksheet or an exit ticket."))
        if len(keys) != len(set(keys)):
            raise refused(_("A worksheet can be in an activity only once."))
        for key in keys:
            if whole_key(key) != key or library.find_worksheet(key) is None:
                sentence = _("There is no worksheet “{sheet}”. Choose one from the list.")
                raise refused(sentence.format(sheet=key[:MAX_ECHOED]))
        return tuple(_choice(library, sheet) for sheet in sheets)

    def plan(self) -> Plan:
        """The title, day, times and policies in the form, but not its worksheets and exit ticket."""
        policies = Policies(**{each.name: getattr(self, each.name) for each in fields(Policies)})
        return Plan(self.title, self.day, policies, self.opens, self.closes)


STORED_FIELDS = tuple(ActivityForm.model_fields)  # the form has others, such as its search
TEXT_FIELDS = tuple(name for name in STORED_FIELDS if name != "worksheet")


def _choice(library: Library, sheet: Mapping[str, str]) -> ChosenWorksheet:
    field = f"sheet.{sheet['key']}"
    try:
        tokens = _optional(_whole_number())(sheet["tokens"])
    except ValueError:
        sentence = _("“{text}” is not a number of tokens: write a whole number, such as 100.")
        raise refused(sentence.format(text=sheet["tokens"][:MAX_ECHOED]), field) from None
    choice = ChosenWorksheet(sheet["key"], sheet["model"], tokens)
    try:
        model = library.variant(choice.key, choice.model or None, choice.tokens).model.key
        if choice.model or choice.tokens:
            library.max_versions(choice.key, model)
    except (WorksheetError, TokensError, TopicError) as error:
        raise refused(str(error), field) from None
    return choice


def read_activity_form(offer: Offer, time_zone: str, typed: Mapping[str, Any]) -> tuple[Plan, Content]:
    """The plan that a form means, and the content that `offer` freezes for its worksheets and exit ticket."""
    context = {"zone": ZoneInfo(time_zone), "tickets": offer.tickets, "library": offer.library}
    try:
        form = ActivityForm.model_validate(typed, context=context)
    except ValidationError as error:
        raise _form_error(error.errors()[0]) from None
    return form.plan(), offer.freeze(form.worksheet, form.ticket)


def _form_error(error: ErrorDetails) -> ActivityFormError:
    field = str(error["loc"][0])
    if error["type"] != "sentence":
        return ActivityFormError(field, _("Choose one of the options for “{field}”.").format(field=field))
    return ActivityFormError(error["ctx"]["setting"] or field, error["ctx"]["sentence"])


# From an activity to its form


def typed_activity(plan: Plan, content: Content, time_zone: str) -> dict[str, Any]:
    """The form of an activity with this plan and content; `read_activity_form` reads it back."""
    policies = plan.policies
    return {
        "title": plan.title,
        "day": plan.day.isoformat() if plan.day else "",
        "opens": _local(plan.opens_at, time_zone),
        "closes": _local(plan.closes_at, time_zone),
        "late_minutes": str(policies.late_minutes or ""),
        **{name: getattr(policies, name) for name in ("variants", "feedback", "marking", "run")},
        "max_attempts": str(policies.max_attempts or ""),
        **{name: "yes" if getattr(policies, name) else "" for name in ("hints", "examples", "exam", "auto_submit")},
        **{name: "yes" if getattr(policies, name) else "no" for name in ("ticket_anonymous", "names_listed")},
        "ticket": content.ticket.key if content.ticket else "",
        "worksheet": [
            typed_sheet(choice.key, choice.model, "" if choice.tokens is None else str(choice.tokens))
            for choice in map(choice_of, content.items)
        ],
    }


def typed_sheet(key: str, model: str = "", tokens: str = "") -> dict[str, str]:
    """A chosen worksheet as typed; "" means the worksheet's own model or number of tokens."""
    return {"key": key, "model": model, "tokens": tokens}


def new_activity(tickets: Iterable[str], time_zone: str) -> dict[str, Any]:
    """The form of a new activity: default policies, no worksheet, and the first of `tickets`, if any."""
    typed = typed_activity(Plan(""), Content((), None), time_zone)
    return {**typed, "ticket": next(iter(tickets), "")}


def _local(moment: datetime | None, time_zone: str) -> str:
    return moment.astimezone(ZoneInfo(time_zone)).strftime("%Y-%m-%dT%H:%M") if moment else ""


# The form in words, to compare two versions


def field_labels() -> dict[str, str]:
    """The form's translated label of each field, in the form's order."""
    return {
        "title": _("Title"),
        "day": _("Date"),
        "worksheet": _("Worksheets"),
        "ticket": _("Exit ticket"),
        "ticket_anonymous": _("Anonymous"),
        "variants": _("Numbers"),
        "feedback": _("Marks are shown"),
        "max_attempts": _("Attempts per sheet"),
        "marking": _("Marking"),
        "hints": _("Hints"),
        "examples": _("Worked examples"),
        "exam": _("Exam conditions"),
        "run": _("Runs in PyTorch"),
        "names_listed": _("List of names"),
        "opens": _("Opens"),
        "closes": _("Closes"),
        "late_minutes": _("Late window"),
        "auto_submit": _("Submit unfinished work automatically"),
    }


def form_in_words(typed: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, str]:
    """What each field of `field_labels` says, in words; `titles` are worksheet and ticket titles by key."""
    words = {
        "yes": _("yes"),
        "no": _("no"),
        "same": _("the same for everyone"),
        "per_student": _("different for each student"),
        "immediate": _("at each check"),
        "after_hand_in": _("after handing in"),
        "after_close": _("after the activity closes"),
        "causes": _("one mistake costs once"),
        "boxes": _("every wrong box costs"),
        "rows": _("whole rows"),
        "after": _("once marks are shown"),
        "before": _("from the start"),
    }
    told = {name: words.get(typed[name], typed[name]) for name in TEXT_FIELDS if name != "title"}
    sheets = ((titles.get(sheet["key"], sheet["key"]), sheet["model"], sheet["tokens"]) for sheet in typed["worksheet"])
    return {
        **told,
        **{name: told[name] or _("no") for name in ("hints", "examples", "exam", "auto_submit")},
        "title": typed["title"],
        "ticket": titles.get(typed["ticket"], typed["ticket"]),
        "worksheet": "\n".join(", ".join(filter(None, parts)) for parts in sheets),
    }
