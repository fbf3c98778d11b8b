"""How much each head of a layer does one of five things in a text: "show me a head that looks at the previous token".

A score says what a head did in this text, not what it is for: a head that repeats has no score in a text in which no
token comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from app.translation import gettext as _

if TYPE_CHECKING:
    import numpy as np

Pattern = Literal["previous", "repeats", "back", "itself", "first"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)


@dataclass(frozen=True)
class HeadScore:
    """The share of its weight that a head puts where a pattern says, between 0 and 1, in one text.

    `query` and `key` are the positions of the largest such weight, from 0.
    """

    layer: int
    head: int
    pattern: Pattern
    value: float
    query: int
    key: int


def head_scores(weights: np.ndarray, token_ids: Sequence[int], layer: int) -> tuple[HeadScore, ...]:
    """The scores of all heads of a layer, pattern after pattern and head after head."""
    return tuple(score for pattern in PATTERNS for score in _scores(weights, token_ids, layer, pattern))


def pattern_names() -> dict[Pattern, str]:
    """By pattern, what its heads do, as a translated phrase after "a head that …"."""
    return {
        "previous": _("looks at the previous token"),
        "repeats": _("repeats (induction)"),
        "back": _("points back"),
        "itself": _("looks at the token itself"),
        "first": _("rests on the first token"),
    }


def pattern_definitions() -> dict[Pattern, str]:
    """By pattern, how its score is computed from the attention weights, translated."""
    return {
        "previous": _(
            "The mean weight from a token to the one before it, over all tokens from the third on, so that the first "
            "token isn’t counted as anybody’s previous one."
        ),
        "repeats": _(
            "For each token that has come before, the weight on the tokens that followed it then; the mean over "
            "these tokens. The token itself is not counted."
        ),
        "back": _(
            "The largest single weight in this text from a token to one at least two places before it. The first token "
            "and what counts for repeating are left out."
        ),
        "itself": _("The mean weight from a token to itself, over all tokens but the first, which may see no other."),
        "first": _("The mean weight on the first token, over all tokens but the first."),
    }


def best_heads(scores: Sequence[HeadScore], pattern: Pattern, count: int) -> tuple[HeadScore, ...]:
    """The `count` heads with the highest scores of a pattern, best first, earlier heads before later ones."""
    of_pattern = [score for score in scores if score.pattern == pattern]
    return tuple(sorted(of_pattern, key=lambda score: (-score.value, score.layer, score.head))[:count])


def _scores(weights: np.ndarray, token_ids: Sequence[int], layer: int, pattern: Pattern) -> Iterator[HeadScore]:
    import numpy as np

    places = _places(token_ids, pattern)
    rows = places.any(axis=1)
    if not rows.any():
        return
    for head, matrix in enumerate(weights):
        counted = np.where(places, matrix.astype(np.float32), 0)
        query, key = np.unravel_index(np.where(places, counted, -1).argmax(), counted.shape)
        value = counted[query, key] if pattern == "back" else counted[rows].sum(axis=1).mean()
        yield HeadScore(layer, head, pattern, min(1.0, float(value)), int(query), int(key))


def _places(token_ids: Sequence[int], pattern: Pattern) -> np.ndarray:
    import numpy as np

    ids = np.asarray(token_ids)
    query, key = np.indices((len(ids), len(ids)))
    followed = (ids[:, None] == np.roll(ids, 1)[None]) & (key > 0) & (key < query)
    places: np.ndarray
    match pattern:
        case "previous":
            places = (key == query - 1) & (query > 1)
        case "repeats":
            places = followed
        case "back":
            places = (key > 0) & (key < query - 1) & ~followed
        case "itself":
            places = (key == query) & (query > 0)
        case "first":
            places = (key == 0) & (query > 0)
    return places
