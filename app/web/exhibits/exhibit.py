"""What all exhibit pages share: the sheet that an address asks for, the steps' addresses, the page around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request, Response

from app.exchange.imported_models import library_with_model
from app.figures.exhibits.frames import Exhibit
from app.models.architecture import TokensError
from app.refusal import Refusal
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet
from app.translation import gettext as _
from app.web.shared.forms import whole_number
from app.web.shared.model_menu import ModelMenu, model_menu
from app.web.shared.request_guard import EMBEDDED_HEADERS
from app.web.shared.services import Services
from app.web.shared.sheet_address import FIRST_WORKSHEET, find_variant
from app.web.shared.templating import render
from app.web.shared.urls import public_url, url_for

LAYER_WORKSHEET = "layer-mistral-7b"  # whose model and length show the heads if an address names none


@dataclass(frozen=True)
class ExhibitAddress:
    """Where an exhibit is shown: its page's name, the address's other parameters, and the kind of page."""

    route: str
    query: Mapping[str, str]
    embedded: bool

    def step(self, number: int) -> str:
        """The address of one step, on the same kind of page."""
        return url_for(self._route_here, **self.query, step=number)

    @property
    def page(self) -> str:
        return url_for(self.route, **self.query)

    @property
    def embedding(self) -> str:
        return url_for(self._embedded_route, **self.query)

    @property
    def here(self) -> str:
        """The address without a query, on the same kind of page, for forms inside the exhibit."""
        return url_for(self._route_here)

    @property
    def form(self) -> str:
        """The address without a query, never embedded, for the form above the exhibit."""
        return url_for(self.route)

    @property
    def _route_here(self) -> str:
        return self._embedded_route if self.embedded else self.route

    @property
    def _embedded_route(self) -> str:
        return self.route.replace("show_", "show_embedded_", 1)


@dataclass(frozen=True)
class ExhibitChooser:
    """The form of an exhibit: the number of tokens typed, and a sentence on what is wrong with the address.

    problem: "" if nothing is. length_is_wrong: whether the sentence is about the number of tokens.
    """

    tokens: str
    problem: str
    length_is_wrong: bool


@dataclass(frozen=True)
class RequestedSheet:
    """The sheet whose sizes an exhibit shows; None for an impossible address, which `chooser` explains."""

    variant: Variant | None
    model_menu: ModelMenu
    chooser: ExhibitChooser
    status: int = 200

    def refused(self, problem: str, status: int = 404) -> RequestedSheet:
        """The request without its sheet, with `problem` and `status`; unchanged if `problem` is ""."""
        return replace(self.but(problem, status), variant=None) if problem else self

    def but(self, problem: str, status: int = 422) -> RequestedSheet:
        """The request with `problem` and `status` unless it already has a problem; unchanged if `problem` is ""."""
        if not problem or self.chooser.problem:
            return self
        return replace(self, chooser=replace(self.chooser, problem=problem), status=status)


def worksheet_of_topic(library: Library, topic: str) -> Worksheet | None:
    """The first worksheet of a topic that asks for numbers and keeps the model's key/value heads."""
    first = library.worksheets.get(FIRST_WORKSHEET)
    fitting = (
        sheet
        for sheet in (*([first] if first else []), *library.worksheets.values())
        if (sheet.topic, sheet.answers) == (topic, "numbers") and not sheet.kv_head_per_query_head
    )
    return next(fitting, None)


def requested_sheet(
    request: Request, services: Services, worksheet: Worksheet, library: Library | None = None
) -> RequestedSheet:
    """A worksheet's sheet with the address's `model`, `tokens` and `decoded` (decoder tokens)."""
    model, tokens = request.query_params.get("model", ""), request.query_params.get("tokens")
    variant, problem, status, length_is_wrong = None, "", 200, False
    library = library or services.library
    try:
        library = library_with_model(library, services.store, model)
        variant = find_variant(library, worksheet.key, model, tokens or None, request.query_params.get("decoded", ""))
    except Refusal as error:
        problem, status = str(error), error.status
        length_is_wrong = isinstance(error, TokensError)
    chosen = variant.model.key if variant else model if model in library.models else worksheet.model
    shown_tokens = str(variant.tokens) if variant else tokens or str(worksheet.tokens)
    chooser = ExhibitChooser(shown_tokens, problem, length_is_wrong)
    return RequestedSheet(variant, model_menu(library, worksheet.key, chosen), chooser, status)


def exhibit_page(
    request: Request,
    services: Services,
    requested: RequestedSheet,
    exhibit: Exhibit | None,
    title: str,
    route: str,
    query: Mapping[str, str],
) -> dict[str, Any]:
    """What all exhibits' templates show, with the status of the page; `exhibit` may be None."""
    steps = len(exhibit.frames) if exhibit else 0
    text = request.query_params.get("step", "1")
    step = whole_number(text, 999) or 0
    if not 1 <= step <= steps:
        step = 1
        sentence = _("There is no step “{step}” here: choose one from 1 to {steps}.") if exhibit else ""
        requested = requested.but(sentence.format(step=text[:20], steps=steps))
    embedded = request.url.path.endswith("/embed")
    return {
        "status": requested.status,
        "title": title,
        "exhibit": exhibit,
        "step": step,
        "previous_step": max(step - 1, 1),
        "next_step": max(min(step + 1, steps), 1),
        "chooser": requested.chooser,
        "model_menu": requested.model_menu,
        "address": ExhibitAddress(route, query, embedded),
        "embedded": embedded,
        "symbols": _symbols(requested.variant) if requested.variant else (),
        "site": public_url(request, services.settings),
    }


def _symbols(variant: Variant) -> tuple[str, ...]:
    first = dict.fromkeys(f"{letter.partition('_')[0]}_1" for letter in variant.letters.values())
    letters = (*variant.typeset_letters, *first)
    return (*letters, *(f"{letter}ᵀ" for letter in letters))


def render_exhibit(template: str, names: Mapping[str, Any]) -> Response:
    """An exhibit's page; an embedded page's headers let any site frame it."""
    response = render(template, **names)
    if names["address"].embedded:
        response.headers.update(EMBEDDED_HEADERS)
    return response
