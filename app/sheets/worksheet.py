"""A Worksheet as an instructor wrote it, and a Model of the library.

A `Worksheet` is what a file says, what the editor's form means, what the database stores and what the library holds. A
forbidden value raises pydantic's ValidationError when it is made.

>>> Worksheet("mine", "One head", "llama-7b", "single-head", 5, rows=("input",)).settings
{'title': 'One head', 'model': 'llama-7b', 'topic': 'single-head', 'tokens': 5, 'rows': ['input']}
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError

from app.algebra.expression import ONE
from app.bugs.bank import BUGS, Bug, BugChoice, bugs_to_deal, frozen_bug
from app.models.architecture import Architecture
from app.names import clean_line, normal_form
from app.refusal import Refusal
from app.shapes.table import Count, TensorTable, symbol_fields
from app.sheets.notation import NOTATIONS, NotationKey
from app.topics.registry import NO_TOPIC, TOPICS
from app.topics.requirements import TopicError
from app.translation import N_
from app.translation import gettext as _

MAX_SHORT_TEXT, MAX_MARKDOWN, MAX_FORMULA = 200, 4000, 200  # characters; a short text is on one line
MAX_QUESTIONS, MAX_AUTHOR_MISCONCEPTIONS, MAX_MISCONCEPTION_BOXES = 10, 10, 40
MAX_POINTS = 10  # for each box of a row
MAX_SENTENCE = 600  # characters of a sentence for a real head
NOT_SET = {"key", "frozen_bug", "marking"}  # fields that aren't settings of a file: an activity has the last one
MAX_NAMES = 500  # rows or models, more than there are
MAX_MISCONCEPTION_KEY, MAX_MISCONCEPTION_NAME = 80, 80  # characters; a name is shown in columns of tables
MAX_REPEATED = 60  # characters of an unknown name or formula that a message quotes
# Before each choice in the key of a sheet made from a worksheet of the library: llama-7b~symbols~5 is llama-7b in
# symbols, cut to its first and its third row; bug-layer~keys-tiled is about that bug. The character needs no escape in
# an address.
CHOICE = "~"
SYMBOLS = "symbols"
OWN_WORKSHEET_PREFIX = "own-"  # for the keys of worksheets that a teacher wrote in the browser
AUTHOR_MISCONCEPTION_PREFIX = "own-"  # for the keys of misconceptions that aren't in the catalogue
_MAX_SLUG = 40
# What a frozen sheet is without once its topic has changed or is gone.
WITHOUT_TOPIC: Mapping[str, Any] = {"topic": NO_TOPIC, "bug": "", "bugs": "one", "frozen_bug": "", "sentence": "",
                                    "checkpoint": "", "layer": 0, "head": 0}  # fmt: skip
# They change the order of the letters around them, and so what a reader sees.
_BIDI_CONTROLS = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of surrogate pairs, line separators
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

Answers = Literal["numbers", "letters"]
Marking = Literal["causes", "boxes", "rows"]  # what earns points: see Report.score


class WorksheetError(Refusal):
    """An unknown worksheet or model, or an unusable file."""

    status = 404


@dataclass(frozen=True)
class Model:
    """A model: its key, its name, a sentence about it, the link to its card, its architecture, and its config.json.

    The config is the text that the architecture was read from.
    """

    key: str
    name: str
    about: str
    card: str
    architecture: Architecture
    config: str
    report: str = ""

    def architecture_taught(self, kv_head_per_query_head: bool) -> Architecture:
        """The architecture, without grouped queries (G = H) if a sheet simplifies them away."""
        return self.architecture.as_multi_head() if kv_head_per_query_head else self.architecture


def derived_key(text: str, prefix: str = "") -> str:
    """A key made from a question's text or a misconception's name, always the same for the same text.

    >>> derived_key("Heads are as wide as d", "own-")
    'own-heads-are-as-wide-as-d'
    """
    letters = "".join(c for c in normal_form("NFKD", text.casefold()) if not unicodedata.combining(c))
    slug = "-".join(re.findall("[a-z0-9]+", letters))
    is_whole = len(slug) <= _MAX_SLUG and not re.search(r"[^\W_a-z0-9]", letters) and slug
    if not is_whole:  # the hash distinguishes texts that differ only in what the slug leaves out
        slug = f"{slug[:_MAX_SLUG]}-{sha256(text.encode()).hexdigest()[:8]}".replace("--", "-").strip("-")
    return prefix + slug


# The values that the fields take


def refused(sentence: str, setting: str = "") -> PydanticCustomError:
    """The error that a validator raises, with a sentence for people whose {setting} is filled in later."""
    return PydanticCustomError("sentence", "{sentence}", {"sentence": sentence, "setting": setting})


def unknown_name(setting: str, known: Iterable[str], name: str) -> str:
    """The sentence about an unknown name."""
    problem = _("{setting} cannot be “{name}”: use one of {names}.")
    return problem.format(setting=setting, name=clean_line(name, MAX_REPEATED), names=", ".join(known))


def _must(sentence: str, **numbers: float) -> WrapValidator:
    def check(value: object, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            if any(problem["type"] in _NAMED_PROBLEMS for problem in error.errors(include_url=False)):
                raise
            raise refused(_(sentence).format(setting="{setting}", **numbers)) from None

    return WrapValidator(check)


def _one_of(known: Collection[str]) -> BeforeValidator:
    names = tuple(known)

    def check(name: object) -> object:
        if name not in names:
            raise refused(unknown_name("{setting}", names, str(name)))
        return name

    return BeforeValidator(check)


def _checked_topic(topic: object) -> object:
    if topic not in (*TOPICS, NO_TOPIC):
        raise refused(unknown_name("{setting}", TOPICS, str(topic)))
    return topic


def _checked_text(text: str, longest: int, *, shortest: int = 1, lines: bool = False) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not shortest <= len(text) <= longest:
        raise ValueError
    for character in text:
        is_unseen = unicodedata.category(character) in _UNSEEN or character in _BIDI_CONTROLS
        if is_unseen and not (lines and character in "\n\t"):
            sentence = _("{setting} has a character that cannot be seen ({code}): delete it.")
            raise refused(sentence.format(setting="{setting}", code=f"U+{ord(character):04X}"))
    return text


def _of_length(longest: int, *, shortest: int = 1, lines: bool = False) -> AfterValidator:
    return AfterValidator(partial(_checked_text, longest=longest, shortest=shortest, lines=lines))


def _checked_key(key: str, longest: int = MAX_SHORT_TEXT, prefix: str = "") -> str:
    if key and not (key.startswith(prefix) and len(key) <= longest and _KEY.fullmatch(key)):
        raise ValueError
    return key


_NAMED_PROBLEMS = frozenset({"sentence", "missing", "unexpected_keyword_argument"})
_ONE_LINE = N_("{setting} must be a text of 1 to {most} characters on one line.")
_WHOLE_NUMBER = _must(N_("{setting} must be a whole number, such as 100."))
_Text = Annotated[str, Strict()]
_Line = Annotated[_Text, _of_length(MAX_SHORT_TEXT), _must(_ONE_LINE, most=MAX_SHORT_TEXT)]
_AT_MOST = N_("{setting} must be a text of at most {most:,} characters.")
_FORMULA = N_("{setting} must be a box, = and a formula of at most {most} characters, such as queries.columns = H*d.")
_Formula = Annotated[_Text, _of_length(MAX_FORMULA), _must(_FORMULA, most=MAX_FORMULA)]
_Markdown = Annotated[_Text, _of_length(MAX_MARKDOWN, shortest=0, lines=True), _must(_AT_MOST, most=MAX_MARKDOWN)]
_Switch = Annotated[bool, Strict(), _must(N_("{setting} must be true or false."))]
_Number = Annotated[int, Strict(), _WHOLE_NUMBER]
_OptionalNumber = Annotated[Annotated[int, Strict()] | None, _WHOLE_NUMBER]
_Sentence = Annotated[_Text, _of_length(MAX_SENTENCE, shortest=0), _must(_AT_MOST, most=MAX_SENTENCE)]
_LineOrNothing = Annotated[_Text, _of_length(MAX_SHORT_TEXT, shortest=0), _must(_AT_MOST, most=MAX_SHORT_TEXT)]
_Place = Annotated[int, Strict(), Field(ge=0), _must(N_("{setting} must be a whole number from 0."))]
_Names = Annotated[tuple[_Text, ...], Field(max_length=MAX_NAMES), _must(N_("{setting} must be a list of texts."))]
_LineOfRow = Annotated[Mapping[str, _Line], _must(_ONE_LINE, most=MAX_SHORT_TEXT)]
_POINTS = _must(N_("{setting} must be a whole number from 0 to {most}."), most=MAX_POINTS)
_SETTINGS = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, config=_SETTINGS)
class OpenQuestion:
    """A question with a free-text answer, stored but not graded; its key is by default derived from its text.

    model_answer: Markdown for teachers, on printed keys and their own pages; no student sees it.
    """

    key: Annotated[
        _Text,
        AfterValidator(_checked_key),
        _must(N_("{setting} must be lower-case letters and digits with hyphens between them.")),
    ] = field(default="", kw_only=True)
    text: _Line
    model_answer: _Markdown = ""

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", derived_key(self.text))  # bypasses the frozen dataclass, once


@checked_dataclass(frozen=True, config=_SETTINGS)
class AuthorMisconception:
    """A misconception that a teacher describes for one worksheet; its key begins with AUTHOR_MISCONCEPTION_PREFIX."""

    key: Annotated[
        _Text,
        AfterValidator(partial(_checked_key, longest=MAX_MISCONCEPTION_KEY, prefix=AUTHOR_MISCONCEPTION_PREFIX)),
        _must(
            N_("{setting} must be “own-” and lower-case letters and digits with hyphens, at most {most} characters."),
            most=MAX_MISCONCEPTION_KEY,
        ),
    ] = field(default="", kw_only=True)
    name: Annotated[_Text, _of_length(MAX_MISCONCEPTION_NAME), _must(_ONE_LINE, most=MAX_MISCONCEPTION_NAME)]
    boxes: Annotated[
        Mapping[str, _Formula],
        Field(min_length=1, max_length=MAX_MISCONCEPTION_BOXES),
        _must(
            N_("{setting} must be a table of 1 to {boxes} boxes with a formula each, such as queries.columns = H*d."),
            boxes=MAX_MISCONCEPTION_BOXES,
        ),
    ]
    question: _Line
    explanation: Annotated[
        _Text,
        _of_length(MAX_MARKDOWN, lines=True),
        _must(N_("{setting} must be a text of 1 to {most:,} characters."), most=MAX_MARKDOWN),
    ]

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", derived_key(self.name, AUTHOR_MISCONCEPTION_PREFIX))


@checked_dataclass(frozen=True, config=_SETTINGS)
class Worksheet:
    """What an instructor wrote: the model, topic and number of tokens, and which rows are asked."""

    key: str
    title: _Line
    model: Annotated[_Text, _must(N_("{setting} must be a text."))]
    topic: Annotated[str, BeforeValidator(_checked_topic)]
    tokens: _Number
    rows: _Names
    notation: Annotated[NotationKey, _one_of(NOTATIONS)] = "classic"
    kv_head_per_query_head: _Switch = False
    decoder_tokens: _OptionalNumber = None
    bug: Annotated[_Text, _must(N_("{setting} must be a text."))] = ""
    bugs: Annotated[BugChoice, _one_of(get_args(BugChoice))] = "one"
    sentence: _Sentence = ""
    checkpoint: _LineOrNothing = ""
    layer: _Place = 0
    head: _Place = 0
    models: _Names = ()
    answers: Annotated[Answers, _one_of(get_args(Answers))] = "numbers"
    tokens_from: _OptionalNumber = None
    tokens_to: _OptionalNumber = None
    introduction: _Markdown = ""
    footnote: _Markdown = ""
    row_hints: _LineOfRow = field(default_factory=dict)
    row_points: Annotated[
        Mapping[str, Annotated[int, Strict(), Field(ge=0, le=MAX_POINTS), _POINTS]],
        AfterValidator(lambda points: {row: number for row, number in points.items() if number != 1}),
        _POINTS,
    ] = field(default_factory=dict)
    questions: Annotated[
        tuple[Annotated[OpenQuestion, _must(N_("{setting} must be a table with key, text, model_answer."))], ...],
        Field(max_length=MAX_QUESTIONS),
        _must(N_("{setting} must be a list of at most {most} questions."), most=MAX_QUESTIONS),
    ] = ()
    misconceptions: Annotated[
        tuple[
            Annotated[
                AuthorMisconception,
                _must(N_("{setting} must be a table with key, name, boxes, question, explanation.")),
            ],
            ...,
        ],
        Field(max_length=MAX_AUTHOR_MISCONCEPTIONS),
        _must(N_("{setting} must be a list of at most {most} misconceptions."), most=MAX_AUTHOR_MISCONCEPTIONS),
    ] = ()
    frozen_bug: str = ""
    marking: Marking = "causes"

    def __post_init__(self) -> None:
        first, last = self.tokens_from, self.tokens_to
        if (first is None) != (last is None):
            missing = "tokens_to" if last is None else "tokens_from"
            raise refused(_("{setting} is missing: a range has a first and a last number."), missing)
        if first is not None and last is not None and first > last:
            raise refused(_("{setting} must be at least as much as the first number of the range."), "tokens_to")
        bugs = TOPICS[self.topic].bugs
        named = "bug" if self.bug else "bugs" if self.deals_bugs else ""
        if named and not bugs:
            raise refused(_("{setting} must be left out: this topic is not about a program with a bug."), named)
        if bugs and self.bug not in bugs and not self.frozen_bug:
            raise refused(unknown_name("{setting}", bugs, self.bug), "bug")
        topic = TOPICS[self.topic]
        if self.sentence and not (topic.runs and topic.subject == "head" and topic.reads_one_text):
            raise refused(_("{setting} must be left out: this topic is not about one head."), "sentence")
        if bool(self.sentence) != bool(self.checkpoint) or ((self.layer or self.head) and not self.sentence):
            missing = "checkpoint" if self.sentence else "sentence"
            raise refused(_("{setting} is missing: a real head has weights and a sentence."), missing)
        for setting in ("tokens_from", "models"):
            if self.sentence and getattr(self, setting):
                raise refused(_("{setting} must be left out: the sentence has one model and one length."), setting)

    def __hash__(self) -> int:
        return hash((self.key, self.title, self.model, self.topic, self.tokens, self.rows))

    @property
    def in_letters(self) -> bool:
        """Whether it is answered in symbols."""
        return self.answers == "letters"

    @property
    def bug_row(self) -> Bug | None:
        """The bug that the sheet is about: as it was frozen, or the bank's."""
        if self.frozen_bug:
            return frozen_bug(self.frozen_bug)
        return BUGS[self.bug] if self.bug else None

    @property
    def deals_bugs(self) -> bool:
        """Whether a seed draws the bug."""
        return self.bugs != "one"

    @property
    def dealt_bugs(self) -> tuple[str, ...]:
        """The keys of the bugs that a seed may draw; none on a topic without bugs."""
        return bugs_to_deal(self.bug_row, self.bugs) if self.bug_row else ()

    def with_bug(self, bug: str, frozen: str = "") -> Worksheet:
        """The worksheet about one of its `dealt_bugs`, and no other."""
        key = f"{self.key}{CHOICE}{bug}"
        return replace(self, key=key, bug=bug, bugs="one", frozen_bug=frozen)

    @property
    def dealt_bug(self) -> str:
        """The bug in the key, if one was dealt instead of the worksheet's own; otherwise empty."""
        return self.bug if self.bug and self.whole == f"{library_key(self.key)}{CHOICE}{self.bug}" else ""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as in a worksheet file: the required ones, and those that differ from the default."""
        settings: dict[str, Any]
        settings = WORKSHEETS.dump_python(self, mode="json", exclude=NOT_SET, exclude_defaults=True)
        return settings

    def architecture_of(self, model: Model) -> Architecture:
        """The model's architecture as this worksheet teaches it: without grouped queries if it simplifies them away."""
        return model.architecture_taught(self.kv_head_per_query_head)

    def rows_asked(self, table: TensorTable) -> tuple[str, ...]:
        """The rows that a model's table has; on a sheet made in symbols, only those that symbols can answer."""
        rows = tuple(row for row in self.rows if row in table.askable)
        return tuple(row for row in rows if _has_symbols(table, row)) if is_in_symbols(self.key) else rows

    def check_rows(self, model: Model, table: TensorTable) -> None:
        """Raise TopicError if the model's table has too few of the rows that the worksheet asks for."""
        in_table = [row for row in self.rows if row in table.askable]
        if not in_table:
            message = _("{model} has none of the parts that “{worksheet}” asks for: choose another worksheet.")
            raise TopicError(message.format(model=model.name, worksheet=self.title))
        if not self.in_letters:
            return
        needed = len(in_table) / 2 if is_in_symbols(self.key) else len(in_table)  # an author chose each row
        if sum(_has_symbols(table, row) for row in in_table) < needed:
            message = _(
                "For {model}, “{worksheet}” has no answers in symbols: they are rounded, or the same for every model. "
                "Choose another model, or answers in numbers."
            )
            raise TopicError(message.format(worksheet=self.title, model=model.name))

    @property
    def is_own(self) -> bool:
        """Whether a teacher wrote it in the browser; its code then opens a sheet only in their course."""
        return self.key.startswith(OWN_WORKSHEET_PREFIX)

    @property
    def whole(self) -> str:
        """The key of the worksheet that this one was cut from; its own key if it is whole."""
        return whole_key(self.key)

    @property
    def rows_number(self) -> int | None:
        """The number that names the rows of a cut worksheet; None if it is whole."""
        return None if self.key == self.whole else int(self.key.removeprefix(self.whole + CHOICE))

    @property
    def why_not_in_symbols(self) -> str:
        """The sentence that refuses the worksheet in symbols; empty if it can be made."""
        if TOPICS[self.topic].bugs:
            return _("A sheet about a bug can’t be switched to symbols.")
        if TOPICS[self.topic].in_steps:
            return _("The first steps can only be answered in numbers.")
        if self.sentence:
            return _("This sheet is about one particular sentence, so it can only be answered in numbers.")
        if self.in_letters:
            return _("“{worksheet}” can only be answered in symbols.").format(worksheet=self.title)
        return ""

    def in_symbols(self) -> Worksheet:
        """The same worksheet with answers in symbols; raises WorksheetError if that makes no sense."""
        if reason := self.why_not_in_symbols:
            raise WorksheetError(reason)
        return replace(self, key=key_in(self.key, "symbols"), title=title_in_symbols(self.title), answers="letters")

    def cut_to(self, rows: Collection[str]) -> Worksheet:
        """The worksheet with only these of its rows, in its order, and without open questions; unknown rows are
        ignored.
        """
        left = [place for place, row in enumerate(self.rows) if row in rows]
        if self.rows_number is not None or len(left) in (0, len(self.rows)):
            return self
        key = f"{self.key}{CHOICE}{sum(1 << place for place in left)}"
        return replace(self, key=key, rows=tuple(self.rows[place] for place in left), questions=())

    def cut_by_number(self, number: int) -> Worksheet:
        """The worksheet cut to the rows that this number means in its key, without open questions.

        Raises WorksheetError for a number that means no rows, all rows, or unknown rows.
        """
        cut = self.cut_to([row for place, row in enumerate(self.rows) if number >> place & 1])
        if cut.rows_number != number:
            raise self.no_such_part(str(number))
        return cut

    def no_such_part(self, number: str) -> WorksheetError:
        """The error for a `number` after CHOICE in a key that means no part of this worksheet."""
        problem = _("“{title}” has no part “{number}”. Open the whole worksheet instead: “{key}”.")
        return WorksheetError(problem.format(title=self.title, number=number[:60], key=self.key))


WORKSHEETS = TypeAdapter(Worksheet)


def library_key(key: str) -> str:
    """The key of the library's worksheet that one with this key is made from.

    >>> library_key("llama-7b~symbols~5"), library_key("llama-7b")
    ('llama-7b', 'llama-7b')
    """
    return key.split(CHOICE)[0]


def stored_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """A worksheet's stored fields, without settings and notations that no longer exist."""
    known = {each.name for each in fields(Worksheet)}
    return {
        name: value for name, value in values.items() if name in known and (name != "notation" or value in NOTATIONS)
    }


def whole_key(key: str) -> str:
    """The key of the worksheet that one with this key was cut from, or the key itself.

    >>> whole_key("llama-7b~symbols~5"), whole_key("bug-layer~keys-tiled"), whole_key("llama-7b")
    ('llama-7b~symbols', 'bug-layer~keys-tiled', 'llama-7b')
    """
    first, _choice, last = key.rpartition(CHOICE)
    return first if first and last.isdecimal() else key


def is_in_symbols(key: str) -> bool:
    """Whether a key asks for the library's worksheet in symbols."""
    return key.split(CHOICE)[1:2] == [SYMBOLS]


def key_in(key: str, answers: Literal["numbers", "symbols"]) -> str:
    """The key of the same sheet, whole or cut, with its answers in numbers or in symbols.

    >>> key_in("llama-7b~5", "symbols"), key_in("llama-7b~symbols", "numbers")
    ('llama-7b~symbols~5', 'llama-7b')
    """
    first, *choices = key.split(CHOICE)
    rows = [choice for choice in choices if choice != SYMBOLS]
    return CHOICE.join([first, *([SYMBOLS] if answers == "symbols" else []), *rows])


def title_in_symbols(title: str) -> str:
    """The title of a sheet made in symbols."""
    return _("{title} (in symbols)").format(title=title)


def _has_symbols(table: TensorTable, row: str) -> bool:
    entry = table.askable[row]
    if isinstance(entry, Count) and entry.rounds:
        return False
    answers = map(entry.expression, symbol_fields(entry))
    return all(answer.symbols or answer == ONE for answer in answers)
