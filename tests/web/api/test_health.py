"""The address by which a load balancer asks whether the app is well."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_health_is_said_when_the_database_answers(client: TestClient) -> None:
    """200 and {"status": "ok"}."""
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
