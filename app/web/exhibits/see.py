"""/see: the exhibits, each with a sentence on what it shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fastapi import APIRouter, Depends, Response

from app.figures.exhibits.axes import true_lengths
from app.figures.exhibits.dealing import Dealing
from app.figures.exhibits.decode_steps import DECODE_TOPIC
from app.figures.exhibits.frames import Exhibit, FrameDrawing
from app.figures.exhibits.heads import HeadsExhibit
from app.figures.exhibits.products import products_of
from app.figures.exhibits.slide import slide_exhibit
from app.figures.exhibits.token import token_exhibit
from app.figures.shapes import TypedShapes
from app.grading.exhibit_boxes import DECKS
from app.sheets.library import Library
from app.topics.layer_heads import LayerHeads
from app.translation import gettext as _
from app.web.exhibits.exhibit import LAYER_WORKSHEET, worksheet_of_topic
from app.web.shared.permissions import require_practice
from app.web.shared.services import LibraryDep
from app.web.shared.sheet_address import FIRST_WORKSHEET
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class ExhibitLine:
    """One exhibit in the list: its title, its address, what can be done there, and one of its frames.

    `key` is the exhibit's, which sets the drawing's style.
    """

    key: str
    title: str
    link: str
    about: str
    drawing: FrameDrawing


@router.get("/see")
def list_exhibits(library: LibraryDep) -> Response:
    return render("exhibits/see.html", lines=(_slide(library), _heads(library), _token(library)))


def _slide(library: Library) -> ExhibitLine:
    shapes = TypedShapes.of(library.variant(FIRST_WORKSHEET), {})
    shapes = replace(shapes, lengths=true_lengths(shapes))
    [product] = [each for each in products_of(shapes.table) if each.result == "scores"]
    about = _(
        "Bring two matrices together. Inner sides that are equal disappear, "
        "and the outer sides are the shape of the result."
    )
    return _line(slide_exhibit(shapes, product), "show_slide", about, "meet")


def _heads(library: Library) -> ExhibitLine:
    variant = library.variant(LAYER_WORKSHEET)
    dealing = Dealing(LayerHeads(variant.sizes), known=frozenset(DECKS))
    about = _("Lift a layer’s heads off as cards, match query cards to key cards, and watch the KV cache shrink.")
    return _line(HeadsExhibit(dealing, variant.letters).exhibit(), "show_heads", about, "pairs")


def _token(library: Library) -> ExhibitLine:
    sheet = worksheet_of_topic(library, DECODE_TOPIC)
    assert sheet is not None  # noqa: S101 - the library has sheets on a decode step
    exhibit = token_exhibit(library.variant(sheet.key))
    about = _("Each new token adds a row to the KV cache. The scores grow into the causal triangle, one row at a time.")
    return _line(exhibit, "show_token", about, exhibit.frames[len(exhibit.frames) // 2].key)


def _line(exhibit: Exhibit, route: str, about: str, frame: str) -> ExhibitLine:
    [drawing] = [each.drawing for each in exhibit.frames if each.key == frame][:1]
    return ExhibitLine(exhibit.key, exhibit.title, url_for(route), about, drawing)
