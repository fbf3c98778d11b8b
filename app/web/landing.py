"""/: what this is, one head to try at once, and the ways in; /teach: for teachers; /about: this app, and privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.figures.geometry import Rect, label_px, letter_px
from app.figures.parts import Edge, Figure, MismatchCaption
from app.figures.sheet_figures import draw_figures
from app.grading.grade import Mark, grade
from app.sheets.answers import MAX_BOX_TEXT
from app.sheets.variant import Row, Variant
from app.web.shared.permissions import PracticeOpen
from app.web.shared.services import LibraryDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.sheet_view import readable_answers
from app.web.shared.templating import is_htmx, render, render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)

BOX_PX = (48.0, 22.0)  # width and height of the box in the drawing

# The boxes that a visitor is asked for, in order, and the other matrices given by then.
QUESTIONS = {
    "keys.columns": ("input", "queries", "values", "keys"),
    "scores.columns": ("scores",),
    "output.columns": ("weights", "output"),
}


@dataclass(frozen=True)
class Question:
    """The box to fill in: its name, its row of the sheet, what is beside and in it, and its mark."""

    name: str  # 'keys.columns'
    row: Row
    rows: str  # '100', given
    text: str
    mark: Mark
    place: Rect  # in the drawing, at the side that it asks for


@dataclass(frozen=True)
class Trial:
    """One head to try: the answers so far, the drawing, and the next box, None once everything fits."""

    figure: Figure
    mismatches: tuple[MismatchCaption, ...]
    answered: Mapping[str, str]  # right answers by box name, as typed
    question: Question | None


@router.get("/", name="home")
def show_landing(request: Request, library: LibraryDep, open_to_practice: PracticeOpen) -> Response:
    """The landing page, with the address's numbers drawn and the next box; for htmx only that part."""
    typed = request.query_params
    if typed and not typed.keys() & QUESTIONS.keys():
        return RedirectResponse(f"{url_for('show_sheet')}?{request.url.query}", 308)
    if not open_to_practice:
        return render("practice/landing.html", trial=None, models=())
    models = tuple(sorted(library.models.values(), key=lambda model: model.name.casefold()))
    trial = _trial(library.variant(FIRST_WORKSHEET), typed, is_typing=is_htmx(request))
    return render_page_or_fragment(request, "practice/landing.html", "practice/_trial.html", trial=trial, models=models)


@router.get("/teach")
def show_teach() -> Response:
    return render("practice/teach.html")


@router.get("/about")
def show_about() -> Response:
    return render("practice/about.html")


def _trial(variant: Variant, typed: Mapping[str, str], *, is_typing: bool) -> Trial:
    answers, answered = dict[str, str](), dict[str, str]()
    for name, given in QUESTIONS.items():
        asked = variant.blanks_by_name[name]
        answers |= {str(each): str(variant.answer(each)) for each in variant.blanks if each.tensor in given}
        text = typed.get(name, "")[:MAX_BOX_TEXT]
        is_beginning = is_typing and _begins(text, variant.answer(asked))
        answers[name] = "" if is_beginning else text
        mark = grade(variant, answers).marks[asked]
        if mark.kind != "right":
            break
        answered[name] = answers[name]
    figures = draw_figures(variant, readable_answers(variant, answers))
    mismatches = tuple(each for figure in figures for each in figure.mismatches)
    if mark.kind == "right":
        return Trial(figures[-1], mismatches, answered, None)
    row = next(row for row in variant.rows if row.key == asked.tensor)
    # The first figure with this side: for keys the layer, in which one head is a stripe.
    figure, side = next((each, side) for each in figures for side in each.edges if side.blank == asked)
    question = Question(name, row, answers[f"{row.key}.rows"], text, mark, _place(side))
    return Trial(figure, mismatches, answered, question)


def _place(side: Edge) -> Rect:
    x, y, width, _ = side.text_box
    letter, centre = letter_px(side.letter) if side.letter else 0.0, x + width / 2
    # Letter and number are centred together; a name below them may be wider.
    left = centre + (letter - label_px(side.label)) / 2 if letter else centre - BOX_PX[0] / 2
    return Rect(left, y - 2, *BOX_PX)


def _begins(text: str, answer: int) -> bool:
    digits = "".join(filter(str.isdigit, text))
    return digits != str(answer) and str(answer).startswith(digits) and not set(text) - {*digits, *" ,.\u2009\u202f"}
