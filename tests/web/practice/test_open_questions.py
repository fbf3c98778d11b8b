"""A practice sheet with open questions: saved with the sheet, not marked, and no part of an attempt."""

from __future__ import annotations

from dataclasses import replace

from starlette.testclient import TestClient

from app.translation import ENGLISH
from tests.helpers.html_page import Page
from tests.helpers.open_questions import WHY_K, asking
from tests.helpers.sheet_form import filled


def test_what_is_written_in_practice_is_saved_and_not_marked(client: TestClient) -> None:
    services = client.app.state.services  # type: ignore[attr-defined]
    client.app.state.services = replace(services, libraries={ENGLISH: asking(services.library)})  # type: ignore[attr-defined]
    said = Page(client.post("/sheet/check", data={**filled(), WHY_K: "One row per token."}).text)
    assert set(said.marks().values()) == {"right"}
    assert said.find("textarea")[0][1] == "One row per token."
    assert Page(client.get("/sheet").text).find("textarea")[0][1] == "One row per token."
    run = client.post("/runs", data={**filled(keys__rows="99"), WHY_K: "One row per token."})
    assert "One row per token." not in run.text
    with services.store.engine.connect() as connection:
        runs = connection.exec_driver_sql("SELECT answers FROM runs").scalars().all()
        attempts = connection.exec_driver_sql("SELECT answers FROM attempts").scalars().all()
    assert runs
    assert attempts
    assert "question" not in str([*runs, *attempts])
