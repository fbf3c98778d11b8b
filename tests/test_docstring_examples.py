"""Every example in a docstring of the app (>>>) is run and gives what stands below it."""

from __future__ import annotations

import doctest
import importlib

import pytest

from app.settings import PROJECT
from tests.helpers.source_code import dotted_name


def modules_with_examples() -> list[str]:
    """The dotted names of the modules of app/ with an example in them."""
    sources = sorted((PROJECT / "app").rglob("*.py"))
    return [dotted_name(path) for path in sources if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
