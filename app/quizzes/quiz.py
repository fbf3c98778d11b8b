"""A sheet as any quiz asks it: its text in HTML, its boxes, and what to say to likely wrong numbers.

A quiz sees one box at a time. So a misconception has its sentence only at the first box that it gets wrong, and none if
it concerns several matrices as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from app.figures.geometry import LABEL_PX, LETTER_PX, SUBSCRIPT_PX
from app.figures.sheet_figures import draw_figures
from app.figures.svg import figure_svg
from app.handout.options import HandoutOptions
from app.handout.sheet_plan import plan_sheets
from app.misconceptions.predictions import expectations
from app.refusal import Refusal
from app.shapes.table import Blank
from app.sheets import prose
from app.sheets.authoring.markdown import MarkdownList, read_markdown
from app.sheets.library import Library
from app.sheets.variant import Row, Variant
from app.translation import gettext as _

MAX_VERSIONS = 100
DRAWING_STYLE = Path(__file__).parents[2] / "templates" / "print" / "drawing.css"
_TYPE_SIZES = (
    f"text {{ font: {LABEL_PX}px serif; }} .letter {{ font-size: {LETTER_PX}px; }} "
    f".sub, .sup {{ font-size: {SUBSCRIPT_PX}px; }}"
)
_TITLE_LENGTH = 200
_FRAMES = re.compile(r' data-frames="[^"]*"')  # for the page's script


class QuizError(Refusal):
    """A sheet that can't be asked by another system."""


@dataclass(frozen=True)
class LikelyAnswer:
    """A likely wrong number, and the sentence for whoever types it."""

    number: int
    sentence: str


@dataclass(frozen=True)
class QuizBox:
    """One box: its right number, the likely wrong ones, and the sentence for any other."""

    name: str
    label: str
    axis: str
    right: int
    points: int
    wrong: tuple[LikelyAnswer, ...]
    otherwise: str

    @property
    def key(self) -> str:
        """The name as an identifier in XML."""
        return re.sub(r"\W", "-", self.name)


@dataclass(frozen=True)
class QuizRow:
    """One line of the sheet: its name in HTML, its boxes, and the signs before each box and after the last."""

    name: str
    boxes: tuple[QuizBox, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A picture in SVG, and what it shows in words."""

    svg: str
    alt_text: str


@dataclass(frozen=True)
class Quiz:
    """One version of a worksheet."""

    code: str
    title: str
    model: str
    topic: str
    text: str
    rows: tuple[QuizRow, ...]
    drawing: Picture | None

    @property
    def boxes(self) -> tuple[QuizBox, ...]:
        return tuple(box for row in self.rows for box in row.boxes)


def draw_versions(
    library: Library, worksheet: str, model: str | None, tokens: int | None, versions: int, seed: int
) -> tuple[Quiz, ...]:
    """Up to `versions` different sheets of a worksheet; with a fixed number of tokens, the one sheet that has it."""
    if not 1 <= versions <= MAX_VERSIONS:
        raise QuizError(_("Choose a number of versions from 1 to {most}.").format(most=MAX_VERSIONS))
    quiz_of(library.variant(worksheet, model, tokens))  # before many are drawn
    if tokens is None:
        versions = min(versions, library.max_versions(worksheet, model))
    options = HandoutOptions(
        worksheet=worksheet, model=model or "", tokens=tokens, seed=seed,
        variants=tokens is None, sheets=versions if tokens is None else 1,
    )  # fmt: skip
    return tuple(quiz_of(sheet.variant) for sheet in plan_sheets(library, options))


def quiz_of(variant: Variant) -> Quiz:
    """A sheet as a quiz asks it; raises QuizError if no quiz can mark its answers."""
    _check(variant)
    first_seen = _sentences(variant)
    figures = draw_figures(variant, {}, names_sizes=False, in_place_of_numbers="")
    drawn = next((figure for figure in figures if not figure.is_chart), None)
    return Quiz(
        code=variant.code,
        title=variant.title[:_TITLE_LENGTH],
        model=variant.model.name,
        topic=variant.worksheet.topic,
        text=_text(variant),
        rows=tuple(_row(variant, row, first_seen) for row in variant.rows),
        drawing=Picture(_as_file(figure_svg(drawn)), drawn.alt_text) if drawn else None,
    )


def _check(variant: Variant) -> None:
    if any(row.is_question for row in variant.rows):
        raise QuizError(_("Other systems can’t mark questions about code. Give students the address of the sheet."))
    if variant.worksheet.in_letters:
        raise QuizError(_("Other systems can’t mark answers in symbols. Export the sheet with numbers."))


def _as_file(svg: str) -> str:
    opened, inside = _FRAMES.sub("", svg).split(">", 1)
    style = f"{DRAWING_STYLE.read_text()}{_TYPE_SIZES}"
    return f'{opened} xmlns="http://www.w3.org/2000/svg"><style>{style}</style>{inside}'


def _sentences(variant: Variant) -> dict[tuple[Blank, int], str]:
    order = {blank: place for place, blank in enumerate(variant.blanks)}
    sentences: dict[tuple[Blank, int], list[str]] = {}
    for expected in expectations(variant.problem):
        if len(expected.transposed) > 1 or "*" in expected.transposed:
            continue
        first = min(expected.wrong_answers, key=order.__getitem__)
        said = sentences.setdefault((first, expected.wrong_answers[first]), [])
        sentence = prose.misconception(variant, expected.misconception, "nudge")
        if sentence not in said:
            said.append(sentence)
    return {answer: " ".join(said) for answer, said in sentences.items()}


def _row(variant: Variant, row: Row, sentences: dict[tuple[Blank, int], str]) -> QuizRow:
    boxes = tuple(_box(variant, row, blank, sentences) for blank in row.blanks)
    letter = f"{_letter(row.letter)} " if row.letter else ""
    details = ", ".join(filter(None, (row.code, row.note)))
    note = f" <small>{_html(variant, details)}</small>" if details else ""
    signs = tuple(_signs(variant, row)) if len(boxes) > 1 else ("", "")
    return QuizRow(f"{letter}{_html(variant, row.name)}{note}", boxes, signs)


def _signs(variant: Variant, row: Row) -> Iterator[str]:
    columns = set(map(variant.column_of, row.blanks))
    for column, sign in zip((*variant.fields, ""), variant.signs(row), strict=True):
        if not column or column in columns:
            yield sign


def _box(variant: Variant, row: Row, blank: Blank, sentences: dict[tuple[Blank, int], str]) -> QuizBox:
    right, axis = variant.answer(blank), variant.axis(blank)
    wrong = [(number, sentence) for (box, number), sentence in sentences.items() if box == blank and number != right]
    return QuizBox(
        name=str(blank),
        label=", ".join(filter(None, (" ".join(filter(None, (row.letter, row.name))), axis))),
        axis=axis,
        right=right,
        points=variant.points.get(blank, 1),
        wrong=tuple(LikelyAnswer(*each) for each in wrong),
        otherwise=prose.nudge(variant, blank),
    )


def _text(variant: Variant) -> str:
    sentences = [
        prose.description(variant),
        prose.asides(variant),
        prose.task(variant, in_digits=True),
        *prose.assumptions(variant),
        _("Write whole numbers in digits only, without separators: 12500, not 12,500."),
    ]
    paragraphs = [
        *_plain_lines(variant.worksheet.introduction),
        " ".join(filter(None, sentences)),
        prose.footnote(variant) or "",
        *_plain_lines(variant.worksheet.footnote),
    ]
    return "".join(f"<p>{_html(variant, each)}</p>" for each in paragraphs if each)


def _plain_lines(text: str) -> Iterator[str]:
    for block in read_markdown(text):
        if isinstance(block, MarkdownList):
            for item in block.items:
                yield from ("• " + "".join(span.text for span in each.spans) for each in item if hasattr(each, "spans"))
        else:
            yield "".join(span.text for span in block.spans)


def _html(variant: Variant, text: str) -> str:
    letters = sorted(set(variant.typeset_letters) - {"A", "a"}, key=len, reverse=True)  # articles
    if not letters:
        return escape(text, quote=False)
    symbol = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, letters))})(?![\w.]\w)(?!\w)")
    return "".join(
        _letter(piece) if symbol.fullmatch(piece) else escape(piece, quote=False) for piece in symbol.split(text)
    )


def _letter(text: str) -> str:
    base, _below, below = text.replace("'", "′").partition("_")
    written = f"<i>{base}</i>" if len(base.rstrip("′ᵀ")) == 1 else base  # words such as cos are upright
    return written + (f"<sub>{below}</sub>" if below else "")
