"""A Variant: one sheet, that is a worksheet with a model and a number of tokens; all its sizes are fixed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from app.algebra.expression import Expression
from app.algebra.number_text import format_number
from app.algebra.parser import Unreadable
from app.models.architecture import Architecture
from app.shapes.table import (
    DIMENSIONS,
    MATRIX_FIELDS,
    Asked,
    Blank,
    BlankField,
    Joint,
    Offer,
    OneOf,
    Tensor,
    TensorTable,
    WrittenPattern,
)
from app.sheets.answers import Answer, parse_formula, read_answer
from app.sheets.codes import write_code
from app.sheets.notation import IN_CODE, NOTATIONS, Notation, SheetSymbols
from app.sheets.wording import FigureWording, TopicWording, Wording, fitting_text
from app.sheets.worksheet import CHOICE, AuthorMisconception, Model, Worksheet, is_in_symbols, title_in_symbols
from app.topics.find_the_bug import BugTable
from app.topics.problem import Problem, problem_for
from app.topics.registry import NO_TOPIC
from app.topics.requirements import TopicError
from app.translation import ngettext

if TYPE_CHECKING:
    from app.sheets.frozen_sheet import FrozenSheet

# Lengths that no other size equals. N and M are twice a prime, so that half of them is also a whole number.
SENTINEL_LENGTHS = {"N": 2 * 500_009, "M": 2 * 500_029, "W": 700_001, "i": 300_007, "B": 800_011}


@dataclass(frozen=True)
class Row:
    """One line of a sheet: what it asks for, its letter in the sheet's notation, name, short note, points and code."""

    key: str
    letter: str
    name: str
    note: str
    asked: Asked = field(compare=False)  # a frozen sheet's doesn't say how a tensor is made
    points: int | None = None
    code: str = ""

    @property
    def fields(self) -> tuple[BlankField, ...]:
        return self.asked.fields

    @cached_property
    def blanks(self) -> tuple[Blank, ...]:
        return tuple(Blank(self.key, field) for field in self.fields)

    @property
    def is_question(self) -> bool:
        """Whether it asks for a choice, or boxes that are marked together, and not for a tensor or count."""
        return isinstance(self.asked, OneOf | Joint)

    @property
    def together(self) -> bool:
        """Whether its boxes are marked together."""
        return isinstance(self.asked, Joint)

    @property
    def opens_late(self) -> bool:
        """Whether it opens only after a check, since it shows the answer to another row."""
        return isinstance(self.asked, Joint) and bool(self.asked.reveals)

    @property
    def offers(self) -> Offer | None:
        """What there is to choose from in a multiple-choice question."""
        return self.asked.offers if isinstance(self.asked, OneOf) else None

    @property
    def points_in_words(self) -> str:
        """What the row is worth, "2 points", or "2 points each" for several boxes; "" if `points` is None."""
        if self.points is None:
            return ""
        if len(self.fields) == 1 or self.together or not self.points:
            return ngettext("{count} point", "{count} points", self.points).format(count=self.points)
        return ngettext("{count} point each", "{count} points each", self.points).format(count=self.points)


@dataclass(frozen=True)
class Variant:
    """A worksheet whose sizes are fixed: the basis for pages, answer keys and grading.

    `decoder_tokens` are None if they are the worksheet's. A sheet of an activity says and asks what is `frozen`.
    """

    worksheet: Worksheet
    model: Model
    tokens: int
    wording: Wording
    decoder_tokens: int | None = None
    head: int | None = None
    frozen: FrozenSheet | None = None

    @property
    def topic_wording(self) -> TopicWording:
        """The wording of this sheet's topic."""
        return self.wording.topic(self.worksheet.topic)

    def figure_wording(self, key: str) -> FigureWording:
        """The title and caption of a figure on this sheet."""
        return self.wording.figure(self.worksheet.topic, key)

    @cached_property
    def code(self) -> str:
        """The code that opens exactly this sheet, such as KTR-FB-CD."""
        is_default = self.model.key == self.worksheet.model
        sheet, lengths = self.worksheet, (self.tokens, self.decoder_tokens)
        worksheet = sheet.whole.removesuffix(f"{CHOICE}{sheet.dealt_bug}")
        return write_code(
            worksheet, sheet.rows_number, self.model.key, *lengths, self.key,
            is_default=is_default, dealt_bug=sheet.dealt_bug,
        )  # fmt: skip

    @cached_property
    def architecture(self) -> Architecture:
        """The model's architecture as the worksheet teaches it."""
        return self.worksheet.architecture_of(self.model)

    @cached_property
    def problem(self) -> Problem:
        """The table, sizes, blanks and answers of this sheet, and the author's misconceptions.

        Raises TopicError if the model has no such topic.
        """
        decoder_tokens = self.decoder_tokens or self.worksheet.decoder_tokens
        sheet = self.worksheet
        if self.frozen and not self.has_topic:
            problem = self.frozen.problem(self.architecture)
        else:
            problem = problem_for(
                sheet.topic, self.architecture, sheet.rows, self.tokens, decoder_tokens, sheet.bug_row, self.head
            )
            if is_in_symbols(sheet.key):
                problem = replace(problem, rows=sheet.rows_asked(problem.table))
        if not sheet.misconceptions:
            return problem
        symbols = SheetSymbols(problem, NOTATIONS[sheet.notation].for_sizes(problem.sizes), in_letters=True)
        predicted = {each.key: _predicted_sizes(symbols, each) for each in sheet.misconceptions}
        return replace(problem, author_misconceptions=predicted)

    @property
    def has_topic(self) -> bool:
        """Whether the app can draw and explain the sheet: not if it was frozen, and its topic has changed since."""
        return self.worksheet.topic != NO_TOPIC

    @cached_property
    def asks_as_frozen(self) -> bool:
        """Whether today's topic asks and answers what was frozen; also of a sheet that wasn't."""
        if self.frozen is None or not self.has_topic:
            return True
        try:
            return self.frozen.asks_the_same(self.problem)
        except TopicError:
            return False

    @property
    def table(self) -> TensorTable:
        """The topic's table for this model; raises TopicError."""
        return self.problem.table

    @property
    def sizes(self) -> Mapping[str, int]:
        """Every symbol that has a size on this sheet, including N."""
        return self.problem.sizes

    @property
    def shows_code(self) -> bool:
        """Whether the sheet is about a program."""
        return bool(self.frozen.values["code"] if self.frozen else self.problem.case)

    @cached_property
    def notation(self) -> Notation:
        """The worksheet's notation, with the names that symbols have for this model."""
        notation = IN_CODE if self.shows_code else NOTATIONS[self.worksheet.notation]
        return notation.for_sizes(self.sizes)

    @cached_property
    def written_formulas(self) -> dict[str, str]:
        """A cache for `write_formula`, by the key of the tensor or count."""
        return {}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The lines of the sheet in the worksheet's order, without rows that this model's table lacks."""
        return tuple(self._row(key) for key in self.problem.rows)

    def _row(self, key: str) -> Row:
        asked = self.table.askable[key]
        blanks = [Blank(key, field) for field in asked.fields]
        of_row = sum(self.points.get(blank, 1) for blank in (blanks if isinstance(asked, Joint) else blanks[:1]))
        # Every sheet about a program says so: without a bug it has no repair, and all its boxes count the same.
        points = of_row if self.points or self.problem.case else None
        if self.frozen and (said := self.frozen.row(key)):
            note, code, points = said["note"], said["code"], said["points"]
        else:
            note, code = self._note(key), self._code(key)
        return Row(key, self.letters[key], self.row_name(key), note, asked, points, code)

    def _note(self, key: str) -> str:
        asked = self.table.askable[key]
        stored_as = asked.stored_as if isinstance(asked, Tensor) else ""
        return stored_as or fitting_text(self.topic_wording.rows[key].note, self.problem)

    def _code(self, key: str) -> str:
        asked, call = self.table.askable[key], ""
        if isinstance(asked, OneOf):
            call = asked.call
        elif isinstance(asked, Tensor) and asked.made_by and asked.made_by.shows_pattern:
            call = asked.made_by.code()
        return call.format(**self.letters)

    def row_name(self, key: str) -> str:
        """The name of a tensor or count, whether the sheet asks for it or not."""
        if self.frozen and (said := self.frozen.row(key)):
            return str(said["name"])
        name = self.topic_wording.rows[key].name
        if isinstance(self.table, BugTable) and (line := self.table.line_of(key)):
            return name.format(line=line)
        return name

    @cached_property
    def points(self) -> Mapping[Blank, int]:
        """The points of each box that isn't worth 1 point."""
        points = dict[Blank, int]()
        for blank in self.blanks:
            asked = self.table.askable[blank.tensor]
            of_row = self.worksheet.row_points.get(blank.tensor, asked.points if isinstance(asked, Joint) else 1)
            if isinstance(asked, Joint) and blank.field != asked.fields[0]:
                of_row = 0
            if of_row != 1:
                points[blank] = of_row
        return points

    @property
    def best_score(self) -> int:
        """The points of a sheet on which everything is right; boxes missing from `points` count 1."""
        return sum(self.points.get(blank, 1) for blank in self.blanks)

    @cached_property
    def fields(self) -> tuple[BlankField, ...]:
        """The columns of boxes on the sheet, from left to right: rows and columns, or dim0, dim1 and so on,
        and count.
        """
        in_columns = [row for row in self.rows if not row.is_question]
        rows = [row for row in in_columns if row.fields != ("count",)] or in_columns
        columns = {self.column_of(blank) for row in rows for blank in row.blanks}
        return tuple(field for field in get_args(BlankField) if field in columns)

    def column_of(self, blank: Blank) -> BlankField:
        """The column of the sheet that contains a blank's box."""
        field = blank.field
        return DIMENSIONS[MATRIX_FIELDS.index(field)] if self.has_dimensions and field in MATRIX_FIELDS else field

    @cached_property
    def has_dimensions(self) -> bool:
        """Whether the sheet asks for a tensor with more than two sides."""
        return any(blank.field in DIMENSIONS for blank in self.blanks)

    def signs(self, row: Row) -> tuple[str, ...]:
        """The signs of a row, one before each column of boxes and one after the last: × and =, or ( , and ).

        Example: ("", "×", "") for rows and columns; ("(", ",", ",", ")") for three sides, ("(", ",", ")", "") for a
        matrix on the same sheet. "=" comes before a count that follows sides, after any bracket: ")=".
        """
        columns, signs = set(map(self.column_of, row.blanks)), list[str]()
        is_open = False
        for at, column in enumerate((*self.fields, "")):
            is_side = column in columns and column != "count"
            if self.has_dimensions:
                sign = ("," if is_open else "(") if is_side else ")" * is_open
            else:
                sign = "×" if is_side and at else ""
            signs.append(sign + "=" if column == "count" in columns and len(columns) > 1 else sign)
            is_open = is_side
        return tuple(signs)

    def axis(self, blank: Blank) -> str:
        """The sheet's word for what is typed: "rows", or "dim 0" on a sheet with more than two sides."""
        if self.frozen and (said := self.frozen.box(blank)):
            return said["axis"]
        row = self.topic_wording.rows.get(blank.tensor) if blank.is_count else None
        name = (row and row.box) or self.wording.axes[self.column_of(blank)].name
        return self.topic_wording.code.get(f"{blank.tensor}-chosen", name)

    @cached_property
    def letters(self) -> dict[str, str]:
        """The letter of every tensor and count of the table in the sheet's notation, by key."""
        return self.notation.letters_in(self.table) | (self.frozen.letters if self.frozen else {})

    @cached_property
    def typeset_letters(self) -> tuple[str, ...]:
        """The letters and symbols that sentences write as mathematics: ('X', 'W_Q', 'd_h')."""
        letters = (*self.letters.values(), *self.symbols.written)
        if self.shows_code:
            return ()
        is_word = re.compile("[Aa]|[a-z]{3,}|").fullmatch
        return tuple(letter for letter in letters if not is_word(letter))

    @cached_property
    def blanks(self) -> tuple[Blank, ...]:
        """The blank of every box of the sheet, row by row."""
        return tuple(self.blanks_by_name.values())

    @property
    def blanks_by_name(self) -> Mapping[str, Blank]:
        """The blank of every box by the box's name in files, forms and API, such as 'queries.rows'."""
        return self.problem.blanks_by_name

    @cached_property
    def key(self) -> Mapping[str, int]:
        """The right number for every box, by its name."""
        return {box: self.problem.answers[blank] for box, blank in self.blanks_by_name.items()}

    def expression(self, blank: Blank) -> Expression:
        """The right answer to a blank in symbols, such as H*d_h."""
        return self.problem.expression(blank)

    def answer(self, blank: Blank) -> int:
        """The right number for any side, count or question of the table, asked or not."""
        answers = self.problem.answers
        return answers[blank] if blank in answers else self.table.askable[blank.tensor].size(blank.field, self.sizes)

    def written_answer(self, blank: Blank, *, in_symbols: bool | None = None) -> str:
        """A box's right answer as it is typed: a number such as 4,096, symbols, a word, or a pattern."""
        asked = self.table.askable[blank.tensor]
        part = asked.part(blank.field) if isinstance(asked, Joint) else None
        if part and part.kind == "word":
            return part.words[self.answer(blank) - 1]
        if isinstance(asked, WrittenPattern):
            return asked.texts[asked.right - 1]
        is_typed = not isinstance(asked, OneOf) and not (part and part.kind == "dimension")
        if is_typed and (self.worksheet.in_letters if in_symbols is None else in_symbols):
            return self.notation.write(self.expression(blank))
        return format_number(self.answer(blank))

    def typed(self, blank: Blank, number: int) -> str:
        """How a number is typed into a box: as the pattern that it stands for, or in digits without separators."""
        asked = self.table.askable[blank.tensor]
        return asked.texts[number - 1] if isinstance(asked, WrittenPattern) else str(number)

    @cached_property
    def symbols(self) -> SheetSymbols:
        """The symbols that answers to this sheet may use."""
        return SheetSymbols(self.problem, self.notation, in_letters=self.worksheet.in_letters)

    def read(self, blank: Blank, text: str) -> Answer | Unreadable | None:
        """What a text in that box means; None for an empty box, Unreadable if it can't be read."""
        return read_answer(self.symbols, blank, text)

    def is_equivalent(self, typed: Answer, length: Expression) -> bool:
        """Whether an answer equals a length: by its number, or in letters by its value in this model."""
        if typed.meaning is None:
            return typed.value == length.size(self.sizes)
        return self.symbols.are_equal(typed.meaning, length)

    @cached_property
    def problem_for_marking(self) -> Problem:
        """The problem that answers are compared with: in letters, its lengths equal no other size."""
        if not self.worksheet.in_letters:
            return self.problem
        lengths = {symbol: length for symbol, length in SENTINEL_LENGTHS.items() if symbol in self.sizes}
        lengths["N"] *= self.sizes.get("E", 1)
        return replace(self.problem, sizes={**self.sizes, **lengths})

    @property
    def title(self) -> str:
        """The worksheet's title; with another model, one made from the topic and the model's name."""
        if self.frozen:
            return str(self.frozen.texts["title"])
        if self.model.key == self.worksheet.model:
            return self.worksheet.title
        title = self.topic_wording.title_for(self.model.name, self.model.architecture)
        return title_in_symbols(title) if is_in_symbols(self.worksheet.key) else title


def _predicted_sizes(symbols: SheetSymbols, misconception: AuthorMisconception) -> Mapping[Blank, Expression]:
    sizes, blanks = dict[Blank, Expression](), symbols.problem.blanks_by_name
    for box, formula in misconception.boxes.items():
        if box in blanks:
            size = parse_formula(symbols, formula)
            if not isinstance(size, Expression):
                return {}
            sizes[blanks[box]] = size
    return sizes


def box_texts(variant: Variant, answers: Mapping[str, str]) -> dict[str, str]:
    """The stored texts that belong to the sheet's boxes, for grading, without answers to open questions."""
    return {name: text for name, text in answers.items() if name in variant.blanks_by_name}
