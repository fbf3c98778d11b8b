"""The rows of a sheet as a page shows them: each box with its text, its mark and, once it may be told, its answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc

from app.algebra.number_text import format_number
from app.figures.draw import draw_figures
from app.figures.figures import Figure
from app.figures.scale import ScaleName
from app.grading.grade import Mark, MarkKind, Report
from app.shapes.table import Blank, Count
from app.sheets.reading import Typed
from app.sheets.variant import Row, Variant


@dataclass(frozen=True)
class BoxView:
    """One box to fill: its place, its spoken label, its text, and what the last check said of that text."""

    blank: Blank
    label: str
    text: str
    mark: Mark | None
    explained: bool = False  # by the diagnosis, which then speaks for this box too
    hinted: bool = False  # the hint names this box

    @property
    def kind(self) -> MarkKind | None:
        return self.mark.kind if self.mark else None

    @property
    def read_as(self) -> str:
        """The number a sum or product was read as; nothing where the text already says it, if in groups of digits."""
        value = self.mark.read_as if self.mark else None
        digits = "".join(char for char in self.text if char.isdigit())
        return "" if value is None or not digits or digits == str(value) else format_number(value)


@dataclass(frozen=True)
class AnswerView:
    """The truth of a row: for each box its number and symbols, and the equation that makes it or the sum in words."""

    sides: tuple[tuple[str, str], ...]
    equation: str = ""
    words: str = ""


@dataclass(frozen=True)
class RowView:
    """One row of the sheet with its boxes, and its answer once that may be shown."""

    row: Row
    boxes: tuple[BoxView, ...]
    answer: AnswerView | None


def row_views(
    variant: Variant,
    answers: Mapping[str, str],
    report: Report | None,
    *,
    truth: Variant | None = None,
    pointed_at: Collection[Blank] = (),
) -> tuple[RowView, ...]:
    """Every row of a sheet with what stands in its boxes; a mark stands only beside the text that it was given for.

    `truth` is the sheet whose answers are told; a row that it does not ask has none.
    """
    told = {row.key for row in truth.rows} if truth else ()
    return tuple(
        RowView(
            row,
            tuple(
                replace(_box(variant, row, blank, answers.get(str(blank), ""), report), hinted=blank in pointed_at)
                for blank in row.blanks
            ),
            _answer(truth, row) if truth and row.key in told else None,
        )
        for row in variant.rows
    )


@dataclass(frozen=True)
class FiguresFragment:
    """Everything that templates/shared/_figures.html shows: the answer to a save."""

    figures: Annotated[tuple[Figure, ...], Doc("What was typed, drawn.")]


def draw_typed(variant: Variant, answers: Mapping[str, str], scale: ScaleName) -> tuple[Figure, ...]:
    """The figures of a sheet with the sizes that were typed; a blank whose text cannot be read has no size there."""
    read = {blank: variant.read(answers.get(str(blank), "")) for blank in variant.blanks}
    return draw_figures(
        variant, {blank: typed.value for blank, typed in read.items() if isinstance(typed, Typed)}, scale
    )


def has_readable_answer(variant: Variant, answers: Mapping[str, str]) -> bool:
    """Whether the text of at least one blank can be read; `grade(variant, answers).tried` without the grading."""
    return any(isinstance(variant.read(answers.get(str(blank), "")), Typed) for blank in variant.blanks)


def hint_letters(variant: Variant) -> tuple[str, ...]:
    """The letters of the model's parameter matrices, which hints write as mathematics: ('W_Q', 'W_K', 'W_V')."""
    return tuple(tensor.letter for tensor in variant.table.tensors if tensor.parameter)


def run_button(variant: Variant) -> str:
    """The text on the button that runs the head of this sheet; empty for a table that cannot be run."""
    return str(variant.wording.sections["run-buttons"].get(variant.table.key, ""))


def _box(variant: Variant, row: Row, blank: Blank, text: str, report: Report | None) -> BoxView:
    mark = report.marks.get(blank) if report else None
    label = f"{row.name}, {variant.wording.say('axes', blank.field)}"
    explains = report.diagnosis.explains if report and report.diagnosis else ()
    explained = blank in explains and len(explains) > 1  # one sentence in place of several
    return BoxView(blank, label, text, mark if mark and mark.text == text else None, explained)


def _answer(variant: Variant, row: Row) -> AnswerView:
    asked = variant.table.asked[row.key]
    sides = tuple((format_number(variant.answer(p)), variant.notation.write(variant.expression(p))) for p in row.blanks)
    if isinstance(asked, Count):
        return AnswerView(sides, words=asked.formula)
    told = asked.equation is not None and variant.worksheet.tokens_are == "rows"
    return AnswerView(sides, asked.equation.formula if told and asked.equation else "")
