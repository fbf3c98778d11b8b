"""The six drawings of "Deal the heads", from whole matrices to decks of cards and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.algebra.number_text import format_number
from app.figures.exhibits.card_groups import CardGroups
from app.figures.exhibits.cards import CARD_HEIGHT, LEFT, ROOM, WIDTH, Cards, labels
from app.figures.exhibits.dealing import Dealing
from app.figures.exhibits.frames import FrameDrawing, Part, PathMark, RectangleMark, TextMark
from app.figures.lettering import LABEL_PX, label_px
from app.topics.layer_heads import LayerHeads
from app.translation import gettext as _
from app.translation import ngettext

MOST_FALL_OF_DECK = 15.0  # from the first card of a deck to its last
WEIGHT_PX = 140.0  # the height of W_O, and so the width of the context
DECK_PX = 11.0  # the type size of a deck's shape, as in exhibits.css
SPLIT = ("queries", "keys", "values")  # the matrices that are split into heads


@dataclass(frozen=True)
class HeadsDrawings:
    """The drawings of one layer at the visitor's progress; `letters` are the sheet's letters by matrix."""

    dealing: Dealing
    letters: Mapping[str, str]

    @property
    def heads(self) -> LayerHeads:
        return self.dealing.heads

    @property
    def cards(self) -> Cards:
        return Cards(self.heads, self.letters)

    @property
    def groups(self) -> CardGroups:
        """The key cards that are drawn, with their groups."""
        return CardGroups(self.cards, self.dealing.key_cards)

    def slabs(self) -> FrameDrawing:
        """Queries, keys and values as whole matrices with a stripe for each head."""
        parts = [part for row, key in enumerate(SPLIT) for part in self._slab(key, 60.0 * row)]
        words = ", ".join(map(self._stripes_in_words, SPLIT))
        return FrameDrawing(WIDTH, 180, f"{words}.", tuple(parts))

    def _stripes_in_words(self, key: str) -> str:
        count = self.heads.count(key)
        sentence = ngettext("{size} in {count} stripe", "{size} in {count} stripes", count)
        return sentence.format(size=self._size(key), count=count)

    def _slab(self, key: str, top: float) -> Iterator[Part]:
        cards, y, width = self.cards, top + 16, self.cards.slab_px(key)
        yield from cards.stripes(key, LEFT, y, cards.stripe)
        shown = cards.shown(key)
        if None in shown:
            gap = LEFT + (shown.index(None) + 1) * cards.stripe
            yield labels(f"{key}-gap", TextMark(gap, y + 14, "⋯", "sign", "middle"))
        below = TextMark(LEFT, y + 35, cards.split_text(key), "number head")
        if width >= 70:
            below = replace(below, x=LEFT + width / 2, anchor="middle")
        yield labels(f"{key}-labels", cards.letter(key, LEFT, top + 11), *cards.tokens(key, y), below)

    def decks(self) -> FrameDrawing:
        """Queries, keys and values as decks, lifted off as stripes, each above its slab's pencil outline."""
        parts = [part for row, key in enumerate(SPLIT) for part in self._lifted(key, 84.0 * row + 20)]
        words = _("Decks of cards above the outlines of their matrices: {Q}, {K} and {V}.")
        words = words.format(Q=self.letters["queries"], K=self.letters["keys"], V=self.letters["values"])
        return FrameDrawing(WIDTH, 246, words, tuple(parts))

    def _lifted(self, key: str, y: float) -> Iterator[Part]:
        cards, slab = self.cards, y + 34
        shown = cards.shown(key)
        ghost = RectangleMark(LEFT, slab, cards.slab_px(key), CARD_HEIGHT, "ghost")
        yield Part(f"{key}-slab", (ghost,), css="matrix")
        fall = min(2.5, MOST_FALL_OF_DECK / max(len(shown) - 1, 1))
        placed = [(head, LEFT + at * cards.stripe, y + at * fall) for at, head in enumerate(shown)]
        for card in cards.cards(key, placed):
            lift = {"stripe": f"{cards.stripe:.1f}", "fall": f"{slab - card.y:.1f}"}
            yield replace(card, data={**card.data, **lift})
        yield self._deck_title(key, y - 6)

    def fit(self) -> FrameDrawing:
        """The key cards with the pairs and scores so far, and above them the asked query card until it fits."""
        dealing, groups, found = self.dealing, self.groups, self.dealing.found
        parts = [part for key_head in groups.columns for part in self._fitted(key_head)]
        parts += groups.dots(106.0)
        if dealing.asked is not None and not dealing.fits:
            asked = (dealing.asked, WIDTH / 2 - self.cards.card_width / 2, 4.0)
            parts += self.cards.cards("queries", [asked], "asked", labelled=True)
        parts.append(
            self._row_letters(keys=92.0, **({"queries": 42.0, "scores": 132.0} if found else {"queries": 4.0}))
        )
        return FrameDrawing(WIDTH, 158, self._fit_in_words(), tuple(parts))

    def _fitted(self, key_head: int) -> Iterator[Part]:
        groups, head = self.groups, self.dealing.found.get(key_head)
        is_tried = key_head == self.dealing.tried and self.dealing.asked is not None
        state = ("now" if self.dealing.fits else "wrong") if is_tried else ""
        yield from groups.card("keys", key_head, key_head, 92.0, state)
        if is_tried or head is not None:
            yield from groups.fan("queries", key_head, 42.0, state, head)
            yield groups.line("fit", key_head, 77.0, 90.0, state)
        if head is not None:
            yield groups.line("deal", key_head, 116.0, 130.0, state)
            yield from groups.card("scores", head, key_head, 132.0, state)

    def _fit_in_words(self) -> str:
        asked = self.dealing.asked
        up = [] if asked is None or self.dealing.fits else [_("Query card {head} is up.").format(head=asked)]
        pair = _("Query card {head} lies on key card {key} and has dealt a score card.")
        pairs = (pair.format(head=head, key=key) for key, head in self.dealing.found.items())
        cards = _("Key cards: {cards}.").format(cards=", ".join(map(str, self.dealing.key_cards)))
        return " ".join([*up, cards, *pairs])

    def pairs(self) -> FrameDrawing:
        """The groups of query cards above their key cards, with the pairs' score cards and the decks' shapes."""
        parts, groups = list[Part](), self.groups
        for key_head in groups.columns:
            parts += groups.fan("queries", key_head, 6.0)
            parts.append(groups.line("fit", key_head, 43.0, 58.0))
            parts += groups.card("keys", key_head, key_head, 60.0)
            parts.append(groups.line("deal", key_head, 84.0, 98.0))
            parts += groups.fan("scores", key_head, 100.0)
        parts += groups.dots(74.0)
        parts.append(self._row_letters(queries=6.0, keys=60.0, scores=100.0))
        decks, height = self._decks_in_line("queries", "keys", "scores", y=154.0)
        parts.append(decks)
        pair = _("{first}–{last} on {key}")
        readers = ((key, self.heads.readers_of(key)) for key in self.dealing.key_cards)
        pairs = ", ".join(pair.format(first=heads[0], last=heads[-1], key=key) for key, heads in readers)
        words = _("Query cards on their key cards, with the score cards they deal: {pairs}.").format(pairs=pairs)
        return FrameDrawing(WIDTH, height, words, tuple(parts))

    def join(self) -> FrameDrawing:
        """The context cards put next to each other as C, in the corner of its product with W_O, which is above O."""
        cards, top = self.cards, 26.0
        x, y = LEFT + WEIGHT_PX + 10, top + WEIGHT_PX + 8
        shown = cards.shown("context")
        step = (WEIGHT_PX - cards.card_width) / max(len(shown) - 1, 1)
        dealt = [(head, LEFT + place * step, y - 52) for place, head in enumerate(shown)]
        inner, model = self.heads.slab("W_O")
        width = max(60.0, min(ROOM - WEIGHT_PX - 14, WEIGHT_PX * math.sqrt(model / inner)))
        rules = " ".join(f"M0 {WEIGHT_PX * band / len(shown):.1f}h{width:.1f}" for band in range(1, len(shown)))
        weight = RectangleMark(0, 0, width, WEIGHT_PX)
        corner = f"M{x - 34:.1f} {y - 4:.1f}A28 28 0 0 1 {x - 4:.1f} {y - 32:.1f}"
        parts = (
            *cards.stripes("context", LEFT, y, WEIGHT_PX / len(shown)),
            *cards.cards("context", dealt, prefix="card-"),
            Part("W_O", (weight, PathMark(rules, "rules"), replace(weight, css="over")), x, top, "matrix output"),
            Part("output", (RectangleMark(0, 0, width, CARD_HEIGHT),), x, y, "matrix output"),
            Part("corner", (PathMark(corner, "arc"),)),
            Part("down", (PathMark(f"M{LEFT + WEIGHT_PX / 2:.1f} {y - 27:.1f}v20m-3 -4l3 4l3 -4", "fit"),)),
            labels(
                "join-labels",
                TextMark(LEFT, y - 58, self._deck_text("context"), "number dims"),
                *cards.tokens("context", y),
                cards.letter("context", LEFT, y + 36),
                TextMark(LEFT + 16, y + 36, cards.split_text("context"), "number head"),
                cards.letter("W_O", x, top - 8),
                TextMark(x + 26, top - 8, cards.size_text("W_O"), "number"),
                cards.letter("output", x, y + 36),
                TextMark(x + 16, y + 36, format_number(model), "number model"),
            ),
        )
        words = _("Context cards put side by side: {parts}.").format(parts=self._sizes("context", "W_O", "output"))
        return FrameDrawing(WIDTH, y + 44, words, parts)

    def fewer(self) -> FrameDrawing:
        """W_K, W_V, K and V with this number of key/value heads, inside outlines for one per query head."""
        rows = ((20.0, 64.0, ("W_K", "W_V")), (106.0, CARD_HEIGHT, ("keys", "values")))
        columns = (4.0, (WIDTH - 16) / 2 + 16)
        places = ((key, x, y, height) for y, height, keys in rows for key, x in zip(keys, columns, strict=True))
        parts = tuple(part for place in places for part in self._thinned(*place))
        words = _("In dashed outlines as wide as for one head each: {parts}.")
        words = words.format(parts=self._sizes("W_K", "W_V", "keys", "values"))
        return FrameDrawing(WIDTH, 134, words, parts)

    def _thinned(self, key: str, x: float, y: float, height: float) -> Iterator[Part]:
        room, tensor = (WIDTH - 16) / 2 - 4, self.heads.table[key]
        most = replace(self.heads, sizes={**self.heads.sizes, "G": self.heads.count("queries")})
        width = max(3.0, room * self.heads.slab(key)[1] / most.slab(key)[1])
        over = (RectangleMark(0, 0, width, height, "over"),) if tensor.parameter else ()
        yield Part(f"most-{key}", (RectangleMark(0, 0, room, height, "ghost"),), x, y, "matrix")
        yield Part(key, (RectangleMark(0, 0, width, height), *over), x, y, f"matrix {tensor.role}")
        size = TextMark(x + 26, y - 8, self.cards.size_text(key), "number")
        yield labels(f"{key}-labels", self.cards.letter(key, x, y - 8), size)

    def _deck_text(self, key: str) -> str:
        asked = key in ("queries", "keys", "scores") and key not in self.dealing.known
        return "(?, ?, ?)" if asked else "({}, {}, {})".format(*self.heads.deck(key))

    def _deck_title(self, key: str, y: float) -> Part:
        deck = "" if key == "values" and "keys" not in self.dealing.known else self._deck_text(key)
        return labels(f"{key}-labels", self.cards.letter(key, LEFT, y), TextMark(LEFT + 18, y, deck, "number dims"))

    def _decks_in_line(self, *keys: str, y: float) -> tuple[Part, float]:
        marks, x = list[TextMark](), LEFT
        for key in keys:
            width = 18 + label_px(self._deck_text(key)) * DECK_PX / LABEL_PX
            if x > LEFT and x + width > WIDTH:
                x, y = LEFT, y + 16
            marks += [self.cards.letter(key, x, y), TextMark(x + 18, y, self._deck_text(key), "number dims")]
            x += width + 12
        return labels("decks", *marks), y + 8

    def _row_letters(self, **rows: float) -> Part:
        letters = (self.cards.letter(key, LEFT - 12, y + 16) for key, y in rows.items())
        return labels("rows", *(replace(letter, anchor="end") for letter in letters))

    def _size(self, key: str) -> str:
        return f"{self.letters[key]} {self.cards.size_text(key)}"

    def _sizes(self, *keys: str) -> str:
        return ", ".join(map(self._size, keys))
