"""The misconception groups that a student sees are the catalogue, grouped."""

from __future__ import annotations

from collections import Counter

from app.misconceptions.catalogue import MISCONCEPTION_GROUPS, MISCONCEPTIONS, group_of
from app.sheets.library import Library


def test_every_misconception_belongs_to_exactly_one_group() -> None:
    grouped = Counter(
        misconception for misconceptions in MISCONCEPTION_GROUPS.values() for misconception in misconceptions
    )
    assert grouped == Counter(misconception.key for misconception in MISCONCEPTIONS)
    assert {group_of(misconception) for misconception in grouped} == set(MISCONCEPTION_GROUPS)


def test_every_group_can_show_on_some_sheet() -> None:
    shown = {misconception.key for misconception in MISCONCEPTIONS if misconception.predictions}
    assert all(shown & set(misconceptions) for misconceptions in MISCONCEPTION_GROUPS.values())


def test_every_group_has_a_name(library: Library) -> None:
    names = library.wording.misconception_groups
    assert not any(character.isdigit() for words in names.values() for character in words.name)
