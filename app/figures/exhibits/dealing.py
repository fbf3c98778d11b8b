"""How far a visitor has dealt the heads of a layer: the next query card, and the key cards to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from app.topics.layer_heads import LayerHeads

MOST_GROUPS = 8  # key cards drawn with their groups


@dataclass(frozen=True)
class Dealing:
    """A visitor's progress: right answers so far, and the key card tried for the next query card, if any.

    `known` are the matrices whose decks were typed correctly; others keep their question marks.
    """

    heads: LayerHeads
    dealt: int = 0
    tried: int | None = None
    known: frozenset[str] = frozenset()

    @property
    def rounds(self) -> tuple[int, ...]:
        """The query heads that are asked: in the middle of the second group, the last, the middle one."""
        count, shared = self.heads.count("queries"), self.heads.shared_by
        return tuple(dict.fromkeys(min(count - 1, head) for head in (shared + shared // 2, count - 1, count // 2)))

    @property
    def asked(self) -> int | None:
        """The query head whose key card is asked for; None after the last round."""
        return self.rounds[self.dealt] if self.dealt < len(self.rounds) else None

    @property
    def next_dealt(self) -> int:
        """How many cards are dealt after the current one."""
        return self.dealt + 1

    @property
    def fits(self) -> bool:
        """Whether the asked query head reads the key card that was tried."""
        return self.asked is not None and self.tried == self.heads.read_by(self.asked)

    @property
    def found(self) -> dict[int, int]:
        """The query heads whose key cards were found, by key card, perhaps including the current one."""
        rounds = self.rounds[: self.dealt + self.fits]
        return {self.heads.read_by(head): head for head in rounds}

    @property
    def key_cards(self) -> tuple[int, ...]:
        """The key/value heads drawn as cards, in ascending order: all, or MOST_GROUPS of them."""
        count = self.heads.count("keys")
        asked_cards = [self.heads.read_by(head) for head in self.rounds]
        wanted = [
            0,
            *asked_cards,
            *(head + 1 for head in asked_cards),
            *(head - 1 for head in asked_cards),
            *range(count),
        ]
        possible = dict.fromkeys(head for head in wanted if 0 <= head < count)
        return tuple(sorted(list(possible)[: MOST_GROUPS if count <= MOST_GROUPS else MOST_GROUPS - 1]))
