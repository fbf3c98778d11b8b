"""A form that two people can change, saved as by somebody who opens it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.helpers.html_page import Page
from tests.helpers.school import Browser


def version_in(browser: Browser, page: str) -> str:
    """The version of the form opened at this address."""
    [(field, _)] = Page(browser.get(page).text).find("input", name="version")
    return str(field["value"])


def save(browser: Browser, address: str, form: Mapping[str, Any], *, page: str = "") -> Any:
    """Send a form to the address, which is also its page unless another is named; return the response."""
    return browser.post(address, data={**form, "version": version_in(browser, page or address)})


def change_activity(browser: Browser, address: str, form: Mapping[str, Any]) -> Any:
    """Save the form of an activity."""
    return save(browser, address, form, page=f"{address}/edit")
