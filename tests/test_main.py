"""The app as a whole: started, restarted, on PostgreSQL, and used by many at once."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.routing import Match, Route
from starlette.testclient import TestClient

from app.figures.thumbnails import thumbnail
from app.main import _slow_steps, find_routers
from app.practice.catalogue import catalogue
from app.settings import Settings
from tests.helpers.html_page import Page
from tests.helpers.running_app import make_app
from tests.helpers.school import SCRIPT
from tests.helpers.sheet_form import LLAMA_FORM, filled
from tests.helpers.shipped import LIBRARY

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner


def test_a_visit_starts_no_child_and_loads_no_torch(tmp_path: Path) -> None:
    app = make_app(Settings(data_dir=tmp_path, database_url=""))
    with TestClient(app) as opened:
        assert opened.get("/sheet").status_code == 200
        assert not any(child.is_running for child in app.state.services.runner._children)


def test_what_is_slow_the_first_time_is_done_before_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for step in _slow_steps(LIBRARY):
        step()
    monkeypatch.setattr("app.figures.thumbnails.draw_figures", None)
    monkeypatch.setattr("app.sheets.library.topic_for", None)
    for entry in catalogue(LIBRARY, "", in_symbols=False):
        thumbnail(entry.drawn)
    for key, worksheet in LIBRARY.worksheets.items():
        if worksheet.deals_bugs:
            LIBRARY.seeded(key, 0)


def test_no_address_matches_routes_of_two_pages() -> None:
    routes = [route for router in find_routers() for route in router.routes if isinstance(route, Route)]
    for route in routes:
        address = re.sub(r"{[^}]*}", "abcdef", re.sub(r"{[^}]*:int}", "7", route.path))
        for method in route.methods or ():
            scope = {"type": "http", "path": address, "method": method}
            pages = {each.endpoint.__module__ for each in routes if each.matches(scope)[0] is Match.FULL}
            assert pages == {route.endpoint.__module__}, (method, address)


def test_answers_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="")
    with TestClient(make_app(settings)) as first:
        first.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "77"})
        cookies = dict(first.cookies)
    with TestClient(make_app(settings), cookies=cookies) as second:
        assert Page(second.get("/sheet").text).boxes()["queries.rows"] == "77"


def test_many_browsers_are_served_at_once(client: TestClient) -> None:
    results: list[Any] = []

    def work(number: int) -> None:
        response = client.post("/sheet/check", data=filled(queries__rows=str(number)), headers=SCRIPT)
        results.append((number, response.status_code, Page(response.text).boxes()["queries.rows"]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(number, 200, str(number)) for number in range(1, 9)]


def test_the_app_runs_on_postgresql_too(new_postgres_database: str, tmp_path: Path, runner: FakeRunner) -> None:
    app = make_app(Settings(data_dir=tmp_path / "data", database_url=new_postgres_database), runner)
    with TestClient(app, raise_server_exceptions=False) as client:
        client.post("/sheet/save", data={**LLAMA_FORM, "queries.rows": "a\x00b"})
        assert Page(client.get("/sheet").text).boxes()["queries.rows"].startswith("a")
        assert client.get("/runs/%00").status_code == 404
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret.key"]
