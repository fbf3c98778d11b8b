"""One run of a head or layer for a page or the API, with a sentence and an HTTP status for whatever can stop it."""

from __future__ import annotations

from typing import Any

from app.forward.process import RunnerBusy, RunnerFailed, RunTooLong
from app.forward.run import ForwardError
from app.models.architecture import Architecture
from app.shapes.tensors import ATTENTION_LAYER
from app.sheets.worksheet import Variant
from app.web.shared.services import Services

# What stops a run: the wording's sentence and the status a client can act on.
STOPPED: dict[type[Exception], tuple[str, int]] = {
    RunnerBusy: ("busy", 503),
    RunTooLong: ("too-long", 504),
    RunnerFailed: ("stopped", 503),
}


class HeadProblem(Exception):
    """A head that was not run: the sentence to show, and its HTTP status."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def run_sheet(services: Services, variant: Variant, **options: Any) -> dict[str, Any]:
    """What a sheet asks about, run as the model really is where no shape tells the difference; raises HeadProblem."""
    # One head has the same shapes with keys of its own and with shared ones; a layer has not.
    architecture = variant.architecture if variant.topic is ATTENTION_LAYER else variant.model.architecture
    return run_head_for(services, architecture, variant.tokens, topic=variant.topic.key, **options)


def run_head_for(services: Services, architecture: Architecture, tokens: int, **options: Any) -> dict[str, Any]:
    """The result of the forward pass as plain data; raises HeadProblem. Blocks until it is there."""
    try:
        return services.runner.run(architecture, tokens, **options)
    except ForwardError as error:
        raise HeadProblem(str(error), 422) from None
    except tuple(STOPPED) as error:
        key, status = STOPPED[type(error)]
        raise HeadProblem(services.library.wording.say("page", key), status) from None
