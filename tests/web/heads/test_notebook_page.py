"""A real head as a notebook: a file with its sentence, for everybody with its address, as long as the head is kept."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.checkpoints.files import SMOLLM2, open_checkpoint
from app.forward.notebook import MAX_CARRIED_BYTES
from app.forward.real_head import RealHead, run_real_head

if TYPE_CHECKING:
    from tests.helpers.fake_runner import FakeRunner

FORM = {"checkpoint": SMOLLM2, "sentence": "The cat sat.", "layer": "0", "head": "4"}


@pytest.fixture(scope="module")
def head() -> RealHead:
    """That head over that sentence."""
    return run_real_head(open_checkpoint(SMOLLM2, ()), FORM["sentence"], layer=0, head=4, device="cpu")


def address_of(client: TestClient, runner: FakeRunner, head: RealHead, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the notebook of a head that has been run on the page, where the runner answers with `head`."""
    monkeypatch.setattr(runner, "run_real_head", lambda *_arguments, **_options: head)
    place = client.post("/heads", data=FORM, follow_redirects=False).headers["location"]
    address = f"{place}/notebook.ipynb"
    give_up_at = time.monotonic() + 60
    while client.get(address).status_code == 404 and time.monotonic() < give_up_at:
        time.sleep(0.02)
    return address


def test_a_head_can_be_downloaded_until_it_is_deleted(
    client: TestClient, runner: FakeRunner, head: RealHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address_of(client, runner, head, monkeypatch)
    response = client.get(address)
    assert response.headers["content-type"] == "application/x-ipynb+json"
    assert response.headers["cache-control"] == "no-store"
    assert ".ipynb" in response.headers["content-disposition"]
    sources = ["".join(cell["source"]) for cell in response.json()["cells"]]
    assert any(repr(FORM["sentence"]) in source for source in sources)
    client.post(address.replace("notebook.ipynb", "delete"))
    assert client.get(address).status_code == 404


def test_a_head_that_is_too_large_for_a_notebook_is_refused(
    client: TestClient, runner: FakeRunner, head: RealHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {**head.arrays, "input": np.zeros(MAX_CARRIED_BYTES // 4 + 1, np.float32)}
    address = address_of(client, runner, replace(head, arrays=large), monkeypatch)
    response = client.get(address)
    assert response.status_code == 409
    assert "fewer tokens" in response.text
