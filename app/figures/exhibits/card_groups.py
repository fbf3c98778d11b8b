"""Key cards in a row, each with its group's query or score cards fanned out above or below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from app.figures.exhibits.cards import LEFT, ROOM, Cards, labels
from app.figures.exhibits.frames import Part, PathMark, TextMark

MOST_FALL = 12.0  # from the first card of a group to its last
MOST_IN_GROUP = 16
LEAST_IN_GROUP = 3  # cards are made narrower to fit this many
LEAST_STEP = 4.0  # from one card of a group to the next
BETWEEN_GROUPS = 6.0


@dataclass(frozen=True)
class CardGroups:
    """The places of groups of cards, one around each key card; `key_cards` are the drawn key/value heads."""

    layer: Cards
    key_cards: tuple[int, ...]

    @cached_property
    def cards(self) -> Cards:
        """The layer's cards, made narrow enough to fan out at least LEAST_IN_GROUP cards per group."""
        steps = min(LEAST_IN_GROUP, self.layer.heads.shared_by) - 1
        return replace(self.layer, widest=min(self.layer.widest, self._room - LEAST_STEP * steps))

    @cached_property
    def fanned(self) -> int:
        """How many query (or score) cards of each group are drawn."""
        widest = max(self.cards.width("queries"), self.cards.width("scores"))
        return min(self.cards.heads.shared_by, MOST_IN_GROUP, 1 + int((self._room - widest) / LEAST_STEP))

    @cached_property
    def columns(self) -> dict[int, float]:
        """The left end of each group, by its key card, at equal steps over ROOM."""
        slots = dict[int, float]()
        slot = 0.0
        for before, head in pairwise([-1, *self.key_cards]):
            slot += 0.5 if head > before + 1 else 0.0
            slots[head] = slot
            slot += 1
        pitch = ROOM / slot
        return {head: LEFT + slot * pitch for head, slot in slots.items()}

    def dots(self, y: float) -> Iterator[Part]:
        """Yield a "⋯" at height `y` for each gap of left-out groups."""
        for before, head in pairwise([-1, *self.key_cards]):
            if head > before + 1:
                yield labels(f"gap-{head}", TextMark(self.columns[head] - 9, y, "⋯", "sign", "middle"))

    def card(self, key: str, head: int, key_head: int, y: float, state: str = "") -> Iterator[Part]:
        """The numbered card of `head`, centred over the group of `key_head`."""
        x = self._center(key_head) - self.cards.width(key) / 2
        yield from self.cards.cards(key, [(head, x, y)], state, labelled=True)

    def fan(self, key: str, key_head: int, y: float, state: str = "", on_top: int | None = None) -> Iterator[Part]:
        """Yield the `fanned` cards of `key` whose heads read one key/value head, from back to front."""
        step, fall = self._fan(key)
        top = self.cards.heads.readers_of(key_head)[-1] if on_top is None else on_top
        below = [head for head in self.cards.heads.readers_of(key_head) if head != top]
        start = self._center(key_head) - self._fan_width(key) / 2
        shown = enumerate([*below[: self.fanned - 1], top])
        placed = [(head, start + place * step, y + place * fall) for place, head in shown]
        for card in self.cards.cards(key, placed, state if on_top is None else ""):
            yield replace(card, css=f"{card.css} now") if card.data["head"] == str(on_top) else card

    def line(self, name: str, key_head: int, top: float, bottom: float, state: str = "") -> Part:
        """The line from a fan of query cards to its key card, or from there to the score cards."""
        path = f"M{self._center(key_head):.1f} {top:.1f}V{bottom:.1f}"
        return Part(f"{name}-{key_head}", (PathMark(path, f"fit {state}".strip()),))

    def _center(self, key_head: int) -> float:
        return self.columns[key_head] + self._fan_width("queries") / 2

    @property
    def _room(self) -> float:
        return min((b - a for a, b in pairwise(self.columns.values())), default=ROOM) - BETWEEN_GROUPS

    def _fan(self, key: str) -> tuple[float, float]:
        gaps = max(self.fanned - 1, 1)
        return (min(13.0, (self._room - self.cards.width(key)) / gaps), min(3.0, MOST_FALL / gaps))

    def _fan_width(self, key: str) -> float:
        return self.cards.width(key) + self._fan(key)[0] * (self.fanned - 1)
