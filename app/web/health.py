"""Whether this process is alive, and whether it can store what people type."""

from __future__ import annotations

import logging

from anyio import fail_after
from anyio.to_thread import run_sync
from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from app.store.limits import Failure, failure_of
from app.web.shared.services import ServicesDep

HEALTH_LIMIT_S = 3

router = APIRouter(include_in_schema=False)
log = logging.getLogger("attention_shapes")


@router.get("/healthz")
async def is_alive() -> Response:
    """200 from any process that answers: restarting one doesn't bring a database back."""
    return JSONResponse({"status": "ok"})


@router.get("/healthz/ready")
async def is_ready(services: ServicesDep) -> Response:
    """200 with the status "ok" while the database can store something, which is checked without writing."""
    try:
        with fail_after(HEALTH_LIMIT_S):
            await run_sync(services.store.check_writable, limiter=services.health_thread, abandon_on_cancel=True)
    except TimeoutError:
        return JSONResponse({"status": Failure.SILENT.value}, 503)
    except (SQLAlchemyError, OSError) as error:
        if failure := failure_of(error):
            return JSONResponse({"status": failure.value}, 503)
        log.exception("the database refused a health check")
        return JSONResponse({"status": "the database refuses a health check: see the log"}, 503)
    if services.closing.is_stuck:
        return JSONResponse({"status": "answers of activities that have ended are not being collected"}, 503)
    if unsettled := services.closing.unsettled:  # the server works, and its operator has work as well
        numbers = ", ".join(map(str, unsettled))
        return JSONResponse({"status": "ok", "problem": f"answers not collected in activities {numbers}: see the log"})
    return JSONResponse({"status": "ok"})
