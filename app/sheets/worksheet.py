"""A Worksheet as an instructor wrote it, and a Model of the library."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.architecture import Architecture


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
class Worksheet:
    """What an instructor wrote: which model, topic and number of tokens, and which rows are asked.

    kv_head_per_query_head: simplify grouped queries away (G = H); a footnote then says so.
    decoder_tokens: M, the length of the decoder's text in cross-attention; N if None.
    models: those that a seed may draw; the worksheet's own need not be among them. Empty: the worksheet's own alone.
    answers: "numbers" or "letters", that is expressions in the notation's symbols.
    tokens_are: "rows" of every matrix or, as some courses have it, "columns".
    follow_share: what a follow-through answer is worth, as a share of a right one.
    tolerance: by which share of it an answer may differ from a count of parameters, operations or bytes; 0 is exact.
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
