"""The page of a print job: its progress, its PDF, and what it says when the job is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.web.shared.cookies import TEACHER_COOKIE
from tests.helpers.print_jobs import finished_print_job
from tests.helpers.printed import read_pdf
from tests.helpers.school import School


def a_teachers_session(client: TestClient) -> str:
    """The cookie of a teacher who signed in."""
    school = School(client.app)  # type: ignore[arg-type]
    return school.store.people.open_session(school.teacher())


@pytest.mark.slow
def test_a_large_handout_shows_its_progress(client: TestClient) -> None:
    """More than a hundred sheets are made while a page says how far they are, without script too."""
    client.cookies.set(TEACHER_COOKIE, a_teachers_session(client))
    page = client.get("/handout?sheets=120").text
    assert "Create 120 sheets" in page
    assert "Download PDF" not in page
    answer = client.post("/handout/class", data={"sheets": "120"}, follow_redirects=False)
    address = answer.headers["location"]
    first = client.get(address)
    assert "<progress" not in first.text or "refresh" in first.headers
    assert "Download PDF" in finished_print_job(client, address)
    assert len(read_pdf(client.get(f"{address}.pdf").content)) == 60


def test_the_page_of_a_job_does_not_read_its_pdf(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """To say that it is ready, the small file beside it is enough; the download sends the PDF piece by piece."""
    answer = client.post("/handout/class", data={"names": "Ada"}, follow_redirects=False)
    address = answer.headers["location"]
    finished_print_job(client, address)
    files = list[str]()
    read_bytes = Path.read_bytes

    def recorded(path: Path) -> bytes:
        if path.parent.name == "handouts":
            files.append(path.suffix)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", recorded)
    assert "The PDF is ready" in client.get(address).text
    assert files == [".json"]
    assert client.get(f"{address}.pdf").status_code == 200
    assert files == [".json", ".json"]


def test_an_old_job_is_told(client: TestClient) -> None:
    """A handout that is no longer kept has a sentence of its own."""
    answer = client.get("/handout/jobs/none")
    assert answer.status_code == 404
    assert "has been deleted" in answer.text
