"""A Worksheet as an instructor wrote it, and a Model of the library."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.architecture import Architecture

MAX_SHORT_TEXT, MAX_MARKDOWN, MAX_FORMULA = 200, 4000, 200  # characters; a short text is on one line
MAX_QUESTIONS, MAX_OWN_MISCONCEPTIONS, MAX_MISCONCEPTION_BOXES = 10, 10, 40
MAX_POINTS = 10  # for each box of a row
MAX_MISCONCEPTION_KEY = 80  # characters
OWN_MISCONCEPTION_PREFIX = "own-"  # of the keys of misconceptions that are not in the catalogue


class WorksheetError(ValueError):
    """A worksheet or model that is not there, or a file that cannot be used; one sentence that says what to change."""


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


@dataclass(frozen=True)
class OpenQuestion:
    """A question with a free-text answer, which is stored with the attempt and not graded."""

    key: str
    text: str


@dataclass(frozen=True)
class OwnMisconception:
    """A misconception that a teacher describes for one worksheet; its key begins with OWN_MISCONCEPTION_PREFIX.

    boxes: what it makes a student write, as (box of the sheet, formula in the sheet's symbols):
    ("queries.columns", "H*d"). `app.sheets.authoring.own_misconceptions.read_formula` reads the formula.
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
    misconceptions: tuple[OwnMisconception, ...] = ()
