"""Which lines of a text a newer version of it changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple


class ChangedLine(NamedTuple):  # there may be thousands
    """A line that only one of two texts has."""

    kind: Literal["added", "removed"]
    text: str


def changed_lines(before: str, after: str) -> tuple[ChangedLine, ...]:
    """The lines that only one of two texts has, in order, each marked "removed" or "added"."""
    old, new = _numbered(before.splitlines()), _numbered(after.splitlines())
    place = {line: index for index, line in enumerate(new)}
    common = [(index, place[line]) for index, line in enumerate(old) if line in place]
    changed, old_from, new_from = list[ChangedLine](), 0, 0
    for old_to, new_to in [*_longest_growing(common), (len(old), len(new))]:
        changed += [ChangedLine("removed", line) for line, _number in old[old_from:old_to] if line]
        changed += [ChangedLine("added", line) for line, _number in new[new_from:new_to] if line]
        old_from, new_from = old_to + 1, new_to + 1
    return tuple(changed)


def _numbered(lines: Iterable[str]) -> list[tuple[str, int]]:
    counted, numbered = dict[str, int](), list[tuple[str, int]]()
    for line in lines:
        before = counted.get(line, 0)
        counted[line] = before + 1
        numbered.append((line, before))
    return numbered


def _longest_growing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    # the pair that ends the best choice of each length; of equal pairs, the last
    ends, before = list[int](), list[int]()
    values = list[int]()  # the second numbers of `ends`
    for index, (_first, second) in enumerate(pairs):
        length = bisect_left(values, second)
        before.append(ends[length - 1] if length else -1)
        if length == len(values):
            values.append(second)
            ends.append(index)
        else:
            values[length], ends[length] = second, index
    chosen, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
