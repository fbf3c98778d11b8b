"""/: a real head, one question about it, and the ways in; /teach: for teachers; /about: this app, and privacy."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from app.figures.kept_head import kept_head
from app.practice.start_question import judge
from app.sheets.answers import MAX_BOX_TEXT
from app.web.shared.head_request import offered_checkpoints
from app.web.shared.permissions import PracticeOpen
from app.web.shared.services import ServicesDep
from app.web.shared.templating import is_htmx, render, render_page_or_fragment

router = APIRouter(include_in_schema=False)


@router.get("/", name="home")
def show_landing(
    request: Request, services: ServicesDep, open_to_practice: PracticeOpen, rows: str = "", columns: str = ""
) -> Response:
    """The start page with what is said about the typed `rows` and `columns`; for htmx only the question."""
    head = kept_head()
    rows, columns = rows[:MAX_BOX_TEXT], columns[:MAX_BOX_TEXT]
    return render_page_or_fragment(
        request,
        "practice/landing.html",
        "practice/_start_question.html" if open_to_practice else "practice/landing.html",
        head=head,
        head_rows=[Markup(row) for row in head.rows],  # noqa: S704 - of numbers alone
        small_heads=[Markup(small) for small in head.small_heads],  # noqa: S704
        rows=rows,
        columns=columns,
        verdict=judge(rows, columns, len(head.tokens), head.head_width, is_typing=is_htmx(request)),
        has_weights=bool(offered_checkpoints(services)),
        sheets=len(services.library.worksheets),
    )


@router.get("/teach")
def show_teach() -> Response:
    return render("practice/teach.html")


@router.get("/about")
def show_about() -> Response:
    return render("practice/about.html")
