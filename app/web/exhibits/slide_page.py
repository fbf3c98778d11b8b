"""/see/slide: any product of a topic, from two matrices apart to their result; /see/slide/embed for other sites."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response

from app.figures.exhibits.axes import true_lengths
from app.figures.exhibits.slide import Product, products_of, slide_exhibit
from app.figures.typed_shapes import TypedShapes
from app.sheets.formulas import write_formula
from app.sheets.variant import Variant
from app.translation import gettext as _
from app.web.exhibits.exhibit_view import (
    ExhibitAddress,
    ExhibitPage,
    asked_sheet,
    asked_step,
    render_exhibit,
    worksheet_of_topic,
)
from app.web.shared.permissions import require_practice
from app.web.shared.services import Services, ServicesDep
from app.web.shared.sheet_view import hint_letters
from app.web.shared.urls import public_url

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])
SLIDE_TOPIC, SLIDE_PRODUCT = "single-head", "scores"


@dataclass(frozen=True)
class ProductChoice:
    """One product in the menu: 'S = Q · Kᵀ'."""

    key: str
    text: str
    chosen: bool


@dataclass(frozen=True)
class SlidePage(ExhibitPage):
    """Everything that templates/exhibits/slide.html shows."""

    products: Annotated[tuple[ProductChoice, ...], Doc("The products of the topic, in the order of computation.")]


@router.get("/see/slide")
def show_slide(request: Request, services: ServicesDep) -> Response:
    """The exhibit for the topic, product, model, number of tokens and step of the address."""
    return _slide(request, services, embedded=False)


@router.get("/see/slide/embed")
def show_embedded_slide(request: Request, services: ServicesDep) -> Response:
    """The same without the header and the form, for a frame in another site's page."""
    return _slide(request, services, embedded=True)


def _slide(request: Request, services: Services, *, embedded: bool) -> Response:
    topic = request.query_params.get("topic", SLIDE_TOPIC)
    worksheet = worksheet_of_topic(services.library, topic) or worksheet_of_topic(services.library, SLIDE_TOPIC)
    assert worksheet is not None  # noqa: S101 - the library has sheets on a single head
    asked = asked_sheet(request, services, worksheet)
    choices, symbols = tuple[ProductChoice, ...](), tuple[str, ...]()
    exhibit, query = None, {"topic": worksheet.topic}
    if variant := asked.variant:
        shapes = TypedShapes.of(variant, {})
        shapes = replace(shapes, lengths=true_lengths(shapes))
        products = products_of(variant.table)
        wanted = request.query_params.get("product", SLIDE_PRODUCT)
        product = next((each for each in products if each.result == wanted), products[0])
        exhibit = slide_exhibit(shapes, product)
        symbols = (*hint_letters(variant), "Kᵀ")
        choices = tuple(_choice(variant, each, product) for each in products)
        query |= {"product": product.result, "model": variant.model.key, "tokens": str(variant.tokens)}
    page = SlidePage(
        title=_("Slide it together"),
        exhibit=exhibit,
        step=asked_step(request, exhibit),
        model_menu=asked.model_menu,
        chooser=replace(asked.chooser, hidden={"topic": worksheet.topic}),
        address=ExhibitAddress("show_slide", query, embedded),
        embedded=embedded,
        symbols=symbols,
        site=public_url(request, services.settings),
        products=choices,
    )
    return render_exhibit("exhibits/slide.html", page, asked.status)


def _choice(variant: Variant, product: Product, chosen: Product) -> ProductChoice:
    """A product in the menu."""
    text = f"{variant.letters[product.result]} = {write_formula(variant, product.result)}"
    return ProductChoice(product.result, text, product == chosen)
