"""/heads/KEY/picture: a head's picture on its own page, the row being read, and its files."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc
from fastapi import APIRouter, Depends, Request, Response

from app.forward.real_head import save_npz
from app.web.shared.head_request import find_head
from app.web.shared.permissions import require_practice
from app.web.shared.picture_view import PictureRow, PictureView, picture_file, picture_row, picture_view
from app.web.shared.services import ServicesDep
from app.web.shared.templating import render

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@dataclass(frozen=True)
class PicturePage:
    """Everything that templates/heads/picture.html shows."""

    picture: Annotated[PictureView, Doc("The picture of the head, with all of its stages.")]


@dataclass(frozen=True)
class PictureRowFragment:
    """Everything that templates/heads/_picture_row.html shows."""

    picture: Annotated[PictureRow, Doc("The row of the picture that is read.")]


@router.get("/heads/{key}/picture")
def show_picture(request: Request, services: ServicesDep, key: str) -> Response:
    """The picture of a head that has run, alone on its page; see `picture_view` for the query."""
    _job, real_head = find_head(services, key)
    return render("heads/picture.html", PicturePage(picture_view(real_head, key, request.query_params)))


@router.get("/heads/{key}/picture/rows/{row:int}")
def show_picture_row(request: Request, services: ServicesDep, key: str, row: int) -> Response:
    """What one query attends to, for a page that shows the picture; for an unknown row, a telling one."""
    _job, real_head = find_head(services, key)
    query = {**request.query_params, "row": str(row)}
    return render("heads/_picture_row.html", PictureRowFragment(picture_row(real_head, key, query)))


@router.get("/heads/{key}/numbers.npz")
def download_head_numbers(services: ServicesDep, key: str) -> Response:
    """The head's arrays and token ids, as `save_npz` writes them, to download; 404 for a head without a result."""
    _job, real_head = find_head(services, key)
    file = io.BytesIO()
    save_npz(real_head, file)
    name = f"layer-{real_head.layer}-head-{real_head.head}.npz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(file.getvalue(), media_type="application/octet-stream", headers=headers)


@router.get("/heads/{key}/picture/{stage}.{kind}")
def download_picture(request: Request, services: ServicesDep, key: str, stage: str, kind: str) -> Response:
    """A stage of the picture as PNG or SVG, or the numbers as CSV; only the last row with `show_decode`."""
    _job, real_head = find_head(services, key)
    return picture_file(real_head, kind, stage, is_decode="show_decode" in request.query_params)
