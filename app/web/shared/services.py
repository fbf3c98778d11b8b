"""The services that the app is made of, and the dependencies by which a handler asks for them.

A handler that needs one of them asks for that one alone: `store: StoreDep`, `library: LibraryDep` or
`wording: WordingDep`.
All are `async def`, because FastAPI runs those without a thread of its pool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, cast

from anyio import CapacityLimiter
from fastapi import Depends, Request

from app.classes.closing import Closing
from app.classes.live_snapshot import LiveSnapshots
from app.classes.regrade import Regrading
from app.exchange.hub import delete_old_copies
from app.exchange.mail import Mail
from app.forward.process import HeadRunner
from app.handout.handout_printer import HandoutPrinter
from app.machine.housekeeper import Housekeeper
from app.settings import Settings
from app.sheets.exit_tickets import Ticket
from app.sheets.library import Library
from app.sheets.wording import Wording
from app.store import Store
from app.store.limits import HealthCheck
from app.store.upkeep.housekeeping import delete_expired
from app.web.shared.passwords import Passwords
from app.web.shared.rate_limits import RateLimits, StorageBudget

MAX_CLASS_THREADS = 8  # in each process


@dataclass(frozen=True)
class Services:
    """The services that create_app puts together, once for the life of the process."""

    settings: Settings
    library: Library
    store: Store
    runner: HeadRunner
    printer: HandoutPrinter
    tickets: Mapping[str, Ticket] = field(default_factory=dict)
    limits: RateLimits = field(default_factory=RateLimits)
    storage: StorageBudget = field(default_factory=StorageBudget)
    passwords: Passwords = field(default_factory=Passwords)
    mail: Mail | None = None
    live_snapshots: LiveSnapshots = field(default_factory=LiveSnapshots)
    regrading: Regrading = field(default_factory=Regrading)
    lost_runs: deque[str] = field(default_factory=lambda: deque(maxlen=1000))  # whose end could not be stored

    @cached_property
    def housekeeper(self) -> Housekeeper:
        """What deletes PDFs within the hour, and once a day expired rows and copies of files of the Hub."""

        def daily() -> None:
            delete_old_copies(self.settings.data_dir / "hub")
            delete_expired(self.store.engine)

        return Housekeeper(self.settings.data_dir / "turns", self.printer.delete_expired, daily)

    @cached_property
    def closing(self) -> Closing:
        """What takes in the drafts of activities that have ended."""
        return Closing(self.library, self.store)

    @cached_property
    def class_threads(self) -> CapacityLimiter:
        """The limit on threads for the saves and submissions of classes: more would only wait for one another."""
        return CapacityLimiter(MAX_CLASS_THREADS)

    @cached_property
    def forward_threads(self) -> CapacityLimiter:
        """The limit on threads that wait for a run of the API: as many as the runner lets wait, none of the others'."""
        return CapacityLimiter(self.runner.max_waiting + 2)

    @cached_property
    def health(self) -> HealthCheck:
        """Whether the database keeps what it is given, asked in a thread of its own."""
        return HealthCheck(self.store.check_writable)


def services_of(request: Request) -> Services:
    """The services of the app that serves this request, for code that FastAPI gives no dependencies to."""
    return cast(Services, request.app.state.services)


async def get_services(request: Request) -> Services:
    """All services, as a dependency."""
    return services_of(request)


async def get_store(request: Request) -> Store:
    """The database, as a dependency."""
    return services_of(request).store


async def get_library(request: Request) -> Library:
    """The worksheets and models of the worksheets/ folder, as a dependency; imported models are not among them."""
    return services_of(request).library


async def get_wording(request: Request) -> Wording:
    """The sentences of worksheets/wording/, as a dependency."""
    return services_of(request).library.wording


ServicesDep = Annotated[Services, Depends(get_services)]
StoreDep = Annotated[Store, Depends(get_store)]
LibraryDep = Annotated[Library, Depends(get_library)]
WordingDep = Annotated[Wording, Depends(get_wording)]
