"""A teacher who signs in with a password through the page."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.helpers.school import PASSWORD

ADA = "ada@example.org"


def sign_in(browser: TestClient, password: str = PASSWORD, email: str = ADA, after: str = "") -> tuple[int, str]:
    """Send the sign-in form with the target address `after`; return the status and the redirect ("": none)."""
    answer = browser.post("/sign-in", data={"email": email, "password": password, "next": after})
    return answer.status_code, answer.headers.get("location", "")
