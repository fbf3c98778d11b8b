"""/see: the exhibits, each with a sentence on what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Response

from app.translation import gettext as _
from app.web.shared.permissions import require_practice
from app.web.shared.templating import render
from app.web.shared.urls import url_for

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class ExhibitLine:
    """One exhibit in the list: its title, where it is, and what can be done there."""

    title: str
    link: str
    about: str


@dataclass(frozen=True)
class SeePage:
    """Everything that templates/exhibits/see.html shows."""

    lines: Annotated[tuple[ExhibitLine, ...], Doc("The exhibits, in the order in which they are best seen.")]


@router.get("/see")
def list_exhibits() -> Response:
    """The list of the exhibits."""
    slide = ExhibitLine(
        _("Slide it together"),
        url_for("show_slide"),
        _(
            "Move one matrix to the other. Equal inner sides close and disappear, "
            "and the outer sides are the shape of the result."
        ),
    )
    heads = ExhibitLine(
        _("Deal the heads"),
        url_for("show_heads"),
        _("Lift the heads of a layer off as cards, find the key card of each query card, and thin the KV cache."),
    )
    token = ExhibitLine(
        _("One more token"),
        url_for("show_token"),
        _("Add a row to the KV cache with each token, and watch the lines of scores build the triangle."),
    )
    return render("exhibits/see.html", SeePage((slide, heads, token)))
