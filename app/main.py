"""create_app: the services put together."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from anyio._backends._asyncio import _default_thread_limiter
from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from app import __version__, metrics, web
from app.classes.auto_submit import INTERVAL_S
from app.exchange.mail import Mail, read_sender, read_server
from app.figures.thumbnails import thumbnail
from app.forward.process import RUNNER_IDLE_LIMIT_S, SHARE_OF_VISITORS, HeadRunner
from app.handout.handout_printer import HandoutPrinter
from app.jobs.inline import InlineJobs
from app.jobs.jobs import Jobs, Kind
from app.machine.turn import MachineTurn
from app.practice.catalogue import catalogue
from app.settings import PROJECT, Settings
from app.sheets.exit_tickets import Ticket, load_tickets
from app.sheets.library import Library, load_library
from app.store import Store
from app.store.jobs import JobKind
from app.store.queries import Clock, utc_now
from app.translation import ENGLISH, languages
from app.web.shared import errors
from app.web.shared.bodies import BodyLimits
from app.web.shared.fair_limiter import Entrance
from app.web.shared.handout_jobs import HANDOUT_LIMITS, make_handout
from app.web.shared.head_request import HEAD_LIMITS, run_queued_real_head
from app.web.shared.queues import watch_queues
from app.web.shared.rate_limits import RateLimits, StorageBudget
from app.web.shared.request_guard import Guard
from app.web.shared.request_log import RequestLog
from app.web.shared.run_jobs import RUN_LIMITS, run_queued_head
from app.web.shared.services import Services
from app.web.shared.static_files import VersionedStaticFiles
from app.web.shared.urls import register_routes

# How long a thread computes before another one may: with Python's 5 ms, a request waits several times that long while
# drawings are made, since each of its steps waits its turn.
SWITCH_INTERVAL_S = 0.001
SECONDS_BETWEEN_STEPS = 0.01  # between steps of work that nobody waits for yet, so that the first visitors don't either
GZIP_LEVEL = 4  # a third of the time of 9, the default, for pages a few per cent larger


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
    """The whole app, with its services and every page; settings come by default from the environment."""
    settings = settings or Settings()
    metrics.join()
    libraries = {ENGLISH: library} if library else load_libraries()
    tickets = load_tickets(PROJECT / "worksheets") if tickets is None else tickets
    store = Store(settings.database, settings.data_dir, settings.processes, clock, role="web")
    limits = RateLimits(settings.processes)
    runner = runner or HeadRunner(
        idle_limit_s=RUNNER_IDLE_LIMIT_S / settings.workers,
        turn=MachineTurn(settings.data_dir / "turns" / "runs"),  # shared by this machine's workers
        memory_share=SHARE_OF_VISITORS,
        checkpoint_folders=settings.weight_folders,
    )
    # No mail without a public address, since a link must not go where a request says it came from.
    sends_mail = settings.smtp and settings.address
    services = Services(
        settings,
        libraries,
        store,
        runner,
        printer or HandoutPrinter(settings.data_dir, tickets),
        _jobs(settings, store),
        tickets,
        limits,
        storage=StorageBudget(settings.processes),
        mail=Mail(read_server(settings.smtp), read_sender(settings.smtp_from)) if sends_mail else None,
        closing_interval_s=closing_interval_s,
    )

    services.jobs.kinds.update(job_kinds(services))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        # FastAPI names no limiter, and anyio has no public way to set the default.
        _default_thread_limiter.set(services.threads["other"])  # type: ignore[arg-type]
        services.auto_submitter.start()
        services.grade_sender.start()
        services.housekeeper.start()
        services.jobs.start()
        async with watch_queues(services):
            yield
        services.auto_submitter.close()
        services.grade_sender.close()
        services.housekeeper.close()
        if services.mail:
            services.mail.outbox.close()
        services.jobs.close()
        services.runner.close()
        services.printer.close()
        services.demonstration.close()
        services.store.close()

    app = FastAPI(
        title="Attention Shapes",
        version=__version__,
        description="Worksheets on the shapes inside attention, graded, with the true shapes from torch beside them.",
        lifespan=lifespan,
        docs_url=None,  # the page would load its script from another site
        redoc_url=None,
    )
    app.state.services = services
    for router in find_routers():
        app.router.routes.extend(router.routes)  # as they are: include_router would rebuild each of them
    register_routes(app.routes)
    app.mount("/static", VersionedStaticFiles(), name="static")
    errors.register_exception_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=700, compresslevel=GZIP_LEVEL)
    app.add_middleware(BodyLimits)
    app.add_middleware(Guard)
    app.add_middleware(RequestLog, log_all=settings.access_log)
    app.add_middleware(Entrance)
    return app


def worker_services(settings: Settings, store: Store, heads: HeadRunner, jobs: Jobs) -> Services:
    """The services that a worker needs; `jobs` gets its kinds. Raises WorksheetError for an unreadable worksheet."""
    tickets = load_tickets(PROJECT / "worksheets")
    services = Services(
        settings, load_libraries(), store, heads, HandoutPrinter(settings.data_dir, tickets), jobs, tickets
    )
    jobs.kinds.update(job_kinds(services))
    return services


def _jobs(settings: Settings, store: Store) -> Jobs:
    if settings.database.startswith("sqlite"):
        return InlineJobs(store.jobs)
    from app.jobs.engine import EngineJobs  # which loads procrastinate

    return EngineJobs(store.jobs)


def load_libraries() -> dict[str, Library]:
    """The shipped worksheets in every language of the pages; raises WorksheetError."""
    return {language: load_library(PROJECT / "worksheets", language) for language in languages()}


def fill_caches(library: Library) -> None:
    """Do beforehand, in small steps, what would let the first visitors wait."""
    for step in _slow_steps(library):
        step()
        time.sleep(SECONDS_BETWEEN_STEPS)


def _slow_steps(library: Library) -> Iterator[Callable[[], object]]:
    """What takes a second or two when a sheet, the catalogue or a bug is asked for the first time."""
    for entry in catalogue(library, "", in_symbols=False):
        yield partial(thumbnail, entry.drawn)
    for worksheet in library.worksheets.values():
        for bug in worksheet.dealt_bugs:
            for model in worksheet.models or (worksheet.model,):
                yield partial(library.refusal, worksheet.with_bug(bug).key, model)
        for model in library.models:
            yield partial(library.refusal, worksheet.key, model)


def job_kinds(services: Services) -> Mapping[JobKind, Kind]:
    """What is done for jobs of each kind with these services."""
    return {
        "handout": Kind(partial(make_handout, services), HANDOUT_LIMITS),
        "run": Kind(partial(run_queued_head, services), RUN_LIMITS),
        "head": Kind(partial(run_queued_real_head, services), HEAD_LIMITS),
    }


def find_routers() -> list[APIRouter]:
    """The `router` of every module of app/web that has one, so that a new page registers itself."""
    names = sorted(
        (module.name for module in pkgutil.walk_packages(web.__path__, "app.web.")),
        key=lambda name: (name != "app.web.student", name),
    )
    routers = (getattr(importlib.import_module(name), "router", None) for name in names)
    return [router for router in routers if router is not None]
