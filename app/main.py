"""create_app(settings): the services put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app import __version__
from app.exchange.mail import Mail, read_sender, read_server
from app.forward.process import HeadRunner
from app.handout.print_jobs import HandoutPrinter
from app.settings import PROJECT, Settings
from app.sheets.exit_tickets import load_tickets
from app.sheets.library import load_library
from app.store import Store
from app.web.api import health
from app.web.api import v1 as api
from app.web.handouts import handout_page as handout
from app.web.handouts import mark_paper_page as marking
from app.web.handouts import print_job_page
from app.web.models import model_list_page as models
from app.web.models import model_page as model
from app.web.practice import next_sheet_page as practice
from app.web.practice import sheet_page as sheet
from app.web.runs import run_page as run
from app.web.shared import errors
from app.web.shared.rate_limits import RateLimits
from app.web.shared.request_guard import Guard
from app.web.shared.services import Services
from app.web.shared.static_files import HashedStaticFiles
from app.web.shared.urls import register_routes
from app.web.student import class_sheet_page as classroom
from app.web.student import join_page as join
from app.web.teacher import activity_page as activities
from app.web.teacher import course_page as courses
from app.web.teacher import enter_paper_page as papers
from app.web.teacher import exit_tickets_page as exit_tickets
from app.web.teacher import export_page as exports
from app.web.teacher import live_page as live
from app.web.teacher import print_class_page as class_handouts
from app.web.teacher import regrade_page as regrading
from app.web.teacher import results_page as results
from app.web.teacher import sample_course_page as samples
from app.web.teacher import sign_in_page as signin


def create_app(settings: Settings | None = None) -> FastAPI:
    """The whole app: settings from the environment if none are given; raises WorksheetError for a broken worksheet."""
    settings = settings or Settings()
    library = load_library(PROJECT / "worksheets")
    tickets = load_tickets(PROJECT / "worksheets")
    store, limits = Store(settings.database), RateLimits(settings.workers)
    printer = HandoutPrinter(settings.data_dir, tickets)
    services = Services(settings, library, store, HeadRunner(), printer, tickets, limits, mail=_mail(settings))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        if services.mail:
            services.mail.outbox.close()
        services.runner.close()
        services.store.close()

    app = FastAPI(
        title="Attention Shapes",
        version=__version__,
        description="Worksheets on the shapes inside attention, graded, with the true shapes from torch beside them.",
        lifespan=lifespan,
        docs_url=None,  # the page it would serve loads its script from another site
        redoc_url=None,
    )
    app.state.services = services
    learning = (classroom, sheet, practice, run, models, model, handout, print_job_page, marking, api, health, join)
    teaching = (signin, courses, activities, live, results, exit_tickets, regrading, exports, samples)
    routers = [module.router for module in (*learning, *teaching, papers, class_handouts)]
    register_routes(chain(app.routes, *(router.routes for router in routers)))  # app.routes holds /openapi.json so far
    for router in routers:
        app.include_router(router)
    app.mount("/static", HashedStaticFiles(), name="static")
    errors.register_exception_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=700)
    app.add_middleware(Guard)
    return app


def _mail(settings: Settings) -> Mail | None:
    """A way to send mail; none without a public address, since a link may not go where a request says it came from."""
    if not (settings.smtp and settings.address):
        return None
    return Mail(read_server(settings.smtp), read_sender(settings.smtp_from))
