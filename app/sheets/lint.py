"""What an author should know of the worksheets before a class sees them.

Each sheet is looked at as it was written: misconceptions that stay hidden on it, sizes that happen to be equal, and
numbers in its words that are none of its sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from app.sheets.library import Library
from app.sheets.seeds import confusable_misconceptions
from app.sheets.variant import Variant

Kind = Literal["hides", "must-hide", "coincides", "must-coincide", "wording"]


@dataclass(frozen=True)
class Finding:
    """One thing about one worksheet; what it "must" comes from its model and cannot be mended by its author."""

    worksheet: str
    kind: Kind
    message: str

    @property
    def to_mend(self) -> bool:
        return not self.kind.startswith("must")


def findings(library: Library) -> Iterator[Finding]:
    """Everything there is to say about every worksheet, in their order."""
    for key in library.worksheets:
        variant = library.variant(key)
        for kind, message in (*_hidden(library, variant), *_coinciding(variant), *_wording(library, variant)):
            yield Finding(key, kind, message)


def _hidden(library: Library, variant: Variant) -> Iterator[tuple[Kind, str]]:
    """Misconceptions that fill the sheet in alike: with these tokens, or whatever the tokens."""
    here, always = (
        confusable_misconceptions(variant),
        library.unavoidable_confusions(variant.worksheet.key, variant.model.key),
    )
    yield from (("hides", sentence) for sentence in _told(variant, "hides", sorted(here - always)))
    yield from (("must-hide", sentence) for sentence in _told(variant, "must-hide", sorted(here & always)))


def _told(variant: Variant, kind: Kind, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """One sentence for all misconceptions that leave the sheet right, and one for each pair that is alike."""
    words = {"model": variant.model.name, "tokens": variant.tokens}
    unseen = [f"“{one}”" for one, other in pairs if other == "right"]
    if unseen:
        yield variant.wording.say("lint", f"{kind}-right", misconceptions=", ".join(unseen), **words)
    for one, other in pairs:
        if other != "right":
            yield variant.wording.say("lint", f"{kind}-other", one=one, other=other, **words)


def _coinciding(variant: Variant) -> Iterator[tuple[Kind, str]]:
    """Sizes that are equal here without being the same: a wrong symbol would give a right number."""
    asked = sorted(frozenset[str]().union(*(variant.dim(blank).symbols for blank in variant.blanks)))
    own = [
        symbol
        for at, symbol in enumerate(asked)
        if not any(variant.reader.are_identical(symbol, before) for before in asked[:at])
    ]
    for one, other in combinations(own, 2):
        size = variant.sizes[one]
        if size == variant.sizes[other]:
            kind: Kind = "coincides" if {one, other} & {"N", "M"} else "must-coincide"
            yield kind, variant.wording.say("lint", kind, one=one, other=other, size=size, model=variant.model.name)


def _wording(library: Library, variant: Variant) -> Iterator[tuple[Kind, str]]:
    """Numbers in title, description and footnote that are no size of the sheet, or another model's name."""
    say = variant.wording.say
    words = " ".join((variant.worksheet.title, variant.text.description, variant.text.footnote or ""))
    names = sorted((model.name for model in library.models.values()), key=len, reverse=True)
    for name in names:
        if name in words and name != variant.model.name and name not in variant.model.name:
            yield "wording", say("lint", "other-model", name=name, model=variant.model.name)
        words = words.replace(name, "")
    real = variant.model.architecture
    sizes = {*variant.sizes.values(), *real.all_sizes.values(), real.query_heads_per_kv_head}
    for number in re.findall(r"\d+(?:,\d{3})*", words):
        if int(number.replace(",", "")) not in sizes:
            yield "wording", say("lint", "no-size", number=number)
