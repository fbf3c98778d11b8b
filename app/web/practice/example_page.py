"""/sheet/example: a practice sheet with other numbers, worked out fully or partly; nothing is stored."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.bugs.bank import BugKind
from app.exchange.imported_models import library_with_model
from app.sheets.siblings import another_bug
from app.web.practice.sheet_request import FIRST_WORKSHEET, find_variant, library_for, sheet_link
from app.web.shared.example_view import MAX_EXAMPLE_SEED, ExampleRequest, find_sibling, make_example_page
from app.web.shared.forms import FormDep
from app.web.shared.permissions import require_practice
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


def read_example_request(
    request: Request,
    services: ServicesDep,
    worksheet: str = FIRST_WORKSHEET,
    model: str = "",
    tokens: str | None = None,
    decoded: str = "",
    kind: str = "worked",
    seed: str = "1",
) -> ExampleRequest:
    """The example that an address asks for; WorksheetError, TokensError or TopicError if it names no sheet."""
    library = library_with_model(library_for(request, services, worksheet), services.store, model)
    variant = find_variant(library, worksheet, model, tokens, decoded)
    return ExampleRequest(
        variant,
        library,
        kind,
        seed,
        sheet_link(variant),
        lambda kind, seed: sheet_link(variant, "show_example", kind=kind, seed=seed),
    )


ExampleRequestDep = Annotated[ExampleRequest, Depends(read_example_request)]


@router.get("/sheet/example")
def show_example(requested: ExampleRequestDep) -> Response:
    """A sheet like the one in the address."""
    return render("shared/example.html", make_example_page(requested))


@router.post("/sheet/example")
def check_example(requested: ExampleRequestDep, form: FormDep) -> Response:
    """A sheet like the one in the address, with the marks of what was typed on it."""
    return render("shared/example.html", make_example_page(requested, form))


@router.get("/sheet/another")
def show_another(requested: ExampleRequestDep, bug: BugKind = "any") -> Response:
    """Redirect (303) to a random sheet like this one, or about another bug of a kind; 404 if there is none."""
    seed, variant = secrets.randbelow(MAX_EXAMPLE_SEED), requested.variant
    other = another_bug(requested.library, variant, seed, bug)
    other = other or find_sibling(requested, seed, variant.worksheet.answers)
    return RedirectResponse(sheet_link(other), 303)
