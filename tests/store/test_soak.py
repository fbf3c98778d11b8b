"""Two short days of a server by a clock that is put forward: what expires goes, and nothing grows from day to day."""

from __future__ import annotations

import pytest

from simulation.soak import EXPIRING_TABLES, SoakResult, soak

pytestmark = pytest.mark.slow


def test_what_expires_goes_and_nothing_grows_from_day_to_day() -> None:
    *_lines, result = soak(visits_per_hour=3, hours=2)
    assert isinstance(result, SoakResult)
    before = result.hours[-1].rows
    assert all(before[table] for table in EXPIRING_TABLES)
    assert result.left_over == {}
    assert result.expired.rows["courses"] == before["courses"]
    assert result.database_growth <= 1.1
    assert result.memory_growth < 30_000_000
