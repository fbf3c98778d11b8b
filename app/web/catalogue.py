"""/sheets: every sheet that can be practised, found by words, lesson or topic, with a model and numbers or symbols."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from markupsafe import Markup

from app.bugs.bank import BUGS
from app.exchange.imported_models import library_with_model, variant_from_code
from app.figures.thumbnails import thumbnail
from app.practice.catalogue import CatalogueEntry, catalogue, search
from app.practice.lessons import lessons_of
from app.sheets.worksheet import WorksheetError
from app.web.shared.model_menu import model_menu
from app.web.shared.permissions import require_practice
from app.web.shared.practice_place import PracticePlaceDep
from app.web.shared.services import StoreDep
from app.web.shared.sheet_address import sheet_link
from app.web.shared.templating import render_page_or_fragment
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])

MAX_WORDS = 200  # characters


@router.get("/sheets")
def list_sheets(
    request: Request,
    place: PracticePlaceDep,
    store: StoreDep,
    words: Annotated[str, Query(max_length=MAX_WORDS)] = "",
    lesson: str = "",
    topic: str = "",
    model: str = "",
    answers: str = "numbers",
) -> Response:
    """The page; for htmx only the list."""
    library = library_with_model(place.library, store, model)
    model = model if model in library.models else ""
    entries = catalogue(library, model, in_symbols=answers == "symbols")
    chosen = [
        entry
        for entry in search(entries, words)
        if lesson in ("", entry.lesson.key) and topic in ("", entry.variant.worksheet.topic)
    ]
    by_code = None
    with suppress(WorksheetError):
        by_code = variant_from_code(library, store, words) if words else None
    lessons = lessons_of(library)
    return render_page_or_fragment(
        request,
        "practice/catalogue.html",
        "practice/_catalogue_list.html",
        query={"words": words, "lesson": lesson, "topic": topic, "answers": answers},
        lessons=lessons,
        groups=[(each, [entry for entry in chosen if entry.lesson == each]) for each in lessons],
        count=len(chosen),
        by_code=by_code,
        topics={key: library.wording.topics[key].name for key in library.topics},
        model_menu=model_menu(library, "", model),
        bugs=len(BUGS),
        link=_link,
        copy_link=lambda entry: sheet_link(entry.variant, "copy_from_library"),
        drawing=lambda entry: Markup(thumbnail(entry.drawn)),  # noqa: S704 - of numbers alone
    )


def _link(entry: CatalogueEntry) -> str:
    sheet = entry.variant.worksheet
    if sheet.deals_bugs:  # another one each time
        return url_for("show_another", worksheet=sheet.key, model=entry.variant.model.key)
    return sheet_link(entry.variant)
