"""Learning platforms from the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app import cli
from app.settings import Settings
from tests.helpers.running_app import make_app

ADD = ("add", "--name", "Moodle", "--issuer", "https://lms.example.org", "--client-id", "abc", "--authorization",
       "https://lms.example.org/auth", "--token", "https://lms.example.org/token", "--keys",
       "https://lms.example.org/keys")  # fmt: skip


def test_the_terminal_registers_confirms_and_removes_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ATTENTION_SHAPES_ADDRESS", "https://shapes.example.org/")
    monkeypatch.delenv("DATABASE_URL", raising=False)

    def run(*arguments: str) -> str:
        capsys.readouterr()
        cli.main(("platforms", *arguments))
        return capsys.readouterr().out

    assert "https://shapes.example.org/lti/launch" in run()
    run(*ADD)
    for refused in (ADD, ADD[:3], ("confirm", "1"), ("confirm", "9"), ("remove", "x"), ("remove", "9" * 12)):
        with pytest.raises(SystemExit):
            run(*refused)
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app) as browser:
        store = app.state.services.store
        [platform] = store.lti.platforms()
        assert not store.lti.is_confirmed(platform.id, "school 7")
        assert "school 7 (waiting)" in run("list")
        run("confirm", "1", "--deployment", "school 7")
        assert store.lti.is_confirmed(platform.id, "school 7")
        found = re.search(r"https://shapes\.example\.org(/lti/register/[\w-]+)", run("link"))
        assert found
        assert browser.get(found[1]).status_code == 200
        before = browser.get("/lti/keys").json()["keys"]
        run("rotate")
        assert browser.get("/lti/keys").json()["keys"][1:] == before
        run("remove", "1")
        assert store.lti.platforms() == ()
