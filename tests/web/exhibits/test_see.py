"""The list of the exhibits."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.helpers.html_page import Page


def test_every_exhibit_is_listed_and_opens(client: TestClient) -> None:
    page = Page(client.get("/see").text)
    links = [attributes["href"] for attributes, _ in page.find("a") if attributes["href"].startswith("/see/")]
    assert "/see/slide" in links
    assert all(client.get(link).status_code == 200 for link in links)
