"""Which lines of a text a newer version changed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.exchange.changed_lines import changed_lines


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_changed_lines_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    changes = changed_lines("\n".join(old), "\n".join(new))
    removed = Counter(change.text for change in changes if change.kind == "removed")
    added = Counter(change.text for change in changes if change.kind == "added")
    assert Counter(old) - removed == Counter(new) - added
    assert not (Counter(old) - Counter(new)) - removed
    assert (changes == ()) == (old == new)


def test_a_changed_line_is_shown_where_it_was() -> None:
    changes = changed_lines("a\nb\nc\nd\n", "a\nB\nc\nd\ne\n")
    assert [(change.kind, change.text) for change in changes] == [("removed", "b"), ("added", "B"), ("added", "e")]
    moved = changed_lines("a\nb\nc\n", "c\na\nb\n")
    assert [(change.kind, change.text) for change in moved] == [("added", "c"), ("removed", "c")]
