"""How a closing time is written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.web.shared.activity_steps import short_time


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 4, 3, 10, 50, tzinfo=UTC), "10:50"),
        (datetime(2026, 4, 4, 10, 50, tzinfo=UTC), "4 April, 10:50"),
        (datetime(2027, 4, 3, 10, 50, tzinfo=UTC), "3 April, 10:50"),  # in a year, on the same day
    ],
)
def test_a_time_on_another_day_has_its_day(moment: datetime, text: str) -> None:
    assert short_time(moment, datetime(2026, 4, 3, 9, 0, tzinfo=UTC), "UTC") == text
