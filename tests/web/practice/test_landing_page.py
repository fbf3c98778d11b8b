"""Tests of the landing page."""

from __future__ import annotations

from fastapi.testclient import TestClient


def test_links_to_sheets_from_before_there_was_a_landing_page_still_open_the_sheet(client: TestClient) -> None:
    answer = client.get("/?worksheet=llama-7b&tokens=50", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == "/sheet?worksheet=llama-7b&tokens=50"
