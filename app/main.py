"""create_app: the services put together."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app import __version__, metrics
from app.classes.closing import INTERVAL_S
from app.exchange.mail import Mail, read_sender, read_server
from app.forward.process import MAX_WAITING_RUNS, RUNNER_IDLE_LIMIT_S, SHARE_OF_VISITORS, HeadRunner
from app.handout.handout_printer import HandoutPrinter
from app.machine.turn import MachineTurn
from app.settings import PROJECT, Settings
from app.sheets.exit_tickets import Ticket, load_tickets
from app.sheets.library import Library
from app.sheets.worksheet_files import load_library
from app.store import Store
from app.store.queries import Clock, utc_now
from app.translation import ENGLISH, languages
from app.web.account import account_link_page, forgotten_password_page, password_page, sign_in_page
from app.web.api import health, v1
from app.web.exhibits import heads_page, see_page, slide_page, token_page
from app.web.handouts import handout_page, mark_paper_page, print_job_page
from app.web.materials import (
    copy_page,
    import_page,
    material_list_page,
    material_page,
    ticket_editor_page,
    worksheet_editor_page,
)
from app.web.models import model_list_page, model_page
from app.web.practice import glossary_page, landing_page, next_sheet_page, practice_map_page, sheet_page
from app.web.runs import run_page
from app.web.shared import errors
from app.web.shared.queues import watch_queues
from app.web.shared.rate_limits import RateLimits, StorageBudget
from app.web.shared.request_guard import Guard
from app.web.shared.request_log import RequestLog
from app.web.shared.services import Services
from app.web.shared.static_files import HashedStaticFiles
from app.web.shared.urls import register_routes
from app.web.student import activity_page as student_activity_page
from app.web.student import class_sheet_page, exit_ticket_page, join_page, leave_page, my_work_page
from app.web.teacher import (
    activity_form_page,
    activity_page,
    activity_preview_page,
    course_list_page,
    course_page,
    course_practice_page,
    delete_activity_page,
    enter_paper_page,
    exit_tickets_page,
    export_page,
    gradebook_page,
    live_page,
    present_page,
    print_class_page,
    regrade_page,
    results_page,
    roster_import_page,
    roster_student_page,
    sample_course_page,
    student_results_page,
    summary_page,
)

# How long a thread computes before another one may: with Python's 5 ms, a request waits several times that long while
# drawings are made, since each of its steps waits its turn.
SWITCH_INTERVAL_S = 0.001
GZIP_LEVEL = 4  # a third of the time of 9, the default, for pages a few per cent larger

# Every module with routes. No address matches two of them, so that their order matters to time alone: a request is
# compared with one route after another, and a class sends more saves than anything else.
# Those for practice can be closed to visitors: their routers require it.
PRACTICE_PAGES = (
    *(sheet_page, next_sheet_page, practice_map_page, glossary_page),
    *(model_list_page, model_page, handout_page, print_job_page),
    *(mark_paper_page, v1),
    *(see_page, slide_page, heads_page, token_page),
)
CLASS_PAGES = (
    *(class_sheet_page, run_page, landing_page),
    *(join_page, my_work_page, leave_page, student_activity_page, exit_ticket_page),
    *(sign_in_page, password_page, forgotten_password_page, account_link_page),
    worksheet_editor_page,
    *(course_list_page, course_page, gradebook_page, export_page, sample_course_page),
    *(roster_import_page, roster_student_page),
    *(activity_page, activity_form_page, activity_preview_page, delete_activity_page, course_practice_page),
    ticket_editor_page,
    *(print_class_page, enter_paper_page),
    *(live_page, present_page),
    *(material_list_page, material_page, copy_page, import_page),
    *(results_page, student_results_page, summary_page, exit_tickets_page, regrade_page),
    health,
)


def create_app(
    settings: Settings | None = None,
    *,
    library: Library | None = None,
    tickets: Mapping[str, Ticket] | None = None,
    runner: HeadRunner | None = None,
    printer: HandoutPrinter | None = None,
    clock: Clock = utc_now,
    closing_interval_s: float = INTERVAL_S,
) -> FastAPI:
    """The whole app, its services made and every page registered; settings from the environment if none are given.

    A service that is not given is the one that `attention-shapes serve` uses: the shipped worksheets, in every language
    that pages have, the exit tickets, and a runner and a printer with child processes of their own. `clock` tells the
    time by which activities open and close, sessions end and rows expire; `closing_interval_s` is how often the app
    looks for activities that have ended. Opens the database, and closes it when the app ends.
    Raises WorksheetError for a worksheet that cannot be read.
    """
    settings = settings or Settings()
    metrics.join()
    folder = PROJECT / "worksheets"
    libraries = {ENGLISH: library} if library else {each: load_library(folder, each) for each in languages()}
    tickets = load_tickets(folder) if tickets is None else tickets
    store = Store(settings.database, settings.data_dir, settings.workers, clock)
    limits = RateLimits(settings.workers)
    printer = printer or HandoutPrinter(settings.data_dir, tickets)
    services = Services(
        settings,
        libraries,
        store,
        runner or _runner(settings),
        printer,
        tickets,
        limits,
        storage=StorageBudget(settings.workers),
        mail=_mail(settings),
        closing_interval_s=closing_interval_s,
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        """Take in drafts of activities that end, and tidy up; at the end, close all that has threads or processes."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        services.closing.start()
        services.housekeeper.start()
        async with watch_queues(services):
            yield
        services.closing.close()
        services.housekeeper.close()
        if services.mail:
            services.mail.outbox.close()
        services.runner.close()
        services.printer.close()
        services.health.close()
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
    for page in (*CLASS_PAGES, *PRACTICE_PAGES):
        app.router.routes.extend(page.router.routes)  # as they are: include_router would work out each of them anew
    register_routes(app.routes)
    app.mount("/static", HashedStaticFiles(), name="static")
    errors.register_exception_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=700, compresslevel=GZIP_LEVEL)
    app.add_middleware(Guard)
    app.add_middleware(RequestLog, slow_after_s=settings.slow_request_s, log_all=settings.access_log)
    return app


def _runner(settings: Settings) -> HeadRunner:
    """The runner of heads of one worker, which shares memory and turns with those of the others."""
    return HeadRunner(
        max_waiting=max(1, MAX_WAITING_RUNS // settings.workers),
        idle_limit_s=RUNNER_IDLE_LIMIT_S / settings.workers,
        turn=MachineTurn(settings.data_dir / "turns" / "runs"),
        memory_share=SHARE_OF_VISITORS,
    )


def _mail(settings: Settings) -> Mail | None:
    """A way to send mail; none without a public address, since a link may not go where a request says it came from."""
    if not (settings.smtp and settings.address):
        return None
    return Mail(read_server(settings.smtp), read_sender(settings.smtp_from))
