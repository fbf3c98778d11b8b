"""Accounts from the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app import cli
from app.settings import Settings
from tests.helpers.accounts import ADA, sign_in
from tests.helpers.running_app import make_app
from tests.helpers.school import PASSWORD


def test_the_terminal_adds_and_resets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ATTENTION_SHAPES_ADDRESS", "https://shapes.example.org/")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for arguments, sentence in (
        (("add", "nonsense"), "is not an e-mail address"),
        (("reset", ADA), "No account has the address"),
        (("add", ADA, "--name", "Ada"), ""),
        (("add", ADA), "already has an account"),
        (("reset", ADA), ""),
    ):
        if sentence:
            with pytest.raises(SystemExit):
                cli.main(("teacher", *arguments))
            assert sentence in capsys.readouterr().err
        else:
            cli.main(("teacher", *arguments))
    found = re.findall(r"https://shapes\.example\.org(/links/[\w-]+)", capsys.readouterr().out)
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app, follow_redirects=False) as browser:
        assert browser.post(found[-1], data={"password": PASSWORD}).headers["location"] == "/courses"
        assert browser.get(found[-1]).status_code == 404
        assert sign_in(TestClient(app, follow_redirects=False))[0] == 303


def test_the_terminal_makes_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lists them without an address; what it can't do, it refuses, and nothing changes."""
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)

    def operators() -> list[str]:
        capsys.readouterr()
        cli.main(("teacher", "operator"))
        return [line for line in capsys.readouterr().out.splitlines() if "@" in line]

    assert operators() == []
    for email in (ADA, "bo@example.org"):
        cli.main(("teacher", "add", email))
        cli.main(("teacher", "operator", email))
    assert operators() == [ADA, "bo@example.org"]
    cli.main(("teacher", "operator", ADA, "--remove"))
    for refused in (("operator", "eve@example.org"), ("operator", "--remove"), ("reset", ADA, "--remove"), ("add",)):
        with pytest.raises(SystemExit) as ended:
            cli.main(("teacher", *refused))
        assert ended.value.code == 2
    assert operators() == ["bo@example.org"]
