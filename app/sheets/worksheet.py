"""A Worksheet as an instructor wrote it, and a Model of the library."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from app.algebra.expression import ONE
from app.models.architecture import Architecture
from app.shapes.requirements import TopicError
from app.shapes.table import Count, TensorTable
from app.translation import gettext as _

MAX_SHORT_TEXT, MAX_MARKDOWN, MAX_FORMULA = 200, 4000, 200  # characters; a short text is on one line
MAX_QUESTIONS, MAX_AUTHOR_MISCONCEPTIONS, MAX_MISCONCEPTION_BOXES = 10, 10, 40
MAX_POINTS = 10  # for each box of a row
MAX_MISCONCEPTION_KEY, MAX_MISCONCEPTION_NAME = 80, 80  # characters; a name stands in columns of tables
CUT = "~"  # in the key of a cut worksheet, between that of the whole one and the number of its rows
OWN_WORKSHEET_PREFIX = "own-"  # of the keys of worksheets that a teacher wrote in the browser
AUTHOR_MISCONCEPTION_PREFIX = "own-"  # of the keys of misconceptions that are not in the catalogue


class WorksheetError(ValueError):
    """A worksheet or model that is not there, or a file that cannot be used; one sentence that says what to change."""


@dataclass(frozen=True)
class Model:
    """A model: its key, its name, a sentence about it, the link to its card, its architecture, and its config.json.

    The config is the text that the architecture was read from. `report` is the link to a report on it, if there is one.
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


@dataclass(frozen=True)
class OpenQuestion:
    """A question with a free-text answer, which is stored with the attempt and not graded."""

    key: str
    text: str


@dataclass(frozen=True)
class AuthorMisconception:
    """A misconception that a teacher describes for one worksheet; its key begins with AUTHOR_MISCONCEPTION_PREFIX.

    boxes: what it makes a student write, as (box of the sheet, formula in the sheet's symbols):
    ("queries.columns", "H*d"). `app.sheets.authoring.author_misconceptions.read_formula` reads the formula.
    question: what a student is asked who seems to hold it. explanation: Markdown, once the answers are shown.
    """

    key: str
    name: str
    boxes: tuple[tuple[str, str], ...]
    question: str
    explanation: str


@dataclass(frozen=True)
class Worksheet:
    """What an instructor wrote: which model, topic and number of tokens, and which rows are asked.

    kv_head_per_query_head: simplify grouped queries away (G = H); a footnote then says so.
    decoder_tokens: M, the length of the decoder's text in cross-attention; N if None.
    models: those that a seed may draw; the worksheet's own need not be among them. Empty: the worksheet's own alone.
    answers: "numbers" or "letters", that is expressions in the notation's symbols.
    tokens_are: "rows" of every matrix or, as some courses have it, "columns".
    follow_share: what a follow-through answer is worth, as a share of a right one.
    tolerance: by which share of it an answer may differ from a count of parameters, operations or bytes; 0 is exact.
    tokens_from, tokens_to: the range that a seed draws the tokens from; None leaves it to the app.
    hidden_facts: the parts of the topic's description that the sheet does not say, such as "head-dimension".
    introduction, own_assumptions, footnote: Markdown with formulas between dollar signs.
    row_names, row_hints, row_points: (row, text or points for each of its boxes), for rows that differ from the usual.
    show_hints, show_drawing, show_mismatches: whether students get hints, the drawing, and where its edges don't meet.
    """

    key: str
    title: str
    model: str
    topic: str
    tokens: int
    rows: tuple[str, ...]
    notation: str = "classic"
    kv_head_per_query_head: bool = False
    decoder_tokens: int | None = None
    models: tuple[str, ...] = ()
    answers: str = "numbers"
    tokens_are: str = "rows"
    follow_share: float = 0.5
    tolerance: float = 0.0
    tokens_from: int | None = None
    tokens_to: int | None = None
    hidden_facts: tuple[str, ...] = ()
    introduction: str = ""
    own_assumptions: str = ""
    footnote: str = ""
    row_names: tuple[tuple[str, str], ...] = ()
    row_hints: tuple[tuple[str, str], ...] = ()
    row_points: tuple[tuple[str, int], ...] = ()
    show_hints: bool = True
    show_drawing: bool = True
    show_mismatches: bool = True
    questions: tuple[OpenQuestion, ...] = ()
    misconceptions: tuple[AuthorMisconception, ...] = ()

    def architecture_of(self, model: Model) -> Architecture:
        """The model's architecture as this worksheet teaches it: without grouped queries if it simplifies them away."""
        return model.architecture_taught(self.kv_head_per_query_head)

    def check_rows(self, model: Model, table: TensorTable) -> None:
        """Raise TopicError if the model's table of the topic has none of the rows that the worksheet asks for.

        Also refuse tokens as columns where tensors have more than two dimensions, and a worksheet in symbols if one of
        its answers is rounded for this model, or is a number without a symbol, such as the partner of a dimension in
        neighbouring pairs; a side of 1 may be asked.
        """
        asked = [table.asked[row] for row in self.rows if row in table.asked]
        if not asked:
            message = _("{model} has none of the parts that “{worksheet}” asks for: choose another worksheet.")
            raise TopicError(message.format(model=model.name, worksheet=self.title))
        if self.tokens_are == "columns" and table.has_more_sides:
            message = _("“{worksheet}” is about tensors with more than two dimensions: its tokens must be rows.")
            raise TopicError(message.format(worksheet=self.title))
        if self.answers != "letters":
            return
        if any(isinstance(entry, Count) and entry.rounds for entry in asked):
            message = _(
                "“{worksheet}” asks for numbers that are rounded for {model}, which symbols cannot say: choose another "
                "model, or a worksheet in numbers."
            )
            raise TopicError(message.format(worksheet=self.title, model=model.name))
        answers = (entry.expression(field) for entry in asked for field in entry.fields)
        if any(not answer.symbols and answer != ONE for answer in answers):
            message = _(
                "An answer of “{worksheet}” is the same number for every input of {model}, with no symbol in it: "
                "choose another model, or a worksheet in numbers."
            )
            raise TopicError(message.format(model=model.name, worksheet=self.title))

    @property
    def is_own(self) -> bool:
        """Whether a teacher wrote it in the browser; its code then opens no sheet outside of their course."""
        return self.key.startswith(OWN_WORKSHEET_PREFIX)

    @property
    def whole(self) -> str:
        """The key of the worksheet that this one was cut from; its own key if it is whole."""
        return whole_key(self.key)

    @property
    def rows_number(self) -> int | None:
        """The number that names the rows of a cut worksheet; None if it is whole."""
        return int(self.key.split(CUT)[1]) if CUT in self.key else None

    def cut_to(self, rows: Collection[str]) -> Worksheet:
        """The worksheet with these of its rows alone and without open questions; itself if none or all are left.

        Its key ends with "~" and a number, whose binary digits say which rows are left, the first row's digit last:
        the first and the third row of "llama-7b" make "llama-7b~5".
        """
        left = [place for place, row in enumerate(self.rows) if row in rows]
        if CUT in self.key or len(left) in (0, len(self.rows)):
            return self
        key = f"{self.key}{CUT}{sum(1 << place for place in left)}"
        return replace(self, key=key, rows=tuple(self.rows[place] for place in left), questions=())

    def cut_by_number(self, number: int) -> Worksheet:
        """The worksheet with the rows that this number names; raises WorksheetError if it names none, or no cut."""
        cut = self.cut_to([row for place, row in enumerate(self.rows) if number >> place & 1])
        if cut.rows_number != number:
            raise self.no_such_part(str(number))
        return cut

    def no_such_part(self, number: str) -> WorksheetError:
        """The error for what stands after CUT in a key and names no part of this worksheet."""
        problem = _("“{title}” has no part “{number}”. Open the whole worksheet instead: “{key}”.")
        return WorksheetError(problem.format(title=self.title, number=number[:60], key=self.key))


def whole_key(key: str) -> str:
    """The key of the worksheet that one with this key was cut from; the key itself if that is whole.

    >>> whole_key("llama-7b~5"), whole_key("llama-7b")
    ('llama-7b', 'llama-7b')
    """
    return key.split(CUT)[0]
