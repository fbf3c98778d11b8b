"""Paper back in: an instructor opens a sheet by its code and types a line of answers for each student."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response

from app.exchange.imported_models import variant_coded
from app.grading.grade import AnswersError
from app.grading.paper_lines import MarkedPaper, blank_order, mark_lines
from app.handout.paper import results_csv
from app.sheets.worksheet import Variant, WorksheetError
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False)

MAX_TYPED = 1_000_000  # characters


@dataclass(frozen=True)
class MarkingPage:
    """Everything that templates/handouts/mark_paper.html shows."""

    code: Annotated[str, Doc("The code as typed.")]
    code_problem: Annotated[str, Doc("Why there is no sheet of that code, or nothing.")] = ""
    variant: Annotated[Variant | None, Doc("The sheet; none before a code was typed.")] = None
    order: Annotated[tuple[Mapping[str, str], ...], Doc("The boxes in the order in which they are typed.")] = ()
    typed: Annotated[str, Doc("The lines as typed.")] = ""
    typed_problem: Annotated[str, Doc("Which line cannot be used and why, or nothing.")] = ""
    papers: Annotated[tuple[MarkedPaper, ...], Doc("The marked sheets.")] = ()


@dataclass(frozen=True)
class Lines:
    """The form as sent."""

    code: str
    typed: str


async def posted(request: Request) -> Lines:
    """The code and the typed lines."""
    async with request.form(max_part_size=MAX_TYPED) as form:
        code, typed = form.get("code"), form.get("typed")
        return Lines(code if isinstance(code, str) else "", typed if isinstance(typed, str) else "")


@router.get("/marking")
def show_marking(services: ServicesDep, code: str = "") -> Response:
    """The form for a code, and for its answers once there is one."""
    if not code.strip():
        return render("handouts/mark_paper.html", MarkingPage(""))
    try:
        variant = variant_coded(services.library, services.store, code)
    except WorksheetError as error:
        return render("handouts/mark_paper.html", MarkingPage(code[:60], str(error)), 404)
    return render("handouts/mark_paper.html", MarkingPage(variant.code, "", variant, blank_order(variant)))


@router.post("/marking")
def mark(services: ServicesDep, lines: Annotated[Lines, Depends(posted)]) -> Response:
    """The marks of every line, below what was typed."""
    variant = variant_coded(services.library, services.store, lines.code)
    page = MarkingPage(variant.code, "", variant, blank_order(variant), lines.typed)
    try:
        papers = mark_lines(variant, lines.typed)
    except AnswersError as error:
        return render("handouts/mark_paper.html", _with(page, typed_problem=str(error)), 422)
    return render("handouts/mark_paper.html", _with(page, papers=papers))


@router.post("/marking.csv")
def export_marked_papers(services: ServicesDep, lines: Annotated[Lines, Depends(posted)]) -> Response:
    """The same as a CSV file."""
    variant = variant_coded(services.library, services.store, lines.code)
    written = results_csv(variant, mark_lines(variant, lines.typed))
    headers = {"Content-Disposition": f'attachment; filename="{variant.code}.csv"', "Cache-Control": "no-store"}
    return Response("\ufeff" + written, media_type="text/csv", headers=headers)


def _with(page: MarkingPage, papers: tuple[MarkedPaper, ...] = (), typed_problem: str = "") -> MarkingPage:
    return MarkingPage(page.code, "", page.variant, page.order, page.typed, typed_problem, papers)
