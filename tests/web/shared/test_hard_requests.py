"""No request keeps a worker busy, whatever its fields contain: each is sent long and odd texts, and timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.fuzzing import fuzzed_app
from tests.helpers.hard_requests import HardRequests
from tests.helpers.permission_table import TABLE


@pytest.mark.slow
def test_a_few_fields_of_each_route_with_a_few_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.shared.passwords.SLOW_VERIFY_S", 0)
    requests = HardRequests(fuzzed_app(tmp_path))
    requests.run()
    assert requests.too_hard == []
    sent = {each.request.partition(" ")[2] for each in requests.timed}
    posts = {route.partition(" ")[2] for route in TABLE if route.startswith("POST ")}
    assert {path for path in posts if not any(request.startswith(f"{path} ") for request in sent)} == set()
