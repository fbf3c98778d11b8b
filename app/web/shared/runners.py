"""The runners that a server leaves work to, and what a page says while none is available."""

from __future__ import annotations

from app.machine.jobs import Job, JobKind, Runner
from app.translation import gettext as _
from app.web.shared.services import Services


def living_runners(services: Services, kind: JobKind) -> tuple[Runner, ...]:
    """The living runners that do jobs of a kind; none if this process does them itself."""
    if not services.settings.runners:
        return ()
    runners = services.store.jobs.runners()
    return tuple(each for each in runners if each.is_alive and not each.is_web and kind in each.kinds)


def why_it_waits(services: Services, job: Job) -> str:
    """The sentence for a stalled job's page: no runner for its kind is alive."""
    if not (services.settings.runners and job.is_stalled) or living_runners(services, job.kind):
        return ""
    return _(
        "No runner is running: the part of this server that runs heads and makes handouts is down. Yours starts by "
        "itself if it is back within a minute; otherwise tell the server’s operator."
    )
