"""The sentences on a parameter-count sheet about its model's parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.algebra.number_text import format_number
from app.shapes.parameter_inventory import Fact
from app.sheets.wording import Wording


def inventory_sentences(wording: Wording, facts: Iterable[Fact]) -> Iterator[str]:
    """A sentence for each fact about the model's parameters."""
    return (_say(wording, fact) for fact in facts)


def _say(wording: Wording, fact: Fact) -> str:
    return wording.say("inventory", fact.key, **{name: _word(wording, value) for name, value in fact.words.items()})


def _word(wording: Wording, value: int | str | Fact | tuple[Fact, ...]) -> str:
    if isinstance(value, int):
        return format_number(value)
    if isinstance(value, Fact):
        return _say(wording, value)
    if isinstance(value, str):
        return value
    *others, last = (_say(wording, each) for each in value)
    return wording.say("inventory", "and", before=", ".join(others), after=last) if others else last
