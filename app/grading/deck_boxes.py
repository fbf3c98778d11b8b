"""Marks what is typed into the exhibit of heads: the shapes of decks of cards, and the bytes of the KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.grading.grade import MarkKind
from app.shapes.layer_heads import CacheBytes, LayerHeads
from app.sheets.numbers import Unreadable, read_answer, rounding_margin
from app.sheets.wording import Wording
from app.translation import gettext as _

DECKS = ("queries", "keys", "scores")  # in the order in which the exhibit asks for them


@dataclass(frozen=True)
class AskedBoxes:
    """What was typed for one shape or number, with the mark of each box and one sentence about them.

    The sentence is empty while nothing is typed, and holds no number of the answer unless all boxes are right.
    """

    texts: tuple[str, ...]
    marks: tuple[MarkKind, ...]
    message: str = ""

    @property
    def is_right(self) -> bool:
        """Whether every box is right."""
        return set(self.marks) == {"right"}


def mark_deck(
    heads: LayerHeads, key: str, texts: Sequence[str], symbols: Mapping[str, int], wording: Wording
) -> AskedBoxes:
    """The three sides typed for a deck of cards, marked by the layer's table; `symbols` may stand in for numbers."""
    typed = [read_answer(text, symbols, "side") for text in texts]
    marks = [_kind(value, side) for value, side in zip(typed, heads.deck(key), strict=True)]
    return AskedBoxes(tuple(texts), tuple(marks), _deck_message(heads, key, typed, marks, wording))


def mark_cache(heads: LayerHeads, text: str, cache: CacheBytes, wording: Wording) -> AskedBoxes:
    """The bytes typed for the KV cache of all layers; rounded ones such as 3.9 MB may be right."""
    typed = read_answer(text, {}, "bytes")
    margin = rounding_margin(text, "bytes")
    if isinstance(typed, int) and abs(typed - cache.all_layers) <= margin:
        return AskedBoxes((text,), ("right",), _right_cache(cache))
    if isinstance(typed, Unreadable):
        return AskedBoxes((text,), ("unreadable",), wording.unreadable(typed))
    if typed is None:
        return AskedBoxes((text,), ("empty",))
    slip = next((key for key, wrong in _wrong_bytes(heads, cache) if abs(typed - wrong) <= margin), "")
    return AskedBoxes((text,), ("wrong",), _cache_message(slip, cache))


def _kind(typed: int | Unreadable | None, true_side: int) -> MarkKind:
    """The mark of one side."""
    if typed is None:
        return "empty"
    if isinstance(typed, Unreadable):
        return "unreadable"
    return "right" if typed == true_side else "wrong"


def _deck_message(
    heads: LayerHeads, key: str, typed: Sequence[int | Unreadable | None], marks: Sequence[MarkKind], wording: Wording
) -> str:
    """The sentence about three boxes: what can't be read, else what is wrong first, else that all is right."""
    unreadable = next((value for value in typed if isinstance(value, Unreadable)), None)
    if unreadable:
        return wording.unreadable(unreadable)
    if "wrong" in marks:
        return _wrong_deck(
            heads, key, [value if isinstance(value, int) else None for value in typed], marks.index("wrong")
        )
    if "empty" in marks:
        return "" if set(marks) == {"empty"} else _("Right so far: a deck has three dimensions.")
    return _right_deck(heads, key)


def _right_deck(heads: LayerHeads, key: str) -> str:
    """What a right answer shows."""
    if key == "queries":
        return _("Right: heads, tokens, features.")
    if key == "scores":
        return _("Right: one score card for each query head, however many key cards there are.")
    if heads.shared_by == 1:
        return _("Right: here every query card has a key card of its own.")
    return _("Right: fewer cards than in the deck of queries. The deck of values has as many as this one.")


def _wrong_deck(heads: LayerHeads, key: str, typed: list[int | None], first_wrong: int) -> str:
    """The sentence for a wrong shape: for a slip that can be told by its numbers, else for the first wrong side."""
    count, rows, columns = heads.deck(key)
    if typed == [rows, count, columns] and key != "scores":
        return _(
            "That is the order after view, before transpose: tokens, heads, features. In a deck the cards come first."
        )
    if typed[2] == count * columns:
        return _("That is as wide as the whole matrix. A card is one stripe of it.")
    if key == "keys" and typed[0] == heads.count("queries"):
        return _("That is the number of query cards. Key cards are shared: count the stripes of K.")
    if key == "scores" and typed[0] == heads.count("keys"):
        return _("That is the number of key cards, but each query card deals a score card of its own.")
    if key == "scores" and typed[2] == heads.deck("keys")[2]:
        return _("The features are summed over and gone: a score card has a column for the key of each token.")
    return (
        _("The first dimension is the number of cards: one for each head of this matrix."),
        _("The second dimension is the rows of one card: one for each token."),
        _("The third dimension is the columns of one card: one for each key.")
        if key == "scores"
        else _("The third dimension is the columns of one card: the features of one head."),
    )[first_wrong]


def _right_cache(cache: CacheBytes) -> str:
    """What the right bytes are made of."""
    if cache.drops_tokens:
        return _("Right: the keys and values of the cached tokens, in every layer and key/value head.")
    return _("Right: the keys and values of every layer, token and key/value head.")


def _wrong_bytes(heads: LayerHeads, cache: CacheBytes) -> Iterator[tuple[str, Fraction]]:
    """The bytes that slips make of the true ones, by the slip; those that come to the same are left out."""
    true_bytes = Fraction(cache.all_layers)
    predicted = (
        ("half", true_bytes / 2),
        ("query-heads", true_bytes * heads.shared_by),
        *(("one-layer", Fraction(of_layer)) for of_layer in cache.one_layer),
        ("every-token", Fraction(cache.without_windows)),
        ("bits", true_bytes * 8),
    )
    yield from ((key, wrong) for key, wrong in predicted if wrong != true_bytes)


def _cache_message(slip: str, cache: CacheBytes) -> str:
    """The sentence for wrong bytes."""
    messages = {
        "half": _("Half of it is missing: keys and values are both cached, and each number takes 2 bytes."),
        "query-heads": _("That counts query heads, but only key/value heads are cached."),
        "one-layer": _("That is the cache of one layer: every layer has its own."),
        "every-token": _("That counts every token, but a full sliding window keeps only the latest ones."),
        "bits": _("That is in bits: 8 bits are a byte."),
    }
    if slip:
        return messages[slip]
    if cache.drops_tokens:
        return _(
            "Add up the cached tokens of all layers. Multiply them by the key/value heads, the numbers in a key and a "
            "value, and 2 bytes a number."
        )
    return _(
        "Multiply the layers, the tokens, the key/value heads, the numbers in a key and a value, and 2 bytes a number."
    )
