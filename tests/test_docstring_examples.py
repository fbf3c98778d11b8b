"""Every example in a docstring of the app (>>>) is run and gives what stands below it."""

from __future__ import annotations

import ast
import doctest
import importlib

import pytest

from tests.helpers.source_code import app_modules


def modules_with_examples() -> list[str]:
    """The dotted names of the modules of app/ with an example in a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return sorted(
        name
        for name, tree in app_modules().items()
        if any(">>> " in (ast.get_docstring(node) or "") for node in ast.walk(tree) if isinstance(node, documented))
    )


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_are_true(name: str) -> None:
    """The listing of a finished head program in app.forward.program is one of them."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
