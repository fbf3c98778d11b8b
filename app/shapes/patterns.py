"""Patterns of einsum and einops as typed, compared up to the names of their axes. Nothing is run.

Two patterns compute the same if they are equal once axes are named by the order in which they first appear.

>>> scores = read_pattern("b h q e, b h k e -> b h q k", (4, 4))
>>> read_pattern("bhid,bhjd->bhij", (4, 4)) == scores == read_pattern("... q e, ... k e -> ... q k", (4, 4))
True
>>> read_pattern("b h q e, b h k e -> b h k q", (4, 4)) == scores
False
>>> read_pattern("b n (h e) -> b h n e", (3,), takes_groups=True)
(((0,), (1,), (2, 3)), ((0,), (2,), (1,), (3,)))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from app.algebra.parser import CannotReadError, normalize_signs, printable

MAX_PATTERN_CHARACTERS = 200
Meaning = tuple[tuple[tuple[int, ...], ...], ...]  # for each operand, then for the result: the axes of each side

_Side = tuple[str, ...]
_TOKEN = re.compile(r" |\.\.\.|[()1]|[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
_BETWEEN_LETTERS = re.compile("(?<=[A-Za-z])(?=[A-Za-z])")
_ELLIPSIS: _Side = ("...",)


def read_pattern(text: str, ranks: Sequence[int], *, takes_groups: bool = False) -> Meaning:
    """What a pattern means for operands with these numbers of sides: the axes of every side."""
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise CannotReadError("pattern-too-long")
    tidy = normalize_signs(text).strip("\"'`“”‘’ ").replace("→", "->").replace("\u2010", "-")
    before, arrow, after = tidy.partition("->")
    if not arrow or "->" in after:
        raise CannotReadError("pattern-arrow")
    texts = before.split(",")
    if len(texts) != len(ranks) or "," in after:
        raise CannotReadError("pattern-operands", str(len(ranks)))
    named = [_sides(each) for each in (*texts, after)]
    if not takes_groups and any(len(side) != 1 for sides in named for side in sides):
        raise CannotReadError("pattern-groups")
    spaced = [_sides(_BETWEEN_LETTERS.sub(" ", each)) for each in (*texts, after)]
    if takes_groups and not _rearranges(named, ranks) and _rearranges(spaced, ranks):
        raise CannotReadError("pattern-spaces")
    sides = _as_meant(named, texts, ranks)
    return _numbered(_without_ellipsis(sides, ranks))


def _sides(text: str) -> list[_Side]:
    sides, group, at = list[_Side](), None, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise CannotReadError("pattern-sign", printable(text[at]))
        at = token.end()
        match token[0]:
            case " ":
                pass
            case "(" if group is None:
                group = list[str]()
            case ")" if group:
                sides.append(tuple(axis for axis in group if axis != "1"))
                group = None
            case "(" | ")":
                raise CannotReadError("pattern-brackets")
            case "..." if group is not None or _ELLIPSIS in sides:
                raise CannotReadError("pattern-sign", "...")
            case name if group is not None:
                group.append(name)
            case "1":
                sides.append(())
            case name:
                sides.append((name,))
    if group is not None:
        raise CannotReadError("pattern-brackets")
    return sides


def _as_meant(named: list[list[_Side]], texts: Sequence[str], ranks: Sequence[int]) -> list[list[_Side]]:
    axes = [axis for sides in named for side in sides for axis in side]
    is_grouped = any(len(side) != 1 for sides in named for side in sides)
    if is_grouped or not all(axis.isalpha() or (axis,) == _ELLIPSIS for axis in axes):
        return named
    letters = [[letter for side in sides for letter in _letters(side)] for sides in named]
    readings = [named, letters] if any(" " in text.strip() for text in texts) else [letters, named]
    return next((reading for reading in readings if _fits(reading, ranks)), readings[0])


def _letters(side: _Side) -> Iterator[_Side]:
    yield from [side] if side == _ELLIPSIS else ((letter,) for axis in side for letter in axis)


def _fits(sides: Sequence[Sequence[_Side]], ranks: Sequence[int]) -> bool:
    *operands, result = sides
    return set(result) <= {_ELLIPSIS}.union(*operands) and _have_ranks(operands, ranks)


def _rearranges(sides: Sequence[Sequence[_Side]], ranks: Sequence[int]) -> bool:
    *operands, result = sides
    axes = {axis for operand in operands for side in operand for axis in side}
    return axes <= {axis for side in result for axis in side} and _have_ranks(operands, ranks)


def _have_ranks(operands: Sequence[Sequence[_Side]], ranks: Sequence[int]) -> bool:
    return all(
        len(each) == rank or (_ELLIPSIS in each and len(each) <= rank + 1)
        for each, rank in zip(operands, ranks, strict=True)
    )


def _without_ellipsis(sides: list[list[_Side]], ranks: Sequence[int]) -> list[list[_Side]]:
    hidden = [rank - len(each) + 1 if _ELLIPSIS in each else 0 for each, rank in zip(sides, ranks, strict=False)]
    hidden.append(max(hidden))  # the result's
    return [
        [
            named
            for side in each
            for named in ([(f"...{place}",) for place in range(count, 0, -1)] if side == _ELLIPSIS else [side])
        ]
        for each, count in zip(sides, hidden, strict=True)
    ]


def _numbered(sides: Iterable[Iterable[_Side]]) -> Meaning:
    after, before = dict[str, set[str]](), dict[str, set[str]]()  # "" marks the end of a side
    for side in (side for each in sides for side in each):
        for first, second in pairwise(("", *side, "")):
            after.setdefault(first, set()).add(second)
            before.setdefault(second, set()).add(first)
    follows = {axis for axis in before if axis and len(before[axis]) == 1 and after[min(before[axis])] == {axis}}
    numbers = dict[str, int]()
    return tuple(
        tuple(tuple(numbers.setdefault(axis, len(numbers)) for axis in side if axis not in follows) for side in each)
        for each in sides
    )
