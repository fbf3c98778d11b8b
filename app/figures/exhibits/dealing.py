"""How far a visitor has dealt the heads of a layer: which query card is up, and which key cards there are to choose."""

from __future__ import annotations

from dataclasses import dataclass

from app.topics.layer_heads import LayerHeads

MOST_GROUPS = 8  # of cards around their key card that are drawn


@dataclass(frozen=True)
class Dealing:
    """How far a visitor is: right answers so far, and the key card tried for the query card that is up, if any.

    `known` are the matrices whose decks the visitor has typed right; others keep their question marks.
    """

    heads: LayerHeads
    dealt: int = 0
    tried: int | None = None
    known: frozenset[str] = frozenset()

    @property
    def rounds(self) -> tuple[int, ...]:
        """The query heads that the visitor is asked for, one after the other."""
        count, shared = self.heads.count("queries"), self.heads.shared_by
        return tuple(dict.fromkeys(min(count - 1, head) for head in (shared + shared // 2, count - 1, count // 2)))

    @property
    def asked(self) -> int | None:
        """The query head whose key card is looked for; None once all were found."""
        return self.rounds[self.dealt] if self.dealt < len(self.rounds) else None

    @property
    def next_dealt(self) -> int:
        """How many cards are dealt once the one that is up is."""
        return self.dealt + 1

    @property
    def fits(self) -> bool:
        """Whether the key card that was tried is the asked query head's own."""
        return self.asked is not None and self.tried == self.heads.read_by(self.asked)

    @property
    def found(self) -> dict[int, int]:
        """The query heads whose key cards were found, by key card; the last may be the one that is up."""
        rounds = self.rounds[: self.dealt + self.fits]
        return {self.heads.read_by(head): head for head in rounds}

    @property
    def key_cards(self) -> tuple[int, ...]:
        """The key/value heads that are drawn as cards: all, or where there are many those asked for and neighbours."""
        count = self.heads.count("keys")
        own = [self.heads.read_by(head) for head in self.rounds]
        wanted = [0, *own, *(head + 1 for head in own), *(head - 1 for head in own), *range(count)]
        possible = dict.fromkeys(head for head in wanted if 0 <= head < count)
        return tuple(sorted(list(possible)[: MOST_GROUPS if count <= MOST_GROUPS else MOST_GROUPS - 1]))
