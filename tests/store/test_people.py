"""Teachers' accounts, the links that lead into them, and sessions, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from app.store import (
    Store,
    Teacher,
)
from app.store.tables import account_links, sessions, students
from tests.helpers.at_once import all_at_once
from tests.helpers.stored_class import enrol_student, teacher


def test_a_teacher_is_found_by_e_mail_in_any_case(store: Store) -> None:
    made = store.people.add_teacher("Ada@Example.ORG", "Ada")
    assert made
    assert (made.email, made.password_hash) == ("ada@example.org", None)
    assert store.people.find_teacher("ADA@example.org") == made
    assert store.people.add_teacher("ada@example.org", "Another") is None
    assert not store.people.has_teacher()


def test_a_link_works_once(store: Store) -> None:
    """If two follow it at once, one gets in; afterwards nobody does."""
    token = store.people.add_link("setup")
    link = store.people.find_link(token)
    assert link
    got = list[Teacher | None]()
    problems = all_at_once(2, lambda n: got.append(store.people.follow_link(link, f"t{n}@example.org", "T", "hash")))
    assert problems == []
    assert sorted(found is None for found in got) == [False, True]
    assert store.people.find_link(token) is None


def test_links_end_by_age_and_by_a_newer_one(store: Store) -> None:
    first, second = (store.people.add_link("reset", "ada@example.org") for _ in range(2))
    assert store.people.find_link(first) is None
    assert store.people.find_link(second)
    with store.engine.begin() as connection:
        connection.execute(sa.update(account_links).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert store.people.find_link(second) is None


def test_the_first_password_voids_every_set_up_link(store: Store) -> None:
    links = [store.people.find_link(store.people.add_link("setup")) for _ in range(3)]
    made = list[Teacher | None]()

    def follow(n: int) -> None:
        link = links[n]
        assert link
        made.append(store.people.follow_link(link, f"t{n}@example.org", "T", "hash"))

    assert not store.people.has_teacher()
    assert all_at_once(2, follow) == []
    assert sorted(each is None for each in made) == [False, True]
    assert store.people.has_teacher()
    follow(2)
    assert made[-1] is None


def test_whoever_makes_the_first_account_is_an_operator(store: Store) -> None:
    link = store.people.find_link(store.people.add_link("setup"))
    assert link
    first = store.people.follow_link(link, "ada@example.org", "Ada", "hash")
    second = store.people.add_teacher("bo@example.org", "Bo")
    assert first
    assert second
    assert (first.is_operator, second.is_operator) == (True, False)
    store.people.set_operator(second, True)
    store.people.set_operator(first, False)
    assert [operator.id for operator in store.people.operators()] == [second.id]
    signed_in = store.people.find_session(store.people.open_session(second))
    assert signed_in
    assert signed_in.is_operator


def test_no_secret_is_stored_in_clear(store: Store) -> None:
    token = store.people.add_link("setup")
    owner = teacher(store)
    session = store.people.open_session(owner)
    _, _, code = enrol_student(store, store.courses.add("C", "UTC", owner))
    with store.engine.connect() as connection:
        rows = [
            str(row) for table in (account_links, sessions, students) for row in connection.execute(sa.select(table))
        ]
    for secret in (token, session, code):
        assert secret not in " ".join(rows)


def test_a_session_ends_by_signing_out_idleness_and_age(store: Store) -> None:
    owner = teacher(store)
    first, second, third = (store.people.open_session(owner) for _ in range(3))
    assert store.people.find_session(first) == owner
    store.people.end_session(first)
    assert store.people.find_session(first) is None
    for column, age in (("seen_at", timedelta(hours=12, minutes=1)), ("created_at", timedelta(days=30, minutes=1))):
        assert store.people.find_session(second) == owner
        with store.engine.begin() as connection:
            connection.execute(sa.update(sessions).values({column: datetime.now(UTC) - age}))
        assert store.people.find_session(second) is None
        with store.engine.begin() as connection:
            connection.execute(sa.update(sessions).values({column: datetime.now(UTC)}))
    store.people.end_sessions(owner)
    assert store.people.find_session(second) is None
    assert store.people.find_session(third) is None


def test_being_seen_keeps_a_session_alive(store: Store) -> None:
    token = store.people.open_session(teacher(store))
    with store.engine.begin() as connection:
        connection.execute(sa.update(sessions).values(seen_at=datetime.now(UTC) - timedelta(hours=11)))
    assert store.people.find_session(token)
    with store.engine.connect() as connection:
        seen = connection.scalar(sa.select(sessions.c.seen_at))
    assert seen
    assert datetime.now(UTC) - seen < timedelta(minutes=1)


def test_a_new_password_ends_every_session(store: Store) -> None:
    token = store.people.open_session(teacher(store))
    link = store.people.find_link(store.people.add_link("reset", "ada@example.org"))
    assert link
    found = store.people.follow_link(link, link.email, password_hash="another")  # noqa: S106 - no password's hash
    assert found
    assert (found.name, found.password_hash) == ("Ada", "another")
    assert store.people.find_session(token) is None
