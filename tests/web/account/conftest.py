"""A teacher with a password, and a browser in which nobody is signed in yet."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store import Teacher
from app.web.shared.passwords import Passwords
from tests.helpers.accounts import ADA
from tests.helpers.school import PASSWORD, School


@pytest.fixture
def browser(new_app: FastAPI) -> TestClient:
    """A browser at the app of `school`, which follows no redirect."""
    return TestClient(new_app, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture(scope="session")
def password_hash() -> str:
    """The hash of PASSWORD."""
    return Passwords().hash(PASSWORD)


@pytest.fixture
def ada(school: School, password_hash: str) -> Teacher:
    """Ada, whose password is PASSWORD."""
    people = school.store.people
    link = people.find_link(people.add_link("invite", ADA))
    assert link
    teacher = people.follow_link(link, ADA, "Ada", password_hash)
    assert teacher
    return teacher
