"""Whether this process is alive, and whether it can store what people type."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from app.web.shared.services import ServicesDep

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def is_alive() -> Response:
    """200 from any process that answers: restarting one doesn't bring a database back."""
    return JSONResponse({"status": "ok"})


@router.get("/healthz/ready")
async def is_ready(services: ServicesDep) -> Response:
    """200 with the status "ok" while the database can store something, which is checked without writing."""
    if problem := await services.readiness.problem():
        return JSONResponse({"status": problem}, 503)
    if services.auto_submitter.is_stuck:
        return JSONResponse({"status": "answers of activities that have ended are not being collected"}, 503)
    if unsettled := services.auto_submitter.unsettled:  # the server works, and its operator has work as well
        numbers = ", ".join(map(str, unsettled))
        return JSONResponse({"status": "ok", "problem": f"answers not collected in activities {numbers}: see the log"})
    return JSONResponse({"status": "ok"})
