"""No request keeps a worker busy, whatever stands in its fields: each is sent long and odd texts, and timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.fuzzing import fuzzed_app
from tests.helpers.hard_requests import HardRequests
from tests.helpers.permission_table import TABLE

# Seconds of processor time, several times what `make bench-worst` allows: a busy machine makes everything slower.
MOST_OF_A_VISITOR, MOST_OF_A_TEACHER = 0.6, 3.0


def assert_all_are_quick(requests: HardRequests) -> None:
    """Send them; fail with the requests that took too long, and with those that broke something."""
    requests.run()
    most = {"nobody": MOST_OF_A_VISITOR, "student": MOST_OF_A_VISITOR, "instructor": MOST_OF_A_TEACHER}
    assert [each for each in requests.timed if each.seconds > most[each.role]] == []
    assert {each.request for each in requests.timed if each.status == 500} == set()


@pytest.mark.slow
def test_a_few_fields_of_each_route_with_a_few_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also each parameter of each address, the headers and cookies, and the bodies of the API."""
    monkeypatch.setattr("app.web.shared.passwords.SLOW_VERIFY_S", 0)
    requests = HardRequests(fuzzed_app(tmp_path))
    assert_all_are_quick(requests)
    sent = {each.request.partition(" ")[2] for each in requests.timed}
    posts = {route.partition(" ")[2] for route in TABLE if route.startswith("POST ")}
    assert {path for path in posts if not any(request.startswith(f"{path} ") for request in sent)} == set()


@pytest.mark.slow
def test_every_field_of_each_route_with_every_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with each of a hundred texts in each field: half an hour."""
    monkeypatch.setattr("app.web.shared.passwords.SLOW_VERIFY_S", 0)
    assert_all_are_quick(HardRequests(fuzzed_app(tmp_path), every_text=True))
