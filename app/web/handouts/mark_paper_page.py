"""/marking: an instructor opens a sheet by its code, types one line per paper, and sees marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Response

from app.exchange.imported_models import variant_from_code
from app.exchange.spreadsheet import BOM
from app.grading.grade import AnswersError
from app.grading.paper_lines import MarkedPaper, blank_order, mark_lines
from app.handout.marks_csv import marks_csv
from app.sheets.variant import Variant
from app.sheets.worksheet import WorksheetError
from app.web.shared.forms import FormDep
from app.web.shared.permissions import require_practice
from app.web.shared.request_guard import MAX_PAPER
from app.web.shared.services import Services, ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

MAX_SHOWN_CODE_LENGTH = 60


@dataclass(frozen=True)
class MarkPaperPage:
    """The variables of templates/handouts/mark_paper.html."""

    code: Annotated[str, Doc("The code as typed.")] = ""
    code_problem: Annotated[str, Doc("Why the code opens no sheet, or empty.")] = ""
    variant: Annotated[Variant | None, Doc("The sheet; None before a code was typed.")] = None
    boxes: Annotated[tuple[Mapping[str, str], ...], Doc("The boxes in the order in which they are typed.")] = ()
    typed: Annotated[str, Doc("The lines as typed.")] = ""
    typed_problem: Annotated[str, Doc("Which line cannot be used and why, or empty.")] = ""
    papers: Annotated[tuple[MarkedPaper, ...], Doc("The marked papers.")] = ()


@router.get("/marking")
def show_marking(services: ServicesDep, code: str = "") -> Response:
    """The form for a code or, for a valid code, the form for the lines of papers."""
    page, status = MarkPaperPage(), 200
    if code.strip():
        try:
            page = _mark_paper_page(services, code)
        except WorksheetError as error:
            page, status = MarkPaperPage(code[:MAX_SHOWN_CODE_LENGTH], str(error)), 404
    return render("handouts/mark_paper.html", page, status)


@router.post("/marking")
def show_marks(services: ServicesDep, form: FormDep) -> Response:
    """The form as typed, with the marks of every line below it; nothing is stored, and no sign-in is needed."""
    page = replace(_mark_paper_page(services, form.raw("code")), typed=form.raw("typed", MAX_PAPER))
    assert page.variant is not None  # noqa: S101 - a code that opens no sheet has raised
    try:
        page = replace(page, papers=mark_lines(page.variant, page.typed))
    except AnswersError as error:
        return render("handouts/mark_paper.html", replace(page, typed_problem=str(error)), 422)
    return render("handouts/mark_paper.html", page)


@router.post("/marking.csv")
def export_marked_papers(services: ServicesDep, form: FormDep) -> Response:
    """The marks of every line as a CSV file with a byte order mark, named after the sheet's code."""
    variant = variant_from_code(services.library, services.store, form.raw("code"))
    headers = {"Content-Disposition": f'attachment; filename="{variant.code}.csv"', "Cache-Control": "no-store"}
    content = BOM + marks_csv(variant, mark_lines(variant, form.raw("typed", MAX_PAPER)))
    return Response(content, media_type="text/csv", headers=headers)


def _mark_paper_page(services: Services, code: str) -> MarkPaperPage:
    variant = variant_from_code(services.library, services.store, code)
    return MarkPaperPage(variant.code, variant=variant, boxes=blank_order(variant))
