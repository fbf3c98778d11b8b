"""Sheets of worksheets that a test writes, with the shipped models and wording."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.library import Library
from app.sheets.variant import Variant
from app.sheets.worksheet import Worksheet


def own_worksheet(library: Library, base: str = "llama-7b", **changes: Any) -> Worksheet:
    """A shipped worksheet with some settings replaced, under the key "mine"."""
    settings = {**library.worksheet(base).settings, **changes}
    return read_settings("mine", settings, library.models, library.wording)


def with_own_worksheet(library: Library, base: str = "llama-7b", **changes: Any) -> Library:
    """The library with one more worksheet, "mine": a shipped one with some settings replaced."""
    return replace(library, worksheets={**library.worksheets, "mine": own_worksheet(library, base, **changes)})


def own_sheet(library: Library, base: str = "llama-7b", **changes: Any) -> Variant:
    """The sheet of that worksheet, with its own model and tokens."""
    return with_own_worksheet(library, base, **changes).variant("mine")
