"""/see/token: a KV cache that grows by a row with each token; /see/token/embed for other sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Depends, Request, Response

from app.figures.exhibits.decode_steps import DECODE_TOPIC, StepCosts
from app.figures.exhibits.frames import Exhibit
from app.figures.exhibits.token import steps_of, token_exhibit
from app.grading.exhibit_boxes import AskedBoxes, mark_scores
from app.shapes.table import MATRIX_FIELDS
from app.sheets.reading import MAX_BOX_TEXT
from app.sheets.variant import Variant
from app.translation import gettext as _
from app.web.exhibits.exhibit import (
    exhibit_page,
    render_exhibit,
    requested_sheet,
    worksheet_of_topic,
)
from app.web.shared.permissions import require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.sheet_address import sheet_link

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class StepPrice:
    """A step's cost, and its relation to the cost without a cache."""

    costs: StepCosts

    @property
    def times(self) -> int:
        """How many times the operations of one more token are needed without a cache, rounded."""
        return round(self.costs.without_cache / self.costs.with_cache)

    @property
    def share(self) -> float:
        """The operations with a cache in per cent of those without, at least 0.5 so that the bar is visible."""
        return max(0.5, 100 * self.costs.with_cache / self.costs.without_cache)


@router.get("/see/token")
@router.get("/see/token/embed", name="show_embedded_token")
def show_token(request: Request, services: ServicesDep) -> Response:
    """The exhibit for the address's model, number of cached tokens and step, or a sentence on why there is none."""
    worksheet = worksheet_of_topic(services.library, DECODE_TOPIC)
    assert worksheet is not None  # noqa: S101 - the library has sheets on a decode step
    requested = requested_sheet(request, services, worksheet)
    variant = requested.variant
    exhibit = token_exhibit(variant) if variant else None
    query = {"model": variant.model.key, "tokens": str(variant.tokens)} if variant else {}
    page = exhibit_page(request, services, requested, exhibit, _("One more token"), "show_token", query)
    steps = steps_of(variant) if variant else ()
    page |= {
        "prices": tuple(StepPrice(step.costs) for step in steps),
        "heads": (variant.sizes["H"], variant.sizes["G"]) if variant else (0, 0),
        "sheet": sheet_link(variant) if variant else "",
        "asked": _asked(variant, exhibit, page["step"], request.query_params) if variant and exhibit else {},
        "letter": variant.letters["scores"] if variant else "",
    }
    return render_exhibit("exhibits/token.html", page)


def _asked(variant: Variant, exhibit: Exhibit, step: int, typed: Mapping[str, str]) -> dict[int, AskedBoxes]:
    asked, steps = dict[int, AskedBoxes](), steps_of(variant)
    for frame in exhibit.frames:
        if frame.asks:
            is_typed = frame.number == step
            texts = [typed.get(field, "")[:MAX_BOX_TEXT] if is_typed else "" for field in MATRIX_FIELDS]
            asked[frame.number] = mark_scores(variant, steps[frame.number], texts)
    return asked
