"""The form for a real head: what it offers, what it refuses, and what becomes of the sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from app.checkpoints.files import ListedCheckpoint
from app.jobs.jobs import queue_name
from app.sheets.worksheet import MAX_SENTENCE
from app.store.jobs import JobTable
from app.web.shared import head_request
from app.web.shared.head_request import HEAD_LIMITS
from app.web.shared.services import Services
from tests.helpers.html_page import Page
from tests.helpers.real_heads import LISTED

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner

FORM = {"sentence": "The cat sat", "checkpoint": "smollm2", "layer": "13", "head": "8"}


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[ListedCheckpoint]:
    """What the server offers, which a test may change."""
    listed = [LISTED]
    monkeypatch.setattr(head_request, "listed_checkpoints", lambda _folders: tuple(listed))
    return listed


def test_without_weights_the_page_says_how_to_get_them(client: TestClient, offered: list[ListedCheckpoint]) -> None:
    offered.clear()
    page = Page(client.get("/heads").text)
    assert page.find("form", action="/heads") == []
    assert page.text("code") == "make serve WEIGHTS=smollm2"
    assert client.post("/heads", data=FORM).status_code == 422


@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize(
    ("field", "typed"),
    [("sentence", "  "), ("sentence", "x" * (MAX_SENTENCE + 1)), ("layer", "30"), ("layer", "one"), ("head", "9")],
)
def test_what_cannot_be_used_stays_in_the_form(client: TestClient, field: str, typed: str) -> None:
    answer = client.post("/heads", data=FORM | {field: typed})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert page.text("p", id="problem")
    [(wrong, _)] = [each for tag in ("input", "textarea") for each in page.find(tag, **{"aria-invalid": "true"})]
    assert wrong["name"] == field
    if field != "sentence":
        assert "The cat sat" in page.text("textarea")


def test_weights_that_are_gone_are_not_replaced_by_others(client: TestClient, offered: list[ListedCheckpoint]) -> None:
    offered.append(replace(LISTED, key="llama", name="llama"))
    del offered[0]
    answer = client.post("/heads", data=FORM, follow_redirects=False)
    assert answer.status_code == 422
    page = Page(answer.text)
    assert page.text("p", id="problem")
    assert page.find("select", **{"aria-invalid": "true"})
    assert "The cat sat" in page.text("textarea")


@pytest.mark.usefixtures("offered")
def test_a_head_is_left_to_who_has_its_weights(client: TestClient) -> None:
    address = client.post("/heads", data=FORM, follow_redirects=False).headers["location"]
    services: Services = client.app.state.services  # type: ignore[attr-defined]
    job = services.jobs.find(address.rpartition("/")[2])
    assert job
    assert job.queue == queue_name("head", "smollm2")


@pytest.mark.usefixtures("offered")
def test_too_many_heads_wait(client: TestClient, runner: FakeRunner) -> None:
    """The form comes back with the sentence (503), and nothing is queued."""
    runner.gate.clear()
    try:
        answers = [client.post("/heads", data=FORM, follow_redirects=False) for _ in range(HEAD_LIMITS.visitor + 1)]
    finally:
        runner.gate.set()
    assert [answer.status_code for answer in answers] == [303] * HEAD_LIMITS.visitor + [503]


@pytest.mark.usefixtures("offered")
def test_the_form_of_an_earlier_head_has_its_sentence(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    address = client.post("/heads", data=FORM, follow_redirects=False).headers["location"]
    key = address.rpartition("/")[2]
    page = Page(client.get(f"/heads?from={key}&head=2").text)
    assert page.text("textarea") == "The cat sat"
    assert [page.find("input", name=name)[0][0]["value"] for name in ("layer", "head")] == ["13", "2"]
    assert "because" in Page(client.get("/heads?from=unknown").text).text("textarea")  # the example
    monkeypatch.setattr(JobTable, "arguments", lambda _jobs, _job: {})  # as where it is deleted just now
    assert "because" in Page(client.get(f"/heads?from={key}").text).text("textarea")
