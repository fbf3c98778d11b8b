"""Test parameters: a few run in `make test`, all in `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, values: Iterable[Any]) -> list[Any]:
    """The values as parameters; the first of each `step` is quick, the others are marked slow."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=[pytest.mark.slow] if index % step else []
        )
        for index, value in enumerate(values)
    ]
