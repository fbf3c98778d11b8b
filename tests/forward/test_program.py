"""The examples in the docstrings of app.forward are run; the listing of a finished program is one of them."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import app.forward
from app.forward import program


def test_the_listing_at_the_top_of_the_program_module_is_what_a_run_prints() -> None:
    """Every line and every shape beside it, as torch reports it today."""
    results = doctest.testmod(program)
    assert (results.failed, results.attempted >= 4) == (0, True)


def test_every_example_in_a_docstring_is_true() -> None:
    """All modules of the package."""
    for module in pkgutil.iter_modules(app.forward.__path__, "app.forward."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0, module.name
