"""The form of an activity: typed texts, validated into a plan and its content.

The texts are kept as typed, so that the form can be shown again unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.activities.activity import MAX_ATTEMPTS_ALLOWED, MAX_MINUTES, Feedback, Running, Variants
from app.classes.frozen.offered_worksheets import Offer
from app.classes.student_sheet import ChosenWorksheet, choice_of
from app.models.architecture import TokensError
from app.sheets.library import Library
from app.sheets.worksheet import WorksheetError, whole_key
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


@dataclass(frozen=True)
class WorksheetTexts:
    """A chosen worksheet as texts: its key, model and number of tokens; "" means the worksheet's default."""

    key: str
    model: str = ""
    tokens: str = ""


@dataclass(frozen=True)
class ActivityTexts:
    """The form's fields as texts, by name, and the chosen worksheets in order."""

    fields: Mapping[str, str]
    worksheets: tuple[WorksheetTexts, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(sheet.key for sheet in self.worksheets)


def _text_parser(parse: Callable[[str], T], error_key: str) -> BeforeValidator:
    def validate(text: str) -> T | None:
        try:
            return parse(text) if text else None
        except (ValueError, OverflowError):
            raise PydanticCustomError("sentence", error_key) from None

    return BeforeValidator(validate)


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _is_yes(text: str) -> bool:
    return text == "yes"


def _context(info: ValidationInfo) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], info.context)


class ActivityForm(BaseModel):
    """The form of an activity, validated from its texts.

    The validation context holds the course's time zone (`zone`), the `library` and the keys of `tickets`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Annotated[str, Field(min_length=1)]
    opens: Annotated[datetime | None, _text_parser(datetime.fromisoformat, "no-time")]  # typed in the course's time
    closes: Annotated[datetime | None, _text_parser(datetime.fromisoformat, "no-time")]
    late_minutes: Annotated[Annotated[int, Field(le=MAX_MINUTES)] | None, _text_parser(_whole_number, "late_minutes")]
    day: Annotated[date | None, _text_parser(date.fromisoformat, "no-day")]
    max_attempts: Annotated[
        Annotated[int, Field(ge=1, le=MAX_ATTEMPTS_ALLOWED)] | None, _text_parser(_whole_number, "max_attempts")
    ]
    follow_share: Annotated[int, BeforeValidator(_whole_number), Field(le=100)]  # per cent
    variants: Variants
    feedback: Feedback
    run: Running
    hints: Annotated[bool, BeforeValidator(_is_yes)]
    examples: Annotated[bool, BeforeValidator(_is_yes)]
    exam: Annotated[bool, BeforeValidator(_is_yes)]
    auto_submit: Annotated[bool, BeforeValidator(_is_yes)]
    ticket_anonymous: Annotated[bool, BeforeValidator(_is_yes)]
    names_listed: Annotated[bool, BeforeValidator(_is_yes)]
    ticket: str  # '' for none
    worksheet: tuple[str, ...]

    @field_validator("opens", "closes")
    @classmethod
    def _as_utc(cls, time: datetime | None, info: ValidationInfo) -> datetime | None:
        if time and not FIRST_YEAR <= time.year <= LAST_YEAR:
            raise PydanticCustomError("sentence", "far-time")
        return time and time.replace(tzinfo=_context(info)["zone"]).astimezone(UTC)

    @field_validator("closes")
    @classmethod
    def _check_closing_time(cls, closes: datetime | None, info: ValidationInfo) -> datetime | None:
        opens = info.data.get("opens")
        if opens and closes and closes <= opens:
            raise PydanticCustomError("sentence", "closes-early")
        return closes

    @field_validator("ticket")
    @classmethod
    def _known_ticket(cls, ticket: str, info: ValidationInfo) -> str:
        if ticket and ticket not in _context(info)["tickets"]:
            raise PydanticCustomError("sentence", "no-such-ticket")
        return ticket

    @field_validator("worksheet")
    @classmethod
    def _check_worksheets(cls, keys: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not keys and not info.data.get("ticket"):
            raise PydanticCustomError("sentence", "nothing-in-it")
        if len(keys) != len(set(keys)):
            raise PydanticCustomError("sentence", "same-sheet-twice")
        if any(not _is_offered(_context(info)["library"], key) for key in keys):
            raise PydanticCustomError("sentence", "no-such-sheet")
        return keys

    def plan(self) -> Plan:
        """The title, day, times and policies in the form, but not its worksheets and exit ticket."""
        policies = Policies(
            variants=self.variants,
            feedback=self.feedback,
            max_attempts=self.max_attempts or 0,
            follow_share=self.follow_share / 100,
            hints=self.hints,
            examples=self.examples,
            exam=self.exam,
            run=self.run,
            ticket_anonymous=self.ticket_anonymous,
            names_listed=self.names_listed,
            late_minutes=self.late_minutes or 0,
            auto_submit=self.auto_submit,
        )
        return Plan(self.title, self.day, policies, self.opens, self.closes)


# The sentences about a field, by its name or by the key of its validator's error.
SENTENCES = {
    "title": N_("Enter a title."),
    "max_attempts": N_(
        "Enter a whole number of attempts from 1 to {most}, or leave the box empty for unlimited attempts."
    ),
    "follow_share": N_("Enter a percentage from 0 to 100."),
    "late_minutes": N_("Enter a whole number of minutes up to {longest}, or leave the box empty for no late window."),
    "no-time": N_("“{text}” is not a date and time. Enter one such as 2026-03-31 10:15."),
    "far-time": N_(
        "“{text}” is not in the years {first} to {last}. Enter another time, or leave the box empty for none."
    ),
    "no-day": N_("“{text}” is not a date. Enter one such as 2026-03-31."),
    "closes-early": N_("The closing time must be after the opening time."),
    "no-such-ticket": N_("This exit ticket isn’t here any more. Choose another one, or none."),
    "nothing-in-it": N_("Choose at least one worksheet or an exit ticket."),
    "same-sheet-twice": N_("A worksheet can be in an activity only once."),
    "no-such-sheet": N_("There is no worksheet “{sheet}”. Choose one from the list."),
    "no-policy": N_("Choose one of the options for “{field}”."),
}
FIELD_NAMES = tuple(name for name in ActivityForm.model_fields if name != "worksheet")


def read_activity_form(offer: Offer, time_zone: str, texts: ActivityTexts) -> tuple[Plan, Content]:
    """The plan in a form's texts, and the content that `offer` freezes for its worksheets and exit ticket."""
    context = {"zone": ZoneInfo(time_zone), "tickets": offer.tickets, "library": offer.library}
    try:
        form = ActivityForm.model_validate({**texts.fields, "worksheet": texts.keys}, context=context)
    except ValidationError as error:
        raise _form_error(offer.library, texts, error.errors()[0]) from None
    return form.plan(), offer.freeze([_read_choice(offer.library, sheet) for sheet in texts.worksheets], form.ticket)


def _read_choice(library: Library, texts: WorksheetTexts) -> ChosenWorksheet:
    try:
        tokens = _whole_number(texts.tokens) if texts.tokens else None
        choice = ChosenWorksheet(texts.key, texts.model, tokens)
        model = library.variant(choice.key, choice.model or None, choice.tokens).model.key
        if choice.model or choice.tokens:
            library.max_versions(choice.key, model)
    except (WorksheetError, TokensError, TopicError) as error:
        raise ActivityFormError(f"sheet.{texts.key}", str(error)) from None
    except ValueError:
        sentence = _("“{text}” is not a number of tokens: write a whole number, such as 100.")
        raise ActivityFormError(f"sheet.{texts.key}", sentence.format(text=texts.tokens[:MAX_ECHOED])) from None
    return choice


def _is_offered(library: Library, key: str) -> bool:
    return whole_key(key) == key and library.find_worksheet(key) is not None


def _form_error(library: Library, texts: ActivityTexts, error: Mapping[str, Any]) -> ActivityFormError:
    field = str(error["loc"][0])
    sentence = SENTENCES.get(error["msg"] if error["type"] == "sentence" else field, SENTENCES["no-policy"])
    missing = next((key for key in texts.keys if not _is_offered(library, key)), "")
    values = {"text": texts.fields.get(field, ""), "most": MAX_ATTEMPTS_ALLOWED, "longest": MAX_MINUTES, "field": field,
              "first": FIRST_YEAR, "last": LAST_YEAR}  # fmt: skip
    return ActivityFormError(field, _(sentence).format(**values, sheet=missing[:MAX_ECHOED]))


def texts_of(plan: Plan, content: Content, time_zone: str) -> ActivityTexts:
    """The form's texts for this plan and content; `read_activity_form` reads them back."""
    policies = plan.policies
    fields = {
        "title": plan.title,
        "day": plan.day.isoformat() if plan.day else "",
        "opens": _local(plan.opens_at, time_zone),
        "closes": _local(plan.closes_at, time_zone),
        "late_minutes": str(policies.late_minutes or ""),
        **{name: getattr(policies, name) for name in ("variants", "feedback", "run")},
        "max_attempts": str(policies.max_attempts or ""),
        "follow_share": f"{policies.follow_share * 100:.0f}",
        **{name: "yes" if getattr(policies, name) else "" for name in ("hints", "examples", "exam", "auto_submit")},
        **{name: "yes" if getattr(policies, name) else "no" for name in ("ticket_anonymous", "names_listed")},
        "ticket": content.ticket.key if content.ticket else "",
    }
    sheets = (
        WorksheetTexts(choice.key, choice.model, "" if choice.tokens is None else str(choice.tokens))
        for choice in map(choice_of, content.items)
    )
    return ActivityTexts(fields, tuple(sheets))


def field_labels() -> dict[str, str]:
    """The form's translated label of each field, and of the worksheets, in the form's order."""
    return {
        "title": _("Title"), "day": _("Date"), "worksheets": _("Worksheets"), "ticket": _("Exit ticket"),
        "ticket_anonymous": _("Anonymous"), "variants": _("Numbers"), "feedback": _("Marks are shown"),
        "max_attempts": _("Attempts per sheet"),
        "follow_share": _("Credit for other boxes spoiled by the same mistake"), "hints": _("Hints"),
        "examples": _("Worked examples"), "exam": _("Exam conditions"), "run": _("Runs in PyTorch"),
        "names_listed": _("List of names"), "opens": _("Opens"), "closes": _("Closes"),
        "late_minutes": _("Late window"), "auto_submit": _("Submit unfinished work automatically"),
    }  # fmt: skip


def texts_in_words(texts: ActivityTexts, titles: Mapping[str, str]) -> dict[str, str]:
    """What each field of `field_labels` says, in words; `titles` are worksheet and ticket titles by key."""
    words = {
        "yes": _("yes"), "no": _("no"), "same": _("the same for everyone"),
        "per_student": _("different for each student"), "immediate": _("at each check"),
        "after_hand_in": _("after handing in"), "after_close": _("after the activity closes"),
        "after": _("once marks are shown"), "before": _("from the start"),
    }  # fmt: skip
    told = {name: words.get(text, text) for name, text in texts.fields.items()}
    told |= {name: told[name] or _("no") for name in ("hints", "examples", "exam", "auto_submit")}
    sheets = ((titles.get(sheet.key, sheet.key), sheet.model, sheet.tokens) for sheet in texts.worksheets)
    return {
        **told,
        "title": texts.fields["title"],
        "ticket": titles.get(texts.fields["ticket"], texts.fields["ticket"]),
        "worksheets": "\n".join(", ".join(filter(None, parts)) for parts in sheets),
    }


def empty_texts(tickets: Sequence[str], time_zone: str) -> ActivityTexts:
    """The texts of a new activity's form: default policies, no worksheet, and the first of `tickets`, if any."""
    texts = texts_of(Plan(""), Content((), None, ""), time_zone)
    return ActivityTexts({**texts.fields, "ticket": next(iter(tickets), "")}, ())


def _local(moment: datetime | None, time_zone: str) -> str:
    return moment.astimezone(ZoneInfo(time_zone)).strftime("%Y-%m-%dT%H:%M") if moment else ""
