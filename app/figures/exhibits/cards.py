"""How the heads of a layer are dealt as cards: who is up, which cards are drawn, and where each of them stands.

Every length is read off the layer's table. Where a layer has more heads than can be drawn, some are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.algebra.number_text import format_number
from app.figures.exhibits.frames import DrawnMark, FrameDrawing, Part, PathMark, RectangleMark, TextMark
from app.shapes.layer_heads import LayerHeads
from app.translation import gettext as _

WIDTH = 340.0  # of every drawing, so that a phone shows it in its own size
LEFT = 34.0  # where the matrices begin, right of the number of tokens
ROOM = WIDTH - LEFT - 4
CARD_HEIGHT = 22.0  # for the tokens, everywhere
MIN_CARD, MAX_CARD = 15.0, 28.0  # the width of a card
MAX_STRIPE = 16.0
MOST_FALL = 15.0  # from the first card of a deck to its last
MOST_STRIPES = 32  # of one matrix that are drawn
MOST_GROUPS = 8  # of cards around their key card
MOST_IN_GROUP = 16


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
    def fits(self) -> bool:
        """Whether the key card that was tried is the asked query head's own."""
        return self.asked is not None and self.tried == self.heads.read_by(self.asked)

    @property
    def key_cards(self) -> tuple[int, ...]:
        """The key/value heads that are drawn as cards: all, or where there are many those asked for and neighbours."""
        count = self.heads.count("keys")
        own = [self.heads.read_by(head) for head in self.rounds]
        wanted = [0, *own, *(head + 1 for head in own), *(head - 1 for head in own), *range(count)]
        possible = dict.fromkeys(head for head in wanted if 0 <= head < count)
        return tuple(sorted(list(possible)[: MOST_GROUPS if count <= MOST_GROUPS else MOST_GROUPS - 1]))


# Long because each drawing is one method, and all place the same cards.
@dataclass(frozen=True)
class CardDrawings:
    """The drawings of one layer for a visitor who is so far; `letters` are those of the sheet's notation, by matrix."""

    dealing: Dealing
    letters: Mapping[str, str]

    @property
    def heads(self) -> LayerHeads:
        """The layer's heads."""
        return self.dealing.heads

    def slabs(self) -> FrameDrawing:
        """Queries, keys and values as whole matrices with a stripe for each head."""
        parts = [
            part for row, key in enumerate(("queries", "keys", "values")) for part in self._slab_row(key, 60 * row)
        ]
        return FrameDrawing(WIDTH, 180, self._slabs_in_words(), tuple(parts))

    def _slab_row(self, key: str, top: float) -> Iterator[Part]:
        """One matrix with its letter, its stripes and the numbers along its sides."""
        count, _rows, columns = self.heads.deck(key)
        rows, width = self.heads.slab(key)
        y = top + 16
        yield from self._stripes(key, LEFT, y)
        end = self._stripe_x(len(self.shown(key)))
        product = f"{format_number(width)} = {count} · {columns}"
        yield self._texts(
            f"{key}-labels",
            TextMark(LEFT, top + 11, self.letters[key], "letter", is_symbol=True),
            TextMark(LEFT - 6, y + 10, format_number(rows), "number tokens", "end"),
            TextMark(LEFT - 6, y + 21, _("tokens"), "name tokens", "end"),
            TextMark(
                LEFT if end - LEFT < 70 else (LEFT + end) / 2,
                y + 35,
                product,
                "number head",
                "start" if end - LEFT < 70 else "middle",
            ),
        )

    def decks(self) -> FrameDrawing:
        """The stripes lifted off into decks; what is left of the slabs stays behind in pencil."""
        parts = list[Part]()
        for row, key in enumerate(("queries", "keys", "values")):
            y = 84.0 * row + 20
            shown = self.shown(key)
            slab = y + 34
            ghost = RectangleMark(LEFT, slab, self._stripe_x(len(shown)) - LEFT, CARD_HEIGHT, "ghost")
            parts.append(Part(f"{key}-slab", (ghost,), css="matrix"))
            fall = min(2.5, MOST_FALL / max(len(shown) - 1, 1))
            for card in self._cards(key, [(head, self._stripe_x(at), y + at * fall) for at, head in enumerate(shown)]):
                lift = {"stripe": f"{self._stripe:.1f}", "fall": f"{slab - card.y:.1f}"}
                parts.append(replace(card, data={**card.data, **lift}))
            parts.append(self._deck_title(key, y - 6))
        return FrameDrawing(WIDTH, 246, self._decks_in_words(), tuple(parts))

    def fit(self) -> FrameDrawing:
        """The asked query card above the key cards; the pairs that were found hold their score card."""
        parts, found = (
            list[Part](),
            {self.heads.read_by(head): head for head in self.dealing.rounds[: self.dealing.dealt]},
        )
        if self.dealing.asked is not None and self.dealing.fits:
            found[self.heads.read_by(self.dealing.asked)] = self.dealing.asked
        for key_head, x in self._columns().items():
            tried = key_head == self.dealing.tried and self.dealing.asked is not None
            middle = self._middle("keys", x) + (self._width("keys") - CARD_HEIGHT) / 2
            state = ("now" if self.dealing.fits else "wrong") if tried else ""
            parts += self._cards("keys", [(key_head, self._middle("keys", x), 92.0)], state, labelled=True)
            if key_head in found or tried:
                parts += self._group("queries", key_head, x, 42.0, state, found.get(key_head))
                parts.append(self._line(f"fit-{key_head}", x, 77.0, 90.0, state))
            if key_head in found:
                parts.append(self._line(f"deal-{key_head}", x, 116.0, 130.0, state))
                parts += self._cards("scores", [(found[key_head], middle, 132.0)], state, labelled=True)
        parts += self._dots(106.0)
        if self.dealing.asked is not None and not self.dealing.fits:
            parts += self._cards(
                "queries", [(self.dealing.asked, WIDTH / 2 - self.card_width / 2, 4.0)], "asked", labelled=True
            )
        rows = {"keys": 104.0, **({"queries": 54.0, "scores": 144.0} if found else {"queries": 16.0})}
        parts.append(self._row_letters(**rows))
        return FrameDrawing(WIDTH, 158, self._fit_in_words(), tuple(parts))

    def pairs(self) -> FrameDrawing:
        """Every group of query cards over its key card, and the score cards that the pairs deal."""
        parts = list[Part]()
        for key_head, x in self._columns().items():
            parts += self._group("queries", key_head, x, 20.0)
            parts.append(self._line(f"fit-{key_head}", x, 58.0, 78.0))
            parts += self._cards("keys", [(key_head, self._middle("keys", x), 80.0)], labelled=True)
            parts.append(self._line(f"deal-{key_head}", x, 104.0, 124.0))
            parts += self._group("scores", key_head, x, 126.0)
        parts += self._dots(94.0)
        parts += [self._deck_title(key, y) for key, y in (("queries", 12.0), ("keys", 74.0), ("scores", 120.0))]
        return FrameDrawing(WIDTH, 166, self._pairs_in_words(), tuple(parts))

    def join(self) -> FrameDrawing:
        """The context cards put side by side as C, in the corner of its product with W_O."""
        count, rows, _columns = self.heads.deck("context")
        (_n, inner), (_w, model) = self.heads.slab("context"), self.heads.slab("W_O")
        shown = self.shown("context")
        side = 140.0
        result = max(60.0, min(ROOM - side - 14, side * math.sqrt(model / inner)))
        x, y = LEFT + side + 10, 26.0 + side + 8
        stripe = side / len(shown)
        parts = [
            Part(
                f"context-{head}",
                (RectangleMark(0, 0, stripe, CARD_HEIGHT, _odd(self._band("context", head))),),
                LEFT + place * stripe,
                y,
                "matrix value",
            )
            for place, head in enumerate(shown)
            if head is not None
        ]
        step = (side - self.card_width) / max(len(shown) - 1, 1)
        parts += self._cards(
            "context", [(head, LEFT + place * step, y - 52) for place, head in enumerate(shown)], prefix="card-"
        )
        rules = " ".join(f"M0 {side * band / len(shown):.1f}h{result:.1f}" for band in range(1, len(shown)))
        weight = (
            RectangleMark(0, 0, result, side),
            PathMark(rules, "rules"),
            RectangleMark(0, 0, result, side, "over"),
        )
        parts += [
            Part("W_O", weight, x, 18.0 + 8, "matrix output"),
            Part("output", (RectangleMark(0, 0, result, CARD_HEIGHT),), x, y, "matrix output"),
            Part(
                "corner",
                (PathMark(f"M{LEFT + side - 24:.1f} {y - 4:.1f}A28 28 0 0 1 {x - 4:.1f} {y - 32:.1f}", "arc"),),
            ),
            Part("down", (PathMark(f"M{LEFT + side / 2:.1f} {y - 27:.1f}v20m-3 -4l3 4l3 -4", "fit"),)),
            self._texts(
                "join-labels",
                TextMark(LEFT, y - 58, self._deck_text("context"), "number dims"),
                TextMark(LEFT - 6, y + 10, format_number(rows), "number tokens", "end"),
                TextMark(LEFT - 6, y + 21, _("tokens"), "name tokens", "end"),
                TextMark(LEFT, y + 36, f"{self.letters['context']}", "letter", is_symbol=True),
                TextMark(
                    LEFT + 16,
                    y + 36,
                    f"{format_number(inner)} = {count} · {format_number(inner // count)}",
                    "number head",
                ),
                TextMark(x, 18, self.letters["W_O"], "letter", is_symbol=True),
                TextMark(x + 26, 18, f"{format_number(inner)} × {format_number(model)}", "number"),
                TextMark(x, y + 36, self.letters["output"], "letter", is_symbol=True),
                TextMark(x + 16, y + 36, format_number(model), "number model"),
            ),
        ]
        return FrameDrawing(WIDTH, y + 44, self._join_in_words(), tuple(parts))

    def fewer(self) -> FrameDrawing:
        """W_K, W_V, K and V with this number of key/value heads, in the outlines that one for each query head has."""
        parts = list[Part]()
        most = self.heads.count("queries")
        room = (WIDTH - 16) / 2 - 4
        for place, (weight, result) in enumerate((("W_K", "keys"), ("W_V", "values"))):
            x = 4 + place * (room + 16)
            for key, y, height in ((weight, 20.0, 64.0), (result, 106.0, CARD_HEIGHT)):
                width = max(3.0, room * self.heads.count(key) / most)
                tensor = self.heads.table[key]
                rows, columns = self.heads.slab(key)
                over = (RectangleMark(0, 0, width, height, "over"),) if tensor.parameter else ()
                parts += [
                    Part(f"most-{key}", (RectangleMark(0, 0, room, height, "ghost"),), x, y, "matrix"),
                    Part(key, (RectangleMark(0, 0, width, height), *over), x, y, f"matrix {tensor.role}"),
                    self._texts(
                        f"{key}-labels",
                        TextMark(x, y - 8, self.letters[key], "letter", is_symbol=True),
                        TextMark(x + 26, y - 8, f"{format_number(rows)} × {format_number(columns)}", "number"),
                    ),
                ]
        return FrameDrawing(WIDTH, 134, self._fewer_in_words(), tuple(parts))

    # Cards

    @property
    def card_width(self) -> float:
        """The width of a card; it is as high as CARD_HEIGHT, whatever the number of tokens."""
        _count, rows, columns = self.heads.deck("queries")
        return max(MIN_CARD, min(MAX_CARD, CARD_HEIGHT * math.sqrt(columns / rows)))

    @property
    def _stripe(self) -> float:
        """The width of a stripe, the same in all matrices of the layer."""
        places = len(self.shown("queries"))
        return min(MAX_STRIPE, (ROOM - self.card_width) / max(places - 1, 1))

    def _stripe_x(self, place: int) -> float:
        """The left end of the stripe at a place."""
        return LEFT + place * self._stripe

    def shown(self, key: str) -> list[int | None]:
        """The heads of a matrix that are drawn, in order, with None for the place of those that are left out."""
        count = self.heads.count(key)
        if count <= MOST_STRIPES:
            return list(range(count))
        half = MOST_STRIPES // 2 - 1
        return [*range(half), None, None, *range(count - half, count)]

    def _band(self, key: str, head: int) -> int:
        """The group of a head, by which neighbouring groups are told apart: its key/value head."""
        return self.heads.read_by(head) if self.heads.symbol(key) == "H" else head

    def _stripes(self, key: str, x: float, y: float) -> Iterator[Part]:
        """The stripes of a matrix, from (x, y)."""
        role = self.heads.table[key].role
        for place, head in enumerate(self.shown(key)):
            if head is not None:
                mark = RectangleMark(0, 0, self._stripe, CARD_HEIGHT, _odd(self._band(key, head)))
                yield Part(f"{key}-{head}", (mark,), x + place * self._stripe, y, f"matrix {role}")
        gaps = [place for place, head in enumerate(self.shown(key)) if head is None]
        if gaps:
            yield self._texts(f"{key}-gap", TextMark(x + gaps[1] * self._stripe, y + 14, "⋯", "sign", "middle"))

    def _cards(
        self,
        key: str,
        placed: Sequence[tuple[int | None, float, float]],
        state: str = "",
        *,
        labelled: bool = False,
        prefix: str = "",
    ) -> Iterator[Part]:
        """Cards at their upper left corners; the last has its head's number on it, or all if `labelled`."""
        role, width = self.heads.table[key].role, self._width(key)
        for head, x, y in placed:
            if head is not None:
                marks: tuple[DrawnMark, ...] = (RectangleMark(0, 0, width, CARD_HEIGHT, _odd(self._band(key, head))),)
                if labelled or head == placed[-1][0]:
                    marks = (*marks, TextMark(width / 2, 15, str(head), "index", "middle"))
                yield Part(
                    f"{prefix}{key}-{head}", marks, x, y, f"matrix {role} card {state}".strip(), {"head": str(head)}
                )

    def _width(self, key: str) -> float:
        """The width of a card of a tensor: a score card has a column for each token, and is square."""
        return CARD_HEIGHT if self.heads.table[key].role == "score" else self.card_width

    def _columns(self) -> dict[int, float]:
        """Where the key cards stand that are drawn, each by its head: the left end of its card and of its group."""
        slots = dict[int, float]()
        slot = 0.0
        for before, head in pairwise([-1, *self.dealing.key_cards]):
            slot += 0.5 if head > before + 1 else 0.0
            slots[head] = slot
            slot += 1
        pitch = ROOM / slot
        return {head: LEFT + slot * pitch for head, slot in slots.items()}

    def _dots(self, y: float) -> Iterator[Part]:
        """The sign for groups that are left out, before the next that is drawn."""
        columns = self._columns()
        for before, head in pairwise([-1, *self.dealing.key_cards]):
            if head > before + 1:
                yield self._texts(f"gap-{head}", TextMark(columns[head] - 9, y, "⋯", "sign", "middle"))

    def _fan(self, key: str) -> tuple[int, float, float]:
        """How many cards of a group are drawn, and how far each stands right of the one before and below it."""
        pitch = min((b - a for a, b in pairwise(self._columns().values())), default=ROOM)
        room = pitch - self._width(key) - 6
        count = min(self.heads.shared_by, MOST_IN_GROUP, max(1, 1 + int(room / 4)))
        gaps = max(count - 1, 1)
        return (count, min(13.0, room / gaps), min(3.0, (MOST_FALL - 3) / gaps))

    def _fan_width(self, key: str) -> float:
        """From the first card of a group to the right end of its last."""
        count, step, _fall = self._fan(key)
        return self._width(key) + step * (count - 1)

    def _middle(self, key: str, x: float) -> float:
        """The left end of a card or fan in the middle of a group whose query cards begin at x."""
        width = self._fan_width(key) if self.heads.symbol(key) == "H" else self._width(key)
        return x + (self._fan_width("queries") - width) / 2

    def _group(
        self, key: str, key_head: int, x: float, y: float, state: str = "", asked: int | None = None
    ) -> Iterator[Part]:
        """A fan of the cards that read one key/value head, as far as there is room; the asked one lies on top."""
        count, step, fall = self._fan(key)
        readers = [head for head in self.heads.readers_of(key_head) if head != asked]
        on_top = readers[-1] if asked is None else asked
        shown = [*readers[: count - 1], on_top]
        start = self._middle(key, x)
        placed = [(head, start + place * step, y + place * fall) for place, head in enumerate(shown)]
        for card in self._cards(key, placed, state if asked is None else ""):
            is_asked = asked is not None and card.data["head"] == str(asked)
            yield replace(card, css=f"{card.css} now") if is_asked else card

    # Words

    def _deck_text(self, key: str) -> str:
        """The shape of a deck as PyTorch prints it, with question marks until the visitor has found it."""
        asked = key in ("queries", "keys", "scores") and key not in self.dealing.known
        return "(?, ?, ?)" if asked else "({}, {}, {})".format(*self.heads.deck(key))

    def _deck_title(self, key: str, y: float) -> Part:
        """The letter of a matrix and the shape of its deck."""
        deck = "" if key == "values" and "keys" not in self.dealing.known else self._deck_text(key)
        return self._texts(
            f"{key}-labels",
            TextMark(LEFT, y, self.letters[key], "letter", is_symbol=True),
            TextMark(LEFT + 18, y, deck, "number dims"),
        )

    def _row_letters(self, **rows: float) -> Part:
        """The letters of rows of cards, at the left."""
        marks = (
            TextMark(LEFT - 12, y + 4, self.letters[key], "letter", "end", is_symbol=True) for key, y in rows.items()
        )
        return self._texts("rows", *marks)

    def _texts(self, key: str, *marks: TextMark) -> Part:
        """Labels that stand still."""
        return Part(key, marks, css="labels")

    def _line(self, key: str, x: float, top: float, bottom: float, state: str = "") -> Part:
        """The line from a group of query cards to its key card, or from there to the score cards."""
        return Part(
            key,
            (PathMark(f"M{x + self._fan_width('queries') / 2:.1f} {top:.1f}V{bottom:.1f}", f"fit {state}".strip()),),
        )

    def _slabs_in_words(self) -> str:
        rows = (self._size_in_words(key, self.heads.count(key)) for key in ("queries", "keys", "values"))
        return ", ".join(rows) + "."

    def _decks_in_words(self) -> str:
        sentence = _("Decks of cards above the outlines of their matrices: {Q}, {K} and {V}.")
        return sentence.format(Q=self.letters["queries"], K=self.letters["keys"], V=self.letters["values"])

    def _fit_in_words(self) -> str:
        asked = self.dealing.asked
        up = [] if asked is None or self.dealing.fits else [_("Query card {head} is up.").format(head=asked)]
        found = self.dealing.rounds[: self.dealing.dealt + self.dealing.fits]
        pair = _("Query card {head} lies on key card {key} and has dealt a score card.")
        pairs = (pair.format(head=head, key=self.heads.read_by(head)) for head in found)
        cards = _("Key cards: {cards}.").format(cards=", ".join(map(str, self.dealing.key_cards)))
        return " ".join([*up, cards, *pairs])

    def _pairs_in_words(self) -> str:
        pair = _("{first}–{last} on {key}")
        groups = ((key, self.heads.readers_of(key)) for key in self.dealing.key_cards)
        pairs = (pair.format(first=readers[0], last=readers[-1], key=key) for key, readers in groups)
        return _("Query cards on their key cards, with the score cards they deal: {pairs}.").format(
            pairs=", ".join(pairs)
        )

    def _join_in_words(self) -> str:
        parts = ", ".join(self._size_in_words(key) for key in ("context", "W_O", "output"))
        return _("Context cards put side by side: {parts}.").format(parts=parts)

    def _fewer_in_words(self) -> str:
        parts = ", ".join(self._size_in_words(key) for key in ("W_K", "W_V", "keys", "values"))
        return _("In dashed outlines as wide as for one head each: {parts}.").format(parts=parts)

    def _size_in_words(self, key: str, stripes: int = 0) -> str:
        """A matrix with its sides, and the number of its stripes."""
        rows, columns = self.heads.slab(key)
        size = f"{self.letters[key]} {format_number(rows)} × {format_number(columns)}"
        return _("{size} in {stripes} stripes").format(size=size, stripes=stripes) if stripes else size


def _odd(index: int) -> str:
    """The class by which every second stripe or group has another tint."""
    return "odd" if index % 2 else ""
