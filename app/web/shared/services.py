"""The app's services, and the dependencies through which handlers ask for them.

A handler asks only for what it needs: `store: StoreDep` or `library: LibraryDep`. All are `async def`, because FastAPI
runs those without a thread of its pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from app.classes.auto_submit import INTERVAL_S, AutoSubmitter
from app.classes.demonstration import Demonstration
from app.classes.illustrations import Illustrations
from app.classes.live_snapshot import LiveSnapshots
from app.classes.regrade import Regrading
from app.exchange.hub import MAX_FETCHES, delete_old_copies
from app.exchange.mail import Mail
from app.forward.process import HeadRunner
from app.handout.handout_printer import MAX_WAITING_REQUESTS, HandoutPrinter
from app.jobs.inline import InlineJobs
from app.jobs.jobs import Jobs
from app.lti.grades import GradeSender
from app.lti.keys import rotate_old_keys
from app.lti.services import PlatformServices
from app.machine.housekeeper import Housekeeper
from app.machine.work_queue import Places
from app.settings import Settings
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.store import Store
from app.store.database import empty_log
from app.store.housekeeping import delete_expired
from app.translation import ENGLISH, language
from app.web.shared.cookies import asks_for_demonstration
from app.web.shared.fair_limiter import FairLimiter
from app.web.shared.passwords import MAX_HASHES_AT_ONCE, MAX_WAITING, Passwords
from app.web.shared.rate_limits import RateLimits, StorageBudget
from app.web.shared.readiness import Readiness

ThreadKind = Literal["other", "class", "run", "forward", "print", "hub", "lti", "roster", "password"]
MAX_PROGRAMS = 24  # requests waiting for an API run, per process; visitors leave eight free, and one network has eight
# Per process. Threads for classes and for runs' pages do work, and more of them would only wait for one another; a
# class asking for its runs all at once leaves most of the processor to saves. The other kinds mostly wait, and have a
# few more threads than may wait at a time, so that one request too many is refused at once.
MAX_THREADS: Mapping[ThreadKind, int] = {
    "other": 40,  # FastAPI's default, for handlers without a kind
    "class": 8,
    "run": 2,
    "forward": MAX_PROGRAMS + 4,
    "print": MAX_WAITING_REQUESTS + 4,
    "hub": MAX_FETCHES + 4,
    "lti": 12,  # one of them may fetch a platform's keys
    "roster": 4,  # waiting for platforms' class lists, of any length
    "password": MAX_HASHES_AT_ONCE + MAX_WAITING + 4,
}


@dataclass(frozen=True)
class Services:
    """The services that create_app puts together, once per process."""

    settings: Settings
    libraries: Mapping[str, Library]  # by language
    store: Store
    runner: HeadRunner
    printer: HandoutPrinter
    jobs: Jobs
    tickets: Mapping[str, Ticket] = field(default_factory=dict)
    limits: RateLimits = field(default_factory=RateLimits)
    storage: StorageBudget = field(default_factory=StorageBudget)
    passwords: Passwords = field(default_factory=Passwords)
    programs: Places = field(default_factory=lambda: Places(MAX_PROGRAMS, reserved=8, of_visitor=8))
    mail: Mail | None = None
    closing_interval_s: float = INTERVAL_S
    live_snapshots: LiveSnapshots = field(default_factory=LiveSnapshots)
    regrading: Regrading = field(default_factory=Regrading)
    illustrations: Illustrations = field(default_factory=Illustrations)
    is_demonstration: bool = False  # the store is the public demonstration's
    _demonstrated: list[Services] = field(default_factory=list)

    @property
    def library(self) -> Library:
        """The worksheets, models and wording of the worksheets/ folder, in the request's language."""
        return self.libraries.get(language()) or self.libraries[ENGLISH]

    @cached_property
    def housekeeper(self) -> Housekeeper:
        """Deletes expired jobs, rows and cached Hub files."""

        def often() -> None:
            self.jobs.tidy()
            empty_log(self.store.engine)

        def daily() -> None:
            delete_old_copies(self.settings.data_dir / "hub")
            delete_expired(self.store.engine, self.store.now())
            rotate_old_keys(self.store)

        return Housekeeper(self.settings.data_dir / "turns", often, daily)

    @cached_property
    def demonstration(self) -> Demonstration:
        """The public demonstration of a course, with its own databases."""
        folder = self.settings.data_dir / "demonstration"
        return Demonstration(folder, self.libraries[ENGLISH], self.tickets, self.store.now)

    def demonstrated(self) -> Services | None:
        """These services with the demonstration's database; None if it doesn't exist yet."""
        store = self.demonstration.current()
        if store is None:
            return None
        if not self._demonstrated or self._demonstrated[0].store is not store:
            jobs, live, regrading = InlineJobs(store.jobs), LiveSnapshots(), Regrading()
            jobs.kinds = self.jobs.kinds  # for their limits: the demonstration keeps no jobs
            self._demonstrated[:] = [
                replace(self, store=store, jobs=jobs, live_snapshots=live, regrading=regrading, is_demonstration=True)
            ]
        return self._demonstrated[0]

    @cached_property
    def auto_submitter(self) -> AutoSubmitter:
        """Auto-submits the drafts of ended activities."""
        return AutoSubmitter(self.libraries[ENGLISH], self.store, self.closing_interval_s)

    @cached_property
    def grade_sender(self) -> GradeSender:
        """Sends grades to the learning platforms that open the app."""
        return GradeSender(self.libraries[ENGLISH], self.store, self.platform_services)

    @cached_property
    def platform_services(self) -> PlatformServices:
        """Grades and class lists of learning platforms."""
        return PlatformServices(self.store, allow_private=self.settings.lti_private)

    @cached_property
    def threads(self) -> Mapping[ThreadKind, FairLimiter]:
        """The limit on threads of each kind: see app/web/shared/threads.py."""
        return {kind: FairLimiter(most) for kind, most in MAX_THREADS.items()}

    @cached_property
    def readiness(self) -> Readiness:
        """Whether the database can store something."""
        return Readiness(self.store.check_writable)


def services_of(request: Request) -> Services:
    """The services for this request, for code without FastAPI's dependencies."""
    services = cast(Services, request.app.state.services)
    return (services.demonstrated() if asks_for_demonstration(request) else None) or services


async def get_services(request: Request) -> Services:
    """The services for this request as a dependency: the demonstration's or the app's."""
    services = cast(Services, request.app.state.services)
    if asks_for_demonstration(request) and services.demonstrated() is None:
        await run_in_threadpool(services.demonstration.begin)
    return services_of(request)


ServicesDep = Annotated[Services, Depends(get_services)]


async def get_store(services: ServicesDep) -> Store:
    return services.store


async def get_library(services: ServicesDep) -> Library:
    """The worksheets and models of the worksheets/ folder, without imported models."""
    return services.library


StoreDep = Annotated[Store, Depends(get_store)]
LibraryDep = Annotated[Library, Depends(get_library)]
