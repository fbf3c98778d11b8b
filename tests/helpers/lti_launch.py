"""A browser on its way from a platform's page through the tool, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
from starlette.testclient import TestClient

from simulation.lti_platform import Initiation, Platform

# What a browser says about a request that a page of another site starts.
FROM_ANOTHER_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
IN_WINDOW = {**FROM_ANOTHER_SITE, "Sec-Fetch-Dest": "document"}
IN_FRAME = {**FROM_ANOTHER_SITE, "Sec-Fetch-Dest": "iframe"}


def initiate(browser: TestClient, initiation: Initiation, headers: Mapping[str, str] = IN_WINDOW) -> httpx2.Response:
    """Send what the platform's page sends to the tool first."""
    path = urlsplit(initiation.url).path
    if initiation.method == "GET":
        return browser.get(path, params=dict(initiation.fields), headers=headers, follow_redirects=False)
    return browser.post(path, data=dict(initiation.fields), headers=headers, follow_redirects=False)


def authorized(
    browser: TestClient, platform: Platform, initiation: Initiation, headers: Mapping[str, str] = IN_WINDOW
) -> dict[str, str]:
    """The fields that the platform's form posts to the tool after it has answered the initiation."""
    response = initiate(browser, initiation, headers)
    assert response.status_code in (302, 303), (response.status_code, response.text)
    return platform.answer(response.headers["location"])[1]


def post_launch(
    browser: TestClient, fields: Mapping[str, str], headers: Mapping[str, str] = IN_WINDOW, *, cookies: bool = True
) -> httpx2.Response:
    """Post the platform's form, without the cookies that are SameSite=Lax, as browsers do."""
    return (
        _without_lax_cookies(browser, fields, headers)
        if cookies
        else _stranger(browser).post("/lti/launch", data=dict(fields), headers=headers, follow_redirects=False)
    )


def open_tool(browser: TestClient, platform: Platform, initiation: Initiation) -> httpx2.Response:
    """Go all the way in a window; the response is the first page that isn't a redirect."""
    response = post_launch(browser, authorized(browser, platform, initiation))
    return follow(browser, response)


def follow(browser: TestClient, response: httpx2.Response, most: int = 5) -> httpx2.Response:
    """Follow redirects within the tool."""
    while response.is_redirect and most:
        response = browser.get(response.headers["location"], headers={"Sec-Fetch-Site": "same-origin"})
        most -= 1
    return response


def _stranger(browser: TestClient) -> TestClient:
    options: dict[str, Any] = {"raise_server_exceptions": False}
    return TestClient(browser.app, base_url=str(browser.base_url), **options)


def _without_lax_cookies(browser: TestClient, fields: Mapping[str, str], headers: Mapping[str, str]) -> httpx2.Response:
    other = _stranger(browser)
    for cookie in browser.cookies.jar:
        if str(cookie.get_nonstandard_attr("SameSite") or "lax").lower() == "none":
            other.cookies.jar.set_cookie(cookie)
    response = other.post("/lti/launch", data=dict(fields), headers=headers, follow_redirects=False)
    for cookie in other.cookies.jar:
        browser.cookies.jar.set_cookie(cookie)
    return response
