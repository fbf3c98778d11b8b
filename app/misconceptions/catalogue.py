"""The catalogue of misconceptions: what each makes a student write, in symbols.

A misconception is one row in its group's module in `app.misconceptions.groups`, with its sentences in the group's
wording file. `app.misconceptions.misconception` defines a row and checks it on import. A comment names where a
misconception was seen. From number 32 on, a row without one is deduced from what its sheet makes easy to mix up.

>>> MISCONCEPTIONS[0].key
'head-as-wide-as-model'
>>> group_of("softmax-collapses")
'scores'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.misconceptions.groups import (
    back,
    cache,
    costs,
    dimensions,
    experts,
    feed_forward,
    mask,
    parameters,
    rotary,
    scores,
    shared,
    tokens,
    width,
)
from app.misconceptions.groups import input as input_
from app.misconceptions.misconception import CatalogueError, Misconception

# The groups that students see by name, in the order in which they meet them.
_GROUPS: Mapping[str, tuple[Misconception, ...]] = {
    "input": input_.GROUP,
    "width": width.GROUP,
    "tokens": tokens.GROUP,
    "scores": scores.GROUP,
    "mask": mask.GROUP,
    "back": back.GROUP,
    "shared": shared.GROUP,
    "cache": cache.GROUP,
    "dimensions": dimensions.GROUP,
    "parameters": parameters.GROUP,
    "feed-forward": feed_forward.GROUP,
    "costs": costs.GROUP,
    "experts": experts.GROUP,
    "rotary": rotary.GROUP,
}


def by_number(misconceptions: Iterable[Misconception]) -> tuple[Misconception, ...]:
    """The misconceptions in ascending order of their numbers."""
    rows = sorted(misconceptions, key=lambda row: row.number)
    for name in ("number", "key"):
        rows_by_name = dict[object, Misconception]()
        for row in rows:
            if (other := rows_by_name.setdefault(getattr(row, name), row)) is not row:
                raise CatalogueError(
                    f"The misconceptions “{other.key}” and “{row.key}” have the same {name}. "
                    f"The next free number is {rows[-1].number + 1}."
                )
    return tuple(rows)


# The keys are used in the wording, in students' records and in the API.
MISCONCEPTIONS = by_number(row for rows in _GROUPS.values() for row in rows)
# Each group with its misconceptions' keys.
MISCONCEPTION_GROUPS = {group: tuple(row.key for row in rows) for group, rows in _GROUPS.items()}
_GROUP_OF = {key: group for group, keys in MISCONCEPTION_GROUPS.items() for key in keys}


def group_of(misconception: str) -> str:
    """A misconception's group, by key; raises KeyError for an unknown one."""
    return _GROUP_OF[misconception]
