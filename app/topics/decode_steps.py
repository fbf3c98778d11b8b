"""The steps of "One more token": the cached tokens at each, its decode step's table, and its costs.

The first tokens are words of a sentence; then comes the sheet's number of cached tokens and, with a sliding window, the
step that drops the oldest key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.models.architecture import Architecture
from app.shapes.table import TensorTable
from app.topics.decode_costs import flops_with_cache, flops_without_cache, recomputed_flops, step_flops
from app.topics.decode_step import DECODE_STEP
from app.topics.registry import TOPICS, refusal, sizes_for, topic_for
from app.topics.requirements import require
from app.topics.single_head import SINGLE_HEAD

DECODE_TOPIC = DECODE_STEP.key


@dataclass(frozen=True)
class StepCosts:
    """FLOPs of one layer's attention, for one more token and for all tokens so far, with and without a cache."""

    with_cache: int
    without_cache: int
    total_with_cache: int
    total_without_cache: int


@dataclass(frozen=True)
class DecodeStep:
    """One more token after `cached` others; `table` and `sizes` have all its shapes.

    layers: how many layers it applies to, and of how many, if others see more keys; (0, 0) if all are alike.
    """

    architecture: Architecture
    cached: int
    table: TensorTable
    sizes: Mapping[str, int]
    layers: tuple[int, int] = (0, 0)

    @property
    def tokens(self) -> int:
        """The number of tokens with the new one."""
        return self.cached + 1

    @property
    def keys(self) -> int:
        """How many keys the new token is compared with: the rows of K."""
        return self.table["keys"].rows.size(self.sizes)

    @property
    def dropped(self) -> int:
        """How many of the oldest tokens are no longer cached."""
        return self.tokens - self.keys

    def shape(self, tensor: str, *, anew: bool = False) -> tuple[int, int]:
        """A matrix's rows and columns, with a cache or with all tokens computed `anew`."""
        table, sizes = (SINGLE_HEAD, {**self.sizes, "N": self.tokens}) if anew else (self.table, self.sizes)
        return table[tensor].rows.size(sizes), table[tensor].columns.size(sizes)

    @property
    def costs(self) -> StepCosts:
        """FLOPs of one layer's attention for this token and for all tokens so far, with and without a cache."""
        window = self.keys if self.dropped else None
        return StepCosts(
            step_flops(self.table).size(self.sizes),
            recomputed_flops().size(self.sizes),
            flops_with_cache(self.sizes, self.tokens, window),
            flops_without_cache(self.sizes, self.tokens),
        )


def decode_steps(architecture: Architecture, tokens: int, words: int) -> tuple[DecodeStep, ...]:
    """The steps of the first `words` tokens, of one more after `tokens`, and the first that drops a key, in order.

    Raises TopicError if the topic doesn't fit the model or the number of tokens.
    """
    require(TOPICS[DECODE_TOPIC].requirements, architecture, tokens)
    cached = {*range(min(words, tokens + 1)), tokens}
    full = architecture.window or 0  # the cached tokens after which the new one finds its window full
    if full and full not in cached and _is_reached(architecture, full):
        cached.add(full)
    steps = [_step(architecture, count) for count in sorted(cached)]
    return (*steps, *_step_of_some_layers(architecture, tokens))


def _is_reached(architecture: Architecture, cached: int) -> bool:
    within = architecture.C is None or cached < architecture.C
    return within and refusal(DECODE_TOPIC, architecture, cached) is None


def _step(architecture: Architecture, cached: int) -> DecodeStep:
    table = topic_for(DECODE_TOPIC, architecture, cached)
    return DecodeStep(architecture, cached, table, sizes_for(DECODE_TOPIC, architecture, cached, cached))


def _step_of_some_layers(architecture: Architecture, tokens: int) -> Iterator[DecodeStep]:
    runs = architecture.stacks[-1].attending
    windowed = [run for run in runs if run.window and not run.chunk]
    if len({run.window for run in windowed}) != 1 or len(windowed) == len(runs):
        return
    window, stack = windowed[0].window, replace(architecture.stacks[-1], runs=(windowed[0],))
    alone = replace(architecture, stacks=(*architecture.stacks[:-1], stack), window=window, chunk=windowed[0].chunk)
    if window and tokens < window and _is_reached(alone, window):
        layers = (sum(run.count for run in windowed), sum(run.count for run in runs))
        yield replace(_step(alone, window), layers=layers)
