"""How many requests a page costs a browser that has been here before."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def sent_while_opening(page: Page, path: str) -> list[str]:
    """The addresses that went over the network, not through the browser's cache."""
    session, asked, cached = page.context.new_cdp_session(page), dict[str, str](), set[str]()

    def answered(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            cached.add(event["requestId"])

    session.on("Network.requestWillBeSent", lambda event: asked.update({event["requestId"]: event["request"]["url"]}))
    session.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
    session.on("Network.responseReceived", answered)
    session.send("Network.enable")
    page.goto(path, wait_until="networkidle")
    session.detach()
    return [address for request, address in asked.items() if request not in cached]


@pytest.mark.parametrize("path", ["/", "/sheet", "/models", "/join"])
def test_a_repeated_view_costs_one_request(page: Page, path: str) -> None:
    page.goto(path, wait_until="networkidle")
    assert sent_while_opening(page, path) == [page.url]
