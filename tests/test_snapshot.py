"""The pages that `make snapshot` reaches, by links, as a visitor, a student and a teacher of the sample course."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.snapshot import write_pages


@pytest.mark.slow
def test_every_link_of_the_sample_course_leads_to_a_page(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages")
    for role, fewest in (("visitor", 50), ("student", 50), ("teacher", 80)):
        statuses = {path.name: path.read_text(encoding="utf-8")[:3] for path in (tmp_path / "pages" / role).iterdir()}
        assert len(statuses) >= fewest
        assert {name: status for name, status in statuses.items() if status not in {"200", "303"}} == {}
