"""Transactions: all or nothing, also inside another one."""

from __future__ import annotations

import pytest

from app.store import Store, WorkChangedError
from tests.helpers.stored_class import key, opened, record


def write_and_fail(store: Store, token: str) -> None:
    """A transaction that adds a visitor and then raises ZeroDivisionError."""
    with store.transaction():
        store.add_visitor(token)
        raise ZeroDivisionError


def test_what_an_exception_leaves_is_taken_back(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(store, "alone")
    with store.transaction():
        store.add_visitor("outside")
        with pytest.raises(ZeroDivisionError):
            write_and_fail(store, "inside")
    assert [store.find_visitor(token) is None for token in ("alone", "inside", "outside")] == [True, True, False]


def test_an_attempt_is_recorded_inside_a_transaction(store: Store) -> None:
    activity, kim = opened(store)
    here = key(kim, activity)
    with store.transaction():
        record(store, here, {}, client_id="a", allowed=1)
        with pytest.raises(WorkChangedError):
            record(store, here, {}, client_id="b", allowed=1)
    [attempt] = store.classwork.latest_attempts(here, 5)
    assert (attempt.client_id, attempt.marked_by) == ("a", here.sheet_key)
