"""/heads/KEY/notebook.ipynb: a head as a Jupyter notebook that asks for each tensor's shape."""

from __future__ import annotations

from fastapi import APIRouter, Depends, HTTPException, Response

from app.forward.lines import ForwardError
from app.forward.notebook import NOTEBOOK_TYPE, head_notebook
from app.web.shared.head_request import find_choice, find_head, head_deleted
from app.web.shared.permissions import require_practice
from app.web.shared.services import ServicesDep

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_practice)])


@router.get("/heads/{key}/notebook.ipynb")
def download_head_notebook(services: ServicesDep, key: str) -> Response:
    _job, head = find_head(services, key)
    choice = find_choice(services, key)
    if choice is None:  # it has been deleted meanwhile
        raise head_deleted()
    try:
        notebook = head_notebook(head, choice.sentence)
    except ForwardError as refusal:
        raise HTTPException(409, str(refusal)) from None
    name = f"layer-{head.layer}-head-{head.head}.ipynb"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(notebook, media_type=NOTEBOOK_TYPE, headers=headers)
