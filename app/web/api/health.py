"""GET /healthz: whether the app can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from app.web.shared.services import ServicesDep

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
def health(services: ServicesDep) -> Response:
    """200 once the database answers, 503 while it does not."""
    try:
        services.store.ping()
    except SQLAlchemyError:
        return JSONResponse({"status": "the database does not answer"}, 503)
    return JSONResponse({"status": "ok"})
