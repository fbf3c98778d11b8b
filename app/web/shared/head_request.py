"""Real heads as jobs: what is queued, how it runs when its turn comes, and how it is found again.

A typed sentence is only in its job's arguments and result: not in an address, a log, or a job's description. It is
deleted with the job, at the latest an hour after the job's end.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import HTTPException

from app.checkpoints.files import ListedCheckpoint, listed_checkpoints
from app.forward.lines import ForwardError
from app.forward.real_head import RealHead
from app.jobs.jobs import Task
from app.machine.work_queue import Client
from app.sheets.variant import Variant
from app.store.jobs import Job, JobLimits, JobRefusedError, no_worker
from app.translation import gettext as _
from app.web.shared.services import Services

# A warm head takes well under a second for a short sentence; in a deep layer a few seconds. Results are kept for an
# hour, so that not even a constantly asking network fills the disk.
HEAD_LIMITS = JobLimits(total=220, visitors=200, visitor=30, member=6, visitor_hourly=300, member_hourly=60)
MAX_HEAD_TOKENS = 256  # with nine heads, a layer's weights then take 1.2 MB

# Layer and head that the form starts with, by the key of listed weights: there the example's "it" attends to "cat".
EXAMPLES: Mapping[str, tuple[int, int]] = {"smollm2": (13, 8)}


@dataclass(frozen=True)
class HeadChoice:
    """Which head to run over which sentence: a listed checkpoint's key, the sentence, layer and head from 0.

    `tokens` is the sentence's length according to a worksheet, or 0.
    """

    checkpoint: str
    sentence: str
    layer: int
    head: int
    tokens: int = 0


def choice_of_sheet(services: Services, variant: Variant) -> HeadChoice | None:
    """The head that a worksheet with a sentence names, with its number of tokens, which the run must confirm."""
    sheet = variant.worksheet
    if not sheet.sentence or (variant.model.key, variant.tokens) != (sheet.model, sheet.tokens):
        return None
    listed = next((each for each in offered_checkpoints(services) if each.key == sheet.checkpoint), None)
    if listed is None or sheet.layer >= listed.layers or sheet.head >= listed.heads:
        return None
    return HeadChoice(sheet.checkpoint, sheet.sentence, sheet.layer, sheet.head, sheet.tokens)


def start_head(
    services: Services,
    client: Client,
    choice: HeadChoice,
    *,
    back: str = "",
    visitor_id: int | None = None,
    student_id: int | None = None,
) -> Job:
    """Queue a head and return its job without waiting for it."""
    listed = find_checkpoint(services, choice.checkpoint)
    about = {"checkpoint": listed.name, "layer": choice.layer, "head": choice.head, "back": back}
    owner = {"visitor_id": visitor_id, "student_id": student_id}
    key = secrets.token_urlsafe(18)
    try:
        return services.jobs.submit("head", client, key, about, asdict(choice), part=listed.key, **owner)
    except JobRefusedError as refusal:
        sentences = {
            "full": _("Too many runs are in progress. Try again in a minute."),
            "no-worker": no_worker(),
            "yours": _("Several of your heads wait to be run: wait for one of them, or cancel one."),
            "hourly": _("You have run many heads within an hour: try again later."),
        }
        raise ForwardError(sentences[refusal.reason], "busy") from None


def run_queued_real_head(services: Services, task: Task) -> bytes:
    """A queued head's result as bytes for `RealHead.from_bytes`.

    Raises ForwardError, whose text the page shows.
    """
    choice = HeadChoice(**task.arguments)
    here = {listed.key: listed.source for listed in listed_checkpoints(services.settings.weight_folders)}
    if choice.checkpoint not in here:
        raise _no_longer_offered()
    options: dict[str, Any] = {"layer": choice.layer, "head": choice.head, "most_tokens": MAX_HEAD_TOKENS}
    options |= {"check": task.check, "report": task.report}
    head = services.runner.run_real_head(here[choice.checkpoint], choice.sentence, **options)
    if choice.tokens not in (0, len(head.tokens)):
        problem = _(
            "The worksheet says {said} tokens, but these weights make {count} of its sentence: tell its author."
        )
        raise ValueError(problem.format(said=choice.tokens, count=len(head.tokens)))
    return head.to_bytes()


def offered_checkpoints(services: Services) -> tuple[ListedCheckpoint, ...]:
    """The weights that this server offers: its workers', or those in its settings' folders and an installed SmolLM2."""
    if not services.jobs.has_workers:
        return listed_checkpoints(services.settings.weight_folders)
    entries = (each for worker in services.jobs.workers() for each in worker.checkpoints)
    return tuple({each["key"]: ListedCheckpoint(source="", **each) for each in entries}.values())


def find_checkpoint(services: Services, key: str) -> ListedCheckpoint:
    """The listed checkpoint with that key; ForwardError, with reason "refused", if the server offers none."""
    for listed in offered_checkpoints(services):
        if listed.key == key:
            return listed
    raise _no_longer_offered()


def _no_longer_offered() -> ForwardError:
    return ForwardError(_("This server no longer offers these weights: choose others."), "refused")


def find_head_job(services: Services, key: str) -> Job:
    """A head's job in any state; 404 for an unknown, deleted or other kind of key."""
    job = services.jobs.find(key)
    if job is None or job.kind != "head":
        raise head_deleted()
    return job


def head_deleted() -> HTTPException:
    """The error for a head that is no longer kept (404), which says what to do."""
    return HTTPException(404, _("This head has been deleted with its sentence: run it again."))


def find_choice(services: Services, key: str) -> HeadChoice | None:
    """What was chosen for a head, until it is deleted; None for any other key."""
    job = services.jobs.find(key) if key else None
    arguments = services.jobs.rows.arguments(job) if job and job.kind == "head" else {}
    return HeadChoice(**arguments) if arguments else None  # also None if it has been deleted meanwhile


def find_head(services: Services, key: str) -> tuple[Job, RealHead]:
    """A head that has been run, with its job; 404 if it is unknown, deleted, unfinished or failed."""
    job = find_head_job(services, key)
    if job.ending != "ready":
        raise HTTPException(404, _("This head has no result yet."))
    content = services.jobs.rows.result(job)
    if not content:  # it has been deleted meanwhile
        raise head_deleted()
    return job, RealHead.from_bytes(content)
