"""The models of every family, and those that a topic fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from app.models.architecture import Architecture
from app.models.read_config import build_architecture
from app.shapes.table import Count, TensorTable, symbol_fields
from app.topics.find_the_bug import BugTable
from app.topics.registry import refusal
from tests.helpers.families_cases import CASES

TOKENS = 10  # fewer than the rows of every position table in the cases


@cache
def architectures() -> tuple[Architecture, ...]:
    """Every config of every family's case, with odd sizes and every setting that changes a shape."""
    configs = [({**config, "architectures": [name]}) for case in CASES for config, name in case.configs()]
    return tuple(build_architecture(config, f"{config['model_type']} {at}") for at, config in enumerate(configs))


def bug_shown(table: TensorTable) -> str:
    """The key of the bug that a table is about, which its worksheet must name; "" for any other table."""
    return table.case.bug.key if isinstance(table, BugTable) and table.case else ""


def are_possible(table: TensorTable, sizes: Mapping[str, int]) -> bool:
    """Whether every answer of a table is a whole number of at least 1, or 0 for an index."""
    return all(
        entry.size(field, sizes) >= (0 if isinstance(entry, Count) and entry.unit == "index" else 1)
        for entry in table.askable.values()
        for field in symbol_fields(entry)
    )


def possible(topic: str) -> Iterator[Architecture]:
    """The models that a topic isn't refused for; the refusal of every other must name the model."""
    for a in architectures():
        reason = refusal(topic, a, TOKENS)
        if reason is None:
            yield a
        else:
            assert a.name in reason
            assert "choose" in reason.lower()
            assert reason.endswith(".")
