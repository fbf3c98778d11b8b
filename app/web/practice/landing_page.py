"""/: what this is, one head to try, and the ways in."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class LandingPage:
    """Everything that templates/practice/landing.html shows."""


@router.get("/", name="home")
def show_landing(request: Request) -> Response:
    """The landing page; a sheet's parameters, as in links from before it had one, lead on to that sheet."""
    if request.url.query:
        return RedirectResponse(f"{url_for('show_sheet')}?{request.url.query}", 308)
    return render("practice/landing.html", LandingPage())
