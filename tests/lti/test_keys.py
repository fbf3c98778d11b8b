"""Our keys: what is signed with one is read with what we publish, before and after rotations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from app.lti.keys import KEY_LIFETIME, key_set, rotate, rotate_old_keys, sign
from app.settings import Settings
from app.store import Store
from tests.helpers.at_once import all_at_once
from tests.helpers.clock import CLOCK, Clock


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    opened = Store(Settings(data_dir=data_dir, database_url="").database, data_dir, clock=CLOCK)
    yield opened
    opened.close()


def published(store: Store) -> dict[str, jwt.PyJWK]:
    return {key["kid"]: jwt.PyJWK(key) for key in key_set(store)["keys"]}


def test_a_platform_that_keeps_our_keys_reads_messages_after_a_rotation(store: Store) -> None:
    kept = published(store)
    for _ in range(2):
        token = sign(store, {"iss": "client", "sub": "client", "aud": "platform"})
        key = kept[jwt.get_unverified_header(token)["kid"]]
        assert jwt.decode(token, key, ["RS256"], audience="platform")["iss"] == "client"
        rotate(store)
    assert len(published(store)) == 3


def test_what_was_signed_before_a_rotation_is_still_read_after_it(store: Store) -> None:
    token = sign(store, {"aud": "platform"})
    rotate(store)
    key = published(store)[jwt.get_unverified_header(token)["kid"]]
    assert jwt.decode(token, key, ["RS256"], audience="platform")["jti"]


def test_private_keys_are_stored_encrypted(store: Store) -> None:
    rotate(store)
    assert "PRIVATE" not in store.lti.signing_keys()[0].private_key


def test_old_keys_are_rotated(store: Store, clock: Clock) -> None:
    rotate_old_keys(store)
    assert store.lti.signing_keys() == ()
    before = published(store)
    rotate_old_keys(store)
    assert published(store).keys() == before.keys()
    clock.pass_seconds(KEY_LIFETIME.total_seconds() + 1)
    rotate_old_keys(store)
    assert published(store).keys() > before.keys()
    assert len(published(store)) == 3


def test_two_machines_rotate_once(data_dir: Path, new_postgres_database: str, clock: Clock) -> None:
    stores = [Store(new_postgres_database, data_dir, clock=CLOCK) for _ in range(2)]
    before = published(stores[0])
    clock.pass_seconds(KEY_LIFETIME.total_seconds() + 1)
    assert all_at_once(2, lambda n: rotate_old_keys(stores[n])) == []
    assert len(published(stores[1]).keys() - before.keys()) == 1
    for store in stores:
        store.close()
