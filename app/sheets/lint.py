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

from app.misconceptions.predictions import expectations
from app.shapes.parameter_inventory import parameter_inventory
from app.sheets.authoring.own_misconceptions import own_findings
from app.sheets.library import Library
from app.sheets.seeds import confusable_misconceptions
from app.sheets.variant import Variant
from app.sheets.worksheet import OWN_MISCONCEPTION_PREFIX

FindingKind = Literal["hides", "must-hide", "own", "must-own", "coincides", "must-coincide", "tolerates", "wording"]


@dataclass(frozen=True)
class Finding:
    """One thing about one worksheet; a kind with "must" comes from its model, and no other length would mend it."""

    worksheet: str
    kind: FindingKind
    message: str

    @property
    def to_mend(self) -> bool:
        """Whether the author can do something about it."""
        return not self.kind.startswith("must")


def findings(library: Library) -> Iterator[Finding]:
    """Every finding about every worksheet, worksheet by worksheet, each with its own model and length."""
    for key in library.worksheets:
        yield from findings_on(library, library.variant(key))


def findings_on(library: Library, variant: Variant) -> Iterator[Finding]:
    """Every finding about one sheet of the library.

    These are misconceptions that it cannot show or tell apart, the author's own among them, symbols of equal size,
    misconceptions that its tolerance lets pass, then words about other models or sizes.
    """
    messages = (
        *_hidden_misconceptions(library, variant),
        *_own_misconceptions(library, variant),
        *_equal_sizes(variant),
        *_tolerated_misconceptions(variant),
        *_foreign_words(library, variant),
    )
    for kind, message in messages:
        yield Finding(variant.worksheet.key, kind, message)


def _hidden_misconceptions(library: Library, variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    """(kind, sentence) for the misconceptions that the sheet cannot show or tell apart from each other.

    The kind is "hides" for those that another number of tokens would show, which come first, and "must-hide" for those
    that this model hides whatever the tokens. These say nothing of the author's own ones; see `_own_misconceptions`.
    """
    here = confusable_misconceptions(variant)
    unavoidable = library.unavoidable_confusions(variant.worksheet.key, variant.model.key)
    of_model = {pair for pair in here & unavoidable if not any(map(_is_own, pair))}
    yield from (("hides", sentence) for sentence in _confusion_sentences(variant, "hides", sorted(here - unavoidable)))
    yield from (("must-hide", sentence) for sentence in _confusion_sentences(variant, "must-hide", sorted(of_model)))


def _own_misconceptions(library: Library, variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    """(kind, sentence) for what this model hides of the author's own misconceptions, whatever the tokens.

    The kind is "own" for one that doesn't show, and "must-own" for one that shows and hides another. What another
    number of tokens or no tolerance would mend is said with the others.
    """
    avoidable = confusable_misconceptions(variant) - library.unavoidable_confusions(
        variant.worksheet.key, variant.model.key
    )
    changes_numbers = {expected.misconception for expected in expectations(variant.problem)}
    for finding in own_findings(variant):
        pairs = {(finding.key, finding.other or "right"), (finding.other, finding.key)}
        is_tolerated = finding.kind == "right" and finding.key in changes_numbers
        if not is_tolerated and (finding.kind == "formula" or pairs.isdisjoint(avoidable)):
            yield "must-own" if finding.shows else "own", finding.message


def _is_own(misconception: str) -> bool:
    """Whether the key is one of an author's own misconception."""
    return misconception.startswith(OWN_MISCONCEPTION_PREFIX)


def _confusion_sentences(variant: Variant, kind: FindingKind, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Sentences of that kind: one about all misconceptions that leave the sheet right, then one for each other pair.

    A misconception that leaves the sheet right stands in `pairs` as (key, "right"); those of another pair fill it in
    alike.
    """
    words = {"model": variant.model.name, "tokens": variant.tokens}
    unseen = [f"“{first}”" for first, second in pairs if second == "right"]
    if unseen:
        yield variant.wording.say("lint", f"{kind}-right", misconceptions=", ".join(unseen), **words)
    for first, second in pairs:
        if second != "right":
            yield variant.wording.say("lint", f"{kind}-other", one=first, other=second, **words)


def _equal_sizes(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    """(kind, sentence) for every two symbols in the sheet's answers with equal sizes: the wrong one counts as right.

    The kind is "coincides" if one of the two is N or M, since other tokens would mend it, else "must-coincide". Symbols
    that are equal by the making of the model, such as G and H without grouped queries, count as one.
    """
    asked = sorted(frozenset[str]().union(*(variant.expression(blank).symbols for blank in variant.blanks)))
    is_same = variant.reader.are_identical
    distinct = [symbol for at, symbol in enumerate(asked) if not any(is_same(symbol, before) for before in asked[:at])]
    for first, second in combinations(distinct, 2):
        size = variant.sizes[first]
        if size == variant.sizes[second]:
            kind: FindingKind = "coincides" if {first, second} & {"N", "M"} else "must-coincide"
            words = {"one": first, "other": second, "size": size, "model": variant.model.name}
            yield kind, variant.wording.say("lint", kind, **words)


def _tolerated_misconceptions(variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    """("tolerates", sentence) if the worksheet's tolerance makes every wrong number of some misconceptions right."""
    tolerance, key = variant.worksheet.tolerance, variant.problem.key
    tolerated = {
        f"“{expected.misconception}”"
        for expected in expectations(variant.problem)
        if tolerance
        and expected.wrong_answers
        and all(
            blank.field == "count" and abs(number - key[blank]) <= tolerance * key[blank]
            for blank, number in expected.wrong_answers.items()
        )
    }
    if tolerated:
        words = {"percent": f"{100 * tolerance:g}", "misconceptions": ", ".join(sorted(tolerated))}
        yield "tolerates", variant.wording.say("lint", "tolerates", **words)


def _foreign_words(library: Library, variant: Variant) -> Iterator[tuple[FindingKind, str]]:
    """("wording", sentence) for each other model that the sheet's words name, and each number that is no size of it.

    The words are its title, description and footnote. A name within the own model's name is no mention of another; the
    sizes are those of the sheet and of the unsimplified model, the query heads of a key/value head, and what a
    parameter-count sheet tells.
    """
    say = variant.wording.say
    text = " ".join((variant.worksheet.title, variant.text.description, variant.text.footnote or ""))
    # Longest names first, each cut out once it is checked: “GPT-2” is no mention of a model within “GPT-2 medium”.
    for name in sorted((model.name for model in library.models.values()), key=len, reverse=True):
        if name in text and name != variant.model.name and name not in variant.model.name:
            yield "wording", say("lint", "other-model", name=name, model=variant.model.name)
        text = text.replace(name, "")
    real = variant.model.architecture
    sizes = {*variant.sizes.values(), *real.all_sizes.values(), real.query_heads_per_kv_head}
    if variant.worksheet.topic == "parameter-count":
        facts = parameter_inventory(variant.architecture)
        sizes |= {number for fact in facts for number in fact.words.values() if isinstance(number, int)}
    for number in re.findall(r"\d+(?:,\d{3})*", text):
        if int(number.replace(",", "")) not in sizes:
            yield "wording", say("lint", "no-size", number=number)
