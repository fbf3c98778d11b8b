"""The page that asks for a link where no mail can be sent; tests/exchange/test_mail.py has a mail server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.settings import PROJECT, Settings
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app

SENDER = "Attention Shapes <noreply@example.org>"


@pytest.mark.parametrize("settings", [{}, {"smtp": "smtp://127.0.0.1", "smtp_from": SENDER}])
def test_without_a_server_or_an_address_the_page_says_whom_to_ask(tmp_path: Path, settings: dict[str, str]) -> None:
    app = make_app(Settings(data_dir=tmp_path, database_url="", address="", **settings))  # type: ignore[arg-type]
    with TestClient(app) as browser:
        page = browser.get("/forgotten-password").text
        program, _, rest = Page(page).text("code").partition(" ")
        assert rest == "teacher reset EMAIL"
        assert shutil.which(program) or (PROJECT / program).is_file()  # as a shell in the folder of the app finds it
        assert "<form" not in page
        assert browser.post("/forgotten-password", data={"email": "ada@example.org"}).status_code == 404
