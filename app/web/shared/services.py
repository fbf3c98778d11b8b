"""What every page module needs: the app's services, the learner behind a request, and templates."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from app.classes.live_snapshot import LiveSnapshots
from app.exchange.mail import Mail
from app.forward.process import HeadRunner
from app.settings import PROJECT, Settings
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.worksheet import format_number
from app.store import Learner, Store
from app.web.shared.passwords import Passwords
from app.web.shared.rate_limits import Limits
from app.web.shared.static_files import static_url
from app.web.shared.urls import url_for

COOKIE = "attention_shapes"
YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Services:
    """The services that create_app puts together, once for the life of the process."""

    settings: Settings
    library: Library
    store: Store
    runner: HeadRunner
    templates: Environment
    tickets: Mapping[str, Ticket] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    passwords: Passwords = field(default_factory=Passwords)
    mail: Mail | None = None
    live_snapshots: LiveSnapshots = field(default_factory=LiveSnapshots)


def services_of(request: Request) -> Services:
    return cast(Services, request.app.state.services)


async def get_services(request: Request) -> Services:
    """The same for a handler; async, so that it takes no turn in the pool of threads."""
    return services_of(request)


ServicesDep = Annotated[Services, Depends(get_services)]


def learner_of(request: Request, services: ServicesDep) -> Learner | None:
    """Whoever works in this browser, None before anything was saved there."""
    token = request.cookies.get(COOKIE)
    return services.store.find_learner(token) if token else None


MaybeLearner = Annotated[Learner | None, Depends(learner_of)]


def remember(request: Request, response: Response, learner: Learner) -> None:
    """Give the browser its learner's token, which scripts cannot read and other sites cannot send along."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, learner.token, max_age=YEAR, httponly=True, samesite="lax", secure=secure)


def make_templates() -> Environment:
    """Templates with the filters that write numbers and symbols as the printed sheet does."""
    environment = Environment(
        loader=FileSystemLoader(PROJECT / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # to look at the files with every page costs as much as a question of the database
    )
    environment.globals.update(url_for=url_for, static_url=static_url)
    environment.filters["number"] = format_number
    environment.filters["symbol"] = symbol
    environment.filters["svg_symbol"] = svg_symbol
    environment.filters["equation"] = equation
    environment.filters["expression"] = expression
    return environment


def render(services: Services, template: str, page: Any, status: int = 200) -> HTMLResponse:
    """A page or partial from its template and the one typed object that holds its variables."""
    variables = {field.name: getattr(page, field.name) for field in fields(page)}
    return HTMLResponse(services.templates.get_template(template).render(variables), status_code=status)


@lru_cache(4000)
def symbol(text: str) -> Markup:
    """Symbols as mathematics: 'H·d_head + 1' in italics, with what follows `_` as a subscript."""
    sums = (Markup("·").join(_symbol(piece) for piece in term.split("·")) for term in text.split(" + "))
    return Markup(" + ").join(sums)


@lru_cache(4000)
def svg_symbol(text: str) -> Markup:
    """A letter inside a drawing: as `symbol`, in the elements SVG has."""
    base, _, below = text.partition("_")
    tail = Markup('<tspan class="sub" dy="4">{}</tspan>').format(below) if below else Markup("")
    return escape(base) + tail


def equation(text: str, letters: Mapping[str, str]) -> Markup:
    """The words of an equation with each tensor's key as its letter: 'queries · keysᵀ' becomes Q · Kᵀ."""
    return Markup("").join(_word(word, letters) for word in re.split(r"(\w+)", text.replace("ᵀ", "^")))


def expression(text: str, known: Collection[str] | None = None) -> Markup:
    """Every symbol in a sum of products as mathematics, the rest as it is: 'L·(4·d·d + d_ff)'.

    In a sentence only the `known` symbols are taken for such.
    """
    pieces = re.split(r"([A-Za-z]\w*)", text)
    return Markup("").join(_symbol(piece) if known is None or piece in known else escape(piece) for piece in pieces)


def _word(word: str, letters: Mapping[str, str]) -> Markup:
    return _symbol(letters[word]) if word in letters else escape(word).replace("^", Markup("<sup>T</sup>"))


def _symbol(text: str) -> Markup:
    base, _, below = text.partition("_")
    if not base.replace("'", "").isalpha():
        return escape(text)
    return Markup("<i>{}</i>").format(base) + (Markup("<sub>{}</sub>").format(below) if below else "")
