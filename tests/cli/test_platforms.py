"""Learning platforms from the terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app import cli
from app.settings import Settings
from tests.helpers.lti import platform
from tests.helpers.running_app import make_app


def test_the_terminal_lists_platforms_makes_links_and_changes_keys(
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
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app) as browser:
        moodle = platform(app.state.services.store)
        assert not app.state.services.store.lti.is_confirmed(moodle.id, "school 7")
        assert re.search(r"Moodle .* client-1 +school 7 \(waiting\), 1\n", run("list"))
        found = re.search(r"https://shapes\.example\.org(/lti/register/[\w-]+)", run("link"))
        assert found
        assert browser.get(found[1]).status_code == 200
        before = browser.get("/lti/keys").json()["keys"]
        run("rotate")
        assert browser.get("/lti/keys").json()["keys"][1:] == before
