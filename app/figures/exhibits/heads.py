"""The exhibit "Deal the heads": a layer's queries, keys and values as decks, one card per head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.algebra.number_text import format_number
from app.figures.exhibits.card_groups import CardGroups
from app.figures.exhibits.cards import Cards
from app.figures.exhibits.dealing import Dealing
from app.figures.exhibits.frames import Exhibit, Frame
from app.figures.exhibits.heads_drawings import HeadsDrawings
from app.topics.layer_heads import LayerHeads
from app.translation import gettext as _


@dataclass(frozen=True)
class HeadsExhibit:
    """The frames of one layer at the visitor's progress; `letters` are the sheet's letters by matrix."""

    dealing: Dealing
    letters: Mapping[str, str]

    @property
    def heads(self) -> LayerHeads:
        return self.dealing.heads

    def exhibit(self) -> Exhibit:
        """Six frames for any layer: slabs, decks, a query card and its key card, pairs, join, fewer key/value heads."""
        drawings = HeadsDrawings(self.dealing, self.letters)
        decks = _(
            "Each stripe, lifted off, is a card: one head, with a row for each token. A deck of cards is a tensor with "
            "three dimensions, and the first is the number of cards."
        )
        deck_question = _("What are the shapes of the decks of {Q} and {K}?")
        is_asked = self.dealing.asked is not None and not self.dealing.fits
        fit_question = _("Which key card does it go with?") if is_asked else ""
        pairs = _(
            "All cards are dealt: each query card has met the key card of its group, and each pair has made one score "
            "card."
        )
        pairs_question = _("What is the shape of the deck of score cards?")
        frames = (
            Frame(1, "slabs", self._slabs() + self._stripes_left_out(), drawings.slabs()),
            Frame(2, "decks", decks + self._stripes_left_out(), drawings.decks(), deck_question.format(**self._words)),
            Frame(3, "fit", self._fit() + self._groups_left_out(), drawings.fit(), fit_question),
            Frame(4, "pairs", pairs + self._groups_left_out(), drawings.pairs(), pairs_question),
            Frame(5, "join", self._join(), drawings.join()),
            Frame(6, "fewer", self._fewer(), drawings.fewer()),
        )
        about = _("A layer’s queries hold {H} heads side by side. Lift them off one by one: each becomes a card.")
        return Exhibit("heads", _("Deal the heads"), about.format(**self._words), frames)

    def _slabs(self) -> str:
        rows, columns = map(format_number, self.heads.slab("queries"))
        sentence = _("{Q} is one matrix, {rows} × {columns}: {H} heads side by side, a stripe for each.")
        if self.heads.shared_by == 1:
            more = _("{K} and {V} have as many heads.")
        elif self.heads.count("keys") == 1:
            more = _("{K} and {V} have one head, which all query heads share.")
        else:
            more = _("{K} and {V} have {G} heads, each shared by {share} query heads.")
        return f"{sentence} {more}".format(**self._words, rows=rows, columns=columns)

    def _fit(self) -> str:
        if self.dealing.asked is None:
            sentence = _(
                "A query card goes with the key card of its own group and no other. Each pair makes one score card."
            )
        elif self.heads.shared_by == 1:
            sentence = _("Query card {head} is up. Each of the {H} query cards has a key card of its own.")
        elif self.heads.count("keys") == 1:
            sentence = _("Query card {head} is up. All {H} query cards share one key card.")
        else:
            sentence = _("Query card {head} is up. The {H} query cards share the {G} key cards evenly and in order.")
        return sentence.format(**self._words, head=self.dealing.asked)

    @property
    def remark(self) -> str:
        """Whether the tried key card fits the asked query card, and which query cards read it; cards count from 0."""
        tried, asked = self.dealing.tried, self.dealing.asked
        if tried is None or asked is None:
            return ""
        readers = self.heads.readers_of(tried)
        if self.dealing.fits and len(readers) == 1:
            sentence = _("It fits: key card {key} is its own. Together they make one score card, {rows} × {columns}.")
        elif self.dealing.fits:
            sentence = _(
                "It fits: query cards {first} to {last} share key card {key}. Together with card {head} it makes one "
                "score card, {rows} × {columns}."
            )
        elif len(readers) == 1:
            sentence = _("It doesn’t fit: key card {key} belongs to query card {first}.")
        else:
            sentence = _("It doesn’t fit: key card {key} is shared by query cards {first} to {last}.")
        _count, rows, columns = map(format_number, self.heads.deck("scores"))
        return sentence.format(key=tried, head=asked, first=readers[0], last=readers[-1], rows=rows, columns=columns)

    def _join(self) -> str:
        sentence = _(
            "Softmax turns each score card into weights. Weights times the value card of the group make a context "
            "card: {H} of them, each {rows} × {columns}. Side by side they form {C}, {rows} × {all_columns}, and {C} "
            "times {W_O} is {O}, {rows} × {out}."
        )
        _count, rows, columns = map(format_number, self.heads.deck("context"))
        wide, out = (format_number(self.heads.slab(key)[1]) for key in ("context", "output"))
        return sentence.format(**self._words, rows=rows, columns=columns, all_columns=wide, out=out)

    def _fewer(self) -> str:
        if self.heads.shared_by == 1:
            sentence = _(
                "With one key/value head for each query head, {W_K}, {W_V}, {K} and {V} fill the dashed outlines. "
                "Choose fewer above: all four get narrower. {Q}, the scores and {C} stay the same."
            )
        else:
            sentence = _(
                "One key/value head for each query head would fill the dashed outlines. Here {share} query heads share "
                "one, so {W_K}, {W_V}, {K} and {V} are 1/{share} as wide. {Q}, the scores and {C} stay the same."
            )
        return sentence.format(**self._words)

    @property
    def _words(self) -> dict[str, str]:
        keys = {"Q": "queries", "K": "keys", "V": "values", "C": "context", "O": "output"}
        keys |= {parameter: parameter for parameter in ("W_K", "W_V", "W_O")}
        counts = {"H": self.heads.count("queries"), "G": self.heads.count("keys"), "share": self.heads.shared_by}
        letters = {name: self.letters[key] for name, key in keys.items()}
        return letters | {name: format_number(count) for name, count in counts.items()}

    def _stripes_left_out(self) -> str:
        shown = sum(head is not None for head in Cards(self.heads, self.letters).shown("queries"))
        return _drawn(_("{shown} of the {count} query heads are drawn."), shown, self.heads.count("queries"))

    def _groups_left_out(self) -> str:
        fanned = CardGroups(Cards(self.heads, self.letters), self.dealing.key_cards).fanned
        drawn, count = len(self.dealing.key_cards), self.heads.count("keys")
        keys = _drawn(_("{shown} of the {count} key cards are drawn."), drawn, count)
        group = _("Shown: {shown} of the {count} query cards of a group.")
        return keys + _drawn(group, fanned, self.heads.shared_by)


def _drawn(sentence: str, shown: int, count: int) -> str:
    return " " + sentence.format(shown=shown, count=format_number(count)) if shown < count else ""
