"""A Worksheet as an instructor wrote it; with a model and a number of tokens it is a Variant, whose sizes are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from app.algebra.expression import Expression, Term
from app.misconceptions.catalogue import Expectation, expectations
from app.models.architecture import Architecture
from app.shapes.consistency import upstream_blanks
from app.shapes.table import MATRIX_FIELDS, Blank, BlankField, TensorTable
from app.shapes.topics import sizes_for, topic_for
from app.sheets.codes import write_code
from app.sheets.numbers import Unreadable, read_answer
from app.sheets.symbols import read_symbols


class WorksheetError(ValueError):
    """A worksheet or model that is not there, or a file that cannot be used; one sentence that says what to change."""


@dataclass(frozen=True)
class Model:
    """A model of the library: its key, its name, a sentence about it, the link to its card, and its architecture."""

    key: str
    name: str
    about: str
    card: str
    architecture: Architecture


@dataclass(frozen=True)
class Worksheet:
    """What an instructor wrote: which model, topic and number of tokens, and which rows are asked.

    `kv_head_per_query_head` simplifies grouped queries away (G = H), and a footnote says so. `decoder_tokens` is the
    length M of the decoder's text in cross attention, N where it is not given. `models` are those a seed may draw
    from, the worksheet's own among them or not. `answers` are asked as "numbers" or in
    "letters"; `tokens_are` "rows" of every matrix or, as some courses have it, "columns". `follow_share` is what a box
    is worth that is right given the student's own earlier answers, as a share of a right one.
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


@dataclass(frozen=True)
class Row:
    """One line of a sheet: what it asks for, its letter in the sheet's notation, its name and a short note."""

    key: str
    letter: str
    name: str
    note: str

    fields: tuple[BlankField, ...] = MATRIX_FIELDS

    @property
    def blanks(self) -> tuple[Blank, ...]:
        return tuple(Blank(self.key, field) for field in self.fields)


@dataclass(frozen=True)
class Typed:
    """What a text in a box was read as: the number it comes to and, on a sheet in letters, what it means."""

    value: int
    meaning: Expression | None = None


@dataclass(frozen=True)
class Wording:
    """The sentences of one language, by section and key."""

    sections: Mapping[str, Any] = field(repr=False)

    def say(self, section: str, key: str, **sizes: object) -> str:
        return str(self.sections[section][key]).format(**sizes)

    def nudge(self, topic: str, blank: Blank) -> str:
        """What is said beside a box that is not right: for this box, or for every box of its kind."""
        nudges = self.sections["nudges"][topic]
        return str(nudges.get(str(blank)) or nudges[f"each.{blank.field}"])

    def nudge_turned(self, blank: Blank) -> str:
        """The same on a sheet whose tokens are columns."""
        return self.say("nudges-turned", blank.field)

    def misconception(self, key: str, sentence: str) -> str:
        """The nudge of a misconception, which points without telling, or its explanation."""
        return str(self.sections["misconceptions"][key][sentence])

    def unreadable(self, answer: Unreadable) -> str:
        return self.say("unreadable", answer.reason, detail=answer.detail)


@dataclass(frozen=True)
class Variant:
    """A worksheet whose sizes are fixed: what a page shows, what a key holds, what answers are graded by.

    `decoder_tokens` are given where they are not the worksheet's own.
    """

    worksheet: Worksheet
    model: Model
    tokens: int
    wording: Wording
    decoder_tokens: int | None = None

    @cached_property
    def code(self) -> str:
        """The letters that open this very sheet."""
        return write_code(self)

    @cached_property
    def architecture(self) -> Architecture:
        """The model's architecture as this sheet sees it, simplified where the worksheet says so."""
        real = self.model.architecture
        return real.as_multi_head() if self.worksheet.kv_head_per_query_head else real

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Every symbol that has a size on this sheet, N among them."""
        decoded = self.decoder_tokens or self.worksheet.decoder_tokens or self.tokens
        return sizes_for(self.worksheet.topic, self.architecture, self.tokens, decoded)

    @cached_property
    def table(self) -> TensorTable:
        """The table that the worksheet's topic means for this model; raises TopicError."""
        return topic_for(self.worksheet.topic, self.architecture, self.tokens)

    @property
    def notation(self) -> Notation:
        return NOTATIONS[self.worksheet.notation]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(self._row(key) for key in self.worksheet.rows if key in self.table.asked)

    def _row(self, key: str) -> Row:
        words, asked = self.wording.sections["rows"][self.worksheet.topic][key], self.table.asked[key]
        return Row(key, self.notation.letter(key, asked.letter), words["name"], words.get("note", ""), asked.fields)

    @cached_property
    def blanks(self) -> tuple[Blank, ...]:
        """Every box of the sheet, row by row."""
        return tuple(blank for row in self.rows for blank in row.blanks)

    @cached_property
    def blanks_by_name(self) -> Mapping[str, Blank]:
        """The same by the names that files and API give them, such as 'queries.rows'."""
        return {str(blank): blank for blank in self.blanks}

    def in_table_orientation(self, blank: Blank) -> Blank:
        """The same side in the table, where tokens are rows: on a sheet whose tokens are columns, the other one."""
        return blank.transposed if self.worksheet.tokens_are == "columns" else blank

    def dim(self, blank: Blank) -> Expression:
        """The true length of one side of one matrix, in symbols."""
        upright = self.in_table_orientation(blank)
        return self.table.asked[upright.tensor].dim(upright.field)

    @cached_property
    def with_tokens_as_rows(self) -> Variant:
        """The same sheet with its tokens as rows, as the table has them."""
        if self.worksheet.tokens_are == "rows":
            return self
        return replace(self, worksheet=replace(self.worksheet, tokens_are="rows"))

    @cached_property
    def key(self) -> Mapping[Blank, int]:
        """The true number of every box."""
        return {blank: self.answer(blank) for blank in self.blanks}

    @cached_property
    def upstream_blanks(self) -> Mapping[Blank, frozenset[Blank]]:
        """The boxes that a side is made from along the equations, in the order of computation."""
        return upstream_blanks(self.table, frozenset(self.worksheet.rows))

    @cached_property
    def expectations(self) -> tuple[Expectation, ...]:
        """What each misconception makes a student write here."""
        return expectations(self)

    def answer(self, blank: Blank) -> int:
        """The true length of one side of one matrix."""
        return self.dim(blank).size(self.sizes)

    def read(self, text: str) -> Typed | Unreadable | None:
        """What a text in a box means on this sheet, None for an empty box."""
        if self.worksheet.answers == "numbers":
            number = read_answer(text)
            return Typed(number) if isinstance(number, int) else number
        meaning = read_symbols(text, self.names)
        if not isinstance(meaning, Expression):
            return meaning
        value = meaning.value(self.sizes)
        if value.denominator != 1 or value < 1:
            return Unreadable("no-length")
        return Typed(int(value), meaning)

    def is_right(self, blank: Blank, typed: Typed) -> bool:
        """Whether it is the answer: by its number, or on a sheet in letters by what it means in this model."""
        if typed.meaning is None:
            return typed.value == self.key[blank]
        truth = self.dim(blank)
        return typed.meaning.substitute(self._same) == truth.substitute(self._same)

    @cached_property
    def names(self) -> dict[str, str]:
        """Every name that may be written on a sheet in letters, and the symbol it stands for."""
        written = {self.notation.symbols.get(symbol, symbol): symbol for symbol in reversed(self.sizes)}
        return {symbol: symbol for symbol in self.sizes} | written

    @cached_property
    def _same(self) -> dict[str, Expression]:
        """What is the same in this model by its making: d = H·d_h, G = H, d_v = d_h, where that holds."""
        a, symbol = self.architecture, Expression.symbol
        holds = {
            "d": (a.d == a.H * a.d_h, symbol("H") * symbol("d_h")),
            "G": (a.G == a.H, symbol("H")),
            "d_v": (a.d_v == a.d_h, symbol("d_h")),
        }
        return {name: meaning for name, (true, meaning) in holds.items() if true}

    def same(self, one: str, other: str) -> bool:
        """Whether two symbols are one by the making of this model, as G and H are without grouped queries."""
        first, second = (Expression.symbol(symbol).substitute(self._same) for symbol in (one, other))
        return first == second

    @property
    def fields(self) -> tuple[BlankField, ...]:
        """What the rows of this sheet ask for, between them: rows and columns, a count, or all three."""
        return max((row.fields for row in self.rows), key=len)

    @property
    def letters(self) -> dict[str, str]:
        """Every letter of the sheet by its key."""
        entries = {**self.table.by_key, **self.table.asked}
        return {key: self.notation.letter(key, entry.letter) for key, entry in entries.items()}

    @property
    def title(self) -> str:
        own = self.model.key == self.worksheet.model
        return self.worksheet.title if own else self.wording.say("titles", self.worksheet.topic, model=self.model.name)

    @property
    def description(self) -> str:
        """What the sheet tells about the model, with every number taken from its config."""
        return " ".join(self.wording.say("description", key, **self._words) for key in self._description_keys())

    @property
    def task(self) -> str:
        """What is to be written, and how: in numbers or letters, tokens as rows or as columns."""
        sheet, say = self.worksheet, self.wording.say
        written = {symbol: self.notation.symbols.get(symbol, symbol) for symbol in ("N", "d", "H", "d_h", "G")}
        parts = [say("tasks", sheet.topic)]
        if "rows" in self.fields and sheet.topic != "layer-parameters":
            parts.append(say("tokens-are", sheet.tokens_are))
        if sheet.answers == "letters":
            parts.append(say("answers", "letters", **written))
        return " ".join(parts)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(self.wording.sections["assumptions"][self.worksheet.topic])

    @property
    def footnote(self) -> str | None:
        """What the sheet leaves out of the model's truth, None where it leaves nothing out."""
        real = self.model.architecture
        if self.architecture.G == real.G:
            return None
        return self.wording.say("footnotes", "kv-head-per-query-head", **_words(self.model, real, self.tokens))

    def _description_keys(self) -> list[str]:
        keys = self.wording.sections["description-parts"][self.worksheet.topic]
        return [sentence for key in keys if (sentence := self._sentence_for(key))]

    def _sentence_for(self, key: str) -> str:
        """The sentence of the description that fits this model, empty where there is nothing to tell."""
        a = self.architecture
        even = "head-width-derived" if a.d_h * a.H == a.d else "head-width-stated"
        fitting = {
            "heads": even if a.d_h == a.d_v else "head-width-latent",
            "latent": "latent" if "r_kv" in self.sizes else "",
            "rotary": "rotary" if a.rotary else "",
            "grouped": "grouped" if a.G != a.H else "",
            "tokens": "tokens-causal" if a.causal else "tokens-bidirectional",
            "feed-forward": "feed-forward-gated" if a.gated else "feed-forward-plain",
            "positions": "positions" if a.has_position_table else "",
            "tied": "tied" if a.tied_embeddings else "untied",
            "windowed": "window" if a.window and a.window <= self.tokens else "",
        }
        return fitting.get(key, key)

    @property
    def _words(self) -> dict[str, object]:
        numbers = {symbol: format_number(size) for symbol, size in self.sizes.items()}
        return {**numbers, **_words(self.model, self.architecture, self.tokens)}


def _words(model: Model, architecture: Architecture, tokens: int) -> dict[str, object]:
    named = {"N": tokens, "W": architecture.window, **architecture.all_sizes}
    sizes = {symbol: format_number(size) for symbol, size in named.items() if size is not None}
    return {"model": model.name, "share": architecture.query_heads_per_kv_head, **sizes}


def format_number(number: int) -> str:
    """A number as sheets write it: 4096 whole, longer ones in groups of three (131,072)."""
    return str(number) if number < 10_000 else f"{number:,}"


@dataclass(frozen=True)
class Notation:
    """How one kind of course writes things; `_` starts a subscript. Letters and symbols it does not name stay."""

    letters: Mapping[str, str]
    symbols: Mapping[str, str]

    def letter(self, key: str, own: str) -> str:
        """The letter of a tensor: this notation's, else the table's own."""
        return self.letters.get(key, own)

    def write(self, dim: Expression) -> str:
        """A symbolic length in this notation, such as 'H·d_head' for H*d_h."""
        factors: dict[tuple[str, ...], int | Fraction] = {}
        spelled: dict[tuple[str, ...], tuple[str, ...]] = {}
        for term in dim.terms:  # under these names some terms may be alike, where d_h and d_v are one d_head
            names = tuple(self.symbols.get(symbol, symbol) for symbol in term.symbols)
            alike = tuple(sorted(names))
            spelled.setdefault(alike, names)
            factors[alike] = factors.get(alike, 0) + term.factor
        return " + ".join(str(Term(factor, spelled[alike])).replace("*", "·") for alike, factor in factors.items())


_CODE = {"input": "x", "queries": "q", "keys": "k", "values": "v", "scores": "scores", "weights": "attn",
         "context": "ctx", "output": "out", "W_Q": "wq", "W_K": "wk", "W_V": "wv", "W_O": "wo"}  # fmt: skip
_CLASSIC = {"d": "d_model", "d_h": "d_head", "d_v": "d_head", "G": "H_kv"}
_LECTURE = {"N": "T", "H": "h", "G": "h_kv"}
_FRAMEWORK = {"N": "seq_len", "d": "hidden_size", "H": "n_heads", "G": "n_kv_heads", "d_h": "head_dim",
              "d_v": "head_dim", "d_ff": "intermediate_size", "V": "vocab_size", "L": "n_layers"}  # fmt: skip
_PRIMED = {"input": "E", "W_Q": "W'_Q", "W_K": "W'_K", "W_V": "W'_V", "W_O": "W'_O"}
NOTATIONS: Mapping[str, Notation] = {
    "classic": Notation({}, _CLASSIC),
    "lecture": Notation(_PRIMED, _LECTURE),
    "framework": Notation(_CODE, _FRAMEWORK),
}
